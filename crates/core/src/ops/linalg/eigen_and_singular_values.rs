//! Singular values and eigenvalues.

use super::host_decomposition::complex_dtype_of;
use super::{EIG, EIGH, EIGVALS, EIGVALSH, MatrixBatch, SVD, SVDVALS};
use crate::array::NdArray;
use crate::call::{Linalg, SingularVectors, Triangle};
use crate::dtype::DType;
use crate::error::Result;
use crate::function::FromArgs;
use crate::ops::creation::full_on_device;
use crate::ops::elementwise::{add, equal, less, multiply, subtract, where_};
use crate::ops::python_value::{Args, Value};
use crate::ops::reduce::axis;
use cuprum_macros::numpy;

/// Returns the singular value decomposition of matrices: `u`, `s`, `vh` with `a = u @ diag(s) @ vh` (`numpy.linalg.svd`).
///
/// For matrices (m, n) and k = min(m, n), `u` is (m, m) and `vh` (n, n) with `full_matrices`, else (m, k) and (k, n). `s` (k) is real and
/// descending. Signs of the vectors are unspecified. [`svdvals`] computes `s` alone, [`svd_hermitian`] is faster for Hermitian matrices.
///
/// # Errors
/// Fewer than two dimensions, float16, or a matrix with NaN or infinities ([`crate::Error::LinAlg`]).
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::svd};
/// # fn main() -> cuprum::Result<()> {
/// let (u, s, vh) = svd(&array![[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]], false)?;
/// assert_eq!((u.shape(), vh.shape()), (&[3, 2][..], &[2, 2][..]));
/// assert!((s.to_vec::<f64>()?[0] - 2.0).abs() < 1e-15);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.svd(a, full_matrices=True, compute_uv=True, hermitian=False)", call = svd_from_args)]
pub fn svd(a: &NdArray, full_matrices: bool) -> Result<(NdArray, NdArray, NdArray)> {
    let a = MatrixBatch::from_array(SVD, a)?;
    let (m, n, k, dtype) = (a.rows, a.columns, a.min_matrix_extent(), a.array.dtype());
    let (columns, rows) = if full_matrices { (m, n) } else { (k, k) };
    if a.is_empty() {
        return Ok((a.identity_matrices(m, columns)?, a.full_for_each_matrix(0.0, dtype.real(), &[k])?, a.identity_matrices(rows, n)?));
    }
    let outputs = [a.output_spec(dtype, &[m, columns])?, a.output_spec(dtype.real(), &[k])?, a.output_spec(dtype, &[rows, n])?];
    let vectors = if full_matrices { SingularVectors::Full } else { SingularVectors::Reduced };
    let [u, s, vh] = a.dispatch_decomposition(SVD, outputs, Linalg::Svd { vectors })?;
    Ok((u, s, vh))
}

/// Returns the singular value decomposition of Hermitian matrices from their eigenvalues (`numpy.linalg.svd` with `hermitian=True`).
///
/// Only the lower triangles are read. The results are those of [`svd`]: `u` (n, n), `s` (n) in descending order, `vh` (n, n). A column of
/// `u` is an eigenvector. The row of `vh` with the same index is its adjoint, negated for a negative eigenvalue.
///
/// # Errors
/// The errors of [`eigh`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::svd_hermitian};
/// # fn main() -> cuprum::Result<()> {
/// let (_, s, _) = svd_hermitian(&array![[0.0, 0.0], [3.0, 0.0]])?;
/// assert!(s.to_vec::<f64>()?.iter().all(|s| (s - 3.0).abs() < 1e-14));
/// # Ok(())
/// # }
/// ```
pub fn svd_hermitian(a: &NdArray) -> Result<(NdArray, NdArray, NdArray)> {
    let (w, u) = eigh(a, Triangle::Lower)?;
    let magnitudes = w.abs()?;
    if w.size() == 0 {
        return Ok((u.clone(), magnitudes, u));
    }
    let (n, matrices) = (w.shape()[w.ndim() - 1], w.size() / w.shape()[w.ndim() - 1]);
    let order = magnitudes.argsort(axis(-1).descending())?.reshape([matrices, n])?;
    let rows = |count: usize, step: usize, shape: [usize; 3]| {
        multiply(subtract(full_on_device(w.device(), &[count], 1.into(), DType::I64)?.cumsum(0)?, 1)?, step)?.reshape(shape)
    };
    let values_at = add(&order, rows(matrices, n, [matrices, 1, 1])?.squeeze(-1)?)?;
    let vectors_at = add(order.expand_dims(1)?, rows(matrices * n, n, [matrices, n, 1])?)?;
    let sorted = |values: &NdArray, at: &NdArray| values.ravel()?.take(at, 0)?.reshape(values.shape());
    let (s, u) = (sorted(&magnitudes, &values_at)?, sorted(&u, &vectors_at)?);
    let signs = sorted(&where_(less(&w, 0)?, -1, 1)?.astype(w.dtype())?, &values_at)?;
    let v = multiply(&u, signs.expand_dims(-2)?)?.swapaxes(-1, -2)?;
    let vh = if v.dtype().is_complex() { v.conj()? } else { v };
    Ok((u, s, vh))
}

