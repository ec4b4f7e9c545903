//! The kernel family `Fft` on a real device, against the CPU backend, whose own tests compare it with the definition.

use std::thread;

use cuprum_backend_cpu as _;
use cuprum_backend_cuda::cufft::{self, MAX_CACHED_PLANS};
use cuprum_backend_cuda::{device, testing};
use cuprum_core::ops::fft::{Norm, fft, fftn, hfft, ifft, ifftn, ihfft, irfft, irfftn, rfft, rfftn};
use cuprum_core::{Complex, DType, Device, Error, NdArray, Result, Stream, explain, f16, s, with_device, with_fusion, with_stream};

/// Runs `test` with a CUDA device as the default, if cuFFT is installed.
fn on_device(test: impl FnOnce(Device)) {
    let Some(device) = testing::device() else { return };
    match cufft::load_cufft(device::context(device).unwrap()) {
        Ok(()) => with_device(device, || test(device)),
        Err(missing) => testing::skip(1, missing),
    }
}

/// Deterministic complex numbers between -1 and 1, in the memory of the host.
fn numbers(shape: &[usize], dtype: DType) -> NdArray {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let values: Vec<Complex<f64>> = (0..shape.iter().product()).map(|_| Complex::new(next(), next())).collect();
    with_device(Device::CPU, || {
        let a = NdArray::from_vec(values, shape).unwrap();
        (if dtype.is_complex() { a } else { a.real().unwrap() }).astype(dtype).unwrap().copy().unwrap()
    })
}

fn values(a: &NdArray) -> Vec<Complex<f64>> {
    let host = a.to_device(Device::CPU).unwrap();
    with_device(Device::CPU, || host.astype(DType::C128).unwrap().to_vec::<Complex<f64>>().unwrap())
}

/// Checks that `f` gives the same on the device and on the host, up to rounding.
fn agrees(name: &str, device: Device, a: &NdArray, f: impl Fn(&NdArray) -> Result<NdArray>) {
    let want = with_device(Device::CPU, || f(a)).unwrap();
    let got = f(&a.to_device(device).unwrap()).unwrap();
    assert_eq!((got.dtype(), got.shape(), got.device()), (want.dtype(), want.shape(), device), "{name}");
    let (got, want_values) = (values(&got), values(&want));
    let difference: f64 = got.iter().zip(&want_values).map(|(x, y)| (x - y).norm_sqr()).sum();
    let norm: f64 = want_values.iter().map(|y| y.norm_sqr()).sum();
    // A float16 result is a rounded float32 one, and may differ by one unit in the last place.
    let most = match want.dtype().real() {
        DType::F16 => f64::from(f16::EPSILON),
        DType::F32 => 1e-6,
        _ => 2e-15,
    };
    let error = (difference / norm.max(f64::MIN_POSITIVE)).sqrt();
    assert!(error < most, "{name} of {} {:?}: error {error:e}", a.dtype(), a.shape());
}

const PLAIN: Norm = Norm::Backward;

#[test]
fn every_length_to_200() {
    on_device(|device| {
        for n in (1..=200).chain([1021, 4096, 10_007, 65_536, 100_003]) {
            let a = numbers(&[3, n], if n % 2 == 0 { DType::C64 } else { DType::C128 });
            agrees("fft", device, &a, |a| fft(a, None, -1, PLAIN));
            agrees("ifft", device, &a, |a| ifft(a, None, -1, PLAIN));
            let r = numbers(&[3, n], if n % 3 == 0 { DType::F32 } else { DType::F64 });
            agrees("fft of real numbers", device, &r, |a| fft(a, None, -1, PLAIN));
            agrees("rfft", device, &r, |a| rfft(a, None, -1, PLAIN));
            agrees("ihfft", device, &r, |a| ihfft(a, None, -1, PLAIN));
            agrees("irfft", device, &a, |a| irfft(a, Some(n), -1, PLAIN));
            agrees("hfft", device, &a, |a| hfft(a, Some(2 * n), -1, PLAIN));
        }
    });
}

