//! Random numbers: Philox words converted as core specifies.

use cuprum_core::random::Generator;
use cuprum_core::testing::philox::PhiloxStream;
use cuprum_core::{DType, bf16, f16};

use crate::support::{as_f64, on_threads};

const WANT: PhiloxStream = PhiloxStream(0x0123_4567_89ab_cdef);

/// Array sizes: one element, partial Philox counter blocks, and arrays shared by several threads.
const SIZES: [usize; 6] = [1, 2, 3, 5, 1000, 100_003];

#[test]
fn uniform_numbers_match_the_words() {
    for n in SIZES {
        let draw = |dtype| on_threads(|| Generator::new(WANT.0).random([n], dtype));
        assert!(draw(DType::F64).to_vec::<f64>().unwrap().iter().enumerate().all(|(i, v)| *v == WANT.unit_f64(i)));
        assert!(draw(DType::F32).to_vec::<f32>().unwrap().iter().enumerate().all(|(i, v)| *v == WANT.unit_f32(i)));
        assert!(draw(DType::F16).to_vec::<f16>().unwrap().iter().enumerate().all(|(i, v)| f32::from(*v) == WANT.unit_with_digits(i, 11)));
        assert!(draw(DType::BF16).to_vec::<bf16>().unwrap().iter().enumerate().all(|(i, v)| f32::from(*v) == WANT.unit_with_digits(i, 8)));
        let (low, high) = (-3.7f32, 11.1f32);
        let ranged = on_threads(|| Generator::new(WANT.0).uniform(low, high, [n], DType::F32)).to_vec::<f32>().unwrap();
        assert!(ranged.iter().enumerate().all(|(i, v)| *v == low + WANT.unit_f32(i) * (high - low)));
    }
}

/// Rounding moves no number to the upper end, and a range whose length overflows has finite numbers.
#[test]
fn uniform_numbers_are_in_the_range() {
    const COUNT: usize = 100_000;
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let draw = |low, high| as_f64(&on_threads(|| Generator::new(WANT.0).uniform(low, high, [COUNT], dtype)));
        let max = match dtype {
            DType::F16 => f16::MAX.into(),
            DType::BF16 => bf16::MAX.into(),
            DType::F32 => f32::MAX.into(),
            _ => f64::MAX,
        };
        for (low, high) in [(0.0, 1.0), (1.0, 1.25), (-1.0, 0.0), (1000.0, 1064.0), (-max / 2.0, max / 2.0)] {
            let numbers = draw(low, high);
            assert!(numbers.iter().all(|x| *x >= low && *x < high), "{dtype} {low} {high}");
            let mean = numbers.iter().map(|x| x / COUNT as f64).sum::<f64>();
            assert!((mean - (low / 2.0 + high / 2.0)).abs() < (high - low) * 0.01, "{dtype} {low} {high}: mean {mean}");
        }
        if dtype != DType::F64 {
            assert!(draw(-max, max).iter().all(|x| x.is_finite() && *x >= -max && *x < max), "{dtype}");
        }
        assert!(draw(2.0, 2.0).iter().all(|x| *x == 2.0), "{dtype}");
        assert!(draw(5.0, 1.0).iter().all(|x| *x >= 1.0 && *x <= 5.0), "{dtype}");
    }
    let error = Generator::new(0).uniform(0.0, 1e39, [3], DType::F32).unwrap_err();
    assert!(error.to_string().contains("out of bounds for float32"), "{error}");
}

#[test]
fn integers_are_scaled_words() {
    let scaled = |i: usize, span: u64| WANT.below(i, span) as i64;
    for n in SIZES {
        let dice = on_threads(|| Generator::new(WANT.0).integers(-3, 4, [n], DType::I8)).to_vec::<i8>().unwrap();
        assert!(dice.iter().enumerate().all(|(i, v)| i64::from(*v) == -3 + scaled(i, 7)));
        let long = on_threads(|| Generator::new(WANT.0).integers(i64::MIN, i64::MAX, [n], DType::I64)).to_vec::<i64>().unwrap();
        assert!(long.iter().enumerate().all(|(i, v)| *v == i64::MIN.wrapping_add(scaled(i, u64::MAX))));
        let part = on_threads(|| Generator::new(WANT.0).integers(0, 3 << 61, [n], DType::I64)).to_vec::<i64>().unwrap();
        assert!(part.iter().enumerate().all(|(i, v)| *v == scaled(i, 3 << 61)));
    }
    for dtype in DType::ALL.into_iter().filter(|d| d.is_int()) {
        let dice = as_f64(&on_threads(|| Generator::new(WANT.0).integers(1, 7, [1000], dtype)));
        assert!(dice.iter().enumerate().all(|(i, v)| *v as i64 == 1 + scaled(i, 6)), "{dtype}");
        assert!((1..7).all(|face| dice.contains(&f64::from(face))), "{dtype}");
    }
}

/// A third of the integers below `3 * 2^61` is divisible by 3, also with array bounds.
#[test]
fn integers_of_wide_ranges_are_uniform() {
    let n = 30_000;
    let end = cuprum_core::full([n], 3i64 << 61, DType::I64).unwrap();
    let numbers = Generator::new(3).integers(0, 3 << 61, n, DType::I64).unwrap().to_vec::<i64>().unwrap();
    assert_eq!(Generator::new(3).integers_between(0, &end, false, n, DType::I64).unwrap().to_vec::<i64>().unwrap(), numbers);
    let share = numbers.iter().filter(|x| **x % 3 == 0).count() as f64 / n as f64;
    assert!((share - 1.0 / 3.0).abs() < 0.015, "{share}");
}

#[test]
fn normal_numbers_match_box_muller() {
    for n in SIZES {
        let normals = on_threads(|| Generator::new(WANT.0).normal(2.0, 0.5, [n], DType::F64)).to_vec::<f64>().unwrap();
        for (i, v) in normals.iter().enumerate() {
            let want = 2.0 + 0.5 * WANT.normal(i);
            assert!((v - want).abs() < 1e-14, "{i}: {v} {want}");
        }
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let normals = as_f64(&on_threads(|| Generator::new(WANT.0).normal(0.0, 1.0, [n], dtype)));
            assert!(normals.iter().all(|v| v.abs() < 7.0), "{dtype}");
        }
    }
}

#[test]
fn stream_continues_at_the_next_block() {
    let g = Generator::new(WANT.0);
    for (at, n) in [(0, 5), (8, 4), (12, 1)] {
        let drawn = g.random([n], DType::F32).unwrap().to_vec::<f32>().unwrap();
        assert!(drawn.iter().enumerate().all(|(i, v)| *v == WANT.unit_f32(at + i)), "{n} from word {at}");
    }
}
