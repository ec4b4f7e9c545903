//! Products and triangular solves of matrices in CSR format. The types of sparse arrays are in the crate `cuprum-sparse`.

use crate::array::NdArray;
use crate::call::{OutputSpec, Sparse, Triangle, Work};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::checked_size;
use crate::op::Op;
use crate::ops::creation::full_on_device;
use crate::ops::histogram::bincount;
use crate::ops::manipulation::concat;
use crate::s;

mod sparse_composites;

super::ops! { Sparse after fft:
    SPARSE_MULTIPLY "sparse_multiply" 4, else |inputs, parameters| sparse_composites::compose_sparse_dense_product(inputs, parameters);
    SPARSE_PRODUCT "sparse_product" 6, else |inputs, parameters| sparse_composites::compose_sparse_sparse_product(inputs, parameters);
    SPARSE_SAMPLE "sparse_sample" 4, else |inputs, parameters| sparse_composites::compose_sampled_dense_product(inputs, parameters);
    SPARSE_SOLVE_TRIANGULAR "sparse_solve_triangular" 4,
        else |inputs, parameters| sparse_composites::compose_triangular_solve(inputs, parameters);
}

/// The components of a matrix in compressed row format (CSR).
///
/// `indptr` (rows + 1) and `indices` (n) are 1-D and both int32 or both int64, `values` (n) is 1-D. The elements of row i are at the
/// positions `indptr[i]..indptr[i + 1]`. The functions of this module check extents and dtypes. Kernels check the numbers in `indptr` and
/// `indices`.
#[derive(Clone, Copy, Debug)]
pub struct CsrParts<'a> {
    /// The index of each row's first element, followed by the total number of elements.
    pub indptr: &'a NdArray,
    /// The column index of each element.
    pub indices: &'a NdArray,
    /// The elements.
    pub values: &'a NdArray,
    /// Number of columns.
    pub columns: usize,
}

impl CsrParts<'_> {
    fn row_count(&self) -> usize {
        self.indptr.size().saturating_sub(1)
    }

    /// Checks the extents, dtypes and devices of the components. Returns their common device.
    fn check_csr_components(&self, op: Op) -> Result<Device> {
        let name = op.name();
        check_csr_structure(op, self.indptr, self.indices)?;
        if self.values.shape() != self.indices.shape() {
            let message = "a matrix has as many values as indices";
            return Err(Error::shape(name, message, &[self.values.shape(), self.indices.shape()]));
        }
        if matches!(self.values.dtype(), DType::F16 | DType::BF16) {
            let message = "sparse matrices have no values of this dtype; use astype('float32')";
            return Err(Error::dtype(name, message, &[self.values.dtype()]));
        }
        super::common_device(op, self.indptr, self.values)
    }
}

/// Checks the extents, dtypes and devices of `indptr` and `indices`. Returns their common device.
fn check_csr_structure(op: Op, indptr: &NdArray, indices: &NdArray) -> Result<Device> {
    let name = op.name();
    if indptr.ndim() != 1 || indices.ndim() != 1 || indptr.size() == 0 {
        let message = "indptr (rows + 1) and indices must be 1-D";
        return Err(Error::shape(name, message, &[indptr.shape(), indices.shape()]));
    }
    if indptr.dtype() != indices.dtype() || !matches!(indptr.dtype(), DType::I32 | DType::I64) {
        let message = "indptr and indices must be both int32 or both int64";
        return Err(Error::dtype(name, message, &[indptr.dtype(), indices.dtype()]));
    }
    super::common_device(op, indptr, indices)
}

