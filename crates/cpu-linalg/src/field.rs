//! Element types of matrices (float32, float64, complex64, complex128), and the scaling of matrices against overflow.

use std::ops::Neg;

use cuprum_core::{Complex, Element};
use faer::traits::{ComplexField, RealField};
use num_traits::{Float, NumAssign};

/// A complex number in double precision.
pub(crate) type C = Complex<f64>;

/// An element type of matrices: a real or complex floating-point number.
pub(crate) trait Field: ComplexField<Real = Self::Base> + Element + NumAssign + Neg<Output = Self> {
    /// The type of the real part.
    type Base: RealField + Element + Float + NumAssign + Field<Base = Self::Base>;

    fn from_base(re: Self::Base) -> Self;
    fn real_part(self) -> Self::Base;
    fn conjugate(self) -> Self;
    fn times(self, factor: Self::Base) -> Self;
    fn magnitude(self) -> Self::Base;
    /// Returns the sum of the magnitudes of the real and imaginary parts. As in LAPACK, the pivot is the element with the largest sum.
    fn sum_of_parts(self) -> Self::Base;
    /// Returns the larger of the magnitudes of the real and imaginary parts, or NaN if either part is NaN.
    fn largest_part(self) -> Self::Base;
}

macro_rules! field {
    ($($real:ty),*) => {$(
        impl Field for $real {
            type Base = $real;
            fn from_base(re: $real) -> $real {
                re
            }
            fn real_part(self) -> $real {
                self
            }
            fn conjugate(self) -> $real {
                self
            }
            fn times(self, factor: $real) -> $real {
                self * factor
            }
            fn magnitude(self) -> $real {
                Float::abs(self)
            }
            fn sum_of_parts(self) -> $real {
                Float::abs(self)
            }
            fn largest_part(self) -> $real {
                Float::abs(self)
            }
        }

        impl Field for Complex<$real> {
            type Base = $real;
            fn from_base(re: $real) -> Complex<$real> {
                Complex::new(re, 0.0)
            }
            fn real_part(self) -> $real {
                self.re
            }
            fn conjugate(self) -> Complex<$real> {
                self.conj()
            }
            fn times(self, factor: $real) -> Complex<$real> {
                Complex::new(self.re * factor, self.im * factor)
            }
            fn magnitude(self) -> $real {
                self.norm()
            }
            fn sum_of_parts(self) -> $real {
                Float::abs(self.re) + Float::abs(self.im)
            }
            fn largest_part(self) -> $real {
                let (re, im) = (Float::abs(self.re), Float::abs(self.im));
                if re.is_nan() || re > im { re } else { im }
            }
        }
    )*};
}
field!(f32, f64);

/// The power of two by which a matrix was divided, so that products of its elements neither overflow nor underflow. Without such a scale,
/// faer's eigenvalues of matrices with a norm of 1e-18 are inexact. The power is stored as two factors, or `None` for a matrix of zeros.
#[derive(Clone, Copy)]
pub(crate) struct PowerOfTwoScale<R>(Option<(R, R)>);

impl<R: Float> PowerOfTwoScale<R> {
    /// Divides `values` by a power of two so that the largest magnitude is near 1. Returns `None` if a value is infinite or NaN.
    pub(crate) fn scale_down<T: Field<Base = R>>(values: &mut [T]) -> Option<PowerOfTwoScale<R>> {
        let largest = values.iter().fold(R::zero(), |max, v| {
            let part = v.largest_part();
            if part > max || part.is_nan() { part } else { max }
        });
        if !largest.is_finite() || values.iter().any(|v| v.largest_part().is_nan()) {
            return None;
        }
        if largest == R::zero() {
            return Some(PowerOfTwoScale(None));
        }
        // The power is split into two factors, because the reciprocal of a single subnormal factor would overflow.
        let half = |exponent: i32| R::from(2.0).map_or(R::one(), |two| two.powi(exponent));
        let exponent = largest.log2().floor().to_i32().unwrap_or(0);
        let (first, second) = (half(exponent / 2), half(exponent - exponent / 2));
        values.iter_mut().for_each(|v| *v = v.times(first.recip()).times(second.recip()));
        Some(PowerOfTwoScale(Some((first, second))))
    }

    /// Multiplies singular values or eigenvalues of the scaled matrix by the scale.
    pub(crate) fn scale_up<T: Field<Base = R>>(self, values: &mut [T]) {
        if let Some((first, second)) = self.0 {
            values.iter_mut().for_each(|v| *v = v.times(first).times(second));
        }
    }
}
