//! The digamma function, its derivatives, and the zeta functions.

use cuprum_core::{NdArray, Operand, Result, numpy};

with_zeta! {
    // Coefficients of u zeta(1 + u) in powers of u, for -5/4 <= u <= 3/2.
    const ZETA_COEFFICIENTS: [f64; 16] = [1.0, 0.5772156649015329, 0.07281584548367674, -0.004845181596435903, -0.00034230573671736625, 9.689041939279396e-05, -6.611031810050691e-06, -3.3162408604178477e-07, 1.0462094361530603e-07, -8.733225255334547e-09, 9.478619610045523e-11, 5.658988018438352e-11, -6.771567921160455e-12, 3.4695622803540116e-13, 5.656948861992641e-15, -2.0621761168577598e-15];

    /// Returns `gamma(n + 1) / x^(n + 1) * factor` for n >= 140 and x > 0, by Stirling's formula.
    #[helper]
    fn factorial_over_next_power(n: f64, x: f64, factor: f64) -> f64 {
        // `product + rest` is `e * x` in double-double arithmetic, where e is Euler's number as the sum of two doubles.
        let product = 2.718281828459045 * x;
        let rest = 2.718281828459045.mul_add(x, -product) + 1.4456468917292502e-16 * x;
        let quotient = n / product;
        let exponent = n * quotient.ln();
        if exponent.abs() > 2000.0 {
            return if exponent > 0.0 { INFINITY } else { 0.0 };
        }
        // The power enlarges the relative error of the quotient n times. The factor `correction` compensates for this.
        let error = (quotient.mul_add(-product, n) - quotient * rest) / n;
        let correction = n.mul_add(error, stirling_remainder(n)).exp();
        let half = quotient.powf(0.5 * n);
        half * (2.5066282746310005024158 * n.sqrt() / x * factor * correction) * half
    }

    /// Returns Riemann's zeta function.
    #[helper]
    fn riemann_zeta_f64(s: f64) -> f64 {
        if s.is_nan() || s == -INFINITY {
            return NAN;
        }
        if s > 2.5 {
            return if s > 60.0 { 1.0 } else { hurwitz_zeta_positive(s, 1.0) };
        }
        let u = s - 1.0;
        if s > -0.25 {
            return if u == 0.0 { INFINITY } else { u.polynomial(ZETA_COEFFICIENTS) / u };
        }
        let sine = sin_pi(0.5 * s);
        if sine == 0.0 {
            return 0.0;
        }
        if s < -310.0 {
            return sine * INFINITY;
        }
        // Uses the functional equation.
        let n = -s;
        let even = if s < -1.5 { hurwitz_zeta_positive(1.0 + n, 1.0) } else { n.polynomial(ZETA_COEFFICIENTS) / n };
        // TAU is rounded. The last factor corrects its power for the relative rounding error.
        let factor = 0.318309886183790671538 * sine * even * s.mul_add(3.8981718325193755e-17, 1.0);
        if n < 140.0 {
            // gamma(1 + n) is computed as `n * gamma(n)`, because the sum 1 + n would be rounded.
            return TAU.powf(s) * (n * gamma_positive(n)) * factor;
        }
        factorial_over_next_power(n, TAU, TAU * factor)
    }

    /// Returns `n! zeta(n + 1, x)` for n > 0 and x > 0.
    #[helper]
    fn polygamma_positive_magnitude(n: f64, x: f64) -> f64 {
        let scaled = scaled_hurwitz_zeta(n + 1.0, x);
        if n >= 140.0 {
            return factorial_over_next_power(n, x, scaled);
        }
        // One of gamma(n + 1) and zeta may overflow where the other underflows. Each is therefore multiplied by the square root of x^-(n +
        // 1).
        let half = x.powf(-0.5 * (n + 1.0));
        (gamma_positive(n + 1.0) * half) * (half * scaled)
    }

    /// Returns `n! zeta(n + 1, x)` for n > 0 and x < 0 that is not an integer. The terms `1 / (k + x)^(n + 1)` of positive and of negative
    /// k + x are summed separately, as in `hurwitz_zeta_f64`.
    #[helper]
    fn polygamma_negative_magnitude(n: f64, x: f64) -> f64 {
        let fraction = x - x.floor();
        let rest = x.ceil() - x;
        let parity = -parity_sign(n);
        if fraction == rest && parity < 0.0 {
            return polygamma_positive_magnitude(n, 1.0 - x);
        }
        let right = polygamma_positive_magnitude(n, fraction);
        let left = polygamma_positive_magnitude(n, rest);
        if left == INFINITY {
            return if parity < 0.0 && fraction > rest { -INFINITY } else { INFINITY };
        }
        right + parity * (left - polygamma_positive_magnitude(n, 1.0 - x))
    }

    #[helper]
    fn polygamma_f64(n: f64, x: f64) -> f64 {
        if n == 0.0 {
            return digamma_f64(x);
        }
        if n < 0.0 || n != n.floor() || !n.is_finite() {
            return NAN;
        }
        let sign = -parity_sign(n);
        if x == INFINITY {
            return sign * 0.0;
        }
        if x.is_nan() {
            return NAN;
        }
        if x > 0.0 {
            return sign * polygamma_positive_magnitude(n, x);
        }
        sign * if x == x.floor() { INFINITY } else { polygamma_negative_magnitude(n, x) }
    }

    /// Returns Riemann's zeta function.
    #[rust_only]
    fn riemann_zeta<T: Double>(x: T) -> T {
        riemann_zeta_f64(x as f64) as T
    }

    /// Returns Hurwitz's zeta function.
    #[rust_only]
    fn hurwitz_zeta<T: Single>(x: T, q: T) -> T {
        hurwitz_zeta_f64(x as f64, q as f64) as T
    }

    /// Returns derivative number n of the digamma function (`scipy.special.polygamma`), elementwise, in float64.
    ///
    /// The result is NaN if n is negative or not an integer. For positive n, it is infinite at x = 0, -1, -2, ...
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::polygamma(1, f64::INFINITY)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.polygamma(n, x)")]
    pub fn polygamma(n: f64, x: f64) -> f64 {
        polygamma_f64(n, x)
    }

    /// Returns the digamma function, the derivative of `gammaln` (`scipy.special.digamma`, `psi`), elementwise.
    ///
    /// The result is NaN at negative integers, and infinite at zero with the sign opposite to that of zero.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::digamma(f64::INFINITY)?.item()?, f64::INFINITY);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.digamma(z, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)", aliases("special.psi"))]
    pub fn digamma<T: Double>(z: T) -> T {
        digamma_f64(z as f64) as T
    }
}

/// Returns Riemann's zeta function of x, or the zeta function of Hurwitz, the sum of `1 / (k + q)^x` over k = 0, 1, ..
/// (`scipy.special.zeta`), elementwise.
///
/// Without q, the result is infinite at x = 1. With q, it is infinite at x = 1 and NaN for x < 1. For x > 1 and q <= 0, it is infinite if q
/// is an integer, and NaN if neither q nor x is an integer.
///
/// # Errors
/// Complex numbers, and shapes that do not broadcast.
///
/// # Examples
/// ```
/// # fn main() -> cuprum_core::Result<()> {
/// assert_eq!(cuprum_special::zeta(0.0, None::<f64>)?.item()?, -0.5);
/// assert_eq!(cuprum_special::zeta(60.0, Some(1.0))?.item()?, 1.0);
/// # Ok(())
/// # }
/// ```
#[numpy("special.zeta(x, q=None)")]
pub fn zeta(x: impl Into<Operand>, #[read(Option<Operand>)] q: Option<impl Into<Operand>>) -> Result<NdArray> {
    match q {
        None => riemann_zeta(x),
        Some(q) => hurwitz_zeta(x, q),
    }
}
