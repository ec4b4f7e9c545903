//! Powers and roots.

use super::coefficients as c;
use super::logarithm::{Logarithm, Tabled};
use super::real::{Real, fast_two_sum, polynomial};
use crate::simd::Isa;

/// A format with powers of positive numbers.
pub(crate) trait Power: Logarithm {
    /// `a^y` for `a >= 0`, NaN only where C99 says so or `a` is 1.
    fn power<I: Isa>(a: Self, y: Self) -> Self;
    /// Whether `y` is an integer, and whether it is an odd one.
    fn parity(y: Self) -> (bool, bool);
}

/// `log` where `a` is positive and finite; -inf for 0, inf for inf, NaN for NaN.
#[inline(always)]
fn ends(a: f64, log: f64) -> f64 {
    let log = if a > 0.0 { log } else { f64::NEG_INFINITY };
    if a <= f64::MAX { log } else { a }
}

impl Power for f32 {
    /// In float64, which holds every product of exponent and logarithm well enough.
    #[inline(always)]
    fn power<I: Isa>(a: f32, y: f32) -> f32 {
        let a = a as f64;
        let Tabled { n, m, inverse, log } = Tabled::of(a);
        let f = m.madd::<I>(inverse, -1.0);
        let tail = f.madd::<I>(polynomial::<I, f64>(f, &c::LOG_WIDE), -0.5);
        let log = n.madd::<I>(std::f64::consts::LN_2, log + (f * f).madd::<I>(tail, f));
        let exponent = (y as f64 * ends(a, log)).within(-110.0, 95.0);
        let n = (exponent * std::f64::consts::LOG2_E).round();
        let r = (-n).madd::<I>(std::f64::consts::LN_2, exponent);
        (polynomial::<I, f64>(r, &c::EXP_WIDE).madd::<I>(r, 1.0) * n.exp2i()) as f32
    }

    #[inline(always)]
    fn parity(y: f32) -> (bool, bool) {
        const SHIFT: f32 = (1u32 << 23) as f32;
        let a = y.abs();
        let shifted = if a < SHIFT { a + SHIFT } else { a };
        let whole = (a >= SHIFT) | (shifted - SHIFT == a);
        (whole, whole & (a < 2.0 * SHIFT) & (shifted.to_bits() & 1 != 0))
    }
}

impl Power for f64 {
    /// The logarithm as a sum of two numbers, good to 63 bits, as the exponent multiplies its error by up to 2^9.5.
    #[inline(always)]
    fn power<I: Isa>(a: f64, y: f64) -> f64 {
        let (normal, extra) = a.normalized();
        let Tabled { n, m, inverse, log } = Tabled::of(normal);
        let n = n - extra;
        // m * inverse - 1 = f + f_low
        let product = m * inverse;
        let error = m.fma::<I>(inverse, -product);
        let (f, f_low) = fast_two_sum(product - 1.0, error);
        let (sum, low_1) = fast_two_sum(n * f64::LN_2[0], log);
        let (sum, low_2) = fast_two_sum(sum, f);
        let half = f * -0.5;
        let square = half * f;
        let square_low = half.fma::<I>(f, -square);
        let (head, low_3) = fast_two_sum(sum, square);
        let cube = square * f * (-2.0 * polynomial::<I, f64>(f, &c::LOG_F64));
        let small = n.madd::<I>(f64::LN_2[1], low_1) + low_2;
        let low = small + (low_3 + (square_low + (-f).madd::<I>(f_low, f_low))) + cube;

        let head = ends(a, head);
        let exponent = y * head;
        let low = y.madd::<I>(low, y.fma::<I>(head, -exponent));
        // Beyond the range, and where the product overflowed, the rest does not count.
        let low = if exponent.abs() < 800.0 { low } else { 0.0 };
        let exponent = exponent.within(-746.0, 710.0);
        let n = (exponent * std::f64::consts::LOG2_E).round();
        let head = (-n).madd::<I>(f64::LN_2[0], exponent); // exact
        let r = (-n).madd::<I>(f64::LN_2[1], head);
        let r = r + (low + (-n).madd::<I>(f64::LN_2[1], head - r));
        let tail = (r * r).madd::<I>(polynomial::<I, f64>(r, f64::EXP), r);
        (tail + 1.0).scale::<I>(n)
    }

