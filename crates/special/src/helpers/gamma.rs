//! Scalar gamma functions, their logarithms, and `sin(pi * x)`.

/// Expands to a `kernel!` block with the functions of `with_error_function`, `sin_pi`, `cos_pi`, `gamma_f64`, `gammaln_f64` and the given
/// functions.
macro_rules! with_gamma {
    ($($functions:tt)*) => {
        with_error_function! {
            // Coefficients of sin(pi r) / r in powers of r^2, for |r| <= 1/2.
            const SIN_PI_COEFFICIENTS: [f64; 9] = [3.141592653589793, -5.167712780049969, 2.5501640398773007, -0.599264529318946, 0.08214588657312355, -0.007370430506093225, 0.00046629981702308817, -2.1903499125519212e-05, 7.697847275590284e-07];
            // Coefficients of 1 / gamma(x) in powers of x - 3/2, for 1 <= x <= 2.
            const RECIPROCAL_GAMMA_COEFFICIENTS: [f64; 16] = [1.1283791670955126, -0.0411745264452831, -0.5266544355255447, 0.17510202604393435, 0.0509668602477232, -0.04215516936852383, 0.00661289782627482, 0.002120731442277257, -0.0011107302459330316, 0.00015235762470520615, 2.5355130626661337e-05, -1.389683544823172e-05, 2.1565575284250995e-06, 5.80703265961005e-08, -9.002232748879092e-08, 1.681337201347965e-08];
            // Coefficients of the ratio of gamma(x) to Stirling's formula in powers of 1 / x, for x >= 12.
            const STIRLING_RATIO_COEFFICIENTS: [f64; 9] = [1.0, 0.0833333333333313, 0.0034722222228772623, -0.002681327241730876, -0.0002294670375010925, 0.0007838619685660333, 7.33939774687251e-05, -0.0006366727070305587, 0.00024362459581087065];
            // Coefficients in powers of u of log(gamma(1 + u)) / u for -1/4 <= u <= 1/2, and of log(gamma(2 + u)) / u for |u| <= 1/2.
            const LOG_GAMMA_NEAR_1_COEFFICIENTS: [f64; 22] = [-0.5772156649015329, 0.8224670334241132, -0.40068563438653004, 0.27058080842782745, -0.20738555102917874, 0.1695571769900444, -0.14404989669306464, 0.1255096700388184, -0.11133427166846643, 0.10009944310339063, -0.09095377234566294, 0.08335380653325407, -0.07693820687439401, 0.07144451996788898, -0.06660484602129146, 0.062234177638332173, -0.058923026668543745, 0.05785357199583783, -0.05669197015786458, 0.04720944749235919, -0.02649050346766055, 0.007027176900515606];
            const LOG_GAMMA_NEAR_2_COEFFICIENTS: [f64; 19] = [0.42278433509846713, 0.32246703342411326, -0.06735230105319814, 0.020580808427780335, -0.007385551028668096, 0.002890510331036772, -0.0011927539120033873, 0.0005096695153484373, -0.00022315475069647703, 9.945767440096764e-05, -4.492635166770342e-05, 2.0505584372896933e-05, -9.438454884054723e-06, 4.3847319318293745e-06, -2.044935323180052e-06, 9.199898075671394e-07, -4.303234692956732e-07, 2.7880013392491846e-07, -1.341570273460026e-07];
            // Coefficients of x times the remainder of Stirling's series of log(gamma(x)), in powers of 1 / x^2, for x >= 10.
            const STIRLING_REMAINDER_COEFFICIENTS: [f64; 7] = [0.08333333333333333, -0.0027777777777774917, 0.0007936507931901275, -0.0005952378165753325, 0.0008416702368289515, -0.0019054575847606506, 0.005495156732892567];

            // Coefficients of (-1 / gamma(x) - 1) / ((x - a) (x - b)) in powers of x + 5/2, for -2.8 <= x <= -2.2, where a and b are the
            // zeros of log(|gamma(x)|) between -3 and -2.
            const RECIPROCAL_GAMMA_QUOTIENT_COEFFICIENTS: [f64; 14] = [-5.435384967642253, 5.102939354996549, 1.044274553697895, -2.9809613303502913, 1.048183082525433, 0.22520431558244697, -0.25828282065021957, 0.06088926488089896, 0.00717596018649743, -0.00747152254887555, 0.0016433418490374577, 1.4964667737036972e-05, -9.377028500678697e-05, 2.2558004286607524e-05];

            /// Returns sin(pi r) for |r| <= 1/2.
            #[helper]
            fn sin_pi_near_zero(r: f64) -> f64 {
                r * (r * r).polynomial(SIN_PI_COEFFICIENTS)
            }

            /// Returns cos(pi n) for an integer n: 1 if n is even, else -1.
            #[helper]
            fn parity_sign(n: f64) -> f64 {
                if n - 2.0 * (0.5 * n).floor() == 0.0 { 1.0 } else { -1.0 }
            }

            /// Returns sin(pi x). The reduction to |r| <= 1/2 is exact.
            #[helper]
            fn sin_pi(x: f64) -> f64 {
                let n = x.round_ties_even();
                parity_sign(n) * sin_pi_near_zero(x - n)
            }

            #[helper]
            fn cos_pi(x: f64) -> f64 {
                let n = x.round_ties_even();
                let r = (x - n).abs();
                // cos(pi r) = sin(pi (1/2 - r)) is exactly 0 at r = 1/2. Near it, the difference 1/2 - r is exact.
                parity_sign(n) * sin_pi_near_zero(0.5 - r)
            }

            /// Returns gamma(x) by Stirling's formula with a correction, for 12 <= x <= 141.
            #[helper]
            fn gamma_stirling(x: f64) -> f64 {
                let scaled = x.powf(x - 0.5) * (-x).exp();
                scaled * (2.5066282746310005024158 * (1.0 / x).polynomial(STIRLING_RATIO_COEFFICIENTS))
            }

            /// Returns the product (x - count) ... (x - 2) (x - 1). The rounding errors of the multiplications are compensated.
            #[helper]
            fn product_of_preceding_numbers(x: f64, count: i64) -> f64 {
                let mut product: f64 = 1.0;
                let mut rest: f64 = 0.0;
                let mut factor = x;
                for _ in 0..count {
                    factor = factor - 1.0;
                    let next = product * factor;
                    rest = rest.mul_add(factor, product.mul_add(factor, -next));
                    product = next;
                }
                product + rest
            }

            /// Returns gamma(x) for x > 0.
            #[helper]
            fn gamma_positive(x: f64) -> f64 {
                if x > 171.7 {
                    return INFINITY;
                }
                if x > 140.0 {
                    let count = (x - 139.0) as i64;
                    return gamma_stirling(x - count as f64) * product_of_preceding_numbers(x, count);
                }
                if x > 20.0 {
                    return gamma_stirling(x);
                }
                if x < 1.0 {
                    return 1.0 / (x * (x - 0.5).polynomial(RECIPROCAL_GAMMA_COEFFICIENTS));
                }
                let count = (x - 1.0) as i64;
                let base = x - count as f64;
                product_of_preceding_numbers(x, count) / (base - 1.5).polynomial(RECIPROCAL_GAMMA_COEFFICIENTS)
            }

            #[helper]
            fn gamma_f64(x: f64) -> f64 {
                if x > 0.0 {
                    return gamma_positive(x);
                }
                if x == 0.0 {
                    return 1.0 / x;
                }
                if x.is_nan() || x == x.floor() {
                    return NAN;
                }
                let y = -x;
                let reflected = -PI / sin_pi(y);
                if y > 190.0 {
                    return reflected * 0.0;
                }
                if y > 160.0 {
                    let count = (y - 139.0) as i64;
                    return reflected / (y * gamma_stirling(y - count as f64)) / product_of_preceding_numbers(y, count);
                }
                if y < 1e-300 {
                    return 1.0 / x;
                }
                reflected / (y * gamma_positive(y))
            }

            /// Returns the remainder of Stirling's series of log(gamma(x)), for x >= 10.
            #[helper]
            fn stirling_remainder(x: f64) -> f64 {
                if x > 1e17 {
                    return 0.0;
                }
                let w = 1.0 / x;
                w * (w * w).polynomial(STIRLING_REMAINDER_COEFFICIENTS)
            }

            /// Returns log(gamma(x)) for x > 0.
            #[helper]
            fn gammaln_positive(x: f64) -> f64 {
                if x >= 10.0 {
                    if x > 3e305 {
                        return INFINITY;
                    }
                    // The constant 0.4189... is (log(2 pi) - 1) / 2.
                    let main = (x - 0.5).mul_add(x.ln() - 1.0, 0.418938533204672741780);
                    return main + stirling_remainder(x);
                }
                if x < 0.5 {
                    return x.mul_add(x.polynomial(LOG_GAMMA_NEAR_1_COEFFICIENTS), -x.ln());
                }
                if x < 0.75 {
                    let u = x - 1.0;
                    return u.mul_add(u.polynomial(LOG_GAMMA_NEAR_2_COEFFICIENTS), -x.ln());
                }
                if x < 1.5 {
                    let u = x - 1.0;
                    return u.mul_add(u.polynomial(LOG_GAMMA_NEAR_1_COEFFICIENTS), 0.0); // not -0.0 for x = 1
                }
                let mut product: f64 = 1.0;
                let mut z = x;
                for _ in 0..8 {
                    if z < 2.5 {
                        break;
                    }
                    z = z - 1.0;
                    product = product * z;
                }
                let u = z - 2.0;
                let near = u * u.polynomial(LOG_GAMMA_NEAR_2_COEFFICIENTS);
                if x < 2.5 { near } else { product.ln() + near }
            }

            #[helper]
            fn gammaln_f64(x: f64) -> f64 {
                if x > 0.0 {
                    return gammaln_positive(x);
                }
                if x.is_nan() {
                    return x;
                }
                if x == -INFINITY {
                    return -INFINITY;
                }
                if x == x.floor() {
                    return INFINITY;
                }
                if x > -2.8 && x < -2.2 {
                    // The reflection formula would lose digits near the zeros of the function. Each zero is represented by the sum of two
                    // doubles.
                    let product = ((x + 2.4570247382208006) + 3.7075610815513266e-17) * ((x + 2.7476826467274127) - 9.055340329338315e-17);
                    return -(product * (x + 2.5).polynomial(RECIPROCAL_GAMMA_QUOTIENT_COEFFICIENTS)).ln_1p();
                }
                let y = -x;
                if y < 1e-17 {
                    return -y.ln();
                }
                (PI / (y * sin_pi(y)).abs()).ln() - gammaln_positive(y)
            }

            $($functions)*
        }
    };
}
