//! Indexing routines that store data in arrays: `put`, `putmask`, `place`, `put_along_axis`, `fill_diagonal` and `copyto`.
//!
//! The functions change their first argument: in place if nothing else uses its elements, otherwise in a copy. Other arrays that share
//! these elements keep their values.

use cuprum_core::function::FromArgs;
use cuprum_core::layout::normalize_axis;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Error, IndexItem, Item, NdArray, Operand, Result, clip, flatnonzero, numpy, remainder, where_};

use crate::indexing::Bounds;
use crate::manipulation::{resize, tile};
use crate::operand_and_slice_helpers::{check_indices_cast_safely, index_range_along, new_filled_array, slice_axis};

/// Calls `f` with the array flattened in C order, then restores the shape.
///
/// An error for an index out of bounds names the function `name`.
fn update_flattened(name: &'static str, a: &mut NdArray, f: impl FnOnce(&mut NdArray) -> Result<()>) -> Result<()> {
    let shape = a.shape().to_vec();
    *a = a.reshape(-1)?;
    let done = f(a);
    *a = a.reshape(shape.iter().map(|&n| n as isize).collect::<Vec<_>>())?;
    name_function_in_index_error(name, done)
}

/// Returns `result`. In an error for an index out of bounds, replaces the name of the function by `name`.
fn name_function_in_index_error(name: &'static str, result: Result<()>) -> Result<()> {
    result.map_err(|error| match error {
        Error::Index { index, axis, size, .. } => Error::Index { op: name, index, axis, size },
        error => error,
    })
}

/// Returns an operand as a 1-D array of the dtype of `a`. A number becomes one element on the device of `a`. A number that the dtype cannot
/// hold is an error of the function `name`.
fn operand_to_flat_array(name: &'static str, a: &NdArray, values: Operand) -> Result<NdArray> {
    match values {
        Operand::Array(values) => values.astype(a.dtype())?.ravel(),
        Operand::Scalar(value) => new_filled_array(a, &[1], value.to_checked_element(name, a.dtype())?, a.dtype()),
    }
}

/// Returns the argument `name`, values for elements of `dtype`. Numbers in a list must fit `dtype`, as a single number must.
pub(crate) fn read_values_argument(args: &Args, name: &str, dtype: DType) -> Result<Operand> {
    match args.get(name) {
        Some(list) if list.items().is_some() => list.array_as(args.op(), Some(dtype)).map(Operand::Array),
        _ => args.operand(name),
    }
}

fn put_from_args(args: &Args) -> Result<Value> {
    let mut a = args.array("a")?;
    let values = read_values_argument(args, "v", a.dtype())?;
    put(&mut a, &args.indices("ind")?, values, Bounds::from_args(args, "mode")?)?;
    Ok(Value::Array(a))
}

fn putmask_from_args(args: &Args) -> Result<Value> {
    let mut a = args.array("a")?;
    let values = read_values_argument(args, "values", a.dtype())?;
    putmask(&mut a, &args.array("mask")?, values)?;
    Ok(Value::Array(a))
}

fn place_from_args(args: &Args) -> Result<Value> {
    let mut a = args.array("arr")?;
    let values = read_values_argument(args, "vals", a.dtype())?;
    place(&mut a, &args.array("mask")?, values)?;
    Ok(Value::Array(a))
}

fn put_along_axis_from_args(args: &Args) -> Result<Value> {
    let mut a = args.array("arr")?;
    let values = read_values_argument(args, "values", a.dtype())?;
    put_along_axis(&mut a, &args.indices("indices")?, values, Option::<isize>::from_args(args, "axis")?)?;
    Ok(Value::Array(a))
}

fn fill_diagonal_from_args(args: &Args) -> Result<Value> {
    let mut a = args.array("a")?;
    let value = read_values_argument(args, "val", a.dtype())?;
    fill_diagonal(&mut a, value, args.bool_or("wrap", false)?)?;
    Ok(Value::Array(a))
}

