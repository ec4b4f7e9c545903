//! Elements and slices added to or removed from an array: `append`, `insert`, `delete`.

use cuprum_core::function::{FromArgs, Indices};
use cuprum_core::layout::normalize_axis;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    DType, Error, NdArray, Operand, Result, Side, add, bincount, broadcast_to, concat, equal, flatnonzero, less, logical_and, logical_not,
    maximum, moveaxis, numpy, subtract, where_,
};

use crate::inserting_data::read_values_argument;
use crate::operand_and_slice_helpers::{check_indices_cast_safely, index_range, new_filled_array, slice_axis, with_at_least_ndim};

/// Joins two arrays along an axis, or their elements in C order for `None` (`numpy.append`).
///
/// Passes over memory: one.
///
/// # Errors
/// Extents that differ, an axis out of bounds, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{append, array};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(append(&array![1, 2], &array![[3, 4]], None)?, array![1, 2, 3, 4]);
/// assert_eq!(append(&array![[1, 2]], &array![[3, 4]], 0)?, array![[1, 2], [3, 4]]);
/// # Ok(())
/// # }
/// ```
#[numpy("append(arr, values, axis=None)")]
pub fn append(arr: &NdArray, values: &NdArray, axis: impl Into<Option<isize>>) -> Result<NdArray> {
    match axis.into() {
        None => concat(&[arr.ravel()?, values.ravel()?], 0),
        Some(axis) => concat(&[arr.clone(), values.clone()], axis),
    }
}

/// Returns `arr` and the axis counted from the front. Without an axis, returns the flattened array and axis 0.
fn flatten_without_axis(op: &'static str, arr: &NdArray, axis: Option<isize>) -> Result<(NdArray, usize)> {
    match axis {
        None => Ok((arr.ravel()?, 0)),
        Some(axis) => Ok((arr.clone(), normalize_axis(op, axis, arr.ndim())?)),
    }
}

/// Returns `index` counted from the front. Returns an error if it is outside an axis of extent `size`; with `at_end`, it may equal `size`.
fn checked_index(op: &'static str, index: i128, axis: usize, size: usize, at_end: bool) -> Result<usize> {
    let n = size as i128;
    let limit = if at_end { n + 1 } else { n };
    match (-n..limit).contains(&index) {
        true => Ok(if index < 0 { index + n } else { index } as usize),
        false => Err(Error::Index { op, index: index as i64, axis, size }),
    }
}

/// Returns an error unless `indices` has an integer dtype.
fn check_index_dtype(op: &'static str, indices: &NdArray) -> Result<()> {
    match indices.dtype().is_int() {
        true => Ok(()),
        false => Err(Error::dtype(op, "arrays used as indices must be of integer (or boolean) type", &[indices.dtype()])),
    }
}

/// Returns the array without the slices at `obj` along an axis (`numpy.delete`); for `None`, the flattened array without the
/// elements at `obj`.
///
/// `obj` is an index, an array of indices, or a mask of the axis' length. Repeated indices count once.
///
/// Passes over memory: one for a single index. For several indices, passes that check and count the indices, and one that gathers the
/// remaining elements. The call then waits for the device.
///
/// # Errors
/// Indices out of bounds or not integers, a mask whose length is not the extent of the axis, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::arange(0, 5, 1)?;
/// assert_eq!(cuprum::delete(&a, &NdArray::from_slice(&[1, -1])?, None)?.to_vec::<i64>()?, [0, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("delete(arr, obj, axis=None)")]
pub fn delete(arr: &NdArray, #[read(Indices)] obj: &NdArray, axis: impl Into<Option<isize>>) -> Result<NdArray> {
    let name = "delete";
    let (a, axis) = flatten_without_axis(name, arr, axis.into())?;
    let size = a.shape()[axis];
    if obj.dtype() == DType::Bool {
        if obj.shape() != [size] {
            let message = format!("boolean array argument obj to delete must be one dimensional and match the axis length of {size}");
            return Err(Error::shape(name, message, &[obj.shape()]));
        }
        return a.compress(&logical_not(obj)?, axis as isize);
    }
    check_index_dtype(name, obj)?;
    if obj.size() == 1 {
        let at = checked_index(name, obj.item()?.as_int().unwrap_or(0), axis, size, false)? as isize;
        return concat(&[slice_axis(&a, axis, 0, at, 1)?, slice_axis(&a, axis, at + 1, None, 1)?], axis as isize);
    }
    if obj.size() == 0 {
        return Ok(a);
    }
    let indices = obj.astype(DType::I64)?.ravel()?;
    for extreme in [indices.min(())?, indices.max(())?] {
        checked_index(name, extreme.item()?.as_int().unwrap_or(0), axis, size, false)?;
    }
    let counts = bincount(&where_(less(&indices, 0)?, add(&indices, size)?, &indices)?, None, size)?;
    a.compress(&equal(&counts, 0)?, axis as isize)
}

