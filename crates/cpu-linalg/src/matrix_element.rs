//! Element types of matrices (float32, float64, complex64, complex128).

use std::ops::Neg;

use bytemuck::Pod;
use cuprum_core::{Complex, Element};
use faer::traits::{ComplexField, RealField};
use num_traits::{Float, NumAssign};

/// A complex number in double precision.
pub(crate) type C = Complex<f64>;

/// Returns the principal square root. Unlike [`Complex::sqrt`], it does not compute the angle of `z`, so both parts keep their digits near
/// the negative real axis.
pub(crate) fn square_root(z: C) -> C {
    if z.re == 0.0 || z.im == 0.0 {
        return z.sqrt();
    }
    // Scales by powers of 4, so that `|z.re| + |z|` neither overflows nor loses digits.
    let (scale, unscale) = match z.max_part_magnitude() {
        size if size > f64::MAX / 4.0 => (0.25, 2.0),
        size if size < 1e-290 => (2f64.powi(108), 2f64.powi(-54)),
        _ => (1.0, 1.0),
    };
    let z = z * scale;
    let larger = (0.5 * (z.re.abs() + z.re.hypot(z.im))).sqrt();
    let root = if z.re > 0.0 { C::new(larger, 0.5 * z.im / larger) } else { C::new(0.5 * z.im.abs() / larger, larger.copysign(z.im)) };
    root * unscale
}

/// Returns the principal logarithm. Unlike [`Complex::ln`], the real part keeps its digits for numbers of magnitude near 1.
pub(crate) fn logarithm(z: C) -> C {
    let size = z.norm();
    let re = if (0.5..2.0).contains(&size) { 0.5 * ((z.re - 1.0) * (z.re + 1.0) + z.im * z.im).ln_1p() } else { size.ln() };
    C::new(re, z.arg())
}

/// An element type of matrices: a real or complex floating-point number.
pub(crate) trait Field: ComplexField<Real = Self::Base> + Element + Pod + NumAssign + Neg<Output = Self> {
    /// The type of the real part.
    type Base: RealField + Element + Pod + Float + NumAssign + Field<Base = Self::Base>;

    fn from_real_part(re: Self::Base) -> Self;
    fn real_part(self) -> Self::Base;
    fn conjugate(self) -> Self;
    fn times_real(self, factor: Self::Base) -> Self;
    /// Returns `self / divisor`. Squares of small or large parts of a complex divisor neither underflow nor overflow.
    fn quotient(self, divisor: Self) -> Self;
    fn magnitude(self) -> Self::Base;
    /// Returns `self / magnitude`. The phase of a finite or infinite real number is its sign. As in NumPy, the phase of NaN is 1.
    fn phase(self, magnitude: Self::Base) -> Self;
    /// Returns the sum of the magnitudes of the real and imaginary parts. As in LAPACK, the pivot is the element with the largest sum.
    fn sum_of_part_magnitudes(self) -> Self::Base;
    /// Returns the larger of the magnitudes of the real and imaginary parts, or NaN if either part is NaN.
    fn max_part_magnitude(self) -> Self::Base;
}

macro_rules! field {
    ($($real:ty),*) => {$(
        impl Field for $real {
            type Base = $real;
            fn from_real_part(re: $real) -> $real {
                re
            }
            fn real_part(self) -> $real {
                self
            }
            fn conjugate(self) -> $real {
                self
            }
            fn times_real(self, factor: $real) -> $real {
                self * factor
            }
            fn quotient(self, divisor: $real) -> $real {
                self / divisor
            }
            fn magnitude(self) -> $real {
                Float::abs(self)
            }
            fn phase(self, _magnitude: $real) -> $real {
                if self < 0.0 { -1.0 } else { 1.0 }
            }
            fn sum_of_part_magnitudes(self) -> $real {
                Float::abs(self)
            }
            fn max_part_magnitude(self) -> $real {
                Float::abs(self)
            }
        }

        impl Field for Complex<$real> {
            type Base = $real;
            fn from_real_part(re: $real) -> Complex<$real> {
                Complex::new(re, 0.0)
            }
            fn real_part(self) -> $real {
                self.re
            }
            fn conjugate(self) -> Complex<$real> {
                self.conj()
            }
            fn times_real(self, factor: $real) -> Complex<$real> {
                Complex::new(self.re * factor, self.im * factor)
            }
            fn quotient(self, divisor: Complex<$real>) -> Complex<$real> {
                let size = divisor.max_part_magnitude();
                (self / size) / (divisor / size)
            }
            fn magnitude(self) -> $real {
                self.norm()
            }
            fn phase(self, magnitude: $real) -> Complex<$real> {
                self / magnitude
            }
            fn sum_of_part_magnitudes(self) -> $real {
                Float::abs(self.re) + Float::abs(self.im)
            }
            fn max_part_magnitude(self) -> $real {
                let (re, im) = (Float::abs(self.re), Float::abs(self.im));
                if re.is_nan() || re > im { re } else { im }
            }
        }
    )*};
}
field!(f32, f64);
