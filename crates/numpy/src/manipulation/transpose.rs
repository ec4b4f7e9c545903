//! Reordering of axes: `matrix_transpose` and `rollaxis`.

use cuprum_core::layout::normalize_axis;
use cuprum_core::{Error, NdArray, Result, moveaxis, numpy};

/// Swaps the last two axes (`numpy.matrix_transpose`). Returns a view.
///
/// # Errors
/// An array of fewer than two dimensions.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, matrix_transpose};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(matrix_transpose(&array![[1, 2], [3, 4]])?, array![[1, 3], [2, 4]]);
/// # Ok(())
/// # }
/// ```
#[numpy("matrix_transpose(x, /)", aliases("linalg.matrix_transpose"))]
pub fn matrix_transpose(x: &NdArray) -> Result<NdArray> {
    x.mt()
}

/// Moves an axis so that it precedes position `start` of the original axis order (`numpy.rollaxis`). Returns a view. [`moveaxis`] is easier
/// to use.
///
/// # Errors
/// An axis or a position out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, rollaxis, zeros};
/// # fn main() -> cuprum::Result<()> {
/// let a = zeros((2, 3, 4), DType::F64)?;
/// assert_eq!(rollaxis(&a, 2, 0)?.shape(), [4, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("rollaxis(a, axis, start=0)")]
pub fn rollaxis(a: &NdArray, axis: isize, start: isize) -> Result<NdArray> {
    let (name, n) = ("rollaxis", a.ndim() as isize);
    let axis = normalize_axis(name, axis, a.ndim())? as isize;
    let position = if start < 0 { start + n } else { start };
    if !(0..=n).contains(&position) {
        return Err(Error::Axis { op: name, axis: start, ndim: a.ndim() + 1 });
    }
    let position = if axis < position { position - 1 } else { position };
    moveaxis(a, [axis], [position])
}
