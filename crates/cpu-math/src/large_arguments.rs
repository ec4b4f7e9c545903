//! Trigonometric functions of large arguments: a scalar pass for the few elements that the vectorised loops skip.
//!
//! Payne and Hanek's reduction ("Radian reduction for trigonometric functions", 1983) multiplies only those bits of `2/pi` that
//! determine the quadrant and the fraction.

use cuprum_cpu_base::simd::BaselineIsa;

use crate::coefficients::TWO_OVER_PI_BITS;
use crate::float_formats::{MathFloat, QuarterTurnCount};
use crate::trigonometric::{sin_of_quarter_turns, tan_of_quarter_turns};

/// Returns whether `|x|` is too large for the argument reduction of the vectorised loops (`MathFloat::MIN_LARGE_ARGUMENT` or more).
#[inline(always)]
pub fn is_large_argument<T: MathFloat>(x: T) -> bool {
    x.abs() >= T::of(T::MIN_LARGE_ARGUMENT)
}

/// Returns `sin x` for large `x`.
pub fn sin_large<T: MathFloat>(x: T) -> T {
    let (turn, r, low) = reduce_large_argument(x.to_f64());
    T::of(sin_of_quarter_turns::<BaselineIsa, f64>(turn, r, low)) * T::of(1.0).copysign(x)
}

/// Returns `cos x` for large `x`.
pub fn cos_large<T: MathFloat>(x: T) -> T {
    let (turn, r, low) = reduce_large_argument(x.to_f64());
    T::of(sin_of_quarter_turns::<BaselineIsa, f64>(f64::next_quadrant(turn), r, low))
}

/// Returns `tan x` for large `x`.
pub fn tan_large<T: MathFloat>(x: T) -> T {
    let (turn, r, low) = reduce_large_argument(x.to_f64());
    T::of(tan_of_quarter_turns::<BaselineIsa, f64>(turn, r, low)) * T::of(1.0).copysign(x)
}

/// Returns `n` (the quadrant), `r` and `low` with `|x| = n pi/2 + r + low`, for `|x| >= 2^16`. Infinity gives NaN.
fn reduce_large_argument(x: f64) -> (QuarterTurnCount<f64>, f64, f64) {
    if !x.is_finite() {
        return (0f64.round_to_quarter_turns().1, f64::NAN, 0.0);
    }
    let bits = x.abs().to_bits();
    let mantissa = (bits & ((1 << 52) - 1) | 1 << 52) as u128;
    let exponent = (bits >> 52) as usize + 64 - 1075; // |x| = mantissa * 2^(exponent - 64)
    // Selects the 192 bits of 2/pi that determine the result. The bits before them only add multiples of 4 quadrants. The first selected
    // bit has weight 2 in `2^(exponent - 64) * 2/pi`.
    let (word, shift) = ((exponent - 2) / 64, (exponent - 2) % 64);
    let window = |i: usize| {
        let pair = (TWO_OVER_PI_BITS[word + i] as u128) << 64 | TWO_OVER_PI_BITS[word + i + 1] as u128;
        (pair << shift >> 64) & u64::MAX as u128
    };
    // Multiplies the selected bits of 2/pi by the mantissa, modulo 2^192.
    let low = mantissa * window(2);
    let middle = mantissa * window(1) + (low >> 64);
    let high = (mantissa * window(0) + (middle >> 64)) as u64;
    let quadrants = (high as u128) << 64 | middle & u64::MAX as u128;
    // The first two bits of the product are the number of whole quarter turns. The other bits of the product are read as a signed fraction
    // from -1/2 to 1/2 of a quarter turn. If the fraction is negative, the number of quarter turns is one higher, which rounds to the
    // nearest multiple of pi/2.
    let fraction = (quadrants << 2 | (low & u64::MAX as u128) >> 62) as i128;
    let quadrant = (high >> 62) + (fraction < 0) as u64;
    let head = fraction as f64;
    let rest = (fraction - head as i128) as f64;
    let unit = 2f64.powi(-128);
    let (head, rest) = (head * unit, rest * unit);
    let [pi, pi_low, _] = f64::HALF_PI_PARTS;
    let r = head * pi;
    let low = head.mul_add(pi, -r) + (head * pi_low + rest * pi);
    ((quadrant as f64).round_to_quarter_turns().1, r, low)
}
