//! Functions that ignore NaN: compositions, each one fused reduction. `nanmin` and `nanmax` are reductions of core.

use cuprum_core::{NdArray, Over, Result, Scalar, isnan, numpy, where_};

/// Replaces NaN by `value`. Integers and bool have no NaN.
fn replace_nan(a: &NdArray, value: impl Into<Scalar>) -> Result<NdArray> {
    if a.dtype().is_inexact() { where_(isnan(a)?, value.into(), a) } else { Ok(a.clone()) }
}

/// Returns the sum of the elements that are not NaN (`numpy.nansum`); 0 if there are none. The dtypes are those of [`NdArray::sum`].
///
/// # Errors
/// The errors of [`NdArray::sum`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::NdArray::from_slice(&[1.0, f64::NAN, 2.0])?;
/// assert_eq!(cuprum_numpy::nansum(&a, ())?.item()?, 3.0);
/// # Ok(())
/// # }
/// ```
#[numpy("nansum(a, axis=None, dtype=None, *, keepdims=False)")]
pub fn nansum(a: &NdArray, over: impl Into<Over>) -> Result<NdArray> {
    replace_nan(a, 0)?.sum(over)
}

/// Returns the product of the elements that are not NaN (`numpy.nanprod`); 1 if there are none. The dtypes are those of
/// [`NdArray::prod`].
///
/// # Errors
/// The errors of [`NdArray::sum`].
#[numpy("nanprod(a, axis=None, dtype=None, *, keepdims=False)")]
pub fn nanprod(a: &NdArray, over: impl Into<Over>) -> Result<NdArray> {
    replace_nan(a, 1)?.prod(over)
}
