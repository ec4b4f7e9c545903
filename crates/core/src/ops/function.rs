//! Functions that callers such as `eval` find by their NumPy name at run time. The table in `docs/numpy.md` lists these functions.
//!
//! A function is declared once, at its Rust definition, by `#[numpy("name(parameters)")]`. Other crates may declare functions too.
//!
//! The attribute submits a [`Function`] with NumPy's name and signature, the summary of the documentation, and a call. The call reads each
//! Rust parameter from Python-like arguments ([`Args`]).

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::arguments::Axes;
use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::{Operand, elementwise};
use crate::op::{ArgumentType, DTypeSignature, MAX_ARITY, Op, TypeRule};
pub use crate::ops::creation_options::{MemoryOrder, create_with_device_and_order, requested_order};
pub use crate::ops::parameter_lists::Parameters;
use crate::ops::python_value::{Args, Value};
use crate::scalar::Scalar;

/// A function that can be found and called by its NumPy name. The attribute `#[numpy(..)]` submits it.
pub struct Function {
    /// Namespace under `numpy`, such as `linalg`; empty for `numpy` itself.
    pub namespace: &'static str,
    /// NumPy's name of the function, without the namespace.
    pub name: &'static str,
    /// Other paths of the function, including their namespaces, such as `absolute` or `linalg.matmul`.
    pub aliases: &'static [&'static str],
    /// Parameters in Python's notation, e.g. `a, axis=None, *, keepdims=False`.
    pub parameters: &'static Parameters,
    /// First paragraph of the Rust function's documentation, shown in lists of functions and help texts.
    pub doc: &'static str,
    /// Path of the Rust function, shown in lists of functions.
    pub rust: &'static str,
    /// Whether `ndarray` has a method of this name, which takes the array as the first parameter.
    pub is_method: bool,
    /// Description of how the function differs from NumPy's, apart from missing parameters; empty if it does not.
    pub differs: &'static str,
    /// Whether NumPy's function changes its first argument in place and returns nothing. [`Function::call`] then returns the new array,
    /// which the caller binds to the name of the argument.
    pub updates_argument: bool,
    /// Calls the function with bound arguments.
    pub call: fn(&Args) -> Result<Value>,
}

inventory::collect!(Function);

