//! Set routines: operations on the distinct elements of arrays.

use cuprum_core::function::FromArgs;
use cuprum_core::layout::normalize_axis;
use cuprum_core::ops::manipulation::operands_to_arrays;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::ops::search::is_in_sorted;
use cuprum_core::ops::sort::unique_with_indices;
use cuprum_core::{
    DType, Device, Error, Item, Kind, NdArray, Result, Unique, concat, equal, flatnonzero, greater_equal, less_equal, logical_and,
    logical_not, logical_or, not_equal, numpy, subtract, where_,
};

use crate::operand_and_slice_helpers::{index_range, new_filled_array, slice_axis};

fn isin_from_args(args: &Args) -> Result<Value> {
    let (element, test_elements) = (args.array("element")?, args.array("test_elements")?);
    let is_integral = |a: &NdArray| !a.dtype().is_inexact();
    match args.get("kind") {
        None => {}
        Some(Value::Str(kind)) if kind == "sort" => {}
        Some(Value::Str(kind)) if kind == "table" && is_integral(&element) && is_integral(&test_elements) => {}
        Some(Value::Str(kind)) if kind == "table" => {
            let message = "The 'table' method is only supported for boolean or integer arrays. Please select 'sort' or None for kind.";
            return Err(Error::value("isin", message));
        }
        Some(_) => return Err(Error::value("isin", "Invalid kind. Please use None, 'sort' or 'table'.")),
    }
    isin(&element, &test_elements, args.bool_or("invert", false)?).map(Value::Array)
}

/// Returns the sorted distinct elements of the flattened array, or the distinct slices along an axis (`numpy.unique`). All NaN elements
/// count as equal, but slices that contain NaN are distinct.
///
/// This function implements the call without an axis. `unique_from_args` implements the other options for `eval`.
#[numpy(
    "unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True)",
    differs = "`equal_nan=False` of floats is an error",
    call = unique_from_args
)]
fn unique(ar: &NdArray) -> Result<NdArray> {
    cuprum_core::unique(ar)
}

fn unique_from_args(args: &Args) -> Result<Value> {
    let x = args.array("ar")?;
    if !args.bool_or("equal_nan", true)? && x.dtype().is_inexact() {
        return Err(Error::value("unique", "equal_nan=False is not supported: all NaN are one element"));
    }
    let flags = [args.bool_or("return_index", false)?, args.bool_or("return_inverse", false)?, args.bool_or("return_counts", false)?];
    let axis: Option<isize> = FromArgs::from_args(args, "axis")?;
    // The slices of a 1-D array along its axis are its elements.
    let axis = match axis {
        Some(axis) if x.ndim() == 1 => normalize_axis("unique", axis, 1).map(|_| None)?,
        axis => axis,
    };
    if flags == [false; 3] && axis.is_none() {
        return unique(&x).map(Value::Array);
    }
    let all = match axis {
        None => unique_with_indices(&x, true)?,
        Some(axis) => unique_along(&x, axis)?,
    };
    let chosen = [all.indices, all.inverse, all.counts].into_iter().zip(flags).filter(|(_, wanted)| *wanted).map(|(a, _)| a);
    Ok(match flags {
        [false, false, false] => Value::Array(all.values),
        _ => Value::tuple([all.values].into_iter().chain(chosen).map(Value::Array)),
    })
}

