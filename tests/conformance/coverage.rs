//! Checks that every operation of core's table has a case for each dtype that it takes.
//!
//! A case covers an operation whose arguments are inputs of one dtype, views of them, or literals: `sum(m_f32.T)` covers
//! `sum`, but `sum(a_i8 + 1)` covers only `add`.

use std::collections::{HashMap, HashSet};

use cuprum::core::op::ArgumentType;
use cuprum::core::{Family, MULTI_RESULT_OPS};
use cuprum::expressions::ast::{Expr, ExprKind, StmtKind};
use cuprum::expressions::parse;
use cuprum::function::Function;
use cuprum::{DType, Op};

use crate::checks::Check;
use crate::families;

pub fn check() -> Check {
    Check::plain("coverage: every operation has a case for every dtype that it takes", |_| {
        let lines = missing(&Covered::by_cases()?);
        if lines.is_empty() { Ok(()) } else { Err(format!("no case for\n        {}", lines.join("\n        "))) }
    })
}

/// Returns the missing cases, one line for each operation.
fn missing(covered: &Covered) -> Vec<String> {
    let none = HashSet::new();
    let mut lines = Vec::new();
    for op in Op::all() {
        let seen = covered.0.get(op.name()).unwrap_or(&none);
        let lacking: Vec<&str> = DType::ALL.into_iter().filter(|d| takes(op, *d) && !seen.contains(d)).map(|d| d.name()).collect();
        if !lacking.is_empty() {
            lines.push(format!("{}: {}", op.name(), lacking.join(", ")));
        }
    }
    // NumPy draws other random numbers, so distributions have no goldens. The checks of random numbers and the tests of the CPU backend
    // compare them with a host loop and with quantiles.
    let needs_case = |f: &&Function| f.rust.starts_with("cuprum_") && !f.path().starts_with("random.");
    let untested = Function::all().filter(|f| needs_case(f) && !covered.1.contains(f.rust));
    lines.extend(untested.map(|f| format!("{}: any dtype", f.path())));
    lines
}

fn takes(op: Op, dtype: DType) -> bool {
    let args = vec![ArgumentType::Array(dtype); op.arity()];
    match (op.0.rule, op.family()) {
        (Some(rule), _) => rule.resolve_dtypes(op.name(), &args).is_ok(),
        (None, Family::Random) if op.name() == "integers" => dtype.is_int(),
        // The operation of distributions by rejection, without goldens as stated in `missing`.
        (None, Family::Random) if op.name() == "samples" => false,
        (None, Family::Random) => dtype.is_inexact() && !dtype.is_complex(),
        (None, Family::Histogram) if op.name() == "bincount" => !dtype.is_inexact(),
        (None, Family::Histogram) => !dtype.is_complex(),
        (None, Family::Fft) if op.name().starts_with("rfft") => !dtype.is_complex(),
        (None, Family::Search) if op.name() == "digitize" => !dtype.is_complex(),
        // Sparse arrays are no inputs of the cases. Tests of the crate `cuprum-sparse` cover the dtypes.
        (None, Family::Sparse) => false,
        (None, Family::Linalg) => !matches!(dtype, DType::F16 | DType::BF16),
        (None, _) => true,
    }
}

/// The covered dtypes of each operation, the functions (by Rust path) with any case, and whether the current case has sparse arrays.
#[derive(Default)]
struct Covered(HashMap<&'static str, HashSet<DType>>, HashSet<&'static str>, bool);

/// An argument of an operation.
#[derive(Clone, Copy, PartialEq)]
enum Arg {
    /// A non-empty input of the cases, or a view of one.
    Input(DType),
    /// A number, a string or an array of indices, which does not determine the dtype.
    Neutral,
    Other,
}

impl Covered {
    fn by_cases() -> Result<Covered, String> {
        let mut covered = Covered::default();
        for expression in families::answered() {
            covered.2 = expression.contains("sparse.");
            for statement in &parse(expression).map_err(|e| e.to_string())?.statements {
                match &statement.kind {
                    StmtKind::Expr(value) | StmtKind::Assign { value, .. } | StmtKind::AugAssign { value, .. } => covered.walk(value),
                };
            }
        }
        Ok(covered)
    }

