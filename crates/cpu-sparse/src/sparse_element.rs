//! Element types of sparse matrices.

use cuprum_core::{Complex, Element};

/// An element type of sparse matrices, with the arithmetic of NumPy: integers wrap, the sum of bools is "or", their product "and".
pub(crate) trait SparseElement: Element {
    /// The additive identity.
    const ZERO: Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// Returns `self - other`. Bools cannot be subtracted; for them the result is `self`.
    fn minus(self, other: Self) -> Self;
    /// Returns `self / divisor`. Integers and bools return `self`, because only floating-point and complex systems are solved.
    fn divided_by(self, divisor: Self) -> Self;
    fn is_zero(self) -> bool {
        self == Self::ZERO
    }
}

impl SparseElement for bool {
    const ZERO: bool = false;
    #[inline(always)]
    fn plus(self, other: bool) -> bool {
        self | other
    }
    #[inline(always)]
    fn times(self, other: bool) -> bool {
        self & other
    }
    fn minus(self, _: bool) -> bool {
        self
    }
    fn divided_by(self, _: bool) -> bool {
        self
    }
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl SparseElement for $t {
            const ZERO: $t = 0;
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn times(self, other: $t) -> $t {
                self.wrapping_mul(other)
            }
            fn minus(self, other: $t) -> $t {
                self.wrapping_sub(other)
            }
            fn divided_by(self, _: $t) -> $t {
                self
            }
        }
    )*};
}
integers!(u8, u16, u32, u64);

macro_rules! inexact {
    ($($t:ty, $zero:expr;)*) => {$(
        impl SparseElement for $t {
            const ZERO: $t = $zero;
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                self + other
            }
            #[inline(always)]
            fn times(self, other: $t) -> $t {
                self * other
            }
            #[inline(always)]
            fn minus(self, other: $t) -> $t {
                self - other
            }
            #[inline(always)]
            fn divided_by(self, divisor: $t) -> $t {
                self / divisor
            }
        }
    )*};
}
inexact! { f32, 0.0; f64, 0.0; Complex<f32>, Complex::new(0.0, 0.0); Complex<f64>, Complex::new(0.0, 0.0); }
