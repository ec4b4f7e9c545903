//! Functions that ignore NaN: compositions of fused reductions. `nanmin` and `nanmax` are reductions of the crate `cuprum_core`.

use cuprum_core::function::FromArgs;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    AxisOption, AxisOptions, Complex, DType, Error, NdArray, Result, Scalar, add, divide, isnan, less_equal, logical_not, numpy, subtract,
    where_,
};

/// The options that [`nansum`] and [`nanprod`] accept.
const NAN_SUM_OPTIONS: [AxisOption; 4] = [AxisOption::KeepDims, AxisOption::DType, AxisOption::Initial, AxisOption::Where];

/// Replaces NaN by `value`. Integers and bool have no NaN.
fn replace_nan(a: &NdArray, value: impl Into<Scalar>) -> Result<NdArray> {
    if a.dtype().is_inexact() { where_(isnan(a)?, value.into(), a) } else { Ok(a.clone()) }
}

/// Returns the sum of the elements that are not NaN (`numpy.nansum`); 0 if there are none. The dtypes are the same as for [`NdArray::sum`].
///
/// Passes over memory: one fused reduction.
///
/// # Errors
/// The errors of [`NdArray::sum`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::NdArray::from_slice(&[1.0, f64::NAN, 2.0])?;
/// assert_eq!(cuprum::nansum(&a, ())?.item()?, 3.0);
/// # Ok(())
/// # }
/// ```
#[numpy("nansum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True)")]
pub fn nansum(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    replace_nan(a, 0)?.sum(over.into().check_accepted_options("nansum", &NAN_SUM_OPTIONS)?)
}

/// Returns the product of the elements that are not NaN (`numpy.nanprod`); 1 if there are none. The dtypes are the same as for
/// [`NdArray::prod`].
///
/// Passes over memory: one fused reduction.
///
/// # Errors
/// The errors of [`NdArray::prod`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[3.0, f64::NAN, 2.0])?;
/// assert_eq!(cuprum::nanprod(&a, ())?.item()?, 6.0);
/// # Ok(())
/// # }
/// ```
#[numpy("nanprod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True)")]
pub fn nanprod(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    replace_nan(a, 1)?.prod(over.into().check_accepted_options("nanprod", &NAN_SUM_OPTIONS)?)
}

/// Returns the running sum in which NaN counts as 0 (`numpy.nancumsum`). The dtypes are the same as for [`NdArray::cumsum`].
///
/// Passes over memory: one fused scan.
///
/// # Errors
/// The errors of [`NdArray::cumsum`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, nancumsum};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(nancumsum(&array![1.0, f64::NAN, 2.0], ())?, array![1.0, 1.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("nancumsum(a, axis=None, dtype=None, out=None)")]
pub fn nancumsum(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    replace_nan(a, 0)?.cumsum(over)
}

/// Returns the running product in which NaN counts as 1 (`numpy.nancumprod`). The dtypes are the same as for [`NdArray::cumprod`].
///
/// Passes over memory: one fused scan.
///
/// # Errors
/// The errors of [`NdArray::cumprod`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, nancumprod};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(nancumprod(&array![2.0, f64::NAN, 3.0], ())?, array![2.0, 2.0, 6.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("nancumprod(a, axis=None, dtype=None, out=None)")]
pub fn nancumprod(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    replace_nan(a, 1)?.cumprod(over)
}

/// Returns an error if `dtype` is an integer or bool although the array is floating-point or complex.
fn check_inexact_dtype(op: &'static str, a: &NdArray, dtype: Option<DType>) -> Result<()> {
    match dtype {
        Some(dtype) if a.dtype().is_inexact() && !dtype.is_inexact() => {
            Err(Error::dtype(op, "If a is inexact, then dtype must be inexact", &[a.dtype(), dtype]))
        }
        _ => Ok(()),
    }
}

fn nanmean_from_args(args: &Args) -> Result<Value> {
    let (a, over) = (args.array("a")?, AxisOptions::from_args(args, "axis")?);
    check_inexact_dtype("nanmean", &a, args.dtype("dtype")?)?;
    nanmean(&a, over).map(Value::Array)
}