/// Returns the product of a sparse matrix (m, n) with a dense array (n) or (n, k) (`scipy.sparse.csr_array @ b`).
///
/// The result is (m) or (m, k), in the promoted dtype of both. bool products are "and", their sums "or". Sums of integers wrap.
///
/// # Errors
/// Components that do not match each other, an extent of `b` other than the number of columns, float16 or bfloat16, or arrays on different
/// devices. Indices out of bounds are an error, on a GPU of the next call that waits for the device.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum::ops::sparse::{CsrParts, multiply_by_dense};
/// # fn main() -> cuprum::Result<()> {
/// let (indptr, indices, values) = (array![0i32, 2, 3], array![0i32, 2, 1], array![1.0, 2.0, 3.0]); // [[1, 0, 2], [0, 3, 0]]
/// let m = CsrParts { indptr: &indptr, indices: &indices, values: &values, columns: 3 };
/// assert_eq!(multiply_by_dense(m, &array![1.0, 10.0, 100.0])?, array![201.0, 30.0]);
/// # Ok(())
/// # }
/// ```
pub fn multiply_by_dense(m: CsrParts, b: &NdArray) -> Result<NdArray> {
    let name = SPARSE_MULTIPLY.name();
    let device = m.check_csr_components(SPARSE_MULTIPLY)?;
    super::common_device(SPARSE_MULTIPLY, m.values, b)?;
    if !matches!(b.ndim(), 1 | 2) || b.shape()[0] != m.columns {
        return Err(Error::shape(
            name,
            "the first axis of a dense factor (n) or (n, k) is the number of columns",
            &[&[m.row_count(), m.columns], b.shape()],
        ));
    }
    let dtype = m.values.dtype().promote(b.dtype());
    let shape: Vec<usize> = std::iter::once(m.row_count()).chain(b.shape()[1..].iter().copied()).collect();
    if m.values.size() == 0 || checked_size(name, &shape)? == 0 {
        return full_on_device(device, &shape, 0.into(), dtype);
    }
    let inputs = [
        m.indptr.contiguous()?.stored()?,
        m.indices.contiguous()?.stored()?,
        m.values.astype(dtype)?.contiguous()?.stored()?,
        b.astype(dtype)?.contiguous()?.stored()?,
    ];
    let output = OutputSpec::contiguous(dtype, &shape)?;
    super::dispatch_single_output(SPARSE_MULTIPLY, device, &inputs, output, Work::Sparse(Sparse::Multiply))
}

/// Returns `indptr`, `indices` and values of the product of two sparse matrices (m, n) and (n, k) (`scipy.sparse.csr_array @ b`).
///
/// The indices of the product have the dtype of `a.indices`. The columns of each row ascend, and sums that are zero are stored. The call
/// waits for the device.
///
/// # Errors
/// Components that do not match each other, extents that differ, indices out of bounds, too many elements for int32 indices, float16 or
/// bfloat16, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum::ops::sparse::{CsrParts, multiply_by_sparse};
/// # fn main() -> cuprum::Result<()> {
/// let (indptr, indices, values) = (array![0i32, 2, 3], array![0i32, 1, 1], array![1.0, 2.0, 3.0]); // [[1, 2], [0, 3]]
/// let m = CsrParts { indptr: &indptr, indices: &indices, values: &values, columns: 2 };
/// let (indptr, indices, values) = multiply_by_sparse(m, m)?;
/// assert_eq!((indptr, indices), (array![0i32, 2, 3], array![0i32, 1, 1]));
/// assert_eq!(values, array![1.0, 8.0, 9.0]);
/// # Ok(())
/// # }
/// ```
pub fn multiply_by_sparse(a: CsrParts, b: CsrParts) -> Result<(NdArray, NdArray, NdArray)> {
    let name = SPARSE_PRODUCT.name();
    let device = a.check_csr_components(SPARSE_PRODUCT)?;
    b.check_csr_components(SPARSE_PRODUCT)?;
    super::common_device(SPARSE_PRODUCT, a.values, b.values)?;
    if a.columns != b.row_count() {
        let message = "the number of columns of the first matrix must be the number of rows of the second one";
        return Err(Error::shape(name, message, &[&[a.row_count(), a.columns], &[b.row_count(), b.columns]]));
    }
    let (dtype, index) = (a.values.dtype().promote(b.values.dtype()), a.indices.dtype());
    if index == DType::I32 && b.columns > i32::MAX as usize + 1 {
        return Err(Error::value(name, format!("{} columns need int64 indices", b.columns)));
    }
    if a.values.size() == 0 || b.values.size() == 0 {
        let indptr = full_on_device(device, &[a.row_count() + 1], 0.into(), index)?;
        return Ok((indptr, full_on_device(device, &[0], 0.into(), index)?, full_on_device(device, &[0], 0.into(), dtype)?));
    }
    let inputs = [
        a.indptr.contiguous()?.stored()?,
        a.indices.contiguous()?.stored()?,
        a.values.astype(dtype)?.contiguous()?.stored()?,
        b.indptr.astype(index)?.contiguous()?.stored()?,
        b.indices.astype(index)?.contiguous()?.stored()?,
        b.values.astype(dtype)?.contiguous()?.stored()?,
    ];
    let outputs =
        [OutputSpec::contiguous(index, &[a.row_count() + 1])?, OutputSpec::contiguous(index, &[0])?, OutputSpec::contiguous(dtype, &[0])?];
    let work = Work::Sparse(Sparse::Product { columns: b.columns });
    let [indptr, indices, values] = super::dispatch_call(SPARSE_PRODUCT, device, &inputs, &outputs, work)?;
    Ok((indptr, indices, values))
}

