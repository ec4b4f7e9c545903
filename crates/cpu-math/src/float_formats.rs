//! The float formats float32 and float64, and their common building blocks: polynomials, error-free sums and products, powers of two.
//! All functions are inlined into vectorised loops, so none may branch or call a function that is not inlined.

use std::ops::{Add, Div, Mul, Neg, Sub};

use cuprum_cpu_base::simd::Isa;

use crate::coefficients as c;

/// A float format: float32 or float64.
pub trait MathFloat:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// ln 2 as a sum: a number whose products with exponents are exact, and a correction.
    const LN_2: [f64; 2];
    /// pi/2 as an unevaluated sum of three numbers of this format.
    const HALF_PI_PARTS: [f64; 3];
    /// Arguments above which `e^x` is infinite and below which it is zero, then the two corresponding limits for `2^x`.
    const EXP_ARGUMENT_LIMITS: [f64; 4];
    /// The smallest power of two from which on all numbers of the format are integers.
    const MIN_MAGNITUDE_WITHOUT_FRACTION: f64;
    /// An exponent `e` such that `2^e + 1` rounds to `2^e`.
    const EXPONENT_ABSORBING_ONE: f64;
    /// Parameters of `hypot`, as exponents of two: the scale, and the upper and lower limit beyond which numbers are scaled.
    const HYPOT_SCALE_EXPONENTS: [f64; 3];
    /// The smallest argument of trigonometric functions that needs the reduction of the module `large_arguments`.
    const MIN_LARGE_ARGUMENT: f64;
    /// Coefficients of the polynomial of `exp`, lowest degree first (see `coefficients`).
    const EXP_COEFFICIENTS: &'static [f64];
    /// Coefficients of the polynomial of `exp2`, lowest degree first.
    const EXP2_COEFFICIENTS: &'static [f64];
    /// Coefficients of the polynomial of `sinh`, lowest degree first.
    const SINH_COEFFICIENTS: &'static [f64];
    /// Coefficients of the polynomial of `cosh`, lowest degree first.
    const COSH_COEFFICIENTS: &'static [f64];
    /// Coefficients of the polynomial of `sin`, lowest degree first.
    const SIN_COEFFICIENTS: &'static [f64];
    /// Coefficients of the polynomial of `cos`, lowest degree first.
    const COS_COEFFICIENTS: &'static [f64];
    /// Coefficients of the polynomial of `atan`, lowest degree first.
    const ATAN_COEFFICIENTS: &'static [f64];
    /// Coefficients of the polynomial of `asin`, lowest degree first.
    const ASIN_COEFFICIENTS: &'static [f64];

    /// Converts a float64 to this format, rounding to nearest.
    fn of(x: f64) -> Self;
    /// Converts to float64, exactly.
    fn to_f64(self) -> f64;
    /// Returns the absolute value.
    fn abs(self) -> Self;
    /// Returns the square root.
    fn sqrt(self) -> Self;
    /// Returns `self` with the sign bit of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// Returns whether the sign bit is set.
    fn is_sign_bit_set(self) -> bool;
    /// Returns `self * a + b`, with one rounding or two, whichever is faster.
    fn madd<I: Isa>(self, a: Self, b: Self) -> Self;
    /// Returns `self * a + b` with an exact product, so that cancellation loses no bits.
    fn fma<I: Isa>(self, a: Self, b: Self) -> Self;
    /// Returns `self` rounded to an integer (ties to even), as a number and as a `QuarterTurnCount`. `|self|` must be at most half of
    /// [`MathFloat::MIN_MAGNITUDE_WITHOUT_FRACTION`].
    fn round_to_quarter_turns(self) -> (Self, QuarterTurnCount<Self>);
    /// Returns `2^self` for an integer `self` in the range of normal exponents.
    fn exp2_of_integer(self) -> Self;
    /// Returns `self`, negated if `x` is negative.
    fn negate_if_negative(self, x: Self) -> Self;
    /// Returns `self`, negated if `x` is negative and the bit pattern of `n` is odd.
    fn negate_if_negative_and_odd(self, x: Self, n: Self) -> Self;
    /// Returns `self`, negated if the quadrant `turn` is the third or fourth.
    fn apply_quadrant_sign(self, turn: QuarterTurnCount<Self>) -> Self;
    /// Returns whether the quadrant `turn` is odd (the second or fourth).
    fn is_odd_quadrant(turn: QuarterTurnCount<Self>) -> bool;
    /// Returns the quadrant after `turn`.
    fn next_quadrant(turn: QuarterTurnCount<Self>) -> QuarterTurnCount<Self>;

    /// Returns the nearest integer, ties to even. `|self|` must be at most half of [`MathFloat::MIN_MAGNITUDE_WITHOUT_FRACTION`].
    #[inline(always)]
    fn nearest_integer(self) -> Self {
        self.round_to_quarter_turns().0
    }

    /// Returns `self * 2^n` with one rounding, for integers `n` such that `n / 2` is a normal exponent.
    #[inline(always)]
    fn scale_by_exp2<I: Isa>(self, n: Self) -> Self {
        let half = (n * Self::of(0.5)).nearest_integer();
        self * half.exp2_of_integer() * (n - half).exp2_of_integer()
    }

    /// Returns `self` clamped to `low..=high`. NaN stays NaN.
    #[inline(always)]
    fn clamp_to(self, low: f64, high: f64) -> Self {
        let (low, high) = (Self::of(low), Self::of(high));
        let x = select(self < low, low, self);
        select(x > high, high, x)
    }
}

