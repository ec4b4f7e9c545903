//! Logarithms and inverse hyperbolic functions. The argument is split as `x = 2^n m` with `m` near 1, and `log m` is an unevaluated sum
//! of two numbers. Cancellation with `n ln 2` and a change of base then cost less than an ulp.

use cuprum_cpu_base::simd::Isa;

use crate::coefficients as c;
use crate::float_formats::{MathFloat, fast_two_sum, polynomial, select, select_one_pair, two_sum};

/// The terms of `log x = n ln 2 + head + low`.
pub struct LogParts<T> {
    pub n: T,
    pub head: T,
    pub low: T,
}

/// A float format (float32 or float64) with logarithms.
pub trait Logarithm: MathFloat {
    /// Returns the terms of `log(self + low)`, where `self` is a positive normal number and `low` is at most an ulp of `self`. `None` means
    /// a `low` of 0.
    fn log_parts<I: Isa>(self, low: Option<Self>) -> LogParts<Self>;
    /// Returns a subnormal number multiplied by a power of two that makes it normal, and the exponent of that power. Returns normal numbers
    /// unchanged, with exponent 0.
    fn scale_to_normal(self) -> (Self, Self);
    /// Returns `(m, n)` with `self = 2^n m`, where `m` is between sqrt(1/2) and sqrt(2).
    fn split_exponent(self) -> (Self, Self);
    /// Largest finite number.
    const MAX_FINITE: Self;
    /// `log10 2` as a sum: a number whose products with exponents are exact, and a correction.
    const LOG10_2_PARTS: [f64; 2];
    /// `log2 e` as an unevaluated sum of two numbers.
    const LOG2_E_PARTS: [f64; 2];
    /// `log10 e` as an unevaluated sum of two numbers.
    const LOG10_E_PARTS: [f64; 2];
}

impl Logarithm for f32 {
    const MAX_FINITE: f32 = f32::MAX;
    const LOG10_2_PARTS: [f64; 2] = c::LOG10_2_PARTS_F32;
    const LOG2_E_PARTS: [f64; 2] = c::LOG2_E_PARTS_F32;
    const LOG10_E_PARTS: [f64; 2] = c::LOG10_E_PARTS_F32;

    #[inline(always)]
    fn split_exponent(self) -> (f32, f32) {
        const ONE_BITS: u32 = 1f32.to_bits();
        const FIRST: u32 = std::f32::consts::FRAC_1_SQRT_2.to_bits();
        let exponent = self.to_bits().wrapping_add(ONE_BITS - FIRST) >> 23;
        let m = f32::from_bits(self.to_bits().wrapping_sub(exponent << 23).wrapping_add(ONE_BITS));
        (m, exponent as i32 as f32 - 127.0)
    }

    #[inline(always)]
    fn log_parts<I: Isa>(self, low: Option<f32>) -> LogParts<f32> {
        let (m, n) = self.split_exponent();
        let (f, f_low) = mantissa_minus_one(m, low, (-n).clamp_to(-126.0, 126.0).exp2_of_integer());
        let square = f * f;
        let (head, rest) = fast_two_sum(f, square * -0.5);
        let low = (square * f).madd::<I>(polynomial::<I, f32>(f, &c::LOG_COEFFICIENTS_F32), rest);
        LogParts { n, head, low: add_log_of_residue::<I, f32>(low, f, f_low) }
    }

    #[inline(always)]
    fn scale_to_normal(self) -> (f32, f32) {
        select_one_pair(self < f32::MIN_POSITIVE, (self * 16_777_216.0, 24.0), (self, 0.0))
    }
}

impl Logarithm for f64 {
    const MAX_FINITE: f64 = f64::MAX;
    const LOG10_2_PARTS: [f64; 2] = c::LOG10_2_PARTS_F64;
    const LOG2_E_PARTS: [f64; 2] = c::LOG2_E_PARTS_F64;
    const LOG10_E_PARTS: [f64; 2] = c::LOG10_E_PARTS_F64;

