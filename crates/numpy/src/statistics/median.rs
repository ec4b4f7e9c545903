//! Medians: `median` and `nanmedian`.

use cuprum_core::{
    AxisOption, AxisOptions, DType, NdArray, Result, axis as over_axis, equal, expand_dims, floor_divide, isnan, logical_not, maximum,
    numpy, remainder, stack, subtract, take_along_axis, where_,
};

use crate::operand_and_slice_helpers::slice_axis;
use crate::statistics::order_statistics::{FlattenedRows, replace_results_of_nan_rows};

/// Returns the median over the given axes (`numpy.median`): the middle element, or the mean of the two middle elements of an even number.
///
/// Integers and bool give float64; other dtypes are kept. NaN if any element is NaN, or if there are no elements.
///
/// Passes over memory: a selection and a test for NaN. For an even number of elements, also the maximum of the lower half. No sort.
///
/// # Errors
/// Axes that are out of bounds or repeated.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::NdArray::from_slice(&[3, 1, 2, 9])?;
/// assert_eq!(cuprum::median(&a, ())?.item()?, 2.5);
/// # Ok(())
/// # }
/// ```
#[numpy("median(a, axis=None, out=None, overwrite_input=False, keepdims=False)")]
pub fn median(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    let over = over.into().check_accepted_options("median", &[AxisOption::KeepDims])?;
    let rows = FlattenedRows::from_reduced_axes("median", a, &over)?;
    let length = rows.row_length();
    let is_complex = a.dtype().is_complex();
    if length == 0 || (length < 3 && !is_complex) {
        return rows.rows.mean(-1)?.reshape(&rows.shape[..]);
    }
    let has_nan = rows.nan_row_mask()?;
    let half = length / 2;
    let part = rows.rows.partition(half as isize, -1)?;
    let upper = FlattenedRows::take_column(&part, half)?;
    let middle = match length % 2 {
        1 => expand_dims(&upper, [0])?,
        _ => stack(&[slice_axis(&part, part.ndim() - 1, 0, half as isize, 1)?.max(-1)?, upper], 0)?,
    };
    let result = match has_nan {
        // As in NumPy, the median of a complex row with NaN is its last element in sort order, whose real or imaginary part may be a
        // number.
        Some(has_nan) if is_complex => {
            let upper_half = slice_axis(&part, part.ndim() - 1, half as isize, None, 1)?;
            let last = length - half - 1;
            where_(has_nan, FlattenedRows::take_column(&upper_half.partition(last as isize, -1)?, last)?, middle.mean(0)?)?
        }
        has_nan => replace_results_of_nan_rows(middle.mean(0)?, has_nan)?,
    };
    result.reshape(&rows.shape[..])
}

/// Returns the median of the elements that are not NaN (`numpy.nanmedian`); NaN if there are none. The dtypes are the same as for
/// [`median`].
///
/// Passes over memory: as in [`median`] if no element is NaN, and otherwise a sort and gathers. The call waits for the device.
///
/// # Errors
/// Axes that are out of bounds or repeated.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, nanmedian};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(nanmedian(&array![1.0, f64::NAN, 3.0, 2.0], ())?.item()?, 2.0);
/// # Ok(())
/// # }
/// ```
#[numpy("nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=False)")]
pub fn nanmedian(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    let over = over.into();
    if a.size() == 0 {
        return crate::nan_functions::nanmean(a, over);
    }
    if !a.dtype().is_inexact() || !isnan(a)?.any(())?.item()?.as_bool() {
        return median(a, over);
    }
    let rows = FlattenedRows::from_reduced_axes("nanmedian", a, &over)?;
    let sorted = rows.rows.sort(-1)?;
    let count = logical_not(isnan(&rows.rows)?)?.astype(DType::I64)?.sum(over_axis(-1).keepdims())?;
    let at = |index: NdArray| take_along_axis(&sorted, &maximum(index, 0)?, -1)?.squeeze(-1);
    let lower = at(floor_divide(subtract(&count, 1)?, 2)?)?;
    let upper = at(floor_divide(&count, 2)?)?;
    let result = stack(&[lower, upper], 0)?.mean(0)?;
    // A row of odd length has one middle element. The mean of two copies of this element may overflow, so the element itself is returned.
    let single = at(floor_divide(&count, 2)?)?;
    let is_odd = equal(remainder(&count, 2)?, 1)?.squeeze(-1)?;
    let is_empty = equal(&count, 0)?.squeeze(-1)?;
    replace_results_of_nan_rows(where_(is_odd, single, result)?, Some(is_empty))?.reshape(&rows.shape[..])
}