/// Largest number of elements that a float32 sum of ones counts exactly.
const MAX_EXACT_F32_COUNT: usize = 1 << 24;

/// Returns the sum of the elements that are not NaN, and their number. `over` has the options of [`NdArray::sum`]. For more than
/// [`MAX_EXACT_F32_COUNT`] elements of float32, the sum is float64, so that the caller rounds only the quotient.
///
/// For float32 and float64, one pass over memory computes both results as one complex sum. Each element that is not NaN becomes a complex
/// number with imaginary part 1, so the imaginary part of the sum is the number of elements.
fn sum_and_count_without_nan(a: &NdArray, over: &AxisOptions) -> Result<(NdArray, NdArray)> {
    let is_nan = isnan(a)?;
    if matches!(a.dtype(), DType::F32 | DType::F64) && over.requested_dtype().is_none() {
        // A complex64 sum counts the elements in float32, so larger arrays are summed in complex128.
        let wide = if a.size() <= MAX_EXACT_F32_COUNT { a.clone() } else { a.astype(DType::F64)? };
        let pairs = where_(is_nan, 0, add(wide, Scalar::from(Complex::<f64>::I))?)?.sum(over.clone())?;
        return Ok((pairs.real()?, pairs.imag()?));
    }
    let sum = replace_nan(a, 0)?.sum(over.clone())?;
    Ok((sum, logical_not(is_nan)?.sum(over.clone().dtype(DType::I64))?))
}

/// Returns the mean of the elements that are not NaN (`numpy.nanmean`); NaN if there are none. The dtypes are the same as for
/// [`NdArray::mean`].
///
/// Passes over memory: one fused reduction for float32 and float64, which sums complex numbers whose imaginary parts count the elements.
/// More than 2^24 elements of float32 are added in float64. Integers take one reduction. 16-bit floats, complex numbers and calls with a
/// dtype take two reductions: the sum, and the number of elements.
///
/// # Errors
/// The errors of [`NdArray::mean`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::NdArray::from_slice(&[1.0, f64::NAN, 2.0])?;
/// assert_eq!(cuprum::nanmean(&a, ())?.item()?, 1.5);
/// # Ok(())
/// # }
/// ```
#[numpy("nanmean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True)", call = nanmean_from_args)]
pub fn nanmean(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    let over = over.into().check_accepted_options("nanmean", &[AxisOption::KeepDims, AxisOption::DType, AxisOption::Where])?;
    if !a.dtype().is_inexact() {
        return a.mean(over);
    }
    let (sum, count) = sum_and_count_without_nan(a, &over)?;
    let dtype = over.requested_dtype().unwrap_or(a.dtype());
    divide(sum, count)?.astype(dtype)
}

/// Returns the variance of the elements that are not NaN (`numpy.nanvar`); NaN if their number is at most `correction`.
///
/// The dtypes are the same as for [`NdArray::var`].
///
/// Passes over memory: those of [`nanmean`], and a fused reduction of the squared distances. For integers, the passes of [`NdArray::var`].
///
/// # Errors
/// The errors of [`NdArray::var`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, nanvar};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(nanvar(&array![1.0, f64::NAN, 3.0], ())?.item()?, 1.0);
/// # Ok(())
/// # }
/// ```
#[numpy("nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, correction=None, where=True)", call = nanvar_from_args)]
pub fn nanvar(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    let over = over
        .into()
        .check_accepted_options("nanvar", &[AxisOption::KeepDims, AxisOption::DType, AxisOption::Correction, AxisOption::Where])?;
    if !a.dtype().is_inexact() {
        return a.var(over);
    }
    let (correction, dtype) = (over.requested_correction(), over.requested_dtype());
    let with = |over: AxisOptions, dtype: Option<DType>| if let Some(dtype) = dtype { over.dtype(dtype) } else { over };
    let over = match over.mask() {
        Some(mask) => over.only_axes_and_keepdims().only_where(mask),
        None => over.only_axes_and_keepdims(),
    };
    let is_nan = isnan(a)?;
    let (sum, count) = sum_and_count_without_nan(a, &with(over.clone().keepdims(), dtype))?;
    let mean = divide(&sum, &count)?.astype(sum.dtype())?.eval()?.clone();
    // `false` is a weak scalar: it adopts the dtype of the array.
    let distance = where_(&is_nan, false, subtract(a, &mean)?.astype(a.dtype())?)?;
    let squares = match a.dtype().is_complex() {
        true => add(distance.real()?.square()?, distance.imag()?.square()?)?,
        false => distance.square()?,
    };
    let sum = squares.sum(with(over, dtype))?;
    let freedom = subtract(count.reshape(sum.shape())?.astype(DType::F64)?, correction)?;
    let dtype = sum.dtype();
    let variance = divide(sum, &freedom)?.astype(dtype)?;
    where_(less_equal(&freedom, 0)?, f64::NAN, variance)
}

