//! Powers: `power`, and `ldexp` for powers of two.

use cuprum_macros::{free_functions, numpy};

use crate::array::NdArray;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::expr::{Operand, check_weak_ints, elementwise_consuming_args, elementwise_with_dtypes};
use crate::op::{ArgumentType, DTypeSignature, MAX_ARITY, TypeRule, result_type};
use crate::ops::elementwise::{LDEXP, POWER, reciprocal, sqrt, square};
use crate::scalar::Scalar;

/// `x1 * 2**x2`, elementwise with broadcasting (`numpy.ldexp`); the inverse of [`frexp`](crate::frexp).
///
/// `x2` holds integers other than uint64. The result has the dtype of `x1`, where integers become floats. As in NumPy, a Python int `x1`
/// with an array `x2` becomes float16. The result is rounded once, even if it is subnormal.
///
/// # Errors
/// A complex `x1`, another dtype of `x2`, shapes that do not broadcast, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, ldexp};
/// # fn main() -> cuprum::Result<()> {
/// let exponents = NdArray::from_slice(&[-1, 0, 10])?;
/// assert_eq!(ldexp(1.5, &exponents)?.to_vec::<f64>()?, [0.75, 1.5, 1536.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("ldexp(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn ldexp(x1: impl Into<Operand>, x2: impl Into<Operand>) -> Result<NdArray> {
    let (x1, x2) = (x1.into(), x2.into());
    let exponents = match x2.argument_type() {
        ArgumentType::Array(dtype) => dtype,
        ArgumentType::Weak(scalar) => scalar.default_dtype(),
    };
    if exponents == DType::U64 || !(exponents.is_int() || exponents == DType::Bool) {
        return Err(Error::dtype(LDEXP.name(), "the exponents must be integers other than uint64; use astype", &[exponents]));
    }
    let operand = match (x1.argument_type(), x2.argument_type()) {
        // As in NumPy, an int or bool `x1` with an array `x2` takes the smallest float dtype: the dtype of the exponents has no effect on
        // that of the result.
        (ArgumentType::Weak(Scalar::Int(_) | Scalar::Bool(_)), ArgumentType::Array(_)) => ArgumentType::Array(DType::F16),
        (operand, _) => operand,
    };
    let signature = TypeRule::Float.resolve_dtypes(LDEXP.name(), &[operand])?;
    // Weak ints are not checked: a Python int beyond the range of the float dtype becomes an infinity, as elements of an integer array do.
    let dtype = signature.result;
    if dtype.itemsize() == 2 {
        // 16-bit results are computed in float32, because bfloat16 cannot represent all exponents. Rounding twice gives the same as
        // rounding once, because float32 has more digits and smaller numbers.
        let wide = DTypeSignature { args: [DType::F32; MAX_ARITY], result: DType::F32 };
        return elementwise_with_dtypes(LDEXP, &mut [x1, x2], wide)?.astype(dtype);
    }
    elementwise_with_dtypes(LDEXP, &mut [x1, x2], signature)
}

/// `x1 ** x2`, elementwise with broadcasting (`numpy.power`).
///
/// Integers wrap, and bool becomes int8. If `x2` is the number -1, 1 or 2 and `x1` is floating, the result is `1 / x1`, `x1` or `x1 * x1`.
/// For float32 and float64 the number 0.5 is the square root, so -inf gives NaN. An array as `x2` calls the power function for each
/// element, which gives inf for `-inf ** 0.5`. For an integer `x1` and an array of negative exponents, the result is `1 / x1**|x2|`
/// truncated. [`NdArray::power`] is NumPy's `**` operator, which differs for a few exponents.
///
/// # Errors
/// Shapes that do not broadcast, arrays on different devices, or an integer `x1` with a negative int as `x2`.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, power};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1.0, 4.0, 9.0])?;
/// assert_eq!(power(&a, 0.5)?.to_vec::<f64>()?, [1.0, 2.0, 3.0]);
/// assert_eq!(power(2, &a)?.to_vec::<f64>()?, [2.0, 16.0, 512.0]);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "pow")]
#[numpy(
    "power(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)",
    aliases("pow"),
    differs = "integers to negative powers in an array truncate `1 / x**n`"
)]
pub fn power(x1: impl Into<Operand>, x2: impl Into<Operand>) -> Result<NdArray> {
    let (base, exponent) = (x1.into(), x2.into());
    reject_negative_integer_power(&base, &exponent)?;
    if let Operand::Scalar(number) = exponent
        && let Some(exact) = try_power_by_special_exponent(&base, number)?
    {
        return Ok(exact);
    }
    elementwise_consuming_args(POWER, &mut [base, exponent])
}