impl Function {
    /// Returns all registered functions, including those of other linked crates.
    pub fn all() -> impl Iterator<Item = &'static Function> {
        inventory::iter::<Function>()
    }

    /// Returns the function with this path or alias, such as `sum` or `linalg.norm`.
    ///
    /// Returns `None` for unknown paths. If two crates declare the same path, a function of cuprum is preferred, then the first Rust path
    /// in alphabetical order.
    pub fn find(path: &str) -> Option<&'static Function> {
        FUNCTIONS_BY_PATH.get(path).copied()
    }

    /// Returns the names that [`Function::find`] accepts: paths and aliases, in no particular order.
    pub fn paths() -> impl Iterator<Item = &'static str> {
        FUNCTIONS_BY_PATH.keys().map(String::as_str)
    }

    /// Returns the path, such as `linalg.norm`.
    pub fn path(&self) -> String {
        if self.namespace.is_empty() { self.name.to_owned() } else { format!("{}.{}", self.namespace, self.name) }
    }

    /// Calls the function with Python-like arguments.
    ///
    /// If the argument `out` is given, the result is converted to the dtype and shape of that array. The array itself does not change, so
    /// the caller binds the result to the name of the array.
    ///
    /// # Errors
    /// Arguments that do not match the parameters, a result that does not fit `out`, and errors of the function.
    pub fn call(&self, positional: Vec<Value>, keyword: Vec<(String, Value)>) -> Result<Value> {
        let mut args = Args::bind(self.name, self.parameters, positional, keyword)?;
        let result = if self.is_ufunc() { self.call_ufunc(&mut args)? } else { (self.call)(&args)? };
        match (args.get("out"), &result) {
            (None | Some(Value::None), _) => Ok(result),
            (Some(Value::Tuple(outs)), Value::Tuple(results)) if outs.len() == results.len() => {
                let fitted = results.iter().zip(outs.iter()).map(|(result, out)| self.cast_and_broadcast_to_out(&args, result, out));
                Ok(Value::Tuple(fitted.collect::<Result<_>>()?))
            }
            (Some(_), Value::Tuple(results)) => {
                Err(Error::value(self.name, format!("'out' must be a tuple of {} arrays, one for each result", results.len())))
            }
            (Some(Value::Tuple(outs)), _) if outs.len() == 1 => self.cast_and_broadcast_to_out(&args, &result, &outs[0]),
            (Some(out), _) => self.cast_and_broadcast_to_out(&args, &result, out),
        }
    }

    /// Returns the position of `out` among the positional arguments, if the function accepts `out` as a positional argument.
    pub fn out_argument_position(&self) -> Option<usize> {
        let names = self.parameters.text.split(',').map(str::trim).filter(|p| *p != "/").take_while(|p| !p.starts_with('*'));
        names.enumerate().find(|(_, p)| p.starts_with("out=")).map(|(at, _)| at)
    }

    /// Returns whether a parameter is a function to call, as in `numpy.apply_along_axis`. [`Function::call`] takes the path of that
    /// function as a string.
    pub fn takes_functions(&self) -> bool {
        self.parameters.text.contains("func")
    }

    /// Returns whether the function takes the keyword arguments of NumPy's ufuncs. All elementwise functions handle these arguments alike.
    fn is_ufunc(&self) -> bool {
        self.parameters.text.ends_with("casting='same_kind', order='K', dtype=None")
    }

    /// Returns the names of an elementwise function's operands, which are its positional-only parameters.
    fn operand_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let parameters = self.parameters.parsed_parameters();
        parameters.list.iter().take(parameters.positional_only).map(|p| p.name)
    }

    /// Calls an elementwise function: converts the operands to `dtype`, and applies `where` and `order` to the result.
    fn call_ufunc(&self, args: &mut Args) -> Result<Value> {
        let dtype = args.dtype("dtype")?;
        let casting = match args.value("casting") {
            Some(Value::Str(rule)) => rule.clone(),
            _ => return Err(Error::value(self.name, "casting must be a string")),
        };
        let can_cast = |from: DType, to: DType| from.can_cast_by_rule(to, self.name, &casting);
        can_cast(DType::F64, DType::F64)?;
        let operand_dtype = dtype.filter(|dtype| !self.always_returns_dtype(*dtype));
        if let Some(dtype) = operand_dtype {
            // The argument `dtype` of `ldexp` applies only to its first operand; the exponents `x2` are integers.
            for name in self.operand_names().filter(|name| self.name != "ldexp" || *name != "x2") {
                let Some(value) = args.get(name).cloned() else { continue };
                let operand = value.operand(self.name)?;
                let dtype = self.operand_dtype_for_result(&operand, dtype);
                let (from, converted) = match operand {
                    Operand::Array(a) => (a.dtype(), a.astype(dtype)?),
                    Operand::Scalar(s) => {
                        // As in NumPy, a bool is not a weak scalar, and neither is a Python number that is the only operand.
                        let is_weak = casting != "equiv" && !matches!(s, Scalar::Bool(_)) && self.operand_names().count() > 1;
                        if is_weak {
                            (s.weak_promote(dtype), NdArray::scalar_as(s.check_fits_dtype(self.name, dtype)?, dtype)?)
                        } else {
                            let from = s.default_dtype();
                            (from, NdArray::scalar_as(s.check_fits_dtype(self.name, from)?, from)?.astype(dtype)?)
                        }
                    }
                };
                if !can_cast(from, dtype)? {
                    let message = format!("cannot convert '{name}' from {from} to {dtype} by the rule '{casting}'");
                    return Err(Error::dtype(self.name, message, &[from, dtype]));
                }
                args.replace_argument(name, Value::Array(converted));
            }
        }
        let forbids_conversion = operand_dtype.is_none() && matches!(casting.as_str(), "no" | "equiv");
        // The dtype rules of special functions are not in a table, so operands are compared with the dtype of the result.
        let is_special = self.namespace == "special";
        if forbids_conversion && !is_special {
            self.reject_operand_conversion(args, &casting, None)?;
        }
        let result = (self.call)(args)?;
        if forbids_conversion && is_special {
            let first = result.items().and_then(|results| results.first()).unwrap_or(&result);
            self.reject_operand_conversion(args, &casting, Some(first.array(self.name)?.dtype()))?;
        }
        // As in NumPy, the argument `where=None` counts as false.
        let none = Value::from(false);
        let mask = if args.is_none("where") { Some(&none) } else { args.get("where") };
        let mask = mask.filter(|mask| !matches!(mask, Value::Scalar(Scalar::Bool(true))));
        let mask = mask.map(|mask| mask.array(self.name)?.astype(DType::Bool)).transpose()?;
        let order = match args.value("order") {
            Some(Value::Str(order)) if ["K", "A", "C", "F"].contains(&order.as_str()) => order.clone(),
            _ => return Err(Error::value(self.name, "order must be one of 'C', 'F', 'A', or 'K'")),
        };
        let finish = |result: Value, out: Option<&Value>| -> Result<Value> {
            let mut result = result.array(self.name)?;
            if dtype.is_some_and(|dtype| dtype != result.dtype()) {
                return Err(Error::dtype(self.name, "no loop has this result dtype", &[result.dtype()]));
            }
            if let Some(mask) = &mask {
                let kept = match out {
                    // The elements of `out` that the mask excludes keep their values. So the result is converted to the dtype of `out`, not
                    // `out` to the dtype of the result.
                    Some(Value::Array(out)) if can_cast(result.dtype(), out.dtype())? => {
                        result = result.astype(out.dtype())?;
                        out.clone()
                    }
                    // Without an `out`, elements that the mask excludes are 0. For an `out` to which the result cannot be converted,
                    // `cast_and_broadcast_to_out` returns the error.
                    _ => NdArray::scalar_as(0, result.dtype())?.to_device(result.device())?,
                };
                let select = Op::by_name("where").ok_or_else(|| Error::value(self.name, "`where` is not an operation"))?;
                result = elementwise(select, &[mask.into(), result.into(), kept.into()])?;
            }
            Ok(Value::Array(match order.as_str() {
                "C" => result.contiguous()?,
                "F" => result.t()?.contiguous()?.t()?,
                _ => result,
            }))
        };
        match (result, args.get("out")) {
            (Value::Tuple(results), Some(Value::Tuple(outs))) if outs.len() == results.len() => results
                .iter()
                .zip(outs.iter())
                .map(|(result, out)| finish(result.clone(), Some(out)))
                .collect::<Result<_>>()
                .map(Value::Tuple),
            (Value::Tuple(results), _) => results.iter().map(|r| finish(r.clone(), None)).collect::<Result<_>>().map(Value::Tuple),
            (result, Some(Value::Tuple(outs))) if outs.len() == 1 => finish(result, outs.first()),
            (result, out) => finish(result, out),
        }
    }

    /// Returns whether the function has results of `dtype` for operands of any dtype. The argument `dtype` then does not convert the
    /// operands.
    fn always_returns_dtype(&self, dtype: DType) -> bool {
        match dtype {
            // Matrix products are compositions. Their result is bool only if their operands are.
            DType::Bool if matches!(self.name, "matmul" | "matvec" | "vecmat") => false,
            DType::Bool => self.returns_bool_for_numbers(),
            DType::U8 => self.name == "bitwise_count",
            _ => false,
        }
    }

    /// Returns whether the result is bool if all operands are numbers. Returns true for compositions of operations, whose type rule is
    /// unknown.
    fn returns_bool_for_numbers(&self) -> bool {
        let Some((op, rule)) = Op::by_name(self.name).and_then(|op| Some((op, op.0.rule?))) else { return true };
        let operands = [ArgumentType::Array(DType::F64); MAX_ARITY];
        rule.resolve_dtypes(self.name, &operands[..op.arity()]).is_ok_and(|signature| signature.result == DType::Bool)
    }

    /// Returns the dtype to which an operand is converted if the result has `dtype`.
    fn operand_dtype_for_result(&self, operand: &Operand, dtype: DType) -> DType {
        let from = match operand {
            Operand::Array(a) => a.dtype(),
            Operand::Scalar(s) => s.default_dtype(),
        };
        match (self.name, from) {
            // `abs` of complex numbers is real, so the operand gets the complex dtype whose parts have `dtype`.
            ("abs", from) if from.is_complex() => match dtype {
                DType::F32 => DType::C64,
                DType::F64 => DType::C128,
                other => other,
            },
            _ => dtype,
        }
    }

    /// Returns an error if an elementwise function converts an operand although the rule `casting` allows no conversion. `common` is the
    /// dtype to which the function converts all operands, or `None` to derive the dtypes from the function's name.
    fn reject_operand_conversion(&self, args: &Args, casting: &str, common: Option<DType>) -> Result<()> {
        let operands = self.operand_names().filter_map(|name| args.get(name));
        let mut types: Vec<ArgumentType> = operands.map(|value| Ok(value.operand(self.name)?.argument_type())).collect::<Result<_>>()?;
        let count = types.len();
        // NumPy's logical functions take operands of any dtype and do not convert them.
        let converts = |op: &Op| op.arity() == count && op.0.rule != Some(TypeRule::Logical);
        let rule = match self.name {
            // All functions of this arm except `signbit` are compositions of operations. NumPy computes all of them in floats.
            "fabs" | "frexp" | "heaviside" | "logaddexp" | "logaddexp2" | "modf" | "nextafter" | "signbit" | "spacing" => {
                Some(TypeRule::Float)
            }
            "ldexp" => {
                types.truncate(1); // the exponents are not converted to the dtype of the result
                Some(TypeRule::Float)
            }
            "bitwise_count" => Some(TypeRule::Shift),
            "divmod" => Some(TypeRule::PromoteReal),
            "matmul" | "matvec" | "vecmat" => Some(TypeRule::Promote),
            "float_power" => {
                types.push(ArgumentType::Array(DType::F64)); // the result is float64 or complex128
                Some(TypeRule::Promote)
            }
            _ => Op::by_name(self.name).filter(converts).and_then(|op| op.0.rule),
        };
        let signature = match common {
            Some(dtype) => Some(Ok(DTypeSignature { args: [dtype; MAX_ARITY], result: dtype })),
            None => rule.map(|rule| rule.resolve_dtypes(self.name, &types)),
        };
        // If the operands have no common dtype, the call of the function returns the error.
        let Some(Ok(signature)) = signature else { return Ok(()) };
        // NumPy compares int64 and uint64 without a conversion.
        if rule == Some(TypeRule::Compare)
            && let [ArgumentType::Array(DType::I64), ArgumentType::Array(DType::U64)]
            | [ArgumentType::Array(DType::U64), ArgumentType::Array(DType::I64)] = types[..]
        {
            return Ok(());
        }
        // As in NumPy, the rule 'no' ignores Python's ints, floats and complex numbers unless they are the only operand. Comparisons of
        // integers accept every Python int.
        let is_comparison_of_ints = rule == Some(TypeRule::Compare) && signature.args[0].is_int();
        let checks_numbers = casting == "equiv" || count == 1;
        let dtype_of = |argument: &ArgumentType| match *argument {
            ArgumentType::Array(dtype) => Some(dtype),
            ArgumentType::Weak(Scalar::Bool(_)) => Some(DType::Bool),
            ArgumentType::Weak(number) => (checks_numbers && !is_comparison_of_ints).then(|| number.default_dtype()),
        };
        for (from, to) in types.iter().zip(signature.args).take(count) {
            if let Some(from) = dtype_of(from)
                && from != to
            {
                let message = format!("cannot convert an operand from {from} to {to} by the rule '{casting}'");
                return Err(Error::dtype(self.name, message, &[from, to]));
            }
        }
        Ok(())
    }

    /// Returns the number of core axes of the result: the last axes, which hold the matrix or vector that a generalized ufunc computes and
    /// do not broadcast.
    fn count_core_axes_of_result(&self, args: &Args) -> Result<usize> {
        match self.name {
            "matmul" => Ok(usize::from(args.array("x1")?.ndim() > 1) + usize::from(args.array("x2")?.ndim() > 1)),
            "matvec" | "vecmat" => Ok(1),
            _ => Ok(0),
        }
    }

    /// Returns `result` converted to the dtype and shape of `out`. The casting rule is the argument `casting`, by default NumPy's
    /// `same_kind`.
    fn cast_and_broadcast_to_out(&self, args: &Args, result: &Value, out: &Value) -> Result<Value> {
        let (mut result, out) = match (result, out) {
            (_, Value::None) => return Ok(result.clone()),
            (result, Value::Array(out)) => (result.array(self.name)?, out),
            (_, other) => return Err(Error::value(self.name, format!("'out' must be an array, not {}", other.type_name()))),
        };
        // As in NumPy, only ufuncs and the compositions of ufuncs listed here broadcast their result to `out`. A function is a ufunc if it
        // has both positional-only parameters (`/`) and the parameter `order`.
        let is_ufunc = self.parameters.text.contains('/') && self.parameters.text.contains("order=");
        let broadcasts = is_ufunc || ["clip", "fix", "isneginf", "isposinf", "outer"].contains(&self.name);
        let core = self.count_core_axes_of_result(args)?.min(result.ndim());
        let core_shape = &result.shape()[result.ndim() - core..];
        if result.shape() != out.shape() && !(broadcasts && out.shape().ends_with(core_shape)) {
            return Err(Error::shape(self.name, "'out' has another shape than the result", &[out.shape(), result.shape()]));
        }
        if result.ndim() > out.ndim() {
            return Err(Error::shape(self.name, "the result cannot be broadcast to 'out'", &[result.shape(), out.shape()]));
        }
        // NumPy's `dot` and `multi_dot` do not convert the result to the dtype of `out`.
        if matches!(self.name, "dot" | "multi_dot") && result.dtype() != out.dtype() {
            let message = "output array is not acceptable: its dtype must be that of the result";
            return Err(Error::dtype(self.name, message, &[out.dtype(), result.dtype()]));
        }
        // The casting rules other than `same_kind` are checked here. The assignment below checks `same_kind`.
        if let Some(Value::Str(casting)) = args.value("casting")
            && casting != "same_kind"
        {
            if !result.dtype().can_cast_by_rule(out.dtype(), self.name, casting)? {
                let message = format!("cannot convert the result from {} to {} by the rule '{casting}'", result.dtype(), out.dtype());
                return Err(Error::dtype(self.name, message, &[result.dtype(), out.dtype()]));
            }
            result = result.astype(out.dtype())?;
        }
        let mut fitted = out.clone();
        fitted.assign_from_with_op_name(self.name, result.into())?;
        Ok(Value::Array(fitted))
    }
}

