//! Reductions of segments of many lengths.

use cuprum_core::{
    Complex, DType, Element, Error, NdArray, Result, bf16, broadcast_to, f16, flip, full, segment_max, segment_min, segment_prod,
    segment_sum,
};

use crate::{alone_on_device, numbers, on_device, served};

/// Lists of segment lengths relative to a tile of `tile` values and segment ends: equal, empty, and a few long segments among short ones.
fn mixtures(tile: usize) -> Vec<Vec<usize>> {
    let skewed = |short: usize| (0..9000).map(|n| if n % 3000 == 1500 { 7 * tile + n } else { n % (short + 1) }).collect();
    vec![
        vec![20 * tile],
        vec![0; 16 * tile],
        vec![1; 9 * tile],
        [vec![0; tile], vec![16 * tile + 5], vec![0; tile]].concat(),
        vec![tile - 1; 20],
        vec![tile; 20],
        vec![tile + 1; 20],
        vec![2 * tile - 1; 11],
        vec![5; 4 * tile],
        [vec![3, 100 * tile], vec![0, 1, 2, 33 * tile]].concat(),
        skewed(9),
        skewed(60),
    ]
}

fn offsets_of(lengths: &[usize], first: usize) -> Vec<i64> {
    let mut offsets = vec![first as i64];
    for length in lengths {
        offsets.push(offsets[offsets.len() - 1] + *length as i64);
    }
    offsets
}

/// Checks segment sums against sequential sums. `tolerance` is relative to the sum of magnitudes.
fn check<T: Element>(values: &[T], wide: impl Fn(&T) -> Complex<f64>, offsets: &[i64], tolerance: f64, what: &str) -> Result<()> {
    let (a, o) = (NdArray::from_slice(values)?, NdArray::from_slice(offsets)?);
    let got = served::<T>(|| segment_sum(&a, &o))?;
    assert_eq!(got.len(), offsets.len() - 1, "{what}");
    for (n, got) in got.iter().enumerate() {
        let range = &values[offsets[n] as usize..offsets[n + 1] as usize];
        let (mut want, mut scale) = (Complex::new(0.0, 0.0), 0.0);
        for x in range {
            want += wide(x);
            scale += wide(x).norm();
        }
        assert!((wide(got) - want).norm() <= tolerance * scale, "{what}, segment {n}: {} instead of {want}", wide(got));
    }
    Ok(())
}

#[test]
fn sums_of_segments_of_any_lengths() {
    on_device(|| {
        for (n, lengths) in mixtures(256 * 15).into_iter().enumerate() {
            let offsets = offsets_of(&lengths, n % 2 * 7); // with values before the first segment and after the last
            let count = offsets[lengths.len()] as usize + n % 3;
            let values: Vec<f32> = numbers(count).into_iter().map(|x| x as f32).collect();
            check(&values, |x| Complex::new(f64::from(*x), 0.0), &offsets, 1e-6, &format!("float32, mixture {n}"))?;
        }
        for (n, lengths) in mixtures(256 * 11).into_iter().enumerate() {
            let offsets = offsets_of(&lengths, 0);
            let values: Vec<i64> = (0..offsets[lengths.len()]).map(|i| i * i % 1_000_003 - 500_000).collect();
            let got = served::<i64>(|| segment_sum(&NdArray::from_slice(&values)?, &NdArray::from_slice(&offsets)?))?;
            let want = offsets.windows(2).map(|w| values[w[0] as usize..w[1] as usize].iter().sum::<i64>()).collect::<Vec<_>>();
            assert!(got == want, "int64, mixture {n}");
        }
        Ok(())
    });
}

