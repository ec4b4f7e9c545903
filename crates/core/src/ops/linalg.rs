//! Decompositions of matrices and solutions of linear systems, for batches of matrices in the last two axes.
//!
//! The functions take float32, float64, complex64 and complex128. bool and integers are converted to float64. As in NumPy, other floating
//! dtypes are an error.

mod eigen_and_singular_values;
mod factorizations;
mod host_decomposition;
mod linear_systems;
mod schur_and_matrix_functions;

use crate::array::NdArray;
use crate::call::{Linalg, OutputSpec, Work};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, broadcast_shapes};
use crate::op::Op;
use crate::ops::creation::full_on_device;
use crate::ops::elementwise::equal;

pub use self::eigen_and_singular_values::{eig, eigh, eigvals, eigvalsh, svd, svd_hermitian, svdvals};
pub use self::factorizations::{cholesky, lu_factor, qr, qr_r, qr_raw};
pub use self::linear_systems::{det, inv, slogdet, solve, solve_triangular};
pub use self::schur_and_matrix_functions::{logm, schur, sqrtm};
pub use crate::call::{Form, QrMode, Triangle};

super::ops! { Linalg after scatter:
    SOLVE "solve" 2;
    SOLVE_TRIANGULAR "solve_triangular" 2;
    INV "inv" 1;
    DET "det" 1;
    SLOGDET "slogdet" 1;
    CHOLESKY "cholesky" 1;
    LU_FACTOR "lu_factor" 1;
    QR "qr" 1;
    SVD "svd" 1;
    SVDVALS "svdvals" 1;
    EIGH "eigh" 1;
    EIGVALSH "eigvalsh" 1;
    EIG "eig" 1;
    EIGVALS "eigvals" 1;
    QR_RAW "qr_raw" 1, else |inputs, parameters| host_decomposition::decompose_on_host(Op(&QR_RAW), inputs, parameters);
    SCHUR "schur" 1, else |inputs, parameters| host_decomposition::decompose_on_host(Op(&SCHUR), inputs, parameters);
    SQRTM "sqrtm" 1, else |inputs, parameters| host_decomposition::decompose_on_host(Op(&SQRTM), inputs, parameters);
    LOGM "logm" 1, else |inputs, parameters| host_decomposition::decompose_on_host(Op(&LOGM), inputs, parameters);
}

/// A batch of matrices: an array whose last two axes are those of the matrices, in a dtype that [`Linalg`] kernels take, and the extents of
/// its axes.
struct MatrixBatch {
    array: NdArray,
    batch: Dims,
    rows: usize,
    columns: usize,
}

impl MatrixBatch {
    /// Returns the matrices in the last two axes of `a`, converted to a dtype that [`Linalg`] kernels take.
    fn from_array(op: Op, a: &NdArray) -> Result<MatrixBatch> {
        let dtype = linalg_computation_dtype(op, a.dtype())?;
        let [batch @ .., rows, columns] = a.shape() else {
            let message = format!("{}-dimensional array given. Array must be at least two-dimensional", a.ndim());
            return Err(Error::shape(op.name(), message, &[a.shape()]));
        };
        Ok(MatrixBatch { array: a.astype(dtype)?, batch: batch.into(), rows: *rows, columns: *columns })
    }

    /// Returns the matrices of `a`, or an error if they are not square.
    fn from_square_array(op: Op, a: &NdArray) -> Result<MatrixBatch> {
        let matrices = MatrixBatch::from_array(op, a)?;
        if matrices.rows != matrices.columns {
            return Err(Error::shape(op.name(), "Last 2 dimensions of the array must be square", &[a.shape()]));
        }
        Ok(matrices)
    }

    /// Returns the smaller of the numbers of rows and columns.
    fn min_matrix_extent(&self) -> usize {
        self.rows.min(self.columns)
    }

    fn is_empty(&self) -> bool {
        self.array.size() == 0
    }

    /// Returns the shape of a result: the batch shape, followed by `extents`, the shape of the result for one matrix.
    fn shape_with_batch(&self, extents: &[usize]) -> Dims {
        self.batch.iter().chain(extents).copied().collect()
    }

    /// Returns the specification of an output of `dtype` with a result of shape `extents` for each matrix of the batch.
    fn output_spec(&self, dtype: DType, extents: &[usize]) -> Result<OutputSpec> {
        OutputSpec::contiguous(dtype, &self.shape_with_batch(extents))
    }

    /// Dispatches a decomposition of these matrices.
    fn dispatch_decomposition<const N: usize>(&self, op: Op, outputs: [OutputSpec; N], task: Linalg) -> Result<[NdArray; N]> {
        super::dispatch_call(op, self.array.device(), &[self.array.stored()?], &outputs, Work::Linalg(task))
    }

    /// Returns an array filled with `value`, with a result of shape `extents` for each matrix of the batch.
    fn full_for_each_matrix(&self, value: f64, dtype: DType, extents: &[usize]) -> Result<NdArray> {
        full_on_device(self.array.device(), &self.shape_with_batch(extents), value.into(), dtype)
    }

    /// Returns an array with an identity matrix (rows, columns) for each matrix of the batch, in the dtype of the matrices.
    fn identity_matrices(&self, rows: usize, columns: usize) -> Result<NdArray> {
        let on = self.array.device();
        let index = |n: usize, shape: [isize; 2]| full_on_device(on, &[n], 1.into(), DType::I64)?.cumsum(0)?.reshape(shape);
        if rows == 0 || columns == 0 {
            return self.full_for_each_matrix(0.0, self.array.dtype(), &[rows, columns]);
        }
        let ones = equal(index(rows, [-1, 1])?, index(columns, [1, -1])?)?.astype(self.array.dtype())?;
        ones.broadcast_to(self.shape_with_batch(&[rows, columns]))?.contiguous()
    }
}

/// Returns the dtype in which [`Linalg`] kernels compute arrays of `dtype`.
fn linalg_computation_dtype(op: Op, dtype: DType) -> Result<DType> {
    match dtype {
        DType::F16 | DType::BF16 => {
            let message = format!("array type {dtype} is unsupported in linalg; use astype('float32')");
            Err(Error::dtype(op.name(), message, &[dtype]))
        }
        inexact if inexact.is_inexact() => Ok(inexact),
        _ => Ok(DType::F64),
    }
}

/// Returns two batches in their common dtype, with their batch axes broadcast against each other.
fn broadcast_matrix_batches(op: Op, a: MatrixBatch, b: MatrixBatch) -> Result<(MatrixBatch, MatrixBatch)> {
    let dtype = a.array.dtype().promote(b.array.dtype());
    let batch = broadcast_shapes(op.name(), &[&a.batch, &b.batch])?;
    let broadcast = |m: MatrixBatch| -> Result<MatrixBatch> {
        let shape: Dims = batch.iter().copied().chain([m.rows, m.columns]).collect();
        Ok(MatrixBatch { array: m.array.astype(dtype)?.broadcast_to(shape)?, batch: batch.clone(), ..m })
    };
    Ok((broadcast(a)?, broadcast(b)?))
}
