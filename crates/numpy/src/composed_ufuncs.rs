//! Universal functions that are expressions of other elementwise operations, so that they are deferred and fuse with their neighbours.

use cuprum_core::op::TypeRule;
use cuprum_core::rounding::round_to_dtype;
use cuprum_core::{
    DType, Error, NdArray, Operand, Result, Scalar, abs, add, atan2, bitwise_and, copysign, divide, equal, exp, exp2, full, greater, imag,
    isnan, less, log1p, maximum, multiply, negative, numpy, power, real, right_shift, sin, subtract, where_,
};

use crate::operand_and_slice_helpers::promotion_arguments;

/// Returns the dtype in which a function of real numbers is computed: NumPy's float type for integers, else the promoted dtype.
fn real_function_dtype<'a>(op: &'static str, operands: impl IntoIterator<Item = &'a Operand>) -> Result<DType> {
    Ok(TypeRule::Float.resolve_dtypes(op, &promotion_arguments(operands))?.result)
}

/// Converts an array to the float dtype `dtype`. A number becomes a float of that dtype and stays weak.
fn to_float_operand(x: &Operand, dtype: DType) -> Result<Operand> {
    match x {
        Operand::Array(a) => a.astype(dtype).map(Operand::Array),
        Operand::Scalar(s) => Ok(Operand::Scalar(Scalar::Float(round_to_dtype(s.as_f64(), dtype)))),
    }
}

/// Returns whether an operand is complex.
fn is_complex(x: &Operand) -> bool {
    match x {
        Operand::Array(a) => a.dtype().is_complex(),
        Operand::Scalar(s) => matches!(s, Scalar::Complex(_)),
    }
}

/// Returns the absolute value as a float (`numpy.fabs`).
///
/// # Errors
/// Complex numbers.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, NdArray};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::fabs(&NdArray::from_slice(&[-3i32])?)?.to_vec::<f64>()?, [3.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("fabs(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn fabs(x: impl Into<Operand>) -> Result<NdArray> {
    let x = x.into();
    let dtype = real_function_dtype("fabs", [&x])?;
    // `abs` returns float64 for every Python-like number, but NumPy's result for a bool is float16.
    abs(to_float_operand(&x, dtype)?)?.astype(dtype)
}

/// Raises `x1` to the power `x2` in float64, or in complex128 if either is complex (`numpy.float_power`).
///
/// # Errors
/// Shapes that do not broadcast, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::float_power(&NdArray::from_slice(&[2i8, 4])?, -1)?.to_vec::<f64>()?, [0.5, 0.25]);
/// # Ok(())
/// # }
/// ```
#[numpy("float_power(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn float_power(x1: impl Into<Operand>, x2: impl Into<Operand>) -> Result<NdArray> {
    let (x1, x2) = (x1.into(), x2.into());
    let complex = is_complex(&x1) || is_complex(&x2);
    let wide = |x: &Operand| match x {
        Operand::Array(a) => a.astype(if complex { DType::C128 } else { DType::F64 }).map(Operand::Array),
        Operand::Scalar(Scalar::Complex(_)) => Ok(x.clone()),
        Operand::Scalar(s) => Ok(Operand::Scalar(Scalar::Float(s.as_f64()))),
    };
    power(wide(&x1)?, wide(&x2)?)
}

/// Returns the Heaviside step function: 0 for `x1 < 0`, `x2` for `x1 == 0`, 1 for `x1 > 0` (`numpy.heaviside`).
///
/// NaN in `x1` gives NaN. Integers become floats.
///
/// # Errors
/// Complex numbers, shapes that do not broadcast, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::heaviside(&NdArray::from_slice(&[-1.5, 0.0, 2.0])?, 0.5)?.to_vec::<f64>()?, [0.0, 0.5, 1.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("heaviside(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn heaviside(x1: impl Into<Operand>, x2: impl Into<Operand>) -> Result<NdArray> {
    let (x1, x2) = (x1.into(), x2.into());
    let dtype = real_function_dtype("heaviside", [&x1, &x2])?;
    let (x1, x2) = (to_float_operand(&x1, dtype)?, to_float_operand(&x2, dtype)?);
    let step = greater(&x1, 0)?.astype(dtype)?;
    where_(isnan(&x1)?, &x1, where_(equal(&x1, 0)?, x2, step)?)
}

