//! Compressed sparse storage along one axis, which CSR (rows) and CSC (columns) share.

use std::sync::{Arc, OnceLock};

use cuprum_core::ops::sparse::{CsrParts, multiply_by_dense};
use cuprum_core::{DType, Device, Error, NdArray, Result, ScatterMode, flatnonzero, s, scatter, segment_sum};

use crate::index_and_value_arrays::{
    argsort_by_position, check_index_bounds, check_indptr, check_value_dtype, checked_dense_size, convert_index_arrays,
    evaluate_contiguous, full_on_device, indptr_from_row_indices, row_indices_from_indptr, run_start_mask,
};

/// A matrix whose elements are sorted by their index along one axis, the major axis: rows in CSR, columns in CSC. The constructors
/// guarantee a valid structure.
#[derive(Clone, Debug)]
pub(crate) struct CompressedMatrix {
    /// Extent of the major axis.
    pub major: usize,
    /// Extent of the minor axis.
    pub minor: usize,
    pub indptr: NdArray,
    /// Index of each element along the minor axis.
    pub indices: NdArray,
    pub data: NdArray,
    derived: Arc<MatrixCache>,
}

/// Cached values that are computed at first use and shared by clones of the matrix.
#[derive(Debug, Default)]
struct MatrixCache {
    is_canonical: OnceLock<bool>,
    is_sorted: OnceLock<bool>,
    canonical: OnceLock<CompressedMatrix>,
    compressed_along_other_axis: OnceLock<CompressedMatrix>,
}

impl CompressedMatrix {
    /// Returns a matrix of the given components (`data`, `indices`, `indptr`), after checking them.
    ///
    /// # Errors
    /// An invalid structure, unsupported dtypes, arrays on different devices.
    pub fn new(
        op: &'static str,
        data: &NdArray,
        indices: &NdArray,
        indptr: &NdArray,
        [major, minor]: [usize; 2],
    ) -> Result<CompressedMatrix> {
        check_value_dtype(op, data.dtype())?;
        let devices = [data, indices, indptr].map(NdArray::device);
        if devices.iter().any(|d| *d != devices[0]) {
            let message = format!("data, indices and indptr are on {}, {} and {}; use to_device", devices[0], devices[1], devices[2]);
            return Err(Error::Device { op, message });
        }
        if data.ndim() != 1 || data.shape() != indices.shape() {
            let message = "data and indices must be 1-D and of equal length";
            return Err(Error::shape(op, message, &[data.shape(), indices.shape()]));
        }
        let [indices, indptr] = convert_index_arrays(op, [indices, indptr], &[major, minor, data.size()])?;
        check_indptr(op, &indptr, major, data.size())?;
        check_index_bounds(op, &indices, 1, minor)?;
        Ok(CompressedMatrix { major, minor, indptr, indices, data: evaluate_contiguous(data)?, derived: Arc::default() })
    }

    /// Returns a matrix of components that are known to be valid. `is_canonical` is true if the minor indices of each row are known to
    /// ascend without repetition.
    pub fn from_parts_unchecked(
        data: NdArray,
        indices: NdArray,
        indptr: NdArray,
        shape: [usize; 2],
        is_canonical: bool,
    ) -> Result<CompressedMatrix> {
        let derived = MatrixCache::default();
        if is_canonical {
            let _ = derived.is_canonical.set(true);
            let _ = derived.is_sorted.set(true);
        }
        let (indices, indptr) = match (indices.dtype(), indptr.dtype()) {
            (DType::I32, DType::I32) | (DType::I64, DType::I64) => (indices, indptr),
            _ => (indices.astype(DType::I64)?, indptr.astype(DType::I64)?),
        };
        Ok(CompressedMatrix {
            major: shape[0],
            minor: shape[1],
            indptr: evaluate_contiguous(&indptr)?,
            indices: evaluate_contiguous(&indices)?,
            data: evaluate_contiguous(&data)?,
            derived: Arc::new(derived),
        })
    }

    /// Returns a matrix in which no element is stored.
    pub fn zeros(device: Device, shape: [usize; 2], dtype: DType, index: DType) -> Result<CompressedMatrix> {
        let extent = shape[0].checked_add(1).ok_or_else(|| Error::shape("sparse", "too many rows", &[&shape]))?;
        let zeros = |count: usize, dtype| full_on_device(device, &[count], 0, dtype);
        CompressedMatrix::from_parts_unchecked(zeros(0, dtype)?, zeros(0, index)?, zeros(extent, index)?, shape, true)
    }

