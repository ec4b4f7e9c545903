//! Elementary functions for loops: straight-line code over float32 and float64 that LLVM vectorises at each level of `simd`.
//!
//! A function is generic over the format ([`real::Real`], [`logarithm::Logarithm`], [`power::Power`]) and over what the level
//! has (`simd::Isa`). Rules for code here: no branches (`select`), no calls that are not inlined (closures are not), no table
//! but `LOG_TABLE`, whose lookups become gathers. Every result is within 2 ulps of the exact one, powers too, as far as `tests` looks.
//! Coefficients are made by `scripts/vmath_coefficients.py`.

mod coefficients;
mod exponential;
mod inverse;
mod large;
mod logarithm;
mod power;
mod real;
#[cfg(test)]
mod tests;
mod trigonometric;

pub(crate) use exponential::{cosh, exp, exp2, expm1, sinh, tanh};
pub(crate) use inverse::{acos, asin, atan, atan2};
pub(crate) use large::{cos_large, is_large, sin_large, tan_large};
pub(crate) use logarithm::{Logarithm, acosh, asinh, atanh, log, log1p, log2, log10};
pub(crate) use power::{cbrt, hypot, pow};
pub(crate) use real::Real;
pub(crate) use trigonometric::{cos, sin, tan};