/// Returns `log(exp(x1) + exp(x2))` without overflow of the exponentials (`numpy.logaddexp`).
///
/// Integers become floats. 16-bit floats are computed in float32.
///
/// # Errors
/// Complex numbers, shapes that do not broadcast, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let sum = cuprum::logaddexp(&NdArray::from_slice(&[-1000.0, 1000.0])?, 1000.0)?.to_vec::<f64>()?;
/// assert_eq!(sum, [1000.0, 1000.0 + std::f64::consts::LN_2]);
/// # Ok(())
/// # }
/// ```
#[numpy("logaddexp(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn logaddexp(x1: impl Into<Operand>, x2: impl Into<Operand>) -> Result<NdArray> {
    maximum_plus_correction("logaddexp", x1.into(), x2.into(), std::f64::consts::LN_2, |distance| log1p(exp(negative(distance)?)?))
}

/// Returns `log2(2**x1 + 2**x2)` without overflow of the powers (`numpy.logaddexp2`).
///
/// Integers become floats. 16-bit floats are computed in float32.
///
/// # Errors
/// Complex numbers, shapes that do not broadcast, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let sum = cuprum::logaddexp2(&NdArray::from_slice(&[-3000.0, 3000.0])?, 3000.0)?.to_vec::<f64>()?;
/// assert_eq!(sum, [3000.0, 3001.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("logaddexp2(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn logaddexp2(x1: impl Into<Operand>, x2: impl Into<Operand>) -> Result<NdArray> {
    let correction = |distance: NdArray| multiply(log1p(exp2(negative(distance)?)?)?, std::f64::consts::LOG2_E);
    maximum_plus_correction("logaddexp2", x1.into(), x2.into(), 1.0, correction)
}

/// Returns the larger operand plus a correction, which `correction` computes from the distance between the operands.
///
/// For equal operands, which may be infinite, the correction is `of_equal`.
fn maximum_plus_correction(
    op: &'static str,
    x1: Operand,
    x2: Operand,
    of_equal: f64,
    correction: impl FnOnce(NdArray) -> Result<NdArray>,
) -> Result<NdArray> {
    let dtype = real_function_dtype(op, [&x1, &x2])?;
    let wide = if dtype.itemsize() == 2 { DType::F32 } else { dtype };
    let (x1, x2) = (to_float_operand(&x1, wide)?, to_float_operand(&x2, wide)?);
    let sum = add(maximum(&x1, &x2)?, correction(abs(subtract(&x1, &x2)?)?)?)?;
    where_(equal(&x1, &x2)?, add(&x1, of_equal)?, sum)?.astype(dtype)
}

/// Returns `sin(pi * x) / (pi * x)`, and 1 for 0 (`numpy.sinc`).
///
/// bool and integers become float64.
///
/// # Errors
/// Errors of evaluation, if deferral is disabled.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let y = cuprum::sinc(&NdArray::from_slice(&[0.0, 0.5])?)?.to_vec::<f64>()?;
/// assert!(y[0] == 1.0 && (y[1] - 2.0 / std::f64::consts::PI).abs() < 1e-15);
/// # Ok(())
/// # }
/// ```
#[numpy("sinc(x)")]
pub fn sinc(x: impl Into<Operand>) -> Result<NdArray> {
    let y = multiply(x, std::f64::consts::PI)?;
    where_(equal(&y, 0)?, 1, divide(sin(&y)?, &y)?)
}

