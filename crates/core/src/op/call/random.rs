//! Requests of the kernel family `Random`: numbers drawn from a counter-based random number generator.

use super::kernel_request::KernelRequest;
use crate::dtype::DType;
use crate::op::Family;
use crate::rounding::{round_to_dtype, to_bf16, to_f16};
use crate::{bf16, f16};

/// Draws from Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
///
/// A Philox block is four 32-bit words `w0..w3`. Block `b` of the call is `philox4x32_10(counter, key)`. The first two words of the
/// counter are `first_block + b`, the low word first. The third is 0, or the number of an attempt for [`Distribution::Sampled`]. The
/// fourth is `stream`. Each [`Distribution`] defines how elements use the blocks, in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Random {
    /// The 64-bit seed. Its low 32 bits are the first word of the Philox key, and its high 32 bits the second word.
    pub key: u64,
    /// Counter of the first Philox block that the call uses.
    pub first_block: u64,
    /// Number of the random stream, which is the fourth word of the Philox counter. Each jump of a generator increases the number by 1.
    pub stream: u32,
    /// The distribution of the random numbers.
    pub distribution: Distribution,
}

/// The mapping from random words to numbers.
///
/// The numbers are bit-identical on all devices, except those of [`Distribution::Normal`]: `ln`, `sin` and `cos` may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Uniform numbers `u` in `[0, 1)`, scaled to `[low, high)`.
    ///
    /// In float64, `u` is `((w_lo | w_hi << 32) >> 11) * 2^-53`. A Philox block gives two elements, from (w0, w1) and (w2, w3).
    ///
    /// In the other dtypes, `u` is `(w >> (32 - d)) * 2^-d`, where `d` is the number of significand bits of the dtype: 24 for float32, 11
    /// for float16, 8 for bfloat16. A Philox block gives four elements.
    Uniform(UniformScaling),
    /// Normal numbers by the Box-Muller transform, which computes two elements from a pair of uniform numbers (first, second).
    ///
    /// A Philox block gives one pair in float64, and two pairs in the other dtypes. With `u1 = 1 - first`, `u2 = second` and
    /// `r = sqrt(-2 ln u1)`, the standard normal numbers are `r cos(2 pi u2)` and `r sin(2 pi u2)`. They are multiplied by `std`, and
    /// `mean` is added.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
    /// Integers `low` plus the whole part of `w * span`, where `w` is a random number in [0, 1). A `span` of 0 means 2^64.
    ///
    /// A Philox block gives the first 64 binary digits of two numbers `w`, from (w0, w1) and (w2, w3), low word first. For spans up to
    /// 2^32, the numbers have no further digits. For larger spans, the same words of block `b +` [`Distribution::LOW_HALF_BLOCK_OFFSET`]
    /// give 64 further digits, so that the probabilities of all integers agree to a relative 2^-64.
    Integers {
        /// Smallest value.
        low: i128,
        /// Number of distinct values.
        span: u64,
    },
    /// Numbers of a distribution that needs a varying number of random words per element. Each attempt to draw an element uses one Philox
    /// block.
    ///
    /// The call has no inputs, or one input of float64 in C order for each parameter, with the shape of the output. The numbers are
    /// computed in float64 by the same operations on every device, and then converted to the dtype.
    Sampled {
        /// The distribution.
        sampler: Sampler,
        /// The parameters of the distribution, for a call without inputs.
        parameters: [f64; 3],
    },
}

/// A distribution of [`Distribution::Sampled`]. Each variant lists the parameters in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampler {
    /// Gamma distribution of scale 1. Parameter: the shape.
    StandardGamma,
    /// Poisson distribution. Parameter: the mean.
    Poisson,
    /// Binomial distribution. Parameters: the number of trials, the probability of success.
    Binomial,
    /// Hypergeometric distribution. Parameters: the number of good items, the number of bad items, the size of the sample.
    Hypergeometric,
    /// Geometric distribution. Parameter: the probability of success.
    Geometric,
    /// Logarithmic series distribution. Parameter: p.
    LogSeries,
    /// Zipf distribution. Parameter: the exponent.
    Zipf,
    /// Tangent of half an angle that has the von Mises distribution of mean 0. Parameter: the concentration kappa.
    TangentOfHalfVonMisesAngle,
}

impl Sampler {
    /// All distributions.
    pub const ALL: [Sampler; 8] = [
        Sampler::StandardGamma,
        Sampler::Poisson,
        Sampler::Binomial,
        Sampler::Hypergeometric,
        Sampler::Geometric,
        Sampler::LogSeries,
        Sampler::Zipf,
        Sampler::TangentOfHalfVonMisesAngle,
    ];

    /// Returns the number of parameters.
    pub fn parameter_count(self) -> usize {
        match self {
            Sampler::Hypergeometric => 3,
            Sampler::Binomial => 2,
            _ => 1,
        }
    }

