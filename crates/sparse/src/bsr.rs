//! Block row format: [`BsrArray`].

use std::sync::{Arc, OnceLock};

use cuprum_core::{Array, DType, Device, Error, NdArray, Result, arange, flatnonzero, with_device, zeros};

use crate::compressed::CompressedMatrix;
use crate::index_and_value_arrays::{
    arange_on_device, argsort_by_position, check_index_bounds, check_indptr, check_value_dtype, convert_index_arrays, evaluate_contiguous,
    indptr_from_row_counts, indptr_from_row_indices, run_start_mask,
};

/// A sparse array in block row format (`scipy.sparse.bsr_array`): dense blocks of one shape in compressed row format.
///
/// Block row i has the blocks `data[indptr[i]..indptr[i + 1]]`. With blocks of shape (r, c), `data[n]` begins in column `indices[n] * c`.
/// If the elements form dense blocks, this format stores fewer indices than CSR. Arithmetic and products use a CSR copy, which is computed
/// once and cached. A clone shares all memory.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{BsrArray, Sparse};
/// # fn main() -> cuprum::Result<()> {
/// let blocks = array![[[1.0, 2.0], [3.0, 4.0]]];
/// let a = BsrArray::new(&blocks, &array![1], &array![0, 1], [2, 4])?;
/// assert_eq!(a.to_dense()?, array![[0.0, 0.0, 1.0, 2.0], [0.0, 0.0, 3.0, 4.0]]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct BsrArray {
    shape: [usize; 2],
    data: NdArray,
    indices: NdArray,
    indptr: NdArray,
    to_compressed_rows: Arc<OnceLock<CompressedMatrix>>,
}

impl BsrArray {
    /// Returns the array with the blocks `data` (n, r, c) (`scipy.sparse.bsr_array((data, indices, indptr), shape=shape)`).
    ///
    /// `indices` (n) holds the block column of each block, `indptr` has one element more than there are block rows.
    ///
    /// # Errors
    /// A shape that is not a multiple of the block shape, a block extent of 0, and the errors of [`CsrArray::new`](crate::CsrArray::new).
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::{DType, array, ones};
    /// use cuprum::sparse::BsrArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let blocks = ones((1, 2, 2), DType::F64)?;
    /// assert!(BsrArray::new(&blocks, &array![0], &array![0, 1], [2, 3]).is_err()); // 3 is no multiple of 2
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(data: &NdArray, indices: &NdArray, indptr: &NdArray, shape: [usize; 2]) -> Result<BsrArray> {
        const OP: &str = "bsr_array";
        check_value_dtype(OP, data.dtype())?;
        if data.device() != indices.device() || data.device() != indptr.device() {
            let message = format!("data and indices are on {}, {} and {}; use to_device", data.device(), indices.device(), indptr.device());
            return Err(Error::Device { op: OP, message });
        }
        let &[count, r, c] = data.shape() else {
            return Err(Error::shape(OP, "data must be 3-D: blocks, rows and columns of a block", &[data.shape()]));
        };
        if r == 0 || c == 0 || !shape[0].is_multiple_of(r) || !shape[1].is_multiple_of(c) {
            let message = "the shape must be a multiple of the shape of a block";
            return Err(Error::shape(OP, message, &[&shape, &[r, c]]));
        }
        if indices.shape() != [count] {
            return Err(Error::shape(OP, "there must be one index per block", &[data.shape(), indices.shape()]));
        }
        let [indices, indptr] = convert_index_arrays(OP, [indices, indptr], &[shape[0], shape[1], count])?;
        check_indptr(OP, &indptr, shape[0] / r, count)?;
        check_index_bounds(OP, &indices, 1, shape[1] / c)?;
        Ok(BsrArray { shape, data: evaluate_contiguous(data)?, indices, indptr, to_compressed_rows: Arc::default() })
    }