/// Returns the angle of complex numbers in `(-pi, pi]`, in radians or degrees (`numpy.angle`).
///
/// The angle is in degrees if `deg`, else in radians. The angle of a negative real number is pi. Integers become floats.
///
/// # Errors
/// Errors of evaluation, if deferral is disabled.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{Complex, NdArray};
/// # fn main() -> cuprum::Result<()> {
/// let z = NdArray::from_slice(&[Complex::new(0.0, 2.0), Complex::new(-1.0, 0.0)])?;
/// assert_eq!(cuprum::angle(&z, true)?.to_vec::<f64>()?, [90.0, 180.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("angle(z, deg=False)")]
pub fn angle(z: impl Into<Operand>, deg: bool) -> Result<NdArray> {
    let z = z.into();
    let radians = if is_complex(&z) { atan2(imag(&z)?, real(&z)?)? } else { atan2(0, &z)? };
    if deg { multiply(radians, 180.0 / std::f64::consts::PI) } else { Ok(radians) }
}

/// Returns whether the sign bit is set: for negative numbers, -0.0 and NaN with a sign (`numpy.signbit`).
///
/// # Errors
/// Complex numbers.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::signbit(&NdArray::from_slice(&[-0.0, 0.0])?)?.to_vec::<bool>()?, [true, false]);
/// # Ok(())
/// # }
/// ```
#[numpy("signbit(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn signbit(x: impl Into<Operand>) -> Result<NdArray> {
    let x = x.into();
    real_function_dtype("signbit", [&x])?;
    match &x {
        Operand::Array(a) if !a.dtype().is_inexact() => less(&x, 0),
        _ => less(copysign(1.0, &x)?, 0),
    }
}

/// Returns the real part if all imaginary parts are small, else `a` (`numpy.real_if_close`).
///
/// An imaginary part is small if its magnitude is below `tol` machine epsilons of the dtype, or below `tol` itself if `tol <= 1`.
/// Waits for the device.
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{Complex, DType, NdArray};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[Complex::new(2.1, 4e-14)])?;
/// assert_eq!(cuprum::real_if_close(&a, 1000.0)?.dtype(), DType::F64);
/// assert_eq!(cuprum::real_if_close(&a, 100.0)?.dtype(), DType::C128);
/// # Ok(())
/// # }
/// ```
#[numpy("real_if_close(a, tol=100)")]
pub fn real_if_close(a: &NdArray, tol: f64) -> Result<NdArray> {
    if !a.dtype().is_complex() {
        return Ok(a.clone());
    }
    let epsilon = if a.dtype() == DType::C64 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let limit = if tol > 1.0 { tol * epsilon } else { tol };
    if less(abs(imag(a)?)?, limit)?.all(())?.item()?.as_bool() { real(a) } else { Ok(a.clone()) }
}

/// Returns the number of bits set in the magnitude of each integer, as uint8 (`numpy.bitwise_count`).
///
/// # Errors
/// Floating-point or complex numbers.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::bitwise_count(&NdArray::from_slice(&[-5i32, 255])?)?.to_vec::<u8>()?, [2, 8]);
/// # Ok(())
/// # }
/// ```
#[numpy("bitwise_count(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn bitwise_count(x: impl Into<Operand>) -> Result<NdArray> {
    let x = match x.into() {
        Operand::Array(a) => a,
        Operand::Scalar(s) => full((), s, s.default_dtype())?,
    };
    if x.dtype().is_inexact() {
        return Err(Error::dtype("bitwise_count", "not defined for floating point; it takes bool and integers", &[x.dtype()]));
    }
    // `abs` of the smallest signed integer returns the same bits. Converting them to a wider type extends the sign, so the mask removes the
    // additional bits.
    let mask = u64::MAX >> (64 - 8 * x.dtype().itemsize());
    let x = bitwise_and(abs(x)?.astype(DType::U64)?, mask)?;
    // Counts the set bits. The sums of neighbouring fields are added, and the width of a field doubles from one bit to one byte. The
    // multiplication then adds the bytes.
    let x = subtract(&x, bitwise_and(right_shift(&x, 1)?, 0x5555_5555_5555_5555u64)?)?;
    let pairs = 0x3333_3333_3333_3333u64;
    let x = add(bitwise_and(&x, pairs)?, bitwise_and(right_shift(&x, 2)?, pairs)?)?;
    let x = bitwise_and(add(&x, right_shift(&x, 4)?)?, 0x0f0f_0f0f_0f0f_0f0fu64)?;
    right_shift(multiply(x, 0x0101_0101_0101_0101u64)?, 56)?.astype(DType::U8)
}
