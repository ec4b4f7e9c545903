//! Powers, cube root and `hypot`.

use cuprum_cpu_base::simd::Isa;

use crate::coefficients as c;
use crate::exponential_and_hyperbolic::exp_of_sum;
use crate::float_formats::{MathFloat, fast_two_sum, polynomial, select, select_one_pair};
use crate::logarithm_and_inverse_hyperbolic::{LogTableEntry, Logarithm};

/// A float format (float32 or float64) with powers of non-negative numbers.
pub trait Power: Logarithm {
    /// Returns `a^y` for `a >= 0`. The result is 1 if `a` is 1 or `y` is 0, even if the other argument is NaN.
    fn power_of_non_negative<I: Isa>(a: Self, y: Self) -> Self;
}

/// Returns the logarithm of `a` with its special values: -inf for 0, inf for inf, NaN for NaN, and `log` for positive finite `a`.
#[inline(always)]
fn log_with_special_values(a: f64, log: f64) -> f64 {
    let log = select(a > 0.0, log, f64::NEG_INFINITY);
    select(a <= f64::MAX, log, a)
}

impl Power for f32 {
    /// Computes in float64, which is precise enough for the product of any `y` with the logarithm of any `a`.
    #[inline(always)]
    fn power_of_non_negative<I: Isa>(a: f32, y: f32) -> f32 {
        let a = a as f64;
        let LogTableEntry { n, m, inverse, log } = LogTableEntry::of(a);
        let f = m.madd::<I>(inverse, -1.0);
        let tail = f.madd::<I>(polynomial::<I, f64>(f, &c::LOG_COEFFICIENTS_IN_F64_FOR_F32), -0.5);
        let log = n.madd::<I>(std::f64::consts::LN_2, log + (f * f).madd::<I>(tail, f));
        let exponent = select((y == 0.0) | (a == 1.0), 0.0, y as f64 * log_with_special_values(a, log)).clamp_to(-110.0, 95.0);
        let n = (exponent * std::f64::consts::LOG2_E).nearest_integer();
        let r = (-n).madd::<I>(std::f64::consts::LN_2, exponent);
        (polynomial::<I, f64>(r, &c::EXP_COEFFICIENTS_IN_F64_FOR_F32).madd::<I>(r, 1.0) * n.exp2_of_integer()) as f32
    }
}

impl Power for f64 {
    /// Computes the logarithm as a sum of two numbers with 63 bits in total. A float64 has too few bits, because the exponential multiplies
    /// the relative error of the product `y log a` by up to 2^9.5.
    #[inline(always)]
    fn power_of_non_negative<I: Isa>(a: f64, y: f64) -> f64 {
        let (normal, extra) = a.scale_to_normal();
        let LogTableEntry { n, m, inverse, log } = LogTableEntry::of(normal);
        let n = n - extra;
        // `m * inverse - 1` is computed as the sum `f + f_low`.
        let product = m * inverse;
        let error = m.fma::<I>(inverse, -product);
        let (f, f_low) = fast_two_sum(product - 1.0, error);
        let (sum, low_1) = fast_two_sum(n * f64::LN_2[0], log);
        let (sum, low_2) = fast_two_sum(sum, f);
        let half = f * -0.5;
        let square = half * f;
        let square_low = half.fma::<I>(f, -square);
        let (head, low_3) = fast_two_sum(sum, square);
        let cube = square * f * (-2.0 * polynomial::<I, f64>(f, &c::LOG_WITH_TABLE_COEFFICIENTS_F64));
        let small = n.madd::<I>(f64::LN_2[1], low_1) + low_2;
        let low = small + (low_3 + (square_low + (-f).madd::<I>(f_low, f_low))) + cube;

        let head = log_with_special_values(a, head);
        let exponent = y * head;
        let low = y.madd::<I>(low, y.fma::<I>(head, -exponent));
        // The low part may be NaN if the exponential overflows or underflows, or if the product `y * head` overflowed. In these cases the
        // low part is ignored.
        let is_one = (y == 0.0) | (a == 1.0);
        let low = select((exponent.abs() < 800.0) & !is_one, low, 0.0);
        let exponent = select(is_one, 0.0, exponent).clamp_to(-746.0, 710.0);
        exp_of_sum::<I, f64>(exponent, low)
    }
}

