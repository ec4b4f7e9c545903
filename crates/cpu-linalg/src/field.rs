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
    /// Returns `self / divisor`. Squares of small or large parts of a complex divisor neither underflow nor overflow.
    fn quotient(self, divisor: Self) -> Self;
    fn magnitude(self) -> Self::Base;
    /// Returns `self / magnitude`. The phase of a finite or infinite real number is its sign. As in NumPy, the phase of NaN is 1.
    fn phase(self, magnitude: Self::Base) -> Self;
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
            fn quotient(self, divisor: $real) -> $real {
                self / divisor
            }
            fn magnitude(self) -> $real {
                Float::abs(self)
            }
            fn phase(self, _magnitude: $real) -> $real {
                if self < 0.0 { -1.0 } else { 1.0 }
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
            fn quotient(self, divisor: Complex<$real>) -> Complex<$real> {
                let size = divisor.largest_part();
                (self / size) / (divisor / size)
            }
            fn magnitude(self) -> $real {
                self.norm()
            }
            fn phase(self, magnitude: $real) -> Complex<$real> {
                self / magnitude
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
/// faer's eigenvalues of matrices with a norm of 1e-18 are inexact. The exponent is even, and the square root of the power is stored.
#[derive(Clone, Copy)]
pub(crate) struct PowerOfTwoScale<R>(R);

impl<R: Float> PowerOfTwoScale<R> {
    /// If the largest magnitude of `values` is below 1, scales `values` so that it is near 1. If it is above LAPACK's limit, scales
    /// `values` so that it is near that limit, because a smaller divisor keeps more of the small values of a large matrix. Returns `None`
    /// if a value is infinite or NaN.
    pub(crate) fn scale_into_range<T: Field<Base = R>>(values: &mut [T]) -> Option<PowerOfTwoScale<R>> {
        PowerOfTwoScale::scale_if_outside_limits(values, R::one())
    }

    /// Scales as [`PowerOfTwoScale::scale_into_range`] does, but with the reciprocal of the machine epsilon in place of 1 as the lower
    /// limit.
    ///
    /// When faer computes eigenvectors, it replaces small determinants of 2x2 blocks by the product of epsilon and the norm. A determinant
    /// is quadratic in the matrix, so for a smaller norm this also replaces determinants of well separated eigenvalues.
    pub(crate) fn scale_for_eigenvectors<T: Field<Base = R>>(values: &mut [T]) -> Option<PowerOfTwoScale<R>> {
        PowerOfTwoScale::scale_if_outside_limits(values, R::epsilon().recip())
    }

    /// If the largest magnitude of `values` is outside LAPACK's limits, scales `values` so that this magnitude is near the closer limit.
    /// Returns `None` if a value is infinite or NaN.
    pub(crate) fn scale_extremes<T: Field<Base = R>>(values: &mut [T]) -> Option<PowerOfTwoScale<R>> {
        PowerOfTwoScale::scale_if_outside_limits(values, Self::least_unscaled_norm())
    }

    /// Returns the scale of a matrix that was not divided.
    pub(crate) fn one() -> PowerOfTwoScale<R> {
        PowerOfTwoScale(R::one())
    }

    /// Returns the smallest norm of a matrix that LAPACK's eigenvalue drivers do not scale. The largest norm is its reciprocal.
    fn least_unscaled_norm() -> R {
        R::min_positive_value().sqrt() / R::epsilon()
    }

    fn scale_if_outside_limits<T: Field<Base = R>>(values: &mut [T], least: R) -> Option<PowerOfTwoScale<R>> {
        let largest = values.iter().fold(R::zero(), |max, v| {
            let part = v.largest_part();
            if part > max || part.is_nan() { part } else { max }
        });
        if !largest.is_finite() || values.iter().any(|v| v.largest_part().is_nan()) {
            return None;
        }
        let most = Self::least_unscaled_norm().recip();
        if largest == R::zero() || (least..=most).contains(&largest) {
            return Some(PowerOfTwoScale(R::one()));
        }
        let target = if largest < least { least } else { most };
        let exponent = (0.5 * (largest.log2() - target.log2()).to_f64().unwrap_or(0.0)).floor();
        let root = R::from(exponent.exp2()).unwrap_or_else(R::one);
        let scale = PowerOfTwoScale(root);
        scale.scale_down(values);
        Some(scale)
    }

    /// Returns the square root of the power of two.
    pub(crate) fn square_root(self) -> R {
        self.0
    }

    /// Divides values by the scale.
    pub(crate) fn scale_down<T: Field<Base = R>>(self, values: &mut [T]) {
        values.iter_mut().for_each(|v| *v = v.times(self.0.recip()).times(self.0.recip()));
    }

    /// Multiplies singular values or eigenvalues of the scaled matrix by the scale.
    pub(crate) fn scale_up<T: Field<Base = R>>(self, values: &mut [T]) {
        values.iter_mut().for_each(|v| *v = v.times(self.0).times(self.0));
    }
}
