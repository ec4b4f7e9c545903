//! The gamma function, its logarithm, and the beta function.

use cuprum_core::numpy;

with_beta! {
    /// Returns the sign of gamma(x), for any x except integers below 1.
    #[helper]
    fn gamma_sign(x: f64) -> f64 {
        if x > 0.0 { 1.0 } else { parity_sign(x.floor()) }
    }

    #[helper]
    fn is_gamma_pole(x: f64) -> bool {
        x <= 0.0 && x == x.floor()
    }

    /// Returns beta(a, b) for a = 0, -1, -2, ... and an integer b. The result is finite for 1 <= b <= -a.
    #[helper]
    fn beta_at_pole(a: f64, b: f64) -> f64 {
        let y = 1.0 - a - b;
        if b == b.floor() && b > 0.0 && y > 0.0 {
            return parity_sign(b) * beta_of_ordered_positive(y.min(b), y.max(b));
        }
        INFINITY
    }

    /// Returns the logarithm of the absolute value of `beta_at_pole(a, b)`.
    #[helper]
    fn betaln_at_pole(a: f64, b: f64) -> f64 {
        let y = 1.0 - a - b;
        if b == b.floor() && b > 0.0 && y > 0.0 { betaln_of_ordered_positive(y.min(b), y.max(b)) } else { INFINITY }
    }

    /// Returns `a + b` minus its rounded value.
    #[helper]
    fn rounding_error_of_sum(a: f64, b: f64) -> f64 {
        let sum = a + b;
        let part = sum - a;
        (a - (sum - part)) + (b - part)
    }

    #[helper]
    fn beta_f64(a: f64, b: f64) -> f64 {
        if a.is_nan() || b.is_nan() {
            return NAN;
        }
        if a > 0.0 && b > 0.0 {
            return beta_of_ordered_positive(a.min(b), a.max(b));
        }
        if is_gamma_pole(a) {
            return beta_at_pole(a, b);
        }
        if is_gamma_pole(b) {
            return beta_at_pole(b, a);
        }
        let sum = a + b;
        if is_gamma_pole(sum) {
            return 0.0;
        }
        if a.abs() < 1e-10 && b.abs() < 1e-10 {
            return sum / a / b;
        }
        if a.abs() < 150.0 && b.abs() < 150.0 && sum.abs() < 150.0 {
            // The product is corrected for the rounding error of `sum`, by the logarithmic derivative of the gamma function.
            let rest = rounding_error_of_sum(a, b);
            let small = if a.abs() < b.abs() { a } else { b };
            let large = if a.abs() < b.abs() { b } else { a };
            // The quotient is computed first, because gamma(small) * gamma(large) may overflow. If gamma(small) is huge, `small` is near 0,
            // so gamma(large) / gamma(sum) is near 1.
            let product = gamma_f64(small) * (gamma_f64(large) / gamma_f64(sum));
            return if product.is_finite() { product - product * (rest * digamma_f64(sum)) } else { product };
        }
        if sum >= 10.0 && sum < INFINITY {
            let small = a.min(b);
            return gamma_sign(small) * (gammaln_f64(small) + log_gamma_quotient(small, a.max(b))).exp();
        }
        let size = (gammaln_f64(a) + gammaln_f64(b) - gammaln_f64(sum)).exp();
        gamma_sign(a) * gamma_sign(b) * gamma_sign(sum) * size
    }

    #[helper]
    fn betaln_f64(a: f64, b: f64) -> f64 {
        if a.is_nan() || b.is_nan() {
            return NAN;
        }
        if a > 0.0 && b > 0.0 {
            return betaln_of_ordered_positive(a.min(b), a.max(b));
        }
        if is_gamma_pole(a) {
            return betaln_at_pole(a, b);
        }
        if is_gamma_pole(b) {
            return betaln_at_pole(b, a);
        }
        let sum = a + b;
        if sum >= 10.0 && sum < INFINITY {
            return gammaln_f64(a.min(b)) + log_gamma_quotient(a.min(b), a.max(b));
        }
        let size = gammaln_f64(a) + gammaln_f64(b) - gammaln_f64(sum);
        if is_gamma_pole(sum) || !size.is_finite() {
            return size;
        }
        // Near a pole, `gamma(sum)` depends strongly on the rounding error of the sum.
        let change = rounding_error_of_sum(a, b) * digamma_f64(sum);
        size + if change < 0.5 { (-change).ln_1p() } else { (1.0 - change).abs().ln() }
    }

    /// Returns the gamma function (`scipy.special.gamma`), elementwise.
    ///
    /// The result is NaN at negative integers. At zero, it is infinite, with the sign of the zero.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::gamma(5.0)?.item()?, 24.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.gamma(z, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn gamma<T: Double>(z: T) -> T {
        gamma_f64(z as f64) as T
    }

    /// Returns the logarithm of the absolute value of the gamma function (`scipy.special.gammaln`), elementwise.
    ///
    /// The result is infinite at zero and at negative integers.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::gammaln(1.0)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.gammaln(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn gammaln<T: Double>(x: T) -> T {
        gammaln_f64(x as f64) as T
    }

    /// Returns the beta function `gamma(a) * gamma(b) / gamma(a + b)` (`scipy.special.beta`), elementwise.
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::beta(1.0, 1.0)?.item()?, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.beta(a, b, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn beta<T: Double>(a: T, b: T) -> T {
        beta_f64(a as f64, b as f64) as T
    }

    /// Returns the logarithm of the absolute value of the beta function (`scipy.special.betaln`), elementwise.
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::betaln(1.0, 1.0)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.betaln(a, b, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn betaln<T: Double>(a: T, b: T) -> T {
        betaln_f64(a as f64, b as f64) as T
    }
}
