//! Exponentials and hyperbolic functions. The argument is reduced to `x = n ln 2 + r` with `|r| <= ln 2 / 2`; a polynomial in `r` is
//! scaled by `2^n` (Muller, "Elementary Functions", 3rd ed., ch. 11).

use cuprum_cpu_base::simd::Isa;

use crate::float_formats::{MathFloat, divide_pairs, fast_two_sum, polynomial};

/// Returns `(n, r, low)` with `x = n ln 2 + r + low`, where `low` is the rounding error of `r`.
#[inline(always)]
fn reduce_by_ln_2<I: Isa, T: MathFloat>(x: T) -> (T, T, T) {
    let n = (x * T::of(std::f64::consts::LOG2_E)).nearest_integer();
    let head = (-n).madd::<I>(T::of(T::LN_2[0]), x); // exact: the head of ln 2 has few bits
    let r = (-n).madd::<I>(T::of(T::LN_2[1]), head);
    (n, r, (-n).madd::<I>(T::of(T::LN_2[1]), head - r))
}

/// Returns `e^x`.
#[inline(always)]
pub fn exp<I: Isa, T: MathFloat>(x: T) -> T {
    let (n, r, _) = reduce_by_ln_2::<I, T>(x.clamp_to(T::EXP_ARGUMENT_LIMITS[1], T::EXP_ARGUMENT_LIMITS[0]));
    let tail = (r * r).madd::<I>(polynomial::<I, T>(r, T::EXP_COEFFICIENTS), r);
    (tail + T::of(1.0)).scale_by_exp2::<I>(n)
}

/// Returns `e^(x + low)`, where `x` is within the limits `MathFloat::EXP_ARGUMENT_LIMITS`.
#[inline(always)]
pub fn exp_of_sum<I: Isa, T: MathFloat>(x: T, low: T) -> T {
    let (n, r, rest) = reduce_by_ln_2::<I, T>(x);
    let r = r + (low + rest);
    let tail = (r * r).madd::<I>(polynomial::<I, T>(r, T::EXP_COEFFICIENTS), r);
    (tail + T::of(1.0)).scale_by_exp2::<I>(n)
}

/// Returns `2^x`.
#[inline(always)]
pub fn exp2<I: Isa, T: MathFloat>(x: T) -> T {
    let x = x.clamp_to(T::EXP_ARGUMENT_LIMITS[3], T::EXP_ARGUMENT_LIMITS[2]);
    let n = x.nearest_integer();
    let r = x - n;
    polynomial::<I, T>(r, T::EXP2_COEFFICIENTS).madd::<I>(r, T::of(1.0)).scale_by_exp2::<I>(n)
}

/// Returns `e^x - 1`, computed as `2^n ((1 - 2^-n) + (e^r - 1))`.
#[inline(always)]
pub fn expm1<I: Isa, T: MathFloat>(x: T) -> T {
    let (n, r, low) = reduce_by_ln_2::<I, T>(x.clamp_to(-T::EXPONENT_ABSORBING_ONE, T::EXP_ARGUMENT_LIMITS[0]));
    let tail = (r * r).madd::<I>(polynomial::<I, T>(r, T::EXP_COEFFICIENTS), low);
    let one = T::of(1.0) - (-n.clamp_to(-2.0 * T::EXPONENT_ABSORBING_ONE, T::EXPONENT_ABSORBING_ONE)).exp2_of_integer();
    let (sum, rest) = fast_two_sum(one, r);
    (sum + (rest + tail)).scale_by_exp2::<I>(n).copysign(x)
}

/// Returns `2 sinh x / 2^n` and `2 cosh x / 2^n` for `x >= 0`, each as a sum of two numbers, and `n`.
///
/// With `d = 2^-2n`, these are `(1 - d) cosh r + (1 + d) sinh r` and `(1 + d) cosh r + (1 - d) sinh r`.
#[inline(always)]
fn scaled_sinh_cosh<I: Isa, T: MathFloat>(x: T) -> ((T, T), (T, T), T) {
    let (n, r, low) = reduce_by_ln_2::<I, T>(x);
    let z = r * r;
    let sinh = (r * z).madd::<I>(polynomial::<I, T>(z, T::SINH_COEFFICIENTS), low); // sinh r - r
    let cosh = z * polynomial::<I, T>(z, T::COSH_COEFFICIENTS); // cosh r - 1
    let d = (n.clamp_to(0.0, T::EXPONENT_ABSORBING_ONE) * T::of(-2.0)).exp2_of_integer();
    let (minus, plus) = (T::of(1.0) - d, T::of(1.0) + d);
    let s = plus.madd::<I>(r, minus);
    let s_low = minus.madd::<I>(cosh, plus.madd::<I>(sinh, plus.madd::<I>(r, minus - s)));
    let c = minus.madd::<I>(r, plus);
    let c_low = plus.madd::<I>(cosh, minus.madd::<I>(sinh, minus.madd::<I>(r, plus - c)));
    // The last terms of both sums are the rounding errors of `minus = 1 - d` and `plus = 1 + d`.
    ((s, s_low + (T::of(1.0) - minus - d)), (c, c_low + (T::of(1.0) - plus + d)), n)
}

/// Returns `(e^x - e^-x) / 2`.
#[inline(always)]
pub fn sinh<I: Isa, T: MathFloat>(x: T) -> T {
    let ((s, low), _, n) = scaled_sinh_cosh::<I, T>(x.abs().clamp_to(0.0, T::EXP_ARGUMENT_LIMITS[0] + 2.0));
    (s + low).scale_by_exp2::<I>(n - T::of(1.0)).copysign(x)
}

/// Returns `(e^x + e^-x) / 2`.
#[inline(always)]
pub fn cosh<I: Isa, T: MathFloat>(x: T) -> T {
    let (_, (c, low), n) = scaled_sinh_cosh::<I, T>(x.abs().clamp_to(0.0, T::EXP_ARGUMENT_LIMITS[0] + 2.0));
    (c + low).scale_by_exp2::<I>(n - T::of(1.0))
}

/// Returns the hyperbolic tangent, `(e^2x - 1) / (e^2x + 1)`.
///
/// With `2 |x| = n ln 2 + r` and `d = 2^-n`, the magnitude of the result is `s / (s + 2 d)` for `s = (1 - d) + (e^r - 1)`.
#[inline(always)]
pub fn tanh<I: Isa, T: MathFloat>(x: T) -> T {
    let a = x.abs().clamp_to(0.0, T::EXPONENT_ABSORBING_ONE / 2.0);
    let (n, r, low) = reduce_by_ln_2::<I, T>(a + a);
    let tail = (r * r).madd::<I>(polynomial::<I, T>(r, T::EXP_COEFFICIENTS), low);
    let d = (-n).exp2_of_integer();
    let (sum, rest) = fast_two_sum(T::of(1.0) - d, r);
    let size = fast_two_sum(sum, rest + tail);
    divide_pairs::<I, T>(size, (size.0 + (d + d), size.1)).copysign(x)
}
