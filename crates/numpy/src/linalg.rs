//! Linear algebra (`numpy.linalg`), and frequently used functions of `scipy.linalg`.

mod expm_and_special_matrices;
mod linear_systems;
mod matrix_power_and_multi_dot;
mod norms;
mod scipy_decompositions;

use cuprum_core::ops::creation::eye;
use cuprum_core::{DType, Error, NdArray, Result, axis, broadcast_to, numpy, with_device};

pub use cuprum_core::ops::linalg::{
    Form, QrMode, Triangle, cholesky, det, eig, eigh, eigvals, eigvalsh, inv, logm, lu_factor, qr, qr_r, qr_raw, schur, slogdet, solve,
    solve_triangular, sqrtm, svd, svd_hermitian, svdvals,
};
pub use cuprum_core::{matmul, tensordot};

pub use self::expm_and_special_matrices::{block_diag, expm, toeplitz};
pub use self::linear_systems::{LeastSquares, lstsq, pinv, pinv_hermitian, tensorinv, tensorsolve};
pub use self::matrix_power_and_multi_dot::{cross, matrix_power, multi_dot, vecdot};
pub use self::norms::{Norm, cond, matrix_norm, matrix_rank, norm, vector_norm};
pub use self::scipy_decompositions::{cho_factor, cho_solve, lu, lu_solve, null_space, orth, polar};
pub use crate::manipulation::matrix_transpose;

/// Returns `x`, converted to float64 if its elements are integers or bools.
fn integers_to_float64(x: &NdArray) -> Result<NdArray> {
    if x.dtype().is_inexact() { Ok(x.clone()) } else { x.astype(DType::F64) }
}

/// Returns the sums of the diagonals of the matrices in the last two axes (`numpy.linalg.trace`).
///
/// `offset` selects a diagonal above the main one, or below it if negative. bool and small integers are summed in int64 or uint64, unless a
/// dtype is given.
///
/// # Errors
/// An array of fewer than two dimensions.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{NdArray, arange};
/// # fn main() -> cuprum::Result<()> {
/// let a = arange(0, 8, 1)?.reshape([2, 2, 2])?;
/// assert_eq!(cuprum::linalg::trace(&a, 0, None)?.to_vec::<i64>()?, [3, 11]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.trace(x, /, *, offset=0, dtype=None)")]
pub fn trace(x: &NdArray, offset: isize, dtype: Option<DType>) -> Result<NdArray> {
    let over = axis(-1);
    diagonal(x, offset)?.sum(dtype.map_or(over.clone(), |dtype| over.dtype(dtype)))
}

/// Returns the diagonals of the matrices in the last two axes, as a view (`numpy.linalg.diagonal`).
///
/// # Errors
/// An array of fewer than two dimensions.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::linalg::diagonal;
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(diagonal(&array![[1, 2], [3, 4]], 0)?, array![1, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.diagonal(x, /, *, offset=0)")]
pub fn diagonal(x: &NdArray, offset: isize) -> Result<NdArray> {
    x.diagonal(offset, -2, -1)
}

/// Returns the products of all pairs of elements of two 1-D arrays, as a matrix (`numpy.linalg.outer`).
///
/// # Errors
/// Arrays that are not 1-D, or on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::linalg::outer;
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(outer(&array![1, 2], &array![3, 4])?, array![[3, 4], [6, 8]]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.outer(x1, x2, /)")]
pub fn outer(x1: &NdArray, x2: &NdArray) -> Result<NdArray> {
    if x1.ndim() != 1 || x2.ndim() != 1 {
        let message = format!("takes 1-D arrays, not of {} and {} dimensions", x1.ndim(), x2.ndim());
        return Err(Error::value("outer", message));
    }
    cuprum_core::outer(x1, x2)
}

/// Returns whether the dtype is a float of 16 bits. LAPACK has no such dtype, and NumPy sums products of it in float32.
fn is_16_bit_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// Returns the machine epsilon of float32 for float32 and complex64, and that of float64 for other dtypes.
fn machine_epsilon(dtype: DType) -> f64 {
    if dtype.real() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

/// Returns the elements of a real array as float64 numbers, in C order.
fn to_f64_vec(a: &NdArray) -> Result<Vec<f64>> {
    a.astype(DType::F64)?.to_vec()
}

/// Returns a view of shape `[..batch, n, n]` whose matrices are identities of `dtype`, on the device of `model`.
fn identity_matrices(model: &NdArray, batch: &[usize], n: usize, dtype: DType) -> Result<NdArray> {
    let one = with_device(model.device(), || eye(n, n, 0, dtype))?;
    broadcast_to(&one, [batch, &[n, n]].concat())
}

/// Returns the conjugate transpose of the matrices in the last two axes.
fn adjoint(a: &NdArray) -> Result<NdArray> {
    let transposed = matrix_transpose(a)?;
    if a.dtype().is_complex() { transposed.conj() } else { Ok(transposed) }
}