#[test]
fn axes_strides_and_norms() {
    on_device(|device| {
        let norms = [Norm::Backward, Norm::Ortho, Norm::Forward];
        for dtype in [DType::C64, DType::C128, DType::F32, DType::F64, DType::I32, DType::F16] {
            let base = numbers(&[6, 35, 50], if dtype.is_int() { DType::F64 } else { dtype });
            let base = if dtype.is_int() { with_device(Device::CPU, || base.multiply(9).unwrap().astype(dtype).unwrap()) } else { base };
            type View = fn(&NdArray) -> Result<NdArray>;
            let views: [(&str, View); 8] = [
                ("whole", |a| Ok(a.clone())),
                ("transposed", |a| a.t()),
                ("middle first", |a| a.transpose([1, 0, 2])),
                ("last first", |a| a.transpose([0, 2, 1])),
                ("reversed", |a| a.index(s![..;-1, 3..30, ..;2])),
                ("odd offset", |a| a.index(s![1..4, 1.., 1..])),
                ("part", |a| a.index(s![1..3])?.t()),
                ("repeated", |a| a.index(s![2, 1..2])?.broadcast_to([3, 20, 50])),
            ];
            for (name, view) in views {
                for (axis, norm) in (0..3).zip(norms) {
                    let name = format!("{name}, axis {axis}");
                    agrees(&name, device, &base, |a| fft(&view(a)?, None, axis, norm));
                    agrees(&name, device, &base, |a| irfft(&view(a)?, None, axis, norm));
                    if !dtype.is_complex() {
                        agrees(&name, device, &base, |a| rfft(&view(a)?, None, axis, norm));
                    }
                }
                for axes in [&[0, 1][..], &[1, 2], &[2, 0], &[0, 1, 2], &[2, 1, 0]] {
                    let name = format!("{name}, axes {axes:?}");
                    agrees(&name, device, &base, |a| fftn(&view(a)?, None, axes, Norm::Ortho));
                    agrees(&name, device, &base, |a| ifftn(&view(a)?, None, axes, PLAIN));
                    agrees(&name, device, &base, |a| irfftn(&view(a)?, None, axes, PLAIN));
                    if !dtype.is_complex() {
                        agrees(&name, device, &base, |a| rfftn(&view(a)?, None, axes, Norm::Forward));
                    }
                }
            }
        }
    });
}

#[test]
fn many_axes_and_many_lanes() {
    on_device(|device| {
        let five = numbers(&[3, 4, 5, 6, 7], DType::C64);
        agrees("five axes", device, &five, |a| fftn(a, None, (), PLAIN));
        agrees("five axes to real numbers", device, &five, |a| irfftn(a, None, (), PLAIN));
        agrees("apart", device, &five, |a| fftn(a, None, (0, 2, 4), PLAIN));
        agrees("inside", device, &five, |a| fftn(a, None, (1, 3), PLAIN));
        agrees("repeated axis", device, &five, |a| fftn(a, None, (1, 3, 1), PLAIN));
        let real = numbers(&[3, 4, 5, 6, 7], DType::F64);
        agrees("five axes of real numbers", device, &real, |a| rfftn(a, None, (), PLAIN));
        agrees("real numbers along an inner axis", device, &real, |a| rfftn(a, None, (4, 2), PLAIN));
        for dtype in [DType::C128, DType::F32] {
            // Along the middle axis, one call per first index would be too many.
            let lanes = numbers(&[500, 9, 21], dtype);
            agrees("middle axis", device, &lanes, |a| fft(a, None, 1, PLAIN));
            agrees("middle axis to real numbers", device, &lanes, |a| irfft(a, None, 1, PLAIN));
            agrees("two axes around it", device, &lanes, |a| fftn(a, None, (0, 2), PLAIN));
        }
        agrees("middle axis of real numbers", device, &numbers(&[500, 9, 21], DType::F32), |a| rfft(a, None, 1, PLAIN));
    });
}

#[test]
fn longer_and_shorter_transforms() {
    on_device(|device| {
        let a = numbers(&[8, 9, 10], DType::C64);
        for shape in [[8, 12, 10], [11, 13, 16], [3, 9, 7], [12, 4, 30]] {
            agrees("complex", device, &a, |a| fftn(a, Some(&shape), (0, 1, 2), Norm::Ortho));
            agrees("to real numbers", device, &a, |a| irfftn(a, Some(&shape), (0, 1, 2), PLAIN));
            agrees("to real numbers, other order", device, &a, |a| irfftn(a, Some(&shape), (2, 0, 1), PLAIN));
            agrees("from real numbers", device, &a, |a| rfftn(&a.real()?, Some(&shape), (0, 2, 1), PLAIN));
            agrees("computed", device, &a, |a| fftn(&(a * 2 + 1), Some(&shape), (0, 1, 2), PLAIN));
        }
        agrees("one axis", device, &a, |a| fft(a, Some(23), 1, PLAIN));
        agrees("one axis, shorter", device, &a, |a| rfft(&a.imag()?, Some(5), 0, PLAIN));
    });
}