/// A map from each path and alias to the function.
static FUNCTIONS_BY_PATH: LazyLock<FxHashMap<String, &'static Function>> = LazyLock::new(|| {
    let mut functions: Vec<&'static Function> = Function::all().collect();
    // If several functions have the same path, the first one is found. The order is deterministic: functions of cuprum first, then Rust
    // paths in alphabetical order.
    functions.sort_by_key(|f| (!f.rust.starts_with("cuprum"), f.rust));
    let mut paths = FxHashMap::default();
    for function in functions {
        let aliases = function.aliases.iter().map(|a| (*a).to_owned());
        for path in std::iter::once(function.path()).chain(aliases) {
            paths.entry(path).or_insert(function);
        }
    }
    paths
});

/// A type that can be read from Python-like arguments ([`Args`]), so that functions with `#[numpy(..)]` can have parameters of this type.
pub trait FromArgs: Sized {
    /// Reads the parameter `name`. Types that combine several parameters, such as `AxisOptions`, read all of them.
    ///
    /// # Errors
    /// A missing argument, or one of another type.
    fn from_args(args: &Args, name: &str) -> Result<Self>;
}

impl<T: FromArgs> FromArgs for Option<T> {
    fn from_args(args: &Args, name: &str) -> Result<Option<T>> {
        match args.value(name) {
            None | Some(Value::None) => Ok(None),
            Some(_) => T::from_args(args, name).map(Some),
        }
    }
}

