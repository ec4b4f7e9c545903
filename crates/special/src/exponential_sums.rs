//! Functions composed of other array operations: `logsumexp`, `softmax`, `cbrt`, `sinc`.

use cuprum_core::device::with_device;
use cuprum_core::function::{FromArgs, IntoValue};
use cuprum_core::{
    Args, AxisOptions, DType, Error, NdArray, Operand, Result, Value, abs, add, divide, equal, exp, isfinite, log, log1p, multiply, numpy,
    sign, subtract, where_,
};
use cuprum_macros::kernel;

kernel! {
    /// Returns the cube root (`scipy.special.cbrt`), elementwise.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::cbrt(8.0)?.item()?, 2.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.cbrt(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn cbrt<T: Double>(x: T) -> T {
        x.cbrt()
    }
}

/// Returns `sin(pi * x) / (pi * x)`, and 1 at 0 (`scipy.special.sinc`, `numpy.sinc`), elementwise.
///
/// # Errors
/// The errors of [`cuprum_numpy::sinc`].
///
/// # Examples
/// ```
/// # fn main() -> cuprum_core::Result<()> {
/// assert_eq!(cuprum_special::sinc(0.0)?.item()?, 1.0);
/// # Ok(())
/// # }
/// ```
#[numpy("special.sinc(x)")]
pub fn sinc(x: impl Into<Operand>) -> Result<NdArray> {
    cuprum_numpy::sinc(x)
}

/// Returns `a` as a float array. Integers are converted to the dtype `integers`. Complex numbers are an error.
fn to_real_float_array(name: &'static str, a: &NdArray, integers: DType) -> Result<NdArray> {
    match a.dtype() {
        dtype if dtype.is_complex() => Err(Error::dtype(name, "takes real numbers", &[dtype])),
        dtype if dtype.is_inexact() => Ok(a.clone()),
        _ => a.astype(integers),
    }
}

/// Returns the maximum over the axes `over`, which are kept with length 1. A maximum that is not finite, or of
/// no elements, becomes 0.
fn maximum_or_zero_if_infinite(a: &NdArray, over: &AxisOptions) -> Result<NdArray> {
    if a.size() == 0 {
        return a.sum(over.clone().keepdims());
    }
    let top = a.max(over.clone().keepdims())?;
    where_(isfinite(&top)?, &top, 0)
}

/// Returns `log(sum(b * exp(a)))` over axes, and the sign of the sum (`scipy.special.logsumexp` with `return_sign=True`).
///
/// Where the sum is zero, the result is -inf and the sign is 0. The input is read at most three times.
///
/// # Errors
/// Complex numbers, shapes that do not broadcast, and axes out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_core::NdArray;
/// # fn main() -> cuprum_core::Result<()> {
/// let a = NdArray::from_slice(&[0.0, 0.0, 0.0])?;
/// let b = NdArray::from_slice(&[1.0, -1.0, -1.0])?;
/// let (log, sign) = cuprum_special::logsumexp_with_sign(&a, (), Some(&b))?;
/// assert_eq!((log.item()?, sign.item()?), (0.0.into(), (-1.0).into()));
/// # Ok(())
/// # }
/// ```
pub fn logsumexp_with_sign(a: &NdArray, over: impl Into<AxisOptions>, b: Option<&NdArray>) -> Result<(NdArray, NdArray)> {
    let (name, over) = ("logsumexp", over.into());
    let Some(b) = b else {
        let a = to_real_float_array(name, a, DType::F64)?;
        let result = log_of_exponential_sum(&a, &over)?;
        // A sum of exponentials is never negative, so its sign is 1, or 0 where the logarithm is -inf. NaN stays NaN.
        let positive = where_(equal(&result, f64::NEG_INFINITY)?, 0, where_(cuprum_core::isnan(&result)?, &result, 1)?)?;
        return Ok((result.clone(), positive.astype(result.dtype())?));
    };
    let promoted = a.dtype().promote(b.dtype());
    if promoted.is_complex() {
        return Err(Error::dtype(name, "takes real numbers", &[a.dtype(), b.dtype()]));
    }
    let dtype = if promoted.is_inexact() { promoted } else { DType::F64 };
    let (a, b) = (a.astype(dtype)?, b.astype(dtype)?);
    // A term whose factor in `b` is 0 is ignored, even if its `a` is infinite.
    let counted = where_(equal(&b, 0)?, f64::NEG_INFINITY, a)?;
    let top = maximum_or_zero_if_infinite(&counted, &over)?;
    let sum = multiply(&b, exp(subtract(&counted, &top)?)?)?.sum(over.clone().keepdims())?;
    let result = add(log(abs(&sum)?)?, &top)?;
    let kept = |a: &NdArray| a.sum(over.clone()); // the sum over axes of length 1 removes them
    Ok((kept(&result)?, kept(&sign(&sum)?)?))
}

