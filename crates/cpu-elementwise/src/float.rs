//! Operations on real floats whose results in NumPy 2 differ from the results of Rust's operators.

/// Arithmetic of float32 and float64 with NumPy's results.
pub(crate) trait FloatArithmetic: Copy {
    /// Returns `floor(self / b)` as `npy_divmod` does: derived from the exact remainder, so that it agrees with
    /// [`FloatArithmetic::remainder`].
    fn floor_divide(self, b: Self) -> Self;
    /// Returns the remainder with the sign of `b`. If `self` is finite and `b` infinite, the remainder is `self`, or `b` if the signs
    /// differ. `self % 0` is NaN.
    fn remainder(self, b: Self) -> Self;
    /// Returns the maximum, or the first NaN if either operand is NaN.
    fn larger(self, b: Self) -> Self;
    /// Returns the minimum, or the first NaN if either operand is NaN.
    fn smaller(self, b: Self) -> Self;
    /// Returns the sign: -1, +0 or 1, and NaN for NaN.
    fn sign(self) -> Self;
    /// Converts degrees to radians.
    fn deg2rad(self) -> Self;
    /// Converts radians to degrees.
    fn rad2deg(self) -> Self;
    /// Returns the fractional part, with the sign of `self`. It is 0 for infinities.
    fn fraction(self) -> Self;
    /// Returns the mantissa in `[0.5, 1)` with the sign of `self` (`frexp`). Zeros, infinities and NaN are unchanged.
    fn mantissa(self) -> Self;
    /// Returns the exponent of two that belongs to [`FloatArithmetic::mantissa`] (`frexp`). It is 0 for zeros, infinities and NaN.
    fn exponent(self) -> i32;
    /// Returns `self * 2**exponent`, rounded once (`ldexp`). `exponent` is an integer or an infinity.
    fn times_power_of_2(self, exponent: Self) -> Self;
}

macro_rules! real {
    ($($t:ident),*) => {$(
        impl FloatArithmetic for $t {
            #[inline(always)]
            fn floor_divide(self, b: Self) -> Self {
                if b == 0.0 {
                    return self / b;
                }
                let rest = self % b;
                let quotient = (self - rest) / b;
                let quotient = if rest != 0.0 && (b < 0.0) != (rest < 0.0) { quotient - 1.0 } else { quotient };
                if quotient == 0.0 {
                    return (0.0 as $t).copysign(self / b);
                }
                let floor = quotient.floor();
                if quotient - floor > 0.5 { floor + 1.0 } else { floor }
            }
            #[inline(always)]
            fn remainder(self, b: Self) -> Self {
                let rest = self % b;
                match () {
                    _ if b == 0.0 || rest.is_nan() => rest,
                    _ if rest == 0.0 => rest.copysign(b),
                    _ if (b < 0.0) != (rest < 0.0) => rest + b,
                    _ => rest,
                }
            }
            #[inline(always)]
            fn larger(self, b: Self) -> Self {
                if self >= b || self.is_nan() { self } else { b }
            }
            #[inline(always)]
            fn smaller(self, b: Self) -> Self {
                if self <= b || self.is_nan() { self } else { b }
            }
            #[inline(always)]
            fn sign(self) -> Self {
                if self.is_nan() { self } else { ((self > 0.0) as i8 - (self < 0.0) as i8) as $t }
            }
            #[inline(always)]
            fn deg2rad(self) -> Self {
                self * (std::$t::consts::PI / 180.0)
            }
            // NumPy computes 180 / pi in the dtype. In float32 that is one ulp below the closest value, which `to_degrees` uses.
            #[inline(always)]
            fn rad2deg(self) -> Self {
                self * (180.0 / std::$t::consts::PI)
            }
            #[inline(always)]
            fn fraction(self) -> Self {
                let fraction = if self.is_infinite() { 0.0 } else { self - self.trunc() };
                fraction.copysign(self)
            }
            #[inline(always)]
            fn mantissa(self) -> Self {
                const FIELD: u32 = <$t>::MANTISSA_DIGITS - 1;
                const HALF: $t = 0.5;
                let normal = if self.is_subnormal() { self * (1u64 << FIELD) as $t } else { self };
                let fraction_and_sign = normal.to_bits() & !(<$t>::INFINITY.to_bits());
                if self == 0.0 || !self.is_finite() { self } else { <$t>::from_bits(fraction_and_sign | HALF.to_bits()) }
            }
            #[inline(always)]
            fn exponent(self) -> i32 {
                const FIELD: u32 = <$t>::MANTISSA_DIGITS - 1;
                let (normal, scale) = if self.is_subnormal() { (self * (1u64 << FIELD) as $t, FIELD as i32) } else { (self, 0) };
                let biased = ((normal.to_bits() & <$t>::INFINITY.to_bits()) >> FIELD) as i32;
                if self == 0.0 || !self.is_finite() { 0 } else { biased - (<$t>::MAX_EXP - 2) - scale }
            }
            // Three power-of-two factors suffice for every exponent. For exponents below the normal range, the last factor is less than
            // `2^-MANTISSA_DIGITS`. If `self` times the first two factors is subnormal, and so possibly rounded, the last factor makes it
            // zero. Hence no result other than zero is rounded twice.
            #[inline(always)]
            fn times_power_of_2(self, exponent: Self) -> Self {
                const HIGHEST: i32 = <$t>::MAX_EXP - 1;
                const LOWEST: i32 = 1 - HIGHEST;
                let power = |n: i32| <$t>::from_bits((((HIGHEST + n) as u64) << (<$t>::MANTISSA_DIGITS - 1)) as _);
                let limit = (4 * HIGHEST) as $t;
                let (mut result, mut rest) = (self, exponent.clamp(-limit, limit) as i32);
                for _ in 0..2 {
                    let n = match () {
                        _ if rest > HIGHEST => HIGHEST,
                        _ if rest < LOWEST => LOWEST + <$t>::MANTISSA_DIGITS as i32,
                        _ => 0,
                    };
                    (result, rest) = (result * power(n), rest - n);
                }
                result * power(rest.clamp(LOWEST, HIGHEST))
            }
        }
    )*};
}
real!(f32, f64);

