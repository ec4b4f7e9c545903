//! The regularised incomplete beta function.

use cuprum_core::numpy;

with_beta! {
    /// Returns (1 - x)^b for x < 1/2.
    #[helper]
    fn power_of_complement(x: f64, b: f64) -> f64 {
        (b * (-x).ln_1p()).exp()
    }

    /// Returns `x * b - y * a`, for y = 1 - x, with corrections for rounding errors, which matter if a and b are large.
    #[helper]
    fn scaled_distance_from_mean(a: f64, b: f64, x: f64, y: f64) -> f64 {
        let product = y * a;
        // `rest` is 1 - x - y, the rounding error of the larger of x and y.
        let rest = (1.0 - x.max(y)) - x.min(y);
        let error = y.mul_add(a, -product) + if x < y { rest * a } else { -rest * b };
        x.mul_add(b, -product) - error
    }

    /// Returns `x^a * y^b / beta(a, b)`, for y = 1 - x.
    #[helper]
    fn incomplete_beta_prefactor(a: f64, b: f64, x: f64, y: f64) -> f64 {
        if a < 10.0 || b < 10.0 {
            let left = if y < 0.5 { power_of_complement(y, a) } else { x.powf(a) };
            let right = if x < 0.5 { power_of_complement(x, b) } else { y.powf(b) };
            if left == 0.0 || right == 0.0 {
                // The quotient would be NaN if `beta(a, b)` underflows to 0 too.
                return 0.0;
            }
            return left / beta_of_ordered_positive(a.min(b), a.max(b)) * right;
        }
        // Computes the powers relative to their values at x = a / (a + b). By Stirling's formula, these values cancel most of `beta(a, b)`.
        let sum = a + b;
        let distance = scaled_distance_from_mean(a, b, x, y);
        let exponent = a * log_ratio_minus_difference(x * (sum / a), distance / a) + b * log_ratio_minus_difference(y * (sum / b), -distance / b);
        let rest = stirling_remainder(sum) - stirling_remainder(a) - stirling_remainder(b);
        (exponent + rest).exp() * 0.398942280401432677940 * (a / sum * b).sqrt()
    }

    /// Returns the regularised incomplete beta function, for y = 1 - x, by Lentz's method for the even part of its continued fraction
    /// (NIST Digital Library of Mathematical Functions, 8.17.22 and 1.12.24).
    #[helper]
    fn betainc_continued_fraction(a: f64, b: f64, x: f64, y: f64) -> f64 {
        let sum = a + b;
        let start = 1.0 - scaled_distance_from_mean(a, b, x, y);
        // The first term and the first numerator of the continued fraction have the common factor a. `h` is the fraction without this
        // factor. The fraction is a divisor of the result, so the last line divides by `h` and by a.
        let mut h = start / (a + 1.0);
        let mut factor = 1.0;
        h = if h == 0.0 { 1e-300 } else { h };
        let mut c = h;
        let mut d = 0.0;
        let mut m = 0.0;
        for _ in 0..20000 {
            m = m + 1.0;
            let middle = a + 2.0 * m - 1.0;
            let even = m * (b - m) * x / middle;
            let numerator = even * factor * ((sum + m - 1.0) * x / middle);
            let denominator = m + even + (a + m) / (middle + 2.0) * (start + m * (1.0 + y));
            factor = a + m;
            d = denominator + numerator * d;
            d = 1.0 / (if d.abs() < 1e-300 { 1e-300 } else { d });
            c = denominator + numerator / c;
            c = if c.abs() < 1e-300 { 1e-300 } else { c };
            let change = c * d;
            h = h * change;
            if (change - 1.0).abs() < 2e-16 {
                break;
            }
        }
        incomplete_beta_prefactor(a, b, x, y) / h / a
    }

    /// Returns the regularised incomplete beta function for large a and b, by the first two terms of its uniform expansion (NIST Digital
    /// Library of Mathematical Functions, 8.18.9). The relative error is of the order of `min(a, b)^-1.5`.
    #[helper]
    fn betainc_uniform_expansion(a: f64, b: f64, x: f64, y: f64) -> f64 {
        // `mean` and `1 - mean` are a / (a + b) and b / (a + b). `z` is `x - mean` in units of the standard deviation.
        let mean = 1.0 / (1.0 + b / a);
        let deviation = (a.min(b) / (1.0 + a.min(b) / a.max(b))).sqrt();
        let distance = scaled_distance_from_mean(a, b, x, y);
        let z = distance / deviation;
        let left = a * log_ratio_minus_difference(x * (1.0 + b / a), distance / a);
        let exponent = (left + b * log_ratio_minus_difference(y * (1.0 + a / b), -distance / b)).min(0.0);
        let root = (-exponent).sqrt();
        // `skew` is `1 / (eta * sqrt(a + b)) - 1 / z`. Near z = 0, where the difference loses digits, it is computed by its power series.
        let mut skew = (1.0 - 2.0 * mean) / (3.0 * deviation);
        if z.abs() > 1e-5 * deviation {
            skew = (0.707106781186547524401 / root).copysign(z) - 1.0 / z;
        } else {
            skew = skew + z * (1.5 * skew * skew - (1.0 - 3.0 * mean * (1.0 - mean)) / (4.0 * deviation * deviation));
        }
        let correction = 0.398942280401432677940 * if z < 0.0 { -skew } else { skew };
        let tail = exponent.exp() * (0.5 * erfcx_positive(root) - correction);
        if z < 0.0 { tail } else { 1.0 - tail }
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
        // The continued fraction takes about `0.15 * sqrt(min(a, b))` iterations.
        if a.min(b) > 1e8 {
            return betainc_uniform_expansion(a, b, x, y);
        }
        if x < (a + 1.0) / (a + b + 2.0) {
            return betainc_continued_fraction(a, b, x, y);
        }
        let other = betainc_continued_fraction(b, a, y, x);
        // `1 - other` loses digits if `other` is near 1. The continued fraction in x keeps them, although it converges slowly here.
        if other > 0.9 && y > 1e-4 { betainc_continued_fraction(a, b, x, y) } else { (1.0 - other).max(0.0) }
    }

    /// Returns the regularised incomplete beta function (`scipy.special.betainc`), elementwise.
    ///
    /// The result is NaN for negative a or b, and for x outside [0, 1]. Time grows with the square root of the smaller
    /// of a and b, up to 1e8.
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
