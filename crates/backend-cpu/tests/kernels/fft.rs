//! The kernel family `Fft` against sums of the definition in float64, with compensated addition.

use cuprum_core::ops::fft::{Norm, fft, fftn, hfft, ifft, ifftn, ihfft, irfft, irfftn, rfft, rfftn};
use cuprum_core::{Complex, DType, Element, Error, NdArray, Result, s, with_fusion};

use crate::support::on_threads;

type C64 = Complex<f64>;

/// Deterministic numbers between -1 and 1.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

fn complex(n: usize, seed: u64) -> Vec<C64> {
    numbers(n, seed).into_iter().zip(numbers(n, seed + 1000)).map(|(re, im)| Complex::new(re, im)).collect()
}

/// A sum with Neumaier's compensation.
#[derive(Default)]
struct Sum {
    sum: f64,
    rest: f64,
}

impl Sum {
    fn add(&mut self, x: f64) {
        let t = self.sum + x;
        self.rest += if self.sum.abs() >= x.abs() { (self.sum - t) + x } else { (x - t) + self.sum };
        self.sum = t;
    }
}

/// Returns element `k` of the transform of `x` by its definition.
fn bin(x: &[C64], k: usize, inverse: bool) -> C64 {
    let (mut re, mut im) = (Sum::default(), Sum::default());
    let n = x.len();
    for (j, x) in x.iter().enumerate() {
        let turn = (j as u128 * k as u128 % n as u128) as f64 / n as f64;
        // The angle is reduced to an eighth of a turn, where sine and cosine have the smallest errors.
        let eighth = (turn * 8.0).round();
        let (sin, cos) = ((turn - eighth / 8.0) * std::f64::consts::TAU).sin_cos();
        let h = std::f64::consts::FRAC_1_SQRT_2;
        let (c8, s8) = [(1.0, 0.0), (h, h), (0.0, 1.0), (-h, h), (-1.0, 0.0), (-h, -h), (0.0, -1.0), (h, -h)][eighth as usize % 8];
        let (c, s) = (cos * c8 - sin * s8, sin * c8 + cos * s8);
        let s = if inverse { s } else { -s };
        re.add(x.re * c);
        re.add(-x.im * s);
        im.add(x.re * s);
        im.add(x.im * c);
    }
    Complex::new(re.sum + re.rest, im.sum + im.rest)
}

fn direct(x: &[C64], inverse: bool) -> Vec<C64> {
    (0..x.len()).map(|k| bin(x, k, inverse)).collect()
}

/// Returns the values as complex128.
fn values(a: &NdArray) -> Vec<C64> {
    a.astype(DType::C128).unwrap().to_vec::<C64>().unwrap()
}

/// Returns the difference of `got` and `want`, relative to the norm of `want`.
fn error(got: &[C64], want: &[C64]) -> f64 {
    assert_eq!(got.len(), want.len());
    let difference: f64 = got.iter().zip(want).map(|(a, b)| (a - b).norm_sqr()).sum();
    let norm: f64 = want.iter().map(|b| b.norm_sqr()).sum();
    (difference / norm.max(f64::MIN_POSITIVE)).sqrt()
}

fn array<T: Element>(x: Vec<T>) -> NdArray {
    let n = x.len();
    NdArray::from_vec(x, [n]).unwrap()
}

/// Returns the largest accepted relative error of a transform of `n` points in float64. Lengths with large prime factors take three
/// transforms.
fn bound(n: usize) -> f64 {
    f64::EPSILON * (4.0 + (n as f64).log2())
}

const PLAIN: Norm = Norm::Backward;