/// Returns `log(sum(exp(a)))` over axes. The largest term is added last, by `log1p`, so that sums near 1 keep their digits.
fn log_of_exponential_sum(a: &NdArray, over: &AxisOptions) -> Result<NdArray> {
    let top = maximum_or_zero_if_infinite(a, over)?;
    let kept = over.clone().keepdims();
    let is_top = equal(a, &top)?;
    let count = is_top.astype(a.dtype())?.sum(kept.clone())?;
    let rest = where_(&is_top, 0, exp(subtract(a, &top)?)?)?.sum(kept)?;
    // `top` is the maximum, or 0 if the maximum is infinite or NaN. In the latter case possibly no term equals `top`, and the sum is `rest`
    // alone.
    let none = equal(&count, 0)?;
    let some = where_(&none, 1, &count)?;
    let sums = where_(&none, log(&rest)?, add(add(log1p(divide(&rest, &some)?)?, log(&some)?)?, &top)?)?;
    sums.sum(over.clone())
}

/// Returns `log(sum(b * exp(a)))` over axes, without overflow (`scipy.special.logsumexp`); b is 1 by default.
///
/// A negative sum gives NaN; [`logsumexp_with_sign`] returns the sign. Results for integers are float64. The input is read at most three
/// times.
///
/// # Errors
/// Complex numbers, shapes that do not broadcast, and axes out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_core::NdArray;
/// # fn main() -> cuprum_core::Result<()> {
/// let a = NdArray::from_slice(&[1000.0, f64::NEG_INFINITY])?;
/// assert_eq!(cuprum_special::logsumexp(&a, (), None)?.item()?, 1000.0);
/// # Ok(())
/// # }
/// ```
#[numpy("special.logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False)", call = logsumexp_from_args)]
pub fn logsumexp(a: &NdArray, #[name("axis")] over: impl Into<AxisOptions>, b: Option<&NdArray>) -> Result<NdArray> {
    let (result, sign) = logsumexp_with_sign(a, over, b)?;
    if b.is_none() { Ok(result) } else { where_(cuprum_core::less(sign, 0)?, f64::NAN, result) }
}

fn logsumexp_from_args(args: &Args) -> Result<Value> {
    let a = NdArray::from_args(args, "a")?;
    let over = AxisOptions::from_args(args, "axis")?;
    // If `b` is a Python number, it takes the dtype of `a`.
    let b = match args.operand_or_none("b")? {
        Some(Operand::Scalar(b)) if a.dtype().is_inexact() => {
            Some(with_device(a.device(), || NdArray::scalar_as(b, b.weak_promote(a.dtype())))?)
        }
        Some(Operand::Scalar(b)) => Some(with_device(a.device(), || NdArray::scalar(b))?),
        Some(Operand::Array(b)) => Some(b),
        None => None,
    };
    if bool::from_args(args, "return_sign")? {
        return Ok(logsumexp_with_sign(&a, over, b.as_ref())?.into_value());
    }
    Ok(logsumexp(&a, over, b.as_ref())?.into_value())
}

/// Returns `exp(x) / sum(exp(x))` over axes (`scipy.special.softmax`).
///
/// Results for integers have the dtype that [`exp`] returns for them. Over the last axis, the computation makes one pass over memory.
///
/// # Errors
/// Complex numbers, and axes out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_core::NdArray;
/// # fn main() -> cuprum_core::Result<()> {
/// let x = NdArray::from_slice(&[1000.0, 1000.0])?;
/// assert_eq!(cuprum_special::softmax(&x, ())?.to_vec::<f64>()?, [0.5, 0.5]);
/// # Ok(())
/// # }
/// ```
#[numpy("special.softmax(x, axis=None)")]
pub fn softmax(x: &NdArray, #[name("axis")] over: impl Into<AxisOptions>) -> Result<NdArray> {
    let (x, over) = (to_real_float_array("softmax", x, x.dtype().to_inexact())?, over.into().keepdims());
    let terms = exp(subtract(&x, x.max(over.clone())?)?)?;
    divide(&terms, terms.sum(over)?)
}

/// Returns the logarithm of [`softmax`] (`scipy.special.log_softmax`).
///
/// Results for integers have the dtype that [`exp`] returns for them. Over the last axis, the computation makes one pass over memory.
///
/// # Errors
/// Complex numbers, and axes out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_core::NdArray;
/// # fn main() -> cuprum_core::Result<()> {
/// let x = NdArray::from_slice(&[0.0, -2000.0])?;
/// assert_eq!(cuprum_special::log_softmax(&x, ())?.to_vec::<f64>()?, [0.0, -2000.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("special.log_softmax(x, axis=None)")]
pub fn log_softmax(x: &NdArray, #[name("axis")] over: impl Into<AxisOptions>) -> Result<NdArray> {
    let (x, over) = (to_real_float_array("log_softmax", x, x.dtype().to_inexact())?, over.into().keepdims());
    let shifted = subtract(&x, maximum_or_zero_if_infinite(&x, &over)?)?;
    let sum = exp(&shifted)?.sum(over)?;
    subtract(shifted, log(sum)?)
}
