//! Selection of elements from several arrays by conditions: `select` and `piecewise`.

use cuprum_core::function::FromArgs;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Error, NdArray, Operand, Result, Scalar, numpy, where_, with_device};

use crate::operand_and_slice_helpers::result_dtype;

fn read_operand_list(args: &Args, name: &str) -> Result<Vec<Operand>> {
    let not_a_list = || Error::value(args.op(), format!("'{name}' must be a list"));
    match args.get(name) {
        Some(Value::Array(_)) => Ok(args.arrays(name)?.into_iter().map(Operand::from).collect()),
        Some(value) => value.items().ok_or_else(not_a_list)?.iter().map(|item| item.operand(args.op())).collect(),
        None => Err(not_a_list()),
    }
}

fn select_from_args(args: &Args) -> Result<Value> {
    select(args.arrays("condlist")?, read_operand_list(args, "choicelist")?, Operand::from_args(args, "default")?).map(Value::Array)
}

/// Returns for each element the choice of the first condition that is true, or the default (`numpy.select`).
///
/// Conditions, choices and the default broadcast. Choices are arrays or numbers; a list of both has elements of type [`Operand`]. Numbers
/// are weak. The result is deferred.
///
/// Passes over memory: one.
///
/// # Errors
/// No conditions, different numbers of conditions and choices, conditions that are not bool, shapes that do not broadcast, or arrays on
/// different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// use cuprum::{Operand, select};
/// let a = cuprum::arange(0, 5, 1)?;
/// let chosen = select([a.less(2)?, a.greater(3)?], [-1, 7], &a)?;
/// assert_eq!(chosen.to_vec::<i64>()?, [-1, -1, 2, 3, 7]);
/// let chosen = select([a.less(2)?, a.greater(3)?], [Operand::from(&a), Operand::from(-1)], 9)?;
/// assert_eq!(chosen.to_vec::<i64>()?, [0, 1, 9, 9, -1]);
/// # Ok(())
/// # }
/// ```
#[numpy("select(condlist, choicelist, default=0)", differs = "Python ints as choices of unsigned arrays are accepted", call = select_from_args)]
pub fn select(
    conditions: impl IntoIterator<Item: AsRef<NdArray>>,
    choices: impl IntoIterator<Item: Into<Operand>>,
    default: impl Into<Operand>,
) -> Result<NdArray> {
    let (name, default) = ("select", default.into());
    let conditions: Vec<NdArray> = conditions.into_iter().map(|condition| condition.as_ref().clone()).collect();
    let choices: Vec<Operand> = choices.into_iter().map(Into::into).collect();
    if conditions.len() != choices.len() {
        return Err(Error::value(name, "list of cases must be same length as list of conditions"));
    }
    if conditions.is_empty() {
        return Err(Error::value(name, "select with an empty condition list is not possible"));
    }
    if let Some(n) = conditions.iter().position(|condition| condition.dtype() != DType::Bool) {
        let message = format!("invalid entry {n} in condlist: should be boolean ndarray");
        return Err(Error::dtype(name, message, &[conditions[n].dtype()]));
    }
    // As in NumPy's `select`, a bool is not a weak scalar: it counts as an array of dtype bool.
    let strong = |operand: &Operand| match operand {
        Operand::Scalar(s @ Scalar::Bool(_)) => with_device(conditions[0].device(), || NdArray::scalar(*s)).map(Operand::from),
        other => Ok(other.clone()),
    };
    let choices = choices.iter().map(strong).collect::<Result<Vec<_>>>()?;
    let default = strong(&default)?;
    let dtype = result_dtype(choices.iter().chain([&default]));
    let convert = |operand: &Operand| match operand {
        Operand::Array(a) => a.astype(dtype),
        // As in NumPy, a Python int that the dtype cannot hold wraps around.
        Operand::Scalar(s) => with_device(conditions[0].device(), || NdArray::scalar_as(*s, dtype)),
    };
    let mut chosen = convert(&default)?;
    for (condition, choice) in conditions.iter().zip(&choices).rev() {
        chosen = where_(condition, convert(choice)?, &chosen)?;
    }
    Ok(chosen)
}

fn piecewise_from_args(args: &Args) -> Result<Value> {
    let x = args.array("x")?;
    let is_list = |value: &Value| matches!(value, Value::List(_)) || matches!(value, Value::Array(a) if a.ndim() > 0);
    let conditions = match args.get("condlist") {
        Some(Value::Array(a)) if a.ndim() > 1 || (x.ndim() == 0 && a.ndim() > 0) => args.arrays("condlist")?,
        Some(value) if value.items().is_some_and(|items| items.first().is_some_and(is_list) || x.ndim() == 0) => args.arrays("condlist")?,
        _ => vec![args.array("condlist")?],
    };
    let values = match args.get("funclist").and_then(Value::items) {
        Some(items) => items.iter().map(|item| item.array(args.op())?.item()).collect::<Result<Vec<_>>>()?,
        None => return Err(Error::value("piecewise", "the values must be a list of numbers")),
    };
    piecewise(&x, conditions, values).map(Value::Array)
}

/// Returns an array of the dtype and shape of `x` that contains value `i` where condition `i` is true (`numpy.piecewise`).
///
/// Later conditions take precedence. An extra last value applies where no condition is true; it is 0 by default. The result is deferred.
/// For functions instead of values, use [`select`] or [`where_`](cuprum_core::where_).
///
/// Passes over memory: one.
///
/// # Errors
/// Numbers of conditions and values that do not match, conditions whose shape is not that of `x`, or values that the dtype cannot hold.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, piecewise};
/// # fn main() -> cuprum::Result<()> {
/// let x = array![-2.0, 0.5, 3.0];
/// let clipped = piecewise(&x, [x.less(0)?, x.greater(1)?], [-1.0, 1.0])?;
/// assert_eq!(clipped, array![-1.0, 0.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("piecewise(x, condlist, funclist)", differs = "values instead of functions", call = piecewise_from_args)]
pub fn piecewise(
    x: &NdArray,
    conditions: impl IntoIterator<Item: AsRef<NdArray>>,
    values: impl IntoIterator<Item: Into<Scalar>>,
) -> Result<NdArray> {
    let conditions: Vec<NdArray> = conditions.into_iter().map(|condition| condition.as_ref().clone()).collect();
    let values: Vec<Scalar> = values.into_iter().map(Into::into).collect();
    let (name, n) = ("piecewise", conditions.len());
    if values.len() != n && values.len() != n + 1 {
        return Err(Error::value(name, format!("with {n} condition(s), either {n} or {} functions are expected", n + 1)));
    }
    let constant = |value: Scalar| {
        if matches!(value, Scalar::Complex(_)) && !x.dtype().is_complex() {
            return Err(Error::dtype(name, "a complex value cannot be stored", &[x.dtype()]));
        }
        with_device(x.device(), || NdArray::scalar_as(value.to_checked_element(name, x.dtype())?, x.dtype()))
    };
    let otherwise = values.get(n).copied().unwrap_or(Scalar::Int(0));
    let mut result = cuprum_core::broadcast_to(&constant(otherwise)?, x.shape())?;
    for (condition, &value) in conditions.iter().zip(&values) {
        if condition.shape() != x.shape() {
            return Err(Error::shape(name, "a condition has another shape than the array", &[condition.shape(), x.shape()]));
        }
        result = where_(condition.astype(DType::Bool)?, constant(value)?, &result)?;
    }
    Ok(result)
}
