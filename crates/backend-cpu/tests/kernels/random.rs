//! Random numbers: the words that Philox gives, made into numbers as core says.

use cuprum_core::random::Generator;
use cuprum_core::{DType, bf16, f16};

use crate::support::{as_f64, on_threads};

const SEED: u64 = 0x0123_4567_89ab_cdef;

/// Philox 4x32-10 as in the paper (Salmon et al., SC 2011).
fn philox(counter: u64, key: u64) -> [u32; 4] {
    let (mut c, mut k) = ([counter as u32, (counter >> 32) as u32, 0, 0], [key as u32, (key >> 32) as u32]);
    for _ in 0..10 {
        let (a, b) = (0xD251_1F53 * u64::from(c[0]), 0xCD9E_8D57 * u64::from(c[2]));
        c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// Word n of the stream.
fn word(n: usize) -> u32 {
    philox(n as u64 / 4, SEED)[n % 4]
}

/// 64 bits, number n of the stream.
fn pair(n: usize) -> u64 {
    u64::from(word(2 * n)) | u64::from(word(2 * n + 1)) << 32
}

fn unit(n: usize) -> f32 {
    (word(n) >> 8) as f32 * 2f32.powi(-24)
}

/// One element, parts of a block of words, and runs that several threads share.
const SIZES: [usize; 6] = [1, 2, 3, 5, 1000, 100_003];

#[test]
fn uniform_numbers_are_the_words() {
    for n in SIZES {
        let draw = |dtype| on_threads(|| Generator::new(SEED).random([n], dtype));
        assert!(draw(DType::F64).to_vec::<f64>().unwrap().iter().enumerate().all(|(i, v)| *v == (pair(i) >> 11) as f64 * 2f64.powi(-53)));
        assert!(draw(DType::F32).to_vec::<f32>().unwrap().iter().enumerate().all(|(i, v)| *v == unit(i)));
        assert!(draw(DType::F16).to_vec::<f16>().unwrap().iter().enumerate().all(|(i, v)| *v == f16::from_f32(unit(i))));
        assert!(draw(DType::BF16).to_vec::<bf16>().unwrap().iter().enumerate().all(|(i, v)| *v == bf16::from_f32(unit(i))));
        let (low, high) = (-3.7f32, 11.1f32);
        let ranged = on_threads(|| Generator::new(SEED).uniform(low.into(), high.into(), [n], DType::F32)).to_vec::<f32>().unwrap();
        assert!(ranged.iter().enumerate().all(|(i, v)| *v == low + unit(i) * (high - low)));
    }
}

#[test]
fn integers_are_scaled_words() {
    let scaled = |i: usize, span: u64| ((u128::from(pair(i)) * u128::from(span)) >> 64) as i64;
    for n in SIZES {
        let dice = on_threads(|| Generator::new(SEED).integers(-3, 4, [n], DType::I8)).to_vec::<i8>().unwrap();
        assert!(dice.iter().enumerate().all(|(i, v)| i64::from(*v) == -3 + scaled(i, 7)));
        let long = on_threads(|| Generator::new(SEED).integers(i64::MIN, i64::MAX, [n], DType::I64)).to_vec::<i64>().unwrap();
        assert!(long.iter().enumerate().all(|(i, v)| *v == i64::MIN.wrapping_add(scaled(i, u64::MAX))));
    }
    for dtype in DType::ALL.into_iter().filter(|d| d.is_int()) {
        let dice = as_f64(&on_threads(|| Generator::new(SEED).integers(1, 7, [1000], dtype)));
        assert!(dice.iter().enumerate().all(|(i, v)| *v as i64 == 1 + scaled(i, 6)), "{dtype}");
        assert!((1..7).all(|face| dice.contains(&f64::from(face))), "{dtype}");
    }
}

#[test]
fn normal_numbers_are_box_mullers() {
    let uniform = |n: usize| (pair(n) >> 11) as f64 * 2f64.powi(-53);
    for n in SIZES {
        let normals = on_threads(|| Generator::new(SEED).normal(2.0, 0.5, [n], DType::F64)).to_vec::<f64>().unwrap();
        for (i, v) in normals.iter().enumerate() {
            let (radius, angle) = ((-2.0 * (1.0 - uniform(i & !1)).ln()).sqrt(), std::f64::consts::TAU * uniform(i | 1));
            let want = 2.0 + 0.5 * radius * if i % 2 == 0 { angle.cos() } else { angle.sin() };
            assert!((v - want).abs() < 1e-14, "{i}: {v} {want}");
        }
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let normals = as_f64(&on_threads(|| Generator::new(SEED).normal(0.0, 1.0, [n], dtype)));
            assert!(normals.iter().all(|v| v.abs() < 7.0), "{dtype}");
        }
    }
}

#[test]
fn a_stream_goes_on_at_the_next_block() {
    let g = Generator::new(SEED);
    for (at, n) in [(0, 5), (8, 4), (12, 1)] {
        let drawn = g.random([n], DType::F32).unwrap().to_vec::<f32>().unwrap();
        assert!(drawn.iter().enumerate().all(|(i, v)| *v == unit(at + i)), "{n} from word {at}");
    }
}
