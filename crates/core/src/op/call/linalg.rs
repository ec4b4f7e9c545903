//! Linalg: decompositions of matrices and solutions of linear systems.

use super::output_spec::OutputSpec;
use super::request::Request;
use super::tuning_signature::TuningSignature;
use crate::array::StoredArray;
use crate::error::Result;
use crate::op::Family;

/// A decomposition of each matrix of a batch, or the solution of linear systems.
///
/// The last two axes of an input are a matrix, the others are the batch, which all inputs and outputs share. Inputs have one dtype:
/// float32, float64, complex64 or complex128, and any strides. Outputs are C-contiguous. No extent is 0. Outputs have the inputs' dtype
/// where nothing else is stated; "real" is the dtype of its real part.
///
/// A matrix without a result is an [`Error::LinAlg`](crate::Error::LinAlg) that names its index in the batch, the lowest if there are
/// several. A device may report it later, when the results are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Linalg {
    /// The solution `x` of `a @ x = b`: inputs `a` (n, n) and `b` (n, k), output `x` (n, k). A singular `a` is an error.
    Solve,
    /// The solution `x` of `op(a) @ x = b` for triangular `a`. The other triangle of `a` is not read. A zero on the diagonal is an error.
    SolveTriangular {
        /// The triangle of `a` that is read.
        triangle: Triangle,
        /// The form of `a` in the equation.
        form: Form,
        /// Whether the diagonal is taken as ones and not read.
        unit_diagonal: bool,
    },
    /// The inverse (n, n) of a matrix (n, n). A singular matrix is an error.
    Inverse,
    /// The determinant (scalar) of a matrix (n, n). With `log`, the outputs are its sign, or phase, and the real logarithm of its
    /// magnitude; a singular matrix has sign 0 and logarithm -inf.
    Determinant {
        /// Whether sign and logarithm are returned instead of the determinant.
        log: bool,
    },
    /// The factor (n, n) with a real, positive diagonal: lower `l @ lᴴ = a` or upper `uᴴ @ u = a`, and zeros in the other triangle.
    /// The input's other triangle is not read. A matrix that is not positive definite is an error.
    Cholesky {
        /// The triangle of the factor.
        triangle: Triangle,
    },
    /// The factors of `p @ a = l @ u` by partial pivoting: `l` without its unit diagonal and `u` in one matrix (m, n), and the int32
    /// pivots (k) for k = min(m, n): row i was interchanged with row `pivots[i]`, in ascending order of i. Singular matrices are allowed.
    Lu,
    /// `a = q @ r` for a matrix (m, n): `q` (m, k) and the upper triangular `r` (k, n) for k = min(m, n). Signs are unspecified.
    Qr {
        /// The outputs and their extents.
        mode: QrMode,
    },
    /// `a = u @ diag(s) @ vh` for a matrix (m, n): `u` (m, k), real `s` (k) in descending order, `vh` (k, n), for k = min(m, n).
    /// Infinities and NaN, and no convergence, are an error.
    Svd {
        /// The outputs and their extents.
        vectors: SingularVectors,
    },
    /// The real eigenvalues (n) of a Hermitian matrix (n, n) in ascending order, and with `vectors` the orthonormal eigenvectors (n, n),
    /// as columns. Infinities and NaN, and no convergence, are an error.
    Eigh {
        /// The triangle that is read. The imaginary part of the diagonal is not read.
        triangle: Triangle,
        /// Whether the eigenvectors are an output.
        vectors: bool,
    },
    /// The complex eigenvalues (n) of a matrix (n, n), and with `vectors` the eigenvectors (n, n) of norm 1, as columns. A real matrix
    /// has pairs of conjugates with exactly equal real parts. Infinities and NaN, and no convergence, are an error.
    Eig {
        /// Whether the eigenvectors are an output.
        vectors: bool,
    },
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

/// The form of a matrix in an equation (`trans=` of SciPy).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// The matrix.
    #[default]
    Plain,
    /// Its transpose.
    Transposed,
    /// Its conjugate transpose.
    Adjoint,
}

/// The outputs of a QR decomposition (`mode=` of `numpy.linalg.qr`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QrMode {
    /// `q` (m, k) and `r` (k, n).
    #[default]
    Reduced,
    /// `q` (m, m) and `r` (m, n).
    Complete,
    /// Only `r` (k, n).
    R,
}

/// The outputs of a singular value decomposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SingularVectors {
    /// Only the singular values.
    Omitted,
    /// `u` (m, k), the singular values, `vh` (k, n).
    Reduced,
    /// `u` (m, m), the singular values, `vh` (n, n).
    Full,
}

impl Request for Linalg {
    fn family(&self) -> Family {
        Family::Linalg
    }
    fn options(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec]) -> String {
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
    fn add_to_signature(&self, inputs: &[StoredArray], outputs: &[OutputSpec], signature: &mut TuningSignature) -> Result<()> {
        signature.add_value(self);
        signature.add_layouts(inputs, outputs);
        Ok(())
    }
}