/// Returns the sorted distinct slices along an axis (`numpy.unique(axis=..)`), with indices and counts.
/// [`unique_all`](cuprum_core::unique_all) does the same for elements.
///
/// `indices` holds the index of the first occurrence of each distinct slice, and `counts` its number of occurrences. `inverse` holds, for
/// each slice of `a`, the index of the equal distinct slice.
///
/// As in NumPy, slices that contain NaN are distinct, but all NaN elements of a 1-D array count as equal.
///
/// Passes over memory: for each element of a slice, one sort of indices and one gather.
///
/// # Errors
/// An axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_vec([2, 3, 1, 0, 2, 3], [3, 2])?;
/// let rows = cuprum::unique_along(&a, 0)?;
/// assert_eq!(rows.values.to_vec::<i32>()?, [1, 0, 2, 3]);
/// assert_eq!(rows.counts.to_vec::<i64>()?, [1, 2]);
/// # Ok(())
/// # }
/// ```
pub fn unique_along(a: &NdArray, axis: isize) -> Result<Unique> {
    let axis = normalize_axis("unique", axis, a.ndim())?;
    if a.ndim() == 1 {
        return unique_with_indices(a, true);
    }
    let count = a.shape()[axis];
    let rows = a.moveaxis(axis as isize, 0)?;
    let width = rows.shape()[1..].iter().product::<usize>();
    let rows = rows.reshape([count as isize, width as isize])?;
    let numbers = index_range(a.device(), count)?;
    // Sorts by one column after the other, from the last, least significant column to the first. Every sort is stable.
    let mut order = numbers.clone();
    for column in (0..if count < 2 { 0 } else { width }).rev() {
        let key = rows.index(&[Item::slice(None, None, 1), Item::At(column as isize)])?;
        order = order.take(&key.take(&order, 0)?.argsort(-1)?, 0)?;
    }
    let sorted = rows.take(&order, 0)?;
    let first = new_filled_array(a, &[count.min(1)], true, DType::Bool)?;
    let changes = match count {
        0 | 1 => first,
        _ => {
            let (later, earlier) = (slice_axis(&sorted, 0, 1, None, 1)?, slice_axis(&sorted, 0, None, -1, 1)?);
            concat([first, not_equal(&later, &earlier)?.any(1)?], 0)?
        }
    };
    let starts = flatnonzero(&changes)?;
    let rank = subtract(changes.astype(DType::I64)?.cumsum(0)?, 1)?;
    let ends = concat([&slice_axis(&starts, 0, 1, None, 1)?, &new_filled_array(a, &[count.min(1)], count, DType::I64)?], 0)?;
    let indices = order.take(&starts, 0)?;
    let inverse = rank.take(&order.argsort(-1)?, 0)?;
    Ok(Unique { values: a.take(&indices, axis)?, indices, inverse, counts: subtract(ends, &starts)? })
}

/// Returns for each element whether it is among `test_elements` (`numpy.isin`), or whether it is not if `invert`.
///
/// NaN is equal to no element, so the result for NaN is false, or true if `invert`.
///
/// Passes over memory: a sort of `test_elements` and a binary search. On the CPU, bool and integers other than
/// uint64 are looked up in a table: one pass for the indices, and a gather. This requires that the range of `test_elements` is at most six
/// times the size of both arrays together.
///
/// # Errors
/// Arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (NdArray::from_slice(&[1, 2, 3])?, NdArray::from_slice(&[3, 1, 9])?);
/// assert_eq!(cuprum::isin(&a, &b, false)?.to_vec::<bool>()?, [true, false, true]);
/// # Ok(())
/// # }
/// ```
#[numpy("isin(element, test_elements, assume_unique=False, invert=False, *, kind=None)", call = isin_from_args)]
pub fn isin(element: &NdArray, test_elements: &NdArray, invert: bool) -> Result<NdArray> {
    if test_elements.size() == 0 {
        return new_filled_array(element, element.shape(), invert, DType::Bool);
    }
    if let Some(result) = try_isin_by_table(element, test_elements, invert)? {
        return Ok(result);
    }
    // The promoted dtype of int64 and uint64 is float64, which does not hold every integer. So the elements are converted to the dtype of
    // `test_elements`. An element outside the range of this dtype is not among them.
    let is_signed = |a: &NdArray| a.dtype().kind() == Kind::Signed;
    let in_range = match (element.dtype(), test_elements.dtype()) {
        (DType::U64, _) if is_signed(test_elements) => Some(less_equal(element, i64::MAX)?),
        (_, DType::U64) if is_signed(element) => Some(greater_equal(element, 0)?),
        _ => None,
    };
    if let Some(in_range) = in_range {
        let dtype = if test_elements.dtype() == DType::U64 { DType::U64 } else { DType::I64 };
        let is_found = is_in_sorted(&element.astype(dtype)?, &test_elements.astype(dtype)?.ravel()?.sort(0)?, invert)?;
        return if invert { logical_or(is_found, logical_not(in_range)?) } else { logical_and(is_found, in_range) };
    }
    is_in_sorted(element, &test_elements.ravel()?.sort(0)?, invert)
}

