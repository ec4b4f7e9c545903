//! Statistics.

use cuprum_core::layout::normalize_axes;
use cuprum_core::{NdArray, Over, Result, expand_dims, isnan, numpy, stack, subtract, where_};

use crate::common::slice_axis;

/// Returns the range over the given axes: the maximum minus the minimum (`numpy.ptp`).
///
/// # Errors
/// Axes that the array does not have, an empty reduction.
#[numpy("ptp(a, axis=None, *, keepdims=False)")]
pub fn ptp(a: &NdArray, over: impl Into<Over>) -> Result<NdArray> {
    let over = over.into();
    subtract(a.max(over.clone())?, a.min(over)?)
}

/// The elements of a reduction as the last axis, and the shape of its result.
pub(crate) struct Rows {
    pub rows: NdArray,
    pub shape: Vec<usize>,
}

impl Rows {
    /// Moves the reduced axes of `a` to the end and merges them.
    pub(crate) fn new(op: &'static str, a: &NdArray, over: &Over) -> Result<Rows> {
        let axes = match over.axes() {
            None => (0..a.ndim()).collect(),
            Some(axes) => normalize_axes(op, axes, a.ndim())?,
        };
        let kept: Vec<usize> = (0..a.ndim()).filter(|axis| !axes.contains(axis)).collect();
        let mut reduced = axes.to_vec();
        reduced.sort_unstable();
        let order: Vec<isize> = kept.iter().chain(&reduced).map(|&axis| axis as isize).collect();
        let mut shape: Vec<usize> = kept.iter().map(|&axis| a.shape()[axis]).collect();
        let length = reduced.iter().map(|&axis| a.shape()[axis]).product();
        let result = match over.keeps_dims() {
            true => (0..a.ndim()).map(|axis| if axes.contains(&axis) { 1 } else { a.shape()[axis] }).collect(),
            false => shape.clone(),
        };
        shape.push(length);
        Ok(Rows { rows: a.transpose(&order)?.reshape(shape)?, shape: result })
    }

    /// Returns the number of elements of a row.
    pub(crate) fn length(&self) -> usize {
        self.rows.shape()[self.rows.ndim() - 1]
    }

    /// Returns whether each row has a NaN. `None` if the dtype has no NaN.
    fn has_nan(&self) -> Result<Option<NdArray>> {
        match self.rows.dtype().is_inexact() {
            true => isnan(&self.rows)?.any(-1).map(Some),
            false => Ok(None),
        }
    }

    /// Returns column `n` of `rows`.
    fn column(rows: &NdArray, n: usize) -> Result<NdArray> {
        let last = rows.ndim() - 1;
        slice_axis(rows, last, n as isize, n as isize + 1, 1)?.squeeze(-1)
    }
}

/// Replaces the results of rows with NaN by NaN.
fn mark_nan(result: NdArray, has_nan: Option<NdArray>) -> Result<NdArray> {
    match has_nan {
        Some(has_nan) => where_(has_nan, f64::NAN, &result),
        None => Ok(result),
    }
}

/// Returns the median over the given axes (`numpy.median`): the mean of the two middle elements if their number is even.
///
/// Integers and bool give float64; other dtypes are kept. NaN if any element is NaN, or if there are no elements.
///
/// Passes over memory: a selection, a maximum of half the elements if their number is even, and a test for NaN. No sort.
///
/// # Errors
/// Axes that are out of bounds or repeated.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::NdArray::from_slice(&[3, 1, 2, 9])?;
/// assert_eq!(cuprum_numpy::median(&a, ())?.item()?, 2.5);
/// # Ok(())
/// # }
/// ```
#[numpy("median(a, axis=None, out=None, overwrite_input=False, keepdims=False)")]
pub fn median(a: &NdArray, over: impl Into<Over>) -> Result<NdArray> {
    let over = over.into();
    let rows = Rows::new("median", a, &over)?;
    let length = rows.length();
    if length < 3 {
        return rows.rows.mean(-1)?.reshape(&rows.shape[..]);
    }
    let has_nan = rows.has_nan()?;
    let half = length / 2;
    let part = rows.rows.partition(half as isize, -1)?;
    let upper = Rows::column(&part, half)?;
    let middle = match length % 2 {
        1 => expand_dims(&upper, [0])?,
        _ => stack(&[slice_axis(&part, part.ndim() - 1, 0, half as isize, 1)?.max(-1)?, upper], 0)?,
    };
    mark_nan(middle.mean(0)?, has_nan)?.reshape(&rows.shape[..])
}
