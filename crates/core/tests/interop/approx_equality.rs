use approx::{
    AbsDiffEq, RelativeEq, UlpsEq, abs_diff_eq, assert_abs_diff_eq, assert_relative_eq, assert_ulps_eq, relative_eq, relative_ne, ulps_eq,
};
use cuprum_core::{Complex, DType, NdArray, array, bf16, f16};

use crate::on_host;

#[test]
fn rules_agree_with_those_of_numbers() {
    on_host(|| {
        let special = [
            0.0,
            -0.0,
            1.0,
            1.0 + f64::EPSILON,
            1.0 + 3.0 * f64::EPSILON,
            -1.0,
            1e300,
            f64::MAX,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        for (x, y) in special.iter().flat_map(|&x| special.map(|y| (x, y))) {
            let (a, b) = (array![x], array![y]);
            // The difference of equal infinities is NaN for numbers, zero for arrays.
            assert_eq!(abs_diff_eq!(a, b), x == y || abs_diff_eq!(x, y), "{x} {y}");
            assert_eq!(relative_eq!(a, b), relative_eq!(x, y), "{x} {y}");
            assert_eq!(
                relative_eq!(a, b, epsilon = 0.0, max_relative = 0.5),
                relative_eq!(x, y, epsilon = 0.0, max_relative = 0.5),
                "{x} {y}"
            );
            // Numbers count infinity as one unit after the largest number, arrays do not.
            if x.is_finite() == y.is_finite() {
                assert_eq!(ulps_eq!(a, b, epsilon = 0.0, max_ulps = 1), ulps_eq!(x, y, epsilon = 0.0, max_ulps = 1), "{x} {y}");
            }
        }
        Ok(())
    });
}

#[test]
fn default_tolerances_are_those_of_the_dtype() {
    on_host(|| {
        let third = |dtype: DType| -> cuprum_core::Result<NdArray> { array![1.0 / 3.0].astype(dtype) };
        for dtype in [DType::F16, DType::BF16, DType::F32] {
            assert_relative_eq!(third(dtype)?, array![1.0 / 3.0]);
            assert_abs_diff_eq!(array![1.0 / 3.0], third(dtype)?);
            assert_ulps_eq!(third(dtype)?, array![1.0 / 3.0]);
            assert!(relative_ne!(third(dtype)?, array![1.0 / 3.0], epsilon = 0.0, max_relative = 0.0));
        }
        assert!(relative_ne!(array![1.0f32 / 3.0].astype(DType::F64)?, array![1.0 / 3.0]));
        assert_eq!(
            (NdArray::default_epsilon(), NdArray::default_max_relative(), NdArray::default_max_ulps()),
            (f64::EPSILON, f64::EPSILON, 4)
        );
        assert_ulps_eq!(array![f16::from_bits(0x3c00)], array![f16::from_bits(0x3c04)]);
        assert!(!ulps_eq!(array![bf16::from_bits(0x3f80)], array![bf16::from_bits(0x3f86)], epsilon = 0.0));
        Ok(())
    });
}

#[test]
fn integers_and_complex_numbers() {
    on_host(|| {
        let large = array![i64::MAX, 1];
        assert!(!abs_diff_eq!(large, array![i64::MAX - 1, 1]), "not rounded to float64");
        assert!(abs_diff_eq!(large, array![i64::MAX - 2, 1], epsilon = 2.0));
        assert!(!ulps_eq!(array![1, 2], array![1, 3]), "integers have no units in the last place");
        assert!(abs_diff_eq!(array![true, false], array![1, 0]));
        let z = array![Complex::new(3.0, 4.0)];
        assert!(
            abs_diff_eq!(z, array![Complex::new(3.3, 4.4)], epsilon = 0.51)
                && !abs_diff_eq!(z, array![Complex::new(3.3, 4.4)], epsilon = 0.49)
        );
        assert!(relative_eq!(z, array![Complex::new(3.3, 4.4)], max_relative = 0.1) && relative_ne!(z, array![Complex::new(3.3, 4.4)]));
        Ok(())
    });
}

#[test]
fn shapes_and_errors_differ() {
    on_host(|| {
        assert!(relative_ne!(array![1.0, 1.0], array![1.0]), "no broadcasting");
        assert_relative_eq!(array![[1.0, 2.0]].t()?, array![[1.0], [2.0]]);
        let unreadable: NdArray = (0..u64::MAX).collect();
        assert!(relative_ne!(unreadable, unreadable));
        Ok(())
    });
}

#[test]
fn a_failed_assertion_shows_both_arrays() {
    let assertion = || {
        on_host(|| {
            assert_relative_eq!(array![1.0, 2.0], array![1.0, 2.5]);
            Ok(())
        })
    };
    let panic = std::panic::catch_unwind(assertion).unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("[1., 2.]") && message.contains("[1. , 2.5]") && message.contains("float64"), "{message}");
}
