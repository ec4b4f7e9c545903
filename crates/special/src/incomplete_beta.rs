//! The regularised incomplete beta function.

use cuprum_core::numpy;

with_beta! {
    /// Returns (1 - x)^b for x < 1/2.
    #[helper]
    fn complement_power(x: f64, b: f64) -> f64 {
        (b * (-x).ln_1p()).exp()
    }

    /// Returns `x^a * y^b / beta(a, b)`, for y = 1 - x.
    #[helper]
    fn beta_term(a: f64, b: f64, x: f64, y: f64) -> f64 {
        if a < 10.0 || b < 10.0 {
            let left = if y < 0.5 { complement_power(y, a) } else { x.powf(a) };
            let right = if x < 0.5 { complement_power(x, b) } else { y.powf(b) };
            return left / beta_ordered(a.min(b), a.max(b)) * right;
        }
        // Divides the powers by their values at x = a / (a + b), which cancel most of the beta function.
        let sum = a + b;
        let distance = x.mul_add(b, -(y * a));
        let exponent = a * log_minus_difference(x * (sum / a), distance / a) + b * log_minus_difference(y * (sum / b), -distance / b);
        let rest = stirling_rest(sum) - stirling_rest(a) - stirling_rest(b);
        (exponent + rest).exp() * 0.398942280401432677940 * (a / sum * b).sqrt()
    }

    /// Returns the regularised incomplete beta function, for y = 1 - x. Lentz's method evaluates its continued fraction (NIST Digital
    /// Library of Mathematical Functions, 8.17.22).
    #[helper]
    fn beta_fraction(a: f64, b: f64, x: f64, y: f64) -> f64 {
        let sum = a + b;
        let mut c: f64 = 1.0;
        let mut d = 1.0 - sum * x / (a + 1.0);
        d = 1.0 / (if d.abs() < 1e-300 { 1e-300 } else { d });
        let mut h = d;
        let mut m = 0.0;
        for _ in 0..20000 {
            m = m + 1.0;
            let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
            d = 1.0 + even * d;
            c = 1.0 + even / c;
            d = 1.0 / (if d.abs() < 1e-300 { 1e-300 } else { d });
            c = if c.abs() < 1e-300 { 1e-300 } else { c };
            h = h * (c * d);
            let odd = -(a + m) * (sum + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
            d = 1.0 + odd * d;
            c = 1.0 + odd / c;
            d = 1.0 / (if d.abs() < 1e-300 { 1e-300 } else { d });
            c = if c.abs() < 1e-300 { 1e-300 } else { c };
            let change = c * d;
            h = h * change;
            if (change - 1.0).abs() < 2e-16 {
                break;
            }
        }
        beta_term(a, b, x, y) * h / a
    }

    #[helper]
    fn betainc_f64(a: f64, b: f64, x: f64) -> f64 {
        if !(a >= 0.0 && b >= 0.0 && x >= 0.0 && x <= 1.0) || a == 0.0 && b == 0.0 || a == INFINITY && b == INFINITY {
            return NAN;
        }
        if x == 0.0 || x == 1.0 {
            return x;
        }
        if a == 0.0 || b == INFINITY {
            return 1.0;
        }
        if b == 0.0 || a == INFINITY {
            return 0.0;
        }
        let y = 1.0 - x;
        if x < (a + 1.0) / (a + b + 2.0) {
            return beta_fraction(a, b, x, y);
        }
        let other = beta_fraction(b, a, y, x);
        // The result is `1 - other`, which loses digits if `other` is near 1. The fraction for x keeps these digits, although it converges
        // slowly here.
        if other > 0.9 && y > 1e-4 { beta_fraction(a, b, x, y) } else { 1.0 - other }
    }

    /// Returns the regularised incomplete beta function (`scipy.special.betainc`), elementwise.
    ///
    /// The result is NaN for negative a or b, and for x outside [0, 1]. Time and error grow with the square root of the larger of a and b.
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::betainc(1.0, 1.0, 0.0)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.betainc(a, b, x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn betainc<T: Single>(a: T, b: T, x: T) -> T {
        betainc_f64(a as f64, b as f64, x as f64) as T
    }
}
