//! The logistic function, its inverse and its logarithm, and the relative error exponential: `expit`, `logit`, `log_expit`, `exprel`.

use cuprum_core::numpy;
use cuprum_macros::kernel;

kernel! {
    #[helper]
    fn expit_f64(x: f64) -> f64 {
        let e = (-x.abs()).exp();
        let top = if x < 0.0 { e } else { 1.0 };
        top / (1.0 + e)
    }

    #[helper]
    fn logit_f64(p: f64) -> f64 {
        // Near p = 1/2, 2 p - 1 is exact. The logarithm of p / (1 - p), which is near 1 there, would lose digits.
        if p > 0.25 && p < 0.75 {
            return 2.0 * (2.0 * p - 1.0).atanh();
        }
        (p / (1.0 - p)).ln()
    }

    #[helper]
    fn log_expit_f64(x: f64) -> f64 {
        let rest = (-x.abs()).exp().ln_1p();
        if x < 0.0 { x - rest } else { -rest }
    }

    #[helper]
    fn exprel_f64(x: f64) -> f64 {
        if x.abs() < 1e-17 {
            return 1.0;
        }
        if x > 720.0 {
            return INFINITY;
        }
        if x > 700.0 {
            let half = (0.5 * x).exp();
            return half / x * half;
        }
        x.exp_m1() / x
    }

    /// Returns the logistic function `1 / (1 + exp(-x))` (`scipy.special.expit`), elementwise.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::expit(0.0)?.item()?, 0.5);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.expit(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn expit<T: Double>(x: T) -> T {
        expit_f64(x as f64) as T
    }

    /// Returns `log(p / (1 - p))`, the inverse of the logistic function (`scipy.special.logit`), elementwise.
    ///
    /// The result is NaN outside [0, 1] and infinite at its ends.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::logit(0.5)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.logit(p, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn logit<T: Double>(p: T) -> T {
        logit_f64(p as f64) as T
    }

    /// Returns the logarithm of the logistic function (`scipy.special.log_expit`), elementwise.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::log_expit(-1000.0)?.item()?, -1000.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.log_expit(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn log_expit<T: Double>(x: T) -> T {
        log_expit_f64(x as f64) as T
    }

    /// Returns the relative error exponential `(exp(x) - 1) / x` (`scipy.special.exprel`), elementwise; 1 at 0.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::exprel(0.0)?.item()?, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.exprel(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn exprel<T: Double>(x: T) -> T {
        exprel_f64(x as f64) as T
    }
}
