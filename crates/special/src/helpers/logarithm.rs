//! log(1 + x) - x.

/// Expands to a `kernel!` block with `log1p_minus_x`, `log_ratio_minus_difference` and the given functions.
macro_rules! with_logarithm {
    ($($functions:tt)*) => {
        ::cuprum_macros::kernel! {
            // Coefficients of (atanh(r) - r) / r^3 in powers of r^2, for r^2 <= 1/8.
            const ATANH_COEFFICIENTS: [f64; 12] = [0.3333333333333333, 0.20000000000000032, 0.14285714285702306, 0.11111111112887173, 0.09090908955116454, 0.07692313804226865, 0.06666492824916785, 0.058855928294456294, 0.05223170502258635, 0.05083793981505181, 0.027455317436075776, 0.08295186722831549];

            /// Returns `log(1 + x) - x`, near 0 by log(1 + x) = 2 atanh(x / (2 + x)).
            #[helper]
            fn log1p_minus_x(x: f64) -> f64 {
                if x < -0.5 || x > 1.0 {
                    return x.ln_1p() - x;
                }
                let r = x / (2.0 + x);
                let square = r * r;
                r * (2.0 * square * square.polynomial(ATANH_COEFFICIENTS) - x)
            }

            /// Returns `log(ratio) - difference` for `difference = ratio - 1`. Both are arguments, because the ratio is more accurate near
            /// 0, and the difference is more accurate if the ratio is near 1.
            #[helper]
            fn log_ratio_minus_difference(ratio: f64, difference: f64) -> f64 {
                if ratio < 0.5 { ratio.ln() - difference } else { log1p_minus_x(difference) }
            }

            $($functions)*
        }
    };
}
