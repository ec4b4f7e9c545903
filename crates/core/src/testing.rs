//! Helpers for tests of accelerators: comparison of arrays with a tolerance, distances in units in the last place (ULP), synthetic
//! calls, and a reference for random numbers. cuprum's conformance program uses them; other backends may as well.
//!
//! ```
//! # extern crate cuprum_core as cuprum;
//! use cuprum::{NdArray, testing::{Tolerance, compare}};
//! # fn main() -> cuprum::Result<()> {
//! let (want, got) = (NdArray::from_slice(&[1.0f32, 2.0])?, NdArray::from_slice(&[1.0f32, 2.0000002])?);
//! assert!(compare(&got, &want, Tolerance::ulp(1.0)).is_ok());
//! let difference = compare(&got, &want, Tolerance::EXACT).unwrap_err();
//! assert_eq!(difference.to_string(), "element [1] is 2.0000002, not 2 (1 ULP; 1 of 2 differ)");
//! # Ok(())
//! # }
//! ```

pub mod calls;
pub mod linalg;
pub mod philox;

use std::fmt;

use crate::array::NdArray;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result, shape_text};
use crate::scalar::Scalar;

/// Maximum difference between an element and its expected value. All NaNs match each other; infinities must agree in sign.
/// The default is [`Tolerance::EXACT`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// Maximum distance in units in the last place (ULP) of the expected element. For a complex element, the unit is that of the real or
    /// imaginary part with the larger magnitude. For float16 and bfloat16, which are computed in float32, a value above 1 counts as 1.
    pub ulp: f64,
    /// Additional distance: this number, times the machine epsilon of the accumulator dtype, times the scale of the element; see
    /// [`compare_scaled`].
    pub epsilons: f64,
    /// Whether -0.0 and 0.0 match.
    pub any_zero: bool,
}

impl Tolerance {
    /// Bitwise equality, except for NaN payloads.
    pub const EXACT: Tolerance = Tolerance { ulp: 0.0, epsilons: 0.0, any_zero: false };

    /// Returns a tolerance of `n` units in the last place.
    pub const fn ulp(n: f64) -> Tolerance {
        Tolerance { ulp: n, ..Tolerance::EXACT }
    }

    /// Returns the tolerance for long sums: 1 ULP plus `n` epsilons times the sum of the magnitudes of the terms. -0.0 and 0.0 match.
    pub const fn sum(n: f64) -> Tolerance {
        Tolerance { ulp: 1.0, epsilons: n, any_zero: true }
    }
}

/// A difference between two arrays.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// Different dtypes: actual, expected.
    DType(DType, DType),
    /// Different shapes: actual, expected.
    Shape(Vec<usize>, Vec<usize>),
    /// Different elements.
    Element {
        /// Index of the element with the largest difference.
        index: Vec<usize>,
        /// Actual value of that element.
        got: Scalar,
        /// Expected value of that element.
        want: Scalar,
        /// Distance in ULP. Infinite if it is not defined, such as for integers, or if only one value is NaN or infinite.
        ulp: f64,
        /// Number of elements out of tolerance.
        count: usize,
        /// Number of elements of the array.
        size: usize,
    },
    /// Reading one of the arrays failed.
    Unreadable(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::DType(got, want) => write!(f, "dtype is {got}, not {want}"),
            Difference::Shape(got, want) => write!(f, "shape is {}, not {}", shape_text(got), shape_text(want)),
            Difference::Element { index, got, want, ulp, count, size } => {
                write!(f, "element {index:?} is {}, not {} ({ulp} ULP; {count} of {size} differ)", ScalarText(*got), ScalarText(*want))
            }
            Difference::Unreadable(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Difference {}

impl From<Error> for Difference {
    fn from(e: Error) -> Difference {
        Difference::Unreadable(e.to_string())
    }
}

/// Displays a scalar as a plain number.
struct ScalarText(Scalar);

impl fmt::Display for ScalarText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Scalar::Bool(v) => write!(f, "{v}"),
            Scalar::Int(v) => write!(f, "{v}"),
            // A float32 value is shown in the shortest form that identifies it as float32.
            Scalar::Float(v) if v as f32 as f64 == v => write!(f, "{}", v as f32),
            Scalar::Float(v) => write!(f, "{v}"),
            Scalar::Complex(v) => write!(f, "{v}"),
        }
    }
}

/// Compares dtype, shape and every element.
///
/// # Errors
/// The first kind of difference found, with the worst element.
pub fn compare(got: &NdArray, want: &NdArray, tolerance: Tolerance) -> Result<(), Difference> {
    compare_scaled(got, want, tolerance, &[])
}

