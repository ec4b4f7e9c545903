//! Iteration over an axis, and sums and products of iterators of arrays.

use std::iter::{FusedIterator, Product, Sum};
use std::ops::Range;

use crate::arguments::IntegerArgument;
use crate::array::NdArray;
use crate::error::{Error, Result};
use crate::index::Item;
use crate::layout::normalize_axis;
use crate::ops::elementwise::{add, multiply};
use crate::scalar::Scalar;

/// An iterator over the subarrays along an axis of an array. [`IntoIterator`] for an array iterates along the first axis, as Python does.
///
/// The subarrays are views. If the evaluation of the array fails, or if the array has no axes, reading a subarray returns the error.
#[derive(Clone, Debug)]
pub struct AxisIter {
    array: NdArray,
    rest: Range<usize>,
}

impl NdArray {
    /// Returns an iterator over the subarrays along `axis`, which are views without this axis.
    ///
    /// # Errors
    /// An axis out of bounds, or errors of evaluation.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = cuprum::array![[0, 1, 2], [3, 4, 5]];
    /// let columns: cuprum::Result<Vec<_>> = a.axis_iter(1)?.map(|column| column.to_vec::<i32>()).collect();
    /// assert_eq!(columns?, [[0, 3], [1, 4], [2, 5]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn axis_iter(&self, axis: impl IntegerArgument) -> Result<AxisIter> {
        let axis = normalize_axis("axis_iter", axis.saturating_isize(), self.ndim())?;
        Ok(AxisIter::new(if axis == 0 { self.clone() } else { self.moveaxis(axis, 0)? }))
    }

    /// Returns an iterator over the subarrays along the first axis: the rows of a matrix.
    ///
    /// # Errors
    /// A 0-d array.
    pub fn rows(&self) -> Result<AxisIter> {
        normalize_axis("rows", 0, self.ndim()).map(|_| AxisIter::new(self.clone()))
    }
}

impl AxisIter {
    fn new(array: NdArray) -> AxisIter {
        let count = array.shape().first().copied().unwrap_or(1);
        AxisIter { array, rest: 0..count }
    }

    fn at(&self, index: usize) -> NdArray {
        let op = "into_iter";
        let subarray = match self.array.ndim() {
            0 => Err(Error::shape(op, "iteration over a 0-d array", &[&[]])),
            _ => self.array.index(&[Item::At(index as isize)]),
        };
        subarray.unwrap_or_else(|e| NdArray::failed_array(self.array.dtype(), self.array.shape().get(1..).unwrap_or_default(), e))
    }
}

impl Iterator for AxisIter {
    type Item = NdArray;
    fn next(&mut self) -> Option<NdArray> {
        self.rest.next().map(|index| self.at(index))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rest.size_hint()
    }
    fn nth(&mut self, n: usize) -> Option<NdArray> {
        self.rest.nth(n).map(|index| self.at(index))
    }
}

impl DoubleEndedIterator for AxisIter {
    fn next_back(&mut self) -> Option<NdArray> {
        self.rest.next_back().map(|index| self.at(index))
    }
}

impl ExactSizeIterator for AxisIter {}
impl FusedIterator for AxisIter {}

/// Iterates over the subarrays along the first axis.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1, 2], [3, 4]];
/// for (row, want) in (&a).into_iter().zip([3i64, 7]) {
///     assert_eq!(row.sum(())?.item()?, want);
/// }
/// # Ok(())
/// # }
/// ```
impl IntoIterator for &NdArray {
    type Item = NdArray;
    type IntoIter = AxisIter;
    fn into_iter(self) -> AxisIter {
        AxisIter::new(self.clone())
    }
}

impl IntoIterator for NdArray {
    type Item = NdArray;
    type IntoIter = AxisIter;
    fn into_iter(self) -> AxisIter {
        AxisIter::new(self)
    }
}

/// Combines the arrays of an iterator by `f`, from left to right. Returns the int64 scalar `identity` if there are no arrays.
///
/// After an error, such as shapes that do not broadcast, reading the result returns the error.
fn fold_arrays(arrays: impl Iterator<Item = NdArray>, identity: i64, f: fn(NdArray, NdArray) -> Result<NdArray>) -> NdArray {
    let combine = |a: NdArray, b: NdArray| {
        let (dtype, shape) = (a.dtype(), a.shape().to_vec());
        f(a, b).unwrap_or_else(|e| NdArray::failed_array(dtype, &shape, e))
    };
    let identity = Scalar::from(identity);
    arrays
        .reduce(combine)
        .unwrap_or_else(|| NdArray::scalar(identity).unwrap_or_else(|e| NdArray::failed_array(identity.default_dtype(), &[], e)))
}

/// Adds arrays, with broadcasting (Python's `sum`). Without arrays, the sum is the int64 scalar 0.
///
/// If an addition fails, reading the result returns the error. The sum of an iterator of `Result<NdArray>` is a `Result`.
impl Sum for NdArray {
    fn sum<I: Iterator<Item = NdArray>>(arrays: I) -> NdArray {
        fold_arrays(arrays, 0, add)
    }
}

impl<'a> Sum<&'a NdArray> for NdArray {
    fn sum<I: Iterator<Item = &'a NdArray>>(arrays: I) -> NdArray {
        arrays.cloned().sum()
    }
}

/// Multiplies arrays, with broadcasting (Python's `math.prod`). Without arrays, the product is the int64 scalar 1.
///
/// If a multiplication fails, reading the result returns the error. The product of an iterator of `Result<NdArray>` is a `Result`.
impl Product for NdArray {
    fn product<I: Iterator<Item = NdArray>>(arrays: I) -> NdArray {
        fold_arrays(arrays, 1, multiply)
    }
}

impl<'a> Product<&'a NdArray> for NdArray {
    fn product<I: Iterator<Item = &'a NdArray>>(arrays: I) -> NdArray {
        arrays.cloned().product()
    }
}