#[test]
fn sums_of_segments_of_every_dtype() {
    on_device(|| {
        let lengths: Vec<usize> = (0..3000).map(|n| if n == 1000 { 40_000 } else { n % 50 }).collect();
        let offsets = offsets_of(&lengths, 0);
        let x = numbers(offsets[lengths.len()] as usize);
        macro_rules! real {
            ($t:ty, $make:expr, $wide:expr, $tolerance:expr) => {{
                let values: Vec<$t> = x.iter().map($make).collect();
                check(&values, |v: &$t| Complex::new($wide(v), 0.0), &offsets, $tolerance, stringify!($t))?;
            }};
        }
        real!(f64, |x| *x, |v: &f64| *v, 1e-14);
        real!(f16, |x| f16::from_f64(*x), |v: &f16| v.to_f64(), 1e-3);
        real!(bf16, |x| bf16::from_f64(*x), |v: &bf16| v.to_f64(), 1e-2);
        real!(u64, |x| (x * 1e6 + 1e6) as u64, |v: &u64| *v as f64, 1e-15);
        let values: Vec<Complex<f64>> = x.iter().map(|x| Complex::new(*x, 1.0 - x)).collect();
        check(&values, |v| *v, &offsets, 1e-14, "complex128")?;
        let values: Vec<Complex<f32>> = x.iter().map(|x| Complex::new(*x as f32, 0.5)).collect();
        check(&values, |v| Complex::new(f64::from(v.re), f64::from(v.im)), &offsets, 1e-6, "complex64")
    });
}

/// Checks minima and maxima of values without NaN. `lowest` and `highest` are the results of empty segments.
fn check_extremes<T: Element + PartialOrd>(values: &[T], (lowest, highest): (T, T), offsets: &[i64], what: &str) -> Result<()> {
    let (a, o) = (NdArray::from_slice(values)?, NdArray::from_slice(offsets)?);
    let segments = || offsets.windows(2).map(|w| &values[w[0] as usize..w[1] as usize]);
    let minima: Vec<T> = segments().map(|x| x.iter().fold(highest, |a, b| if *b < a { *b } else { a })).collect();
    let maxima: Vec<T> = segments().map(|x| x.iter().fold(lowest, |a, b| if *b > a { *b } else { a })).collect();
    assert!(served::<T>(|| segment_min(&a, &o))? == minima, "minima, {what}");
    assert!(served::<T>(|| segment_max(&a, &o))? == maxima, "maxima, {what}");
    Ok(())
}

#[test]
fn extremes_and_products_of_segments() {
    on_device(|| {
        for (n, lengths) in mixtures(256 * 15).into_iter().enumerate() {
            let offsets = offsets_of(&lengths, n % 2 * 7);
            let count = offsets[lengths.len()] as usize + n % 3;
            let mut values: Vec<f32> = numbers(count).into_iter().map(|x| x as f32).collect();
            values.iter_mut().step_by(1237).for_each(|x| *x = f32::INFINITY * x.signum());
            check_extremes(&values, (f32::NEG_INFINITY, f32::INFINITY), &offsets, &format!("float32, mixture {n}"))?;
            let small: Vec<i16> = (0..count).map(|i| (i * 7919 % 65_537) as i16).collect();
            check_extremes(&small, (i16::MIN, i16::MAX), &offsets, &format!("int16, mixture {n}"))?;
        }
        let lengths: Vec<usize> = (0..3000).map(|n| if n == 1000 { 40_000 } else { n % 50 }).collect();
        let offsets = offsets_of(&lengths, 0);
        let count = offsets[lengths.len()] as usize;
        let x = numbers(count);
        check_extremes(&x, (f64::NEG_INFINITY, f64::INFINITY), &offsets, "float64")?;
        check_extremes(&x.iter().map(|x| *x > 0.4).collect::<Vec<bool>>(), (false, true), &offsets, "bool")?;
        check_extremes(&x.iter().map(|x| f16::from_f64(*x)).collect::<Vec<_>>(), (f16::NEG_INFINITY, f16::INFINITY), &offsets, "float16")?;
        check_extremes(&x.iter().map(|x| (x * 1e18) as i64).collect::<Vec<_>>(), (i64::MIN, i64::MAX), &offsets, "int64")?;
        check_extremes(&x.iter().map(|x| (x * 120.0) as i8).collect::<Vec<_>>(), (i8::MIN, i8::MAX), &offsets, "int8")?;
        // A NaN in a segment is both its minimum and its maximum.
        let mut with_nan = x.clone();
        with_nan.iter_mut().step_by(977).for_each(|x| *x = f64::NAN);
        let (a, o) = (NdArray::from_slice(&with_nan)?, NdArray::from_slice(&offsets)?);
        for got in [served::<f64>(|| segment_min(&a, &o))?, served::<f64>(|| segment_max(&a, &o))?] {
            let segments = offsets.windows(2).map(|w| &with_nan[w[0] as usize..w[1] as usize]);
            assert!(got.iter().zip(segments).all(|(got, x)| got.is_nan() == x.iter().any(|x| x.is_nan())));
        }
        let odd: Vec<u64> = (0..count as u64).map(|i| 2 * i + 1).collect();
        let got = served::<u64>(|| segment_prod(&NdArray::from_slice(&odd)?, &NdArray::from_slice(&offsets)?))?;
        let product = |x: &[u64]| x.iter().fold(1u64, |a, b| a.wrapping_mul(*b));
        assert!(got == offsets.windows(2).map(|w| product(&odd[w[0] as usize..w[1] as usize])).collect::<Vec<_>>());
        // Few factors of two, so that products stay finite and exact in any order.
        let powers: Vec<f32> = (0..count).map(|i| if i % 977 == 0 { 2.0 } else { [1.0, -1.0][i % 2] }).collect();
        let got = served::<f32>(|| segment_prod(&NdArray::from_slice(&powers)?, &NdArray::from_slice(&offsets)?))?;
        assert!(got == offsets.windows(2).map(|w| powers[w[0] as usize..w[1] as usize].iter().product()).collect::<Vec<f32>>());
        Ok(())
    });
}

