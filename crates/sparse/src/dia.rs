//! Diagonal format: [`DiaArray`].

use std::sync::{Arc, OnceLock};

use cuprum_core::{Array, DType, Device, Error, NdArray, Result, ScatterMode, scatter};

use crate::compressed::CompressedMatrix;
use crate::index_and_value_arrays::{
    arange_on_device, check_value_dtype, checked_dense_size, convert_index_arrays, evaluate_contiguous, full_on_device,
    index_dtype_for_extents,
};

/// A sparse array of diagonals (`scipy.sparse.dia_array`).
///
/// Row n of `data` is the diagonal `offsets[n]`: `data[n, j]` is the element in column j and row `j - offsets[n]`. If the matrix has no
/// such row, `data[n, j]` is ignored. Positive offsets are above the main diagonal. Arithmetic and products use a CSR copy, which is
/// computed once and cached. A clone shares all memory.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{DiaArray, Sparse};
/// # fn main() -> cuprum::Result<()> {
/// let a = DiaArray::new(&array![[1.0, 2.0, 3.0], [7.0, 8.0, 9.0]], &array![0, 1], [3, 3])?;
/// assert_eq!(a.to_dense()?, array![[1.0, 8.0, 0.0], [0.0, 2.0, 9.0], [0.0, 0.0, 3.0]]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DiaArray {
    shape: [usize; 2],
    data: NdArray,
    offsets: NdArray,
    /// Number of positions of the matrix that the stored diagonals cover.
    count: usize,
    to_compressed_rows: Arc<OnceLock<CompressedMatrix>>,
}

