//! Parameters of distributions: numbers and arrays that broadcast, with NumPy's checks.

use crate::array::NdArray;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Operand;
use crate::layout::{Dims, broadcast_shapes};
use crate::ops::elementwise as ew;
use crate::scalar::Scalar;

/// An interval of valid values of a parameter. NaN is in no interval.
pub(super) struct ParameterInterval {
    contains: fn(f64) -> bool,
    /// NumPy's error message for values outside the interval. `{}` stands for the name of the parameter.
    message: &'static str,
}

pub(super) const NOT_NAN_INTERVAL: ParameterInterval = ParameterInterval { contains: |x| !x.is_nan(), message: "{} must not be NaN" };
pub(super) const FINITE_INTERVAL: ParameterInterval = ParameterInterval { contains: f64::is_finite, message: "{} must be finite" };
/// Numbers that are not negative. As in NumPy, -0.0 counts as negative.
pub(super) const NOT_NEGATIVE_INTERVAL: ParameterInterval =
    ParameterInterval { contains: |x| x >= 0.0 && x.is_sign_positive(), message: "{} < 0" };
pub(super) const POSITIVE_INTERVAL: ParameterInterval = ParameterInterval { contains: |x| x > 0.0, message: "{} <= 0" };
pub(super) const PROBABILITY_INTERVAL: ParameterInterval =
    ParameterInterval { contains: |x| (0.0..=1.0).contains(&x), message: "{} < 0, {} > 1 or {} contains NaNs" };
pub(super) const POSITIVE_PROBABILITY_INTERVAL: ParameterInterval =
    ParameterInterval { contains: |x| x > 0.0 && x <= 1.0, message: "{} <= 0, {} > 1 or {} contains NaNs" };
pub(super) const PROBABILITY_BELOW_ONE_INTERVAL: ParameterInterval =
    ParameterInterval { contains: |x| (0.0..1.0).contains(&x), message: "{} < 0, {} >= 1 or {} contains NaNs" };
pub(super) const ABOVE_ONE_INTERVAL: ParameterInterval =
    ParameterInterval { contains: |x| x > 1.0, message: "{} <= 1 or {} contains NaNs" };
/// Maximum mean of a Poisson distribution. As in NumPy, it is ten standard deviations below 2^63.
pub(super) const MAX_POISSON_MEAN: f64 = 9.223372006484771e18;
/// Valid means of a Poisson distribution.
pub(super) const POISSON_MEAN_INTERVAL: ParameterInterval =
    ParameterInterval { contains: |x| (0.0..=MAX_POISSON_MEAN).contains(&x), message: "{} < 0, {} contains NaNs, or {} value too large" };
/// Valid numbers of items in a population, for `hypergeometric`. The upper limit is NumPy's.
pub(super) const HYPERGEOMETRIC_COUNT_INTERVAL: ParameterInterval =
    ParameterInterval { contains: |x| (0.0..1e9).contains(&x), message: "{} < 0 or {} >= 10**9" };

/// Returns the parameter `value` in float64. Every real number is valid, also NaN.
pub(super) fn unrestricted_real_parameter(value: Operand, name: &str) -> Result<Operand> {
    match value {
        Operand::Scalar(Scalar::Complex(_)) => Err(Error::value("random", format!("'{name}' must be a real number, not complex"))),
        Operand::Scalar(number) => Ok(number.as_f64().into()),
        Operand::Array(a) if a.dtype().is_complex() => Err(Error::dtype("random", format!("'{name}' must be real"), &[a.dtype()])),
        Operand::Array(a) => Ok(a.astype(DType::F64)?.into()),
    }
}

/// Returns the parameter `value` in float64. Returns an error if a value is not in `interval`. Waits for the device if `value` is an array.
pub(super) fn checked_real_parameter(value: Operand, name: &str, interval: &ParameterInterval) -> Result<Operand> {
    let value = unrestricted_real_parameter(value, name)?;
    let is_valid = match &value {
        Operand::Scalar(number) => (interval.contains)(number.as_f64()),
        // If any value is NaN, the minimum and the maximum are NaN. No interval contains NaN.
        Operand::Array(a) => a.size() == 0 || ((interval.contains)(a.min(())?.item_as()?) && (interval.contains)(a.max(())?.item_as()?)),
    };
    if is_valid { Ok(value) } else { Err(Error::value("random", interval.message.replace("{}", name))) }
}