/// A number of quarter turns (multiples of pi/2). The number is stored with a large constant added, so that the lowest two bits of the bit
/// pattern are the quadrant.
#[derive(Clone, Copy)]
pub struct QuarterTurnCount<T>(T);

macro_rules! real {
    ($t:ty, $bits:ty, $mantissa:literal, $bias:literal, $exact:expr, { $($name:ident = $value:expr;)* }) => {
        impl MathFloat for $t {
            $(const $name: real!(@type $name) = $value;)*

            #[inline(always)]
            fn of(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn abs(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                self.copysign(sign)
            }
            #[inline(always)]
            fn is_sign_bit_set(self) -> bool {
                self.is_sign_negative()
            }
            #[inline(always)]
            fn madd<I: Isa>(self, a: Self, b: Self) -> Self {
                if I::HAS_FMA { self.mul_add(a, b) } else { self * a + b }
            }
            #[inline(always)]
            fn fma<I: Isa>(self, a: Self, b: Self) -> Self {
                if I::HAS_FMA { self.mul_add(a, b) } else { $exact(self, a, b) }
            }
            #[inline(always)]
            fn round_to_quarter_turns(self) -> (Self, QuarterTurnCount<Self>) {
                // 1.5 * 2^(number of mantissa bits). A sum with this number has no fraction bits, so the addition rounds to an integer.
                const ROUNDING_SHIFT: $t = (3u64 << ($mantissa - 1)) as $t;
                let shifted = self + ROUNDING_SHIFT;
                (shifted - ROUNDING_SHIFT, QuarterTurnCount(shifted))
            }
            #[inline(always)]
            fn exp2_of_integer(self) -> Self {
                const ROUNDING_SHIFT: $t = (3u64 << ($mantissa - 1)) as $t + $bias;
                <$t>::from_bits((self + ROUNDING_SHIFT).to_bits() << $mantissa)
            }
            #[inline(always)]
            fn negate_if_negative(self, x: Self) -> Self {
                <$t>::from_bits(self.to_bits() ^ (x.to_bits() & (-0.0 as $t).to_bits()))
            }
            #[inline(always)]
            fn negate_if_negative_and_odd(self, x: Self, n: Self) -> Self {
                <$t>::from_bits(self.to_bits() ^ (x.to_bits() & n.to_bits() << (<$bits>::BITS - 1)))
            }
            #[inline(always)]
            fn apply_quadrant_sign(self, turn: QuarterTurnCount<Self>) -> Self {
                <$t>::from_bits(self.to_bits() ^ (turn.0.to_bits() & 2) << (<$bits>::BITS - 2))
            }
            #[inline(always)]
            fn is_odd_quadrant(turn: QuarterTurnCount<Self>) -> bool {
                turn.0.to_bits() & 1 != 0
            }
            #[inline(always)]
            fn next_quadrant(turn: QuarterTurnCount<Self>) -> QuarterTurnCount<Self> {
                QuarterTurnCount(<$t>::from_bits(turn.0.to_bits().wrapping_add(1)))
            }
        }
    };
    (@type LN_2) => { [f64; 2] };
    (@type HALF_PI_PARTS) => { [f64; 3] };
    (@type EXP_ARGUMENT_LIMITS) => { [f64; 4] };
    (@type MIN_MAGNITUDE_WITHOUT_FRACTION) => { f64 };
    (@type EXPONENT_ABSORBING_ONE) => { f64 };
    (@type HYPOT_SCALE_EXPONENTS) => { [f64; 3] };
    (@type MIN_LARGE_ARGUMENT) => { f64 };
    (@type $name:ident) => { &'static [f64] };
}

real!(f32, u32, 23, 127.0, fma_with_exact_product_f32, {
    LN_2 = c::LN_2_PARTS_F32;
    HALF_PI_PARTS = c::HALF_PI_PARTS_F32;
    EXP_ARGUMENT_LIMITS = [89.0, -104.0, 129.0, -151.0];
    MIN_MAGNITUDE_WITHOUT_FRACTION = 8_388_608.0;
    EXPONENT_ABSORBING_ONE = 30.0;
    HYPOT_SCALE_EXPONENTS = [90.0, 63.0, -50.0];
    MIN_LARGE_ARGUMENT = 1e5;
    EXP_COEFFICIENTS = &c::EXP_COEFFICIENTS_F32;
    EXP2_COEFFICIENTS = &c::EXP2_COEFFICIENTS_F32;
    SINH_COEFFICIENTS = &c::SINH_COEFFICIENTS_F32;
    COSH_COEFFICIENTS = &c::COSH_COEFFICIENTS_F32;
    SIN_COEFFICIENTS = &c::SIN_COEFFICIENTS_F32;
    COS_COEFFICIENTS = &c::COS_COEFFICIENTS_F32;
    ATAN_COEFFICIENTS = &c::ATAN_COEFFICIENTS_F32;
    ASIN_COEFFICIENTS = &c::ASIN_COEFFICIENTS_F32;
});

real!(f64, u64, 52, 1023.0, fma_with_exact_product_f64, {
    LN_2 = c::LN_2_PARTS_F64;
    HALF_PI_PARTS = c::HALF_PI_PARTS_F64;
    EXP_ARGUMENT_LIMITS = [710.0, -746.0, 1025.0, -1080.0];
    MIN_MAGNITUDE_WITHOUT_FRACTION = 4_503_599_627_370_496.0;
    EXPONENT_ABSORBING_ONE = 60.0;
    HYPOT_SCALE_EXPONENTS = [600.0, 511.0, -450.0];
    MIN_LARGE_ARGUMENT = 1e9;
    EXP_COEFFICIENTS = &c::EXP_COEFFICIENTS_F64;
    EXP2_COEFFICIENTS = &c::EXP2_COEFFICIENTS_F64;
    SINH_COEFFICIENTS = &c::SINH_COEFFICIENTS_F64;
    COSH_COEFFICIENTS = &c::COSH_COEFFICIENTS_F64;
    SIN_COEFFICIENTS = &c::SIN_COEFFICIENTS_F64;
    COS_COEFFICIENTS = &c::COS_COEFFICIENTS_F64;
    ATAN_COEFFICIENTS = &c::ATAN_COEFFICIENTS_F64;
    ASIN_COEFFICIENTS = &c::ASIN_COEFFICIENTS_F64;
});

/// Returns `a` if `condition` holds, otherwise `b`. Both values are computed: a branch, even one that LLVM removes later, can duplicate all
/// code after the branch.
#[inline(always)]
pub fn select<T>(condition: bool, a: T, b: T) -> T {
    std::hint::select_unpredictable(condition, a, b)
}

/// Returns one of two pairs: `a` if `condition` holds, otherwise `b`. Compiles without a branch, like [`select`].
#[inline(always)]
pub fn select_one_pair<T>(condition: bool, a: (T, T), b: (T, T)) -> (T, T) {
    (select(condition, a.0, b.0), select(condition, a.1, b.1))
}

/// Returns `a * b + c` with an exact product, for targets without fused multiply-add.
#[inline(always)]
fn fma_with_exact_product_f32(a: f32, b: f32, c: f32) -> f32 {
    (a as f64 * b as f64 + c as f64) as f32
}

/// Returns `a * b + c` with an exact product (Dekker's product, Knuth's sum), for targets without fused multiply-add.
#[inline(always)]
fn fma_with_exact_product_f64(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let ((ah, al), (bh, bl)) = (split_mantissa(a), split_mantissa(b));
    let error = ((ah * bh - product) + ah * bl + al * bh) + al * bl;
    let (sum, rest) = two_sum(product, c);
    sum + (rest + error)
}

/// Returns `x` as the sum of two numbers, which have the upper and the lower half of its mantissa bits (Veltkamp).
#[inline(always)]
fn split_mantissa(x: f64) -> (f64, f64) {
    let t = x * 134_217_729.0; // Veltkamp's constant, 2^27 + 1
    let high = t - (t - x);
    (high, x - high)
}

/// Returns `a + b` rounded, and the rounding error of that sum (Knuth).
#[inline(always)]
pub fn two_sum<T: MathFloat>(a: T, b: T) -> (T, T) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// Returns `a + b` rounded, and the rounding error of that sum. Needs `|a| >= |b|` or `a == 0` (Dekker).
#[inline(always)]
pub fn fast_two_sum<T: MathFloat>(a: T, b: T) -> (T, T) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// Returns `(a + a_low) / (b + b_low)`, with an error slightly above half an ulp.
#[inline(always)]
pub fn divide_pairs<I: Isa, T: MathFloat>((a, a_low): (T, T), (b, b_low): (T, T)) -> T {
    let inverse = T::of(1.0) / b;
    let quotient = a * inverse;
    let rest = (-quotient).fma::<I>(b, a) + (-quotient).madd::<I>(b_low, a_low);
    rest.madd::<I>(inverse, quotient)
}

/// Returns `c[0] + c[1] x + c[2] x^2 + ...`. Groups of four terms are computed independently (Estrin) and joined by Horner's rule.
#[inline(always)]
pub fn polynomial<I: Isa, T: MathFloat>(x: T, c: &[f64]) -> T {
    let x2 = x * x;
    let x4 = x2 * x2;
    let last = (c.len() - 1) / 4;
    let mut sum = polynomial_group::<I, T>(x, x2, c, 4 * last);
    for i in (0..last).rev() {
        sum = sum.madd::<I>(x4, polynomial_group::<I, T>(x, x2, c, 4 * i));
    }
    sum
}

/// Returns up to four terms of a polynomial, `c[i] + c[i + 1] x + ...`; `x2` is `x^2`.
#[inline(always)]
fn polynomial_group<I: Isa, T: MathFloat>(x: T, x2: T, c: &[f64], i: usize) -> T {
    match c.len() - i {
        1 | 2 => polynomial_pair::<I, T>(x, c, i),
        _ => polynomial_pair::<I, T>(x, c, i + 2).madd::<I>(x2, polynomial_pair::<I, T>(x, c, i)),
    }
}

/// Returns up to two terms of a polynomial, `c[i] + c[i + 1] x`.
#[inline(always)]
fn polynomial_pair<I: Isa, T: MathFloat>(x: T, c: &[f64], i: usize) -> T {
    match c.len() - i {
        1 => T::of(c[i]),
        _ => T::of(c[i + 1]).madd::<I>(x, T::of(c[i])),
    }
}
