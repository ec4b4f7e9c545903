//! Floating point neighbours, and the modified Bessel function of order zero.

use cuprum_core::op::ArgumentType;
use cuprum_core::op::TypeRule;
use cuprum_core::{
    DType, Error, NdArray, Operand, Result, Scalar, abs, axis as along, copysign, equal, exp, frexp, isinf, isnan, ldexp, less, logical_or,
    maximum, multiply, numpy, subtract, where_, with_device,
};

use crate::data_types::{FloatInfo, finfo};
use crate::operand_and_slice_helpers::operand_to_inexact_array;
use cuprum_core::Device;

/// Converts operands to float arrays of their common dtype. Returns the arrays and the limits of the dtype.
fn to_float_arrays_and_limits<const N: usize>(name: &'static str, operands: [Operand; N]) -> Result<([NdArray; N], FloatInfo)> {
    let kinds: Vec<ArgumentType> = crate::operand_and_slice_helpers::promotion_arguments(&operands);
    let dtype = TypeRule::Float.resolve_dtypes(name, &kinds)?.result;
    let device = operands.iter().find_map(|operand| if let Operand::Array(a) = operand { Some(a.device()) } else { None });
    let device = device.map_or_else(Device::current, Ok)?;
    let mut arrays = Vec::with_capacity(N);
    for operand in &operands {
        arrays.push(operand_to_inexact_array(device, operand, dtype)?);
    }
    let arrays = arrays.try_into().map_err(|_| Error::value(name, "takes other arguments"))?;
    Ok((arrays, finfo(dtype)?))
}

/// Returns `2**(exponent - nmant)`, the distance between neighbouring numbers with this exponent, in the dtype of `model`. `info` holds
/// the limits of the dtype. The result is at least the smallest positive number.
fn spacing_of_exponent(model: &NdArray, exponent: NdArray, info: &FloatInfo) -> Result<NdArray> {
    let exponent = subtract(maximum(exponent, info.minexp)?, info.nmant)?;
    let one = with_device(model.device(), || NdArray::scalar_as(1, model.dtype()))?;
    ldexp(one, exponent.astype(DType::I32)?)
}

/// Returns the next number after `x1` towards `x2` (`numpy.nextafter`), elementwise.
///
/// For equal numbers, the result is `x2` (`x1` in float16), as in NumPy. The choice matters for zeros of different sign.
///
/// Passes over memory: one.
///
/// # Errors
/// Complex numbers, and shapes that do not broadcast.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::nextafter(1.0, 2.0)?.item()?, 1.0 + f64::EPSILON);
/// # Ok(())
/// # }
/// ```
#[numpy("nextafter(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn nextafter(x1: impl Into<Operand>, x2: impl Into<Operand>) -> Result<NdArray> {
    let ([from, to], info) = to_float_arrays_and_limits("nextafter", [x1.into(), x2.into()])?;
    let (mantissa, exponent) = frexp(&from)?;
    let grows = equal(less(&from, &to)?, less(0, &from)?)?;
    // The distance between neighbouring numbers is half as large below a power of two as above it.
    let is_power = equal(abs(&mantissa)?, 0.5)?;
    let denser = where_(&grows, 0, is_power.astype(DType::I32)?)?;
    let distance = spacing_of_exponent(&from, subtract(subtract(exponent, 1)?, denser)?, &info)?;
    let moved = where_(less(&from, &to)?, cuprum_core::add(&from, &distance)?, subtract(&from, &distance)?)?;
    let from_zero = copysign(info.smallest_subnormal, &to)?.astype(from.dtype())?;
    let from_infinity = copysign(info.max, &from)?.astype(from.dtype())?;
    // The next number above the negative number nearest to zero is -0, so a step to zero keeps the sign.
    let moved = where_(equal(&moved, 0)?, copysign(&moved, &from)?, &moved)?;
    let moved = where_(equal(&from, 0)?, from_zero, where_(isinf(&from)?, from_infinity, moved)?)?;
    let undefined = logical_or(isnan(&from)?, isnan(&to)?)?;
    let unmoved = if from.dtype() == DType::F16 { &from } else { &to };
    where_(undefined, cuprum_core::add(&from, &to)?, where_(equal(&from, &to)?, unmoved, moved)?)
}

