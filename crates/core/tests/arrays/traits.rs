//! Traits of the standard library on arrays, dtypes, devices and errors.

use std::panic::{RefUnwindSafe, UnwindSafe};

use cuprum_backend_cpu as _;
use cuprum_core::{Complex, DType, Device, Error, NdArray, Result, Scalar, StoredArray, array, bf16, broadcast_to, f16, s, zeros};

use crate::on_cpu;

/// Returns an array whose readers get an out-of-memory error.
fn unreadable() -> NdArray {
    (0..u64::MAX).collect()
}

#[test]
fn equality_is_that_of_shapes_and_values() {
    on_cpu(|| {
        let a = array![[1, 2], [3, 4]];
        assert_eq!(a, array![[1.0, 2.0], [3.0, 4.0]], "dtypes may differ");
        assert_eq!(a.t()?, array![[1u8, 3], [2, 4]], "layouts may differ");
        assert_eq!(&a + 1, array![[2, 3], [4, 5]], "deferred");
        assert_ne!(a, array![1, 2, 3, 4], "no broadcasting, no reshaping");
        assert_ne!(array![2, 2], broadcast_to(&array![2], [1, 2])?);
        assert_ne!(a, array![[1, 2], [3, 5]]);
        assert_ne!(array![f64::NAN], array![f64::NAN]);
        assert_eq!(array![0.0], array![-0.0]);
        assert_eq!(zeros([0, 3], DType::F32)?, zeros([0, 3], DType::Bool)?);
        assert_ne!(zeros([0, 3], DType::F32)?, zeros([3, 0], DType::F32)?);
        assert_ne!(unreadable(), unreadable(), "errors are equal to nothing");
        Ok(())
    });
}

#[test]
fn integers_beyond_64_bits_become_no_array() {
    on_cpu(|| {
        assert_eq!(NdArray::scalar(u64::MAX)?.item_as::<u64>()?, u64::MAX);
        assert_eq!(NdArray::scalar(i64::MIN)?.item_as::<i64>()?, i64::MIN);
        for value in [i128::MAX, 1 << 64, -(1 << 70), i128::from(i64::MIN) - 1] {
            assert!(matches!(NdArray::scalar(value), Err(Error::Value { .. })), "{value}");
        }
        Ok(())
    });
}

#[test]
fn literals_and_vectors_become_arrays() {
    on_cpu(|| {
        let check = |a: NdArray, dtype: DType, shape: &[usize]| assert_eq!((a.dtype(), a.shape()), (dtype, shape));
        check(array![1, 2, 3], DType::I32, &[3]);
        check(array![1.0, 2.0,], DType::F64, &[2]);
        check(array![[1u8], [2]], DType::U8, &[2, 1]);
        check(array![[[true, false]], [[false, false]]], DType::Bool, &[2, 1, 2]);
        check(array![f16::ONE], DType::F16, &[1]);
        check(array![bf16::ONE; 4], DType::BF16, &[4]);
        check(array![[0i64; 3]; 2], DType::I64, &[2, 3]);
        check(array![Complex::new(1.0f32, 2.0)], DType::C64, &[1]);
        check([[0.5f32; 0]; 2].into(), DType::F32, &[2, 0]);
        check(NdArray::default(), DType::F64, &[0]);
        let cube = array![[[1, 2], [3, 4]], [[5, 6], [7, 8]]];
        assert_eq!(cube.index(s![1, 0])?, array![5, 6]);

        let values = vec![1i16, 2, 3];
        let address = values.as_ptr();
        assert_eq!(NdArray::from(values).as_slice::<i16>()?.as_ptr(), address, "moved");
        assert_eq!(NdArray::try_from(vec![vec![1, 2], vec![3, 4]])?, array![[1, 2], [3, 4]]);
        assert_eq!(NdArray::try_from(Vec::<Vec<f64>>::new())?.shape(), [0, 0]);
        let ragged = NdArray::try_from(vec![vec![1.0, 2.0], vec![3.0, 4.0], vec![5.0]]).unwrap_err().to_string();
        assert_eq!(ragged, "[from_vec] rows must have the same length: row 0 has 2 values, row 2 has 1");
        Ok(())
    });
}

