//! Cholesky, LU and QR decompositions.

use super::{CHOLESKY, LU_FACTOR, MatrixBatch, QR, QR_RAW};
use crate::array::NdArray;
use crate::call::{Linalg, QrMode, Triangle};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::python_value::{Args, Value};
use cuprum_macros::numpy;

/// Returns the Cholesky factors of Hermitian, positive definite matrices (`numpy.linalg.cholesky`).
///
/// The factor `l` is lower triangular with `l @ lᴴ = a`. Only the lower triangle of `a` is read. With `upper`, the factor is an upper
/// triangular `u` with `uᴴ @ u = a`, and only the upper triangle of `a` is read.
///
/// # Errors
/// Matrices that are not square, float16, or a matrix that is not positive definite ([`Error::LinAlg`]). On a GPU, reading the result
/// returns the latter error.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::cholesky};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cholesky(&array![[4.0, 2.0], [2.0, 5.0]], false)?, array![[2.0, 0.0], [1.0, 2.0]]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.cholesky(a, /, *, upper=False)")]
pub fn cholesky(a: &NdArray, upper: bool) -> Result<NdArray> {
    let a = MatrixBatch::from_square_array(CHOLESKY, a)?;
    let extents = [a.rows, a.columns];
    if a.is_empty() {
        return a.full_for_each_matrix(0.0, a.array.dtype(), &extents);
    }
    let triangle = if upper { Triangle::Upper } else { Triangle::Lower };
    let [factor] = a.dispatch_decomposition(CHOLESKY, [a.output_spec(a.array.dtype(), &extents)?], Linalg::Cholesky { triangle })?;
    Ok(factor)
}

/// Returns the LU decomposition of matrices with partial pivoting, packed (`scipy.linalg.lu_factor`).
///
/// The first result holds the upper factor, and below its diagonal the lower factor without its unit diagonal. The second result holds
/// int32 pivots: row i was interchanged with row `pivots[i]`, for i in ascending order. Singular matrices are allowed.
///
/// # Errors
/// Fewer than two dimensions, or float16.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::lu_factor};
/// # fn main() -> cuprum::Result<()> {
/// let (lu, pivots) = lu_factor(&array![[1.0, 3.0], [2.0, 4.0]])?;
/// assert_eq!((lu, pivots.to_vec::<i32>()?), (array![[2.0, 4.0], [0.5, 1.0]], vec![1, 1]));
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.lu_factor(a)")]
pub fn lu_factor(a: &NdArray) -> Result<(NdArray, NdArray)> {
    let a = MatrixBatch::from_array(LU_FACTOR, a)?;
    let dtype = a.array.dtype();
    if a.is_empty() {
        return Ok((
            a.full_for_each_matrix(0.0, dtype, &[a.rows, a.columns])?,
            a.full_for_each_matrix(0.0, DType::I32, &[a.min_matrix_extent()])?,
        ));
    }
    let outputs = [a.output_spec(dtype, &[a.rows, a.columns])?, a.output_spec(DType::I32, &[a.min_matrix_extent()])?];
    let [factors, pivots] = a.dispatch_decomposition(LU_FACTOR, outputs, Linalg::Lu)?;
    Ok((factors, pivots))
}

/// Returns the QR decomposition of matrices: `q` with orthonormal columns and upper triangular `r` (`numpy.linalg.qr`).
///
/// For matrices (m, n) and k = min(m, n), `q` is (m, k) and `r` is (k, n). With [`QrMode::Complete`], `q` is (m, m) and `r` is (m, n). The
/// signs of the diagonal of `r` are unspecified. [`qr_r`] computes `r` alone, [`qr_raw`] the factors in LAPACK's form.
///
/// # Errors
/// Fewer than two dimensions, float16, [`QrMode::R`], or [`QrMode::Raw`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::{QrMode, qr}};
/// # fn main() -> cuprum::Result<()> {
/// let (q, r) = qr(&array![[3.0, 1.0], [4.0, 2.0]], QrMode::Reduced)?;
/// assert_eq!((q.shape(), r.shape()), (&[2, 2][..], &[2, 2][..]));
/// assert!((r.abs()?.to_vec::<f64>()?[0] - 5.0).abs() < 1e-14);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.qr(a, mode='reduced')", call = qr_from_args)]
pub fn qr(a: &NdArray, mode: QrMode) -> Result<(NdArray, NdArray)> {
    let a = MatrixBatch::from_array(QR, a)?;
    let (m, n, dtype) = (a.rows, a.columns, a.array.dtype());
    let k = match mode {
        QrMode::Reduced => a.min_matrix_extent(),
        QrMode::Complete => m,
        QrMode::R => return Err(Error::value(QR.name(), "gives two results; use qr_r")),
        QrMode::Raw => return Err(Error::value(QR.name(), "gives q and r; use qr_raw")),
    };
    if a.is_empty() {
        return Ok((a.identity_matrices(m, k)?, a.full_for_each_matrix(0.0, dtype, &[k, n])?));
    }
    let [q, r] = a.dispatch_decomposition(QR, [a.output_spec(dtype, &[m, k])?, a.output_spec(dtype, &[k, n])?], Linalg::Qr { mode })?;
    Ok((q, r))
}