#[test]
fn every_length_to_200() {
    for n in 1..=200 {
        let x = complex(n, n as u64);
        let (forward, backward) = (direct(&x, false), direct(&x, true));
        let a = array(x.clone());
        assert!(error(&values(&fft(&a, None, -1, PLAIN).unwrap()), &forward) < bound(n), "{n}");
        assert!(error(&values(&ifft(&a, None, -1, Norm::Forward).unwrap()), &backward) < bound(n), "{n}");
        let single = a.astype(DType::C64).unwrap();
        assert!(error(&values(&fft(&single, None, -1, PLAIN).unwrap()), &forward) < 4e-7, "{n}");

        let real: Vec<C64> = x.iter().map(|x| x.re.into()).collect();
        let spectrum = direct(&real, false);
        let r = a.real().unwrap();
        assert!(error(&values(&fft(&r, None, -1, PLAIN).unwrap()), &spectrum) < bound(n), "{n}");
        let inverse: Vec<C64> = spectrum.iter().map(Complex::conj).collect();
        assert!(error(&values(&ifft(&r, None, -1, Norm::Forward).unwrap()), &inverse) < bound(n), "{n}");
        let half = rfft(&r, None, -1, PLAIN).unwrap();
        assert!(error(&values(&half), &spectrum[..n / 2 + 1]) < bound(n), "{n}");
        assert!(error(&values(&irfft(&half, Some(n), -1, PLAIN).unwrap()), &real) < 2.0 * bound(n), "{n}");
        let half = rfft(&r.astype(DType::F32).unwrap(), None, -1, PLAIN).unwrap();
        assert!(error(&values(&half), &spectrum[..n / 2 + 1]) < 4e-7, "{n}");
        assert!(error(&values(&hfft(&ihfft(&r, None, -1, PLAIN).unwrap(), Some(n), -1, PLAIN).unwrap()), &real) < 2.0 * bound(n), "{n}");
    }
}

#[test]
fn long_transforms() {
    for n in [1 << 20, 999_983, 65_537, 2 * 3 * 5 * 7 * 11 * 13] {
        let x = complex(n, 3);
        let spectrum = on_threads(|| fft(&array(x.clone()), None, -1, PLAIN));
        let got = values(&spectrum);
        let energy = |x: &[C64]| x.iter().map(|x| x.norm_sqr()).sum::<f64>();
        let (before, after) = (energy(&x), energy(&got) / n as f64);
        assert!((before - after).abs() < 1e-13 * before, "Parseval for {n}: {before} and {after}");
        let scale = (n as f64).sqrt();
        for k in [1, n / 3, n - 1] {
            assert!((got[k] - bin(&x, k, false)).norm() < 1e-14 * scale, "{n}, element {k}");
        }
        assert!(error(&values(&ifft(&spectrum, None, -1, PLAIN).unwrap()), &x) < 1e-14, "{n}");
        let real = rfft(&array(numbers(n, 3)), None, -1, PLAIN).unwrap();
        let back = values(&irfft(&real, Some(n), -1, PLAIN).unwrap());
        let want: Vec<C64> = numbers(n, 3).into_iter().map(C64::from).collect();
        assert!(error(&back, &want) < 1e-14, "{n}");
    }
}

/// Long lines are transformed as matrices. Their layout in memory does not matter, nor whether they are computed in place.
#[test]
fn long_lines_of_every_layout() {
    for n in [1 << 17, 3 << 17, 360 * 367, 1_000_000] {
        let x = complex(2 * n, 5);
        let lines = NdArray::from_vec(x.clone(), [2, n]).unwrap();
        let spectrum = on_threads(|| fft(&lines, None, -1, PLAIN));
        let got = values(&spectrum);
        let scale = (n as f64).sqrt();
        for (line, k) in [(0, 0), (0, 1), (0, n / 2), (1, n / 3), (1, 1025), (1, n - 1)] {
            let want = bin(&x[line * n..(line + 1) * n], k, false);
            assert!((got[line * n + k] - want).norm() < 1e-14 * scale, "{n}, line {line}, element {k}");
        }
        assert!(error(&values(&ifft(&spectrum, None, -1, PLAIN).unwrap()), &x) < 1e-15 * (n as f64).log2(), "{n}");
        let same = |other: &NdArray, name: &str| {
            assert!(fft(other, None, -1, PLAIN).unwrap().to_bytes().unwrap() == spectrum.to_bytes().unwrap(), "{name} {n}");
        };
        let reversed = lines.index(s![..;-1, ..;-1]).unwrap().copy().unwrap().index(s![..;-1, ..;-1]).unwrap();
        same(&reversed, "reversed");
        same(&lines.t().unwrap().copy().unwrap().t().unwrap(), "transposed");
        same(&with_fusion(true, || lines.multiply(1.0)).unwrap(), "computed in place");
        let single = fft(&lines.astype(DType::C64).unwrap(), None, -1, PLAIN).unwrap();
        assert!(error(&values(&single), &got) < 4e-7, "{n}");
    }
}