/// Returns `count` elements of `values`. If `values` has fewer, its elements repeat from the start.
fn repeat_to_length(values: &NdArray, count: usize) -> Result<NdArray> {
    match values.size() {
        n if n == count => Ok(values.clone()),
        n if n > count => slice_axis(values, 0, None, count as isize, 1),
        1 => values.broadcast_to(count),
        n => slice_axis(&tile(values, count.div_ceil(n))?, 0, None, count as isize, 1),
    }
}

/// Stores values at indices into the flattened array (`numpy.put`).
///
/// The values repeat if there are fewer than indices. If an element receives several values, the last is stored.
///
/// Passes over memory: one over the values.
///
/// # Errors
/// Indices that are uint64 or neither integers nor bools, or out of bounds with [`Bounds::Raise`]; indices for an array of no elements; a
/// number that the dtype cannot hold.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{Bounds, NdArray, put};
/// # fn main() -> cuprum::Result<()> {
/// let mut a = NdArray::from_vec([1, 2, 3, 4], [2, 2])?;
/// put(&mut a, &NdArray::from_slice(&[0, -1])?, &NdArray::from_slice(&[9, 8])?, Bounds::Raise)?;
/// assert_eq!(a.to_vec::<i32>()?, [9, 2, 3, 8]);
/// # Ok(())
/// # }
/// ```
#[numpy("put(a, ind, v, mode='raise')", method, call = put_from_args)]
pub fn put(a: &mut NdArray, indices: &NdArray, v: impl Into<Operand>, mode: Bounds) -> Result<()> {
    let values = operand_to_flat_array("put", a, v.into())?;
    if !indices.dtype().is_int() && indices.dtype() != DType::Bool {
        return Err(Error::dtype("put", "indices must be integers", &[indices.dtype()]));
    }
    check_indices_cast_safely("put", indices)?;
    let size = a.size();
    if size == 0 && indices.size() > 0 {
        return Err(Error::value("put", "cannot replace elements of an array that has no elements"));
    }
    if values.size() == 0 || indices.size() == 0 {
        return Ok(());
    }
    let indices = indices.ravel()?;
    let indices = match mode {
        // As in NumPy's `put`, a bool array counts as the integers 0 and 1, not as a mask.
        Bounds::Raise if indices.dtype() == DType::Bool => indices.astype(DType::I64)?,
        Bounds::Raise => indices,
        Bounds::Wrap => remainder(&indices.astype(DType::I64)?, size)?,
        Bounds::Clip => clip(&indices.astype(DType::I64)?, Some(0.into()), Some((size - 1).into()))?,
    };
    let values = repeat_to_length(&values, indices.size())?;
    update_flattened("put", a, |flat| flat.assign(&indices, values))
}

/// Returns an error unless a mask has as many elements as the array.
fn check_mask_size(name: &'static str, a: &NdArray, mask: &NdArray) -> Result<()> {
    if mask.size() == a.size() {
        return Ok(());
    }
    Err(Error::shape(name, "the mask and the array must have the same size", &[a.shape(), mask.shape()]))
}

/// Stores the elements of `values` at the true elements of a mask: element `n` of the values for element `n` of the array
/// (`numpy.putmask`).
///
/// The values repeat if there are fewer values than elements.
///
/// Passes over memory: one.
///
/// # Errors
/// A mask of another size than the array, a number that the dtype cannot hold, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let mut a = NdArray::from_slice(&[1, 2, 3, 4])?;
/// let mask = a.greater(2)?;
/// cuprum::putmask(&mut a, &mask, &NdArray::from_slice(&[7, 8])?)?;
/// assert_eq!(a.to_vec::<i32>()?, [1, 2, 7, 8]);
/// # Ok(())
/// # }
/// ```
#[numpy("putmask(a, mask, values)", differs = "takes arrays that need an unsafe conversion", call = putmask_from_args)]
pub fn putmask(a: &mut NdArray, mask: &NdArray, values: impl Into<Operand>) -> Result<()> {
    check_mask_size("putmask", a, mask)?;
    let values = operand_to_flat_array("putmask", a, values.into())?;
    let shape = a.shape().to_vec();
    let mask = mask.astype(DType::Bool)?.reshape(shape.iter().map(|&n| n as isize).collect::<Vec<_>>())?;
    let values = match values.size() {
        0 => return Ok(()),
        1 => values.reshape(())?,
        _ => resize(&values, shape)?,
    };
    a.update(|a| where_(&mask, &values, a))
}

