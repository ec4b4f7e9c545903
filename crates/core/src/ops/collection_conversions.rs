//! Conversions between arrays and the collections of the standard library, and the macro [`array!`](crate::array!).
//!
//! `From` and `FromIterator` cannot return an error. If an allocation or the current device fails, they return an array without a
//! value: reading it returns the error. [`NdArray::from_vec`] returns the error itself.

use crate::array::NdArray;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::host_buffer::{try_collect, try_reserve};

/// Returns the array of `result`. For an error, returns an array of `shape` without a value: reading it returns the error.
fn unwrap_or_failed_array<T: Element>(result: Result<NdArray>, shape: &[usize]) -> NdArray {
    result.unwrap_or_else(|e| NdArray::failed_array(T::DTYPE, shape, e))
}

impl<T: Element> From<Vec<T>> for NdArray {
    /// Moves the values into a 1-D array on the current device, as [`NdArray::from_vec`] does.
    fn from(values: Vec<T>) -> NdArray {
        let shape = [values.len()];
        unwrap_or_failed_array::<T>(NdArray::from_vec(values, shape), &shape)
    }
}

impl<T: Element, const N: usize> From<[T; N]> for NdArray {
    fn from(values: [T; N]) -> NdArray {
        unwrap_or_failed_array::<T>(NdArray::from_vec(values, [N]), &[N])
    }
}

impl<T: Element, const N: usize, const M: usize> From<[[T; M]; N]> for NdArray {
    fn from(values: [[T; M]; N]) -> NdArray {
        unwrap_or_failed_array::<T>(NdArray::from_vec(values.as_flattened(), [N, M]), &[N, M])
    }
}

impl<T: Element, const N: usize, const M: usize, const K: usize> From<[[[T; K]; M]; N]> for NdArray {
    fn from(values: [[[T; K]; M]; N]) -> NdArray {
        unwrap_or_failed_array::<T>(NdArray::from_vec(values.as_flattened().as_flattened(), [N, M, K]), &[N, M, K])
    }
}

impl<T: Element> FromIterator<T> for NdArray {
    /// Collects the values into a 1-D array on the current device (`numpy.fromiter`).
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> NdArray {
        match try_collect("from_iter", items) {
            Ok(values) => NdArray::from(values),
            Err(e) => NdArray::failed_array(T::DTYPE, &[1], e),
        }
    }
}

impl<T: Element> TryFrom<Vec<Vec<T>>> for NdArray {
    type Error = Error;

    /// Copies rows of equal length into a 2-D array on the current device.
    fn try_from(rows: Vec<Vec<T>>) -> Result<NdArray> {
        let op = "from_vec";
        let columns = rows.first().map_or(0, Vec::len);
        if let Some((row, values)) = rows.iter().enumerate().find(|(_, values)| values.len() != columns) {
            let message = format!("rows must have the same length: row 0 has {columns} values, row {row} has {}", values.len());
            return Err(Error::value(op, message));
        }
        let mut values = Vec::new();
        try_reserve(op, &mut values, rows.len().saturating_mul(columns))?;
        let shape = [rows.len(), columns];
        rows.iter().for_each(|row| values.extend_from_slice(row));
        NdArray::from_vec(values, shape)
    }
}

impl<T: Element> TryFrom<NdArray> for Vec<T> {
    type Error = Error;

    /// Returns the elements in C order, as [`NdArray::into_vec`] does.
    fn try_from(array: NdArray) -> Result<Vec<T>> {
        array.into_vec()
    }
}

impl<T: Element> TryFrom<&NdArray> for Vec<T> {
    type Error = Error;

    /// Returns a copy of the elements in C order, as [`NdArray::to_vec`] does.
    fn try_from(array: &NdArray) -> Result<Vec<T>> {
        array.to_vec()
    }
}

impl<T: Element> TryFrom<&NdArray> for Vec<Vec<T>> {
    type Error = Error;

    /// Returns a copy of the rows of a 2-D array. An array with another number of axes, or whose dtype is not `T`, is an error.
    fn try_from(array: &NdArray) -> Result<Vec<Vec<T>>> {
        let op = "to_vec";
        let &[rows, columns] = array.shape() else {
            return Err(Error::shape(op, "rows of vectors need a 2-D array", &[array.shape()]));
        };
        let values = array.to_vec::<T>()?;
        let mut all = Vec::new();
        try_reserve(op, &mut all, rows)?;
        for row in 0..rows {
            let mut copy = Vec::new();
            try_reserve(op, &mut copy, columns)?;
            copy.extend_from_slice(&values[row * columns..][..columns]);
            all.push(copy);
        }
        Ok(all)
    }
}

impl Default for NdArray {
    /// Returns an empty 1-D array of float64 on the current device (`numpy.array([])`).
    fn default() -> NdArray {
        NdArray::from(Vec::<f64>::new())
    }
}

/// Creates an array of up to three dimensions on the current device from a list of elements, as `vec!` creates a vector.
///
/// The dtype is that of Rust's literals: `1` is int32, `1.0` float64, `1u8` uint8, `true` bool. NumPy's dtype for ints is int64: write
/// `1i64`. `array![value; n]` repeats a value, which may be a nested array.
///
/// If an allocation or the device fails, reading the array returns the error.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, array};
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1, 2], [3, 4], [5, 6]];
/// assert_eq!((a.shape(), a.dtype()), (&[3, 2][..], DType::I32));
/// assert_eq!(a.sum(0)?, array![9i64, 12]);
/// assert_eq!(array![0.5; 3].to_string(), "[0.5 0.5 0.5]");
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! array {
    ($value:expr; $count:expr) => { $crate::NdArray::from([$value; $count]) };
    ($($value:expr),+ $(,)?) => { $crate::NdArray::from([$($value),+]) };
}