    /// Returns a matrix of the elements `data` at `(row, column)`. Elements at equal positions are added. `row` and `column` are valid
    /// indices along the major and the minor axis. `index` is the dtype of the indices.
    pub fn from_positions(row: &NdArray, column: &NdArray, data: &NdArray, shape: [usize; 2], index: DType) -> Result<CompressedMatrix> {
        if data.size() == 0 {
            return CompressedMatrix::zeros(data.device(), shape, data.dtype(), index);
        }
        let order = argsort_by_position(row, column, shape)?;
        let (row, column, data) =
            (evaluate_contiguous(&row.take(&order, 0)?)?, evaluate_contiguous(&column.take(&order, 0)?)?, data.take(&order, 0)?);
        let begins = flatnonzero(&run_start_mask(&row, &column)?)?;
        let indptr = |row: &NdArray| indptr_from_row_indices(row, shape[0], index);
        if begins.size() == data.size() {
            return CompressedMatrix::from_parts_unchecked(data, column.astype(index)?, indptr(&row)?, shape, true);
        }
        let sums = sum_consecutive_runs(&data, &begins)?;
        CompressedMatrix::from_parts_unchecked(sums, column.take(&begins, 0)?.astype(index)?, indptr(&row.take(&begins, 0)?)?, shape, true)
    }

    pub fn nnz(&self) -> usize {
        self.data.size()
    }

    pub fn device(&self) -> Device {
        self.data.device()
    }

    pub fn shape(&self) -> [usize; 2] {
        [self.major, self.minor]
    }