    /// Records every operation of an expression, and returns the kind of argument that its value is.
    fn walk(&mut self, expr: &Expr) -> Arg {
        match &expr.kind {
            ExprKind::Name(name) => input(name),
            ExprKind::Index { base, .. } => self.walk(base),
            ExprKind::Attribute { base, name, .. } if name == "T" => self.walk(base),
            ExprKind::Attribute { base, name, .. } => self.operation(name, &[base], None),
            ExprKind::Unary { operand, .. } if matches!(operand.kind, ExprKind::Int(_) | ExprKind::Float(_)) => Arg::Neutral,
            ExprKind::Unary { op, operand } => self.operation(op.function(), &[operand], None),
            ExprKind::Binary { op, left, right, .. } => self.operation(op.function(), &[left, right], None),
            ExprKind::Compare { first, rest } => {
                for step in rest {
                    self.operation(step.op.function(), &[first, &step.right], None);
                }
                Arg::Other
            }
            ExprKind::Call { callee, args, keywords } => {
                let object = if let ExprKind::Attribute { base, .. } = &callee.kind { Some(&**base) } else { None };
                let (dtype, others): (Vec<_>, Vec<_>) = keywords.iter().partition(|k| k.name == "dtype");
                let args: Vec<&Expr> = object.into_iter().chain(args).chain(others.into_iter().map(|k| &k.value)).collect();
                let path = callee.dotted_name().map(|path| match path.rsplit_once('.') {
                    Some((ufunc, method)) if Function::find(ufunc).is_some() => format!("ufunc.{method}"),
                    _ => path,
                });
                let path = path.filter(|path| Function::find(path).is_some());
                match (&path, &callee.kind) {
                    (Some(path), _) => self.operation(path, &args, dtype.first().map(|k| &k.value)),
                    (None, ExprKind::Name(name) | ExprKind::Attribute { name, .. }) => {
                        // Some methods differ from the function of the same name, such as `sort`, which updates the array.
                        let method = object.and_then(|_| Function::find(&format!("ndarray.{name}")));
                        self.1.extend(method.map(|f| f.rust));
                        self.operation(name, &args, dtype.first().map(|k| &k.value))
                    }
                    _ => Arg::Other,
                }
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => self.together(&items.iter().collect::<Vec<_>>()),
            _ => Arg::Neutral,
        }
    }

    /// Records an operation over these arguments. `dtype` is that of creation functions.
    fn operation(&mut self, name: &str, args: &[&Expr], dtype: Option<&Expr>) -> Arg {
        // Conditions, indices and sorted arrays can have other dtypes.
        let args = match (name, args) {
            ("where" | "compress" | "searchsorted", [_, values @ ..]) => values,
            (
                "take" | "segment_sum" | "segment_prod" | "segment_min" | "segment_max" | "segment_sort" | "segment_argsort" | "digitize",
                [values, ..],
            ) => &[*values],
            _ => args,
        };
        let arg = self.together(args);
        let decided = match (arg, dtype.map(|d| &d.kind)) {
            (Arg::Input(dtype), _) => Some(dtype),
            (Arg::Neutral, Some(ExprKind::Str(name))) => DType::parse(name).ok(),
            _ => None,
        };
        // A method that is not a function too is declared as `ndarray.name`.
        let function = Function::find(name).or_else(|| Function::find(&format!("ndarray.{name}")));
        self.1.extend(function.map(|f| f.rust));
        if self.2 {
            self.1.extend(Function::find(&format!("sparray.{name}")).map(|f| f.rust));
        }
        match (function.map(|f| f.name), decided) {
            (Some(name), Some(dtype)) => {
                // A mode can select an operation of its own: `qr(a, 'raw')` is `qr_raw`.
                let mode = |arg: &&Expr| if let ExprKind::Str(mode) = &arg.kind { Op::by_name(&format!("{name}_{mode}")) } else { None };
                let operations = MULTI_RESULT_OPS.iter().filter(|function| function.name == name).flat_map(|function| function.results);
                let ops: Vec<Op> =
                    Op::by_name(name).into_iter().chain(operations.map(|(op, _)| *op)).chain(args.iter().filter_map(mode)).collect();
                for op in &ops {
                    self.0.entry(op.name()).or_default().insert(dtype);
                }
                if ops.is_empty() { arg } else { Arg::Other } // a function without an operation is a view
            }
            _ => Arg::Other,
        }
    }

    /// Combines the arguments of an operation.
    fn together(&mut self, args: &[&Expr]) -> Arg {
        let args: Vec<Arg> = args.iter().map(|a| self.walk(a)).collect();
        let mut deciding = args.into_iter().filter(|a| *a != Arg::Neutral);
        match deciding.next() {
            None => Arg::Neutral,
            Some(first) if deciding.all(|a| a == first) => first,
            Some(_) => Arg::Other,
        }
    }
}

/// Classifies an input by its name: `a_f32` determines the dtype, `e_f32` is empty and reaches no kernel, `index` determines none.
fn input(name: &str) -> Arg {
    match name.split_once('_') {
        Some(("e", _)) => Arg::Other,
        Some((_, short)) => DType::ALL.into_iter().find(|d| format!("{d:?}").to_lowercase() == short).map_or(Arg::Other, Arg::Input),
        None => Arg::Neutral,
    }
}