/// Returns the parameter `value` in float64, truncated to whole numbers as in NumPy. Returns an error if a value is not in `interval`.
pub(super) fn checked_integer_parameter(value: Operand, name: &str, interval: &ParameterInterval) -> Result<Operand> {
    Ok(match checked_real_parameter(value, name, interval)? {
        Operand::Scalar(number) => number.as_f64().trunc().into(),
        Operand::Array(a) => ew::trunc(a)?.into(),
    })
}

/// Returns `number`, a bound of random integers, as an integer. As in NumPy, its fraction is truncated.
pub(super) fn truncate_to_integer(number: Scalar, name: &str) -> Result<i128> {
    let whole = match number {
        Scalar::Float(x) if x.is_finite() => Some(x as i128),
        Scalar::Complex(_) => None,
        number => number.as_int(),
    };
    whole.ok_or_else(|| Error::value("integers", format!("'{name}' must be a finite real number")))
}

/// Returns the parameter `value`, a number of trials from 0 to 2^63 - 1, in int64, and whether float64 represents it without rounding.
/// Fractions are truncated.
pub(super) fn checked_trial_count(value: Operand, name: &str) -> Result<(Operand, bool)> {
    let in_range = |number: Scalar| {
        let whole = number.as_int().unwrap_or_else(|| number.as_f64() as i128);
        match whole {
            _ if number.as_f64().is_nan() || number.as_f64() < 0.0 => {
                Err(Error::value("random", NOT_NEGATIVE_INTERVAL.message.replace("{}", name)))
            }
            _ => i64::try_from(whole).map_err(|_| Error::value("random", format!("{name} > 2**63 - 1"))),
        }
    };
    let is_exact = |number: i64| number <= 1 << f64::MANTISSA_DIGITS;
    match value {
        Operand::Scalar(Scalar::Complex(_)) => checked_real_parameter(value, name, &NOT_NEGATIVE_INTERVAL).map(|value| (value, true)),
        Operand::Scalar(number) => in_range(number).map(|number| (number.into(), is_exact(number))),
        Operand::Array(a) if a.dtype().is_complex() => Err(Error::dtype("random", format!("'{name}' must be real"), &[a.dtype()])),
        Operand::Array(a) if a.size() == 0 => Ok((a.astype(DType::I64)?.into(), true)),
        Operand::Array(a) => {
            in_range(a.min(())?.item()?)?;
            let largest = in_range(a.max(())?.item()?)?;
            Ok((a.astype(DType::I64)?.into(), is_exact(largest)))
        }
    }
}

/// Returns an error with `message` unless `holds` is true for each element.
pub(super) fn reject_unless_all_true(holds: NdArray, message: &str) -> Result<()> {
    if holds.size() > 0 && !holds.all(())?.item()?.as_bool() { Err(Error::value("random", message)) } else { Ok(()) }
}

/// Returns the shape of a result with these parameters: `size`, or the shape that the parameters broadcast to if `size` is empty.
pub(super) fn drawn_array_shape(parameters: &[Operand], size: &[usize]) -> Result<Dims> {
    let shapes: Vec<&[usize]> = parameters.iter().filter_map(|p| if let Operand::Array(a) = p { Some(a.shape()) } else { None }).collect();
    let broadcast = broadcast_shapes("random", &shapes)?;
    if size.is_empty() {
        return Ok(broadcast);
    }
    let with_size = broadcast_shapes("random", &[&broadcast, size]);
    if with_size.is_ok_and(|shape| shape[..] == *size) {
        return Ok(size.into());
    }
    let message = "output size is not compatible with broadcast dimensions of inputs";
    Err(Error::shape("random", message, &[size, &broadcast]))
}

/// Returns the device of the first array among the parameters, or the current device.
pub(super) fn device_of_parameters(parameters: &[&Operand]) -> Result<Device> {
    let first = parameters.iter().find_map(|p| if let Operand::Array(a) = p { Some(a.device()) } else { None });
    first.map_or_else(Device::current, Ok)
}
