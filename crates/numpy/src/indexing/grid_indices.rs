//! Index arrays of a whole grid or of a mesh: `indices`, `sparse_indices`, `ix_`.

use cuprum_core::function::IntoValue;
use cuprum_core::layout::checked_size;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Device, Error, IntoShape, NdArray, Result, arange_as, empty, numpy, stack, with_device};

use crate::manipulation::broadcast_arrays;

fn indices_from_args(args: &Args) -> Result<Value> {
    let (shape, dtype) = (args.shape("dimensions")?, args.dtype("dtype")?.unwrap_or(DType::I64));
    match args.bool_or("sparse", false)? {
        true => sparse_indices(&shape, dtype).map(IntoValue::into_value),
        false => indices(shape, dtype).map(Value::Array),
    }
}

/// Returns the index of each element of an array of the given shape along each axis (`numpy.indices`).
///
/// Element `i` along the first axis of the result holds the indices along axis `i`. [`sparse_indices`] returns one small array for each
/// axis instead.
///
/// Passes over memory: one, which writes the result.
///
/// # Errors
/// A shape whose size overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, array, indices};
/// # fn main() -> cuprum::Result<()> {
/// let grid = indices((2, 3), DType::I64)?;
/// assert_eq!(grid.index(0)?, array![[0, 0, 0], [1, 1, 1]]);
/// assert_eq!(grid.index(1)?, array![[0, 1, 2], [0, 1, 2]]);
/// # Ok(())
/// # }
/// ```
#[numpy("indices(dimensions, dtype=None, sparse=False)", call = indices_from_args)]
pub fn indices(dimensions: impl IntoShape, dtype: DType) -> Result<NdArray> {
    let shape = dimensions.into_shape();
    if shape.is_empty() {
        return empty([0], dtype);
    }
    stack(&broadcast_arrays(&sparse_indices(&shape, dtype)?)?, 0)
}

/// Returns the indices along each axis of an array of the given shape, with extent 1 along the others (`numpy.indices(sparse=True)`).
///
/// # Errors
/// Too many axes, or too little memory.
pub fn sparse_indices(dimensions: &[usize], dtype: DType) -> Result<Vec<NdArray>> {
    let device = Device::current()?;
    checked_size("indices", dimensions)?;
    let along = |(axis, &n): (usize, &usize)| {
        let mut shape = vec![1; dimensions.len()];
        shape[axis] = n;
        with_device(device, || arange_as(0, n, 1, dtype))?.reshape(shape)
    };
    dimensions.iter().enumerate().map(along).collect()
}

/// Returns index arrays that select the cross product of 1-D arrays of indices (`numpy.ix_`).
///
/// Array `n` varies along axis `n` and has extent 1 along the others. Masks become the indices of their true elements.
///
/// # Errors
/// An array that is not 1-D.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, ix_, s};
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1, 2, 3], [4, 5, 6], [7, 8, 9]];
/// let grid = ix_([array![0, 2], array![0, 1]])?;
/// assert_eq!(a.index(s![&grid[0], &grid[1]])?, array![[1, 2], [7, 8]]);
/// # Ok(())
/// # }
/// ```
#[numpy("ix_(*args)", call = ix_from_args)]
pub fn ix_(args: impl IntoIterator<Item: AsRef<NdArray>>) -> Result<Vec<NdArray>> {
    let args: Vec<NdArray> = args.into_iter().map(|indices| indices.as_ref().clone()).collect();
    let along = |(axis, indices): (usize, &NdArray)| {
        if indices.ndim() != 1 {
            return Err(Error::shape("ix_", "Cross index must be 1 dimensional", &[indices.shape()]));
        }
        let indices = if indices.dtype() == DType::Bool { cuprum_core::flatnonzero(indices)? } else { indices.clone() };
        let mut shape = vec![1isize; args.len()];
        shape[axis] = -1;
        indices.reshape(shape)
    };
    args.iter().enumerate().map(along).collect()
}

fn ix_from_args(args: &Args) -> Result<Value> {
    let integers = |value: &Value| {
        let array = value.array(args.op())?;
        if value.items().is_some() && array.size() == 0 { array.astype(DType::I64) } else { Ok(array) }
    };
    ix_(&args.rest().iter().map(integers).collect::<Result<Vec<_>>>()?).map(IntoValue::into_value)
}
