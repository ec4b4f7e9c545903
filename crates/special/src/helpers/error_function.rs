//! Scalar error functions: erf, erfc, erfcx and the normal distribution function.

/// Expands to a `kernel!` block with `log1p_minus_x`, `exp_of_sum_times_factor`, `erf_f64`, `erfc_f64`, `erfcx_f64`, `ndtr_f64` and the
/// given functions.
macro_rules! with_error_function {
    ($($functions:tt)*) => {
        with_logarithm! {
            // Coefficients of (erf(x) - x) / x in powers of x^2, for x^2 <= 1.
            const ERF_COEFFICIENTS: [f64; 14] = [0.1283791670955126, -0.37612638903183754, 0.1128379167095512, -0.026866170645129854, 0.005223977625423455, -0.0008548327021945428, 0.00012055332903350668, -1.4925647581008593e-05, 1.6462045711013026e-06, -1.6364645854816389e-07, 1.479243542696247e-08, -1.2164764337224506e-09, 8.709755232851789e-11, -4.2320376764874594e-12];
            // Coefficients of (1 + 2 x) erfcx(x) in powers of t = (x - 4) / (x + 4), for x >= 0.
            const ERFCX_COEFFICIENTS: [f64; 25] = [1.2329951186255526, -0.1396211168405623, 0.015379652102619604, 0.06809705425466908, -0.10103906603630056, 0.0937328349990944, -0.06633036581218697, 0.03716751552655567, -0.016197734059799265, 0.005031970067657489, -0.0007577732613730956, -0.00019925714661091188, 0.0001506214900124047, -2.4397746422436416e-05, -1.1221287012353486e-05, 5.706604414895734e-06, 2.919733377963012e-07, -8.210939042560568e-07, 7.746992727017941e-08, 1.0633855618594884e-07, -2.05606492756992e-08, -1.234686604382353e-08, 3.1695881915648173e-09, 9.311744978232572e-10, -2.659599690242689e-10];

            // Coefficients of erfcx(x) in powers of x, for 0 <= x <= 1/8.
            const ERFCX_NEAR_0_COEFFICIENTS: [f64; 10] = [1.0, -1.1283791670954944, 0.999999999995197, -0.7522527775697734, 0.4999999741780385, -0.3009003344205369, 0.16665239899027715, -0.08580872727717259, 0.04052954340980592, -0.014601382609830254];

            /// Returns `factor * exp(exponent + rest)` for a small `rest`. Tiny results become subnormal instead of zero.
            #[helper]
            fn exp_of_sum_times_factor(exponent: f64, rest: f64, factor: f64) -> f64 {
                if exponent.abs() < 690.0 {
                    let e = exponent.exp();
                    return e.mul_add(rest, e) * factor;
                }
                let half = (0.5 * exponent).exp();
                if half == INFINITY {
                    return half * factor;
                }
                half * factor * half.mul_add(rest, half)
            }

            /// Returns exp(x^2) erfc(x) for x >= 0.
            #[helper]
            fn erfcx_positive(x: f64) -> f64 {
                if x > 1e8 {
                    return 0.564189583547756286948 / x;
                }
                if x < 0.125 {
                    return x.polynomial(ERFCX_NEAR_0_COEFFICIENTS);
                }
                let t = (x - 4.0) / (x + 4.0);
                t.polynomial(ERFCX_COEFFICIENTS) / x.mul_add(2.0, 1.0)
            }

            #[helper]
            fn erfcx_f64(x: f64) -> f64 {
                let scaled = erfcx_positive(x.abs());
                if x >= 0.0 || x.is_nan() {
                    return scaled;
                }
                if x < -30.0 {
                    return INFINITY;
                }
                let square = x * x;
                exp_of_sum_times_factor(square, x.mul_add(x, -square), 2.0) - scaled
            }

            /// Returns erfc(x) for x >= 1/2.
            #[helper]
            fn erfc_tail(x: f64) -> f64 {
                if x > 28.0 {
                    return 0.0;
                }
                let square = x * x;
                exp_of_sum_times_factor(-square, -x.mul_add(x, -square), erfcx_positive(x))
            }

            #[helper]
            fn erf_f64(x: f64) -> f64 {
                if x.abs() < 1.0 {
                    return x.mul_add((x * x).polynomial(ERF_COEFFICIENTS), x);
                }
                if x.is_nan() {
                    return x;
                }
                (1.0 - erfc_tail(x.abs())).copysign(x)
            }

            #[helper]
            fn erfc_f64(x: f64) -> f64 {
                if x > 0.5 {
                    return erfc_tail(x);
                }
                1.0 - erf_f64(x)
            }

            /// Returns the normal distribution function at x.
            #[helper]
            fn ndtr_f64(x: f64) -> f64 {
                let y = x * FRAC_1_SQRT_2;
                if y.abs() < 0.5 {
                    return erf_f64(y).mul_add(0.5, 0.5);
                }
                if x.is_nan() {
                    return x;
                }
                if x > 0.0 {
                    return 1.0 - 0.5 * erfc_tail(y);
                }
                if x < -40.0 {
                    return 0.0;
                }
                // Computes x^2 / 2 from the exact square of x. The square of y = x / sqrt(2) would include the rounding error of y.
                let square = x * x;
                exp_of_sum_times_factor(-0.5 * square, -0.5 * x.mul_add(x, -square), 0.5 * erfcx_positive(-y))
            }

            $($functions)*
        }
    };
}