    /// Converts a compressed matrix to blocks of shape (r, c). Blocks without elements are not stored.
    pub(crate) fn from_compressed(a: &CompressedMatrix, [r, c]: [usize; 2]) -> Result<BsrArray> {
        const OP: &str = "tobsr";
        let shape = a.shape();
        if r == 0 || c == 0 || !shape[0].is_multiple_of(r) || !shape[1].is_multiple_of(c) {
            return Err(Error::shape(OP, "the shape must be a multiple of the shape of a block", &[&shape, &[r, c]]));
        }
        let too_large = || Error::shape(OP, "the blocks are too large", &[&shape, &[r, c]]);
        let block_size = r.checked_mul(c).and_then(|n| i64::try_from(n).ok()).ok_or_else(too_large)?;
        let a = a.to_canonical()?;
        let (rows, blocks) = (a.major_indices()?, [shape[0] / r, shape[1] / c]);
        let (block_row, block_column) = (rows.floor_divide(r as i64)?, a.indices.astype(DType::I64)?.floor_divide(c as i64)?);
        let order = argsort_by_position(&block_row, &block_column, blocks)?;
        let sorted = |x: &NdArray| evaluate_contiguous(&x.take(&order, 0)?);
        let (rows, columns, data) = (sorted(&rows)?, sorted(&a.indices.astype(DType::I64)?)?, sorted(&a.data)?);
        let (block_row, block_column) = (sorted(&block_row)?, sorted(&block_column)?);
        let is_first = run_start_mask(&block_row, &block_column)?;
        let (block, begins) = (is_first.astype(DType::I64)?.cumsum(0)?.subtract(1)?, flatnonzero(&is_first)?);
        // The blocks have the index arrays of a CSR matrix with one element for each block.
        let (count, index) = (begins.size(), a.indices.dtype());
        let indptr = indptr_from_row_indices(&block_row.take(&begins, 0)?, blocks[0], index)?;
        let structure =
            CompressedMatrix::from_parts_unchecked(begins.clone(), block_column.take(&begins, 0)?.astype(index)?, indptr, blocks, true)?;
        let size = count.checked_mul(r).and_then(|n| n.checked_mul(c)).ok_or_else(too_large)?;
        let place = block.multiply(block_size)?;
        let place = place.add(rows.remainder(r as i64)?.multiply(c as i64)?)?.add(columns.remainder(c as i64)?)?;
        let empty = with_device(a.device(), || zeros(size, data.dtype()))?;
        let data = cuprum_core::scatter(&empty, &place, &data, 0, cuprum_core::ScatterMode::Assign)?;
        let data = evaluate_contiguous(&data.reshape([count, r, c])?)?;
        Ok(BsrArray { shape, data, indices: structure.indices, indptr: structure.indptr, to_compressed_rows: Arc::default() })
    }

    /// Returns the blocks (n, r, c) (`.data`).
    pub fn data(&self) -> &NdArray {
        &self.data
    }

    /// Returns the block column of each block (`.indices`).
    pub fn indices(&self) -> &NdArray {
        &self.indices
    }

    /// Returns the index of the first block of each block row, followed by the total number of blocks (`.indptr`).
    pub fn indptr(&self) -> &NdArray {
        &self.indptr
    }

    /// Returns the shape of a block (`.blocksize`).
    pub fn block_shape(&self) -> [usize; 2] {
        [self.data.shape()[1], self.data.shape()[2]]
    }

