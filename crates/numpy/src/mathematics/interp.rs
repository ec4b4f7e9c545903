//! Linear interpolation: `interp`.

use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    DType, Error, Item, NdArray, Operand, Result, Scalar, Side, add, broadcast_to, clip, concat, divide, equal, greater, imag, isnan, less,
    logical_and, multiply, numpy, real, remainder, stack, subtract, where_,
};

use crate::operand_and_slice_helpers::{operand_to_inexact_array, result_dtype, slice_axis};

fn interp_from_args(args: &Args) -> Result<Value> {
    let (x, xp, fp) = (args.array("x")?, args.array("xp")?, args.array("fp")?);
    let period = args.get("period").map(|_| args.scalar("period")).transpose()?.map(Scalar::as_f64);
    interp(&x, &xp, &fp, args.operand_or_none("left")?, args.operand_or_none("right")?, period).map(Value::Array)
}

/// Returns the linear interpolation at `x` between the points `(xp, fp)` (`numpy.interp`).
///
/// `xp` is 1-D and increases. The results for `x` before and after `xp` are `left` and `right`, by default the first and the last element
/// of `fp`. With a `period`, the points repeat and need not be sorted, and `left` and `right` are ignored. The result is float64, or
/// complex128 if `fp` is complex.
///
/// Real and imaginary parts of a complex `fp` are interpolated separately.
///
/// Passes over memory: a binary search, gathers of the neighbouring points, and one pass that interpolates. Where the device fuses `take`,
/// the gathers are part of the last pass.
///
/// # Errors
/// Points that are not 1-D or of different lengths, no points, a complex `left` or `right` for real points, a period of 0, or arrays
/// on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let (xp, fp) = (NdArray::from_slice(&[1.0, 2.0, 4.0])?, NdArray::from_slice(&[10.0, 20.0, 0.0])?);
/// let x = NdArray::from_slice(&[1.5, 3.0, 9.0])?;
/// assert_eq!(cuprum::interp(&x, &xp, &fp, None, None, None)?.to_vec::<f64>()?, [15.0, 10.0, 0.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("interp(x, xp, fp, left=None, right=None, period=None)", call = interp_from_args)]
pub fn interp(
    x: &NdArray,
    xp: &NdArray,
    fp: &NdArray,
    left: Option<Operand>,
    right: Option<Operand>,
    period: impl Into<Option<f64>>,
) -> Result<NdArray> {
    let name = "interp";
    if x.dtype().is_complex() || xp.dtype().is_complex() {
        return Err(Error::dtype(name, "Cannot cast array data from complex to float64", &[x.dtype(), xp.dtype()]));
    }
    let dtype = if fp.dtype().is_complex() { DType::C128 } else { DType::F64 };
    let (mut x, mut xp, mut fp) = (x.astype(DType::F64)?, xp.astype(DType::F64)?, fp.astype(dtype)?);
    if xp.ndim() != 1 || fp.ndim() != 1 {
        return Err(Error::shape(name, "Data points must be 1-D sequences", &[xp.shape(), fp.shape()]));
    }
    if xp.size() != fp.size() {
        return Err(Error::shape(name, "fp and xp are not of the same length.", &[xp.shape(), fp.shape()]));
    }
    let n = xp.size();
    if n == 0 {
        return Err(Error::shape(name, "array of sample points is empty", &[xp.shape()]));
    }
    let (mut left, mut right) = (left, right);
    if let Some(period) = period.into() {
        if period == 0.0 {
            return Err(Error::value(name, "period must be a non-zero value"));
        }
        let period = period.abs();
        (left, right) = (None, None);
        (x, xp) = (remainder(&x, period)?, remainder(&xp, period)?);
        let order = xp.argsort(0)?;
        (xp, fp) = (xp.take(&order, 0)?, fp.take(&order, 0)?);
        let end = |a: &NdArray, n: isize| slice_axis(a, 0, n, if n == -1 { None } else { Some(n + 1) }, 1);
        xp = concat(&[subtract(end(&xp, -1)?, period)?, xp.clone(), add(end(&xp, 0)?, period)?], 0)?;
        fp = concat(&[end(&fp, -1)?, fp.clone(), end(&fp, 0)?], 0)?;
    }
    let n = xp.size();
    let ends = |operand: Option<Operand>, default: isize| match operand {
        Some(operand) if result_dtype([&operand]).is_complex() && !dtype.is_complex() => {
            Err(Error::dtype(name, "left and right must be real if fp is real", &[fp.dtype()]))
        }
        Some(operand) => operand_to_inexact_array(fp.device(), &operand, dtype),
        None => fp.index(&[Item::At(default)]),
    };
    let (left, right) = (ends(left, 0)?, ends(right, -1)?);
    let (first, last) = (xp.index(&[Item::At(0)])?, xp.index(&[Item::At(-1)])?);
    let middle = if n == 1 {
        broadcast_to(&fp.index(&[Item::At(0)])?, x.shape())?
    } else {
        let lower = clip(subtract(xp.searchsorted(&x, Side::Right)?, 1)?, Some(0.into()), Some((n - 2).into()))?;
        let upper = add(&lower, 1)?;
        let (x0, x1) = (xp.take(&lower, 0)?, xp.take(&upper, 0)?);
        let interpolate = |fp: &NdArray| -> Result<NdArray> {
            let (y0, y1) = (fp.take(&lower, 0)?, fp.take(&upper, 0)?);
            let slope = divide(subtract(&y1, &y0)?, subtract(&x1, &x0)?)?;
            let value = add(multiply(&slope, subtract(&x, &x0)?)?, &y0)?;
            // As in NumPy, a result that is NaN because of infinite points is computed again from the upper point. If the second result is NaN too and
            // both points have equal values, the result is their value.
            let other = add(multiply(&slope, subtract(&x, &x1)?)?, &y1)?;
            let other = where_(logical_and(isnan(&other)?, equal(&y0, &y1)?)?, &y0, &other)?;
            let value = where_(isnan(&value)?, &other, &value)?;
            let value = where_(equal(&x, &x0)?, &y0, &value)?;
            where_(equal(&x, &last)?, fp.index(&[Item::At(-1)])?, value)
        };
        // Multiplication by the imaginary unit would mix infinite real and imaginary parts, so the interpolated parts are stored side by
        // side.
        let value = match dtype.is_complex() {
            true => stack(&[interpolate(&real(&fp)?)?, interpolate(&imag(&fp)?)?], -1)?.view_as(dtype)?.reshape(x.shape())?,
            false => interpolate(&fp)?,
        };
        where_(isnan(&x)?, &x, value)?
    };
    let result = where_(less(&x, &first)?, left, middle)?;
    where_(greater(&x, &last)?, right, result)
}
