//! The syntax tree: what was written, with a [`Span`] on every node, and nothing about what it means.
//!
//! Names are not resolved here: whether `sum` is a function or a variable is for the evaluator.

use std::fmt;

use crate::ops::{BinaryOp, CompareOp, LogicalOp, UnaryOp};
use crate::span::{Position, Span};

/// A parsed script, with its source, so that errors of evaluation can be placed in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// The text it was parsed from; every [`Span`] below points into it.
    pub source: String,
    /// The statements in order; `import` lines leave none.
    pub statements: Vec<Stmt>,
}

impl Script {
    /// Line and column of the start of `span`.
    pub fn position(&self, span: Span) -> Position {
        Position::of(&self.source, span.start)
    }
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// Where it stands, without the `;` or line end.
    pub span: Span,
}

/// What a statement does.
#[derive(Debug, Clone, PartialEq)]
pub enum StmtKind {
    /// `expr`: the last one of a program is the program's value.
    Expr(Expr),
    /// `a = b = value`: the value is worked out once, then given to each target from left to right.
    Assign {
        /// At least one.
        targets: Vec<Target>,
        /// The right-hand side.
        value: Expr,
    },
    /// `target += value`; the target is a name or an index, never a tuple.
    AugAssign {
        /// What is updated.
        target: Target,
        /// The operator before the `=`.
        op: BinaryOp,
        /// Where the operator stands.
        op_span: Span,
        /// The right-hand side.
        value: Expr,
    },
}

/// The left-hand side of an assignment.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// What is assigned to.
    pub kind: TargetKind,
    /// Where it stands.
    pub span: Span,
}

/// What is assigned to.
#[derive(Debug, Clone, PartialEq)]
pub enum TargetKind {
    /// `x`
    Name(String),
    /// `base[index]`
    Index {
        /// The array that is written into; mostly a name.
        base: Expr,
        /// Which elements.
        index: Index,
    },
    /// `a, b`, `(a, b)` or `[a, b]`: the value is unpacked along its first axis, with exactly this many parts.
    Tuple(Vec<Target>),
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands, parentheses included.
    pub span: Span,
    parenthesized: bool,
    height: u32,
}

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// `12`, `0xff`: never negative, a sign is a [`Unary`](Self::Unary).
    Int(i128),
    /// `1.5`, `1e-3`: infinite where Python's would be.
    Float(f64),
    /// `2j`: the imaginary part of a complex number whose real part is 0.
    Imaginary(f64),
    /// `'float32'`, with adjacent literals joined.
    Str(String),
    /// `True`, `False`
    Bool(bool),
    /// `None`
    None,
    /// `...`
    Ellipsis,
    /// A name as written: a variable, a function or a constant, in this order.
    Name(String),
    /// `np.sum`, `np.linalg.norm`, `np.pi`: a name looked up in the library, never among the variables.
    Global {
        /// The prefix as written (`np`). If a variable of this name exists, it was meant: take
        /// `path` as its attribute (`xp.T`, where `xp` is data).
        module: String,
        /// What follows the prefix, with its namespace: `sum`, `linalg.norm`.
        path: String,
    },
    /// `(a, b)`, `a, b`, `(a,)`, `()`
    Tuple(Vec<Expr>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `-x`, `+x`, `~x`, `not x`
    Unary {
        /// The operator.
        op: UnaryOp,
        /// What it is applied to.
        operand: Box<Expr>,
    },
    /// `a + b`
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Where the operator stands.
        op_span: Span,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// `a < b`, and chains: `a < b <= c` means `a < b and b <= c` with `b` worked out once.
    Compare {
        /// The leftmost operand.
        first: Box<Expr>,
        /// Each operator with its right operand; at least one.
        rest: Vec<Comparison>,
    },
    /// `a and b and c`, `a or b`: at least two operands, the later ones worked out only when needed.
    Logical {
        /// The operator.
        op: LogicalOp,
        /// The operands from left to right.
        values: Vec<Expr>,
    },
    /// `then if test else otherwise`: only one of the two is worked out.
    Conditional {
        /// Decides.
        test: Box<Expr>,
        /// The value if `test` is true.
        then: Box<Expr>,
        /// The value if not.
        otherwise: Box<Expr>,
    },
    /// `f(x, axis=0)`; for a method, `callee` is an [`Attribute`](Self::Attribute).
    Call {
        /// What is called.
        callee: Box<Expr>,
        /// Positional arguments.
        args: Vec<Expr>,
        /// Keyword arguments; no name twice.
        keywords: Vec<KeywordArg>,
    },
    /// `a.T`, `a.sum`, and `linalg.norm` written without a prefix.
    Attribute {
        /// Left of the dot.
        base: Box<Expr>,
        /// Right of the dot.
        name: String,
        /// Where the name stands.
        name_span: Span,
    },
    /// `a[...]`
    Index {
        /// What is indexed.
        base: Box<Expr>,
        /// Which elements.
        index: Index,
    },
}

/// One step of a comparison chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The operator.
    pub op: CompareOp,
    /// Where the operator stands.
    pub op_span: Span,
    /// The operand right of it.
    pub right: Expr,
}

/// A keyword argument.
#[derive(Debug, Clone, PartialEq)]
pub struct KeywordArg {
    /// Left of the `=`.
    pub name: String,
    /// Where the name stands.
    pub name_span: Span,
    /// Right of the `=`.
    pub value: Expr,
}

