//! Ranges of values: `ptp`.

use cuprum_core::{AxisOption, AxisOptions, NdArray, Result, numpy, subtract};

/// Returns the range over the given axes: the maximum minus the minimum (`numpy.ptp`).
///
/// Passes over memory: two reductions, the maximum and the minimum.
///
/// # Errors
/// Axes that the array does not have, an empty reduction.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[3.0, 9.0, 2.0])?;
/// assert_eq!(cuprum::ptp(&a, ())?.item()?, 7.0);
/// # Ok(())
/// # }
/// ```
#[numpy("ptp(a, axis=None, *, keepdims=False)")]
pub fn ptp(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    let over = over.into().check_accepted_options("ptp", &[AxisOption::KeepDims])?;
    subtract(a.max(over.clone())?, a.min(over)?)
}
