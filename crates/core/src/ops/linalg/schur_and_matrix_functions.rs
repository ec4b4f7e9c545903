//! Schur decompositions, square roots and logarithms of matrices (`scipy.linalg`).

use super::eigen_and_singular_values::{all_imaginary_parts_are_zero, copy_real_parts};
use super::host_decomposition::complex_dtype_of;
use super::{LOGM, MatrixBatch, SCHUR, SQRTM};
use crate::array::NdArray;
use crate::call::{Linalg, MatrixFunction};
use crate::error::{Error, Result};
use crate::op::Op;
use crate::ops::python_value::{Args, Value};
use cuprum_macros::numpy;

/// Returns the Schur decomposition of square matrices: `t`, `z` with `a = z @ t @ zᴴ` and unitary `z` (`scipy.linalg.schur`).
///
/// For complex matrices, `t` is upper triangular with the eigenvalues on the diagonal. For real matrices, `t` is real and block upper
/// triangular (SciPy's `output='real'`): a pair of conjugate eigenvalues is a block (2, 2) with equal diagonal elements. Convert the
/// matrices to a complex dtype for the complex decomposition (`output='complex'`). The order of the eigenvalues and the signs of the
/// vectors are unspecified.
///
/// The algorithm is the QZ iteration. Only the CPU has a kernel, so arrays on other devices are copied to the host and back.
///
/// # Errors
/// Matrices that are not square, float16, or a matrix with NaN or infinities ([`Error::LinAlg`]).
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::schur};
/// # fn main() -> cuprum::Result<()> {
/// let (t, z) = schur(&array![[4.0, 3.0], [2.0, 3.0]])?;
/// // The eigenvalues are 1 and 6.
/// let values = t.to_vec::<f64>()?;
/// assert!((values[0] + values[3] - 7.0).abs() < 1e-13 && values[2] == 0.0);
/// assert_eq!(z.shape(), &[2, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.schur(a, output='real')", call = schur_from_args)]
pub fn schur(a: &NdArray) -> Result<(NdArray, NdArray)> {
    let a = MatrixBatch::from_square_array(SCHUR, a)?;
    let (extents, dtype) = ([a.rows, a.rows], a.array.dtype());
    if a.is_empty() {
        return Ok((a.full_for_each_matrix(0.0, dtype, &extents)?, a.full_for_each_matrix(0.0, dtype, &extents)?));
    }
    let [t, z] = a.dispatch_decomposition(SCHUR, [a.output_spec(dtype, &extents)?, a.output_spec(dtype, &extents)?], Linalg::Schur)?;
    Ok((t, z))
}

fn schur_from_args(args: &Args) -> Result<Value> {
    let a = args.array("a")?;
    let a = match args.value("output") {
        Some(Value::Str(output)) if matches!(output.as_str(), "real" | "r") => a,
        Some(Value::Str(output)) if matches!(output.as_str(), "complex" | "c") => {
            let dtype = super::linalg_computation_dtype(SCHUR, a.dtype())?;
            a.astype(complex_dtype_of(dtype))?
        }
        _ => return Err(Error::value(args.op(), "argument must be 'real', or 'complex'")),
    };
    schur(&a).map(|(t, z)| Value::tuple([t.into(), z.into()]))
}

/// Returns the principal square roots of square matrices (`scipy.linalg.sqrtm`).
///
/// The result `x` has `x @ x = a`, and no eigenvalue of `x` has a negative real part. As in SciPy, results of real matrices are real unless
/// a matrix of the batch has a negative eigenvalue. The call waits for the device.
///
/// The algorithm is a recurrence on the Schur form (N. J. Higham, "Functions of Matrices", SIAM, 2008, chapter 6). Only the CPU has a
/// kernel, so arrays on other devices are copied to the host and back. float32 is computed in float64.
///
/// # Errors
/// Matrices that are not square, float16, a matrix with NaN or infinities, or a singular matrix without a square root
/// ([`Error::LinAlg`]). SciPy returns infinities for the latter, and NaN for NaN.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::sqrtm};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(sqrtm(&array![[4.0, 0.0], [0.0, 9.0]])?, array![[2.0, 0.0], [0.0, 3.0]]);
/// assert!(sqrtm(&array![[0.0, 1.0], [0.0, 0.0]]).is_err());
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.sqrtm(A)")]
pub fn sqrtm(#[name("A")] a: &NdArray) -> Result<NdArray> {
    apply_matrix_function(SQRTM, a, MatrixFunction::SquareRoot)
}

/// Returns the principal logarithms of square matrices (`scipy.linalg.logm`), the inverse of `expm`.
///
/// The eigenvalues of the result have an imaginary part in (-pi, pi]. As in SciPy, results of real matrices are real unless a matrix of the
/// batch has a negative eigenvalue. The call waits for the device.
///
/// The algorithm is inverse scaling and squaring of the Schur form (A. H. Al-Mohy and N. J. Higham, "Improved inverse scaling and squaring
/// algorithms for the matrix logarithm", SIAM J. Sci. Comput. 34, 2012). Only the CPU has a kernel, so arrays on other devices are copied
/// to the host and back. float32 is computed in float64.
///
/// # Errors
/// Matrices that are not square, float16, a matrix with NaN or infinities, or a singular matrix ([`Error::LinAlg`]). SciPy warns of a
/// singular matrix, and replaces its eigenvalue 0 by a small number.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::logm};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(logm(&array![[1.0, 2.0], [0.0, 1.0]])?, array![[0.0, 2.0], [0.0, 0.0]]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.logm(A)")]
pub fn logm(#[name("A")] a: &NdArray) -> Result<NdArray> {
    apply_matrix_function(LOGM, a, MatrixFunction::Logarithm)
}

fn apply_matrix_function(op: Op, a: &NdArray, function: MatrixFunction) -> Result<NdArray> {
    let a = MatrixBatch::from_square_array(op, a)?;
    let (extents, dtype) = ([a.rows, a.rows], a.array.dtype());
    if a.is_empty() {
        return a.full_for_each_matrix(0.0, dtype, &extents);
    }
    let [result] = a.dispatch_decomposition(op, [a.output_spec(complex_dtype_of(dtype), &extents)?], Linalg::Function(function))?;
    if dtype.is_complex() || !all_imaginary_parts_are_zero(&result)? { Ok(result) } else { copy_real_parts(&result) }
}