    #[inline(always)]
    fn split_exponent(self) -> (f64, f64) {
        split_exponent_at_mantissa(self, std::f64::consts::FRAC_1_SQRT_2.to_bits())
    }

    /// Computes the logarithm by `log(1 + f) = 2 atanh s` with `s = f / (2 + f)`, as fdlibm and Cody and Waite do. The division is faster
    /// than a table, which would take 16 loads for 8 numbers.
    #[inline(always)]
    fn log_parts<I: Isa>(self, low: Option<f64>) -> LogParts<f64> {
        let (m, n) = self.split_exponent();
        let (f, f_low) = mantissa_minus_one(m, low, (-n).clamp_to(-1022.0, 1022.0).exp2_of_integer());
        let s = f / (f + 2.0);
        let (z, half_square) = (s * s, f * f * 0.5);
        // The leading term `2 s` equals `f - f^2 / 2 + s f^2 / 2`. The difference of the first two terms is computed exactly, as `head +
        // rest`.
        let (head, rest) = fast_two_sum(f, -half_square);
        let tail = z.madd::<I>(polynomial::<I, f64>(z, &c::LOG_COEFFICIENTS_F64), half_square);
        LogParts { n, head, low: add_log_of_residue::<I, f64>(s.madd::<I>(tail, rest), f, f_low) }
    }

    #[inline(always)]
    fn scale_to_normal(self) -> (f64, f64) {
        select_one_pair(self < f64::MIN_POSITIVE, (self * 18_014_398_509_481_984.0, 54.0), (self, 0.0))
    }
}

/// A positive number `x = 2^n m` with the entry of `LOG_TABLE` for `m`: `inverse` is close to `1 / m`, and `log` is `-log(inverse)`. The
/// table holds inverses whose `log` is almost exactly a float64 (Gal & Bachelis, "An accurate elementary mathematical library", 1991).
pub struct LogTableEntry {
    pub n: f64,
    pub m: f64,
    pub inverse: f64,
    pub log: f64,
}

impl LogTableEntry {
    #[inline(always)]
    pub fn of(x: f64) -> LogTableEntry {
        let (m, n) = split_exponent_at_mantissa(x, c::LOG_TABLE_FIRST_MANTISSA);
        let shifted = x.to_bits().wrapping_sub(c::LOG_TABLE_FIRST_MANTISSA);
        let i = (shifted >> (52 - 7)) as usize % c::LOG_TABLE.len();
        let (inverse, log) = (c::LOG_TABLE[i][0], c::LOG_TABLE[i][1]);
        LogTableEntry { n, m, inverse, log }
    }
}

/// Returns `(m, n)` with `x = 2^n m`. `m` is at least the number with the bits `first`, which is in [1/2, 1), and less than twice that
/// number.
#[inline(always)]
fn split_exponent_at_mantissa(x: f64, first: u64) -> (f64, f64) {
    const ONE_BITS: u64 = 1f64.to_bits();
    let exponent = x.to_bits().wrapping_add(ONE_BITS - first) >> 52;
    let m = f64::from_bits(x.to_bits().wrapping_sub(exponent << 52).wrapping_add(ONE_BITS));
    // Converts the exponent to float64: its bits become the lowest mantissa bits of a large float64, from which a constant is subtracted.
    // Few SIMD levels have an instruction that converts 64-bit integers.
    const EXPONENT_CONVERSION_OFFSET: f64 = (1u64 << 52) as f64;
    (m, f64::from_bits(exponent | EXPONENT_CONVERSION_OFFSET.to_bits()) - (EXPONENT_CONVERSION_OFFSET + 1023.0))
}

