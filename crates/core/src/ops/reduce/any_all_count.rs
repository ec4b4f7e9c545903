//! Reductions to truth values and counts: `any`, `all`, `count_nonzero`.

use cuprum_macros::{free_functions, numpy};

use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::reduce::axis_options::AxisOption::{KeepDims, Where};
use crate::ops::reduce::axis_options::AxisOptions;
use crate::ops::reduce::{ALL, ANY, COUNT_NONZERO, reduce};

/// # Truth values
#[free_functions]
impl NdArray {
    /// Returns whether any element is non-zero (`numpy.any`); NaN is non-zero.
    ///
    /// # Errors
    /// The errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.greater(3)?.any(1)?.to_vec::<bool>()?, [false, true]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("any(a, axis=None, out=None, keepdims=False, *, where=True)", method)]
    pub fn any(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        reduce(ANY, self, &over.into().check_accepted_options(ANY.name(), &[KeepDims, Where])?, DType::Bool, DType::Bool)
    }

    /// Returns whether all elements are non-zero (`numpy.all`); NaN is non-zero.
    ///
    /// # Errors
    /// The errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.greater(2)?.all(1)?.to_vec::<bool>()?, [false, true]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("all(a, axis=None, out=None, keepdims=False, *, where=True)", method)]
    pub fn all(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        reduce(ALL, self, &over.into().check_accepted_options(ALL.name(), &[KeepDims, Where])?, DType::Bool, DType::Bool)
    }
}

/// Returns the int64 number of non-zero elements (`numpy.count_nonzero`).
///
/// # Errors
/// The errors of [`NdArray::sum`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, count_nonzero};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[0, 3, 0, 5])?;
/// assert_eq!(count_nonzero(&a, ())?.item()?, 2);
/// # Ok(())
/// # }
/// ```
#[numpy("count_nonzero(a, axis=None, *, keepdims=False)")]
pub fn count_nonzero(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    reduce(COUNT_NONZERO, a, &over.into().check_accepted_options(COUNT_NONZERO.name(), &[KeepDims])?, DType::Bool, DType::I64)
}