#[cfg(test)]
mod tests {
    use super::*;

    const INF: f64 = f64::INFINITY;

    #[test]
    fn divmod() {
        let both = |a: f64, b: f64| (a.floor_divide(b), a.remainder(b));
        assert_eq!(both(7.5, 2.0), (3.0, 1.5));
        assert_eq!(both(-7.5, 2.0), (-4.0, 0.5));
        assert_eq!(both(7.5, -2.0), (-4.0, -0.5));
        assert_eq!(both(1.0, 0.1), (9.0, 1.0 % 0.1));
        assert_eq!(both(-1.0, INF), (-1.0, INF));
        assert_eq!(both(1.0, INF), (0.0, 1.0));
        assert_eq!(1.0f64.floor_divide(0.0), INF);
        assert!(1.0f64.remainder(0.0).is_nan() && INF.floor_divide(2.0).is_nan() && INF.remainder(2.0).is_nan());
        assert!((-0.0f64).floor_divide(3.0).is_sign_negative() && 4.0f64.remainder(-2.0).is_sign_negative());
    }

    #[test]
    fn parts_of_numbers() {
        let parts = |x: f64| (x.mantissa(), x.exponent());
        assert_eq!((parts(6.0), parts(-0.25), parts(1.0)), ((0.75, 3), (-0.5, -1), (0.5, 1)));
        assert_eq!((parts(5e-324), parts(f64::MIN_POSITIVE), parts(f64::MAX).1), ((0.5, -1073), (0.5, -1021), 1024));
        assert_eq!((parts(0.0), parts(-INF)), ((0.0, 0), (-INF, 0)));
        assert!(f64::NAN.mantissa().is_nan() && f64::NAN.exponent() == 0 && (-0.0f64).mantissa().is_sign_negative());
        assert_eq!((1e-45f32.mantissa(), 1e-45f32.exponent(), f32::MAX.exponent()), (0.5, -148, 128));
        assert_eq!((2.5f32.fraction(), (-2.5f32).fraction(), INF.fraction()), (0.5, -0.5, 0.0));
        assert!((-3.0f64).fraction().is_sign_negative() && (-INF).fraction().is_sign_negative() && f64::NAN.fraction().is_nan());
    }

    #[test]
    fn powers_of_2_round_once() {
        assert_eq!((1.5f64.times_power_of_2(3.0), 3.0f32.times_power_of_2(-1.0), 0.0f64.times_power_of_2(INF)), (12.0, 1.5, 0.0));
        assert_eq!((5e-324.times_power_of_2(2000.0), f64::MAX.times_power_of_2(-2097.0)), (2f64.powi(926), 1e-323));
        assert_eq!(
            (1.0f64.times_power_of_2(-1074.0), 1.0f64.times_power_of_2(-1075.0), 1.5f64.times_power_of_2(-1075.0)),
            (5e-324, 0.0, 5e-324)
        );
        assert_eq!(
            (1.0f64.times_power_of_2(1024.0), (-1.0f64).times_power_of_2(-INF), 1e-45f32.times_power_of_2(276.0)),
            (INF, 0.0, 2f32.powi(127))
        );
        // The result is slightly more than half of the least subnormal number. One rounding rounds it up; two roundings would give half of
        // that number, which rounds to even (zero).
        let x = f64::from_bits(1f64.to_bits() + 1);
        assert_eq!(x.times_power_of_2(-1075.0), 5e-324);
    }

    #[test]
    fn nan_wins() {
        assert!(f32::NAN.larger(1.0).is_nan() && 1.0f32.larger(f32::NAN).is_nan() && 1.0f32.smaller(f32::NAN).is_nan());
        assert_eq!((2.0f32.larger(3.0), 2.0f32.smaller(3.0), (-0.0f32).sign().to_bits()), (3.0, 2.0, 0));
    }
}
