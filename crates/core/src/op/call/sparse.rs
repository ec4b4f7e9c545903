//! Requests of the kernel family `Sparse`: products and triangular solutions of sparse matrices in compressed row format (CSR).

use super::kernel_request::KernelRequest;
use super::output_spec::OutputSpec;
use super::tuning_signature::TuningSignature;
use crate::array::{Array, StoredArray};
use crate::call::Triangle;
use crate::error::Result;
use crate::op::{Family, Parameters};

/// An operation on matrices in compressed row format.
///
/// A matrix consists of three inputs: `indptr` (rows + 1), `indices` (n) and `values` (n). The elements of row i are at the positions
/// `indptr[i]..indptr[i + 1]`, and `indices` holds their columns. `indptr` and `indices` are both int32 or both int64.
/// All inputs and outputs are C-contiguous. All values of a call have the same dtype, which is neither float16 nor bfloat16.
///
/// Kernels check `indptr` and `indices`, and return an error for values out of range. The order of the terms of a sum depends only on the
/// structure of the matrices, so results do not depend on threads or timing. Sums of integers wrap, and bool sums are "or".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sparse {
    /// The product with a dense array: inputs `indptr`, `indices`, `values` and `b`, which is (columns) or (columns, k). The output is
    /// (rows) or (rows, k).
    Multiply,
    /// The product of two matrices: inputs `indptr`, `indices`, `values` of the first matrix, then the same three arrays of the second
    /// matrix.
    ///
    /// The outputs are `indptr` (rows + 1), `indices` and `values` of the product. The output specifications of `indices` and `values` have
    /// extent 0, because the kernel determines the length. The columns of each row ascend, and each column occurs once.
    Product {
        /// Number of columns of the second matrix.
        columns: usize,
    },
    /// The elements of the dense product `a @ b.T` at the positions of a sparse matrix: inputs `indptr`, `indices`, `a` (rows, k) and `b`
    /// (columns, k). The output has one value per index.
    Sample,
    /// The solution `x` of `m @ x = b` for a triangular matrix `m` (n, n): inputs `indptr`, `indices`, `values` and `b`, which is (n) or
    /// (n, k). The output has the shape of `b`. Values are floating point or complex.
    ///
    /// Elements in the other triangle are not read. Repeated elements are added. A missing or zero element on the diagonal is an
    /// [`Error::LinAlg`](crate::Error::LinAlg).
    SolveTriangular {
        /// The triangle of the matrix that the kernel reads.
        triangle: Triangle,
        /// Whether the diagonal elements are taken as 1 and not read.
        unit_diagonal: bool,
    },
}

impl KernelRequest for Sparse {
    fn family(&self) -> Family {
        Family::Sparse
    }
    fn composite_parameters(&self) -> Option<&Parameters> {
        Some(self)
    }
    fn format_call_options(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec]) -> String {
        match self {
            Sparse::SolveTriangular { triangle, unit_diagonal } => {
                let unit = if *unit_diagonal { ", unit diagonal" } else { "" };
                format!("{triangle:?}{unit}").to_lowercase()
            }
            _ => String::new(),
        }
    }
    fn add_to_tuning_signature(&self, inputs: &[StoredArray], outputs: &[OutputSpec], signature: &mut TuningSignature) -> Result<()> {
        signature.hash_value(std::mem::discriminant(self));
        // The signature includes the mean number of elements per row, because the fastest kernel depends on it.
        if let [indptr, indices, ..] = inputs {
            signature.hash_axes(&[indices.size() / indptr.size().max(1)], &[[]]);
        }
        signature.hash_layouts(inputs, outputs);
        Ok(())
    }
}