/// Compares as [`compare`], with a scale per element for [`Tolerance::epsilons`].
///
/// The scale of a sum is the sum of the magnitudes of its terms. If `scales` is empty, the scale is the magnitude of the expected element.
///
/// # Errors
/// The errors of [`compare`].
pub fn compare_scaled(got: &NdArray, want: &NdArray, tolerance: Tolerance, scales: &[f64]) -> Result<(), Difference> {
    let dtype = want.dtype();
    if got.dtype() != dtype {
        return Err(Difference::DType(got.dtype(), dtype));
    }
    if got.shape() != want.shape() {
        return Err(Difference::Shape(got.shape().to_vec(), want.shape().to_vec()));
    }
    let (got_bytes, want_bytes) = (got.to_bytes()?, want.to_bytes()?);
    let mut worst: Option<(usize, f64)> = None;
    let mut count = 0;
    for (i, (g, w)) in got_bytes.chunks_exact(dtype.itemsize()).zip(want_bytes.chunks_exact(dtype.itemsize())).enumerate() {
        if g == w {
            continue;
        }
        let (g, w) = (Scalar::from_bytes(dtype, g), Scalar::from_bytes(dtype, w));
        let scale = scales.get(i).copied().unwrap_or_else(|| w.as_complex().norm());
        let distance = distance(g, w, dtype, tolerance.any_zero);
        let allowed = allowed_ulp(tolerance, w, dtype, scale);
        if distance > allowed {
            count += 1;
            if worst.is_none_or(|(_, d)| distance > d) {
                worst = Some((i, distance));
            }
        }
    }
    let Some((at, ulp)) = worst else { return Ok(()) };
    let element = |bytes: &[u8]| Scalar::from_bytes(dtype, &bytes[at * dtype.itemsize()..]);
    let (got_value, want_value) = (element(&got_bytes), element(&want_bytes));
    Err(Difference::Element { index: unravel_indices(at, want.shape()), got: got_value, want: want_value, ulp, count, size: want.size() })
}

fn allowed_ulp(tolerance: Tolerance, want: Scalar, dtype: DType, scale: f64) -> f64 {
    let narrow = dtype.itemsize() == 2 && dtype.is_float();
    let ulp = if narrow { tolerance.ulp.min(1.0) } else { tolerance.ulp };
    let accumulator = if narrow { DType::F32 } else { dtype.real() };
    let additional = tolerance.epsilons * epsilon(accumulator) * scale;
    if additional > 0.0 { ulp + additional / spacing(larger_part(want), dtype.real()) } else { ulp }
}

fn larger_part(s: Scalar) -> f64 {
    let c = s.as_complex();
    c.re.abs().max(c.im.abs())
}

/// Returns the distance between two elements in ULP; infinite if it is not defined.
fn distance(got: Scalar, want: Scalar, dtype: DType, any_zero: bool) -> f64 {
    match dtype.kind() {
        Kind::Float => part_distance(got.as_f64(), want.as_f64(), spacing(want.as_f64(), dtype), any_zero),
        Kind::Complex => {
            let (g, w) = (got.as_complex(), want.as_complex());
            let unit = spacing(larger_part(want), dtype.real());
            part_distance(g.re, w.re, unit, any_zero).max(part_distance(g.im, w.im, unit, any_zero))
        }
        _ if got == want => 0.0,
        _ => f64::INFINITY,
    }
}

fn part_distance(got: f64, want: f64, unit: f64, any_zero: bool) -> f64 {
    if got.is_nan() && want.is_nan() {
        return 0.0;
    }
    if got == want {
        let same_sign = got != 0.0 || any_zero || got.is_sign_negative() == want.is_sign_negative();
        return if same_sign { 0.0 } else { f64::INFINITY };
    }
    if got.is_finite() && want.is_finite() { (got - want).abs() / unit } else { f64::INFINITY }
}

/// Returns the machine epsilon of a real floating dtype: the distance from 1 to the next larger number.
pub fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        DType::F32 => f32::EPSILON as f64,
        _ => f64::EPSILON,
    }
}

/// Returns one unit in the last place of `x` in a real floating dtype (`numpy.spacing` of the magnitude).
pub fn spacing(x: f64, dtype: DType) -> f64 {
    let min_exponent = match dtype {
        DType::F16 => -14,
        DType::BF16 | DType::F32 => -126,
        _ => -1022,
    };
    let exponent = if x == 0.0 || !x.is_finite() { min_exponent } else { exponent_of(x).max(min_exponent) };
    // Two factors, because the smallest spacing of float64 is not a product of normal numbers.
    2f64.powi(exponent / 2) * (epsilon(dtype) * 2f64.powi(exponent - exponent / 2))
}