/// Does the same as [`isin`] with a lookup table. The table has an entry for each integer from the minimum to the maximum of
/// `test_elements`.
///
/// Returns `None` for uint64, floats and complex numbers, and if the table is large compared with the arrays. Also returns `None` on other
/// devices than the CPU, where reading the bounds would wait for the device.
fn try_isin_by_table(element: &NdArray, test_elements: &NdArray, invert: bool) -> Result<Option<NdArray>> {
    let is_narrow = |a: &NdArray| a.dtype() == DType::Bool || (a.dtype().is_int() && a.dtype() != DType::U64);
    let on_cpu = element.device() == Device::CPU && test_elements.device() == Device::CPU;
    if !on_cpu || !is_narrow(element) || !is_narrow(test_elements) {
        return Ok(None);
    }
    let bound = |of: NdArray| Ok(of.item()?.as_int());
    let (Some(low), Some(high)) = (bound(test_elements.min(())?)?, bound(test_elements.max(())?)?) else { return Ok(None) };
    // `numpy.isin` has the same limit of the table size.
    let limit = 6 * (element.size() as i128 + test_elements.size() as i128);
    let Ok(outside) = i32::try_from(high - low + 1) else { return Ok(None) };
    if i128::from(outside) > limit {
        return Ok(None);
    }
    let (element, test_elements, low) = (element.astype(DType::I64)?, test_elements.astype(DType::I64)?, low as i64);
    let mut table = new_filled_array(&element, &[outside as usize + 1], invert, DType::Bool)?;
    table.assign(&subtract(test_elements, low)?.ravel()?, !invert)?;
    let is_inside = logical_and(greater_equal(&element, low)?, less_equal(&element, high as i64)?)?;
    let entry = where_(is_inside, subtract(&element, low)?, outside)?.astype(DType::I32)?;
    table.take(&entry, 0).map(Some)
}

/// Returns the distinct elements of `a`. With `assume_unique`, they are known to be distinct, and the flattened array is returned.
fn distinct_elements(a: &NdArray, assume_unique: bool) -> Result<NdArray> {
    if assume_unique { a.ravel() } else { unique(a) }
}

/// Returns two views of a 1-D array: all elements but the last, and all elements but the first.
fn neighbour_pairs(a: &NdArray) -> Result<(NdArray, NdArray)> {
    Ok((slice_axis(a, 0, None, -1, 1)?, slice_axis(a, 0, 1, None, 1)?))
}

fn intersect1d_from_args(args: &Args) -> Result<Value> {
    let (a, b, assume_unique) = (args.array("ar1")?, args.array("ar2")?, args.bool_or("assume_unique", false)?);
    if !args.bool_or("return_indices", false)? {
        return intersect1d(&a, &b, assume_unique).map(Value::Array);
    }
    let (values, first, second) = intersect1d_indices(&a, &b, assume_unique)?;
    Ok(Value::tuple([values, first, second].map(Value::Array)))
}

/// Returns the sorted distinct elements that occur in both arrays (`numpy.intersect1d`).
///
/// With `assume_unique`, the elements of each array are known to be distinct.
///
/// Passes over memory: the sorts of [`unique_all`](cuprum_core::unique_all), and another sort of the distinct elements.
///
/// # Errors
/// Arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (NdArray::from_slice(&[1, 3, 4, 3])?, NdArray::from_slice(&[3, 1, 2, 1])?);
/// assert_eq!(cuprum::intersect1d(&a, &b, false)?.to_vec::<i32>()?, [1, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("intersect1d(ar1, ar2, assume_unique=False, return_indices=False)", call = intersect1d_from_args)]
pub fn intersect1d(ar1: &NdArray, ar2: &NdArray, assume_unique: bool) -> Result<NdArray> {
    let both = concat(&[distinct_elements(ar1, assume_unique)?, distinct_elements(ar2, assume_unique)?], 0)?.sort(0)?;
    let (before, after) = neighbour_pairs(&both)?;
    before.extract(&equal(&before, &after)?)
}

