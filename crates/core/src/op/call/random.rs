//! Random: draws of a counter-based generator.

use super::Request;
use crate::dtype::DType;
use crate::op::Family;

/// Philox 4x32-10 draws (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
///
/// Block `b` of the call is `philox4x32_10(counter = first_block + b as 128-bit little-endian words (low 64 bits; high 0), key)`,
/// words `w0..w3`. Elements use blocks in order, as each [`Distribution`] says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Random {
    /// The 64-bit seed: low word is key 0, high word key 1.
    pub key: u64,
    /// Counter of the call's first block.
    pub first_block: u64,
    /// What to draw.
    pub distribution: Distribution,
}

/// How words become numbers; the same bits on every device, but for `Normal`, whose functions may differ in the last place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// `[0, 1)`: float64 is `((w_lo | w_hi << 32) >> 11) * 2^-53`, two elements a block, from (w0, w1) and (w2, w3);
    /// float32 (float16 and bfloat16 through it) is `(w >> 8) * 2^-24`, four elements a block.
    /// Then `low + u * (high - low)` in the output's dtype, without fused multiply-add, unless low = 0 and high = 1.
    Uniform {
        /// Lower end, included.
        low: f64,
        /// Upper end, excluded before rounding.
        high: f64,
    },
    /// Box-Muller, two elements a pair of uniforms: float64 one pair a block; float32 two pairs a block.
    /// `u1 = 1 - uniform(first)`, `u2 = uniform(second)`; elements `r cos(2 pi u2)`, `r sin(2 pi u2)` with `r = sqrt(-2 ln u1)`.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
    /// `low + high 64 bits of (w as 64-bit) * span`, two elements a block, from (w0, w1) and (w2, w3), low word first;
    /// `span` 0 stands for 2^64.
    Integers {
        /// Smallest value.
        low: i128,
        /// Number of values.
        span: u64,
    },
}

impl Distribution {
    /// How many elements one block of four words gives for this dtype.
    pub fn per_block(self, dtype: DType) -> usize {
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
