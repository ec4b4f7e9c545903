//! The names that a program reads and assigns, found from its syntax tree without running it.

use crate::ast::{Expr, ExprKind, Script, StmtKind, Target, TargetKind};
use crate::span::Span;

/// A name that a program reads before it assigns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameUse {
    /// The name.
    pub name: String,
    /// Source range of the place where the script first reads the name.
    pub span: Span,
    /// Whether the first use of the name is a call, as in `name(x)`, so that the name is most likely a function.
    pub called: bool,
}

impl Script {
    /// Returns the names that the program reads before it assigns them, each once, in order of first use.
    ///
    /// These are input variables, and functions and constants of the library. Prefixed names (`np.sum`) are not included.
    ///
    /// # Examples
    ///
    /// ```
    /// let script = cuprum_eval::parse("y = sin(x) * scale; y / y.max()")?;
    /// let names = script.free_names();
    /// let names: Vec<_> = names.iter().map(|used| (used.name.as_str(), used.called)).collect();
    /// assert_eq!(names, [("sin", true), ("x", false), ("scale", false)]);
    /// # Ok::<(), cuprum_eval::ParseError>(())
    /// ```
    pub fn free_names(&self) -> Vec<NameUse> {
        let mut names = NameCollector::default();
        for stmt in &self.statements {
            match &stmt.kind {
                StmtKind::Expr(value) => names.record_name_reads(value),
                StmtKind::Assign { targets, value } => {
                    names.record_name_reads(value);
                    targets.iter().for_each(|target| names.record_assigned_names(target));
                }
                StmtKind::AugAssign { target, value, .. } => {
                    if let TargetKind::Name(name) = &target.kind {
                        names.record_name_use(name, target.span, false);
                    }
                    names.record_name_reads(value);
                    names.record_assigned_names(target);
                }
            }
        }
        names.free
    }

    /// Returns the names that the program assigns, each once, in order of first assignment.
    ///
    /// # Examples
    ///
    /// ```
    /// let script = cuprum_eval::parse("q, r = f(a); q *= 2; b[0] = 1")?;
    /// assert_eq!(script.assigned_names(), ["q", "r", "b"]);
    /// # Ok::<(), cuprum_eval::ParseError>(())
    /// ```
    pub fn assigned_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for stmt in &self.statements {
            match &stmt.kind {
                StmtKind::Expr(_) => {}
                StmtKind::Assign { targets, .. } => targets.iter().for_each(|target| push_assigned_names(target, &mut names)),
                StmtKind::AugAssign { target, .. } => push_assigned_names(target, &mut names),
            }
        }
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(*name));
        names
    }
}

fn push_assigned_names<'a>(target: &'a Target, names: &mut Vec<&'a str>) {
    match &target.kind {
        TargetKind::Name(name) => names.push(name),
        TargetKind::Tuple(items) => items.iter().for_each(|item| push_assigned_names(item, names)),
        // Both `a[i] = ...` and `a[i][j] = ...` assign to the variable `a`.
        TargetKind::Index { base, .. } => {
            let mut base = base;
            while let ExprKind::Index { base: inner, .. } = &base.kind {
                base = inner;
            }
            if let ExprKind::Name(name) = &base.kind {
                names.push(name);
            }
        }
    }
}

#[derive(Default)]
struct NameCollector {
    free: Vec<NameUse>,
    /// Names that the program has read or assigned so far.
    known: std::collections::HashSet<String>,
}

impl NameCollector {
    fn record_name_use(&mut self, name: &str, span: Span, called: bool) {
        if self.known.insert(name.to_owned()) {
            self.free.push(NameUse { name: name.to_owned(), span, called });
        }
    }

    fn record_name_reads(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Name(name) => self.record_name_use(name, expr.span, false),
            ExprKind::Call { callee, args, keywords } => {
                match &callee.kind {
                    ExprKind::Name(name) => self.record_name_use(name, callee.span, true),
                    _ => self.record_name_reads(callee),
                }
                args.iter().for_each(|arg| self.record_name_reads(arg));
                keywords.iter().for_each(|keyword| self.record_name_reads(&keyword.value));
            }
            kind => kind.for_each_child(&mut |child| self.record_name_reads(child)),
        }
    }

    fn record_assigned_names(&mut self, target: &Target) {
        match &target.kind {
            TargetKind::Name(name) => {
                self.known.insert(name.clone());
            }
            TargetKind::Tuple(items) => items.iter().for_each(|item| self.record_assigned_names(item)),
            TargetKind::Index { base, index } => {
                self.record_name_reads(base);
                index.for_each_child(&mut |part| self.record_name_reads(part));
            }
        }
    }
}