/// Returns the elements of the dense product `a @ b.T` at the positions of a sparse matrix: one for each of `indices`.
///
/// `a` is (rows, k) and `b` is (columns, k), with one row for each row and column of the sparse matrix. The result has the promoted dtype
/// (sampled dense-dense matrix multiplication).
///
/// # Errors
/// Extents that do not match, float16 or bfloat16, arrays on different devices, or indices out of bounds as in [`multiply_by_dense`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum::ops::sparse::sample_dense_product;
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (array![[1.0, 2.0], [3.0, 4.0]], array![[1.0, 0.0], [0.0, 1.0]]);
/// assert_eq!(sample_dense_product(&array![0i32, 1, 2], &array![1i32, 0], &a, &b)?, array![2.0, 3.0]); // (a @ b.T)[0, 1] and [1, 0]
/// # Ok(())
/// # }
/// ```
pub fn sample_dense_product(indptr: &NdArray, indices: &NdArray, a: &NdArray, b: &NdArray) -> Result<NdArray> {
    let name = SPARSE_SAMPLE.name();
    let device = check_csr_structure(SPARSE_SAMPLE, indptr, indices)?;
    super::common_device(SPARSE_SAMPLE, indices, a)?;
    super::common_device(SPARSE_SAMPLE, a, b)?;
    let ([rows, k], [_, other]) = (a.shape(), b.shape()) else {
        return Err(Error::shape(name, "the dense factors must be 2-D", &[a.shape(), b.shape()]));
    };
    if *rows + 1 != indptr.size() || k != other {
        let message = "the dense factors (rows, k) and (columns, k) must match each other and indptr (rows + 1)";
        return Err(Error::shape(name, message, &[a.shape(), b.shape(), indptr.shape()]));
    }
    let dtype = a.dtype().promote(b.dtype());
    if matches!(dtype, DType::F16 | DType::BF16) {
        return Err(Error::dtype(name, "use astype('float32')", &[dtype]));
    }
    if indices.size() == 0 || *k == 0 {
        return full_on_device(device, indices.shape(), 0.into(), dtype);
    }
    let inputs = [
        indptr.contiguous()?.stored()?,
        indices.contiguous()?.stored()?,
        a.astype(dtype)?.contiguous()?.stored()?,
        b.astype(dtype)?.contiguous()?.stored()?,
    ];
    let output = OutputSpec::contiguous(dtype, indices.shape())?;
    super::dispatch_single_output(SPARSE_SAMPLE, device, &inputs, output, Work::Sparse(Sparse::Sample))
}

