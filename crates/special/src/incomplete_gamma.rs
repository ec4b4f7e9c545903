//! The regularised incomplete gamma functions and their inverses.

use cuprum_core::numpy;

with_incomplete_gamma! {
    /// Returns the regularised lower incomplete gamma function P(a, x) (`scipy.special.gammainc`), elementwise.
    ///
    /// The result is NaN for negative arguments. The algorithm chooses between the series, the continued fraction, and Temme's uniform
    /// expansion (NIST Digital Library of Mathematical Functions, 8.7, 8.9 and 8.12).
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::gammainc(1.0, 0.0)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.gammainc(a, x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn gammainc<T: Double>(a: T, x: T) -> T {
        gammainc_f64(a as f64, x as f64) as T
    }

    /// Returns the regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x) (`scipy.special.gammaincc`), elementwise.
    ///
    /// Small results are accurate, unlike `1 - gammainc(a, x)`. The result is NaN for negative arguments.
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::gammaincc(1.0, 0.0)?.item()?, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.gammaincc(a, x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn gammaincc<T: Double>(a: T, x: T) -> T {
        gammaincc_f64(a as f64, x as f64) as T
    }

    /// Returns the inverse of [`gammainc`] in x: the x with P(a, x) = y (`scipy.special.gammaincinv`), elementwise.
    ///
    /// The result is NaN for y outside [0, 1].
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::gammaincinv(2.0, 1.0)?.item()?, f64::INFINITY);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.gammaincinv(a, y, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn gammaincinv<T: Double>(a: T, y: T) -> T {
        gammaincinv_f64(a as f64, y as f64) as T
    }

    /// Returns the inverse of [`gammaincc`] in x: the x with Q(a, x) = y (`scipy.special.gammainccinv`), elementwise.
    ///
    /// The result is NaN for y outside [0, 1].
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::gammainccinv(2.0, 0.0)?.item()?, f64::INFINITY);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.gammainccinv(a, y, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn gammainccinv<T: Double>(a: T, y: T) -> T {
        gammainccinv_f64(a as f64, y as f64) as T
    }
}
