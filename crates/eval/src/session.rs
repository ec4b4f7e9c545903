//! Running scripts: variables, assignments, and the one-call form [`eval`].

use std::collections::HashMap;
use std::fmt;

use cuprum_core::ops::value::Value;
use cuprum_core::{Item, NdArray};

use crate::ast::{Script, Stmt, StmtKind, Target, TargetKind};
use crate::error::{EvalError, EvalErrorKind};
use crate::evaluate::{Evaluator, Printer, binary};
use crate::fault::{Checked, Fault};
use crate::ops::BinaryOp;
use crate::span::Span;
use crate::statement::parse;

/// Works out an expression, or a script that ends in one, over named arrays.
///
/// Elementwise operations of the expression are fused; the result may still be deferred, as any array may.
///
/// # Errors
///
/// Text that is not in the language, unknown names, and every error of the array library, each with its place in the text.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// use cuprum_core::NdArray;
/// # fn main() -> cuprum_core::Result<()> {
/// let a = NdArray::from_vec([3.0f64, 4.0, 6.0, 8.0], [2, 2])?;
/// let norms = cuprum_eval::eval("sqrt(sum(a**2, axis=-1))", [("a", &a)])?;
/// assert_eq!(norms.to_vec::<f64>()?, [5.0, 10.0]);
///
/// let error = cuprum_eval::eval("sqrt(smu(a))", [("a", &a)]).unwrap_err();
/// assert_eq!(error.to_string(), "line 1, column 6: no variable or function `smu` (did you mean `sum`?)");
/// // `?` makes it cuprum's own error, where a function returns that.
/// let unfit = || -> cuprum_core::Result<NdArray> { Ok(cuprum_eval::eval("a + ones(3)", [("a", &a)])?) };
/// assert!(matches!(unfit(), Err(cuprum_core::Error::Value { op: "add", .. })));
/// # Ok(())
/// # }
/// ```
pub fn eval<'a>(source: &str, bindings: impl IntoIterator<Item = (&'a str, &'a NdArray)>) -> Result<NdArray, EvalError> {
    let mut session = Session::new();
    for (name, array) in bindings {
        session.set(name, array);
    }
    let script = parse(source)?;
    let span = script.statements.last().map_or(Span::point(source.len()), |s| s.span);
    match session.run_script(&script)? {
        Some(value) => value.array("eval").map_err(|e| EvalError::array(source, span, e)),
        None => Err(EvalError::new(EvalErrorKind::Value, source, span, "this gives no value")
            .with_help("end with the expression whose value is wanted")),
    }
}

/// Variables, and scripts that read and assign them.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut session = cuprum_eval::Session::new();
/// session.set("n", 3);
/// let last = session.run("import numpy as np; x = np.arange(n) / 2; y = x[::-1]; x @ y")?;
/// assert_eq!(last.unwrap().array("doc")?.item()?, 0.25.into());
/// assert_eq!(session.assigned(), ["x", "y"]);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Session {
    variables: HashMap<String, Value>,
    assigned: Vec<String>,
    print: Option<Printer>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.variables.keys().collect();
        names.sort();
        f.debug_struct("Session").field("variables", &names).finish_non_exhaustive()
    }
}

impl Session {
    /// A session without variables.
    pub fn new() -> Session {
        Session::default()
    }

    /// Gives a variable: an array, or anything else that a name can hold.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.variables.insert(name.into(), value.into());
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    /// The names that scripts have assigned, each once, in order of their first assignment.
    pub fn assigned(&self) -> &[String] {
        &self.assigned
    }

    /// Where `print(...)` goes, a line at a time. Without it, `print` is an error.
    pub fn on_print(&mut self, print: impl FnMut(&str) + Send + 'static) {
        self.print = Some(Box::new(print));
    }

    /// Runs a script. Returns the value of its last statement, if that is an expression.
    ///
    /// # Errors
    ///
    /// As [`eval`]. Variables assigned before the statement at fault keep their new values.
    pub fn run(&mut self, source: &str) -> Result<Option<Value>, EvalError> {
        self.run_script(&parse(source)?)
    }

    /// Runs a parsed script; see [`Session::run`].
    pub fn run_script(&mut self, script: &Script) -> Result<Option<Value>, EvalError> {
        let mut last = None;
        for stmt in &script.statements {
            last = self.statement(&script.source, stmt)?;
        }
        Ok(last)
    }