/// Stores consecutive values at the true elements of a mask: value `n` at the `n`-th true element (`numpy.place`).
///
/// The values repeat if there are fewer than true elements. `a.assign(&mask, &values)` requires as many values as true elements instead.
///
/// Passes over memory: one to find the true elements and one over the values. The call waits for the device.
///
/// # Errors
/// A mask of another size than the array, no values for a mask that is true anywhere, a number that the dtype cannot hold, or arrays on
/// different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let mut a = NdArray::from_slice(&[1, 2, 3, 4])?;
/// let mask = a.greater(1)?;
/// cuprum::place(&mut a, &mask, &NdArray::from_slice(&[7, 8])?)?;
/// assert_eq!(a.to_vec::<i32>()?, [1, 7, 8, 7]);
/// # Ok(())
/// # }
/// ```
#[numpy("place(arr, mask, vals)", differs = "takes arrays that need an unsafe conversion", call = place_from_args)]
pub fn place(a: &mut NdArray, mask: &NdArray, values: impl Into<Operand>) -> Result<()> {
    check_mask_size("place", a, mask)?;
    let values = operand_to_flat_array("place", a, values.into())?;
    let chosen = flatnonzero(mask)?;
    match (chosen.size(), values.size()) {
        (0, _) => Ok(()),
        (_, 0) => Err(Error::value("place", "cannot insert from an empty array")),
        (count, _) => {
            let values = repeat_to_length(&values, count)?;
            update_flattened("place", a, |flat| flat.assign(&chosen, values))
        }
    }
}

/// Stores values along an axis, with separate indices for each position of the other axes (`numpy.put_along_axis`).
///
/// [`take_along_axis`](cuprum_core::take_along_axis) with the same indices reads the values. Without an axis, the array is flattened.
///
/// Passes over memory: one over the values, and one over the indices to check them. The call waits for the device.
///
/// # Errors
/// Indices out of bounds or not integers, different numbers of axes, or values that do not broadcast to the indices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let mut a = NdArray::from_vec([10, 30, 20, 60, 40, 50], [2, 3])?;
/// let largest = NdArray::from_vec([1i64, 0], [2, 1])?;
/// cuprum::put_along_axis(&mut a, &largest, 99, 1)?;
/// assert_eq!(a.to_vec::<i32>()?, [10, 99, 20, 99, 40, 50]);
/// # Ok(())
/// # }
/// ```
#[numpy("put_along_axis(arr, indices, values, axis)", call = put_along_axis_from_args)]
pub fn put_along_axis(a: &mut NdArray, indices: &NdArray, values: impl Into<Operand>, axis: impl Into<Option<isize>>) -> Result<()> {
    let name = "put_along_axis";
    let values = values.into();
    if !indices.dtype().is_int() {
        return Err(Error::dtype(name, "`indices` must be an integer array", &[indices.dtype()]));
    }
    let Some(axis) = axis.into() else {
        if indices.ndim() != 1 {
            return Err(Error::shape(name, "when axis=None, `indices` must have a single dimension.", &[indices.shape()]));
        }
        return update_flattened(name, a, |flat| flat.assign(indices, values));
    };
    let axis = normalize_axis(name, axis, a.ndim())?;
    if indices.ndim() != a.ndim() {
        let message = "`indices` and `arr` must have the same number of dimensions";
        return Err(Error::shape(name, message, &[indices.shape(), a.shape()]));
    }
    let along = |n: usize| -> Result<IndexItem> {
        Ok(if n == axis { indices.into() } else { index_range_along(a.device(), a.shape()[n], n, a.ndim())?.into() })
    };
    let items: Vec<IndexItem> = (0..a.ndim()).map(along).collect::<Result<_>>()?;
    name_function_in_index_error(name, a.assign(&items, values))
}

