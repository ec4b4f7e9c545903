//! Element arithmetic of reductions and scans, for every dtype.

use cuprum_core::{Complex, Element};

/// Element types with the arithmetic of reductions.
pub(crate) trait Arithmetic: Element {
    /// Returns `self + b`. Integers wrap. The sum of bools is their logical or.
    fn plus(self, b: Self) -> Self;
    /// Returns `self * b`. Integers wrap. The product of bools is their logical and.
    fn times(self, b: Self) -> Self;
    /// Returns whether the value, or its real or imaginary part, is NaN.
    fn has_nan(self) -> bool;
    /// Returns whether a product of floats is settled: zero, infinite or NaN. A complex number is settled if it is zero, or if one of its
    /// parts is infinite or NaN. Integers and bool are never settled.
    #[inline(always)]
    fn is_zero_or_non_finite_float(self) -> bool {
        false
    }
    /// Returns whether the value, or its real or imaginary part, is a subnormal float.
    #[inline(always)]
    fn is_subnormal(self) -> bool {
        false
    }
    /// Returns whether `self >= b`; false if either is NaN. Complex numbers compare by real part, then imaginary part.
    fn is_at_least(self, b: Self) -> bool;
    /// Returns the larger of `self` and `b`; `self` if they are equal or either is NaN.
    #[inline(always)]
    fn larger(self, b: Self) -> Self {
        if b.is_at_least(self) & !self.is_at_least(b) { b } else { self }
    }
    /// Returns the smaller of `self` and `b`; `self` if they are equal or either is NaN.
    #[inline(always)]
    fn smaller(self, b: Self) -> Self {
        if self.is_at_least(b) & !b.is_at_least(self) { b } else { self }
    }
    /// Identity of addition: -0.0 for floats, because adding 0.0 changes -0.0.
    const SUM_IDENTITY: Self;
    /// Result of an empty sum.
    const ZERO: Self;
}

macro_rules! value {
    ($($t:ty: |$a:ident, $b:ident| $plus:expr, $times:expr, $nan:expr, $is_at_least:expr, $nothing:expr, $zero:expr
        $(, settled $settled:expr, subnormal $subnormal:expr)? $(, larger $larger:expr, $smaller:expr)?;)*) => {$(
        impl Arithmetic for $t {
            #[inline(always)]
            fn plus(self, $b: Self) -> Self { let $a = self; $plus }
            #[inline(always)]
            fn times(self, $b: Self) -> Self { let $a = self; $times }
            #[inline(always)]
            fn has_nan(self) -> bool { let $a = self; let _ = $a; $nan }
            #[inline(always)]
            fn is_at_least(self, $b: Self) -> bool { let $a = self; $is_at_least }
            const SUM_IDENTITY: Self = $nothing;
            const ZERO: Self = $zero;
            $(
                #[inline(always)]
                fn is_zero_or_non_finite_float(self) -> bool { let $a = self; $settled }
                #[inline(always)]
                fn is_subnormal(self) -> bool { let $a = self; $subnormal }
            )?
            $(
                #[inline(always)]
                fn larger(self, $b: Self) -> Self { let $a = self; $larger }
                #[inline(always)]
                fn smaller(self, $b: Self) -> Self { let $a = self; $smaller }
            )?
        }
    )*};
}
macro_rules! ints {
    ($($t:ty),*) => { value! { $($t: |a, b| a.wrapping_add(b), a.wrapping_mul(b), false, a >= b, 0, 0;)* } };
}
ints!(i8, i16, i32, i64, u8, u16, u32, u64);
value! {
    bool: |a, b| a | b, a & b, false, a | !b, false, false;
    f32: |a, b| a + b, a * b, a.is_nan(), a >= b, -0.0, 0.0,
        settled a == 0.0 || !a.is_finite(), subnormal a.is_subnormal(),
        larger if b > a { b } else { a }, if b < a { b } else { a };
    f64: |a, b| a + b, a * b, a.is_nan(), a >= b, -0.0, 0.0,
        settled a == 0.0 || !a.is_finite(), subnormal a.is_subnormal(),
        larger if b > a { b } else { a }, if b < a { b } else { a };
    Complex<f32>: |a, b| a + b, a * b, a.re.is_nan() | a.im.is_nan(), is_complex_at_least(a, b),
        Complex::new(-0.0, -0.0), Complex::new(0.0, 0.0),
        settled a == Self::ZERO || !a.is_finite(), subnormal a.re.is_subnormal() | a.im.is_subnormal();
    Complex<f64>: |a, b| a + b, a * b, a.re.is_nan() | a.im.is_nan(), is_complex_at_least(a, b),
        Complex::new(-0.0, -0.0), Complex::new(0.0, 0.0),
        settled a == Self::ZERO || !a.is_finite(), subnormal a.re.is_subnormal() | a.im.is_subnormal();
}

/// Implements [`Arithmetic::is_at_least`] for complex numbers.
#[inline(always)]
fn is_complex_at_least<T: PartialOrd>(a: Complex<T>, b: Complex<T>) -> bool {
    let ordered = a.im >= b.im || a.im < b.im; // true unless an imaginary part is NaN
    ordered && (a.re > b.re || (a.re == b.re && a.im >= b.im))
}
