//! The beta function of positive numbers, as scalar functions.

/// Expands to a `kernel!` block with the functions of `with_zeta`, `beta_of_ordered_positive`, `betaln_of_ordered_positive` and the given
/// functions.
macro_rules! with_beta {
    ($($functions:tt)*) => {
        with_zeta! {
            /// Returns `log(gamma(b) / gamma(a + b))` for finite b >= 10 and a + b >= 10.
            #[helper]
            fn log_gamma_quotient(a: f64, b: f64) -> f64 {
                let sum = a + b;
                let main = (b - 0.5) * (a / b).ln_1p() + a * (sum.ln() - 1.0);
                (stirling_remainder(b) - stirling_remainder(sum)) - main
            }

            /// Returns `log(beta(a, b))` for positive numbers with a <= b.
            #[helper]
            fn betaln_of_ordered_positive(a: f64, b: f64) -> f64 {
                if b == INFINITY {
                    return if a == INFINITY { NAN } else { -INFINITY };
                }
                if b < 5.0 {
                    return gammaln_positive(a) + gammaln_positive(b) - gammaln_positive(a + b);
                }
                if a < 10.0 {
                    // Uses the identity `beta(a, b) = beta(a, b + 1) * (a + b) / b`.
                    let mut shifted = b;
                    let mut product = 1.0;
                    for _ in 0..5 {
                        if shifted >= 10.0 {
                            break;
                        }
                        product = product * ((a + shifted) / shifted);
                        shifted = shifted + 1.0;
                    }
                    return gammaln_positive(a) + log_gamma_quotient(a, shifted) + product.ln();
                }
                // Adds log(sqrt(2 pi)) and the remainders of Stirling's series.
                let quotient = a / b;
                let main = (a - 0.5) * (quotient / (1.0 + quotient)).ln() - b * quotient.ln_1p() - 0.5 * b.ln();
                let rest = stirling_remainder(a) + stirling_remainder(b) - stirling_remainder(a + b);
                main + (0.918938533204672741780 + rest)
            }

            /// Returns `beta(a, b)` for positive numbers with a <= b.
            #[helper]
            fn beta_of_ordered_positive(a: f64, b: f64) -> f64 {
                if b == INFINITY {
                    return if a == INFINITY { NAN } else { 0.0 };
                }
                if b < 10.0 {
                    if b < 1e-10 {
                        return 1.0 / a + 1.0 / b;
                    }
                    return gamma_positive(a) * (gamma_positive(b) / gamma_positive(a + b));
                }
                if a < 10.0 {
                    return gamma_positive(a) * log_gamma_quotient(a, b).exp();
                }
                betaln_of_ordered_positive(a, b).exp()
            }

            $($functions)*
        }
    };
}
