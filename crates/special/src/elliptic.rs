//! Complete elliptic integrals.

use cuprum_core::numpy;
use cuprum_macros::kernel;

kernel! {
    /// Returns the arithmetic-geometric mean of 1 and b.
    #[helper]
    fn arithmetic_geometric_mean(b: f64) -> f64 {
        let mut a = 1.0;
        let mut other = b;
        for _ in 0..24 {
            let next = 0.5 * (a + other);
            if (a - other).abs() < 1e-8 * next {
                return next;
            }
            other = (a * other).sqrt();
            a = next;
        }
        a
    }

    /// Returns the sum of `2^(n - 1) * c_n^2` over the steps n of the arithmetic-geometric mean of 1 and b. `first` is `c_0^2` = 1 - b^2.
    #[helper]
    fn agm_weighted_square_sum(first: f64, b: f64) -> f64 {
        let mut a = 1.0;
        let mut other = b;
        let mut weight = 0.5;
        let mut sum = 0.5 * first;
        for _ in 0..24 {
            let difference = 0.5 * (a - other);
            if difference.abs() < 1e-17 * a {
                break;
            }
            let next = 0.5 * (a + other);
            other = (a * other).sqrt();
            a = next;
            weight = 2.0 * weight;
            sum = sum + weight * difference * difference;
        }
        sum
    }

    #[helper]
    fn ellipk_f64(m: f64) -> f64 {
        if m > 1.0 || m.is_nan() {
            return NAN;
        }
        if m == 1.0 {
            return INFINITY;
        }
        1.57079632679489661923 / arithmetic_geometric_mean((1.0 - m).sqrt())
    }

    /// Returns the elliptic integral E for a parameter 0 <= m < 1 and its complement 1 - m.
    #[helper]
    fn ellipe_in_unit_interval(m: f64, complement: f64) -> f64 {
        let root = complement.sqrt();
        if m <= 0.5 {
            return 1.57079632679489661923 / arithmetic_geometric_mean(root) * (1.0 - agm_weighted_square_sum(m, root));
        }
        // Uses Legendre's relation without cancellation: E = pi / (2 K') + K (K' - E') / K'. K' and E' are K and E of 1 - m.
        let other = m.sqrt();
        arithmetic_geometric_mean(other) + 1.57079632679489661923 / arithmetic_geometric_mean(root) * agm_weighted_square_sum(complement, other)
    }

    #[helper]
    fn ellipe_f64(m: f64) -> f64 {
        if m > 1.0 || m.is_nan() {
            return NAN;
        }
        if m == 1.0 {
            return 1.0;
        }
        if m >= 0.0 {
            return ellipe_in_unit_interval(m, 1.0 - m);
        }
        if m < -1e30 {
            return (-m).sqrt();
        }
        let scale = 1.0 - m;
        scale.sqrt() * ellipe_in_unit_interval(-m / scale, 1.0 / scale)
    }

    /// Returns the complete elliptic integral of the first kind for the parameter m (`scipy.special.ellipk`), elementwise.
    ///
    /// The result is infinite at 1, and NaN above 1. The method is the arithmetic-geometric mean (NIST Digital Library of Mathematical
    /// Functions, 19.8).
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::ellipk(1.0)?.item()?, f64::INFINITY);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.ellipk(m, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn ellipk<T: Double>(m: T) -> T {
        ellipk_f64(m as f64) as T
    }

    /// Returns the complete elliptic integral of the second kind for the parameter m (`scipy.special.ellipe`), elementwise.
    ///
    /// The result is NaN above 1. The method is the arithmetic-geometric mean (NIST Digital Library of Mathematical Functions, 19.8).
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::ellipe(1.0)?.item()?, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.ellipe(m, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn ellipe<T: Double>(m: T) -> T {
        ellipe_f64(m as f64) as T
    }
}