fn nanvar_from_args(args: &Args) -> Result<Value> {
    let (a, over) = (args.array("a")?, AxisOptions::from_args(args, "axis")?);
    check_inexact_dtype("nanvar", &a, args.dtype("dtype")?)?;
    nanvar(&a, over).map(Value::Array)
}

fn nanstd_from_args(args: &Args) -> Result<Value> {
    let (a, over) = (args.array("a")?, AxisOptions::from_args(args, "axis")?);
    check_inexact_dtype("nanstd", &a, args.dtype("dtype")?)?;
    nanstd(&a, over).map(Value::Array)
}

/// Returns the standard deviation of the elements that are not NaN, the square root of [`nanvar`] (`numpy.nanstd`).
///
/// Passes over memory: those of [`nanvar`].
///
/// # Errors
/// The errors of [`NdArray::var`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, nanstd};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(nanstd(&array![1.0, f64::NAN, 5.0], ())?.item()?, 2.0);
/// # Ok(())
/// # }
/// ```
#[numpy("nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, correction=None, where=True)", call = nanstd_from_args)]
pub fn nanstd(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    if a.dtype().is_inexact() { nanvar(a, over)?.sqrt() } else { a.std(over) }
}

/// Returns the result of `arg` (argmin or argmax) on the array with NaN replaced by `worst`: infinity for argmin, minus infinity for
/// argmax. Returns an error if all elements of a 1-D slice are NaN.
fn nan_argmin_or_argmax(
    op: &'static str,
    a: &NdArray,
    over: AxisOptions,
    worst: f64,
    arg: fn(&NdArray, AxisOptions) -> Result<NdArray>,
) -> Result<NdArray> {
    if !a.dtype().is_inexact() {
        return arg(a, over);
    }
    if a.size() > 0 && isnan(a)?.all(over.clone())?.any(())?.item()?.as_bool() {
        return Err(Error::value(op, "All-NaN slice encountered"));
    }
    arg(&replace_nan(a, worst)?, over)
}

/// Returns the int64 index of the first smallest element that is not NaN, along one axis or in the flattened array (`numpy.nanargmin`).
///
/// Passes over memory: one fused reduction, and a test for 1-D slices that hold only NaN. The call waits for the device.
///
/// # Errors
/// A 1-D slice along the axis that holds only NaN, and the errors of [`NdArray::argmin`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, nanargmin};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(nanargmin(&array![f64::NAN, 2.0, 1.0], ())?.item()?, 2);
/// # Ok(())
/// # }
/// ```
#[numpy("nanargmin(a, axis=None, out=None, *, keepdims=False)")]
pub fn nanargmin(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    nan_argmin_or_argmax("nanargmin", a, over.into(), f64::INFINITY, |a, over| a.argmin(over))
}

/// Returns the int64 index of the first largest element that is not NaN, along one axis or in the flattened array (`numpy.nanargmax`).
///
/// Passes over memory: one fused reduction, and a test for 1-D slices that hold only NaN. The call waits for the device.
///
/// # Errors
/// A 1-D slice along the axis that holds only NaN, and the errors of [`NdArray::argmax`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, nanargmax};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(nanargmax(&array![f64::NAN, 2.0, 1.0], ())?.item()?, 1);
/// # Ok(())
/// # }
/// ```
#[numpy("nanargmax(a, axis=None, out=None, *, keepdims=False)")]
pub fn nanargmax(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    nan_argmin_or_argmax("nanargmax", a, over.into(), f64::NEG_INFINITY, |a, over| a.argmax(over))
}
