//! Smallest and largest elements and their indices: `min`, `max`, `argmin`, `argmax`, `nanmin`, `nanmax`.

use cuprum_macros::{free_functions, numpy};

use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::reduce::axis_options::AxisOption::{Initial, KeepDims, Where};
use crate::ops::reduce::axis_options::AxisOptions;
use crate::ops::reduce::{ARGMAX, ARGMIN, MAX, MIN, NANMAX, NANMIN, reduce};

/// Returns the smallest element that is not NaN (`numpy.nanmin`); NaN if all elements are NaN.
///
/// Complex numbers compare by real part, then imaginary part.
///
/// # Errors
/// No elements, and the errors of [`NdArray::sum`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, nanmin};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[2.0, f64::NAN, 1.0])?;
/// assert_eq!(nanmin(&a, ())?.item()?, 1.0);
/// # Ok(())
/// # }
/// ```
#[numpy("nanmin(a, axis=None, out=None, keepdims=False, initial=None, where=True)")]
pub fn nanmin(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    reduce(NANMIN, a, &over.into().check_accepted_options(NANMIN.name(), &[KeepDims, Initial, Where])?, a.dtype(), a.dtype())
}

/// Returns the largest element that is not NaN (`numpy.nanmax`); NaN if all elements are NaN.
///
/// Complex numbers compare by real part, then imaginary part.
///
/// # Errors
/// No elements, and the errors of [`NdArray::sum`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, nanmax};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[2.0, f64::NAN, 1.0])?;
/// assert_eq!(nanmax(&a, ())?.item()?, 2.0);
/// # Ok(())
/// # }
/// ```
#[numpy("nanmax(a, axis=None, out=None, keepdims=False, initial=None, where=True)")]
pub fn nanmax(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    reduce(NANMAX, a, &over.into().check_accepted_options(NANMAX.name(), &[KeepDims, Initial, Where])?, a.dtype(), a.dtype())
}

/// # Extremes
#[free_functions]
impl NdArray {
    /// Returns the smallest element (`numpy.min`).
    ///
    /// The result is NaN if any element is NaN. Complex numbers compare by real part, then imaginary part.
    ///
    /// # Errors
    /// No elements, and the errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.min(0)?.to_vec::<f64>()?, [1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("min(a, axis=None, out=None, keepdims=False, initial=None, where=True)", aliases("amin"), method)]
    pub fn min(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        reduce(MIN, self, &over.into().check_accepted_options(MIN.name(), &[KeepDims, Initial, Where])?, self.dtype(), self.dtype())
    }

    /// Returns the largest element (`numpy.max`).
    ///
    /// The result is NaN if any element is NaN. Complex numbers compare by real part, then imaginary part.
    ///
    /// # Errors
    /// No elements, and the errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.max(())?.item()?, 4.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("max(a, axis=None, out=None, keepdims=False, initial=None, where=True)", aliases("amax"), method)]
    pub fn max(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        reduce(MAX, self, &over.into().check_accepted_options(MAX.name(), &[KeepDims, Initial, Where])?, self.dtype(), self.dtype())
    }

    /// Returns the int64 index of the first smallest element, along one axis or in the flattened array (`numpy.argmin`).
    ///
    /// The first NaN counts as smallest.
    ///
    /// # Errors
    /// No elements, more than one axis, and the errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.argmin(1)?.to_vec::<i64>()?, [0, 0]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("argmin(a, axis=None, out=None, *, keepdims=False)", method)]
    pub fn argmin(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        reduce(ARGMIN, self, &over.into().check_accepted_options(ARGMIN.name(), &[KeepDims])?, self.dtype(), DType::I64)
    }

    /// Returns the int64 index of the first largest element, along one axis or in the flattened array (`numpy.argmax`).
    ///
    /// The first NaN counts as largest.
    ///
    /// # Errors
    /// No elements, more than one axis, and the errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.argmax(())?.item()?, 3);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("argmax(a, axis=None, out=None, *, keepdims=False)", method)]
    pub fn argmax(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        reduce(ARGMAX, self, &over.into().check_accepted_options(ARGMAX.name(), &[KeepDims])?, self.dtype(), DType::I64)
    }
}
