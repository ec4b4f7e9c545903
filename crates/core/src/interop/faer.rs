//! Matrices of the crate `faer`.

use ::faer::{Mat, MatRef};

use crate::array::NdArray;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::host_buffer::try_reserve;

/// Returns the extents of a 2-D array.
fn matrix_extents(op: &'static str, array: &NdArray) -> Result<(usize, usize)> {
    match *array.shape() {
        [rows, columns] => Ok((rows, columns)),
        _ => Err(Error::shape(op, format!("an array of {} dimensions, asked for 2", array.ndim()), &[array.shape()])),
    }
}

/// Conversions from the crate `faer` (feature `faer`).
impl NdArray {
    /// Copies a matrix of faer to a 2-D array on the current device, in C order.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or errors of the current device.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{NdArray, array};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = faer::Mat::from_fn(2, 3, |row, column| (10 * row + column) as f64);
    /// assert_eq!(NdArray::from_faer(a.as_ref())?, array![[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_faer<T: Element>(matrix: MatRef<'_, T>) -> Result<NdArray> {
        let (rows, columns) = (matrix.nrows(), matrix.ncols());
        let mut values = Vec::new();
        try_reserve("from_faer", &mut values, rows.saturating_mul(columns))?;
        values.extend((0..rows).flat_map(|row| (0..columns).map(move |column| matrix[(row, column)])));
        NdArray::from_vec(values, [rows, columns])
    }
}

impl<T: Element> TryFrom<MatRef<'_, T>> for NdArray {
    type Error = Error;

    /// Copies the elements, as [`NdArray::from_faer`] does.
    fn try_from(matrix: MatRef<'_, T>) -> Result<NdArray> {
        NdArray::from_faer(matrix)
    }
}

impl<T: Element> TryFrom<&NdArray> for Mat<T> {
    type Error = Error;

    /// Returns a copy of the elements of a 2-D array.
    fn try_from(array: &NdArray) -> Result<Mat<T>> {
        let ((rows, columns), values) = (matrix_extents("Mat", array)?, array.to_vec::<T>()?);
        Ok(Mat::from_fn(rows, columns, |row, column| values[row * columns + column]))
    }
}

impl<'a, T: Element> TryFrom<&'a NdArray> for MatRef<'a, T> {
    type Error = Error;

    /// Borrows the elements of a 2-D array in C order from host memory, without a copy. Other arrays are errors, as in
    /// [`NdArray::as_slice`].
    fn try_from(array: &'a NdArray) -> Result<MatRef<'a, T>> {
        let (rows, columns) = matrix_extents("MatRef", array)?;
        Ok(MatRef::from_row_major_slice(array.as_slice()?, rows, columns))
    }
}
