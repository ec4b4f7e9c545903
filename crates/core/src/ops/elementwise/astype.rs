//! Conversion to another dtype: `astype`.

use cuprum_macros::{free_functions, numpy};

use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::elementwise_with_dtypes;
use crate::op::{DTypeSignature, MAX_ARITY};
use crate::ops::creation_options::{astype_from_args, astype_method_from_args};
use crate::ops::elementwise::ASTYPE;

/// # Conversion
#[free_functions]
impl NdArray {
    /// Returns the array converted to `dtype` (`numpy.ndarray.astype`).
    ///
    /// Integers wrap. Floats are truncated to integers and saturate, and NaN becomes 0. From complex to real numbers, the imaginary part is
    /// dropped. As bool, every value other than zero is true. If the array already has the dtype, it is returned unchanged.
    ///
    /// # Errors
    /// Errors of evaluation, if the array's expression has to be evaluated.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[-1.5, 2.7, 300.0])?;
    /// assert_eq!(a.astype(DType::U8)?.to_vec::<u8>()?, [0, 2, 255]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy(
        "astype(x, dtype, /, *, copy=True, device=None)",
        differs = "floats out of an integer's range saturate, NaN gives 0",
        call = astype_from_args
    )]
    #[numpy("ndarray.astype(x, dtype, order='K', casting='unsafe', copy=True)", call = astype_method_from_args)]
    pub fn astype(&self, dtype: DType) -> Result<NdArray> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        elementwise_with_dtypes(ASTYPE, &mut [self.into()], DTypeSignature { args: [dtype; MAX_ARITY], result: dtype })
    }
}
