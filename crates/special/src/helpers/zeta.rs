//! The digamma function and Hurwitz's zeta function, as scalar functions.

/// Expands to a `kernel!` block with the functions of `with_gamma`, `digamma_f64`, `hurwitz_zeta_f64` and the given functions.
macro_rules! with_zeta {
    ($($functions:tt)*) => {
        with_gamma! {
            // Coefficients of digamma(x) / (x - x0) in powers of x - 3/2, for 1 <= x <= 2. x0 is the positive zero of digamma.
            const DIGAMMA_BELOW_2_COEFFICIENTS: [f64; 23] = [0.9510558760318328, -0.4236274212814606, 0.24054248424078736, -0.14840492305388006, 0.09498872445282817, -0.06192213327556183, 0.040760833944741226, -0.02697579665686472, 0.01790724819228875, -0.011908220169786002, 0.007927024136843637, -0.0052799364178857415, 0.0035180792717028125, -0.0023455016279107115, 0.0015635739915515125, -0.0010364227247828023, 0.0006899428514219089, -0.00048606417050412354, 0.00032689316473621455, -0.00014460384609240088, 9.158816882117e-05, -0.00017837342400462423, 0.00012241591000024265];
            // Coefficients of digamma(x) in powers of x - 5/2, for 2 <= x <= 3.
            const DIGAMMA_ABOVE_2_COEFFICIENTS: [f64; 18] = [0.7031566406452432, 0.49035775610023485, -0.11810202582086307, 0.03731764146954112, -0.013073166646180622, 0.004821409821455783, -0.001830564035530446, 0.0007073881631882985, -0.0002764393102116248, 0.00010882587646435264, -4.305204667015857e-05, 1.7088819558604737e-05, -6.803241298797442e-06, 2.71139186439816e-06, -1.0640490405665057e-06, 4.239080335219694e-07, -2.068973365087423e-07, 8.352968085904161e-08];
            // Coefficients of (log(x) - 1 / (2 x) - digamma(x)) x^2 in powers of 1 / x^2, for x >= 10.
            const DIGAMMA_REMAINDER_COEFFICIENTS: [f64; 7] = [0.08333333333333333, -0.008333333333329154, 0.003968253961523215, -0.0041666625908644605, 0.007574576739417587, -0.020915506210387118, 0.06981786581923828];
            // Coefficients B(2 j) / (2 j)! of the Euler-Maclaurin formula, for j = 1, 2, ...
            const EULER_MACLAURIN_COEFFICIENTS: [f64; 12] = [
                8.333333333333333e-2, -1.388888888888889e-3, 3.306878306878307e-5, -8.267195767195767e-7, 2.0876756987868099e-8,
                -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225829e-13, 8.586062056277845e-15, -2.174868698558062e-16,
                5.509002828360230e-18, -1.3954464685812523e-19
            ];

            #[helper]
            fn digamma_positive(x: f64) -> f64 {
                if x >= 10.0 {
                    let w = 1.0 / x;
                    let square = w * w;
                    return x.ln() - (0.5 * w + square * square.polynomial(DIGAMMA_REMAINDER_COEFFICIENTS));
                }
                if x < 1.0 {
                    // Approximates digamma(1 + x) - 1 / x. The zero of digamma is split into two doubles: 1.46163214496836225 +
                    // 9.549995429965697e-17.
                    let u = (x - 0.46163214496836225) - 9.549995429965697e-17;
                    return u * (x - 0.5).polynomial(DIGAMMA_BELOW_2_COEFFICIENTS) - 1.0 / x;
                }
                if x < 2.0 {
                    return ((x - 1.46163214496836225) - 9.549995429965697e-17) * (x - 1.5).polynomial(DIGAMMA_BELOW_2_COEFFICIENTS);
                }
                let mut sum = 0.0;
                let mut z = x;
                for _ in 0..8 {
                    if z < 3.0 {
                        break;
                    }
                    z = z - 1.0;
                    sum = sum + 1.0 / z;
                }
                sum + (z - 2.5).polynomial(DIGAMMA_ABOVE_2_COEFFICIENTS)
            }

            #[helper]
            fn digamma_f64(x: f64) -> f64 {
                if x > 0.0 {
                    return digamma_positive(x);
                }
                if x == 0.0 {
                    return -1.0 / x;
                }
                if x.is_nan() || x == x.floor() {
                    return NAN;
                }
                if x > -1e-17 {
                    return -1.0 / x;
                }
                // Reflection: digamma(x) = digamma(1 + y) + pi / tan(pi y), for y = -x.
                let y = -x;
                let reflected = PI * (cos_pi(y) / sin_pi(y));
                if y < 1.0 {
                    let u = (y - 0.46163214496836225) - 9.549995429965697e-17;
                    return u.mul_add((y - 0.5).polynomial(DIGAMMA_BELOW_2_COEFFICIENTS), reflected);
                }
                digamma_positive(y) + 1.0 / y + reflected
            }

            /// Returns `q^s * zeta(s, q)` with Hurwitz's zeta function, for s > 1 and q > 0, by the Euler-Maclaurin formula.
            #[helper]
            fn scaled_hurwitz_zeta(s: f64, q: f64) -> f64 {
                let mut sum = 0.0;
                let mut k = 0.0;
                let mut power = 1.0;
                // The sum takes terms until q + k is at least 10 + s. Its terms decrease fast up to s. Above s / (2 pi), the correction
                // terms of the Euler-Maclaurin formula decrease too.
                for _ in 0..64 {
                    if q + k >= 10.0 + s {
                        break;
                    }
                    sum = sum + power;
                    // The sum of the remaining terms is at most their integral, `power * (q + k) / (s - 1)`.
                    if power * (q + k) < 1e-18 * (s - 1.0) * sum {
                        return sum;
                    }
                    k = k + 1.0;
                    power = (-s * (k / q).ln_1p()).exp();
                }
                let a = q + k;
                let mut tail = power * (a / (s - 1.0) + 0.5);
                let mut factor = s * power / a;
                let mut m = s;
                for j in 0..12 {
                    let term = EULER_MACLAURIN_COEFFICIENTS[j] * factor;
                    tail = tail + term;
                    if term.abs() < 1e-18 * (tail + sum) {
                        break;
                    }
                    factor = factor * ((m + 1.0) / a) * ((m + 2.0) / a);
                    m = m + 2.0;
                }
                sum + tail
            }

            /// Returns Hurwitz's zeta function for s > 1 and q > 0.
            #[helper]
            fn hurwitz_zeta_positive(s: f64, q: f64) -> f64 {
                if q > 1e100 {
                    // The first term of the Euler-Maclaurin formula. The other terms are smaller than the rounding error of this term.
                    return q.powf(1.0 - s) / (s - 1.0);
                }
                let power = q.powf(-s);
                if power > 1e-290 {
                    return power * scaled_hurwitz_zeta(s, q);
                }
                // `q^-s` may underflow although the result does not, so the sum is multiplied twice by the square root of `q^-s`.
                let half = q.powf(-0.5 * s);
                half * (half * scaled_hurwitz_zeta(s, q))
            }

            #[helper]
            fn hurwitz_zeta_f64(s: f64, q: f64) -> f64 {
                if s.is_nan() || q.is_nan() || s < 1.0 {
                    return NAN;
                }
                if s == 1.0 {
                    return INFINITY;
                }
                if s == INFINITY {
                    return if q == 1.0 { 1.0 } else if q > 1.0 { 0.0 } else { INFINITY };
                }
                if q > 0.0 {
                    return if q == INFINITY { 0.0 } else { hurwitz_zeta_positive(s, q) };
                }
                if q == q.floor() {
                    return INFINITY;
                }
                if s != s.floor() {
                    return NAN;
                }
                // For an integer s, the terms of the sum with q + k < 0 form another Hurwitz zeta function, up to the sign.
                // For -1/2 < q < 0, the subtraction that gives `fraction` rounds, but `rest` is exact.
                let fraction = q - q.floor();
                let rest = q.ceil() - q;
                if fraction == rest && parity_sign(s) < 0.0 {
                    // For odd s and half-integer q, each term `1 / (k + q)^s` with k + q < 0 cancels the term of equal magnitude with
                    // k + q > 0. The terms from 1 - q on remain.
                    return hurwitz_zeta_positive(s, 1.0 - q);
                }
                let left = hurwitz_zeta_positive(s, rest) - hurwitz_zeta_positive(s, 1.0 - q);
                hurwitz_zeta_positive(s, fraction) + parity_sign(s) * left
            }

            $($functions)*
        }
    };
}