/// Returns `x^y`, with the special values of C99's Annex F.9.4.4.
#[inline(always)]
pub fn pow<I: Isa, T: Power>(x: T, y: T) -> T {
    let (zero, whole) = (T::of(0.0), T::of(T::MIN_MAGNITUDE_WITHOUT_FRACTION));
    // Finds whether `y` is odd: the sum of `|y|` and `shift` has the lowest integer bit of `|y|` in its lowest mantissa bit. Numbers above
    // twice `MIN_MAGNITUDE_WITHOUT_FRACTION` are even.
    let size = y.abs().clamp_to(0.0, 2.0 * T::MIN_MAGNITUDE_WITHOUT_FRACTION);
    let shift = select(size < whole, whole, zero);
    let shifted = size + shift;
    let is_whole = shifted - shift == size;
    let power = T::power_of_non_negative::<I>(x.abs(), y).negate_if_negative_and_odd(x, select(is_whole, shifted, zero));
    // Negative finite `x` has a real power only for integer `y`; -0 and -inf have a real power for every `y`.
    let is_root = (x < zero) & (x >= -T::MAX_FINITE) & !is_whole;
    select(is_root, T::of(f64::NAN), power)
}

/// Returns the cube root of `x`: an estimate of `m^(-1/3)`, a third-order step, and a Newton step on the root itself.
#[inline(always)]
pub fn cbrt<I: Isa, T: Logarithm>(x: T) -> T {
    let a = x.abs();
    let (normal, extra) = a.scale_to_normal();
    let (m, n) = normal.split_exponent();
    let n = n - extra;
    // Splits the exponent into n = 3 q + s, where s is -1, 0 or 1.
    let q = (n * T::of(1.0 / 3.0)).nearest_integer();
    let s = q.madd::<I>(T::of(-3.0), n);
    let doubled = select_one_pair(s > T::of(0.5), (T::of(2.0), T::of(c::CBRT_HALF)), (T::of(1.0), T::of(1.0)));
    let (scale, root) = select_one_pair(s < T::of(-0.5), (T::of(0.5), T::of(c::CBRT_2)), doubled);
    let estimate = polynomial::<I, T>(m, &c::INVERSE_CBRT_COEFFICIENTS) * root;
    let m = m * scale;
    let e = (-m * estimate).madd::<I>(estimate * estimate, T::of(1.0));
    let inverse = (estimate * e).madd::<I>(e.madd::<I>(T::of(2.0 / 9.0), T::of(1.0 / 3.0)), estimate);
    let square = inverse * inverse;
    let y = m * square;
    let y2 = y * y;
    let rest = (-y2).fma::<I>(y, m) - y.fma::<I>(y, -y2) * y;
    let y = (rest * square).madd::<I>(T::of(1.0 / 3.0), y) * q.exp2_of_integer();
    select((a > T::of(0.0)) & (a <= T::MAX_FINITE), y, a).copysign(x)
}

/// Returns `sqrt(x^2 + y^2)` without intermediate overflow. The result is infinite if `x` or `y` is.
#[inline(always)]
pub fn hypot<I: Isa, T: Logarithm>(x: T, y: T) -> T {
    let (a, b) = (x.abs(), y.abs());
    let (large, small) = select_one_pair(a < b, (b, a), (a, b));
    let power = |n: f64| T::of(n).exp2_of_integer();
    // Numbers above `2^highest` or below `2^lowest` are scaled, because their squares would overflow or lose bits.
    let [scale, highest, lowest] = T::HYPOT_SCALE_EXPONENTS;
    let unscaled = (power(0.0), power(0.0));
    let (up, down) = select_one_pair(large > power(highest), (power(-scale), power(scale)), unscaled);
    let (up, down) = select_one_pair(large < power(lowest), (power(scale), power(-scale)), (up, down));
    let (large, small) = (large * up, small * up);
    let size = large.madd::<I>(large, small * small).sqrt() * down;
    let infinite = (a > T::MAX_FINITE) | (b > T::MAX_FINITE);
    select(infinite, T::of(f64::INFINITY), size)
}