impl DiaArray {
    /// Returns the array with the diagonals `data` (n, columns) at `offsets` (n) (`scipy.sparse.dia_array((data, offsets), shape=shape)`).
    ///
    /// `data` may have fewer or more columns than the array: missing elements are zero, further ones are ignored.
    ///
    /// # Errors
    /// [`Error::Value`] for repeated offsets. `data` that is not 2-D, offsets that are not 1-D integers, lengths that differ, float16 and
    /// bfloat16, arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::DiaArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let error = DiaArray::new(&array![[1.0], [2.0]], &array![0, 0], [1, 1]).unwrap_err();
    /// assert!(error.to_string().contains("offset 0 is repeated"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(data: &NdArray, offsets: &NdArray, shape: [usize; 2]) -> Result<DiaArray> {
        const OP: &str = "dia_array";
        check_value_dtype(OP, data.dtype())?;
        if data.device() != offsets.device() {
            let message = format!("data and offsets are on {} and {}; use to_device", data.device(), offsets.device());
            return Err(Error::Device { op: OP, message });
        }
        if data.ndim() != 2 || offsets.ndim() != 1 || data.shape()[0] != offsets.size() {
            let message = "data must be 2-D, with one row for each of the 1-D offsets";
            return Err(Error::shape(OP, message, &[data.shape(), offsets.shape()]));
        }
        let [offsets] = convert_index_arrays(OP, [offsets], &shape)?;
        let mut numbers = offsets.astype(DType::I64)?.to_vec::<i64>()?;
        let count = numbers.iter().map(|&offset| diagonal_length(shape, data.shape()[1], offset)).sum();
        numbers.sort_unstable();
        if let Some(pair) = numbers.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::value(OP, format!("offset {} is repeated", pair[0])));
        }
        Ok(DiaArray { shape, data: evaluate_contiguous(data)?, offsets, count, to_compressed_rows: Arc::default() })
    }

    /// Converts a compressed matrix. Only diagonals with elements are stored.
    pub(crate) fn from_compressed(a: &CompressedMatrix) -> Result<DiaArray> {
        let (device, shape) = (a.device(), a.shape());
        let columns = a.indices.astype(DType::I64)?;
        let diagonal = columns.subtract(a.major_indices()?)?;
        let offsets = cuprum_core::unique(&diagonal)?;
        let width = shape[1];
        let size = checked_dense_size("todia", [offsets.size(), width])?;
        let places = offsets.searchsorted(&diagonal, cuprum_core::Side::Left)?.multiply(width as i64)?.add(&columns)?;
        let zeros = full_on_device(device, &[size], 0, a.data.dtype())?;
        let data = if a.nnz() == 0 { zeros } else { scatter(&zeros, &places, &a.data, 0, ScatterMode::Sum)? };
        DiaArray::new(&data.reshape([offsets.size(), width])?, &offsets.astype(index_dtype_for_extents(&shape))?, shape)
    }

    /// Returns the diagonals, one per row (`.data`).
    pub fn data(&self) -> &NdArray {
        &self.data
    }

    /// Returns the offset of each diagonal (`.offsets`). Positive offsets are above the main diagonal.
    pub fn offsets(&self) -> &NdArray {
        &self.offsets
    }

    /// Returns the elements of the stored diagonals in CSR format, without zeros.
    pub(crate) fn to_compressed(&self) -> Result<CompressedMatrix> {
        if let Some(known) = self.to_compressed_rows.get() {
            return Ok(known.clone());
        }
        let index = index_dtype_for_extents(&[self.shape[0], self.shape[1], self.count]);
        let (diagonals, width) = (self.data.shape()[0], self.data.shape()[1].min(self.shape[1]));
        let made = if self.count == 0 {
            CompressedMatrix::zeros(self.device(), self.shape, self.dtype(), index)?
        } else {
            let column = arange_on_device(self.device(), width)?.broadcast_to([diagonals, width])?;
            let row = column.subtract(self.offsets.astype(DType::I64)?.reshape((-1, 1))?)?;
            let is_inside = row.greater_equal(0)?.bitwise_and(row.less(self.shape[0] as i64)?)?;
            let data = self.data.index(cuprum_core::s![.., ..width])?;
            // As in SciPy, a zero on a stored diagonal counts as an element that is not stored.
            let is_stored = is_inside.bitwise_and(data.not_equal(0)?)?;
            let [row, column, data] = [&row, &column, &data].map(|a| a.contiguous()?.extract(&is_stored));
            CompressedMatrix::from_positions(&row?, &column?, &data?, self.shape, index)?
        };
        Ok(self.to_compressed_rows.get_or_init(|| made).clone())
    }

    /// Returns an array with the same offsets and the diagonals `data`, which must have the shape of the current diagonals.
    pub(crate) fn with_data(&self, data: NdArray) -> Result<DiaArray> {
        Ok(DiaArray { data: evaluate_contiguous(&data)?, to_compressed_rows: Arc::default(), ..self.clone() })
    }
}

/// Returns the number of matrix elements on diagonal `offset`. Only the first `width` columns count, because `data` has no others.
fn diagonal_length(shape: [usize; 2], width: usize, offset: i64) -> usize {
    let start = offset.max(0) as i128;
    let end = (shape[0] as i128 + i128::from(offset)).min(width.min(shape[1]) as i128);
    usize::try_from(end - start).unwrap_or(0)
}

impl Array for DiaArray {
    fn dtype(&self) -> DType {
        self.data.dtype()
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn device(&self) -> Device {
        self.data.device()
    }
    fn to_device(&self, device: Device) -> Result<DiaArray> {
        if self.device() == device {
            return Ok(self.clone());
        }
        let (data, offsets) = (self.data.to_device(device)?, self.offsets.to_device(device)?);
        Ok(DiaArray { data, offsets, to_compressed_rows: Arc::default(), ..*self })
    }
    /// Returns the number of elements on the stored diagonals. SciPy defines `size` in the same way.
    fn size(&self) -> usize {
        self.count
    }
    /// Returns the total size of `data` and `offsets` in bytes.
    fn nbytes(&self) -> usize {
        self.data.nbytes().saturating_add(self.offsets.nbytes())
    }
}