/// Returns the distance from `x` to the next number away from zero, with the sign of `x` (`numpy.spacing`), elementwise; NaN for
/// infinities.
///
/// Passes over memory: one.
///
/// # Errors
/// Complex numbers.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::spacing(1.0)?.item()?, f64::EPSILON);
/// # Ok(())
/// # }
/// ```
#[numpy("spacing(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)", differs = "float16 has the sign of `x` too")]
pub fn spacing(x: impl Into<Operand>) -> Result<NdArray> {
    let ([x], info) = to_float_arrays_and_limits("spacing", [x.into()])?;
    let (_, exponent) = frexp(&x)?;
    let distance = spacing_of_exponent(&x, subtract(exponent, 1)?, &info)?;
    let of_zero = with_device(x.device(), || NdArray::scalar_as(info.smallest_subnormal, x.dtype()))?;
    let signed = where_(less(&x, 0)?, cuprum_core::negative(&distance)?, &distance)?;
    let finite = where_(equal(&x, 0)?, of_zero, signed)?;
    // As in NumPy, the next number after the largest finite one is infinite, and so is the distance to it.
    let last = equal(abs(&x)?, info.max)?;
    let finite = where_(last, multiply(&x, f64::INFINITY)?, finite)?;
    where_(logical_or(isinf(&x)?, isnan(&x)?)?, subtract(&x, &x)?, finite)
}

/// Number of intervals of the trapezoidal rule in [`i0`].
const I0_TRAPEZOID_INTERVALS: usize = 128;

/// Returns the modified Bessel function of the first kind of order zero (`numpy.i0`), elementwise.
///
/// The function is the mean of `exp(x * cos(t))` over half a period, by the trapezoidal rule with 128 intervals. The rule converges
/// exponentially; up to the overflow of float64 its error is less than one unit in the last place.
///
/// Passes over memory: one, with 129 exponentials for each element.
///
/// # Errors
/// Complex numbers.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::i0(0.0)?.item()?, 1.0);
/// # Ok(())
/// # }
/// ```
#[numpy("i0(x)")]
pub fn i0(x: impl Into<Operand>) -> Result<NdArray> {
    let name = "i0";
    let x = match x.into() {
        Operand::Array(x) => x,
        Operand::Scalar(x @ Scalar::Complex(_)) => NdArray::scalar(x)?,
        Operand::Scalar(x) => NdArray::scalar_as(x, DType::F64)?,
    };
    if x.dtype().is_complex() {
        return Err(Error::dtype(name, "i0 not supported for complex values", &[x.dtype()]));
    }
    let out = if x.dtype().is_inexact() { x.dtype() } else { DType::F64 };
    // cos(t) - 1, without cancellation.
    let angle = |n: usize| -2.0 * (n as f64 * std::f64::consts::FRAC_PI_2 / I0_TRAPEZOID_INTERVALS as f64).sin().powi(2);
    let weight = |n: usize| if n == 0 || n == I0_TRAPEZOID_INTERVALS { 0.5 } else { 1.0 } / I0_TRAPEZOID_INTERVALS as f64;
    let (angles, weights): (Vec<f64>, Vec<f64>) = (0..=I0_TRAPEZOID_INTERVALS).map(|n| (angle(n), weight(n))).unzip();
    let on_device = |values: &[f64]| with_device(x.device(), || NdArray::from_slice(values));
    let size = abs(x.astype(DType::F64)?)?;
    let terms = multiply(exp(multiply(size.expand_dims(-1)?, on_device(&angles)?)?)?, on_device(&weights)?)?;
    // `exp(x)` overflows before the result does, so `exp(x / 2)` is multiplied twice.
    let half = exp(multiply(&size, 0.5)?)?;
    multiply(multiply(terms.sum(along(-1))?, &half)?, &half)?.astype(out)
}
