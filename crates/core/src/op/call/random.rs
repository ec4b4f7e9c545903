//! Random: draws of a counter-based generator.

use super::request::Request;
use crate::dtype::DType;
use crate::op::Family;

/// Draws from Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
///
/// A block is four 32-bit words `w0..w3`. Block `b` of the call is `philox4x32_10(counter, key)`. The counter is a 128-bit number of four
/// words, least significant first. Its low 64 bits are `first_block + b`, and its high 64 bits are 0. Elements in C order use consecutive
/// blocks, as [`Distribution`] defines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Random {
    /// The 64-bit seed. Its low 32 bits are the first word of the Philox key, and its high 32 bits the second word.
    pub key: u64,
    /// Counter of the first block of four words that the call draws.
    pub first_block: u64,
    /// The distribution of the numbers.
    pub distribution: Distribution,
}

/// The mapping from random words to numbers. Results are bit-identical on all devices, except those of `Normal`, whose math functions may
/// differ in the last bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Uniform numbers `low + u * (high - low)`, for uniform `u` in `[0, 1)`.
    ///
    /// In float64, `u` is `((w_lo | w_hi << 32) >> 11) * 2^-53`: two elements per block, from (w0, w1) and (w2, w3). In float32, `u` is
    /// `(w >> 8) * 2^-24`: four elements per block. The scaling has the precision of `u`, uses no fused multiply-add, and is omitted for
    /// low = 0 and high = 1. Elements of float16 and bfloat16 are scaled in float32 and converted.
    Uniform {
        /// Lower end, included.
        low: f64,
        /// Upper end, excluded before rounding.
        high: f64,
    },
    /// Normal numbers by the Box-Muller transform. A pair of numbers `u` of [`Distribution::Uniform`] gives two elements. A block has one
    /// pair in float64, and two pairs in float32.
    ///
    /// With `u1 = 1 - first`, `u2 = second` and `r = sqrt(-2 ln u1)`, the standard normal numbers are `r cos(2 pi u2)` and
    /// `r sin(2 pi u2)`. They are multiplied by `std`, and `mean` is added.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
    /// Integers `low` plus the high 64 bits of the product `w * span`, where `w` is a random 64-bit number.
    ///
    /// A block has two numbers `w`, from (w0, w1) and (w2, w3), low word first. A `span` of 0 means 2^64.
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
