//! Rounding to a number of decimals: `round`.

use cuprum_macros::{free_functions, numpy};

use crate::array::{NdArray, StoredArray};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::elementwise::{divide, multiply};

/// # Rounding
#[free_functions]
impl NdArray {
    /// Rounds to a number of decimals, ties to even (`numpy.round`).
    ///
    /// `decimals` may be negative. Integers are unchanged for `decimals >= 0`, and complex numbers round each part. A power of ten that
    /// overflows gives infinity or NaN.
    ///
    /// # Errors
    /// A bool array, unless `decimals` is 0.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[0.5, 1.5, 2.25])?;
    /// assert_eq!(a.round(0)?.to_vec::<f64>()?, [0.0, 2.0, 2.0]);
    /// assert_eq!(a.round(1)?.to_vec::<f64>()?, [0.5, 1.5, 2.2]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("round(a, decimals=0, out=None)", aliases("around"), method)]
    pub fn round(&self, decimals: i32) -> Result<NdArray> {
        let integral = self.dtype().is_int();
        match decimals {
            d if d >= 0 && integral => Ok(self.clone()),
            0 => self.rint(),
            _ if self.dtype() == DType::Bool => Err(Error::dtype("round", "bool has no decimals; use astype first", &[DType::Bool])),
            d if self.dtype().is_complex() => {
                self.interleave_real_and_imaginary()?.round(d)?.complex_from_interleaved(self.dtype(), self.shape())
            }
            d if d > 0 => {
                let scale = 10f64.powi(d);
                divide(&multiply(self, scale)?.rint()?, scale)
            }
            d => {
                let scale = 10f64.powi(d.saturating_neg());
                let rounded = multiply(&divide(self, scale)?.rint()?, scale)?;
                if integral { rounded.astype(self.dtype()) } else { Ok(rounded) }
            }
        }
    }

    /// Returns the real and imaginary parts of a complex array, interleaved along one axis.
    fn interleave_real_and_imaginary(&self) -> Result<NdArray> {
        let stored = self.contiguous()?.stored()?;
        let layout = Layout::strided(&[2 * self.size()], &[1], 2 * stored.layout().offset())?;
        StoredArray::new(self.dtype().real(), layout, stored.buffer().clone()).map(NdArray::from)
    }

    /// Returns the complex array of `shape` from real and imaginary parts that are interleaved in `self`. Inverse of
    /// [`NdArray::interleave_real_and_imaginary`].
    fn complex_from_interleaved(&self, dtype: DType, shape: &[usize]) -> Result<NdArray> {
        let stored = self.copy()?.stored()?;
        StoredArray::new(dtype, Layout::contiguous(shape)?, stored.buffer().clone()).map(NdArray::from)
    }
}
