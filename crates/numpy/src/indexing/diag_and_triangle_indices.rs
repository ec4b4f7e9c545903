//! Indices of diagonals and triangles: `diag_indices`, `tril_indices`, `triu_indices` and their `_from` variants.

use cuprum_core::function::{FromArgs, IntoValue};
use cuprum_core::layout::checked_size;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{Device, Error, NdArray, Result, logical_not, numpy, with_device};

use crate::creation::lower_triangle_mask;
use crate::operand_and_slice_helpers::index_range;

/// Reads the arguments `n`, `k` and `m` (rows, diagonal and columns of a matrix) of a call from `eval`, and calls `f` with them. As in
/// NumPy, a negative extent counts as 0.
fn triangle_indices_from_args(args: &Args, f: impl Fn(usize, isize, Option<usize>) -> Result<Vec<NdArray>>) -> Result<Value> {
    let n: isize = FromArgs::from_args(args, "n")?;
    let m: Option<isize> = FromArgs::from_args(args, "m")?;
    f(n.max(0) as usize, args.int_or("k", 0)?, m.map(|m| m.max(0) as usize)).map(IntoValue::into_value)
}

fn diag_indices_from_args(args: &Args) -> Result<Value> {
    let n: isize = FromArgs::from_args(args, "n")?;
    diag_indices(n.max(0) as usize, args.int_or("ndim", 2)?.max(0) as usize).map(IntoValue::into_value)
}

/// Returns the indices of the elements on and below diagonal `k` of an `n` x `m` matrix (`numpy.tril_indices`).
///
/// The call waits for the device.
///
/// # Errors
/// A size that overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, tril_indices};
/// # fn main() -> cuprum::Result<()> {
/// let rows_and_columns = tril_indices(2, 0, None)?;
/// assert_eq!(rows_and_columns, [array![0i64, 1, 1], array![0i64, 0, 1]]);
/// # Ok(())
/// # }
/// ```
#[numpy("tril_indices(n, k=0, m=None)", call = |args| triangle_indices_from_args(args, tril_indices))]
pub fn tril_indices(n: usize, k: isize, m: impl Into<Option<usize>>) -> Result<Vec<NdArray>> {
    let m = m.into().unwrap_or(n);
    checked_size("tril_indices", &[n, m])?;
    lower_triangle_mask(Device::current()?, n, m, k)?.nonzero()
}

/// Returns the indices of the elements on and above diagonal `k` of an `n` x `m` matrix (`numpy.triu_indices`).
///
/// The call waits for the device.
///
/// # Errors
/// A size that overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, triu_indices};
/// # fn main() -> cuprum::Result<()> {
/// let rows_and_columns = triu_indices(2, 0, None)?;
/// assert_eq!(rows_and_columns, [array![0i64, 0, 1], array![0i64, 1, 1]]);
/// # Ok(())
/// # }
/// ```
#[numpy("triu_indices(n, k=0, m=None)", call = |args| triangle_indices_from_args(args, triu_indices))]
pub fn triu_indices(n: usize, k: isize, m: impl Into<Option<usize>>) -> Result<Vec<NdArray>> {
    let m = m.into().unwrap_or(n);
    checked_size("triu_indices", &[n, m])?;
    logical_not(lower_triangle_mask(Device::current()?, n, m, k.saturating_sub(1))?)?.nonzero()
}

/// Returns the extents of a matrix, or an error if the array is not 2-D.
fn matrix_extents(op: &'static str, a: &NdArray) -> Result<(usize, usize)> {
    match *a.shape() {
        [rows, columns] => Ok((rows, columns)),
        _ => Err(Error::shape(op, "input array must be 2-d", &[a.shape()])),
    }
}

/// Returns the indices of the elements on and below diagonal `k` of a matrix (`numpy.tril_indices_from`).
///
/// # Errors
/// An array that is not 2-D.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, s, tril_indices_from};
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1, 2], [3, 4]];
/// let at = tril_indices_from(&a, 0)?;
/// assert_eq!(a.index(s![&at[0], &at[1]])?, array![1, 3, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("tril_indices_from(arr, k=0)")]
pub fn tril_indices_from(arr: &NdArray, k: isize) -> Result<Vec<NdArray>> {
    let (rows, columns) = matrix_extents("tril_indices_from", arr)?;
    with_device(arr.device(), || tril_indices(rows, k, columns))
}

/// Returns the indices of the elements on and above diagonal `k` of a matrix (`numpy.triu_indices_from`).
///
/// # Errors
/// An array that is not 2-D.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, s, triu_indices_from};
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1, 2], [3, 4]];
/// let at = triu_indices_from(&a, 0)?;
/// assert_eq!(a.index(s![&at[0], &at[1]])?, array![1, 2, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("triu_indices_from(arr, k=0)")]
pub fn triu_indices_from(arr: &NdArray, k: isize) -> Result<Vec<NdArray>> {
    let (rows, columns) = matrix_extents("triu_indices_from", arr)?;
    with_device(arr.device(), || triu_indices(rows, k, columns))
}

/// Returns the indices of the main diagonal of an array with `ndim` axes of `n` elements (`numpy.diag_indices`).
///
/// # Errors
/// Too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, diag_indices, s};
/// # fn main() -> cuprum::Result<()> {
/// let at = diag_indices(2, 2)?;
/// assert_eq!(array![[1, 2], [3, 4]].index(s![&at[0], &at[1]])?, array![1, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("diag_indices(n, ndim=2)", call = diag_indices_from_args)]
pub fn diag_indices(n: usize, ndim: usize) -> Result<Vec<NdArray>> {
    checked_size("diag_indices", &vec![1; ndim.min(cuprum_core::layout::MAX_NDIM + 1)])?;
    Ok(vec![index_range(Device::current()?, n)?; ndim])
}

/// Returns the indices of the main diagonal of an array whose axes have the same extent (`numpy.diag_indices_from`).
///
/// # Errors
/// Extents that differ, or fewer than two axes.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, diag_indices_from, s};
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1, 2], [3, 4]];
/// let at = diag_indices_from(&a)?;
/// assert_eq!(a.index(s![&at[0], &at[1]])?, array![1, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("diag_indices_from(arr)")]
pub fn diag_indices_from(arr: &NdArray) -> Result<Vec<NdArray>> {
    let name = "diag_indices_from";
    let [n, _, ..] = *arr.shape() else { return Err(Error::shape(name, "input array must be at least 2-d", &[arr.shape()])) };
    if arr.shape().iter().any(|&extent| extent != n) {
        return Err(Error::shape(name, "All dimensions of input must be of equal length", &[arr.shape()]));
    }
    with_device(arr.device(), || diag_indices(n, arr.ndim()))
}
