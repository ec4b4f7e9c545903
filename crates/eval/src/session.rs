//! Script execution: variables, assignments, and the function [`eval`].

use std::collections::HashMap;
use std::fmt;

use cuprum_core::NdArray;
use cuprum_core::ops::python_value::Value;

use crate::assigned_names::AssignedNames;
use crate::assignment::{compute_augmented_assignment, unpack_values};
use crate::ast::{Script, Stmt, StmtKind, Target, TargetKind};
use crate::error::{EvalError, EvalErrorKind};
use crate::evaluate::{Evaluator, LinePrinter};
use crate::span::Span;
use crate::statement_parser::parse;
use crate::unlocated_error::UnlocatedError;

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
/// assert!(matches!(unfit(), Err(cuprum_core::Error::Shape { op: "add", .. })));
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
        Some(value) => value.array("eval").map_err(|e| EvalError::from_array_error(source, span, e)),
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
    assigned: AssignedNames,
    print: Option<LinePrinter>,
    max_elements: Option<usize>,
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

    /// Returns the names that scripts have assigned, each once, in order of first assignment. Updates in place, such as `x[0] = 1`,
    /// `x.sort()` and `out=x`, count as assignments.
    pub fn assigned(&self) -> &[String] {
        &self.assigned.names
    }

    /// Returns the last name that the last statement has assigned or updated in place, or `None` if there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut session = cuprum_eval::Session::new();
    /// session.run("x = np.array([2, 1]); y = x; x.sort()")?;
    /// assert_eq!(session.last_assigned(), Some("x"));
    /// session.run("x + y")?;
    /// assert_eq!(session.last_assigned(), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn last_assigned(&self) -> Option<&str> {
        self.assigned.last.as_deref()
    }

    /// Sets the function that receives each line of `print(...)`. Without such a function, `print` is an error.
    pub fn on_print(&mut self, print: impl FnMut(&str) + Send + 'static) {
        self.print = Some(Box::new(print));
    }

    /// Limits the number of elements of every array, tuple and list in an expression, for scripts of untrusted origin.
    ///
    /// The values of nested tuples and lists count too, once for each position where they occur. So do broadcast arrays, which take no
    /// memory: a sum over `broadcast_to(1, (10**12,))` would run for hours within any memory limit. `Device::set_memory_limit` sets the
    /// memory limit.
    ///
    /// # Examples
    ///
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// let mut session = cuprum_eval::Session::new();
    /// session.limit_elements(1 << 20);
    /// let error = session.run("broadcast_to(1, (10**12,)).sum()").unwrap_err();
    /// assert!(error.to_string().contains("more than 1048576 elements, the limit of the session"));
    /// let error = session.run(&format!("x = 1{}", "; x = (x, x)".repeat(23))).unwrap_err();
    /// assert!(error.to_string().contains("a tuple of 2097152 nested values"));
    /// ```
    pub fn limit_elements(&mut self, elements: usize) {
        self.max_elements = Some(elements);
    }

    /// Runs a script. Returns the value of its last statement, or `None` if the last statement is not an expression.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`eval`]. Variables assigned before the failing statement keep their new values.
    pub fn run(&mut self, source: &str) -> Result<Option<Value>, EvalError> {
        self.run_script(&parse(source)?)
    }

    /// Runs a parsed script. Returns the value of its last statement, or `None` if the last statement is not an expression.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Session::run`].
    pub fn run_script(&mut self, script: &Script) -> Result<Option<Value>, EvalError> {
        let mut last = None;
        for stmt in &script.statements {
            last = self.run_statement(&script.source, stmt)?;
        }
        Ok(last)
    }

    fn new_evaluator<'a>(&'a mut self, source: &'a str) -> Evaluator<'a> {
        Evaluator {
            source,
            variables: &mut self.variables,
            assigned: &mut self.assigned,
            print: self.print.as_mut(),
            max_elements: self.max_elements.unwrap_or(usize::MAX),
        }
    }

    fn run_statement(&mut self, source: &str, stmt: &Stmt) -> Result<Option<Value>, EvalError> {
        self.assigned.last = None;
        match &stmt.kind {
            StmtKind::Expr(expr) => return self.new_evaluator(source).evaluate(expr).map(Some),
            StmtKind::Assign { targets, value } => {
                let value = self.new_evaluator(source).evaluate(value)?;
                for target in targets {
                    self.assign_to_target(source, target, value.clone())?;
                }
            }
            StmtKind::AugAssign { target, op, op_span, value } => {
                let name = match &target.kind {
                    TargetKind::Name(name) => name,
                    TargetKind::Index { base, index } => {
                        let name =
                            self.new_evaluator(source).augmented_assign_elements((base, index), target.span, (*op, *op_span), value)?;
                        self.assigned.record(name);
                        return Ok(None);
                    }
                    TargetKind::Tuple(_) => {
                        return Err(UnlocatedError::type_error("a tuple cannot be updated").at(source, target.span));
                    }
                };
                let Some(old) = self.variables.get(name).cloned() else {
                    let names = self.variables.keys().map(String::as_str);
                    return Err(crate::library_names::unknown_name_error(name, names).at(source, target.span));
                };
                let right = self.new_evaluator(source).evaluate(value)?;
                let advice = format!("write `x = x {} ...` to bind the name to a new array", op.symbol());
                let new = compute_augmented_assignment(*op, old, right, &advice).map_err(|error| error.at(source, *op_span))?;
                self.assign_to_target(source, target, new)?;
            }
        }
        Ok(None)
    }

    fn assign_to_target(&mut self, source: &str, target: &Target, value: Value) -> Result<(), EvalError> {
        match &target.kind {
            TargetKind::Name(name) => {
                self.assigned.record(name);
                self.variables.insert(name.clone(), value);
                Ok(())
            }
            TargetKind::Index { base, index } => {
                let mut evaluator = self.new_evaluator(source);
                let elements = evaluator.evaluate_element_target(base, index)?;
                evaluator.assign_elements(&elements, target.span, value)?;
                self.assigned.record(elements.variable_name());
                Ok(())
            }
            TargetKind::Tuple(targets) => {
                let parts = unpack_values(value, targets.len()).map_err(|error| error.at(source, target.span))?;
                targets.iter().zip(parts).try_for_each(|(target, part)| self.assign_to_target(source, target, part))
            }
        }
    }
}
