//! Script execution: variables, assignments, and the function [`eval`].

use std::collections::HashMap;
use std::fmt;

use cuprum_core::ops::value::Value;
use cuprum_core::{Item, NdArray};

use crate::ast::{Script, Stmt, StmtKind, Target, TargetKind};
use crate::error::{EvalError, EvalErrorKind};
use crate::evaluate::{Evaluator, Printer};
use crate::ops::BinaryOp;
use crate::span::Span;
use crate::statement::parse;
use crate::unlocated_error::{Unlocated, UnlocatedError};
use crate::value_ops::binary;

/// Evaluates an expression, or a script that ends in one, over named arrays.
///
/// Elementwise operations of the expression are fused. The result may be deferred.
///
/// # Errors
///
/// Returns an error with its source position for a syntax error, an unknown name, or an error of the array library.
///
/// # Examples
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
/// // `?` converts the error to `cuprum::Error`.
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
        None => Err(EvalError::new(EvalErrorKind::Value, source, span, "the script has no value")
            .with_help("end with the expression whose value is wanted")),
    }
}

/// An environment of variables in which scripts run.
///
/// # Examples
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut session = cuprum_eval::Session::new();
/// session.set("n", 3);
/// let last = session.run("import numpy as np; x = np.arange(n) / 2; y = x[::-1]; x @ y")?;
/// assert_eq!(last.unwrap().array("doc")?.item()?, 0.25);
/// assert_eq!(session.assigned(), ["x", "y"]);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Session {
    variables: HashMap<String, Value>,
    assigned: Vec<String>,
    print: Option<Printer>,
    max_size: Option<usize>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.variables.keys().collect();
        names.sort();
        f.debug_struct("Session").field("variables", &names).finish_non_exhaustive()
    }
}

impl Session {
    /// Creates a session without variables.
    pub fn new() -> Session {
        Session::default()
    }

    /// Sets the variable `name` to an array or any other value.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.variables.insert(name.into(), value.into());
    }

    /// Returns the value of the variable `name`, or `None` if there is none.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    /// Returns the names that scripts have assigned, each once, in order of first assignment.
    pub fn assigned(&self) -> &[String] {
        &self.assigned
    }

    /// Sets the function that receives each line of `print(...)`. Without one, `print` is an error.
    pub fn on_print(&mut self, print: impl FnMut(&str) + Send + 'static) {
        self.print = Some(Box::new(print));
    }

    /// Limits the number of elements of every array in an expression, for scripts of untrusted origin.
    ///
    /// Arrays that take no memory count too: a sum over `broadcast_to(1, (10**12,))` would run for hours within any memory limit.
    /// The memory limit is that of the device, `Device::set_memory_limit`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// let mut session = cuprum_eval::Session::new();
    /// session.limit_size(1 << 20);
    /// let error = session.run("broadcast_to(1, (10**12,)).sum()").unwrap_err();
    /// assert!(error.to_string().contains("more than 1048576 elements, the limit of the session"));
    /// ```
    pub fn limit_size(&mut self, elements: usize) {
        self.max_size = Some(elements);
    }

    /// Runs a script. Returns the value of its last statement, if that is an expression.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`eval`]. Variables assigned before the failing statement keep their new values.
    pub fn run(&mut self, source: &str) -> Result<Option<Value>, EvalError> {
        self.run_script(&parse(source)?)
    }

    /// Runs a parsed script. Returns the value of its last statement, if that is an expression.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Session::run`].
    pub fn run_script(&mut self, script: &Script) -> Result<Option<Value>, EvalError> {
        let mut last = None;
        for stmt in &script.statements {
            last = self.statement(&script.source, stmt)?;
        }
        Ok(last)
    }

    fn evaluator<'a>(&'a mut self, source: &'a str) -> Evaluator<'a> {
        Evaluator { source, variables: &mut self.variables, print: self.print.as_mut(), max_size: self.max_size.unwrap_or(usize::MAX) }
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
                let TargetKind::Name(name) = &target.kind else { return Err(immutable_value_error().at(source, target.span)) };
                let Some(old) = self.variables.get(name).cloned() else {
                    let names = self.variables.keys().map(String::as_str);
                    return Err(crate::library::unknown(name, names).at(source, target.span));
                };
                let right = self.evaluator(source).value(value)?;
                let new = augmented(*op, old, right).map_err(|error| error.at(source, *op_span))?;
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
            TargetKind::Index { .. } => Err(immutable_value_error().at(source, target.span)),
            TargetKind::Tuple(targets) => {
                let parts = unpack(value, targets.len()).map_err(|error| error.at(source, target.span))?;
                targets.iter().zip(parts).try_for_each(|(target, part)| self.assign(source, target, part))
            }
        }
    }
}

fn immutable_value_error() -> UnlocatedError {
    UnlocatedError::type_error("arrays are immutable values here: elements cannot be assigned")
        .help("make a new array: `x = where(condition, value, x)`, or `concat` its parts")
}

/// Splits a value along its first axis into `count` parts.
fn unpack(value: Value, count: usize) -> Unlocated<Vec<Value>> {
    let parts = match value {
        Value::Tuple(items) | Value::List(items) if items.len() == count => items.to_vec(),
        Value::Tuple(items) | Value::List(items) => {
            return Err(UnlocatedError::value_error(format!("cannot unpack {} values into {count} names", items.len())));
        }
        Value::Array(a) if a.ndim() > 0 => {
            // The length is checked first, because unpacking a long axis would create as many views.
            if a.shape()[0] != count {
                return Err(UnlocatedError::value_error(format!("cannot unpack an axis of {} into {count} names", a.shape()[0])));
            }
            (0..count as isize).map(|i| a.index(&[Item::At(i)]).map(Value::Array)).collect::<Result<_, _>>()?
        }
        other => return Err(UnlocatedError::type_error(format!("'{}' cannot be unpacked", other.type_name()))),
    };
    Ok(parts)
}

/// Computes `old op= right`. An array keeps its dtype and shape, as with NumPy's in-place operators; a 0-d array may change both.
fn augmented(op: BinaryOp, old: Value, right: Value) -> Unlocated<Value> {
    let array = match &old {
        Value::Array(a) if a.ndim() > 0 => a.clone(),
        _ => return binary(op, old, right),
    };
    let result = match binary(op, old, right)? {
        Value::Array(result) => result,
        other => return Ok(other),
    };
    let rewrite = format!("write `x = x {} ...` to bind the name to a new array", op.symbol());
    if result.shape() != array.shape() {
        let shapes = [array.shape(), result.shape()];
        let message = format!("{}= would change the shape", op.symbol());
        return Err(UnlocatedError::from(cuprum_core::Error::shape("update", message, &shapes)).help(rewrite));
    }
    if !result.dtype().can_cast_same_kind(array.dtype()) {
        let message = format!("{}= cannot store {} in an array of {}", op.symbol(), result.dtype(), array.dtype());
        return Err(UnlocatedError::type_error(message).help(rewrite));
    }
    Ok(result.astype(array.dtype())?.into())
}
