//! Sums and products: `sum` and `prod`.

use cuprum_macros::{free_functions, numpy};

use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::reduce::axis_options::AxisOption::{DType as DTypeOption, Initial, KeepDims, Where};
use crate::ops::reduce::axis_options::AxisOptions;
use crate::ops::reduce::{ALL, ANY, PROD, SUM, reduce};

/// # Sums and products
///
/// Each method takes the axes as `()`, a number, a list, or [`axis(..)`](crate::axis()) with options.
#[free_functions]
impl NdArray {
    /// Returns the sum over the axes `over` (`numpy.sum`); 0 for no elements.
    ///
    /// Bool and integers are summed in int64 or uint64 and wrap. float16 and bfloat16 are summed in float32, and the sum is converted back.
    ///
    /// # Errors
    /// Axes that are out of bounds or repeated, or errors of evaluation.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.sum(())?.item()?, 10.0);
    /// assert_eq!(a.sum(-1)?.to_vec::<f64>()?, [3.0, 7.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True)", method)]
    pub fn sum(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        let over = over.into().check_accepted_options(SUM.name(), &[KeepDims, DTypeOption, Initial, Where])?;
        match over.dtype.unwrap_or(self.dtype().sum_dtype()) {
            DType::Bool => reduce(ANY, self, &over, DType::Bool, DType::Bool), // `add` of bool is "or"
            dtype => reduce(SUM, self, &over, dtype, dtype),
        }
    }

    /// Returns the product over the axes `over` (`numpy.prod`); 1 for no elements. The dtypes are those of [`NdArray::sum`].
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
    /// assert_eq!(a.prod(0)?.to_vec::<f64>()?, [3.0, 8.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True)", method)]
    pub fn prod(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        let over = over.into().check_accepted_options(PROD.name(), &[KeepDims, DTypeOption, Initial, Where])?;
        match over.dtype.unwrap_or(self.dtype().sum_dtype()) {
            DType::Bool => reduce(ALL, self, &over, DType::Bool, DType::Bool), // `multiply` of bool is "and"
            dtype => reduce(PROD, self, &over, dtype, dtype),
        }
    }
}
