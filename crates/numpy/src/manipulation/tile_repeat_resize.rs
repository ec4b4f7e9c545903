//! Arrays that repeat their elements: `tile`, `repeat`, `resize`.

use cuprum_core::layout::{checked_size, normalize_axis};
use cuprum_core::ops::python_value::Value;
use cuprum_core::{DType, Error, IntoShape, Item, NdArray, Operand, Result, Scalar, Side, broadcast_to, numpy};

use crate::operand_and_slice_helpers::{check_indices_cast_safely, index_range, new_filled_array, slice_axis, with_at_least_ndim};

/// Returns the array repeated `reps[i]` times along each axis `i` (`numpy.tile`).
///
/// The shorter of `reps` and the shape is extended by leading ones.
///
/// Passes over memory: one, which writes the result. Nothing is copied if all `reps` are 1.
///
/// # Errors
/// A result whose size overflows, or too many axes.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1, 2])?;
/// assert_eq!(cuprum::tile(&a, [2, 2])?.to_vec::<i32>()?, [1, 2, 1, 2, 1, 2, 1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("tile(A, reps)", call = |args| tile(&args.array("A")?, args.shape("reps")?).map(Value::Array))]
pub fn tile(a: &NdArray, reps: impl IntoShape) -> Result<NdArray> {
    let mut reps = reps.into_shape();
    let a = with_at_least_ndim(a, reps.len())?;
    let leading = a.ndim() - reps.len();
    reps.insert_many(0, std::iter::repeat_n(1, leading));
    let extents = reps.iter().zip(a.shape()).map(|(&count, &extent)| extent.checked_mul(count));
    let shape: Option<Vec<usize>> = extents.collect();
    let shape = shape.ok_or_else(|| Error::shape("tile", "the result is too large", &[a.shape(), &reps]))?;
    checked_size("tile", &shape)?;
    repeat_along_axes(&a, &reps, shape, Repetition::Axis)
}

/// The unit that [`repeat_along_axes`] repeats.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repetition {
    /// All slices along the axis, one after another, as in `numpy.tile`: `[0, 1]` becomes `[0, 1, 0, 1]`.
    Axis,
    /// Each slice by itself, as in `numpy.repeat`: `[0, 1]` becomes `[0, 0, 1, 1]`.
    Slice,
}

/// Returns `a` repeated `reps[i]` times along each axis `i`. `shape` is that of the result.
fn repeat_along_axes(a: &NdArray, reps: &[usize], shape: Vec<usize>, repetition: Repetition) -> Result<NdArray> {
    if shape.contains(&0) {
        return new_filled_array(a, &shape, 0, a.dtype());
    }
    // A repeated axis gets a neighbour of stride 0 that counts the repetitions, and a reshape merges the two. An axis of extent 1 is
    // broadcast itself, or left out if it is not repeated. Arrays with the maximum number of axes can therefore be repeated.
    let (mut items, mut widened) = (Vec::new(), Vec::new());
    for (&count, &extent) in reps.iter().zip(a.shape()) {
        let whole = Item::slice(None, None, 1);
        match (extent, count, repetition) {
            (1, 1, _) => items.push(Item::At(0)),
            (1, _, _) | (_, 1, _) => {
                items.push(whole);
                widened.push(extent * count);
            }
            (_, _, Repetition::Axis) => {
                items.extend([Item::NewAxis, whole]);
                widened.extend([count, extent]);
            }
            (_, _, Repetition::Slice) => {
                items.extend([whole, Item::NewAxis]);
                widened.extend([extent, count]);
            }
        }
    }
    broadcast_to(&a.index(&items)?, widened)?.reshape(shape)
}