    #[inline(always)]
    fn parity(y: f64) -> (bool, bool) {
        const SHIFT: f64 = (1u64 << 52) as f64;
        let a = y.abs();
        let shifted = if a < SHIFT { a + SHIFT } else { a };
        let whole = (a >= SHIFT) | (shifted - SHIFT == a);
        (whole, whole & (a < 2.0 * SHIFT) & (shifted.to_bits() & 1 != 0))
    }
}

/// `x^y`, with the exact cases of C99's Annex F.9.4.4.
#[inline(always)]
pub(crate) fn pow<I: Isa, T: Power>(x: T, y: T) -> T {
    let (zero, one, a) = (T::of(0.0), T::of(1.0), x.abs());
    let (whole, odd) = T::parity(y);
    let size = T::power::<I>(a, y);
    let signed = if x.is_negative() & odd { -size } else { size };
    // Negative numbers have whole powers only; -0 and -inf have all.
    let rooted = (x < zero) & (a <= T::MAX) & !whole;
    let result = if rooted { T::of(f64::NAN) } else { signed };
    let is_one = (x == one) | (y == zero) | ((a == one) & (y.abs() > T::MAX));
    if is_one { one } else { result }
}

/// Cube root: an estimate of `m^(-1/3)`, one step of third order, and one of Newton's on the root itself.
#[inline(always)]
pub(crate) fn cbrt<I: Isa, T: Logarithm>(x: T) -> T {
    let a = x.abs();
    let (normal, extra) = a.normalized();
    let (m, n) = normal.exponent();
    let n = n - extra;
    // n = 3 q + s, s = -1, 0, 1
    let q = (n * T::of(1.0 / 3.0)).round();
    let s = q.madd::<I>(T::of(-3.0), n);
    let doubled = if s > T::of(0.5) { (T::of(2.0), T::of(c::CBRT_HALF)) } else { (T::of(1.0), T::of(1.0)) };
    let (scale, root) = if s < T::of(-0.5) { (T::of(0.5), T::of(c::CBRT_2)) } else { doubled };
    let estimate = polynomial::<I, T>(m, &c::CBRT) * root;
    let m = m * scale;
    let e = (-m * estimate).madd::<I>(estimate * estimate, T::of(1.0));
    let inverse = (estimate * e).madd::<I>(e.madd::<I>(T::of(2.0 / 9.0), T::of(1.0 / 3.0)), estimate);
    let square = inverse * inverse;
    let y = m * square;
    let y2 = y * y;
    let rest = (-y2).fma::<I>(y, m) - y.fma::<I>(y, -y2) * y;
    let y = (rest * square).madd::<I>(T::of(1.0 / 3.0), y) * q.exp2i();
    (if (a > T::of(0.0)) & (a <= T::MAX) { y } else { a }).copysign(x)
}

/// `sqrt(x^2 + y^2)` without overflow; infinite if either is.
#[inline(always)]
pub(crate) fn hypot<I: Isa, T: Logarithm>(x: T, y: T) -> T {
    let (a, b) = (x.abs(), y.abs());
    let (large, small) = if a < b { (b, a) } else { (a, b) };
    let power = |n: f64| T::of(n).exp2i();
    // Squares of numbers between these neither overflow nor lose bits.
    let [scale, highest, lowest] = T::SQUARES;
    let unscaled = (power(0.0), power(0.0));
    let (up, down) = if large > power(highest) { (power(-scale), power(scale)) } else { unscaled };
    let (up, down) = if large < power(lowest) { (power(scale), power(-scale)) } else { (up, down) };
    let (large, small) = (large * up, small * up);
    let size = large.madd::<I>(large, small * small).sqrt() * down;
    let infinite = (a > T::MAX) | (b > T::MAX);
    if infinite { T::of(f64::INFINITY) } else { size }
}