    /// Returns a view of the components for the operations of the core crate.
    pub fn csr_parts(&self) -> CsrParts<'_> {
        CsrParts { indptr: &self.indptr, indices: &self.indices, values: &self.data, columns: self.minor }
    }

    /// Returns the int64 index of each element along the major axis.
    pub fn major_indices(&self) -> Result<NdArray> {
        evaluate_contiguous(&row_indices_from_indptr(&self.indptr, self.nnz())?)
    }

    /// Returns the matrix with the same structure and the values `data`.
    pub fn with_data(&self, data: NdArray) -> Result<CompressedMatrix> {
        let is_canonical = self.derived.is_canonical.get() == Some(&true);
        CompressedMatrix::from_parts_unchecked(data, self.indices.clone(), self.indptr.clone(), self.shape(), is_canonical)
    }

    /// Returns whether the minor indices of each row ascend, strictly if `strict`. The first call waits for the device.
    fn has_ascending_indices(&self, strict: bool) -> Result<bool> {
        let known = if strict { &self.derived.is_canonical } else { &self.derived.is_sorted };
        if let Some(&known) = known.get() {
            return Ok(known);
        }
        let answer = self.nnz() < 2 || {
            let (before, after) = (self.indices.index(s![..-1])?, self.indices.index(s![1..])?);
            let ascends = if strict { before.less(&after)? } else { before.less_equal(&after)? };
            let rows = self.major_indices()?;
            let is_new_row = cuprum_core::not_equal(rows.index(s![1..])?, rows.index(s![..-1])?)?;
            ascends.bitwise_or(is_new_row)?.all(())?.item()?.as_bool()
        };
        Ok(*known.get_or_init(|| answer))
    }

    pub fn is_sorted(&self) -> Result<bool> {
        self.has_ascending_indices(false)
    }

    pub fn is_canonical(&self) -> Result<bool> {
        self.has_ascending_indices(true)
    }

    /// Returns the matrix with ascending minor indices in each row and repeated elements added. The result is cached.
    pub fn to_canonical(&self) -> Result<CompressedMatrix> {
        if self.is_canonical()? {
            return Ok(self.clone());
        }
        if let Some(known) = self.derived.canonical.get() {
            return Ok(known.clone());
        }
        let made = CompressedMatrix::from_positions(&self.major_indices()?, &self.indices, &self.data, self.shape(), self.indices.dtype())?;
        Ok(self.derived.canonical.get_or_init(|| made).clone())
    }

    /// Returns the matrix with ascending minor indices in each row. Repeated elements remain.
    pub fn sort_indices(&self) -> Result<CompressedMatrix> {
        if self.is_sorted()? {
            return Ok(self.clone());
        }
        let order = argsort_by_position(&self.major_indices()?, &self.indices, self.shape())?;
        let sorted = CompressedMatrix::from_parts_unchecked(
            self.data.take(&order, 0)?,
            self.indices.take(&order, 0)?,
            self.indptr.clone(),
            self.shape(),
            false,
        )?;
        let _ = sorted.derived.is_sorted.set(true);
        Ok(sorted)
    }

    /// Returns the same elements, compressed along the other axis. The result is cached, so that later products with the transpose reuse
    /// it.
    pub fn compressed_along_other_axis(&self) -> Result<CompressedMatrix> {
        if let Some(known) = self.derived.compressed_along_other_axis.get() {
            return Ok(known.clone());
        }
        let index = self.indices.dtype();
        let order = self.indices.argsort(0)?;
        let (rows, data) = (self.major_indices()?.take(&order, 0)?, self.data.take(&order, 0)?);
        let indptr = indptr_from_row_indices(&self.indices, self.minor, index)?;
        let is_canonical = self.derived.is_canonical.get() == Some(&true);
        let made = CompressedMatrix::from_parts_unchecked(data, rows.astype(index)?, indptr, [self.minor, self.major], is_canonical)?;
        Ok(self.derived.compressed_along_other_axis.get_or_init(|| made).clone())
    }

    /// Returns the dense array of shape (major, minor). Repeated elements are added.
    pub fn to_dense(&self, op: &'static str) -> Result<NdArray> {
        let size = checked_dense_size(op, self.shape())?;
        let zeros = full_on_device(self.device(), &[size], 0, self.data.dtype())?;
        let places = self.major_indices()?.multiply(self.minor as i64)?.add(&self.indices)?;
        let dense = if self.nnz() == 0 { zeros } else { scatter(&zeros, &places, &self.data, 0, ScatterMode::Sum)? };
        dense.reshape(self.shape())
    }

    /// Returns the product with a dense array of shape (minor) or (minor, k).
    pub fn matmul_dense(&self, b: &NdArray) -> Result<NdArray> {
        multiply_by_dense(self.csr_parts(), b)
    }

    /// Returns the matrix of the elements for which `mask` is true.
    pub fn select_by_mask(&self, mask: &NdArray) -> Result<CompressedMatrix> {
        let kept = flatnonzero(mask)?;
        if kept.size() == self.nnz() {
            return Ok(self.clone());
        }
        let rows = self.major_indices()?.take(&kept, 0)?;
        let is_canonical = self.derived.is_canonical.get() == Some(&true);
        let indptr = indptr_from_row_indices(&rows, self.major, self.indptr.dtype())?;
        CompressedMatrix::from_parts_unchecked(self.data.take(&kept, 0)?, self.indices.take(&kept, 0)?, indptr, self.shape(), is_canonical)
    }

    /// Returns the sum of each row, in the dtype of [`NdArray::sum`].
    pub fn row_sums(&self) -> Result<NdArray> {
        segment_sum(&self.data, &self.indptr)
    }

    pub fn to_device(&self, device: Device) -> Result<CompressedMatrix> {
        if self.device() == device {
            return Ok(self.clone());
        }
        Ok(CompressedMatrix {
            indptr: self.indptr.to_device(device)?,
            indices: self.indices.to_device(device)?,
            data: self.data.to_device(device)?,
            derived: Arc::default(),
            ..*self
        })
    }

    pub fn nbytes(&self) -> usize {
        [&self.indptr, &self.indices, &self.data].iter().map(|a| a.nbytes()).sum()
    }
}

/// Returns the sum of each run of consecutive elements, in the dtype of the elements. `begins` has the index of the first element of each
/// run.
pub(crate) fn sum_consecutive_runs(data: &NdArray, begins: &NdArray) -> Result<NdArray> {
    let end = full_on_device(data.device(), &[1], data.size() as i64, DType::I64)?;
    segment_sum(data, &cuprum_core::concat([begins, &end], 0)?)?.astype(data.dtype())
}