/// Returns the array with `values` inserted before the indices `obj` along an axis (`numpy.insert`).
///
/// If `axis` is `None`, the values are inserted into the flattened array.
///
/// `obj` is an index, a 1-D array of indices, or a 1-D mask. Indices refer to the array before the insertion. The values are converted to
/// the array's dtype, and broadcast. With a 0-d `obj`, the values first get leading axes of extent 1 until they have as many dimensions as
/// the array. The extent of their first axis is then the number of inserted slices: `[1, 2, 3]` is one slice of a 2-D array, and three
/// elements of a 1-D array.
///
/// Passes over memory: one for a single index. For several indices, a sort of the indices, a join of the array and the values, and a
/// gather.
///
/// # Errors
/// Indices out of bounds or not integers, several uint64 indices, values that do not broadcast, a number that the dtype cannot hold, or an
/// axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::arange(0, 3, 1)?;
/// let (at, values) = (NdArray::from_slice(&[0, 2])?, NdArray::from_slice(&[7, 8])?);
/// assert_eq!(cuprum::insert(&a, &at, &values, None)?.to_vec::<i64>()?, [7, 0, 1, 8, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("insert(arr, obj, values, axis=None)", call = insert_from_args)]
pub fn insert(arr: &NdArray, obj: &NdArray, values: impl Into<Operand>, axis: impl Into<Option<isize>>) -> Result<NdArray> {
    let name = "insert";
    let (a, axis) = flatten_without_axis(name, arr, axis.into())?;
    let size = a.shape()[axis];
    if obj.ndim() > 1 || (obj.dtype() == DType::Bool && obj.ndim() != 1) {
        let message = "index array argument obj to insert must be one dimensional or scalar";
        return Err(Error::shape(name, message, &[obj.shape()]));
    }
    let indices = if obj.dtype() == DType::Bool { flatnonzero(obj)? } else { obj.clone() };
    check_index_dtype(name, &indices)?;
    let values = match values.into() {
        Operand::Array(values) => values.astype(a.dtype())?,
        Operand::Scalar(s) => new_filled_array(&a, &[], s.to_checked_element(name, a.dtype())?, a.dtype())?,
    };
    if indices.size() == 1 {
        let at = checked_index(name, indices.item()?.as_int().unwrap_or(0), axis, size, true)?;
        let mut values = with_at_least_ndim(&values, a.ndim())?;
        if indices.ndim() == 0 {
            values = moveaxis(&values, [0], [axis as isize])?;
        }
        let mut shape = a.shape().to_vec();
        shape[axis] = values.shape().get(axis).copied().unwrap_or(1);
        let inserted = broadcast_inserted_values(&values, &shape)?;
        let parts = [slice_axis(&a, axis, 0, at as isize, 1)?, inserted, slice_axis(&a, axis, at as isize, None, 1)?];
        return concat(&parts, axis as isize);
    }
    let count = indices.size();
    let mut shape = a.shape().to_vec();
    shape[axis] = count;
    let inserted = broadcast_inserted_values(&values, &shape)?;
    if count == 0 {
        return Ok(a);
    }
    check_indices_cast_safely(name, &indices)?;
    let indices = indices.astype(DType::I64)?;
    for extreme in [indices.min(())?, indices.max(())?] {
        checked_index(name, extreme.item()?.as_int().unwrap_or(0), axis, size, true)?;
    }
    let indices = where_(less(&indices, 0)?, add(&indices, size)?, &indices)?;
    // `places` holds, in ascending order, the index of each inserted slice in the result. A result index outside `places` belongs to a
    // slice of the array.
    let order = indices.argsort(0)?;
    let places = add(indices.take(&order, 0)?, index_range(a.device(), count)?)?.eval()?.clone();
    let number = index_range(a.device(), size + count)?;
    let before = places.searchsorted(&number, Side::Right)?;
    let last = maximum(subtract(&before, 1)?, 0)?;
    let is_inserted = logical_and(before.greater(0)?, equal(places.take(&last, 0)?, &number)?)?;
    let from_array = subtract(add(&number, count)?, &before)?;
    let source = where_(is_inserted, order.take(&last, 0)?, from_array)?;
    concat(&[inserted, a], axis as isize)?.take(&source, axis as isize)
}

fn insert_from_args(args: &Args) -> Result<Value> {
    let a = args.array("arr")?;
    let values = read_values_argument(args, "values", a.dtype())?;
    insert(&a, &args.indices("obj")?, values, Option::<isize>::from_args(args, "axis")?).map(Value::Array)
}

/// Broadcasts the values to insert to `shape`. Extra leading axes of extent 1 are dropped, as in NumPy's assignment.
fn broadcast_inserted_values(values: &NdArray, shape: &[usize]) -> Result<NdArray> {
    let leading = 0..values.ndim().saturating_sub(shape.len());
    let refuse = |_| Error::shape("insert", "could not broadcast the values to the inserted slices", &[values.shape(), shape]);
    values.squeeze(leading).and_then(|values| broadcast_to(&values, shape)).map_err(refuse)
}
