//! The regularised incomplete gamma functions P and Q as scalar functions, and their inverses.

/// Expands to a `kernel!` block with the functions of `with_gamma`, `gammainc_f64`, `gammaincc_f64`, their inverses and the given
/// functions.
macro_rules! with_incomplete_gamma {
    ($($functions:tt)*) => {
        with_gamma! {
            // Coefficients of Temme's expansion. Row i belongs to (1 / a)^i, column j to eta^j.
            const TEMME_COEFFICIENTS: [[f64; 21]; 8] = [[-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073, 0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06, -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11, -5.830772132550426e-11, 2.4361948020667415e-11, -5.0276692801141755e-12, 1.1004392031956135e-13, 3.371763262400985e-13], [-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596, 0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06, -1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08, 1.1951628599778148e-08, -1.7543241719747647e-11, -1.0091543710600413e-09, 4.162792991842583e-10, -8.56390702649298e-11, 6.067215101604758e-14, 7.1624989648114856e-12, -2.933186643771437e-12, 5.996696365683689e-13], [0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06, -0.0001073665322636516, 5.2923448829120125e-05, -1.2760635188618728e-05, 3.423578734096138e-08, 1.3721957309062934e-06, -6.298992138380055e-07, 1.4280614206064242e-07, -2.0477098421990866e-10, -1.409252991086752e-08, 6.228974084922022e-09, -1.3670488396617114e-09, 9.428356159014678e-13, 1.2872252400089318e-10, -5.5645956134363323e-11, 1.197593554636698e-11, -4.1689782251838634e-15, -1.0940640427884595e-12], [0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557, 0.00026772063206283885, -7.561801671883977e-05, -2.396505113867297e-07, 1.1082654115347302e-05, -5.6749528269915965e-06, 1.4230900732435883e-06, -2.7861080291528143e-11, -1.6958404091930278e-07, 8.099464905388083e-08, -1.9111168485973655e-08, 2.3928620439808118e-12, 2.0620131815488797e-09, -9.460496661855133e-10, 2.1541049775774907e-10, -1.388823336813903e-14, -2.1894761681963938e-11, 9.790998951171684e-12, -2.178219188018096e-12], [-0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902, -1.4638452578843418e-06, 6.641498215465122e-05, -3.968365047179435e-05, 1.1375726970678419e-05, 2.507497226237533e-10, -1.6954149536558305e-06, 8.907507532205309e-07, -2.292934834000805e-07, 2.956794137544049e-11, 2.8865829742708783e-08, -1.4189739437803219e-08, 3.4463580499464896e-09, -2.3024517174528067e-13, -3.9409233028046403e-10, 1.86023389685045e-10, -4.356323005056618e-11, 1.278600101629623e-15, 4.67927502665792e-12], [-0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392, -0.00019932570516188847, 6.797780477937208e-05, 1.419062920643967e-07, -1.3594048189768693e-05, 8.018470256334202e-06, -2.291481176508095e-06, -3.252473551298454e-10, 3.4652846491085265e-07, -1.8447187191171344e-07, 4.8240967037894184e-08, -1.7989466721743514e-14, -6.306194500013523e-09, 3.162417628774568e-09, -7.840924253697429e-10, 5.192679165254041e-15, 9.358944242306784e-11, -4.513426216163278e-11, 1.0799129993116828e-11], [0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045, 7.902353232660328e-07, -8.153969367561969e-05, 5.61168275310625e-05, -1.8329116582843375e-05, -3.0796134506033047e-09, 3.465155368803609e-06, -2.0291327396058603e-06, 5.788792863149004e-07, 2.338630673826657e-13, -8.828600746330484e-08, 4.7435958880408125e-08, -1.2545415020710383e-08, 8.649648858010293e-14, 1.6846058979264062e-09, -8.575492823577594e-10, 2.1598224929232125e-10, -7.613230520476153e-16, -2.6639822008536144e-11], [0.00034436760689237765, 5.171790908260592e-05, -0.00033493161081142234, 0.0002812695154763237, -0.00010976582244684731, -1.2741009095484485e-07, 2.7744451511563645e-05, -1.8263488805711332e-05, 5.7876949497350525e-06, 4.93875893393627e-10, -1.0595367014026043e-06, 6.166714376110408e-07, -1.7562973359060463e-07, -1.297447328701544e-12, 2.695423606288966e-08, -1.4578352908731272e-08, 3.887645959386175e-09, -3.881002251019412e-17, -5.327994173877286e-10, 2.7437977643314844e-10, -6.995796092070568e-11]];

            /// Returns x^a exp(-x) / gamma(a + 1).
            #[helper]
            fn incomplete_gamma_prefactor(a: f64, x: f64) -> f64 {
                if a < 10.0 {
                    if x > 2000.0 {
                        return 0.0;
                    }
                    if x > 700.0 {
                        let half = x.powf(0.5 * a) * (-0.5 * x).exp();
                        return half / gamma_positive(a + 1.0) * half;
                    }
                    return x.powf(a) * (-x).exp() / gamma_positive(a + 1.0);
                }
                let exponent = a * log_ratio_minus_difference(x / a, (x - a) / a) - stirling_remainder(a);
                exponent.exp() * 0.398942280401432677940 / a.sqrt()
            }

            /// Returns the logarithm of x^a exp(-x) / gamma(a + 1).
            #[helper]
            fn log_gammainc_series_prefactor(a: f64, x: f64) -> f64 {
                if a < 10.0 {
                    return a * x.ln() - x - gammaln_positive(a + 1.0);
                }
                a * log_ratio_minus_difference(x / a, (x - a) / a) - stirling_remainder(a) - 0.5 * a.ln() - 0.918938533204672741780
            }

            /// Returns the power series of P(a, x), without the factor `incomplete_gamma_prefactor(a, x)`.
            #[helper]
            fn gammainc_series_sum(a: f64, x: f64) -> f64 {
                let mut sum: f64 = 1.0;
                let mut term: f64 = 1.0;
                let mut n = a;
                for _ in 0..1000 {
                    n = n + 1.0;
                    term = term * (x / n);
                    sum = sum + term;
                    if term < 1e-17 * sum {
                        break;
                    }
                }
                sum
            }

            /// Returns P(a, x) by its power series.
            #[helper]
            fn gammainc_series(a: f64, x: f64) -> f64 {
                incomplete_gamma_prefactor(a, x) * gammainc_series_sum(a, x)
            }

            /// Returns the continued fraction of Q(a, x) (NIST Digital Library of Mathematical Functions, 8.9.2) by Lentz's method, without
            /// the factor `a * incomplete_gamma_prefactor(a, x)`.
            #[helper]
            fn gammaincc_scaled_continued_fraction(a: f64, x: f64) -> f64 {
                let mut b = x + 1.0 - a;
                let mut c = 1e300;
                let mut d = 1.0 / b;
                let mut h = d;
                let mut i = 0.0;
                for _ in 0..1000 {
                    i = i + 1.0;
                    let factor = i * (a - i);
                    b = b + 2.0;
                    d = 1.0 / factor.mul_add(d, b);
                    c = b + factor / c;
                    let change = c * d;
                    h = h * change;
                    if (change - 1.0).abs() < 2e-16 {
                        break;
                    }
                }
                h
            }

            /// Returns Q(a, x) by its continued fraction.
            #[helper]
            fn gammaincc_continued_fraction(a: f64, x: f64) -> f64 {
                a * incomplete_gamma_prefactor(a, x) * gammaincc_scaled_continued_fraction(a, x)
            }

            /// Returns Temme's uniform expansion of Q for mu >= 0 and of P for mu < 0, without the factor `exp(a * log1p_minus_x(mu))`, for
            /// a >= 64 and |mu| <= 0.4, where mu = (x - a) / a.
            #[helper]
            fn gammainc_scaled_uniform_expansion(a: f64, mu: f64) -> f64 {
                let half = -log1p_minus_x(mu);
                let eta = (2.0 * half).sqrt().copysign(mu);
                let w = 1.0 / a;
                let mut sum = 0.0;
                for k in 0..8 {
                    sum = sum * w + eta.polynomial(TEMME_COEFFICIENTS[7 - k]);
                }
                let rest = sum * 0.398942280401432677940 / a.sqrt();
                let y = (a * half).sqrt();
                0.5 * erfcx_positive(y) + if mu < 0.0 { -rest } else { rest }
            }

            /// Returns Q for mu >= 0 and P for mu < 0, by Temme's uniform expansion.
            #[helper]
            fn gammainc_uniform_expansion(a: f64, mu: f64) -> f64 {
                (a * log1p_minus_x(mu)).exp() * gammainc_scaled_uniform_expansion(a, mu)
            }

            /// Returns P(a, x) (if `lower`) or Q(a, x), divided by `a * incomplete_gamma_prefactor(a, x)`. The quotient does not underflow
            /// if P or Q is near 0.
            #[helper]
            fn gammainc_over_prefactor(a: f64, x: f64, lower: bool) -> f64 {
                let mu = (x - a) / a;
                if a >= 64.0 && mu.abs() <= 0.4 && lower == (mu < 0.0) {
                    return gammainc_scaled_uniform_expansion(a, mu) * stirling_remainder(a).exp() * (2.5066282746310005024158 / a.sqrt());
                }
                if lower { gammainc_series_sum(a, x) / a } else { gammaincc_scaled_continued_fraction(a, x) }
            }

            /// Returns Q(a, x) for a <= 1 and x <= 1.1, where P may be near 1.
            #[helper]
            fn gammaincc_for_small_arguments(a: f64, x: f64) -> f64 {
                let log_gamma = if a <= 0.5 { a * a.polynomial(LOG_GAMMA_NEAR_1_COEFFICIENTS) } else { gammaln_positive(1.0 + a) };
                let power = a * x.ln() - log_gamma;
                let mut sum = 0.0;
                let mut term = 1.0;
                let mut n = 0.0;
                for _ in 0..60 {
                    n = n + 1.0;
                    term = -term * x / n;
                    let part = term / (a + n);
                    sum = sum + part;
                    if part.abs() < 1e-18 * sum.abs() {
                        break;
                    }
                }
                -power.exp_m1() - power.exp() * (a * sum)
            }

            /// Returns P(a, x) if `lower`, otherwise Q(a, x).
            #[helper]
            fn gammainc_or_gammaincc(a: f64, x: f64, lower: bool) -> f64 {
                if !(a >= 0.0 && x >= 0.0) {
                    return NAN;
                }
                if a == 0.0 {
                    return if x == 0.0 { NAN } else if lower { 1.0 } else { 0.0 };
                }
                if a == INFINITY {
                    return if x == INFINITY { NAN } else if lower { 0.0 } else { 1.0 };
                }
                if x == 0.0 {
                    return if lower { 0.0 } else { 1.0 };
                }
                if x == INFINITY {
                    return if lower { 1.0 } else { 0.0 };
                }
                let mu = (x - a) / a;
                if a >= 64.0 && mu.abs() <= 0.4 {
                    let small = gammainc_uniform_expansion(a, mu);
                    return if lower == (mu < 0.0) { small } else { 1.0 - small };
                }
                if a <= 1.0 && x <= 1.1 {
                    if lower {
                        return gammainc_series(a, x);
                    }
                    return gammaincc_for_small_arguments(a, x);
                }
                if x <= a + 1.0 {
                    let series = gammainc_series(a, x);
                    return if lower { series } else { 1.0 - series };
                }
                let fraction = gammaincc_continued_fraction(a, x);
                if lower { 1.0 - fraction } else { fraction }
            }

            #[helper]
            fn gammainc_f64(a: f64, x: f64) -> f64 {
                gammainc_or_gammaincc(a, x, true)
            }

            #[helper]
            fn gammaincc_f64(a: f64, x: f64) -> f64 {
                gammainc_or_gammaincc(a, x, false)
            }

            /// Returns the starting value of [`invert_gammainc`]: an approximate x with P(a, x) = p and Q(a, x) = q = 1 - p.
            #[helper]
            fn invert_gammainc_start_value(a: f64, p: f64, q: f64) -> f64 {
                let log_p = if q < p { (-q).ln_1p() } else { p.ln() };
                let small = ((log_p + gammaln_positive(a + 1.0)) / a).exp();
                if a < 0.7 {
                    return small;
                }
                // Wilson and Hilferty's approximation (1931) of the quantile of a gamma distribution. The normal quantile `z` in it is
                // approximated by Abramowitz and Stegun, 26.2.22.
                let tail = if p < q { p } else { q };
                let t = (-2.0 * tail.ln()).sqrt();
                let size = t - (2.30753 + 0.27061 * t) / (1.0 + t * (0.99229 + 0.04481 * t));
                let z = if p < q { -size } else { size };
                let root = 1.0 - 1.0 / (9.0 * a) + z / (3.0 * a.sqrt());
                if root < 0.3 { small } else { a * root * root * root }
            }

            /// Returns the x with P(a, x) = p and Q(a, x) = q, by Newton's method. log P is concave in log x, and log Q is concave in x, so
            /// the iterates approach the solution from one side.
            #[helper]
            fn invert_gammainc(a: f64, p: f64, q: f64) -> f64 {
                if !(a >= 0.0 && p >= 0.0 && q >= 0.0) {
                    return NAN;
                }
                if p == 0.0 {
                    return 0.0;
                }
                if q == 0.0 {
                    return INFINITY;
                }
                if a == 0.0 || a == INFINITY {
                    return NAN;
                }
                let mut x = invert_gammainc_start_value(a, p, q);
                let lower = p <= 0.5 || a < 0.7 && p < 0.95;
                let wanted = if lower { p } else { q };
                // Near the smallest normal number, P and Q lose digits, so Newton's method uses their logarithms there. P with a small `a`
                // is an exception. It is about x^a, so `x = exp(log(P) / a)` would enlarge the rounding error of the logarithm.
                let by_logarithms = wanted < 1e-290 && (a >= 10.0 || !lower);
                for _ in 0..60 {
                    if !(x > 1e-308) {
                        break;
                    }
                    // Newton's method uses the derivative `dP/dx = a * incomplete_gamma_prefactor(a, x) / x`.
                    let mut step = 0.0;
                    let mut value = 1.0;
                    if by_logarithms {
                        let ratio = gammainc_over_prefactor(a, x, lower);
                        step = (log_gammainc_series_prefactor(a, x) + (a * ratio).ln() - wanted.ln()) * ratio;
                    } else {
                        value = gammainc_or_gammaincc(a, x, lower);
                        step = (value / wanted).ln() * (value / (a * incomplete_gamma_prefactor(a, x)));
                    }
                    let mut next = x;
                    if lower {
                        next = x * (-step).max(-40.0).min(40.0).exp();
                    } else {
                        // If x is far too large, Q underflows to 0. Newton's step is then replaced by a halving of x.
                        next = if value == 0.0 { 0.5 * x } else { x + (x * step).max(-0.9 * x).min(10.0 * x + 10.0) };
                    }
                    let change = (next - x).abs();
                    if next.is_finite() {
                        x = next;
                    }
                    if change <= 4e-16 * x || !next.is_finite() {
                        break;
                    }
                }
                x
            }

            #[helper]
            fn gammaincinv_f64(a: f64, p: f64) -> f64 {
                invert_gammainc(a, p, 1.0 - p)
            }

            #[helper]
            fn gammainccinv_f64(a: f64, q: f64) -> f64 {
                invert_gammainc(a, 1.0 - q, q)
            }

            $($functions)*
        }
    };
}
