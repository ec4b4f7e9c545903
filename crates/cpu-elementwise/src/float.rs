//! Floating-point operations whose results in NumPy 2 differ from Rust's.

/// Real arithmetic as in NumPy.
pub(crate) trait Real: Copy {
    /// `floor(a / b)` as in `npy_divmod`: derived from the exact remainder, so that it agrees with [`Real::remainder`].
    fn floor_divide(self, b: Self) -> Self;
    /// Remainder with the sign of `b`; `a % inf` is `a` or inf, `a % 0` is NaN.
    fn remainder(self, b: Self) -> Self;
    /// Maximum; the first NaN if either is NaN.
    fn larger(self, b: Self) -> Self;
    /// Minimum; the first NaN if either is NaN.
    fn smaller(self, b: Self) -> Self;
    /// Sign: -1, +0 or 1; NaN for NaN.
    fn sign(self) -> Self;
    /// Degrees to radians.
    fn deg2rad(self) -> Self;
    /// Radians to degrees.
    fn rad2deg(self) -> Self;
}

macro_rules! real {
    ($($t:ident),*) => {$(
        impl Real for $t {
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
            // NumPy computes the constant in the dtype. In float32 it is one ulp below the closest value, which `to_degrees` uses.
            #[inline(always)]
            fn rad2deg(self) -> Self {
                self * (180.0 / std::$t::consts::PI)
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
    fn nan_wins() {
        assert!(f32::NAN.larger(1.0).is_nan() && 1.0f32.larger(f32::NAN).is_nan() && 1.0f32.smaller(f32::NAN).is_nan());
        assert_eq!((2.0f32.larger(3.0), 2.0f32.smaller(3.0), (-0.0f32).sign().to_bits()), (3.0, 2.0, 0));
    }
}
