//! Running sums and products with an optional initial element: `cumulative_sum` and `cumulative_prod`.

use cuprum_core::layout::normalize_axis;
use cuprum_core::{AxisOptions, Error, NdArray, Result, concat, numpy};

use crate::operand_and_slice_helpers::{new_filled_array, with_at_least_ndim};

/// Computes a running sum or product with `scan`, and prepends `initial` if it is given.
fn cumulate_with_initial(
    name: &'static str,
    x: &NdArray,
    over: &AxisOptions,
    initial: Option<i64>,
    scan: fn(&NdArray, AxisOptions) -> Result<NdArray>,
) -> Result<NdArray> {
    let x = with_at_least_ndim(x, 1)?;
    let axis = match over.axes() {
        None if x.ndim() > 1 => {
            return Err(Error::value(name, "For arrays which have more than one dimension ``axis`` argument is required."));
        }
        None => 0,
        Some(&[axis]) => axis,
        Some(_) => return Err(Error::value(name, "takes one axis")),
    };
    let along = normalize_axis(name, axis, x.ndim())?;
    let result = scan(&x, over.clone())?;
    let Some(initial) = initial else { return Ok(result) };
    let mut shape = x.shape().to_vec();
    shape[along] = 1;
    concat(&[new_filled_array(&x, &shape, initial, result.dtype())?, result], axis)
}

/// Returns the running sum along an axis (`numpy.cumulative_sum`). With `include_initial`, the result starts with 0.
///
/// Arrays of one dimension need no axis. The dtypes are the same as for [`NdArray::cumsum`].
///
/// Passes over memory: one scan, and one that joins the initial value if it is included.
///
/// # Errors
/// No axis for an array of several dimensions, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, cumulative_sum};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cumulative_sum(&array![1, 2, 3], (), true)?, array![0, 1, 3, 6]);
/// # Ok(())
/// # }
/// ```
#[numpy("cumulative_sum(x, /, *, axis=None, dtype=None, out=None, include_initial=False)")]
pub fn cumulative_sum(x: &NdArray, over: impl Into<AxisOptions>, include_initial: bool) -> Result<NdArray> {
    cumulate_with_initial("cumulative_sum", x, &over.into(), include_initial.then_some(0), |x, over| x.cumsum(over))
}

/// Returns the running product along an axis (`numpy.cumulative_prod`). With `include_initial`, the result starts with 1.
///
/// Arrays of one dimension need no axis. The dtypes are the same as for [`NdArray::cumprod`].
///
/// Passes over memory: one scan, and one that joins the initial value if it is included.
///
/// # Errors
/// No axis for an array of several dimensions, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, cumulative_prod};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cumulative_prod(&array![1, 2, 3], (), false)?, array![1, 2, 6]);
/// # Ok(())
/// # }
/// ```
#[numpy("cumulative_prod(x, /, *, axis=None, dtype=None, out=None, include_initial=False)")]
pub fn cumulative_prod(x: &NdArray, over: impl Into<AxisOptions>, include_initial: bool) -> Result<NdArray> {
    cumulate_with_initial("cumulative_prod", x, &over.into(), include_initial.then_some(1), |x, over| x.cumprod(over))
}