#[test]
fn computed_input_is_fused() {
    on_device(|device| {
        let (a, b) = (numbers(&[20, 50], DType::C64).to_device(device).unwrap(), numbers(&[50], DType::F32).to_device(device).unwrap());
        let (result, calls) = explain(|| fft(&(&a * &b), None, -1, PLAIN));
        assert_eq!(calls.iter().map(|call| call.op).collect::<Vec<_>>(), ["fft"]);
        let alone = with_fusion(false, || fft(&(&a * &b), None, -1, PLAIN));
        assert_eq!(values(&result.unwrap()), values(&alone.unwrap()));
        agrees("window", device, &numbers(&[20, 50], DType::F32), |a| rfft(&(a * a - 1), None, 0, Norm::Ortho));
    });
}

#[test]
fn input_keeps_its_values() {
    on_device(|device| {
        let (c, r) = (numbers(&[12, 10], DType::C64).to_device(device).unwrap(), numbers(&[12, 10], DType::F32).to_device(device).unwrap());
        let (before, real_before) = (values(&c), values(&r));
        for axis in [0, 1] {
            irfft(&c, None, axis, PLAIN).unwrap().eval().unwrap();
            fft(&c, None, axis, PLAIN).unwrap().eval().unwrap();
            rfft(&r, None, axis, PLAIN).unwrap().eval().unwrap();
        }
        irfftn(&c, None, (), PLAIN).unwrap().eval().unwrap();
        rfftn(&r, None, (), PLAIN).unwrap().eval().unwrap();
        assert_eq!((values(&c), values(&r)), (before, real_before));
    });
}

#[test]
fn plans_are_cached_and_their_number_is_bounded() {
    on_device(|device| {
        let context = device::context(device).unwrap();
        let a = numbers(&[4, 3000], DType::C64).to_device(device).unwrap();
        let first = fft(&a, Some(1000), -1, PLAIN).unwrap();
        first.eval().unwrap();
        for n in 1..=MAX_CACHED_PLANS + 20 {
            fft(&a, Some(2 * n), -1, PLAIN).unwrap().eval().unwrap();
        }
        assert!(context.cached_fft_plan_count() <= MAX_CACHED_PLANS + 1, "{}", context.cached_fft_plan_count());
        assert_eq!(values(&fft(&a, Some(1000), -1, PLAIN).unwrap()), values(&first), "a plan made again");
        // An eviction waits for the device, and leaves faults of kernels to the next call that reports them.
        let taken = a.take(&NdArray::from_slice(&[4]).unwrap(), 0).unwrap();
        taken.eval().unwrap();
        fft(&a, Some(2001), -1, PLAIN).unwrap().eval().unwrap();
        assert!(matches!(device.synchronize(), Err(Error::Index { index: 4, size: 4, .. })));
    });
}

#[test]
fn plans_serve_several_threads_and_streams() {
    on_device(|device| {
        let inputs: Vec<NdArray> = (1..=4).map(|n| numbers(&[n * 40, 512], DType::C64)).collect();
        let run = |a: &NdArray| values(&fftn(&a.to_device(device).unwrap(), None, (), PLAIN).unwrap());
        let want: Vec<_> = inputs.iter().map(&run).collect();
        thread::scope(|scope| {
            for t in 0..4 {
                let (inputs, want, run) = (&inputs, &want, &run);
                scope.spawn(move || {
                    let stream = Stream::new(device).unwrap();
                    with_device(device, || {
                        with_stream(stream, || {
                            for round in 0..20 {
                                let i = (round + t) % inputs.len();
                                assert!(run(&inputs[i]) == want[i], "thread {t}, round {round}");
                            }
                        });
                    });
                });
            }
        });
    });
}