/// What stands in the square brackets. `a[(i, j)]` is the same as `a[i, j]`, as in Python.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// One item per comma; none for `a[()]`.
    pub items: Vec<IndexItem>,
    /// True if a tuple was written: `a[i,]`, `a[i, j]`, `a[()]`. Only a list cares (it refuses tuples).
    pub tuple: bool,
    /// Where it stands, brackets included.
    pub span: Span,
}

/// One part of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexItem {
    /// What it selects.
    pub kind: IndexItemKind,
    /// Where it stands.
    pub span: Span,
}

/// What one part of an index selects.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexItemKind {
    /// An integer, a boolean or integer array or list, or a name whose value may also be `None`.
    Expr(Expr),
    /// `start:stop:step`, each of which may be missing.
    Slice {
        /// First index.
        start: Option<Box<Expr>>,
        /// One past the last.
        stop: Option<Box<Expr>>,
        /// Distance from one to the next.
        step: Option<Box<Expr>>,
    },
    /// `None` or `np.newaxis`: an axis of length 1.
    NewAxis,
    /// `...`: as many full slices as the array has axes left.
    Ellipsis,
}

impl Expr {
    pub(crate) fn new(kind: ExprKind, span: Span) -> Expr {
        let mut below = 0;
        kind.for_each_child(&mut |child| below = below.max(child.height));
        Expr { kind, span, parenthesized: false, height: below + 1 }
    }

    /// The same expression with parentheses around it.
    pub(crate) fn in_parentheses(mut self, span: Span) -> Expr {
        self.span = span;
        self.parenthesized = true;
        self
    }

    /// True if it was written in parentheses: tells `a > (0 & b) < c` from the slip `a > 0 & b < c`.
    pub fn is_parenthesized(&self) -> bool {
        self.parenthesized
    }

    /// Number of nodes on the longest way down; the parser keeps it under [`MAX_HEIGHT`](crate::MAX_HEIGHT),
    /// so that functions over the tree may recurse.
    pub fn height(&self) -> usize {
        self.height as usize
    }

    /// The dotted name that this expression spells, if it is only names and dots: `linalg.norm` for
    /// `np.linalg.norm` and for `linalg.norm`.
    pub fn dotted_name(&self) -> Option<String> {
        match &self.kind {
            ExprKind::Name(name) => Some(name.clone()),
            ExprKind::Global { path, .. } => Some(path.clone()),
            ExprKind::Attribute { base, name, .. } => base.dotted_name().map(|base| format!("{base}.{name}")),
            _ => None,
        }
    }

    /// What it is in a few words, for messages: `a call`, `a number`.
    pub fn describe(&self) -> &'static str {
        match &self.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Imaginary(_) => "a number",
            ExprKind::Str(_) => "a string",
            ExprKind::Bool(true) => "`True`",
            ExprKind::Bool(false) => "`False`",
            ExprKind::None => "`None`",
            ExprKind::Ellipsis => "`...`",
            ExprKind::Name(_) => "a name",
            ExprKind::Global { .. } => "a name of the library",
            ExprKind::Tuple(_) => "a tuple",
            ExprKind::List(_) => "a list",
            ExprKind::Unary { .. } | ExprKind::Binary { .. } | ExprKind::Logical { .. } => "an operation",
            ExprKind::Compare { .. } => "a comparison",
            ExprKind::Conditional { .. } => "a conditional expression",
            ExprKind::Call { .. } => "a call",
            ExprKind::Attribute { .. } => "an attribute",
            ExprKind::Index { .. } => "an indexed value",
        }
    }
}

impl ExprKind {
    /// Calls `visit` on each expression directly below, in the order in which Python evaluates them.
    pub fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Imaginary(_) | ExprKind::Str(_) => {}
            ExprKind::Bool(_) | ExprKind::None | ExprKind::Ellipsis => {}
            ExprKind::Name(_) | ExprKind::Global { .. } => {}
            ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Logical { values: items, .. } => {
                items.iter().for_each(visit);
            }
            ExprKind::Unary { operand, .. } => visit(operand),
            ExprKind::Binary { left, right, .. } => {
                visit(left);
                visit(right);
            }
            ExprKind::Compare { first, rest } => {
                visit(first);
                rest.iter().for_each(|step| visit(&step.right));
            }
            ExprKind::Conditional { test, then, otherwise } => {
                visit(test);
                visit(then);
                visit(otherwise);
            }
            ExprKind::Call { callee, args, keywords } => {
                visit(callee);
                args.iter().for_each(&mut *visit);
                keywords.iter().for_each(|keyword| visit(&keyword.value));
            }
            ExprKind::Attribute { base, .. } => visit(base),
            ExprKind::Index { base, index } => {
                visit(base);
                index.for_each_child(visit);
            }
        }
    }
}

impl Index {
    /// Calls `visit` on each expression directly below, from left to right.
    pub fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        for item in &self.items {
            match &item.kind {
                IndexItemKind::Expr(expr) => visit(expr),
                IndexItemKind::Slice { start, stop, step } => {
                    [start, stop, step].into_iter().flatten().for_each(|part| visit(part));
                }
                IndexItemKind::NewAxis | IndexItemKind::Ellipsis => {}
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::sexpr::target(self, f)
    }
}

/// Prints the s-expression that the tests compare with: `(+ a (* 2 b))`.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::sexpr::expr(self, f)
    }
}

/// Prints an s-expression: `(= x (+ a 1))`.
impl fmt::Display for Stmt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::sexpr::stmt(self, f)
    }
}

/// Prints one s-expression per line.
impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, stmt) in self.statements.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            stmt.fmt(f)?;
        }
        Ok(())
    }
}
