//! Inverse trigonometric functions: a polynomial near 0, and identities that reduce other arguments to that range.

use cuprum_cpu_base::simd::Isa;

use crate::float_formats::{MathFloat, fast_two_sum, polynomial, select, select_one_pair};

/// Returns `multiple * pi/2 - a - low`, where `multiple` is 0, 1 or 2.
#[inline(always)]
fn subtract_from_quarter_turns<T: MathFloat>(multiple: T, a: T, low: T) -> T {
    let (head, rest) = fast_two_sum(multiple * T::of(T::HALF_PI_PARTS[0]), -a);
    head + (multiple * T::of(T::HALF_PI_PARTS[1]) - low + rest)
}

/// Returns `atan(t) - t` for `t` in 0..=1.
#[inline(always)]
fn atan_minus_x<I: Isa, T: MathFloat>(t: T) -> T {
    let z = t * t;
    t * z * polynomial::<I, T>(z, T::ATAN_COEFFICIENTS)
}

/// Returns the arc tangent of `x`; for `|x| > 1`, by `pi/2 - atan(1 / x)`.
#[inline(always)]
pub fn atan<I: Isa, T: MathFloat>(x: T) -> T {
    let a = x.abs();
    let steep = a > T::of(1.0);
    let t = select(steep, T::of(1.0) / a, a);
    let rest = atan_minus_x::<I, T>(t);
    let angle = select(steep, subtract_from_quarter_turns(T::of(1.0), t, rest), t + rest);
    angle.copysign(x)
}

/// Returns the angle of the point `(x, y)`, with zeros and infinities as in C99 Annex F.
#[inline(always)]
pub fn atan2<I: Isa, T: MathFloat>(y: T, x: T) -> T {
    let (a, b) = (y.abs(), x.abs());
    let steep = a > b;
    let (above, below) = select_one_pair(steep, (b, a), (a, b));
    // Replaces the quotients 0/0 and inf/inf. The point (0, 0) has the angle of an axis; a point with two infinities has the angle of a
    // diagonal.
    let equal = select(below > T::of(0.0), T::of(1.0), T::of(0.0));
    let t = select(above == below, equal, above / below);
    let rest = atan_minus_x::<I, T>(t);
    let left = x.is_sign_bit_set();
    let multiple = T::of(select(steep, 1.0, 0.0)) + T::of(select(left & !steep, 2.0, 0.0));
    let (t, rest) = select_one_pair(steep == left, (-t, -rest), (t, rest));
    // With `t = atan(min(|x|, |y|) / max(|x|, |y|))`, the angle is t, pi/2 - t, pi/2 + t or pi - t, depending on which of `|x|` and `|y|`
    // is larger and on the sign of `x`.
    subtract_from_quarter_turns(multiple, t, rest).copysign(y)
}

/// Returns `asin(a)` for `a <= 1/2` and `acos(a) / 2` for larger `a`, as an unevaluated sum of two numbers. Also returns whether `a > 1/2`.
#[inline(always)]
fn asin_or_half_acos<I: Isa, T: MathFloat>(a: T) -> (T, T, bool) {
    let half = T::of(0.5);
    let steep = a > half;
    let z = select(steep, half - a * half, a * a);
    let s = select(steep, z.sqrt(), a);
    (s, s * z * polynomial::<I, T>(z, T::ASIN_COEFFICIENTS), steep)
}

/// Returns the arc sine of `x`; for `|x| > 1/2`, by `pi/2 - 2 asin(sqrt((1 - x) / 2))`.
#[inline(always)]
pub fn asin<I: Isa, T: MathFloat>(x: T) -> T {
    let (s, rest, steep) = asin_or_half_acos::<I, T>(x.abs());
    let angle = select(steep, subtract_from_quarter_turns(T::of(1.0), s + s, rest + rest), s + rest);
    angle.copysign(x)
}

/// Returns the arc cosine of `x`, by the same reduction as [`asin`].
#[inline(always)]
pub fn acos<I: Isa, T: MathFloat>(x: T) -> T {
    let (s, rest, steep) = asin_or_half_acos::<I, T>(x.abs());
    let factor = T::of(select(steep, 2.0, 1.0));
    let (s, rest) = (factor * s, factor * rest);
    // For `|x| > 1/2`, `s + rest` is `acos |x|`, and the result is this angle or, for negative `x`, pi minus this angle. For other `x`, `s
    // + rest` is `asin |x|`, and the result is pi/2 minus `asin x`.
    let multiple = T::of(select(!steep, 1.0, 0.0)) + T::of(select(steep & (x < T::of(0.0)), 2.0, 0.0));
    let plus = steep == (x >= T::of(0.0));
    let (s, rest) = select_one_pair(plus, (-s, -rest), (s, rest));
    subtract_from_quarter_turns(multiple, s, rest)
}