    fn evaluator<'a>(&'a mut self, source: &'a str) -> Evaluator<'a> {
        Evaluator { source, variables: &self.variables, print: self.print.as_mut() }
    }

    fn statement(&mut self, source: &str, stmt: &Stmt) -> Result<Option<Value>, EvalError> {
        match &stmt.kind {
            StmtKind::Expr(expr) => return self.evaluator(source).value(expr).map(Some),
            StmtKind::Assign { targets, value } => {
                let value = self.evaluator(source).value(value)?;
                for target in targets {
                    self.assign(source, target, value.clone())?;
                }
            }
            StmtKind::AugAssign { target, op, op_span, value } => {
                let TargetKind::Name(name) = &target.kind else { return Err(immutable().at(source, target.span)) };
                let Some(old) = self.variables.get(name).cloned() else {
                    let names = self.variables.keys().map(String::as_str);
                    return Err(crate::library::unknown(name, names).at(source, target.span));
                };
                let right = self.evaluator(source).value(value)?;
                let new = updated(*op, old, right).map_err(|fault| fault.at(source, *op_span))?;
                self.assign(source, target, new)?;
            }
        }
        Ok(None)
    }

    fn assign(&mut self, source: &str, target: &Target, value: Value) -> Result<(), EvalError> {
        match &target.kind {
            TargetKind::Name(name) => {
                if !self.assigned.contains(name) {
                    self.assigned.push(name.clone());
                }
                self.variables.insert(name.clone(), value);
                Ok(())
            }
            TargetKind::Index { .. } => Err(immutable().at(source, target.span)),
            TargetKind::Tuple(targets) => {
                let parts = unpacked(value, targets.len()).map_err(|fault| fault.at(source, target.span))?;
                targets.iter().zip(parts).try_for_each(|(target, part)| self.assign(source, target, part))
            }
        }
    }
}

fn immutable() -> Fault {
    Fault::typed("arrays are immutable values here: elements cannot be assigned")
        .help("make a new array: `x = where(condition, value, x)`, or `concat` its parts")
}

/// The parts of a value along its first axis, of which there must be `count`.
fn unpacked(value: Value, count: usize) -> Checked<Vec<Value>> {
    let parts = match value {
        Value::Tuple(items) | Value::List(items) if items.len() == count => items.to_vec(),
        Value::Tuple(items) | Value::List(items) => {
            return Err(Fault::value(format!("cannot unpack {} values into {count} names", items.len())));
        }
        Value::Array(a) if a.ndim() > 0 => {
            // The count is checked before the parts are made: there may be a great many.
            if a.shape()[0] != count {
                return Err(Fault::value(format!("cannot unpack an axis of {} into {count} names", a.shape()[0])));
            }
            (0..count as isize).map(|i| a.index(&[Item::At(i)]).map(Value::Array)).collect::<Result<_, _>>()?
        }
        other => return Err(Fault::typed(format!("'{}' cannot be unpacked", other.type_name()))),
    };
    Ok(parts)
}

/// `old op= right`: an array keeps its dtype and shape, as NumPy's in-place operators do; what is 0-d counts as a number.
fn updated(op: BinaryOp, old: Value, right: Value) -> Checked<Value> {
    let array = match &old {
        Value::Array(a) if a.ndim() > 0 => a.clone(),
        _ => return binary(op, old, right),
    };
    let result = match binary(op, old, right)? {
        Value::Array(result) => result,
        other => return Ok(other),
    };
    let rewrite = format!("write `x = x {} ...` to give the name a new array", op.symbol());
    if result.shape() != array.shape() {
        let shapes = [array.shape(), result.shape()];
        let message = format!("{}= would change the shape", op.symbol());
        return Err(Fault::from(cuprum_core::Error::shape("update", message, &shapes)).help(rewrite));
    }
    if !result.dtype().can_cast_same_kind(array.dtype()) {
        let message = format!("{}= cannot store {} in an array of {}", op.symbol(), result.dtype(), array.dtype());
        return Err(Fault::typed(message).help(rewrite));
    }
    Ok(result.astype(array.dtype())?.into())
}
