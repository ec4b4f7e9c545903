//! Weighted averages: `average`.

use cuprum_core::function::FromArgs;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{AxisOption, AxisOptions, DType, Error, NdArray, Result, broadcast_to, divide, equal, multiply, numpy};

use crate::operand_and_slice_helpers::new_filled_array;
use crate::statistics::reshape_weights;

fn average_from_args(args: &Args) -> Result<Value> {
    let weights = args.get("weights").map(|weights| weights.array(args.op())).transpose()?;
    let (average, sum) = average_and_weights(&args.array("a")?, weights.as_ref(), AxisOptions::from_args(args, "axis")?)?;
    match args.bool_or("returned", false)? {
        true => Ok(Value::tuple([Value::Array(average), Value::Array(sum)])),
        false => Ok(Value::Array(average)),
    }
}

/// Returns the weighted average over the given axes (`numpy.average`).
///
/// Weights have the shape of the array, or that of the given axes. Without weights this is the mean.
///
/// Passes over memory: one fused sum of products, and one sum of the weights. The call waits for the device if there are weights.
///
/// # Errors
/// Weights whose shape fits neither the array nor the axes, weights whose sum is 0, or axes that are out of bounds or repeated.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let (a, w) = (NdArray::from_slice(&[1.0, 2.0, 4.0])?, NdArray::from_slice(&[1.0, 1.0, 2.0])?);
/// assert_eq!(cuprum::average(&a, Some(&w), ())?.item()?, 2.75);
/// # Ok(())
/// # }
/// ```
#[numpy("average(a, axis=None, weights=None, returned=False, *, keepdims=False)", call = average_from_args)]
pub fn average(a: &NdArray, weights: Option<&NdArray>, over: impl Into<AxisOptions>) -> Result<NdArray> {
    average_and_weights(a, weights, over).map(|(average, _)| average)
}

/// Returns the result of [`average`] and the sum of the weights, in the same shape (`numpy.average(returned=True)`).
///
/// # Errors
/// The errors of [`average`].
pub fn average_and_weights(a: &NdArray, weights: Option<&NdArray>, over: impl Into<AxisOptions>) -> Result<(NdArray, NdArray)> {
    weighted_mean_and_weight_sum("average", a, weights, over.into().check_accepted_options("average", &[AxisOption::KeepDims])?)
        .map_err(|error| error.with_function_name("average"))
}

/// Returns the average and the sum of the weights.
fn weighted_mean_and_weight_sum(
    name: &'static str,
    a: &NdArray,
    weights: Option<&NdArray>,
    over: AxisOptions,
) -> Result<(NdArray, NdArray)> {
    let Some(weights) = weights else {
        let mean = a.mean(over)?;
        let count = if mean.size() == 0 { 0.0 } else { a.size() as f64 / mean.size() as f64 };
        let counts = new_filled_array(a, mean.shape(), count, mean.dtype())?;
        return Ok((mean, counts));
    };
    let weights = reshape_weights(name, a, weights, &over)?;
    let dtype = match a.dtype().is_inexact() {
        true => a.dtype().promote(weights.dtype()),
        false => DType::promote_all([a.dtype(), weights.dtype(), DType::F64]).unwrap_or(DType::F64),
    };
    let weights = weights.astype(dtype)?;
    let sum = weights.sum(over.clone())?.eval()?.clone();
    if equal(&sum, 0)?.any(())?.item()?.as_bool() {
        return Err(Error::value(name, "Weights sum to zero, can't be normalized"));
    }
    let average = divide(multiply(a.astype(dtype)?, weights)?.sum(over)?, &sum)?;
    let sum = if sum.shape() == average.shape() { sum } else { broadcast_to(&sum, average.shape())? };
    Ok((average, sum))
}
