//! Integer operations whose results in NumPy 2 differ from the results of Rust's operators.

/// Arithmetic of integers with NumPy's results: it wraps and never panics.
pub(crate) trait IntArithmetic: Copy {
    /// Returns `floor(self / b)`, or 0 for `b = 0`. `MIN / -1` wraps.
    fn floor_divide(self, b: Self) -> Self;
    /// Returns `self - floor(self / b) * b`, which has the sign of `b`, or 0 for `b = 0`.
    fn remainder(self, b: Self) -> Self;
    /// Returns `self - trunc(self / b) * b`, which has the sign of `self`, or 0 for `b = 0`.
    fn truncated_remainder(self, b: Self) -> Self;
    /// Returns the greatest common divisor of the magnitudes; 0 for two zeros.
    fn gcd(self, b: Self) -> Self;
    /// Returns the least common multiple of the magnitudes, wrapping; 0 if either is 0.
    fn lcm(self, b: Self) -> Self;
    /// Returns `self ** b`, wrapping. For negative `b` the result is `1 / self**|b|` truncated (0 for `self` = 0).
    fn power(self, b: Self) -> Self;
    /// Returns `1 / self` truncated, or 0 for 0.
    fn reciprocal(self) -> Self;
    /// Returns `self << b`, or 0 if `b` is negative or at least the number of bits.
    fn left_shift(self, b: Self) -> Self;
    /// Returns `self >> b`. If `b` is negative or at least the number of bits, every bit of the result is the sign bit (0 for unsigned
    /// types).
    fn right_shift(self, b: Self) -> Self;
    /// Returns the sign: -1, 0 or 1.
    fn sign(self) -> Self;
    /// Returns `|self|`. `MIN`, whose absolute value is not representable, gives `MIN`.
    fn abs(self) -> Self;
}

macro_rules! common {
    ($magnitude:ident) => {
        #[inline(always)]
        fn truncated_remainder(self, b: Self) -> Self {
            if b == 0 { 0 } else { self.wrapping_rem(b) }
        }
        #[inline(always)]
        fn gcd(self, b: Self) -> Self {
            let (mut a, mut b) = (self.$magnitude(), b.$magnitude());
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a as Self
        }
        #[inline(always)]
        fn lcm(self, b: Self) -> Self {
            // The greatest common divisor is 0 for two zeros. The divisor may be the magnitude of `MIN`, which only the unsigned type
            // holds.
            let divisor = self.gcd(b).$magnitude();
            self.$magnitude().checked_div(divisor).unwrap_or(0).wrapping_mul(b.$magnitude()) as Self
        }
        #[inline(always)]
        fn left_shift(self, b: Self) -> Self {
            // A negative `b` converts to a large unsigned count, so one comparison covers both cases.
            if (b as u64) < Self::BITS as u64 { self << b } else { 0 }
        }
        #[inline(always)]
        fn power(self, b: Self) -> Self {
            #[allow(unused_comparisons)]
            if b < 0 {
                return match self.wrapping_add(1) {
                    2 => 1, // 1 ** b
                    0 => {
                        if b & 1 == 0 {
                            1
                        } else {
                            self
                        }
                    } // (-1) ** b
                    _ => 0,
                };
            }
            let (mut result, mut square, mut rest) = (1 as Self, self, b);
            while rest != 0 {
                if rest & 1 == 1 {
                    result = result.wrapping_mul(square);
                }
                square = square.wrapping_mul(square);
                rest >>= 1;
            }
            result
        }
    };
}

// Signed 16-bit integers are divided as 32-bit integers, which takes half the time.
macro_rules! signed {
    ($($t:ty as $wide:ty),*) => {$(
        impl IntArithmetic for $t {
            common!(unsigned_abs);
            #[inline(always)]
            fn floor_divide(self, b: Self) -> Self {
                let (a, b) = (self as $wide, b as $wide);
                if b == 0 { return 0 }
                let quotient = a.wrapping_div(b);
                // Rust truncates towards zero. The floor is one less if the signs differ and the remainder is not zero.
                (if (a ^ b) < 0 && quotient.wrapping_mul(b) != a { quotient - 1 } else { quotient }) as $t
            }
            #[inline(always)]
            fn remainder(self, b: Self) -> Self {
                let (a, b) = (self as $wide, b as $wide);
                if b == 0 { return 0 }
                let rest = a.wrapping_rem(b);
                (if rest != 0 && (rest ^ b) < 0 { rest + b } else { rest }) as $t
            }
            #[inline(always)]
            fn reciprocal(self) -> Self {
                if self == 1 || self == -1 { self } else { 0 }
            }
            #[inline(always)]
            fn right_shift(self, b: Self) -> Self {
                self >> if (b as u64) < Self::BITS as u64 { b } else { Self::BITS as Self - 1 }
            }
            #[inline(always)]
            fn sign(self) -> Self { self.signum() }
            #[inline(always)]
            fn abs(self) -> Self { self.wrapping_abs() }
        }
    )*};
}

