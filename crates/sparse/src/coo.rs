//! Coordinate format: [`CooArray`].

use std::sync::{Arc, OnceLock};

use cuprum_core::{Array, DType, Device, Error, NdArray, Result};

use crate::compressed::CompressedMatrix;
use crate::index_and_value_arrays::{
    check_index_bounds, check_value_dtype, convert_index_arrays, evaluate_contiguous, index_dtype_for_extents,
};

/// A sparse array in coordinate format (`scipy.sparse.coo_array`): one row, one column and one value per element.
///
/// Elements may be in any order. If positions repeat, operations add their elements. No other format is constructed faster from unordered
/// elements. Arithmetic and products use a CSR copy, which is computed once and cached. A clone shares all memory.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CooArray, Sparse};
/// # fn main() -> cuprum::Result<()> {
/// let a = CooArray::new(&array![1.0, 2.0, 4.0], &array![1, 0, 1], &array![0, 2, 0], [2, 3])?;
/// assert_eq!(a.to_dense()?, array![[0.0, 0.0, 2.0], [5.0, 0.0, 0.0]]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CooArray {
    shape: [usize; 2],
    row: NdArray,
    column: NdArray,
    data: NdArray,
    to_compressed_rows: Arc<OnceLock<CompressedMatrix>>,
}

impl CooArray {
    /// Returns the array with the elements `data` at `(row, column)` (`scipy.sparse.coo_array((data, (row, column)), shape=shape)`).
    ///
    /// `data`, `row` and `column` are 1-D and of equal length. `row` and `column` keep their dtype if both are int32 or both are int64.
    /// Other integers become int32 if they fit, else int64. `data` is bool, an integer, float32, float64 or complex.
    ///
    /// # Errors
    /// [`Error::Index`] for an index out of bounds. Arrays that are not 1-D, lengths that differ, float16 and bfloat16, arrays on different
    /// devices.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::CooArray;
    /// # fn main() -> cuprum::Result<()> {
    /// assert!(CooArray::new(&array![1.0], &array![0], &array![-1], [2, 2]).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(data: &NdArray, row: &NdArray, column: &NdArray, shape: [usize; 2]) -> Result<CooArray> {
        const OP: &str = "coo_array";
        check_value_dtype(OP, data.dtype())?;
        if data.device() != row.device() || data.device() != column.device() {
            let message = format!("data and indices are on {}, {} and {}; use to_device", data.device(), row.device(), column.device());
            return Err(Error::Device { op: OP, message });
        }
        if data.ndim() != 1 || data.shape() != row.shape() || data.shape() != column.shape() {
            let message = "data, row and column must be 1-D and of equal length";
            return Err(Error::shape(OP, message, &[data.shape(), row.shape(), column.shape()]));
        }
        let [row, column] = convert_index_arrays(OP, [row, column], &[shape[0], shape[1], data.size()])?;
        check_index_bounds(OP, &row, 0, shape[0])?;
        check_index_bounds(OP, &column, 1, shape[1])?;
        Ok(CooArray { shape, row, column, data: evaluate_contiguous(data)?, to_compressed_rows: Arc::default() })
    }

    /// Returns an array of components that are known to be valid.
    pub(crate) fn from_parts_unchecked(data: NdArray, row: NdArray, column: NdArray, shape: [usize; 2]) -> Result<CooArray> {
        Ok(CooArray {
            shape,
            row: evaluate_contiguous(&row)?,
            column: evaluate_contiguous(&column)?,
            data: evaluate_contiguous(&data)?,
            to_compressed_rows: Arc::default(),
        })
    }

    /// Returns the nonzero elements of a 2-D array, in C order. A 1-D array counts as one row.
    ///
    /// # Errors
    /// An array whose number of axes is not 1 or 2, float16 and bfloat16.
    ///
    /// # Examples
    /// ```
    /// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
    /// use cuprum::array;
    /// use cuprum::sparse::CooArray;
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(CooArray::from_dense(&array![[0.0, 5.0], [0.0, 0.0]])?.column(), &array![1]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_dense(a: &NdArray) -> Result<CooArray> {
        check_value_dtype("coo_array", a.dtype())?;
        let a = match a.ndim() {
            1 => a.reshape((1, -1))?,
            2 => a.clone(),
            _ => return Err(Error::shape("coo_array", "a sparse array has two axes", &[a.shape()])),
        };
        let shape = [a.shape()[0], a.shape()[1]];
        let index = index_dtype_for_extents(&shape);
        let flat = a.ravel()?;
        let places = cuprum_core::flatnonzero(&flat)?;
        let columns = shape[1].max(1) as i64;
        let (row, column) = (places.floor_divide(columns)?.astype(index)?, places.remainder(columns)?.astype(index)?);
        CooArray::from_parts_unchecked(flat.take(&places, 0)?, row, column, shape)
    }

    /// Returns the stored elements (`.data`).
    pub fn data(&self) -> &NdArray {
        &self.data
    }

    /// Returns the row index of each element (`.row`).
    pub fn row(&self) -> &NdArray {
        &self.row
    }

    /// Returns the column index of each element (`.col`).
    pub fn column(&self) -> &NdArray {
        &self.column
    }

    /// Converts to compressed storage along `axis`. Repeated elements are added.
    pub(crate) fn to_compressed(&self, axis: usize) -> Result<CompressedMatrix> {
        if axis == 1 {
            return self.to_compressed(0)?.compressed_along_other_axis();
        }
        if let Some(known) = self.to_compressed_rows.get() {
            return Ok(known.clone());
        }
        let index = self.row.dtype();
        let made = CompressedMatrix::from_positions(&self.row, &self.column, &self.data, self.shape, index)?;
        Ok(self.to_compressed_rows.get_or_init(|| made).clone())
    }
}

impl Array for CooArray {
    fn dtype(&self) -> DType {
        self.data.dtype()
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn device(&self) -> Device {
        self.data.device()
    }
    fn to_device(&self, device: Device) -> Result<CooArray> {
        if self.device() == device {
            return Ok(self.clone());
        }
        let [data, row, column] = [&self.data, &self.row, &self.column].map(|a| a.to_device(device));
        CooArray::from_parts_unchecked(data?, row?, column?, self.shape)
    }
    /// Returns the number of stored elements. SciPy defines `size` in the same way.
    fn size(&self) -> usize {
        self.data.size()
    }
    /// Returns the total size of `data`, `row` and `column` in bytes.
    fn nbytes(&self) -> usize {
        self.data.nbytes().saturating_add(self.row.nbytes()).saturating_add(self.column.nbytes())
    }
}