    /// Returns whether the distribution produces only integers.
    pub fn is_discrete(self) -> bool {
        !matches!(self, Sampler::StandardGamma | Sampler::TangentOfHalfVonMisesAngle)
    }
}

/// Scales a uniform number `u` in [0, 1) to `min(factor * (low + u * span), limit)`.
///
/// The numbers and the operations are float64 for float64, and float32 for the other dtypes, without fused multiply-add. The conversion
/// to the dtype rounds to nearest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UniformScaling {
    /// Lower end of the range, divided by `factor`.
    pub low: f64,
    /// Length of the range, divided by `factor`.
    pub span: f64,
    /// Factor by which the range is divided and the numbers are multiplied: 1, or 2 if the length of the range overflows.
    pub factor: f64,
    /// Largest number of the dtype below the upper end, or the lower end if the range is empty or reversed. Excludes numbers that
    /// rounding moves to the upper end.
    pub limit: f64,
}

impl UniformScaling {
    /// Returns the scaling to `[low, high)` in a floating `dtype`, or `None` if an end is not finite in `dtype`.
    pub fn new_for_range(low: f64, high: f64, dtype: DType) -> Option<UniformScaling> {
        let rounded_low = round_to_dtype(low, dtype);
        if !rounded_low.is_finite() || !round_to_dtype(high, dtype).is_finite() {
            return None;
        }
        let below = match dtype {
            DType::F64 => high.next_down(),
            DType::F32 => (high as f32).next_down().into(),
            DType::F16 => f16::from_bits(next_smaller_16_bit_float(to_f16(high).to_bits())).into(),
            _ => bf16::from_bits(next_smaller_16_bit_float(to_bf16(high).to_bits())).into(),
        };
        let limit = if low < high { below.max(rounded_low) } else { rounded_low };
        // Random numbers of dtype float16 and bfloat16 are scaled to the range in float32, like those of float32.
        let (round, max) = if dtype == DType::F64 { (None, f64::MAX) } else { (Some(|x: f64| f64::from(x as f32)), f32::MAX.into()) };
        let [low, high] = [low, high].map(|x| round.map_or(x, |round| round(x)));
        let factor = if (high - low).abs() > max { 2.0 } else { 1.0 };
        let span = high / factor - low / factor;
        Some(UniformScaling { low: low / factor, span: round.map_or(span, |round| round(span)), factor, limit })
    }
}

/// Returns the bits of the next smaller number of a 16-bit floating format, for the bits of a finite number.
fn next_smaller_16_bit_float(bits: u16) -> u16 {
    const SIGN_BIT_OF_16_BIT_FLOAT: u16 = 0x8000;
    match bits {
        0 | SIGN_BIT_OF_16_BIT_FLOAT => SIGN_BIT_OF_16_BIT_FLOAT | 1,
        1..SIGN_BIT_OF_16_BIT_FLOAT => bits - 1,
        _ => bits + 1,
    }
}

impl Distribution {
    /// Distance from a Philox block of [`Distribution::Integers`], which holds the high halves of two 128-bit random numbers, to
    /// the block with the low halves of the same numbers.
    pub const LOW_HALF_BLOCK_OFFSET: u64 = 1 << 63;

    /// Returns whether a range of `span` integers needs random numbers of 128 bits; see [`Distribution::Integers`].
    pub fn span_needs_128_bits(span: u64) -> bool {
        span > 1 << 32
    }

    /// Returns whether the distribution can produce numbers of `dtype`.
    pub fn supports_dtype(self, dtype: DType) -> bool {
        match self {
            Distribution::Integers { .. } => dtype.is_int(),
            Distribution::Sampled { sampler, .. } if sampler.is_discrete() => dtype == DType::I64,
            Distribution::Sampled { .. } => matches!(dtype, DType::F32 | DType::F64),
            Distribution::Uniform(_) | Distribution::Normal { .. } => dtype.is_float(),
        }
    }

    /// Returns the mask of the leading bits of a 32-bit random word that make a uniform number of `dtype`, which is not float64.
    ///
    /// The mask has as many bits as the significand of the dtype, so that the conversion of the masked word is exact.
    pub fn uniform_word_mask(dtype: DType) -> u32 {
        match dtype {
            DType::F16 => !0 << (32 - f16::MANTISSA_DIGITS),
            DType::BF16 => !0 << (32 - bf16::MANTISSA_DIGITS),
            _ => !0 << (32 - f32::MANTISSA_DIGITS),
        }
    }

    /// Returns the number of elements of `dtype` that one Philox block gives.
    pub fn elements_per_philox_block(self, dtype: DType) -> usize {
        match self {
            Distribution::Integers { .. } => 2,
            Distribution::Sampled { .. } => 1,
            _ if dtype == DType::F64 => 2,
            _ => 4,
        }
    }
}

impl KernelRequest for Random {
    fn family(&self) -> Family {
        Family::Random
    }
}