/// Returns the solution `x` of `m @ x = b` for a triangular sparse matrix (n, n) (`scipy.sparse.linalg.spsolve_triangular`).
///
/// `b` is (n) or (n, k). bool and integers are converted to float64. Elements in the other triangle are not read.
///
/// # Errors
/// [`Error::LinAlg`] for a zero or missing element on the diagonal, unless `unit_diagonal`. A matrix that is not square, extents that do
/// not match, float16 or bfloat16, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum::ops::linalg::Triangle;
/// use cuprum::ops::sparse::{CsrParts, solve_triangular};
/// # fn main() -> cuprum::Result<()> {
/// let (indptr, indices, values) = (array![0i32, 1, 3], array![0i32, 0, 1], array![2.0, 1.0, 4.0]); // [[2, 0], [1, 4]]
/// let m = CsrParts { indptr: &indptr, indices: &indices, values: &values, columns: 2 };
/// assert_eq!(solve_triangular(m, &array![2.0, 9.0], Triangle::Lower, false)?, array![1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
pub fn solve_triangular(m: CsrParts, b: &NdArray, triangle: Triangle, unit_diagonal: bool) -> Result<NdArray> {
    let name = SPARSE_SOLVE_TRIANGULAR.name();
    let device = m.check_csr_components(SPARSE_SOLVE_TRIANGULAR)?;
    super::common_device(SPARSE_SOLVE_TRIANGULAR, m.values, b)?;
    if m.row_count() != m.columns || !matches!(b.ndim(), 1 | 2) || b.shape()[0] != m.columns {
        let message = "a square matrix (n, n) and b (n) or (n, k) are needed";
        return Err(Error::shape(name, message, &[&[m.row_count(), m.columns], b.shape()]));
    }
    let dtype = match m.values.dtype().promote(b.dtype()) {
        inexact @ (DType::F32 | DType::F64 | DType::C64 | DType::C128) => inexact,
        half @ (DType::F16 | DType::BF16) => return Err(Error::dtype(name, "use astype('float32')", &[half])),
        _ => DType::F64,
    };
    if b.size() == 0 {
        return b.astype(dtype);
    }
    let inputs = [
        m.indptr.contiguous()?.stored()?,
        m.indices.contiguous()?.stored()?,
        m.values.astype(dtype)?.contiguous()?.stored()?,
        b.astype(dtype)?.contiguous()?.stored()?,
    ];
    let output = OutputSpec::contiguous(dtype, b.shape())?;
    let work = Work::Sparse(Sparse::SolveTriangular { triangle, unit_diagonal });
    super::dispatch_single_output(SPARSE_SOLVE_TRIANGULAR, device, &inputs, output, work)
}

/// Returns the int64 row of each of the `count` elements of a matrix in compressed row format.
///
/// # Errors
/// Errors of the device, such as too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::sparse::row_indices};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(row_indices(&array![0i32, 2, 2, 3], 3)?, array![0i64, 0, 2]);
/// # Ok(())
/// # }
/// ```
pub fn row_indices(indptr: &NdArray, count: usize) -> Result<NdArray> {
    let device = indptr.device();
    if count == 0 || indptr.size() < 3 {
        return full_on_device(device, &[count], 0.into(), DType::I64);
    }
    // The row index increases at the start of each row except the first.
    let rises = bincount(&indptr.index(s![1..-1])?, None, count + 1)?;
    rises.index(s![..count])?.astype(DType::I64)?.cumsum(0)
}

/// Returns the int64 `indptr` for rows with the given int64 numbers of elements (`counts`).
pub(crate) fn indptr_from_row_counts(counts: &NdArray) -> Result<NdArray> {
    let zero = full_on_device(counts.device(), &[1], 0.into(), DType::I64)?;
    if counts.size() == 0 {
        return Ok(zero);
    }
    concat([&zero, &counts.cumsum(0)?], 0)
}
