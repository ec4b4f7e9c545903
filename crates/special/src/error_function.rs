//! The error function, and the normal distribution function.

use cuprum_core::numpy;

with_error_function! {
    #[helper]
    fn log_ndtr_f64(x: f64) -> f64 {
        if x > 0.0 {
            return (-ndtr_f64(-x)).ln_1p();
        }
        if x > -1.0 {
            return ndtr_f64(x).ln();
        }
        // Both terms are negative.
        -0.5 * x * x + (0.5 * erfcx_positive(-x * FRAC_1_SQRT_2)).ln()
    }

    /// Returns the error function `2 / sqrt(pi) * integral of exp(-t^2) from 0 to x` (`scipy.special.erf`), elementwise.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::erf(f64::INFINITY)?.item()?, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.erf(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn erf<T: Double>(x: T) -> T {
        erf_f64(x as f64) as T
    }

    /// Returns the complementary error function `1 - erf(x)` (`scipy.special.erfc`), elementwise, accurate where it is small.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::erfc(0.0)?.item()?, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.erfc(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn erfc<T: Double>(x: T) -> T {
        erfc_f64(x as f64) as T
    }

    /// Returns the scaled complementary error function `exp(x^2) * erfc(x)` (`scipy.special.erfcx`), elementwise.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::erfcx(0.0)?.item()?, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.erfcx(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn erfcx<T: Double>(x: T) -> T {
        erfcx_f64(x as f64) as T
    }

    /// Returns the distribution function of the standard normal distribution (`scipy.special.ndtr`), elementwise.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::ndtr(0.0)?.item()?, 0.5);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.ndtr(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn ndtr<T: Double>(x: T) -> T {
        ndtr_f64(x as f64) as T
    }

    /// Returns the logarithm of the normal distribution function (`scipy.special.log_ndtr`), elementwise, accurate for large negative x.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::log_ndtr(f64::INFINITY)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.log_ndtr(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn log_ndtr<T: Double>(x: T) -> T {
        log_ndtr_f64(x as f64) as T
    }
}