#[test]
fn arrays_become_vectors() {
    on_cpu(|| {
        let a = NdArray::from(vec![1i64, 2, 3]);
        let address = a.as_slice::<i64>()?.as_ptr();
        let copy: Vec<i64> = (&a).try_into()?;
        assert_ne!(copy.as_ptr(), address);
        let values: Vec<i64> = a.try_into()?;
        assert_eq!((values.as_ptr(), values), (address, copy));
        let wrong: Result<Vec<f32>> = array![1, 2].try_into();
        assert!(wrong.unwrap_err().to_string().contains("array is int32, asked for float32"));
        Ok(())
    });
}

#[test]
fn iterators_are_collected() {
    on_cpu(|| {
        assert_eq!((1..=4).collect::<NdArray>(), array![1, 2, 3, 4]);
        assert_eq!(["a", "bcd"].iter().map(|s| s.len() == 1).collect::<NdArray>(), array![true, false]);
        assert_eq!(std::iter::empty::<u16>().collect::<NdArray>().dtype(), DType::U16);
        let a = unreadable();
        assert!(matches!(a.to_vec::<u64>(), Err(Error::OutOfMemory { op: "from_iter", .. })));
        assert!(matches!((&a + 1).sum(()).and_then(|s| s.item()), Err(Error::OutOfMemory { .. })));
        assert!(matches!(a.index(s![0]).and_then(|a| a.item()), Err(Error::OutOfMemory { .. })));
        assert!(a.to_string().contains("out of memory") && format!("{a:?}").contains("out of memory"));
        Ok(())
    });
}

#[test]
fn iteration_runs_over_the_first_axis() {
    on_cpu(|| {
        let a = array![[1, 2], [3, 4], [5, 6]];
        let mut rows = (&a).into_iter();
        assert_eq!((rows.len(), rows.next(), rows.next_back(), rows.len()), (3, Some(array![1, 2]), Some(array![5, 6]), 1));
        assert_eq!((rows.next(), rows.next(), rows.next_back()), (Some(array![3, 4]), None, None));
        assert_eq!((&a).into_iter().nth(2), Some(array![5, 6]));
        assert_eq!((&a).into_iter().rev().map(|row| row.item_sum()).collect::<Vec<_>>(), [11, 7, 3]);
        let mut total = 0;
        for row in &a {
            for value in &row {
                assert_eq!(value.ndim(), 0);
                total += value.item()?.as_int().unwrap_or(0);
            }
        }
        assert_eq!(total, 21);
        assert_eq!((&(&a * 2)).into_iter().last(), Some(array![10, 12]), "deferred");
        assert_eq!(zeros([0, 2], DType::F32)?.into_iter().count(), 0);
        let scalar: Vec<NdArray> = zeros((), DType::F32)?.into_iter().collect();
        assert!(scalar[0].item().unwrap_err().to_string().contains("iteration over a 0-d array"));
        Ok(())
    });
}

trait ItemSum {
    fn item_sum(&self) -> i128;
}

impl ItemSum for NdArray {
    fn item_sum(&self) -> i128 {
        self.sum(()).unwrap().item().unwrap().as_int().unwrap()
    }
}