/// Returns `m + low * scale - 1` and the rounding error of that value, or `m - 1` without an error if `low` is `None`.
#[inline(always)]
fn mantissa_minus_one<T: MathFloat>(m: T, low: Option<T>, scale: T) -> (T, Option<T>) {
    match low {
        None => (m - T::of(1.0), None),
        Some(low) => {
            let (f, f_low) = fast_two_sum(m - T::of(1.0), low * scale);
            (f, Some(f_low))
        }
    }
}

/// Returns `log + f_low / (1 + f)`, with `1 / (1 + f)` to first order in `f`.
#[inline(always)]
fn add_log_of_residue<I: Isa, T: MathFloat>(log: T, f: T, f_low: Option<T>) -> T {
    match f_low {
        None => log,
        Some(f_low) => log + (-f).madd::<I>(f_low, f_low),
    }
}

/// Returns the logarithm of `(x + low) / 2^extra`, for normal positive `x = 2^n m`, as `(n - extra) * scale_2 + log(m) * scale`. The
/// logarithms of 2 (`scale_2`) and of e (`scale`) in the requested base are unevaluated sums of two numbers. `None` means 0 for `low` and 1
/// for `scale`.
#[inline(always)]
fn log_of_normal_in_base<I: Isa, T: Logarithm>(x: T, low: Option<T>, extra: T, scale_2: [f64; 2], scale: Option<[f64; 2]>) -> T {
    let LogParts { n, head, low } = x.log_parts::<I>(low);
    let n = n - extra;
    let (head, low) = match scale {
        None => (head, low),
        Some([s, s_low]) => {
            let product = head * T::of(s);
            (product, low.madd::<I>(T::of(s), head.madd::<I>(T::of(s_low), head.fma::<I>(T::of(s), -product))))
        }
    };
    // `fast_two_sum` needs a first operand that is 0 or at least as large in magnitude as the second. The product `n * scale_2[0]` is
    // exact, and it is either 0 or larger in magnitude than `head`.
    let (sum, rest) = fast_two_sum(n * T::of(scale_2[0]), head);
    sum + (n.madd::<I>(T::of(scale_2[1]), low) + rest)
}

/// Returns the logarithm of any `x` in some base. In that base, `scale_2` is the logarithm of 2, and `scale` is the logarithm of e (`None`:
/// 1).
#[inline(always)]
fn log_in_base<I: Isa, T: Logarithm>(x: T, scale_2: [f64; 2], scale: Option<[f64; 2]>) -> T {
    let (normal, extra) = x.scale_to_normal();
    let log = log_of_normal_in_base::<I, T>(normal, None, extra, scale_2, scale);
    apply_log_special_cases(x, x, log)
}

/// Returns `log` for positive finite `argument`, -inf for 0, NaN for negative or NaN `argument`, and `x` for infinite `argument`.
#[inline(always)]
fn apply_log_special_cases<T: Logarithm>(argument: T, x: T, log: T) -> T {
    let zero = T::of(0.0);
    let positive = select(argument <= T::MAX_FINITE, log, x);
    let other = select(argument == zero, T::of(f64::NEG_INFINITY), T::of(f64::NAN));
    select(argument > zero, positive, other)
}

/// Returns the natural logarithm of `x`.
#[inline(always)]
pub fn log<I: Isa, T: Logarithm>(x: T) -> T {
    log_in_base::<I, T>(x, T::LN_2, None)
}

/// Returns the logarithm of `x` to base 2, which is exact for powers of 2.
#[inline(always)]
pub fn log2<I: Isa, T: Logarithm>(x: T) -> T {
    log_in_base::<I, T>(x, [1.0, 0.0], Some(T::LOG2_E_PARTS))
}

/// Returns the logarithm of `x` to base 10, which is exact for powers of 10.
#[inline(always)]
pub fn log10<I: Isa, T: Logarithm>(x: T) -> T {
    log_in_base::<I, T>(x, T::LOG10_2_PARTS, Some(T::LOG10_E_PARTS))
}