/// Transforms all lines of a C-ordered array along one axis by the definition.
fn direct_along(x: &[C64], shape: &[usize], axis: usize) -> Vec<C64> {
    let (n, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    let mut out = x.to_vec();
    for start in (0..x.len()).filter(|i| i / inner % n == 0) {
        let lane: Vec<C64> = (0..n).map(|j| x[start + j * inner]).collect();
        direct(&lane, false).into_iter().enumerate().for_each(|(k, v)| out[start + k * inner] = v);
    }
    out
}

#[test]
fn axes_and_strides() {
    let shape = [6, 35, 50];
    let base = NdArray::from_vec(complex(6 * 35 * 50, 7), shape).unwrap();
    let views: Vec<NdArray> = vec![
        base.clone(),
        base.t().unwrap(),
        base.transpose([1, 0, 2]).unwrap(),
        base.transpose([0, 2, 1]).unwrap(),
        base.index(s![..;-1, 3..30, ..;2]).unwrap(),
        base.index(s![1..3]).unwrap().t().unwrap(),
        base.index(s![2, 1..2]).unwrap().broadcast_to([3, 20, 50]).unwrap(),
    ];
    for view in views {
        for axis in 0..3 {
            let want = direct_along(&values(&view), view.shape(), axis);
            let got = on_threads(|| fft(&view, None, axis, PLAIN));
            assert!(error(&values(&got), &want) < 1e-15, "{:?} {:?} axis {axis}", view.shape(), view.strides());
            let real = view.real().unwrap().copy().unwrap();
            let complete = values(&fft(&real, None, axis, PLAIN).unwrap());
            let half = rfft(&real, None, axis, PLAIN).unwrap();
            let extent = half.shape()[axis] as isize;
            let cut = fft(&real, None, axis, PLAIN).unwrap().moveaxis(axis, 0).unwrap().index(s![..extent]).unwrap();
            assert!(error(&values(&half), &values(&cut.moveaxis(0, axis).unwrap())) < 1e-15);
            assert!(error(&complete, &direct_along(&values(&real), view.shape(), axis)) < 1e-15);
            let back = irfft(&half, Some(view.shape()[axis]), axis, PLAIN).unwrap();
            assert!(error(&values(&back), &values(&real)) < 1e-15);
        }
        let want = (0..3).fold(values(&view), |x, axis| direct_along(&x, view.shape(), axis));
        assert!(error(&values(&on_threads(|| fftn(&view, None, (), PLAIN))), &want) < 2e-15);
        let back = ifftn(&fftn(&view, None, (2, 0), Norm::Ortho).unwrap(), None, (0, 2), Norm::Ortho).unwrap();
        assert!(error(&values(&back), &values(&view)) < 2e-15);
        let real = view.real().unwrap();
        let half = on_threads(|| rfftn(&real, None, (2, 1), PLAIN));
        let back = irfftn(&half, Some(&[view.shape()[2] as isize, view.shape()[1] as isize]), (2, 1), PLAIN).unwrap();
        assert!(error(&values(&back), &values(&real)) < 2e-15);
    }
}

#[test]
fn many_short_lanes() {
    let shape = [3000, 4, 5];
    let a = NdArray::from_vec(complex(60_000, 9), shape).unwrap();
    for axis in 0..3 {
        if axis > 0 {
            let got = on_threads(|| fft(&a, None, axis, PLAIN));
            assert!(error(&values(&got), &direct_along(&values(&a), &shape, axis)) < 1e-15);
        }
        let there = on_threads(|| fft(&a.astype(DType::C64)?, None, axis, PLAIN));
        let back = on_threads(|| ifft(&there, None, axis, PLAIN));
        assert!(error(&values(&back), &values(&a)) < 4e-7);
    }
}

#[test]
fn longer_and_shorter_transforms() {
    let a = NdArray::from_vec(complex(8 * 9 * 10, 11), [8, 9, 10]).unwrap();
    let padded = |a: &NdArray, shape: [usize; 3]| {
        let mut out = vec![C64::default(); shape.iter().product()];
        let x = values(a);
        for (at, x) in x.iter().enumerate() {
            let (i, j, k) = (at / a.shape()[2] / a.shape()[1], at / a.shape()[2] % a.shape()[1], at % a.shape()[2]);
            out[(i * shape[1] + j) * shape[2] + k] = *x;
        }
        NdArray::from_vec(out, shape).unwrap()
    };
    for (s, shape) in [([8, 12, 10], [8, 12, 10]), ([11, 13, 16], [11, 13, 16]), ([8, -1, 30], [8, 9, 30])] {
        let want = values(&fftn(&padded(&a, shape), None, (), PLAIN).unwrap());
        assert!(error(&values(&fftn(&a, Some(&s), (), PLAIN).unwrap()), &want) < 1e-15, "{s:?}");
        let fused = fftn(&a.multiply(2.0).unwrap(), Some(&s), (), PLAIN).unwrap().multiply(0.5).unwrap();
        assert!(error(&values(&fused), &want) < 1e-15, "{s:?} of a computed array");
    }
    let want = values(&fftn(&a.index(s![..3, .., ..7]).unwrap(), None, (), PLAIN).unwrap());
    assert!(error(&values(&fftn(&a, Some(&[3, 9, 7]), (), PLAIN).unwrap()), &want) < 1e-15);
    // A spectrum is cropped or followed by zeros, too.
    let cropped = irfft(&a, Some(6), 1, PLAIN).unwrap();
    assert_eq!(values(&cropped), values(&irfft(&a.index(s![.., ..4]).unwrap(), Some(6), 1, PLAIN).unwrap()));
    let longer = values(&irfftn(&a, Some(&[10, 40]), (0, 1), PLAIN).unwrap());
    let zeros = values(&irfftn(&padded(&a, [10, 21, 10]), Some(&[10, 40]), (0, 1), PLAIN).unwrap());
    assert!(error(&longer, &zeros) < 1e-15);
}

#[test]
fn imaginary_parts_of_real_frequencies_do_not_count() {
    for n in [1, 2, 5, 8, 9] {
        let mut x = complex(n / 2 + 1, 5);
        let with = irfft(&array(x.clone()), Some(n), -1, PLAIN).unwrap();
        x[0].im = 0.0;
        if n % 2 == 0 {
            x[n / 2].im = 0.0;
        }
        assert_eq!(values(&with), values(&irfft(&array(x), Some(n), -1, PLAIN).unwrap()), "{n}");
    }
}

#[test]
fn fused_input_has_the_bits_of_computed_input() {
    let (a, b) = (array(complex(1000, 1)).reshape([20, 50]).unwrap(), array(complex(1000, 2)).reshape([20, 50]).unwrap());
    type Transform = fn(&NdArray, &NdArray) -> Result<NdArray>;
    let transforms: [(&str, Transform); 4] = [
        ("complex", |a, b| fft(&a.multiply(b)?, None, 0, PLAIN)),
        ("several axes", |a, b| fftn(&a.add(b)?, None, (), Norm::Ortho)),
        ("real", |a, b| rfft(&a.real()?.multiply(b.imag()?)?, None, 1, PLAIN)),
        ("to real", |a, b| irfftn(&a.subtract(b)?, None, (), PLAIN)),
    ];
    for (name, transform) in transforms {
        let fused = transform(&a, &b).unwrap().to_bytes().unwrap();
        let alone = with_fusion(false, || transform(&a, &b)).unwrap().to_bytes().unwrap();
        assert!(fused == alone, "{name}");
    }
}

#[test]
fn errors_name_the_function_and_the_shape() {
    let a = NdArray::from_vec(vec![1.0; 6], [2, 3]).unwrap();
    let text = |e: Result<NdArray>| e.unwrap_err().to_string();
    let none = text(fft(&a, Some(0), -1, PLAIN));
    assert!(none.contains("fft") && none.contains("n = 0") && none.contains("(2, 3)"), "{none}");
    assert!(matches!(fft(&a, None, 2, PLAIN), Err(Error::Axis { op: "fft", axis: 2, .. })));
    let c = a.astype(DType::C64).unwrap();
    assert!(matches!(rfft(&c, None, -1, PLAIN), Err(Error::DType { op: "rfft", .. })));
    let lengths = text(fftn(&a, Some(&[2, 3, 4]), (0, 1), PLAIN));
    assert!(lengths.contains("fftn") && lengths.contains("3 lengths") && lengths.contains("2 axes"), "{lengths}");
    assert!(text(rfftn(&a, None, [0isize; 0], PLAIN)).contains("rfftn"));
    let huge = fft(&a, Some(1 << 60), -1, PLAIN);
    assert!(matches!(huge, Err(Error::OutOfMemory { .. } | Error::Shape { .. } | Error::Value { .. })), "{huge:?}");
}

#[test]
fn inverse_transforms_of_real_numbers_have_no_negative_zeros() {
    for n in [1, 4, 6, 16] {
        let x: Vec<f64> = vec![1.0; n];
        let got = values(&ifft(&array(x), None, -1, Norm::Backward).unwrap());
        assert!(!got[0].im.is_sign_negative() && !got[n / 2].im.is_sign_negative(), "{got:?}");
    }
}