/// An argument that is an array of indices. An empty list converts to int64, not float64.
pub struct Indices(NdArray);

impl std::ops::Deref for Indices {
    type Target = NdArray;
    fn deref(&self) -> &NdArray {
        &self.0
    }
}

impl FromArgs for Indices {
    fn from_args(args: &Args, name: &str) -> Result<Indices> {
        args.indices(name).map(Indices)
    }
}

/// Implements [`FromArgs`] for types that convert from one argument's value.
macro_rules! from_value {
    ($($type:ty: |$value:ident, $op:ident, $name:ident| $read:expr;)*) => {$(
        impl FromArgs for $type {
            fn from_args(args: &Args, name: &str) -> Result<$type> {
                let ($op, $name) = (args.op(), name);
                match args.value(name) {
                    None | Some(Value::None) => Err(Error::value($op, format!("argument '{}' is missing", $name))),
                    Some($value) => $read,
                }
            }
        }
    )*};
}

impl FromArgs for Axes {
    fn from_args(args: &Args, name: &str) -> Result<Axes> {
        match args.value(name) {
            None | Some(Value::None) => Ok(Axes::All),
            Some(Value::Str(text)) => {
                Err(Error::value(args.op(), format!("'{name}' must be an integer or a tuple of integers, not '{text}'")))
            }
            Some(axes) => axes.to_axes(args.op()),
        }
    }
}

