//! Elements at an index along one axis: `take_along_axis`.

use cuprum_core::function::FromArgs;
use cuprum_core::layout::{broadcast_shapes, normalize_axis};
use cuprum_core::ops::value::{Args, Value};
use cuprum_core::{DType, Error, NdArray, Result, add, greater_equal, less, logical_and, multiply, numpy, where_};

use crate::common::index_range_along;

fn take_along_axis_from_args(args: &Args) -> Result<Value> {
    let axis: Option<isize> = FromArgs::from_args(args, "axis")?;
    take_along_axis(&args.array("arr")?, &args.indices("indices")?, axis).map(Value::Array)
}

/// Returns elements along an axis, with separate indices for each position of the other axes (`numpy.take_along_axis`).
///
/// `indices` has as many axes as the array, and broadcasts with it along all axes except `axis`. Negative indices count from the end.
/// Without an axis, the array is flattened. A typical use is to apply the result of `argsort` or `argmax` along an axis.
///
/// Passes over memory: one gather. Where the device fuses `take`, the indices into the flattened array are computed in the same pass,
/// elsewhere in a pass of their own.
///
/// # Errors
/// Indices out of bounds or not integers, or different numbers of axes. On a GPU, the next call that waits for the device reports an
/// index out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_vec([3, 1, 2, 9, 8, 7], [2, 3])?;
/// let sorted = cuprum::take_along_axis(&a, &a.argsort(-1)?, -1)?;
/// assert_eq!(sorted.to_vec::<i32>()?, [1, 2, 3, 7, 8, 9]);
/// # Ok(())
/// # }
/// ```
#[numpy("take_along_axis(arr, indices, axis=-1)", call = take_along_axis_from_args)]
pub fn take_along_axis(arr: &NdArray, indices: &NdArray, axis: impl Into<Option<isize>>) -> Result<NdArray> {
    let name = "take_along_axis";
    let Some(axis) = axis.into() else {
        if indices.ndim() != 1 {
            return Err(Error::shape(name, "when axis=None, `indices` must have a single dimension.", &[indices.shape()]));
        }
        return take_along_axis(&arr.ravel()?, indices, 0);
    };
    let axis = normalize_axis(name, axis, arr.ndim())?;
    if !indices.dtype().is_int() {
        return Err(Error::dtype(name, "`indices` must be an integer array", &[indices.dtype()]));
    }
    if indices.ndim() != arr.ndim() {
        let message = "`indices` and `arr` must have the same number of dimensions";
        return Err(Error::shape(name, message, &[indices.shape(), arr.shape()]));
    }
    let named = |error: Error| match error {
        Error::Index { index, axis, size, .. } => Error::Index { op: name, index, axis, size },
        other => other,
    };
    if arr.ndim() == 1 {
        return arr.take(indices, 0).map_err(named);
    }
    let mut others = arr.shape().to_vec();
    others[axis] = 1;
    broadcast_shapes(name, &[&others, indices.shape()])?;
    let extent = arr.shape()[axis];
    let indices = indices.astype(DType::I64)?;
    // An index out of bounds along the axis may be inside the flattened array. It is replaced by an index that is outside, for which
    // `take` returns an error.
    let inside = logical_and(greater_equal(&indices, -(extent as i64))?, less(&indices, extent)?)?;
    // Indices into the flattened array are int32 where possible, which halves the memory that they take.
    let dtype = if i32::try_from(arr.size()).is_ok() { DType::I32 } else { DType::I64 };
    let mut flat = where_(less(&indices, 0)?, add(&indices, extent)?, &indices)?.astype(dtype)?;
    let mut step: usize = arr.shape()[axis + 1..].iter().product();
    if step != 1 {
        flat = multiply(&flat, step)?;
    }
    step = 1;
    for n in (0..arr.ndim()).rev() {
        if n != axis && arr.shape()[n] > 1 {
            flat = add(flat, multiply(index_range_along(arr.device(), arr.shape()[n], n, arr.ndim())?.astype(dtype)?, step)?)?;
        }
        step *= arr.shape()[n];
    }
    let flat = where_(inside, flat, arr.size())?;
    // Other axes are broadcast if either the array or `indices` has extent 1 along them.
    let shape = broadcast_shapes(name, &[&others, indices.shape()])?;
    // Broadcasting evaluates the indices and stores them in memory. Indices that are not broadcast stay deferred for a fused `take`.
    let flat = if flat.shape() == &shape[..] { flat } else { flat.broadcast_to(&shape[..])? };
    arr.ravel()?.take(&flat, 0).map_err(named)
}