/// Returns `log(1 + u + u_low)` for finite `u > -1`.
#[inline(always)]
fn log_of_1_plus<I: Isa, T: Logarithm>(u: T, u_low: T) -> T {
    let (sum, rest) = two_sum(T::of(1.0), u);
    log_of_normal_in_base::<I, T>(sum, Some(rest + u_low), T::of(0.0), T::LN_2, None)
}

/// Returns `log(1 + x)`.
#[inline(always)]
pub fn log1p<I: Isa, T: Logarithm>(x: T) -> T {
    let log = log_of_1_plus::<I, T>(x, T::of(0.0));
    let log = apply_log_special_cases(x + T::of(1.0), x, log);
    select(x == T::of(0.0), x, log)
}

/// Returns whether 1 is negligible in `a^2 + 1`. `asinh a` is then `log(2 a)`, and the square might overflow.
#[inline(always)]
fn is_one_negligible_beside_square<T: Logarithm>(a: T) -> bool {
    a > T::of(T::EXPONENT_ABSORBING_ONE).exp2_of_integer()
}

/// Returns `log(x + sqrt(x^2 + 1))`, computed from `a = |x|` as `log(1 + a + a^2 / (1 + sqrt(a^2 + 1)))`.
#[inline(always)]
pub fn asinh<I: Isa, T: Logarithm>(x: T) -> T {
    let (a, one) = (x.abs(), T::of(1.0));
    let large = is_one_negligible_beside_square(a);
    let small = select(large, one, a);
    let square = small * small;
    let rest = square / (one + (square + one).sqrt());
    let (u, u_low) = fast_two_sum(small, rest);
    let (sum, sum_low) = two_sum(one, u);
    let argument = select(large, a, sum);
    let low = select(large, T::of(0.0), sum_low + u_low);
    let log = log_of_normal_in_base::<I, T>(argument, Some(low), T::of(select(large, -1.0, 0.0)), T::LN_2, None);
    select(a <= T::MAX_FINITE, log, a).copysign(x)
}

/// Returns `log(x + sqrt(x^2 - 1))`, computed as `log(1 + t + sqrt(2 t + t^2))` with `t = x - 1`.
#[inline(always)]
pub fn acosh<I: Isa, T: Logarithm>(x: T) -> T {
    let one = T::of(1.0);
    let large = is_one_negligible_beside_square(x);
    let t = select(large, one, x) - one;
    let square = t.madd::<I>(t, t + t);
    let root = square.sqrt();
    // The rounding error of the square root matters near `x = 1`. The small constant avoids 0/0 at `x = 1`.
    let root_low = (-root).fma::<I>(root, square) / (root + root + T::of(1e-30));
    let (u, u_low) = two_sum(root, t);
    let u_low = u_low + root_low;
    let (sum, sum_low) = two_sum(one, u);
    let argument = select(large, x, sum);
    let low = select(large, T::of(0.0), sum_low + u_low);
    let log = log_of_normal_in_base::<I, T>(argument, Some(low), T::of(select(large, -1.0, 0.0)), T::LN_2, None);
    let log = select(x <= T::MAX_FINITE, log, x);
    select(x < one, T::of(f64::NAN), log)
}

/// Returns `log((1 + x) / (1 - x)) / 2`, computed from `a = |x|` as half of `log(1 + 2a + 2a^2 / (1 - a))`.
#[inline(always)]
pub fn atanh<I: Isa, T: Logarithm>(x: T) -> T {
    let (a, one) = (x.abs(), T::of(1.0));
    let inside = select(a < one, a, T::of(0.5));
    let twice = inside + inside;
    let (u, u_low) = two_sum(twice, twice * inside / (one - inside));
    let log = T::of(0.5) * log_of_1_plus::<I, T>(u, u_low);
    let outside = select(a == one, T::of(f64::INFINITY), T::of(f64::NAN));
    select(a < one, log, outside).copysign(x)
}
