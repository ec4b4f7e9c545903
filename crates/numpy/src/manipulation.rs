//! Array manipulation routines.

use cuprum_core::{Item, NdArray, Result, concat, flip, numpy};

/// Swaps the last two axes (`numpy.matrix_transpose`). Returns a view.
///
/// # Errors
/// An array of fewer than two dimensions.
#[numpy("matrix_transpose(x, /)", aliases("linalg.matrix_transpose"))]
pub fn matrix_transpose(x: &NdArray) -> Result<NdArray> {
    x.mt()
}

/// Reverses the first axis (`numpy.flipud`). Returns a view.
///
/// # Errors
/// A 0-d array.
#[numpy("flipud(m)")]
pub fn flipud(m: &NdArray) -> Result<NdArray> {
    flip(m, Some(&[0]))
}

/// Reverses the second axis (`numpy.fliplr`). Returns a view.
///
/// # Errors
/// An array of fewer than two dimensions.
#[numpy("fliplr(m)")]
pub fn fliplr(m: &NdArray) -> Result<NdArray> {
    flip(m, Some(&[1]))
}

/// Joins arrays along the first axis, 1-D arrays as one row each (`numpy.vstack`).
///
/// # Errors
/// No arrays, extents that differ, arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (NdArray::from_slice(&[1, 2])?, NdArray::from_slice(&[3, 4])?);
/// assert_eq!(cuprum_numpy::vstack(&[a, b])?.shape(), [2, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("vstack(tup)")]
pub fn vstack(#[name("tup")] arrays: &[NdArray]) -> Result<NdArray> {
    let rows: Result<Vec<NdArray>> = arrays.iter().map(|a| at_least(a, 2)).collect();
    concat(&rows?, 0)
}

/// Joins arrays along the second axis, 1-D arrays along the first (`numpy.hstack`).
///
/// # Errors
/// No arrays, extents that differ, arrays on different devices.
#[numpy("hstack(tup)")]
pub fn hstack(#[name("tup")] arrays: &[NdArray]) -> Result<NdArray> {
    let parts: Vec<NdArray> = arrays.iter().map(|a| at_least(a, 1)).collect::<Result<_>>()?;
    let axis = if parts.first().is_some_and(|p| p.ndim() == 1) { 0 } else { 1 };
    concat(&parts, axis)
}

/// Prepends axes of length 1 until the array has at least `ndim` axes.
fn at_least(a: &NdArray, ndim: usize) -> Result<NdArray> {
    a.index(&vec![Item::NewAxis; ndim.saturating_sub(a.ndim())])
}
