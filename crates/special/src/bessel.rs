//! Bessel functions of orders zero and one.

use cuprum_core::numpy;

with_bessel! {
    /// Returns the Bessel function of the first kind of order 0 (`scipy.special.j0`), elementwise.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::j0(0.0)?.item()?, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.j0(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn j0<T: Double>(x: T) -> T {
        j0_f64(x as f64) as T
    }

    /// Returns the Bessel function of the first kind of order 1 (`scipy.special.j1`), elementwise.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::j1(0.0)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.j1(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn j1<T: Double>(x: T) -> T {
        j1_f64(x as f64) as T
    }

    /// Returns the Bessel function of the second kind of order 0 (`scipy.special.y0`), elementwise.
    ///
    /// The result is -inf at 0, and NaN for negative x.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::y0(0.0)?.item()?, f64::NEG_INFINITY);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.y0(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn y0<T: Double>(x: T) -> T {
        y0_f64(x as f64) as T
    }

    /// Returns the Bessel function of the second kind of order 1 (`scipy.special.y1`), elementwise.
    ///
    /// The result is -inf at 0, and NaN for negative x.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::y1(0.0)?.item()?, f64::NEG_INFINITY);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.y1(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn y1<T: Double>(x: T) -> T {
        y1_f64(x as f64) as T
    }
}
