//! Requests of the kernel family `Linalg`: decompositions of matrices and solutions of linear systems.

use super::kernel_request::KernelRequest;
use super::output_spec::OutputSpec;
use super::tuning_signature::TuningSignature;
use crate::array::StoredArray;
use crate::error::Result;
use crate::op::{Family, Parameters};

/// A decomposition of each matrix of a batch, or the solution of linear systems.
///
/// The last two axes of an input are a matrix. The other axes are the batch, which all inputs and outputs share. Inputs have one dtype
/// (float32, float64, complex64 or complex128) and any strides. Outputs are C-contiguous. No extent is 0. Outputs have the inputs' dtype
/// unless the variant states otherwise. A "real" output has the dtype of the real part.
///
/// If a matrix has no result, as when a singular matrix is inverted, the call fails with [`Error::LinAlg`](crate::Error::LinAlg). The error
/// contains the index of such a matrix in the batch. A device may detect the failure later, so that reading the results returns the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Linalg {
    /// The solution `x` of `a @ x = b`: inputs `a` (n, n) and `b` (n, k), output `x` (n, k). A singular `a` is an error.
    Solve,
    /// The solution `x` of `a @ x = b` for triangular `a`, where `form` may replace `a` by its transpose. The other triangle of `a` is not
    /// read. A zero on the diagonal is an error.
    SolveTriangular {
        /// The triangle of `a` that the kernel reads.
        triangle: Triangle,
        /// Whether the equation contains `a`, its transpose, or its conjugate transpose.
        form: Form,
        /// Whether the diagonal elements are taken as 1 and not read.
        unit_diagonal: bool,
    },
    /// The inverse (n, n) of a matrix (n, n). A singular matrix is an error.
    Inverse,
    /// The determinant (scalar) of a matrix (n, n). With `log`, there are two outputs: the sign (a complex number of magnitude 1 for
    /// complex matrices), and the real logarithm of the magnitude. A singular matrix has sign 0 and logarithm -inf.
    Determinant {
        /// Whether the outputs are sign and logarithm instead of the determinant.
        log: bool,
    },
    /// The Cholesky factor (n, n): lower triangular with `l @ lᴴ = a`, or upper triangular with `uᴴ @ u = a`. Its diagonal is real and
    /// positive, and its other triangle is zero. Only the triangle of `a` that corresponds to the factor is read. A matrix that is not
    /// positive definite is an error.
    Cholesky {
        /// The triangle of the factor, which is also the triangle of the input that is read.
        triangle: Triangle,
    },
    /// The LU decomposition `p @ a = l @ u` of a matrix (m, n) by partial pivoting. The first output (m, n) holds `u`, and below its
    /// diagonal `l` without the unit diagonal. The second output holds the int32 pivots (k) for k = min(m, n): row i was interchanged with
    /// row `pivots[i]`, in ascending order of i. Singular matrices are allowed.
    Lu,
    /// The QR decomposition `a = q @ r` of a matrix (m, n): `q` has orthonormal columns, and `r` is upper triangular. The signs of the
    /// diagonal of `r` are unspecified. k = min(m, n).
    Qr {
        /// Selects `q` and `r` or only `r` as outputs, and a reduced or a square `q`.
        mode: QrMode,
    },
    /// The singular value decomposition `a = u @ diag(s) @ vh` of a matrix (m, n). The singular values `s` (k) are real and in descending
    /// order, for k = min(m, n). A matrix with infinities or NaN is an error, and so is an iteration that does not converge.
    Svd {
        /// Selects whether `u` and `vh` are outputs, and whether they are reduced or square.
        vectors: SingularVectors,
    },
    /// The real eigenvalues (n) of a Hermitian matrix (n, n) in ascending order, and with `vectors` the orthonormal eigenvectors (n, n), as
    /// columns. Errors are those of [`Linalg::Svd`].
    Eigh {
        /// The triangle of the matrix that the kernel reads. The imaginary part of the diagonal is not read.
        triangle: Triangle,
        /// Whether the eigenvectors are an output of the call.
        vectors: bool,
    },
    /// The complex eigenvalues (n) of a matrix (n, n), and with `vectors` the eigenvectors (n, n) of norm 1, as columns. The complex
    /// eigenvalues of a real matrix are conjugate pairs with exactly equal real parts. Errors are those of [`Linalg::Svd`].
    Eig {
        /// Whether the eigenvectors are an output of the call.
        vectors: bool,
    },
    /// The Schur decomposition `a = z @ t @ zᴴ` of a matrix (n, n): outputs `t` and the unitary `z`. `t` is upper triangular for complex
    /// matrices. For real matrices, it is block upper triangular with a block (2, 2) for each pair of conjugate eigenvalues; the diagonal
    /// elements of such a block are equal, and the other elements have opposite signs. A matrix with infinities or NaN is an error, and so
    /// is an iteration that does not converge.
    Schur,
    /// A function of a matrix (n, n), as a complex matrix (n, n). The imaginary parts are zeros if the matrix is real and has no negative
    /// eigenvalue. A matrix without a square root or logarithm fails with
    /// [`LinAlgFailure::Singular`](crate::error::LinAlgFailure::Singular). Other errors are those of [`Linalg::Schur`].
    Function(MatrixFunction),
}

