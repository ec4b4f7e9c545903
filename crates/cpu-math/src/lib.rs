//! Elementary functions for the loops of the CPU backend: straight-line code over float32 and float64 that LLVM vectorises at each level
//! of `cuprum_cpu_base::simd`. The crate contains scalar functions only. The interface is internal to the backend.
//!
//! Functions are generic over the float format ([`float_formats::MathFloat`], [`logarithm_and_inverse_hyperbolic::Logarithm`],
//! `power_cbrt_hypot::Power`) and the SIMD level (`simd::Isa`). They contain no branches (they use `select`) and no calls that are not
//! inlined, except for the scalar functions of `large_arguments`. The only table of the vectorised functions is `LOG_TABLE`, whose lookups
//! become gathers. Results, including powers, are within 2 ulps of the exact value wherever `tests` compares them.
//! `scripts/vmath_coefficients.py` computes the coefficients.
#![deny(unsafe_code)]

mod coefficients;
mod exponential_and_hyperbolic;
mod float_formats;
mod inverse_trigonometric;
mod large_arguments;
mod logarithm_and_inverse_hyperbolic;
mod power_cbrt_hypot;
#[cfg(test)]
mod tests;
mod trigonometric;

pub use exponential_and_hyperbolic::{cosh, exp, exp2, expm1, sinh, tanh};
pub use float_formats::{MathFloat, two_sum};
pub use inverse_trigonometric::{acos, asin, atan, atan2};
pub use large_arguments::{cos_large, is_large_argument, sin_large, tan_large};
pub use logarithm_and_inverse_hyperbolic::{Logarithm, acosh, asinh, atanh, log, log1p, log2, log10};
pub use power_cbrt_hypot::{cbrt, hypot, pow};
pub use trigonometric::{cos, sin, tan};