/// Returns the exponent of a finite nonzero float64; -1023 for subnormals.
fn exponent_of(x: f64) -> i32 {
    let biased = (x.to_bits() >> 52 & 0x7ff) as i32;
    if biased == 0 { -1023 } else { biased - 1023 }
}

fn unravel_indices(mut at: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        index[axis] = at % shape[axis].max(1);
        at /= shape[axis].max(1);
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    #[test]
    fn spacing_matches_known_values() {
        assert_eq!(spacing(1.0, DType::F64), f64::EPSILON);
        assert_eq!(spacing(-3.0, DType::F32), 2.0 * f32::EPSILON as f64);
        assert_eq!(spacing(0.0, DType::F64), 5e-324);
        assert_eq!(spacing(1e-320, DType::F64), 5e-324);
        assert_eq!(spacing(0.0, DType::F32), f32::from_bits(1) as f64);
        assert_eq!(spacing(0.0, DType::F16), f16::from_bits(1).to_f64());
        assert_eq!(spacing(f64::MAX, DType::F64), 2f64.powi(971));
    }

    fn differ(got: &[f64], want: &[f64], tolerance: Tolerance) -> Option<String> {
        let make = |v: &[f64]| NdArray::from_slice(v).unwrap();
        crate::with_device(crate::Device::CPU, || compare(&make(got), &make(want), tolerance).err().map(|d| d.to_string()))
    }

    #[test]
    fn compares_special_values() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        assert_eq!(differ(&[nan, -inf], &[-nan, -inf], Tolerance::EXACT), None);
        assert_eq!(differ(&[0.0], &[-0.0], Tolerance::ulp(4.0)).unwrap(), "element [0] is 0, not -0 (inf ULP; 1 of 1 differ)");
        assert_eq!(differ(&[0.0], &[-0.0], Tolerance::sum(1.0)), None);
        assert!(differ(&[f64::MAX], &[inf], Tolerance::ulp(1e9)).is_some());
        assert!(differ(&[1.0], &[nan], Tolerance::ulp(1e9)).is_some());
        assert!(differ(&[1.0 + 3.0 * f64::EPSILON], &[1.0], Tolerance::ulp(2.0)).is_some());
        assert_eq!(differ(&[1.0 + 2.0 * f64::EPSILON], &[1.0], Tolerance::ulp(2.0)), None);
    }

    #[test]
    fn tolerance_of_sums_scales_with_terms() {
        crate::with_device(crate::Device::CPU, || {
            let (got, want) = (NdArray::from_slice(&[1e-7f32]).unwrap(), NdArray::from_slice(&[0.0f32]).unwrap());
            assert!(compare(&got, &want, Tolerance::sum(2.0)).is_err());
            assert!(compare_scaled(&got, &want, Tolerance::sum(2.0), &[1.0]).is_ok());
            assert!(compare_scaled(&got, &want, Tolerance::sum(2.0), &[0.1]).is_err());
        });
    }

    #[test]
    fn complex_parts_share_one_ulp() {
        use num_complex::Complex;
        crate::with_device(crate::Device::CPU, || {
            let make = |re, im| NdArray::from_slice(&[Complex::new(re, im)]).unwrap();
            assert!(compare(&make(1.0, 1e-16), &make(1.0, 0.0), Tolerance::ulp(1.0)).is_ok());
            assert!(compare(&make(1e-16, 1e-16), &make(0.0, 1e-16), Tolerance::ulp(1.0)).is_err());
        });
    }

    #[test]
    fn reports_dtype_shape_and_element() {
        crate::with_device(crate::Device::CPU, || {
            let a = NdArray::from_slice(&[1i32, 2]).unwrap();
            let text = |b: &NdArray| compare(&a, b, Tolerance::EXACT).unwrap_err().to_string();
            assert_eq!(text(&NdArray::from_slice(&[1i64, 2]).unwrap()), "dtype is int32, not int64");
            assert_eq!(text(&a.reshape([1, 2]).unwrap()), "shape is (2,), not (1, 2)");
            assert_eq!(text(&NdArray::from_slice(&[1i32, 3]).unwrap()), "element [1] is 2, not 3 (inf ULP; 1 of 2 differ)");
        });
    }
}