/// A function of a square matrix: the principal square root or the principal logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixFunction {
    /// The principal square root, whose eigenvalues have a real part that is not negative.
    SquareRoot,
    /// The principal logarithm, whose eigenvalues have an imaginary part in (-pi, pi].
    Logarithm,
}

/// A triangle of a square matrix, with the diagonal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Triangle {
    /// The diagonal and the elements below it.
    #[default]
    Lower,
    /// The diagonal and the elements above it.
    Upper,
}

/// The form of a matrix in an equation: unchanged, transposed or conjugate transposed (`trans=` of SciPy).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// The matrix.
    #[default]
    Plain,
    /// The transpose of the matrix.
    Transposed,
    /// The conjugate transpose of the matrix.
    Adjoint,
}

/// Selects the outputs of a QR decomposition of a matrix (m, n), with k = min(m, n) (`mode=` of `numpy.linalg.qr`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QrMode {
    /// Outputs `q` (m, k) and `r` (k, n).
    #[default]
    Reduced,
    /// Outputs `q` (m, m) and `r` (m, n).
    Complete,
    /// Outputs only `r` (k, n).
    R,
    /// Outputs `h` (n, m) and `tau` (k), LAPACK's form: `h` is the transpose of a matrix with `r` on and above the diagonal and the
    /// vectors of Householder reflections below. `q` is the product of `I - tau[i] * v @ vᴴ`.
    Raw,
}

/// Selects the outputs of a singular value decomposition of a matrix (m, n), with k = min(m, n).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SingularVectors {
    /// Outputs only the singular values.
    Omitted,
    /// Outputs `u` (m, k), the singular values, and `vh` (k, n).
    Reduced,
    /// Outputs `u` (m, m), the singular values, and `vh` (n, n).
    Full,
}

impl KernelRequest for Linalg {
    fn family(&self) -> Family {
        Family::Linalg
    }
    fn composite_parameters(&self) -> Option<&Parameters> {
        Some(self)
    }
    fn format_call_options(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec]) -> String {
        match *self {
            Linalg::Cholesky { triangle: Triangle::Upper } => "upper".into(),
            Linalg::SolveTriangular { triangle, form, unit_diagonal } => {
                let unit = if unit_diagonal { ", unit diagonal" } else { "" };
                format!("{triangle:?}, {form:?}{unit}").to_lowercase()
            }
            Linalg::Qr { mode } => format!("mode='{mode:?}'").to_lowercase(),
            Linalg::Svd { vectors } => format!("vectors {vectors:?}").to_lowercase(),
            Linalg::Eigh { triangle: Triangle::Upper, .. } => "UPLO='U'".into(),
            _ => String::new(),
        }
    }
    fn add_to_tuning_signature(&self, inputs: &[StoredArray], outputs: &[OutputSpec], signature: &mut TuningSignature) -> Result<()> {
        signature.hash_value(self);
        signature.hash_layouts(inputs, outputs);
        Ok(())
    }
}
