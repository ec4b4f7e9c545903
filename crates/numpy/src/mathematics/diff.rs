//! Differences of neighbours: `diff` and `ediff1d`.

use cuprum_core::layout::normalize_axis;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Error, NdArray, Operand, Result, broadcast_to, concat, not_equal, numpy, subtract};

use crate::operand_and_slice_helpers::{operand_to_array, slice_axis};

/// Returns `value` as an array that [`concat`] can join to `a` along `axis`. A 0-d value becomes one slice.
fn as_joinable_array(name: &'static str, a: &NdArray, value: &Operand, axis: usize) -> Result<NdArray> {
    let value = operand_to_array(name, a.device(), value)?;
    if value.ndim() > 0 {
        return Ok(value);
    }
    let mut shape = a.shape().to_vec();
    shape[axis] = 1;
    broadcast_to(&value, shape)
}

fn diff_from_args(args: &Args) -> Result<Value> {
    diff(
        &args.array("a")?,
        args.int_or("n", 1)?,
        args.int_or("axis", -1)?,
        args.operand_or_none("prepend")?,
        args.operand_or_none("append")?,
    )
    .map(Value::Array)
}

/// Returns the `n`-th difference of neighbours along an axis (`numpy.diff`).
///
/// `prepend` and `append` are joined to the array first; a number becomes one slice. For bool, the difference is whether the neighbours
/// differ. The result is deferred.
///
/// Passes over memory: one for each order, and one for the join if there is something to join.
///
/// # Errors
/// A negative order, a 0-d array, an axis out of bounds, or extents that differ.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1, 4, 9, 16])?;
/// assert_eq!(cuprum::diff(&a, 1, -1, None, None)?.to_vec::<i32>()?, [3, 5, 7]);
/// assert_eq!(cuprum::diff(&a, 2, -1, None, None)?.to_vec::<i32>()?, [2, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("diff(a, n=1, axis=-1, prepend=None, append=None)", call = diff_from_args)]
pub fn diff(a: &NdArray, n: isize, axis: isize, prepend: Option<Operand>, append: Option<Operand>) -> Result<NdArray> {
    let name = "diff";
    if n == 0 {
        return Ok(a.clone());
    }
    if n < 0 {
        return Err(Error::value(name, format!("order must be non-negative but got {n}")));
    }
    if a.ndim() == 0 {
        return Err(Error::value(name, "diff requires input that is at least one dimensional"));
    }
    let axis = normalize_axis(name, axis, a.ndim())?;
    let mut parts = Vec::with_capacity(3);
    if let Some(value) = &prepend {
        parts.push(as_joinable_array(name, a, value, axis)?);
    }
    parts.push(a.clone());
    if let Some(value) = &append {
        parts.push(as_joinable_array(name, a, value, axis)?);
    }
    let mut a = if parts.len() > 1 { concat(&parts, axis as isize)? } else { a.clone() };
    for _ in 0..n {
        if a.shape()[axis] == 0 {
            break; // further differences are empty too
        }
        let (before, after) = (slice_axis(&a, axis, None, -1, 1)?, slice_axis(&a, axis, 1, None, 1)?);
        a = if a.dtype() == DType::Bool { not_equal(&after, &before)? } else { subtract(&after, &before)? };
    }
    Ok(a)
}

/// Returns the differences of neighbours in the flattened array, between `to_begin` and `to_end` (`numpy.ediff1d`).
///
/// The result has the dtype of the array.
///
/// Passes over memory: one, and one for the join if there is something to join.
///
/// # Errors
/// A bool array, or a `to_begin` or `to_end` whose dtype NumPy's rule `same_kind` does not convert to that of the array.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, ediff1d};
/// # fn main() -> cuprum::Result<()> {
/// let a = array![1, 4, 9];
/// assert_eq!(ediff1d(&a, None, None)?, array![3, 5]);
/// assert_eq!(ediff1d(&a, Some(7.into()), None)?, array![3, 5, 7]);
/// # Ok(())
/// # }
/// ```
#[numpy("ediff1d(ary, to_end=None, to_begin=None)", call = ediff1d_from_args)]
pub fn ediff1d(ary: &NdArray, to_end: Option<Operand>, to_begin: Option<Operand>) -> Result<NdArray> {
    let name = "ediff1d";
    let flat = ary.ravel()?;
    let differences = subtract(slice_axis(&flat, 0, 1, None, 1)?, slice_axis(&flat, 0, None, -1, 1)?)?;
    if to_end.is_none() && to_begin.is_none() {
        return Ok(differences);
    }
    let side = |operand: Option<Operand>, which: &str| {
        let Some(operand) = operand else { return Ok(None) };
        let value = operand_to_array(name, ary.device(), &operand)?;
        if !value.dtype().can_cast_same_kind(ary.dtype()) {
            let message = format!("dtype of `{which}` must be compatible with input `ary` under the `same_kind` rule.");
            return Err(Error::dtype(name, message, &[value.dtype(), ary.dtype()]));
        }
        value.astype(ary.dtype())?.ravel().map(Some)
    };
    let parts: Vec<NdArray> = [side(to_begin, "to_begin")?, Some(differences), side(to_end, "to_end")?].into_iter().flatten().collect();
    concat(&parts, 0)
}

fn ediff1d_from_args(args: &Args) -> Result<Value> {
    ediff1d(&args.array("ary")?, args.operand_or_none("to_end")?, args.operand_or_none("to_begin")?).map(Value::Array)
}
