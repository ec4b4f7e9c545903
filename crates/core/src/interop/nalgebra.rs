//! Matrices and vectors of the crate `nalgebra`, which are in column-major order.

use ::nalgebra::{DMatrix, DVector, Dim, Matrix, RawStorage};

use crate::array::NdArray;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::host_buffer::{HostBuffer, try_collect};
use crate::layout::Layout;

/// Returns an error unless `array` has `ndim` axes.
fn check_ndim(op: &'static str, array: &NdArray, ndim: usize) -> Result<()> {
    match array.ndim() == ndim {
        true => Ok(()),
        false => Err(Error::shape(op, format!("an array of {} dimensions, asked for {ndim}", array.ndim()), &[array.shape()])),
    }
}

/// Conversions from the crate `nalgebra` (feature `nalgebra`).
impl NdArray {
    /// Copies a matrix, vector or view of nalgebra to a 2-D array on the current device, in Fortran order.
    ///
    /// `NdArray::from` moves a [`DMatrix`] or [`DVector`] instead.
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
    /// let rotation = nalgebra::Matrix2::new(0.0, -1.0, 1.0, 0.0);
    /// assert_eq!(NdArray::from_nalgebra(&rotation)?, array![[0.0, -1.0], [1.0, 0.0]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_nalgebra<T: Element, R: Dim, C: Dim, S: RawStorage<T, R, C>>(matrix: &Matrix<T, R, C, S>) -> Result<NdArray> {
        array_from_column_major(matrix.nrows(), matrix.ncols(), try_collect("from_nalgebra", matrix.iter().copied())?)
    }
}

/// Returns a 2-D array of values in Fortran order.
fn array_from_column_major<T: Element>(rows: usize, columns: usize, values: Vec<T>) -> Result<NdArray> {
    let layout = Layout::contiguous(&[columns, rows])?.transpose();
    NdArray::from_host_buffer(T::DTYPE, layout, HostBuffer::from_vec(values))
}

impl<T: Element> From<DMatrix<T>> for NdArray {
    /// Moves the matrix into an array in Fortran order, without a copy on the host. If the device fails, reading the result returns the
    /// error.
    fn from(matrix: DMatrix<T>) -> NdArray {
        let shape = [matrix.nrows(), matrix.ncols()];
        array_from_column_major(shape[0], shape[1], matrix.data.into()).unwrap_or_else(|e| NdArray::failed_array(T::DTYPE, &shape, e))
    }
}

impl<T: Element> From<DVector<T>> for NdArray {
    /// Moves the vector into a 1-D array, without a copy on the host. If the device fails, reading the result returns the error.
    fn from(vector: DVector<T>) -> NdArray {
        NdArray::from(Vec::from(vector.data))
    }
}

impl<T: Element> TryFrom<NdArray> for DMatrix<T> {
    type Error = Error;

    /// Returns the elements of a 2-D array. Elements in Fortran order are moved without a copy if the conditions of [`NdArray::into_vec`]
    /// hold.
    fn try_from(array: NdArray) -> Result<DMatrix<T>> {
        check_ndim("DMatrix", &array, 2)?;
        let transposed = array.t()?;
        drop(array); // so that the transposed array is the only user of the memory
        let (rows, columns) = (transposed.shape()[1], transposed.shape()[0]);
        Ok(DMatrix::from_vec(rows, columns, transposed.into_vec()?))
    }
}

impl<T: Element> TryFrom<&NdArray> for DMatrix<T> {
    type Error = Error;

    /// Returns a copy of the elements of a 2-D array.
    fn try_from(array: &NdArray) -> Result<DMatrix<T>> {
        check_ndim("DMatrix", array, 2)?;
        Ok(DMatrix::from_vec(array.shape()[0], array.shape()[1], array.t()?.to_vec()?))
    }
}

impl<T: Element> TryFrom<NdArray> for DVector<T> {
    type Error = Error;

    /// Returns the elements of a 1-D array. The elements are moved without a copy if the conditions of [`NdArray::into_vec`] hold.
    fn try_from(array: NdArray) -> Result<DVector<T>> {
        check_ndim("DVector", &array, 1)?;
        Ok(DVector::from_vec(array.into_vec()?))
    }
}

impl<T: Element> TryFrom<&NdArray> for DVector<T> {
    type Error = Error;

    /// Returns a copy of the elements of a 1-D array.
    fn try_from(array: &NdArray) -> Result<DVector<T>> {
        check_ndim("DVector", array, 1)?;
        Ok(DVector::from_vec(array.to_vec()?))
    }
}
