//! Elementwise functions with several results: `divmod`, `modf`, `frexp`.

use cuprum_macros::numpy;

use crate::array::NdArray;
use crate::error::Result;
use crate::expr::{Operand, elementwise_multi_result};
use crate::op::{MultiResultOp, TypeRule};
use crate::ops::elementwise::{FLOOR_DIVIDE, FREXP_EXPONENT, FREXP_MANTISSA, MODF_FRACTION, REMAINDER, TRUNC};

/// The operations of [`divmod()`]: quotient and remainder.
pub static DIVMOD: MultiResultOp =
    MultiResultOp { name: "divmod", results: &[(FLOOR_DIVIDE, TypeRule::PromoteReal), (REMAINDER, TypeRule::PromoteReal)] };
/// The operations of [`modf()`]: fractional and integral part.
pub static MODF: MultiResultOp = MultiResultOp { name: "modf", results: &[(MODF_FRACTION, TypeRule::Float), (TRUNC, TypeRule::Float)] };
/// The operations of [`frexp()`]: mantissa and exponent.
pub static FREXP: MultiResultOp =
    MultiResultOp { name: "frexp", results: &[(FREXP_MANTISSA, TypeRule::Float), (FREXP_EXPONENT, TypeRule::Exponent)] };

/// The elementwise functions with several results.
pub static MULTI_RESULT_OPS: [&MultiResultOp; 3] = [&DIVMOD, &MODF, &FREXP];

/// `(x1 // x2, x1 % x2)`, elementwise with broadcasting (`numpy.divmod`).
///
/// The quotient is that of [`floor_divide`](crate::floor_divide), the remainder that of [`remainder`](crate::remainder).
/// Integer division by 0 gives 0 for both.
/// Reading one result computes both in one pass.
///
/// # Errors
/// Shapes that do not broadcast, complex numbers, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, divmod};
/// # fn main() -> cuprum::Result<()> {
/// let (quotient, remainder) = divmod(&NdArray::from_slice(&[7, -7])?, 2)?;
/// assert_eq!(quotient.to_vec::<i32>()?, [3, -4]);
/// assert_eq!(remainder.to_vec::<i32>()?, [1, 1]);
/// # Ok(())
/// # }
/// ```
#[numpy("divmod(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn divmod(x1: impl Into<Operand>, x2: impl Into<Operand>) -> Result<(NdArray, NdArray)> {
    elementwise_multi_result(&DIVMOD, &[x1.into(), x2.into()]).map(|[quotient, remainder]| (quotient, remainder))
}

/// The fractional and the integral part, both with the sign of `x` (`numpy.modf`).
///
/// Integers become floats. The fractional part of an infinity is 0. Reading one result computes both in one pass.
///
/// # Errors
/// Complex numbers.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, modf};
/// # fn main() -> cuprum::Result<()> {
/// let (fraction, integral) = modf(&NdArray::from_slice(&[2.5, -0.25])?)?;
/// assert_eq!(fraction.to_vec::<f64>()?, [0.5, -0.25]);
/// assert_eq!(integral.to_vec::<f64>()?, [2.0, -0.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("modf(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn modf(x: impl Into<Operand>) -> Result<(NdArray, NdArray)> {
    elementwise_multi_result(&MODF, &[x.into()]).map(|[fraction, integral]| (fraction, integral))
}

/// The mantissa and the int32 exponent with `x = mantissa * 2**exponent` (`numpy.frexp`).
///
/// The magnitude of the mantissa is in `[0.5, 1)`. Zeros, infinities and NaN are their own mantissa, with the exponent 0. Integers
/// become floats. Reading one result computes both in one pass.
///
/// # Errors
/// Complex numbers.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, frexp};
/// # fn main() -> cuprum::Result<()> {
/// let (mantissa, exponent) = frexp(&NdArray::from_slice(&[6.0, -0.25])?)?;
/// assert_eq!(mantissa.to_vec::<f64>()?, [0.75, -0.5]);
/// assert_eq!(exponent.to_vec::<i32>()?, [3, -1]);
/// # Ok(())
/// # }
/// ```
#[numpy("frexp(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn frexp(x: impl Into<Operand>) -> Result<(NdArray, NdArray)> {
    elementwise_multi_result(&FREXP, &[x.into()]).map(|[mantissa, exponent]| (mantissa, exponent))
}
