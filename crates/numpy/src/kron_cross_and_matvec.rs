//! Products of vectors and matrices outside of `numpy.linalg`.

use cuprum_core::layout::normalize_axis;
use cuprum_core::{Error, NdArray, Result, matmul, moveaxis, multiply, negative, numpy, stack, subtract};

use crate::operand_and_slice_helpers::{slice_axis, with_at_least_ndim};

/// Returns the Kronecker product (`numpy.kron`): a block for each element of `a`, which is the element times `b`.
///
/// The array of fewer dimensions gets leading axes of extent 1. The result is deferred.
///
/// Passes over memory: one, which writes the result.
///
/// # Errors
/// A result of too many dimensions or elements, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::kron(&array![1, 10], &array![5, 6, 7])?;
/// assert_eq!(a, array![5, 6, 7, 50, 60, 70]);
/// # Ok(())
/// # }
/// ```
#[numpy("kron(a, b)")]
pub fn kron(a: &NdArray, b: &NdArray) -> Result<NdArray> {
    let ndim = a.ndim().max(b.ndim());
    let (a, b) = (with_at_least_ndim(a, ndim)?, with_at_least_ndim(b, ndim)?);
    let mut shape = Vec::new();
    for (&m, &n) in a.shape().iter().zip(b.shape()) {
        let extent = m.checked_mul(n).and_then(|extent| isize::try_from(extent).ok());
        shape.push(extent.ok_or_else(|| Error::shape("kron", "array is too large", &[a.shape(), b.shape()]))?);
    }
    // In a Kronecker product, the axes of the two factors alternate. The reshape merges each pair into one axis of the result.
    let after: Vec<isize> = (0..ndim).map(|axis| 2 * axis as isize + 1).collect();
    let before: Vec<isize> = (0..ndim).map(|axis| 2 * axis as isize).collect();
    multiply(a.expand_dims(after)?, b.expand_dims(before)?)?.reshape(shape)
}

/// The axes of the vectors that [`cross`] takes: of the first operand, of the second, and of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossAxes {
    /// Axis of the first operand.
    pub first: isize,
    /// Axis of the second operand.
    pub second: isize,
    /// Axis of the result.
    pub result: isize,
}

impl From<isize> for CrossAxes {
    fn from(axis: isize) -> CrossAxes {
        CrossAxes { first: axis, second: axis, result: axis }
    }
}

fn cross_from_args(args: &cuprum_core::Args) -> Result<cuprum_core::Value> {
    let axis = |name: &str| args.int_or(name, -1);
    let axes = match args.get("axis") {
        Some(axis) => axis.to_isize(args.op())?.into(),
        None => CrossAxes { first: axis("axisa")?, second: axis("axisb")?, result: axis("axisc")? },
    };
    cross(&args.array("a")?, &args.array("b")?, axes).map(cuprum_core::Value::Array)
}

/// Returns the cross products of vectors of two or three elements along an axis (`numpy.cross`). The other axes broadcast.
///
/// A vector of two elements counts as having 0 as its third element. If both vectors have two elements, the result is only the third
/// element of the product, without the axis. [`linalg::cross`](crate::linalg::cross) takes vectors of three elements only.
///
/// Passes over memory: one, and one to join the elements of the result.
///
/// # Errors
/// An axis whose extent is neither 2 nor 3, shapes that do not broadcast, bool, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, cross};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cross(&array![1, 2, 3], &array![4, 5, 6], -1)?, array![-3, 6, -3]);
/// assert_eq!(cross(&array![1, 2], &array![4, 5], -1)?.item()?, -3.0);
/// # Ok(())
/// # }
/// ```
#[numpy("cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None)", call = cross_from_args)]
pub fn cross(a: &NdArray, b: &NdArray, axes: impl Into<CrossAxes>) -> Result<NdArray> {
    let axes = axes.into();
    let parts = |x: &NdArray, axis: isize| -> Result<Vec<NdArray>> {
        let axis = normalize_axis("cross", axis, x.ndim())?;
        let extent = x.shape()[axis];
        if extent != 2 && extent != 3 {
            let message = "incompatible dimensions for cross product: dimension must be 2 or 3";
            return Err(Error::shape("cross", message, &[a.shape(), b.shape()]));
        }
        (0..extent as isize).map(|i| slice_axis(x, axis, i, i + 1, 1)?.squeeze(axis as isize)).collect()
    };
    let (a, b) = (parts(a, axes.first)?, parts(b, axes.second)?);
    let minor = |p: &NdArray, q: &NdArray, r: &NdArray, s: &NdArray| subtract(multiply(p, q)?, multiply(r, s)?);
    let last = minor(&a[0], &b[1], &a[1], &b[0])?;
    let elements = match (a.get(2), b.get(2)) {
        (None, None) => return Ok(last),
        (None, Some(b2)) => [multiply(&a[1], b2)?, negative(multiply(&a[0], b2)?)?, last],
        (Some(a2), None) => [negative(multiply(a2, &b[1])?)?, multiply(a2, &b[0])?, last],
        (Some(a2), Some(b2)) => [minor(&a[1], b2, a2, &b[1])?, minor(a2, &b[0], &a[0], b2)?, last],
    };
    moveaxis(&stack(&elements, -1)?, -1, axes.result)
}

/// Returns the products of matrices and vectors (`numpy.matvec`): (..., m, n) and (..., n) give (..., m). The other axes broadcast.
///
/// # Errors
/// A matrix of fewer than two or a vector of fewer than one dimension, extents that do not match, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let rows = cuprum::matvec(&array![[1, 2], [3, 4]], &array![1, 10])?;
/// assert_eq!(rows, array![21, 43]);
/// # Ok(())
/// # }
/// ```
#[numpy("matvec(x1, x2, /, out=None, *, casting='same_kind', order='K', dtype=None)")]
pub fn matvec(x1: &NdArray, x2: &NdArray) -> Result<NdArray> {
    check_min_ndims("matvec", x1, 2, x2, 1)?;
    matmul(x1, &x2.expand_dims(-1)?)?.squeeze(-1)
}

/// Returns the products of conjugated vectors with matrices (`numpy.vecmat`): (..., n) and (..., n, p) give (..., p). The other axes
/// broadcast.
///
/// # Errors
/// A vector of fewer than one or a matrix of fewer than two dimensions, extents that do not match, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let columns = cuprum::vecmat(&array![1, 10], &array![[1, 2], [3, 4]])?;
/// assert_eq!(columns, array![31, 42]);
/// # Ok(())
/// # }
/// ```
#[numpy("vecmat(x1, x2, /, out=None, *, casting='same_kind', order='K', dtype=None)")]
pub fn vecmat(x1: &NdArray, x2: &NdArray) -> Result<NdArray> {
    check_min_ndims("vecmat", x1, 1, x2, 2)?;
    let rows = x1.expand_dims(-2)?;
    matmul(&if x1.dtype().is_complex() { rows.conj()? } else { rows }, x2)?.squeeze(-2)
}

fn check_min_ndims(op: &'static str, x1: &NdArray, least1: usize, x2: &NdArray, least2: usize) -> Result<()> {
    if x1.ndim() >= least1 && x2.ndim() >= least2 {
        return Ok(());
    }
    Err(Error::shape(op, format!("the operands have at least {least1} and {least2} dimensions"), &[x1.shape(), x2.shape()]))
}
