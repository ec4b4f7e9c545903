//! Sine, cosine and tangent. The argument is reduced to `x = n pi/2 + r` with `|r| <= pi/4` by Cody and Waite's method ("Software Manual
//! for the Elementary Functions", 1980) with fused products. The module `large_arguments` handles arguments from
//! `MathFloat::MIN_LARGE_ARGUMENT` on.

use cuprum_cpu_base::simd::Isa;

use crate::float_formats::{MathFloat, QuarterTurnCount, divide_pairs, fast_two_sum, polynomial, select_one_pair};

/// Sine and cosine of an angle within pi/4, each as an unevaluated sum of a leading part and a correction.
type SinCos<T> = ((T, T), (T, T));

/// Returns `n` (the quadrant), `r` and `low` with `x = n pi/2 + r + low`, for `x >= 0`.
#[inline(always)]
fn reduce_by_half_pi<I: Isa, T: MathFloat>(x: T) -> (QuarterTurnCount<T>, T, T) {
    let (n, turn) = (x * T::of(std::f64::consts::FRAC_2_PI)).round_to_quarter_turns();
    let head = (-n).fma::<I>(T::of(T::HALF_PI_PARTS[0]), x); // exact: the difference cancels the leading bits of x
    // `head - product` cancels near multiples of pi/2, so the rounding errors of the product and of the difference are kept.
    let product = n * T::of(T::HALF_PI_PARTS[1]);
    let error = n.fma::<I>(T::of(T::HALF_PI_PARTS[1]), -product);
    let (r, low) = fast_two_sum(head, -product);
    (turn, r, (-n).madd::<I>(T::of(T::HALF_PI_PARTS[2]), low - error))
}

/// Returns the sine and cosine of `r + low`.
#[inline(always)]
pub fn sin_cos<I: Isa, T: MathFloat>(r: T, low: T) -> SinCos<T> {
    let z = r * r;
    let cos = z * T::of(-0.5) + T::of(1.0);
    let cos_low = (z * z).madd::<I>(polynomial::<I, T>(z, T::COS_COEFFICIENTS), z.madd::<I>(T::of(-0.5), T::of(1.0) - cos));
    let sin_low = (r * z).madd::<I>(polynomial::<I, T>(z, T::SIN_COEFFICIENTS), low * cos);
    ((r, sin_low), (cos, (-r).madd::<I>(low, cos_low)))
}

/// Returns the sine of `turn` quarter turns plus `r + low`.
#[inline(always)]
pub fn sin_of_quarter_turns<I: Isa, T: MathFloat>(turn: QuarterTurnCount<T>, r: T, low: T) -> T {
    let (sin, cos) = sin_cos::<I, T>(r, low);
    let (head, low) = select_one_pair(T::is_odd_quadrant(turn), cos, sin);
    (head + low).apply_quadrant_sign(turn)
}

/// Returns the tangent of `turn` quarter turns plus `r + low`.
#[inline(always)]
pub fn tan_of_quarter_turns<I: Isa, T: MathFloat>(turn: QuarterTurnCount<T>, r: T, low: T) -> T {
    let (sin, cos) = sin_cos::<I, T>(r, low);
    // The rounding error of `r * r` is up to a quarter of an ulp of the cosine, so it is included in the correction of the cosine.
    let square_low = r.fma::<I>(r, -(r * r));
    let cos = (cos.0, T::of(-0.5).madd::<I>(square_low, cos.1));
    let odd = T::is_odd_quadrant(turn);
    let (above, below) = (select_one_pair(odd, (-cos.0, -cos.1), sin), select_one_pair(odd, sin, cos));
    divide_pairs::<I, T>(fast_two_sum(above.0, above.1), fast_two_sum(below.0, below.1))
}

/// Returns `sin x` for `|x| < MathFloat::MIN_LARGE_ARGUMENT`.
#[inline(always)]
pub fn sin<I: Isa, T: MathFloat>(x: T) -> T {
    let (turn, r, low) = reduce_by_half_pi::<I, T>(x.abs());
    sin_of_quarter_turns::<I, T>(turn, r, low).negate_if_negative(x)
}

/// Returns `cos x` for `|x| < MathFloat::MIN_LARGE_ARGUMENT`.
#[inline(always)]
pub fn cos<I: Isa, T: MathFloat>(x: T) -> T {
    let (turn, r, low) = reduce_by_half_pi::<I, T>(x.abs());
    sin_of_quarter_turns::<I, T>(T::next_quadrant(turn), r, low)
}

/// Returns `tan x` for `|x| < MathFloat::MIN_LARGE_ARGUMENT`.
#[inline(always)]
pub fn tan<I: Isa, T: MathFloat>(x: T) -> T {
    let (turn, r, low) = reduce_by_half_pi::<I, T>(x.abs());
    tan_of_quarter_turns::<I, T>(turn, r, low).negate_if_negative(x)
}