from_value! {
    NdArray: |value, op, _name| value.array(op);
    Operand: |value, op, _name| value.operand(op);
    Vec<NdArray>: |value, op, _name| value.to_arrays(op);
    Scalar: |value, op, name| match value {
        Value::Scalar(s) => Ok(*s),
        Value::Array(a) if a.size() == 1 => a.item(),
        other => Err(argument_type_error(op, name, "a number", other)),
    };
    Op: |value, op, name| match value {
        Value::Str(path) => match Function::find(path).and_then(|function| Op::by_name(function.name)).filter(|op| op.0.rule.is_some()) {
            Some(elementwise) => Ok(elementwise),
            None => Err(Error::value(op, format!("'{path}' is not one elementwise operation, so it has no methods such as reduce"))),
        },
        other => Err(argument_type_error(op, name, "the name of an elementwise function", other)),
    };
    bool: |value, op, name| match value {
        Value::Scalar(s) => Ok(s.as_bool()),
        Value::Array(a) if a.ndim() == 0 => Ok(a.item()?.as_bool()),
        other => Err(argument_type_error(op, name, "True or False", other)),
    };
    isize: |value, op, _name| value.to_isize(op);
    i128: |value, op, _name| value.int(op);
    i64: |value, op, _name| value.to_isize(op).map(|n| n as i64);
    i32: |value, op, name| i32::try_from(value.to_isize(op)?).map_err(|_| Error::value(op, format!("'{name}' is too large")));
    usize: |value, op, name| {
        let n = value.to_isize(op)?;
        usize::try_from(n).map_err(|_| Error::value(op, format!("'{name}' must not be negative, is {n}")))
    };
    f64: |value, op, name| match value {
        Value::Scalar(Scalar::Complex(_)) => Err(argument_type_error(op, name, "a real number", value)),
        Value::Scalar(s) => Ok(s.as_f64()),
        Value::Array(a) if a.size() == 1 && !a.dtype().is_complex() => Ok(a.item()?.as_f64()),
        other => Err(argument_type_error(op, name, "a real number", other)),
    };
    DType: |value, op, name| match value {
        Value::DType(d) => Ok(*d),
        Value::Str(s) => DType::parse(s).map_err(|e| e.with_function_name(op)),
        other => Err(argument_type_error(op, name, "a dtype", other)),
    };
    String: |value, op, name| match value {
        Value::Str(s) => Ok(s.clone()),
        other => Err(argument_type_error(op, name, "a string", other)),
    };
    Vec<isize>: |value, op, _name| value.to_isizes(op);
    Vec<usize>: |value, op, name| {
        let extent = |n: isize| usize::try_from(n).map_err(|_| Error::value(op, format!("negative dimension {n} in '{name}'")));
        value.to_isizes(op)?.into_iter().map(extent).collect()
    };
}

