//! Scaling of matrices by powers of two, against overflow and underflow.

use num_traits::Float;

use crate::matrix_element::Field;

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
    pub(crate) fn scale_into_lapack_range<T: Field<Base = R>>(values: &mut [T]) -> Option<PowerOfTwoScale<R>> {
        PowerOfTwoScale::scale_if_outside_limits(values, Self::min_unscaled_norm())
    }

    /// Scales the matrix `values` of extent `n` so that its norm is between about `1 / n` and 1. Returns `None` if a value is infinite or NaN.
    ///
    /// faer's divide-and-conquer iteration for eigenvectors of Hermitian matrices has tolerances that are not relative to the norm: for a
    /// norm of 1e10, residuals are 1e-3 of the norm.
    pub(crate) fn scale_to_unit_norm<T: Field<Base = R>>(values: &mut [T], n: usize) -> Option<PowerOfTwoScale<R>> {
        let largest = Self::largest_magnitude(values)?;
        let target = R::from(n).unwrap_or_else(R::one).recip();
        Some(if largest == R::zero() { Self::identity() } else { Self::scale_to_target(values, largest, target) })
    }

    /// Returns the scale 1, for a matrix that was not divided.
    pub(crate) fn identity() -> PowerOfTwoScale<R> {
        PowerOfTwoScale(R::one())
    }

    /// Returns the smallest norm of a matrix that LAPACK's eigenvalue drivers do not scale. The largest norm is its reciprocal.
    fn min_unscaled_norm() -> R {
        R::min_positive_value().sqrt() / R::epsilon()
    }

    fn scale_if_outside_limits<T: Field<Base = R>>(values: &mut [T], least: R) -> Option<PowerOfTwoScale<R>> {
        let largest = Self::largest_magnitude(values)?;
        let most = Self::min_unscaled_norm().recip();
        if largest == R::zero() || (least..=most).contains(&largest) {
            return Some(Self::identity());
        }
        Some(Self::scale_to_target(values, largest, if largest < least { least } else { most }))
    }

    /// Returns the largest magnitude of a part of `values`, or `None` if a value is infinite or NaN.
    fn largest_magnitude<T: Field<Base = R>>(values: &[T]) -> Option<R> {
        let largest = values.iter().fold(R::zero(), |max, v| {
            let part = v.max_part_magnitude();
            if part > max || part.is_nan() { part } else { max }
        });
        (largest.is_finite() && !values.iter().any(|v| v.max_part_magnitude().is_nan())).then_some(largest)
    }

    /// Scales `values`, whose largest magnitude is `largest`, so that this magnitude is near `target`.
    fn scale_to_target<T: Field<Base = R>>(values: &mut [T], largest: R, target: R) -> PowerOfTwoScale<R> {
        let exponent = (0.5 * (largest.log2() - target.log2()).to_f64().unwrap_or(0.0)).floor();
        let root = R::from(exponent.exp2()).unwrap_or_else(R::one);
        let scale = PowerOfTwoScale(root);
        scale.divide_by_scale(values);
        scale
    }

    /// Returns the square root of the scale.
    pub(crate) fn sqrt_of_scale(self) -> R {
        self.0
    }

    /// Divides values by the scale.
    pub(crate) fn divide_by_scale<T: Field<Base = R>>(self, values: &mut [T]) {
        values.iter_mut().for_each(|v| *v = v.times_real(self.0.recip()).times_real(self.0.recip()));
    }

    /// Multiplies singular values or eigenvalues of the scaled matrix by the scale.
    pub(crate) fn multiply_by_scale<T: Field<Base = R>>(self, values: &mut [T]) {
        values.iter_mut().for_each(|v| *v = v.times_real(self.0).times_real(self.0));
    }
}