#[test]
fn sums_and_products_of_arrays() {
    on_cpu(|| {
        let rows = array![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
        assert_eq!(rows.into_iter().sum::<NdArray>(), array![9.0, 12.0]);
        let arrays = [array![1, 2], array![[3], [4]]];
        assert_eq!(arrays.iter().sum::<NdArray>(), array![[4, 5], [5, 6]], "broadcast");
        assert_eq!(arrays.iter().product::<NdArray>(), array![[3, 6], [4, 8]]);
        let nothing = std::iter::empty::<NdArray>();
        assert_eq!((nothing.clone().sum::<NdArray>().item()?, nothing.product::<NdArray>().item()?), (Scalar::from(0), Scalar::from(1)));
        let fallible: Result<NdArray> = [1.0, 4.0].iter().map(|&v| array![v].sqrt()).sum();
        assert_eq!(fallible?, array![3.0]);
        let mismatched = [array![1, 2], array![1, 2, 3], array![1]].into_iter().sum::<NdArray>();
        let error = mismatched.to_vec::<i32>().unwrap_err().to_string();
        assert!(error.contains("[add]") && error.contains("broadcast"), "{error}");
        Ok(())
    });
}

#[test]
fn names_parse() {
    assert_eq!("float32".parse::<DType>().unwrap(), DType::F32);
    assert!("float8".parse::<DType>().unwrap_err().to_string().contains("unknown dtype"));
    assert_eq!("cpu".parse::<Device>().unwrap(), Device::CPU);
    assert!("abacus".parse::<Device>().is_err());
}

#[test]
fn debug_shows_values_and_errors_show_their_message() {
    on_cpu(|| {
        let a = array![[1.0, 2.5], [3.0, 4.0]];
        let text = "NdArray([[1. , 2.5],\n         [3. , 4. ]], dtype=float64, shape=(2, 2), device=cpu)";
        assert_eq!(format!("{a:?}"), text);
        assert_eq!(format!("{:?}", &a + 0.0), text, "deferred");
        assert_eq!(format!("{:?}", zeros((), DType::I8)?), "NdArray(0, dtype=int8, shape=(), device=cpu)");
        assert_eq!(format!("{:?}", zeros(0, DType::I8)?), "NdArray([], dtype=int8, shape=(0,), device=cpu)");
        let summary = format!("{:?}", zeros(5000, DType::Bool)?);
        assert!(summary.contains("False, ..., False") && summary.len() < 200, "{summary}");
        assert_eq!(format!("{:.1?}", array![1.0 / 3.0]), "NdArray([0.3], dtype=float64, shape=(1,), device=cpu)");

        let error = array![1, 2].sum(3).unwrap_err();
        assert_eq!(format!("{error:?}"), "[sum] axis 3 is out of bounds for an array of dimension 1");
        Ok(())
    });
}

#[test]
fn display_takes_a_precision() {
    on_cpu(|| {
        let a = array![1.0 / 3.0, 2.0, -0.125];
        assert_eq!(format!("{a}"), "[ 0.33333333  2.         -0.125     ]");
        assert_eq!(format!("{a:.2}"), "[ 0.33  2.   -0.12]");
        assert_eq!(format!("{:.3}", a.index(s![0])?), "0.333");
        assert_eq!(format!("[{:8.3}]", a.index(s![0])?), "[   0.333]");
        assert_eq!(format!("[{:<4}] [{:5}]", NdArray::scalar(7)?, NdArray::scalar(-7)?), "[7   ] [   -7]");
        assert_eq!(format!("{}", a.index(s![0])?), "0.3333333333333333");
        assert_eq!(format!("{:.1}", array![[1, 2]]), "[[1 2]]");
        let number = array![1234.5678].index(s![0])?.item()?;
        assert_eq!(format!("{number:.2}|{number:9.1}|{number:<9.1}|{number:+09.2}"), "1234.57|   1234.6|1234.6   |+01234.57");
        assert_eq!(
            format!("{:.1}|{:4}|{:.1}|{:6}", Scalar::Int(-42), Scalar::Int(7), Scalar::Bool(true), Scalar::Bool(false)),
            "-42|   7|True| False"
        );
        let third = Complex::new(1.0 / 3.0, -2.0 / 3.0);
        assert_eq!(format!("{:.2}|{:.2}", Scalar::Complex(third), NdArray::scalar(third)?), "(0.33-0.67j)|(0.33-0.67j)");
        assert_eq!(format!("{:06}|{:.1}", Scalar::Float(f64::NAN), Scalar::Float(f64::NEG_INFINITY)), "   nan|-inf");
        Ok(())
    });
}

#[test]
fn arrays_cross_caught_panics() {
    fn check<T: UnwindSafe + RefUnwindSafe + Send + Sync>() {}
    check::<NdArray>();
    check::<StoredArray>();
    check::<Error>();
    let a = array![1, 2];
    assert!(std::panic::catch_unwind(|| &a + &array![1, 2, 3]).is_err());
    assert_eq!(a, array![1, 2]);
}
