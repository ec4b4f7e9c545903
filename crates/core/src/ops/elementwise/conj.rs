//! Complex conjugates: `conj`.

use cuprum_macros::{free_functions, numpy};

use crate::array::NdArray;
use crate::error::Result;
use crate::expr::{Operand, elementwise_consuming_args};
use crate::ops::elementwise::CONJ;

/// Complex conjugate, elementwise (`numpy.conj`).
///
/// Bool becomes int8, and other real numbers are unchanged. [`NdArray::conj`] also leaves bool unchanged, as NumPy's method does.
///
/// # Errors
/// Errors of evaluation, if deferral is disabled.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{Complex, array, conj};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(conj(&array![Complex::new(1.0, 2.0)])?, array![Complex::new(1.0, -2.0)]);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "conjugate")]
#[numpy("conj(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)", aliases("conjugate"))]
pub fn conj(x: impl Into<Operand>) -> Result<NdArray> {
    elementwise_consuming_args(CONJ, &mut [x.into()])
}

/// # Complex conjugates
#[free_functions]
impl NdArray {
    /// Returns the complex conjugate (`numpy.ndarray.conj`). Arrays of real numbers or bool are returned unchanged.
    ///
    /// # Errors
    /// Errors of evaluation.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{Complex, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[Complex::new(1.0, 2.0)])?;
    /// assert_eq!(a.conj()?.to_vec::<Complex<f64>>()?, [Complex::new(1.0, -2.0)]);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "conjugate")]
    #[numpy("ndarray.conj(a, out=None)", aliases("ndarray.conjugate"))]
    pub fn conj(&self) -> Result<NdArray> {
        if self.dtype().is_complex() { conj(self) } else { Ok(self.clone()) }
    }
}
