//! Products with dense and with sparse arrays, and triangular solves.

use cuprum_core::ops::linalg::Triangle;
use cuprum_core::ops::sparse;
use cuprum_core::{Array, DType, Error, NdArray, Result};

use crate::compressed::CompressedMatrix;
use crate::format_conversion::{to_compressed_rows, to_csc};
use crate::{BsrArray, CscArray, CsrArray, SparseArray};

/// Returns `a @ b` for a dense `b`.
pub(crate) fn matmul_dense(a: &SparseArray, b: &NdArray) -> Result<NdArray> {
    to_compressed_rows(a)?.matmul_dense(b).map_err(|e| e.with_function_name("matmul"))
}

/// Returns `b @ a` for a dense `b`: the transpose of `a.T @ b.T`.
pub(crate) fn matmul_dense_by_sparse(a: &SparseArray, b: &NdArray) -> Result<NdArray> {
    let columns = to_csc(a)?;
    let product = columns.inner.matmul_dense(&if b.ndim() == 2 { b.t()? } else { b.clone() });
    let product = product.map_err(|e| e.with_function_name("matmul"))?;
    if b.ndim() == 2 { product.t()?.contiguous() } else { Ok(product) }
}

/// Returns `a @ b` for two sparse arrays. Two CSC arrays give CSC. Two BSR arrays with blocks of shapes (r, k) and (k, c) give BSR. All
/// others give CSR.
pub(crate) fn matmul_two_sparse(a: &SparseArray, b: &SparseArray) -> Result<SparseArray> {
    match (a, b) {
        // A CSC array has the components of its transpose in CSR format, so this computes (a @ b).T = b.T @ a.T.
        (SparseArray::Csc(a), SparseArray::Csc(b)) => Ok(CscArray::from_compressed(multiply_compressed(&b.inner, &a.inner)?).into()),
        (SparseArray::Bsr(x), SparseArray::Bsr(y)) if x.block_shape()[1] == y.block_shape()[0] => {
            let product = multiply_compressed(&to_compressed_rows(a)?, &to_compressed_rows(b)?)?;
            Ok(BsrArray::from_compressed(&product, [x.block_shape()[0], y.block_shape()[1]])?.into())
        }
        _ => Ok(CsrArray::from_compressed(multiply_compressed(&to_compressed_rows(a)?, &to_compressed_rows(b)?)?).into()),
    }
}

/// Returns the product of two matrices that are compressed along the same axis.
pub(crate) fn multiply_compressed(a: &CompressedMatrix, b: &CompressedMatrix) -> Result<CompressedMatrix> {
    // The product may have more columns than the index dtype of `a` can represent.
    let is_wide = [&a.indices, &b.indices].iter().any(|i| i.dtype() == DType::I64) || b.minor > i32::MAX as usize;
    let index = if is_wide { DType::I64 } else { DType::I32 };
    let (indptr, indices) = (a.indptr.astype(index)?, a.indices.astype(index)?);
    let left = sparse::CsrParts { indptr: &indptr, indices: &indices, ..a.csr_parts() };
    let product = sparse::multiply_by_sparse(left, b.csr_parts()).map_err(|e| e.with_function_name("matmul"));
    let (indptr, indices, data) = match product {
        // A product with 2^31 or more elements needs int64 indices.
        Err(Error::Value { .. }) if index == DType::I32 => {
            let (indptr, indices) = (a.indptr.astype(DType::I64)?, a.indices.astype(DType::I64)?);
            let left = sparse::CsrParts { indptr: &indptr, indices: &indices, ..a.csr_parts() };
            sparse::multiply_by_sparse(left, b.csr_parts()).map_err(|e| e.with_function_name("matmul"))?
        }
        other => other?,
    };
    CompressedMatrix::from_parts_unchecked(data, indices, indptr, [a.major, b.minor], true)
}

/// Returns the elements of `x @ y` at the positions of `pattern`, in CSR format.
pub(crate) fn sampled_product(pattern: &SparseArray, x: &NdArray, y: &NdArray) -> Result<SparseArray> {
    const OP: &str = "sampled_matmul";
    let [rows, columns] = pattern.extents();
    if x.ndim() != 2 || y.ndim() != 2 || x.shape()[0] != rows || y.shape()[1] != columns || x.shape()[1] != y.shape()[0] {
        let message = "the dense factors must be (rows, k) and (k, columns)";
        return Err(Error::shape(OP, message, &[pattern.shape(), x.shape(), y.shape()]));
    }
    let structure = to_compressed_rows(pattern)?.to_canonical()?;
    let values = sparse::sample_dense_product(&structure.indptr, &structure.indices, x, &y.t()?).map_err(|e| e.with_function_name(OP))?;
    Ok(CsrArray::from_compressed(structure.with_data(values)?).into())
}

/// Returns the solution of a triangular system. See [`Sparse::solve_triangular`](crate::Sparse::solve_triangular).
pub(crate) fn solve_triangular(a: &SparseArray, b: &NdArray, triangle: Triangle, unit_diagonal: bool) -> Result<NdArray> {
    let solved = sparse::solve_triangular(to_compressed_rows(a)?.csr_parts(), b, triangle, unit_diagonal);
    solved.map_err(|e| e.with_function_name("spsolve_triangular"))
}