/// Returns the result of [`intersect1d`] and the indices of its elements in both flattened arrays
/// (`numpy.intersect1d(return_indices=True)`).
///
/// With `assume_unique`, the elements of each array are known to be distinct.
///
/// # Errors
/// Arrays on different devices.
pub fn intersect1d_indices(ar1: &NdArray, ar2: &NdArray, assume_unique: bool) -> Result<(NdArray, NdArray, NdArray)> {
    let (first, second) = match assume_unique {
        true => ((ar1.ravel()?, None), (ar2.ravel()?, None)),
        false => {
            let (a, b) = (unique_with_indices(ar1, true)?, unique_with_indices(ar2, true)?);
            ((a.values, Some(a.indices)), (b.values, Some(b.indices)))
        }
    };
    let joined = concat(&[first.0.clone(), second.0], 0)?;
    let order = joined.argsort(0)?;
    let (before, after) = neighbour_pairs(&joined.take(&order, 0)?)?;
    let mask = equal(&before, &after)?;
    mask.eval()?; // evaluates the deferred mask once for its three uses below
    let (order_before, order_after) = neighbour_pairs(&order)?;
    let in_first = order_before.extract(&mask)?;
    let in_second = subtract(order_after.extract(&mask)?, first.0.size())?;
    let original = |indices: Option<NdArray>, at: NdArray| indices.map_or(Ok(at.clone()), |indices| indices.take(&at, 0));
    Ok((before.extract(&mask)?, original(first.1, in_first)?, original(second.1, in_second)?))
}

/// Returns the sorted distinct elements of both arrays (`numpy.union1d`).
///
/// Passes over memory: one that joins the arrays, and those of [`unique_all`](cuprum_core::unique_all) without its indices.
///
/// # Errors
/// Arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, union1d};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(union1d(&array![3, 1], &array![2, 3])?, array![1, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("union1d(ar1, ar2)", call = union1d_from_args)]
pub fn union1d(ar1: &NdArray, ar2: &NdArray) -> Result<NdArray> {
    unique(&concat(&[ar1.ravel()?, ar2.ravel()?], 0)?)
}

/// Calls [`union1d`] with the arguments of an `eval` call, which may be numbers. As in NumPy, a number is a weak scalar.
fn union1d_from_args(args: &Args) -> Result<Value> {
    let arrays = operands_to_arrays(args.op(), vec![args.operand("ar1")?, args.operand("ar2")?])?;
    union1d(&arrays[0], &arrays[1]).map(Value::Array)
}

/// Returns the elements of `ar1` that are not in `ar2` (`numpy.setdiff1d`): sorted and distinct, or in the order of `ar1` if
/// `assume_unique`.
///
/// Passes over memory: those of [`unique_all`](cuprum_core::unique_all) without its indices, those of [`isin`], and one that selects the
/// elements.
///
/// # Errors
/// Arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, setdiff1d};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(setdiff1d(&array![3, 1, 2], &array![2, 3], false)?, array![1]);
/// # Ok(())
/// # }
/// ```
#[numpy("setdiff1d(ar1, ar2, assume_unique=False)")]
pub fn setdiff1d(ar1: &NdArray, ar2: &NdArray, assume_unique: bool) -> Result<NdArray> {
    let elements = distinct_elements(ar1, assume_unique)?;
    elements.extract(&isin(&elements, ar2, true)?)
}

/// Returns the sorted distinct elements that occur in exactly one of the arrays (`numpy.setxor1d`).
///
/// With `assume_unique`, the elements of each array are known to be distinct.
///
/// Passes over memory: as in [`intersect1d`], and one that marks the elements that occur once.
///
/// # Errors
/// Arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, setxor1d};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(setxor1d(&array![3, 1], &array![2, 3], false)?, array![1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("setxor1d(ar1, ar2, assume_unique=False)")]
pub fn setxor1d(ar1: &NdArray, ar2: &NdArray, assume_unique: bool) -> Result<NdArray> {
    let both = concat(&[distinct_elements(ar1, assume_unique)?, distinct_elements(ar2, assume_unique)?], 0)?;
    if both.size() == 0 {
        return Ok(both);
    }
    let both = both.sort(0)?;
    let (before, after) = neighbour_pairs(&both)?;
    let end = new_filled_array(&both, &[1], true, DType::Bool)?;
    let differs = concat(&[end.clone(), not_equal(&after, &before)?, end], 0)?;
    let (left, right) = neighbour_pairs(&differs)?;
    both.extract(&logical_and(left, right)?)
}
