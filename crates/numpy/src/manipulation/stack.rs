//! Arrays joined by rows, columns or depth: `vstack`, `hstack`, `dstack`, `column_stack`.

use cuprum_core::{NdArray, Result, concat, numpy};

use crate::manipulation::atleast_nd::atleast_3d;
use crate::operand_and_slice_helpers::with_at_least_ndim;

/// Joins arrays along the first axis, 1-D arrays as one row each (`numpy.vstack`).
///
/// Passes over memory: one.
///
/// # Errors
/// No arrays, extents that differ, arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (NdArray::from_slice(&[1, 2])?, NdArray::from_slice(&[3, 4])?);
/// assert_eq!(cuprum::vstack([&a, &b])?.shape(), [2, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("vstack(tup)", aliases("row_stack"))]
pub fn vstack(#[name("tup")] arrays: impl IntoIterator<Item: AsRef<NdArray>>) -> Result<NdArray> {
    let rows: Result<Vec<NdArray>> = arrays.into_iter().map(|a| with_at_least_ndim(a.as_ref(), 2)).collect();
    concat(&rows?, 0)
}

/// Joins arrays along the second axis, 1-D arrays along the first (`numpy.hstack`).
///
/// Passes over memory: one.
///
/// # Errors
/// No arrays, extents that differ, arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, hstack};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(hstack([array![1, 2], array![3]])?, array![1, 2, 3]);
/// assert_eq!(hstack([array![[1], [2]], array![[3], [4]]])?, array![[1, 3], [2, 4]]);
/// # Ok(())
/// # }
/// ```
#[numpy("hstack(tup)")]
pub fn hstack(#[name("tup")] arrays: impl IntoIterator<Item: AsRef<NdArray>>) -> Result<NdArray> {
    let parts: Vec<NdArray> = arrays.into_iter().map(|a| with_at_least_ndim(a.as_ref(), 1)).collect::<Result<_>>()?;
    let axis = if parts.first().is_some_and(|p| p.ndim() == 1) { 0 } else { 1 };
    concat(&parts, axis)
}

/// Joins arrays as columns: along the second axis, 1-D arrays as one column each (`numpy.column_stack`).
///
/// Passes over memory: one.
///
/// # Errors
/// No arrays, extents that differ, arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, column_stack};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(column_stack([array![1, 2], array![3, 4]])?, array![[1, 3], [2, 4]]);
/// # Ok(())
/// # }
/// ```
#[numpy("column_stack(tup)")]
pub fn column_stack(#[name("tup")] arrays: impl IntoIterator<Item: AsRef<NdArray>>) -> Result<NdArray> {
    let column = |a: &NdArray| if a.ndim() < 2 { a.reshape([-1, 1]) } else { Ok(a.clone()) };
    concat(&arrays.into_iter().map(|a| column(a.as_ref())).collect::<Result<Vec<_>>>()?, 1)
}

/// Joins arrays along the third axis, after [`atleast_3d`] (`numpy.dstack`).
///
/// Passes over memory: one.
///
/// # Errors
/// No arrays, extents that differ, arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, dstack};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(dstack([array![1, 2], array![3, 4]])?, array![[[1, 3], [2, 4]]]);
/// # Ok(())
/// # }
/// ```
#[numpy("dstack(tup)")]
pub fn dstack(#[name("tup")] arrays: impl IntoIterator<Item: AsRef<NdArray>>) -> Result<NdArray> {
    concat(&arrays.into_iter().map(|a| atleast_3d(a.as_ref())).collect::<Result<Vec<_>>>()?, 2)
}