/// Stores a value on the main diagonal of an array of at least two axes (`numpy.fill_diagonal`).
///
/// With more than two axes, which must have equal extents, the elements `a[i, i, ..., i]` are set. Several values repeat. In a matrix with
/// more rows than columns, `wrap` starts the diagonal again every `columns + 1` rows.
///
/// Passes over memory: one over the diagonal.
///
/// # Errors
/// Fewer than two axes, extents that differ with more than two axes, or a number that the dtype cannot hold.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, zeros};
/// # fn main() -> cuprum::Result<()> {
/// let mut a = zeros([2, 3], DType::I32)?;
/// cuprum::fill_diagonal(&mut a, 5, false)?;
/// assert_eq!(a.to_vec::<i32>()?, [5, 0, 0, 0, 5, 0]);
/// # Ok(())
/// # }
/// ```
#[numpy("fill_diagonal(a, val, wrap=False)", call = fill_diagonal_from_args)]
pub fn fill_diagonal(a: &mut NdArray, value: impl Into<Operand>, wrap: bool) -> Result<()> {
    let name = "fill_diagonal";
    let shape = a.shape().to_vec();
    let (end, step) = match shape[..] {
        [] | [_] => return Err(Error::shape(name, "the array must have at least two axes", &[&shape])),
        [rows, columns] => (if wrap { rows * columns } else { columns.saturating_mul(columns).min(rows * columns) }, columns + 1),
        _ if shape.iter().any(|&n| n != shape[0]) => {
            return Err(Error::shape(name, "all dimensions of input must be of equal length", &[&shape]));
        }
        _ => (a.size(), 1 + (1..shape.len()).map(|axes| shape[0].saturating_pow(axes as u32)).sum::<usize>()),
    };
    let values = operand_to_flat_array(name, a, value.into())?;
    let count = end.div_ceil(step);
    if count == 0 || values.size() == 0 {
        return Ok(());
    }
    let values = repeat_to_length(&values, count)?;
    update_flattened(name, a, |flat| flat.assign(Item::slice(None, end as isize, step as isize), values))
}

/// Replaces the elements of `a` by those of `source`, which broadcasts (`numpy.copyto`). With `mask`, replaces only the elements at which
/// the mask is true.
///
/// [`NdArray::assign_from`] is the same without a mask.
///
/// Passes over memory: one.
///
/// # Errors
/// A dtype that NumPy's casting rule `same_kind` does not convert, shapes that do not broadcast, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let mut a = NdArray::from_slice(&[1, 2, 3])?;
/// let mask = a.greater(1)?;
/// cuprum::copyto(&mut a, 9, Some(&mask))?;
/// assert_eq!(a.to_vec::<i32>()?, [1, 9, 9]);
/// # Ok(())
/// # }
/// ```
#[numpy("copyto(dst, src, where=True)")]
pub fn copyto(
    #[name("dst")] a: &mut NdArray,
    #[name("src")] source: impl Into<Operand>,
    #[name("where")] mask: Option<&NdArray>,
) -> Result<()> {
    let source = source.into();
    let Some(mask) = mask else { return a.assign_from(source) };
    // Assigning `source` to a copy of `a` converts and checks `source` in the same way as a call without a mask.
    let mut new = a.clone();
    new.assign_from(source)?;
    a.update(|a| {
        let new = where_(mask.astype(DType::Bool)?, &new, a)?;
        // If `a` is 0-d, a mask with axes is an error, but `update` would accept it and change the shape of `a`.
        if new.shape() == a.shape() {
            return Ok(new);
        }
        Err(Error::shape("copyto", "the mask `where` does not broadcast to the array", &[a.shape(), mask.shape()]))
    })
}
