//! Random: draws of a counter-based generator.

use super::request::Request;
use crate::dtype::DType;
use crate::op::Family;

/// Draws from Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
///
/// A block is four 32-bit words `w0..w3`. Block `b` of the call is `philox4x32_10(counter, key)`. The low 64 bits of the counter are
/// `first_block + b`, the high 64 bits are 0, both as little-endian words. Each [`Distribution`] defines how elements use the blocks, in
/// order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Random {
    /// The 64-bit seed: low word is key 0, high word key 1.
    pub key: u64,
    /// Counter of the first block of four words that the call draws.
    pub first_block: u64,
    /// The distribution of the numbers.
    pub distribution: Distribution,
}

/// The mapping from random words to numbers. Results are bit-identical on all devices, except for the functions of `Normal`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// `[0, 1)`, scaled to `low + u * (high - low)`.
    ///
    /// float64 is `((w_lo | w_hi << 32) >> 11) * 2^-53`, two elements per block, from (w0, w1) and (w2, w3). float32 is
    /// `(w >> 8) * 2^-24`, four elements per block; float16 and bfloat16 are converted from it. The scaling is in the output's dtype,
    /// without fused multiply-add, and is omitted for low = 0 and high = 1.
    Uniform {
        /// Lower end, included.
        low: f64,
        /// Upper end, excluded before rounding.
        high: f64,
    },
    /// Box-Muller, two elements per pair of uniforms: one pair per block in float64, two in float32.
    ///
    /// `u1 = 1 - uniform(first)` and `u2 = uniform(second)`. The elements are `r cos(2 pi u2)` and `r sin(2 pi u2)` with
    /// `r = sqrt(-2 ln u1)`.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
    /// `low` plus the high 64 bits of `w * span`, with 64-bit words `w`.
    ///
    /// A block has two elements, from (w0, w1) and (w2, w3), low word first. A `span` of 0 means 2^64.
    Integers {
        /// Smallest value.
        low: i128,
        /// Number of distinct values.
        span: u64,
    },
}

impl Distribution {
    /// Returns the number of random elements of `dtype` that one block of four random words gives.
    pub fn elements_per_block(self, dtype: DType) -> usize {
        match self {
            Distribution::Integers { .. } => 2,
            _ if dtype == DType::F64 => 2,
            _ => 4,
        }
    }
}

impl Request for Random {
    fn family(&self) -> Family {
        Family::Random
    }
}
