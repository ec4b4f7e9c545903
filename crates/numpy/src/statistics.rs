//! Statistics.

use cuprum_core::{NdArray, Over, Result, numpy, subtract};

/// Returns the range over the given axes: the maximum minus the minimum (`numpy.ptp`).
///
/// # Errors
/// Axes that the array does not have, an empty reduction.
#[numpy("ptp(a, axis=None, *, keepdims=False)")]
pub fn ptp(a: &NdArray, over: impl Into<Over>) -> Result<NdArray> {
    let over = over.into();
    subtract(a.max(over.clone())?, a.min(over)?)
}