    /// Returns the elements in CSR format. Zeros in stored blocks become elements.
    pub(crate) fn to_compressed(&self) -> Result<CompressedMatrix> {
        if let Some(known) = self.to_compressed_rows.get() {
            return Ok(known.clone());
        }
        let [r, c] = self.block_shape();
        let (device, count, index) = (self.device(), self.data.shape()[0], self.indices.dtype());
        let made = if count == 0 {
            CompressedMatrix::zeros(device, self.shape, self.dtype(), index)?
        } else {
            // Each block row becomes r rows of equal length. The elements are ordered by row, within a row by block, and within a block by
            // column.
            let block_rows = self.shape[0] / r;
            let lengths =
                self.indptr.index(cuprum_core::s![1..])?.subtract(self.indptr.index(cuprum_core::s![..-1])?)?.astype(DType::I64)?;
            let row_lengths = lengths.multiply(c as i64)?.reshape((-1, 1))?.broadcast_to([block_rows, r])?.ravel()?;
            let indptr = indptr_from_row_counts(&row_lengths, DType::I64)?;
            let total = count * r * c;
            let rows = crate::index_and_value_arrays::row_indices_from_indptr(&indptr, total)?;
            let within = arange_on_device(device, total)?.subtract(indptr.take(&rows, 0)?)?;
            let block = self.indptr.astype(DType::I64)?.take(&rows.floor_divide(r as i64)?, 0)?.add(within.floor_divide(c as i64)?)?;
            let column = within.remainder(c as i64)?;
            let place = block.multiply((r * c) as i64)?.add(rows.remainder(r as i64)?.multiply(c as i64)?)?.add(&column)?;
            let columns = self.indices.astype(DType::I64)?.take(&block, 0)?.multiply(c as i64)?.add(&column)?;
            let narrow = |a: &NdArray, largest: usize| a.astype(if largest <= i32::MAX as usize { index } else { DType::I64 });
            let largest = total.max(self.shape[1]);
            let (columns, indptr) = (narrow(&columns, largest)?, narrow(&indptr, largest)?);
            CompressedMatrix::from_parts_unchecked(self.data.ravel()?.take(&place, 0)?, columns, indptr, self.shape, false)?
        };
        Ok(self.to_compressed_rows.get_or_init(|| made).clone())
    }

    /// Returns an array with the same structure and the blocks `data`, which must have the shape of the current blocks.
    pub(crate) fn with_data(&self, data: NdArray) -> Result<BsrArray> {
        Ok(BsrArray { data: evaluate_contiguous(&data)?, to_compressed_rows: Arc::default(), ..self.clone() })
    }

    /// Returns the transpose, with transposed blocks.
    pub(crate) fn transpose_blocks(&self) -> Result<BsrArray> {
        let [r, c] = self.block_shape();
        let count = self.data.shape()[0];
        let numbers = with_device(self.device(), || arange(0, count, 1))?;
        let blocks = [self.shape[0] / r, self.shape[1] / c];
        let structure = CompressedMatrix::from_parts_unchecked(numbers, self.indices.clone(), self.indptr.clone(), blocks, false)?
            .compressed_along_other_axis()?;
        let data = evaluate_contiguous(&self.data.transpose((0, 2, 1))?.take(&structure.data, 0)?)?;
        let shape = [self.shape[1], self.shape[0]];
        Ok(BsrArray { shape, data, indices: structure.indices, indptr: structure.indptr, to_compressed_rows: Arc::default() })
    }
}

impl Array for BsrArray {
    fn dtype(&self) -> DType {
        self.data.dtype()
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn device(&self) -> Device {
        self.data.device()
    }
    fn to_device(&self, device: Device) -> Result<BsrArray> {
        if self.device() == device {
            return Ok(self.clone());
        }
        Ok(BsrArray {
            shape: self.shape,
            data: self.data.to_device(device)?,
            indices: self.indices.to_device(device)?,
            indptr: self.indptr.to_device(device)?,
            to_compressed_rows: Arc::default(),
        })
    }
    /// Returns the number of stored elements, zeros in blocks included. SciPy defines `size` in the same way.
    fn size(&self) -> usize {
        self.data.size()
    }
    /// Returns the total size of `data`, `indices` and `indptr` in bytes.
    fn nbytes(&self) -> usize {
        self.data.nbytes().saturating_add(self.indices.nbytes()).saturating_add(self.indptr.nbytes())
    }
}