/// Returns NumPy's named tuple of eigenvalues and eigenvectors.
fn eigen_named_tuple((values, vectors): (NdArray, NdArray)) -> Value {
    Value::named_tuple(&["eigenvalues", "eigenvectors"], [values, vectors].map(Value::Array))
}

/// Calls [`svd`], [`svdvals`] or their variants for Hermitian matrices with Python-like arguments.
fn svd_from_args(args: &Args) -> Result<Value> {
    let a = args.array("a")?;
    let full_matrices = args.bool_or("full_matrices", true)?;
    let hermitian = args.bool_or("hermitian", false)?;
    if !args.bool_or("compute_uv", true)? {
        let values = if hermitian { eigvalsh(&a, Triangle::Lower)?.abs()?.sort(axis(-1).descending()) } else { svdvals(&a) };
        return values.map(Value::Array);
    }
    let (u, s, vh) = if hermitian { svd_hermitian(&a)? } else { svd(&a, full_matrices)? };
    Ok(Value::named_tuple(&["U", "S", "Vh"], [u, s, vh].map(Value::Array)))
}

/// Returns the singular values of matrices in descending order (`numpy.linalg.svdvals`).
///
/// # Errors
/// The errors of [`svd`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::svdvals};
/// # fn main() -> cuprum::Result<()> {
/// let s = svdvals(&array![[3.0, 0.0], [0.0, -5.0]])?.to_vec::<f64>()?;
/// assert!((s[0] - 5.0).abs() < 1e-14 && (s[1] - 3.0).abs() < 1e-14);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.svdvals(x, /)")]
pub fn svdvals(x: &NdArray) -> Result<NdArray> {
    let a = MatrixBatch::from_array(SVDVALS, x)?;
    let (k, real) = (a.min_matrix_extent(), a.array.dtype().real());
    if a.is_empty() {
        return a.full_for_each_matrix(0.0, real, &[k]);
    }
    let [s] = a.dispatch_decomposition(SVDVALS, [a.output_spec(real, &[k])?], Linalg::Svd { vectors: SingularVectors::Omitted })?;
    Ok(s)
}

/// Returns eigenvalues and eigenvectors of Hermitian matrices (`numpy.linalg.eigh`).
///
/// The eigenvalues are real and ascending. The eigenvectors are orthonormal columns, of unspecified sign. Only one triangle of each
/// matrix is read.
///
/// # Errors
/// Matrices that are not square, float16, or a matrix with NaN or infinities ([`crate::Error::LinAlg`]).
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::{Triangle, eigh}};
/// # fn main() -> cuprum::Result<()> {
/// let (w, v) = eigh(&array![[2.0, 1.0], [1.0, 2.0]], Triangle::Lower)?;
/// let w = w.to_vec::<f64>()?;
/// assert!((w[0] - 1.0).abs() < 1e-14 && (w[1] - 3.0).abs() < 1e-14);
/// assert_eq!(v.shape(), &[2, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.eigh(a, UPLO='L')", call = |args| eigh(&args.array("a")?, FromArgs::from_args(args, "UPLO")?).map(eigen_named_tuple))]
pub fn eigh(a: &NdArray, #[name("UPLO")] triangle: Triangle) -> Result<(NdArray, NdArray)> {
    let a = MatrixBatch::from_square_array(EIGH, a)?;
    let (n, dtype) = (a.rows, a.array.dtype());
    if a.is_empty() {
        return Ok((a.full_for_each_matrix(0.0, dtype.real(), &[n])?, a.full_for_each_matrix(0.0, dtype, &[n, n])?));
    }
    let outputs = [a.output_spec(dtype.real(), &[n])?, a.output_spec(dtype, &[n, n])?];
    let [values, vectors] = a.dispatch_decomposition(EIGH, outputs, Linalg::Eigh { triangle, vectors: true })?;
    Ok((values, vectors))
}

