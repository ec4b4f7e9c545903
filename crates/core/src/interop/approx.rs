//! Approximate equality as in the crate `approx`, so that `assert_relative_eq!(a, b)` compares arrays.
//!
//! Two arrays are equal if their shapes are equal and every pair of elements is equal within the tolerance. Equal infinities are equal, NaN
//! is equal to nothing. dtypes and devices may differ. Complex numbers compare by the magnitude of their difference, integers without
//! rounding.
//!
//! The default of `epsilon` and `max_relative` is [`f64::EPSILON`]. This value is replaced by the machine epsilon of the less precise
//! floating-point dtype of the two arrays. An array that cannot be evaluated is equal to no array; the assertion prints its error.

use ::approx::{AbsDiffEq, RelativeEq, UlpsEq};

use crate::array::NdArray;
use crate::dtype::DType;
use crate::scalar::Scalar;
use crate::testing::{epsilon as machine_epsilon, spacing};

/// Returns whether the arrays have the same shape, and `is_close` holds for each pair of elements.
fn all_close(a: &NdArray, b: &NdArray, is_close: impl Fn(Scalar, Scalar) -> bool) -> bool {
    if a.shape() != b.shape() {
        return false;
    }
    let (Ok(left), Ok(right)) = (a.to_bytes(), b.to_bytes()) else { return false };
    let mut pairs = left.chunks_exact(a.dtype().itemsize()).zip(right.chunks_exact(b.dtype().itemsize()));
    pairs.all(|(x, y)| is_close(Scalar::from_bytes(a.dtype(), x), Scalar::from_bytes(b.dtype(), y)))
}

/// Returns the magnitude of the difference of two elements. Equal elements, infinities included, give 0. Other pairs with an
/// element that is not finite give NaN or infinity.
fn difference_magnitude(a: Scalar, b: Scalar) -> f64 {
    match (a, b) {
        (Scalar::Int(x), Scalar::Int(y)) => x.abs_diff(y) as f64,
        _ if a.as_complex() == b.as_complex() => 0.0,
        _ => (a.as_complex() - b.as_complex()).norm(),
    }
}

/// Returns the less precise floating-point dtype of two arrays. A complex array counts with the dtype of its real part. Returns `None`
/// if both arrays are integers or bools.
fn less_precise_dtype(a: &NdArray, b: &NdArray) -> Option<DType> {
    let floats = [a.dtype().real(), b.dtype().real()].into_iter().filter(|d| d.is_float());
    floats.max_by(|x, y| machine_epsilon(*x).total_cmp(&machine_epsilon(*y)))
}

/// Returns the tolerance `given`, unless it is the default [`f64::EPSILON`]. The default is replaced by the machine epsilon of the less
/// precise floating-point dtype of the two arrays.
fn effective_tolerance(given: f64, a: &NdArray, b: &NdArray) -> f64 {
    match less_precise_dtype(a, b) {
        Some(dtype) if given == f64::EPSILON => machine_epsilon(dtype),
        _ => given,
    }
}

/// Arrays are equal if the difference of each pair of elements is at most `epsilon`.
impl AbsDiffEq for NdArray {
    type Epsilon = f64;
    fn default_epsilon() -> f64 {
        f64::EPSILON
    }
    fn abs_diff_eq(&self, other: &NdArray, epsilon: f64) -> bool {
        let epsilon = effective_tolerance(epsilon, self, other);
        all_close(self, other, |a, b| difference_magnitude(a, b) <= epsilon)
    }
}

/// Arrays are equal if the difference of each pair of elements is at most `epsilon`, or at most `max_relative` times the larger
/// magnitude.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use approx::assert_relative_eq;
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let a = array![0.1, 0.2, 0.3];
/// assert_relative_eq!(&a * 3.0 / 3.0, a);
/// assert_relative_eq!(a.exp()?.log()?, a, max_relative = 1e-14);
/// # Ok(())
/// # }
/// ```
impl RelativeEq for NdArray {
    fn default_max_relative() -> f64 {
        f64::EPSILON
    }
    fn relative_eq(&self, other: &NdArray, epsilon: f64, max_relative: f64) -> bool {
        let (epsilon, max_relative) = (effective_tolerance(epsilon, self, other), effective_tolerance(max_relative, self, other));
        all_close(self, other, |a, b| {
            let (distance, size) = (difference_magnitude(a, b), a.as_complex().norm().max(b.as_complex().norm()));
            distance <= epsilon || (distance.is_finite() && distance <= size * max_relative)
        })
    }
}

/// Arrays are equal if the difference of each pair of elements is at most `epsilon`, or at most `max_ulps` units in the last place of
/// the larger element.
///
/// The unit in the last place is that of the less precise floating-point dtype. For complex numbers, it is the unit at the largest
/// magnitude among the real and imaginary parts of both elements.
impl UlpsEq for NdArray {
    fn default_max_ulps() -> u32 {
        4
    }
    fn ulps_eq(&self, other: &NdArray, epsilon: f64, max_ulps: u32) -> bool {
        let (epsilon, dtype) = (effective_tolerance(epsilon, self, other), less_precise_dtype(self, other));
        let larger_part = |s: Scalar| s.as_complex().re.abs().max(s.as_complex().im.abs());
        all_close(self, other, |a, b| {
            let distance = difference_magnitude(a, b);
            let ulps = |dtype| f64::from(max_ulps) * spacing(larger_part(a).max(larger_part(b)), dtype);
            distance <= epsilon || (distance.is_finite() && dtype.is_some_and(|dtype| distance <= ulps(dtype)))
        })
    }
}