/// Returns the upper triangular factor `r` of [`qr`] (`numpy.linalg.qr` with `mode='r'`).
///
/// # Errors
/// Fewer than two dimensions, or float16.
pub fn qr_r(a: &NdArray) -> Result<NdArray> {
    let a = MatrixBatch::from_array(QR, a)?;
    let (k, n, dtype) = (a.min_matrix_extent(), a.columns, a.array.dtype());
    if a.is_empty() {
        return a.full_for_each_matrix(0.0, dtype, &[k, n]);
    }
    let [r] = a.dispatch_decomposition(QR, [a.output_spec(dtype, &[k, n])?], Linalg::Qr { mode: QrMode::R })?;
    Ok(r)
}

/// Returns the QR decomposition in LAPACK's form: `h` and `tau` (`numpy.linalg.qr` with `mode='raw'`).
///
/// For matrices (m, n) and k = min(m, n), `h` is (n, m) and `tau` is (k). The transpose of `h` has the factor `r` on and above its
/// diagonal. Below the diagonal, its column i holds the end of a vector `v`, which begins with i zeros and a one. The factor `q` is the
/// product of the reflections `I - tau[i] * v @ vᴴ` for ascending i. `tau` is real, in the dtype of `h`; an element 0 stands for the
/// identity.
///
/// Only the CPU has a kernel, so arrays on other devices are copied to the host and back.
///
/// # Errors
/// Fewer than two dimensions, or float16.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::qr_raw};
/// # fn main() -> cuprum::Result<()> {
/// let (h, tau) = qr_raw(&array![[3.0], [4.0]])?;
/// let (h, tau) = (h.to_vec::<f64>()?, tau.to_vec::<f64>()?);
/// // The reflection maps (3, 4) to (-5, 0).
/// assert!((h[0] + 5.0).abs() < 1e-14 && (h[1] - 0.5).abs() < 1e-14 && (tau[0] - 1.6).abs() < 1e-14);
/// # Ok(())
/// # }
/// ```
pub fn qr_raw(a: &NdArray) -> Result<(NdArray, NdArray)> {
    let a = MatrixBatch::from_array(QR_RAW, a)?;
    let (m, n, k, dtype) = (a.rows, a.columns, a.min_matrix_extent(), a.array.dtype());
    if a.is_empty() {
        return Ok((a.full_for_each_matrix(0.0, dtype, &[n, m])?, a.full_for_each_matrix(0.0, dtype, &[k])?));
    }
    let outputs = [a.output_spec(dtype, &[n, m])?, a.output_spec(dtype, &[k])?];
    let [h, tau] = a.dispatch_decomposition(QR_RAW, outputs, Linalg::Qr { mode: QrMode::Raw })?;
    Ok((h, tau))
}

fn qr_from_args(args: &Args) -> Result<Value> {
    let a = args.array("a")?;
    let both = |mode| qr(&a, mode).map(|(q, r)| Value::named_tuple(&["Q", "R"], [q, r].map(Value::Array)));
    match args.value("mode") {
        Some(Value::Str(mode)) if mode == "reduced" => both(QrMode::Reduced),
        Some(Value::Str(mode)) if mode == "complete" => both(QrMode::Complete),
        Some(Value::Str(mode)) if mode == "r" => qr_r(&a).map(Value::Array),
        Some(Value::Str(mode)) if mode == "raw" => qr_raw(&a).map(|(h, tau)| Value::tuple([h.into(), tau.into()])),
        _ => Err(Error::value(args.op(), "mode is 'reduced', 'complete', 'r' or 'raw'")),
    }
}