/// Returns the error of `op` for an argument `name` of the wrong type. `what` describes the required type, and `value` is the
/// argument.
fn argument_type_error(op: &'static str, name: &str, what: &str, value: &Value) -> Error {
    Error::value(op, format!("'{name}' must be {what}, not {}", value.type_name()))
}

/// A type that can be converted to a [`Value`], so that functions with `#[numpy(..)]` can have results of this type.
pub trait IntoValue {
    /// Converts the result to a value.
    fn into_value(self) -> Value;
}

impl IntoValue for Value {
    fn into_value(self) -> Value {
        self
    }
}

impl IntoValue for String {
    fn into_value(self) -> Value {
        Value::Str(self)
    }
}

impl IntoValue for NdArray {
    fn into_value(self) -> Value {
        Value::Array(self)
    }
}

impl IntoValue for Vec<NdArray> {
    fn into_value(self) -> Value {
        Value::tuple(self.into_iter().map(Value::Array))
    }
}

macro_rules! into_scalar {
    ($($type:ty),*) => {$(
        impl IntoValue for $type {
            fn into_value(self) -> Value {
                Value::Scalar(self.into())
            }
        }
    )*};
}
into_scalar!(bool, i64, usize, f64, Scalar);

impl IntoValue for DType {
    fn into_value(self) -> Value {
        Value::DType(self)
    }
}

impl<A: IntoValue, B: IntoValue> IntoValue for (A, B) {
    fn into_value(self) -> Value {
        Value::tuple([self.0.into_value(), self.1.into_value()])
    }
}

impl<A: IntoValue, B: IntoValue, C: IntoValue> IntoValue for (A, B, C) {
    fn into_value(self) -> Value {
        Value::tuple([self.0.into_value(), self.1.into_value(), self.2.into_value()])
    }
}
