//! Conversions of float64 numbers to narrower float formats with one rounding, ties to even.
//!
//! The conversions of the crate `half` round twice, or ignore the lowest bits.

use half::{bf16, f16};

use crate::dtype::DType;

/// Converts `x` to float32 such that a second rounding, to a 16-bit float, gives the same result as one rounding of `x`. Rounds towards
/// zero and sets the last bit if the result is inexact ("round to odd").
#[inline(always)]
pub fn round_to_odd_f32(x: f64) -> f32 {
    let nearest = x as f32;
    let back = nearest as f64;
    if back == x || x.is_nan() {
        return nearest;
    }
    let towards_zero = nearest.to_bits() - (back.abs() > x.abs()) as u32;
    f32::from_bits(towards_zero | 1)
}

/// Converts to float16.
#[inline]
pub fn to_f16(x: f64) -> f16 {
    f16::from_f32(round_to_odd_f32(x))
}

/// Converts to bfloat16.
#[inline]
pub fn to_bf16(x: f64) -> bf16 {
    bf16::from_f32(round_to_odd_f32(x))
}

/// Returns `x` rounded to a floating dtype. Other dtypes return `x`.
pub fn round_to_dtype(x: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F16 => to_f16(x).into(),
        DType::BF16 => to_bf16(x).into(),
        DType::F32 => (x as f32).into(),
        _ => x,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_once() {
        let tie = 1.0 + 2f64.powi(-11);
        let just_above = tie + 2f64.powi(-50);
        assert_eq!((to_f16(tie).to_f64(), to_f16(just_above).to_f64()), (1.0, 1.0 + 2f64.powi(-10)));
        assert_eq!(to_bf16(1.0 + 2f64.powi(-8) + 2f64.powi(-50)).to_f64(), 1.0 + 2f64.powi(-7));
        assert_eq!((to_f16(65519.99999999).to_f64(), to_f16(65520.0)), (65504.0, f16::INFINITY));
        assert_eq!((to_f16(-f64::MAX), to_f16(f64::NAN).is_nan()), (f16::NEG_INFINITY, true));
        assert_eq!(to_f16(-5e-324).to_bits(), 0x8000);
    }
}