/// Computes the power for exponents that need no power function, such as 2. Returns `None` for other exponents. As in NumPy's loops, the
/// exponent is first converted to the promoted dtype.
fn try_power_by_special_exponent(base: &Operand, exponent: Scalar) -> Result<Option<NdArray>> {
    if let Operand::Scalar(_) = base {
        check_weak_ints(POWER.name(), TypeRule::PromoteNumber, &[base.clone(), Operand::Scalar(exponent)])?;
    }
    let dtype = result_type(&[base.argument_type(), Operand::Scalar(exponent).argument_type()]);
    let exponent = match (dtype.kind(), exponent) {
        (Kind::Float, _) => Scalar::from_bytes(dtype, &exponent.to_bytes(dtype)).as_f64(),
        (Kind::Signed | Kind::Unsigned, Scalar::Int(n @ 1..=2)) => n as f64,
        _ => return Ok(None),
    };
    let x = || match base {
        Operand::Array(a) => a.astype(dtype),
        Operand::Scalar(s) => NdArray::scalar_as(s.check_fits_dtype(POWER.name(), dtype)?, dtype),
    };
    Ok(Some(match exponent {
        -1.0 => reciprocal(&x()?)?,
        0.5 if matches!(dtype, DType::F32 | DType::F64) => sqrt(&x()?)?,
        1.0 => x()?,
        2.0 => square(&x()?)?,
        _ => return Ok(None),
    }))
}

/// Rejects a negative int as the exponent of integers, as NumPy does.
///
/// Array exponents are not checked, since that would wait for the device; kernels return `1 / x1**|x2|`, truncated.
fn reject_negative_integer_power(base: &Operand, exponent: &Operand) -> Result<()> {
    let integral = match base {
        Operand::Array(a) => matches!(a.dtype().kind(), Kind::Signed | Kind::Unsigned | Kind::Bool),
        Operand::Scalar(s) => matches!(s, Scalar::Int(_) | Scalar::Bool(_)),
    };
    match exponent {
        Operand::Scalar(Scalar::Int(v)) if integral && *v < 0 => {
            Err(Error::value("power", "integers to negative integer powers are not allowed; make one side floating"))
        }
        _ => Ok(()),
    }
}

/// # Powers
#[free_functions]
impl NdArray {
    /// `self ** exponent`, as NumPy's operator computes it (`numpy.ndarray.__pow__`).
    ///
    /// Three exponents have their own functions: [`square`] for the integer 2, and for floating and complex arrays [`reciprocal`] for the
    /// integer -1 and [`sqrt`] for 0.5. Thus bool to the power of 2 is int8, and complex square roots have no rounding errors of a power
    /// function. Other exponents use [`power()`].
    ///
    /// # Errors
    /// The errors of [`power()`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{Complex, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[Complex::new(-4.0, 0.0)])?;
    /// assert_eq!(a.power(0.5)?.to_vec::<Complex<f64>>()?, [Complex::new(0.0, 2.0)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn power(&self, exponent: impl Into<Operand>) -> Result<NdArray> {
        let exponent = exponent.into();
        match exponent {
            Operand::Scalar(Scalar::Int(2)) => square(self),
            Operand::Scalar(Scalar::Int(-1)) if self.dtype().is_inexact() => reciprocal(self),
            Operand::Scalar(Scalar::Float(y)) if y == 0.5 && self.dtype().is_inexact() => sqrt(self),
            exponent => power(self, exponent),
        }
    }
}