/// Returns the eigenvalues of Hermitian matrices in ascending order (`numpy.linalg.eigvalsh`).
///
/// # Errors
/// The errors of [`eigh`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::{Triangle, eigvalsh}};
/// # fn main() -> cuprum::Result<()> {
/// let w = eigvalsh(&array![[0.0, 1.0], [1.0, 0.0]], Triangle::Lower)?.to_vec::<f64>()?;
/// assert!((w[0] + 1.0).abs() < 1e-14 && (w[1] - 1.0).abs() < 1e-14);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.eigvalsh(a, UPLO='L')")]
pub fn eigvalsh(a: &NdArray, #[name("UPLO")] triangle: Triangle) -> Result<NdArray> {
    let a = MatrixBatch::from_square_array(EIGVALSH, a)?;
    let (n, real) = (a.rows, a.array.dtype().real());
    if a.is_empty() {
        return a.full_for_each_matrix(0.0, real, &[n]);
    }
    let [values] = a.dispatch_decomposition(EIGVALSH, [a.output_spec(real, &[n])?], Linalg::Eigh { triangle, vectors: false })?;
    Ok(values)
}

/// Returns eigenvalues and right eigenvectors of square matrices (`numpy.linalg.eig`).
///
/// The eigenvectors are columns of norm 1. As in NumPy, results of real matrices are real if all eigenvalues are. The call waits for the
/// device to check the eigenvalues of real matrices.
///
/// # Errors
/// Matrices that are not square, float16, or a matrix with NaN or infinities ([`crate::Error::LinAlg`]).
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{Complex, array, ops::linalg::eig};
/// # fn main() -> cuprum::Result<()> {
/// let (w, _) = eig(&array![[0.0, -1.0], [1.0, 0.0]])?;
/// assert!((w.to_vec::<Complex<f64>>()?[0] - Complex::I).norm() < 1e-14);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.eig(a)", call = |args| eig(&args.array("a")?).map(eigen_named_tuple))]
pub fn eig(a: &NdArray) -> Result<(NdArray, NdArray)> {
    let a = MatrixBatch::from_square_array(EIG, a)?;
    let (n, dtype) = (a.rows, a.array.dtype());
    if a.is_empty() {
        return Ok((a.full_for_each_matrix(0.0, dtype, &[n])?, a.full_for_each_matrix(0.0, dtype, &[n, n])?));
    }
    let complex = complex_dtype_of(dtype);
    let outputs = [a.output_spec(complex, &[n])?, a.output_spec(complex, &[n, n])?];
    let [values, vectors] = a.dispatch_decomposition(EIG, outputs, Linalg::Eig { vectors: true })?;
    if dtype.is_complex() || !all_imaginary_parts_are_zero(&values)? {
        Ok((values, vectors))
    } else {
        Ok((copy_real_parts(&values)?, copy_real_parts(&vectors)?))
    }
}

/// Returns the eigenvalues of square matrices (`numpy.linalg.eigvals`). As in NumPy, the result for real matrices has a real dtype if all
/// eigenvalues are real.
///
/// # Errors
/// The errors of [`eig`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::eigvals};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(eigvals(&array![[2.0, 0.0], [0.0, 2.0]])?.to_vec::<f64>()?, [2.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.eigvals(a)")]
pub fn eigvals(a: &NdArray) -> Result<NdArray> {
    let a = MatrixBatch::from_square_array(EIGVALS, a)?;
    let (n, dtype) = (a.rows, a.array.dtype());
    if a.is_empty() {
        return a.full_for_each_matrix(0.0, dtype, &[n]);
    }
    let [values] = a.dispatch_decomposition(EIGVALS, [a.output_spec(complex_dtype_of(dtype), &[n])?], Linalg::Eig { vectors: false })?;
    if dtype.is_complex() || !all_imaginary_parts_are_zero(&values)? { Ok(values) } else { copy_real_parts(&values) }
}

pub(super) fn all_imaginary_parts_are_zero(values: &NdArray) -> Result<bool> {
    Ok(equal(values.imag()?, 0)?.all(())?.item()?.as_bool())
}

/// Returns a copy of the real parts, so that the memory of the complex array can be freed.
pub(super) fn copy_real_parts(values: &NdArray) -> Result<NdArray> {
    values.real()?.copy()
}
