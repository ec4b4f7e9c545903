//! Common shapes of arrays: `broadcast_arrays` and `broadcast_shapes`.

use cuprum_core::function::IntoValue;
use cuprum_core::layout;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{Error, NdArray, Result, broadcast_to, numpy};

use crate::operand_and_slice_helpers::variadic_args_as_arrays;

/// Broadcasts arrays to their common shape: views (`numpy.broadcast_arrays`).
///
/// # Errors
/// Shapes that do not broadcast.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, broadcast_arrays};
/// # fn main() -> cuprum::Result<()> {
/// let both = broadcast_arrays(&[array![1, 2], array![[3], [4]]])?;
/// assert_eq!(both, [array![[1, 2], [1, 2]], array![[3, 3], [4, 4]]]);
/// # Ok(())
/// # }
/// ```
#[numpy("broadcast_arrays(*args)", call = |args| broadcast_arrays(&variadic_args_as_arrays(args)?).map(IntoValue::into_value))]
pub fn broadcast_arrays(arrays: impl IntoIterator<Item: AsRef<NdArray>>) -> Result<Vec<NdArray>> {
    let arrays: Vec<NdArray> = arrays.into_iter().map(|a| a.as_ref().clone()).collect();
    let shapes: Vec<&[usize]> = arrays.iter().map(NdArray::shape).collect();
    let shape = layout::broadcast_shapes("broadcast_arrays", &shapes)?;
    arrays.iter().map(|a| broadcast_to(a, &shape[..])).collect()
}

fn broadcast_shapes_from_args(args: &Args) -> Result<Value> {
    let extent = |n: &Value| {
        let n = n.to_isize(args.op())?;
        usize::try_from(n).map_err(|_| Error::value(args.op(), format!("negative dimension {n}")))
    };
    let shape = |value: &Value| match value.items() {
        Some(items) => items.iter().map(extent).collect(),
        None => Ok(vec![extent(value)?]),
    };
    let shapes = args.rest().iter().map(shape).collect::<Result<Vec<_>>>()?;
    let common = broadcast_shapes(&shapes.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    Ok(Value::tuple(common.into_iter().map(Value::from)))
}

/// Returns the shape that all of the shapes broadcast to (`numpy.broadcast_shapes`).
///
/// # Errors
/// Shapes that do not broadcast.
///
/// # Examples
/// ```
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// assert_eq!(cuprum::broadcast_shapes(&[&[1, 2], &[3, 1], &[2]])?, [3, 2]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("broadcast_shapes(*args)", call = broadcast_shapes_from_args)]
pub fn broadcast_shapes(shapes: &[&[usize]]) -> Result<Vec<usize>> {
    Ok(layout::broadcast_shapes("broadcast_shapes", shapes)?.to_vec())
}