/// Repeats each element along an axis, or each element of the flattened array for `None` (`numpy.repeat`).
///
/// `repeats` is a number, or an array of integers with a number for each element of the axis.
///
/// Passes over memory: one, which writes the result. If `repeats` is an array, its running sum and a binary search are computed
/// first, and the call waits for the device to read the total.
///
/// # Errors
/// Numbers in `repeats` that are negative, not integers, or not one for each element, an axis out of bounds, or a result whose size
/// overflows.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1, 2])?;
/// assert_eq!(cuprum::repeat(&a, 2, None)?.to_vec::<i32>()?, [1, 1, 2, 2]);
/// let counts = NdArray::from_slice(&[3, 1])?;
/// assert_eq!(cuprum::repeat(&a, &counts, 0)?.to_vec::<i32>()?, [1, 1, 1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("repeat(a, repeats, axis=None)", method)]
pub fn repeat(a: &NdArray, repeats: impl Into<Operand>, axis: impl Into<Option<isize>>) -> Result<NdArray> {
    let name = "repeat";
    let (a, axis) = match axis.into() {
        None => (a.ravel()?, 0),
        Some(axis) => (with_at_least_ndim(a, 1)?, normalize_axis(name, axis, a.ndim().max(1))?),
    };
    let negative = || Error::value(name, "repeats may not contain negative values.");
    let count = match repeats.into() {
        Operand::Scalar(s @ (Scalar::Bool(_) | Scalar::Int(_))) => s.as_int().unwrap_or(0),
        // As in NumPy, a float as the number of repetitions is truncated.
        Operand::Scalar(Scalar::Float(x)) if x.is_finite() => x as i128,
        Operand::Scalar(_) => return Err(Error::value(name, "the numbers of repetitions must be integers")),
        Operand::Array(counts) => {
            // An empty list is allowed, although its conversion to an array gives float64.
            if counts.size() > 0 {
                check_indices_cast_safely(name, &counts)?;
            }
            match *counts.shape() {
                [] | [1] => counts.item()?.as_int().unwrap_or(0),
                [n] if n == a.shape()[axis] => return repeat_slices_by_counts(&a, &counts.astype(DType::I64)?, axis),
                _ => return Err(Error::shape(name, "operands could not be broadcast together", &[&[a.shape()[axis]], counts.shape()])),
            }
        }
    };
    if count < 0 {
        return Err(negative());
    }
    let too_large = || Error::shape(name, format!("{count} repetitions are too many"), &[a.shape()]);
    let count = usize::try_from(count).map_err(|_| too_large())?;
    let mut shape = a.shape().to_vec();
    shape[axis] = shape[axis].checked_mul(count).ok_or_else(too_large)?;
    checked_size(name, &shape)?;
    let mut reps = vec![1; a.ndim()];
    reps[axis] = count;
    repeat_along_axes(&a, &reps, shape, Repetition::Slice)
}

/// Returns slice `n` along `axis` repeated `counts[n]` times.
fn repeat_slices_by_counts(a: &NdArray, counts: &NdArray, axis: usize) -> Result<NdArray> {
    if counts.size() == 0 {
        return Ok(a.clone());
    }
    if counts.min(())?.item()?.as_int().is_none_or(|least| least < 0) {
        return Err(Error::value("repeat", "repeats may not contain negative values."));
    }
    let ends = counts.cumsum(0)?;
    // A running sum that exceeds int64 wraps around. The first such sum is negative, so a negative sum shows the overflow.
    let has_wrapped = ends.min(())?.item()?.as_int().is_none_or(|least| least < 0);
    let total = ends.index(&[Item::At(-1)])?.item()?.as_int().and_then(|n| usize::try_from(n).ok());
    let total = total.filter(|_| !has_wrapped).ok_or_else(|| Error::shape("repeat", "the result is too large", &[a.shape()]))?;
    let mut shape = a.shape().to_vec();
    shape[axis] = total;
    checked_size("repeat", &shape)?;
    // `ends[i]` is one past the last copy of slice `i`. Element n of the result is therefore a copy of the first slice with an end above n.
    a.take(&ends.searchsorted(&index_range(a.device(), total)?, Side::Right)?, axis as isize)
}

/// Returns an array of the given shape filled with the elements in C order, repeated as often as needed (`numpy.resize`).
///
/// An array without elements gives zeros.
///
/// Passes over memory: one, which writes a whole number of copies of the array. None if the result is not larger than the array.
///
/// # Errors
/// A size that overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, resize};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(resize(&array![1, 2, 3], (2, 2))?, array![[1, 2], [3, 1]]);
/// # Ok(())
/// # }
/// ```
#[numpy("resize(a, new_shape)", call = |args| resize(&args.array("a")?, args.shape("new_shape")?).map(Value::Array))]
pub fn resize(a: &NdArray, new_shape: impl IntoShape) -> Result<NdArray> {
    let shape = new_shape.into_shape();
    let size = checked_size("resize", &shape)?;
    if size == 0 || a.size() == 0 {
        return new_filled_array(a, &shape, 0, a.dtype());
    }
    let flat = a.ravel()?;
    let copies = tile(&flat, size.div_ceil(flat.size()))?;
    slice_axis(&copies, 0, 0, size as isize, 1)?.reshape(shape)
}