macro_rules! unsigned {
    ($($t:ty),*) => {$(
        impl IntArithmetic for $t {
            common!(magnitude);
            #[inline(always)]
            fn floor_divide(self, b: Self) -> Self { self.checked_div(b).unwrap_or(0) }
            #[inline(always)]
            fn remainder(self, b: Self) -> Self { self.checked_rem(b).unwrap_or(0) }
            #[inline(always)]
            fn reciprocal(self) -> Self { (self == 1) as Self }
            #[inline(always)]
            fn right_shift(self, b: Self) -> Self {
                if (b as u64) < Self::BITS as u64 { self >> b } else { 0 }
            }
            #[inline(always)]
            fn sign(self) -> Self { (self != 0) as Self }
            #[inline(always)]
            fn abs(self) -> Self { self }
        }
    )*};
}

/// Absolute values of unsigned integers, so that the macro `common` can call a method in place of `unsigned_abs`, which only signed
/// integers have.
trait UnsignedAbs: Copy {
    fn magnitude(self) -> Self {
        self
    }
}
impl UnsignedAbs for u8 {}
impl UnsignedAbs for u16 {}
impl UnsignedAbs for u32 {}
impl UnsignedAbs for u64 {}

signed!(i8 as i8, i16 as i32, i32 as i32, i64 as i64);
unsigned!(u8, u16, u32, u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division() {
        assert_eq!([7i32, -7, 7, -7].map(|a| a.floor_divide(2)), [3, -4, 3, -4]);
        assert_eq!((7i32.floor_divide(-2), 7i32.remainder(-2), (-7i32).remainder(2)), (-4, -1, 1));
        assert_eq!((i8::MIN.floor_divide(-1), i8::MIN.remainder(-1), 5i8.floor_divide(0), 5i8.remainder(0)), (i8::MIN, 0, 0, 0));
        assert_eq!((200u8.floor_divide(7), 200u8.remainder(7), 1u64.remainder(0)), (28, 4, 0));
    }

    #[test]
    fn divisors() {
        assert_eq!((12i32.gcd(-8), 0i32.gcd(0), i8::MIN.gcd(0), i8::MIN.gcd(i8::MIN), 48u8.gcd(180)), (4, 0, i8::MIN, i8::MIN, 12));
        assert_eq!(((-4i32).lcm(6), 0i32.lcm(5), 0u8.lcm(0), i8::MIN.lcm(1), 100i8.lcm(77)), (12, 0, 0, i8::MIN, 20));
        assert_eq!(((-7i32).truncated_remainder(3), 7i32.truncated_remainder(-3), i8::MIN.truncated_remainder(-1)), (-1, 1, 0));
        assert_eq!((5u8.truncated_remainder(0), 200u8.truncated_remainder(7)), (0, 4));
    }

    #[test]
    fn powers() {
        assert_eq!((3i32.power(4), 2i8.power(8), (-2i64).power(3)), (81, 0, -8));
        assert_eq!((1i32.power(-5), (-1i32).power(-5), (-1i32).power(-4), 2i32.power(-1), 0i32.power(-1)), (1, -1, 1, 0, 0));
        assert_eq!((0u8.power(0), 255u8.power(2), u64::MAX.power(3)), (1, 1, u64::MAX));
    }

    #[test]
    fn shifts() {
        assert_eq!((1i8.left_shift(7), 1i8.left_shift(8), 1i8.left_shift(-1)), (i8::MIN, 0, 0));
        assert_eq!(((-8i32).right_shift(1), (-8i32).right_shift(40), (-8i32).right_shift(-1), 8i32.right_shift(32)), (-4, -1, -1, 0));
        assert_eq!((255u8.right_shift(4), 255u8.right_shift(8)), (15, 0));
    }
}