#[test]
fn fused_programs_compute_the_values() {
    on_device(|| {
        let n = 200_000;
        let (values, offsets) = ((0..n).collect::<Vec<i64>>(), (0..=n).step_by(10).collect::<Vec<i64>>());
        let (a, o) = (NdArray::from_slice(&values)?, NdArray::from_slice(&offsets)?);
        let two = NdArray::scalar(2i64)?;
        let got = served::<i64>(|| segment_sum(&((&flip(&a, None)? - &a) * &two), &o))?;
        let want: Vec<i64> = values.chunks(10).map(|v| v.iter().map(|i| 2 * (n - 1 - 2 * i)).sum()).collect();
        assert_eq!(got, want);
        let got = served::<i64>(|| segment_sum(&broadcast_to(&full(1, 3, DType::I8)?, n as usize)?, &o))?;
        assert_eq!(got, vec![30; n as usize / 10]);
        Ok(())
    });
}

#[test]
fn sums_of_negative_zeros_are_positive() {
    on_device(|| {
        let n = 70_000;
        let a = full(n, -0.0f64, DType::F64)?;
        let offsets: Vec<i64> = (0..=n as i64 / 5).flat_map(|k| [5 * k, 5 * k]).collect();
        let got = served::<f64>(|| segment_sum(&a, &NdArray::from_slice(&offsets)?))?;
        assert!(got.iter().all(|x| x.to_bits() == 0));
        Ok(())
    });
}

#[test]
fn invalid_offsets_are_errors() {
    alone_on_device(|| {
        let n = 100_000i64;
        let a = full(n as usize, 1.0f32, DType::F32)?;
        let good: Vec<i64> = (0..=n / 10).map(|k| 10 * k).collect();
        let last = good.len() - 1;
        // An offset that is too large, one below its predecessor, a first or last one out of range, and decreasing offsets.
        let changed = |at: usize, to: i64| {
            let mut offsets = good.clone();
            offsets[at] = to;
            offsets
        };
        let falling: Vec<i64> = good.iter().rev().copied().collect();
        // The difference of the last and the first offset overflows.
        let mut far = changed(last, i64::MIN);
        far[0] = 1;
        for bad in [
            changed(5000, n + 1),
            changed(7000, 3),
            changed(0, -1),
            changed(last, n + 7),
            changed(0, n),
            changed(3, i64::MAX),
            falling,
            far,
        ] {
            let sums = segment_sum(&a, &NdArray::from_slice(&bad)?).and_then(|s| s.to_vec::<f32>());
            assert!(matches!(sums, Err(Error::Value { op: "segment_sum", .. })), "{sums:?}");
        }
        assert_eq!(served::<f32>(|| segment_sum(&a, &NdArray::from_slice(&good)?))?, vec![10.0; last], "afterwards");
        Ok(())
    });
}
