//! The kernel family `Scatter` on a real device: sums of floats and stores at repeated indices, against loops on the host. The family
//! `Search` against the CPU.

use cuprum_backend_cpu as _;
use cuprum_backend_cuda::testing;
use cuprum_core::ops::elementwise::{ADD, SUBTRACT};
use cuprum_core::random::Generator;
use cuprum_core::{Complex, DType, Device, Error, NdArray, Side, arange, full, s, with_reproducible_sums, zeros};

const SIZES: [(usize, usize); 5] = [(1, 5), (3, 1000), (1000, 1000), (4001, 1001), (70_000, 300_000)];
const INEXACT: [DType; 6] = [DType::F16, DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128];

/// Runs `test` with a CUDA device, which is not the default: the tests make their inputs on the CPU.
fn on_device(test: impl FnOnce(Device)) {
    if let Some(device) = testing::device() {
        test(device);
    }
}

/// Returns `count` values of both signs whose magnitudes differ by factors up to 2^20.
fn values(count: usize, dtype: DType, seed: u64) -> NdArray {
    let generator = Generator::new(seed);
    let scales = NdArray::from_slice(&[1.0, 1.0 / 1024.0, 1.0 / 1048576.0, 3.0]).unwrap();
    let part = || {
        let scale = scales.take(&generator.integers(0, 4, [count], DType::I64).unwrap(), 0).unwrap();
        generator.normal(0.0, 1.0, [count], DType::F64).unwrap().multiply(&scale).unwrap()
    };
    let (re, im) = (part(), part());
    if !dtype.is_complex() {
        return re.astype(dtype).unwrap();
    }
    let numbers: Vec<Complex<f64>> =
        re.to_vec::<f64>().unwrap().into_iter().zip(im.to_vec::<f64>().unwrap()).map(|(re, im)| Complex::new(re, im)).collect();
    NdArray::from_vec(numbers, [count]).unwrap().astype(dtype).unwrap()
}

/// Returns real and imaginary parts as float64.
fn parts(a: &NdArray) -> [Vec<f64>; 2] {
    let wide = a.astype(DType::C128).unwrap().to_vec::<Complex<f64>>().unwrap();
    [wide.iter().map(|z| z.re).collect(), wide.iter().map(|z| z.im).collect()]
}

fn unit_roundoff(dtype: DType) -> f64 {
    match dtype.real() {
        DType::F16 => 2f64.powi(-11),
        DType::BF16 => 2f64.powi(-8),
        DType::F32 => 2f64.powi(-24),
        _ => 2f64.powi(-53),
    }
}

/// Checks `got` against `old` plus the values at `indices`, which are added with a compensation for rounding. Reproducible sums are rounded
/// once, other sums after each addition.
fn check_sums(label: &str, is_reproducible: bool, got: &NdArray, old: &NdArray, indices: &[i64], added: &NdArray) {
    let unit = unit_roundoff(got.dtype());
    for ((got, old), added) in parts(got).into_iter().zip(parts(old)).zip(parts(added)) {
        let (mut high, mut low, mut size) = (old.clone(), vec![0.0; old.len()], vec![0.0; old.len()]);
        let (mut count, mut magnitude) = (vec![0; old.len()], old.iter().map(|x| x.abs()).collect::<Vec<f64>>());
        for (&index, &value) in indices.iter().zip(&added) {
            let at = if index < 0 { index + old.len() as i64 } else { index } as usize;
            let sum = high[at] + value;
            let part = sum - high[at];
            low[at] += (high[at] - (sum - part)) + (value - part);
            high[at] = sum;
            count[at] += 1;
            size[at] = f64::max(size[at], value.abs());
            magnitude[at] += value.abs();
        }
        for at in 0..old.len() {
            let want = high[at] + low[at];
            // The roundings of the sum of the values and of the result, and those of the integers that are added.
            let rounded_once = 2.0 * unit * (want.abs() + (want - old[at]).abs()) + size[at] * 1e-7 * unit + f64::MIN_POSITIVE;
            let bound = if is_reproducible { rounded_once } else { 1.01 * unit * count[at] as f64 * magnitude[at] };
            assert!((got[at] - want).abs() <= bound, "{label}: element {at} is {}, not {want}", got[at]);
            assert!(count[at] > 0 || got[at].to_bits() == old[at].to_bits(), "{label}: element {at} was changed");
        }
    }
}

#[test]
fn sums_of_floats() {
    on_device(|device| {
        // Values with common units, a value so small that it needs units per element, and a value that exceeds those of a sample.
        let outliers = [None, Some((0, -100)), Some((1, 13))];
        for (dtype, outlier) in INEXACT.into_iter().flat_map(|dtype| outliers.map(|outlier| (dtype, outlier))) {
            for (n, (elements, count)) in SIZES.into_iter().enumerate() {
                let label = format!("{dtype}, {count} values into {elements}, position and exponent of an outlier: {outlier:?}");
                let indices = Generator::new(n as u64).integers(-(elements as i64), elements as i64, [count], DType::I64).unwrap();
                let indices = if n % 2 == 0 { indices } else { indices.astype(DType::I32).unwrap() };
                let (old, mut added) = (values(elements, dtype, 7), values(count, dtype, 8));
                if let Some((position, exponent)) = outlier {
                    added.assign(position, 2f64.powi(exponent)).unwrap();
                }
                let host = indices.astype(DType::I64).unwrap().to_vec::<i64>().unwrap();
                let (at_there, added_there) = (indices.to_device(device).unwrap(), added.to_device(device).unwrap());
                let mut got = old.to_device(device).unwrap();
                got.update_at(ADD, &at_there, &added_there).unwrap();
                let got = got.to_device(Device::CPU).unwrap();
                check_sums(&label, true, &got, &old, &host, &added);
                let mut less = old.to_device(device).unwrap();
                less.update_at(SUBTRACT, &at_there, &added_there).unwrap();
                check_sums(&label, true, &less.to_device(Device::CPU).unwrap(), &old, &host, &added.negative().unwrap());
                // Another order of the values gives the same bits.
                let order = Generator::new(9).permutation(count, 0).unwrap();
                let (permuted_at, permuted) = (indices.take(&order, 0).unwrap(), added.take(&order, 0).unwrap());
                let mut again = old.to_device(device).unwrap();
                again.update_at(ADD, permuted_at.to_device(device).unwrap(), permuted.to_device(device).unwrap()).unwrap();
                assert!(again.to_bytes().unwrap() == got.to_bytes().unwrap(), "{label}: other bits in another order");
                let mut unordered = old.to_device(device).unwrap();
                with_reproducible_sums(false, || unordered.update_at(ADD, &at_there, &added_there)).unwrap();
                let is_reproducible = dtype.real().itemsize() == 2;
                check_sums(&label, is_reproducible, &unordered.to_device(Device::CPU).unwrap(), &old, &host, &added);
            }
        }
    });
}

#[test]
fn sums_of_many_values() {
    on_device(|device| {
        // The numbers of values and elements for which values are sorted by buckets of elements.
        let count = (1usize << 23) + 4321;
        let check = |label: &str, indices: NdArray, elements: usize, dtype: DType, outlier: f64| {
            let label = format!("{dtype}, {elements} elements, {label}, an outlier {outlier}");
            let mut pairs = Generator::new(3).integers(-1000, 1000, [count, 2], DType::I64).unwrap().astype(dtype).unwrap();
            pairs.assign(s![1, 0], outlier).unwrap();
            let added = pairs.index(s![.., 0]).unwrap(); // values that are not contiguous
            let mut want = zeros(elements, DType::F64).unwrap();
            want.update_at(ADD, &indices, added.astype(DType::F64).unwrap()).unwrap();
            let there = pairs.to_device(device).unwrap().index(s![.., 0]).unwrap();
            let mut got = zeros(elements, dtype).unwrap().to_device(device).unwrap();
            got.update_at(ADD, indices.to_device(device).unwrap(), &there).unwrap();
            let got = got.to_device(Device::CPU).unwrap();
            assert!(got.to_bytes().unwrap() == want.astype(dtype).unwrap().to_bytes().unwrap(), "{label}");
        };
        let random = |limit: usize| Generator::new(4).integers(-(limit as i64), limit as i64, [count], DType::I64).unwrap();
        for (elements, dtype) in [(1 << 20, DType::F32), (2_000_001, DType::F32), (5000, DType::F64), (100_000, DType::F16)] {
            check("random", random(elements), elements, dtype, 1.0);
            check("random", random(elements), elements, dtype, 2f64.powi(15));
        }
        let narrow = random(1 << 20).astype(DType::I32).unwrap();
        check("random int32", narrow, 1 << 20, DType::F32, 1.0);
        check("sorted", random(1 << 20).sort(0).unwrap(), 1 << 20, DType::F32, 1.0);
        check("in one bucket", random(3000), 1 << 20, DType::F32, 1.0);
        let spread = arange(0, count, 1).unwrap().remainder(40_000).unwrap().multiply(25).unwrap();
        check("in every 25th element", spread.clone(), 1 << 20, DType::F32, f64::from(1e20f32));
        let mut bad = spread;
        bad.assign(count - 7, 1 << 20).unwrap();
        let mut a = zeros(1 << 20, DType::F32).unwrap().to_device(device).unwrap();
        let done = a.update_at(ADD, bad.to_device(device).unwrap(), 1.0f32).and_then(|()| a.to_vec::<f32>());
        assert!(matches!(done, Err(Error::Index { index: 1048576, size: 1048576, .. })), "{done:?}");
    });
}

#[test]
fn sums_of_rows_and_views() {
    on_device(|device| {
        // Short rows, long rows, and long rows of which one has many values: each kind is summed in another way.
        let shapes = [(50, 33, 400), (50, 70, 400), (2, 70, 2100)];
        for (dtype, (rows, columns, count)) in [DType::F32, DType::F64, DType::C64].into_iter().flat_map(|d| shapes.map(|shape| (d, shape)))
        {
            let limit = rows as i64;
            let indices = Generator::new(1).integers(-limit, limit, [count], DType::I64).unwrap();
            let added = values(count * columns, dtype, 2).reshape([count, columns]).unwrap();
            let old = values(rows * 2 * columns, dtype, 3).reshape([rows, 2 * columns]).unwrap();
            let host = indices.to_vec::<i64>().unwrap();
            for is_reproducible in [true, false] {
                let label = format!("{dtype}, {rows} rows, {columns} columns, reproducible: {is_reproducible}");
                let mut got = old.to_device(device).unwrap();
                let (at, added_there) = (indices.to_device(device).unwrap(), added.to_device(device).unwrap());
                with_reproducible_sums(is_reproducible, || got.update_at(ADD, s![&at, ..;2], &added_there)).unwrap();
                let got = got.to_device(Device::CPU).unwrap();
                for column in 0..columns {
                    let (taken, before) = (got.index(s![.., 2 * column]).unwrap(), old.index(s![.., 2 * column]).unwrap());
                    let added = added.index(s![.., column]).unwrap();
                    // Long rows without frequent indices add their values in order.
                    let is_rounded_once = is_reproducible && (rows, columns) != (50, 70);
                    check_sums(&format!("{label}, column {column}"), is_rounded_once, &taken, &before, &host, &added);
                }
                let untouched = |a: &NdArray| a.index(s![.., 1..;2]).unwrap().to_bytes().unwrap();
                assert!(untouched(&got) == untouched(&old), "{label}: other columns were changed");
            }
        }
    });
}

#[test]
fn sums_of_extreme_values() {
    on_device(|device| {
        let sum = |dtype: DType, values: &[f64]| {
            let mut total = zeros(2, dtype).unwrap().to_device(device).unwrap();
            let indices = full([values.len()], 1, DType::I64).unwrap().to_device(device).unwrap();
            let values = NdArray::from_slice(values).unwrap().astype(dtype).unwrap().to_device(device).unwrap();
            total.update_at(ADD, &indices, &values).unwrap();
            assert_eq!(parts(&total.index(0).unwrap().to_device(Device::CPU).unwrap())[0], [0.0]);
            parts(&total.index(1).unwrap().to_device(Device::CPU).unwrap())[0][0]
        };
        let (infinity, most, least) = (f64::INFINITY, f64::MAX, f64::from_bits(1));
        assert_eq!(sum(DType::F64, &[1.0, infinity, 2.0]), infinity);
        assert_eq!(sum(DType::F32, &[-infinity, 1.0, -infinity]), -infinity);
        assert!(sum(DType::F64, &[infinity, 1.0, -infinity]).is_nan() && sum(DType::F16, &[1.0, f64::NAN]).is_nan());
        // A sample of every 19th value does not contain `second`.
        let sum_with = |dtype: DType, second: f64| {
            let mut values = full(300_000, 1.0, dtype).unwrap();
            values.assign(1, second).unwrap();
            let indices = arange(0, 300_000, 1).unwrap().remainder(300).unwrap().to_device(device).unwrap();
            let mut total = zeros(300, dtype).unwrap().to_device(device).unwrap();
            total.update_at(ADD, &indices, values.to_device(device).unwrap()).unwrap();
            let total = parts(&total.to_device(Device::CPU).unwrap())[0].clone();
            assert!(total.iter().enumerate().all(|(n, &x)| n == 1 || x == 1000.0), "{dtype}, {second}");
            total[1]
        };
        assert_eq!(sum_with(DType::F64, infinity), infinity);
        assert!(sum_with(DType::F32, f64::NAN).is_nan());
        assert_eq!(sum_with(DType::F32, 1e20), f64::from(1e20f32));
        assert_eq!(sum_with(DType::F64, 2f64.powi(60)), 2f64.powi(60) + 1024.0);
        assert_eq!(sum_with(DType::F64, 2f64.powi(-40)), 999.0 + 2f64.powi(-40));
        assert_eq!(sum_with(DType::F64, 2f64.powi(-90)), 999.0);
        // In the units of the other values, the second one underflows to 0.
        let mut far_apart = full(300_000, 2f64.powi(1000), DType::F64).unwrap();
        far_apart.assign(1, 2f64.powi(-200)).unwrap();
        let mut indices = arange(0, 300_000, 1).unwrap().remainder(299).unwrap().eval().unwrap().clone();
        indices.assign(1, 299).unwrap();
        let mut total = zeros(300, DType::F64).unwrap().to_device(device).unwrap();
        total.update_at(ADD, indices.to_device(device).unwrap(), far_apart.to_device(device).unwrap()).unwrap();
        assert_eq!(parts(&total.index(299).unwrap().to_device(Device::CPU).unwrap())[0], [2f64.powi(-200)]);
        assert_eq!(sum(DType::F64, &[most, most]), infinity);
        assert_eq!(sum(DType::F64, &[most, most, -most]), most); // NumPy's partial sums overflow
        assert_eq!(sum(DType::F64, &[least, least, least]), 3.0 * least);
        assert_eq!(sum(DType::F64, &[most, least, -most, -least]), 0.0);
        assert_eq!(sum(DType::F64, &[0.0, -0.0]), 0.0);
        assert_eq!(sum(DType::F32, &[1e8, 1.0, -1e8]), 1.0);
        assert_eq!(sum(DType::F64, &[1e16, 1.0, -1e16]), 1.0);
        assert_eq!(sum(DType::BF16, &[256.0, 1.0, 1.0]), 258.0);
        for dtype in [DType::F16, DType::F32, DType::F64] {
            let there = |values: &[f64]| NdArray::from_slice(values).unwrap().astype(dtype).unwrap().to_device(device).unwrap();
            let mut total = there(&[-0.0; 4]);
            let indices = NdArray::from_slice(&[0, 0, 1, 1, 2, 2]).unwrap().to_device(device).unwrap();
            total.update_at(ADD, &indices, there(&[-0.0, -0.0, -0.0, 0.0, 1.0, -1.0])).unwrap();
            let total = total.to_device(Device::CPU).unwrap().astype(DType::F64).unwrap().to_vec::<f64>().unwrap();
            assert!(total.iter().all(|x| *x == 0.0), "{total:?}");
            assert_eq!([0, 1, 2, 3].map(|i| total[i].is_sign_negative()), [true, false, false, true], "{dtype}");
            let mut grouped = there(&[-0.0; 8]); // few values for many elements
            let indices = NdArray::from_slice(&[3, 3, 5]).unwrap().to_device(device).unwrap();
            grouped.update_at(ADD, &indices, there(&[-0.0, -0.0, 0.0])).unwrap();
            let grouped = grouped.to_device(Device::CPU).unwrap().astype(DType::F64).unwrap().to_vec::<f64>().unwrap();
            assert_eq!(grouped.iter().position(|x| x.is_sign_positive()), Some(5), "{dtype}");
        }
        let mut a = zeros(3, DType::F32).unwrap().to_device(device).unwrap();
        let indices = NdArray::from_slice(&[0, 3]).unwrap().to_device(device).unwrap();
        let done = a.update_at(ADD, &indices, 1.0f32).and_then(|()| a.to_vec::<f32>());
        assert!(matches!(done, Err(Error::Index { index: 3, size: 3, .. })), "{done:?}");
    });
}

#[test]
fn the_last_of_several_stored_values_remains() {
    on_device(|device| {
        for dtype in [DType::I8, DType::F16, DType::I32, DType::F32, DType::F64, DType::C128] {
            for (n, (elements, count)) in SIZES.into_iter().enumerate() {
                let limit = elements as i64;
                let indices = Generator::new(n as u64).integers(-limit, limit, [count], DType::I64).unwrap();
                let stored = Generator::new(5).integers(-100, 100, [count], DType::I64).unwrap().astype(dtype).unwrap();
                let mut want = zeros(2 * elements, dtype).unwrap();
                let mut got = want.to_device(device).unwrap();
                want.assign(s![..;2], 7).unwrap();
                got.assign(s![..;2], 7).unwrap();
                // A contiguous array, then a view of every second element.
                want.assign(s![&indices], &stored).unwrap();
                let (at, there) = (indices.to_device(device).unwrap(), stored.to_device(device).unwrap());
                got.assign(s![&at], &there).unwrap();
                assert!(got.to_bytes().unwrap() == want.to_bytes().unwrap(), "{dtype}, {count} values into {elements}");
                let pair = |a: &NdArray| a.reshape([elements, 2]).unwrap();
                let (mut want, mut got) = (pair(&want), pair(&got));
                want.assign(s![&indices, 1], stored.negative().unwrap_or(stored.clone())).unwrap();
                got.assign(s![&at, 1], there.negative().unwrap_or(there.clone())).unwrap();
                assert!(got.to_bytes().unwrap() == want.to_bytes().unwrap(), "{dtype}, {count} values into a view of {elements}");
            }
        }
    });
}

#[test]
fn stores_in_targets_larger_than_the_cache() {
    const COUNT: usize = 3_000_000;
    on_device(|device| {
        let wide = Generator::new(1).integers(0, 1 << 62, [COUNT], DType::I64).unwrap();
        for dtype in [DType::I8, DType::F16, DType::F32, DType::F64, DType::C128] {
            for (rows, limit) in [(9_000_001, 9_000_001), (20_000_000, 20_000_000), (20_000_000, 300)] {
                // All rows, and rows of which many share one bucket.
                let indices = Generator::new(2).integers(-limit, limit, [COUNT], DType::I32).unwrap();
                let stored = wide.remainder(100).unwrap().astype(dtype).unwrap();
                let (at, there) = (indices.to_device(device).unwrap(), stored.to_device(device).unwrap());
                let mut want = zeros(rows, dtype).unwrap();
                want.assign(s![..;3], 7).unwrap();
                let mut got = want.to_device(device).unwrap();
                want.assign(s![&indices], &stored).unwrap();
                got.assign(s![&at], &there).unwrap();
                assert!(got.to_bytes().unwrap() == want.to_bytes().unwrap(), "{dtype}, indices below {limit}");
                // Values and rows in reverse order.
                want.assign(s![..;-1], 3).unwrap();
                got.assign(s![..;-1], 3).unwrap();
                let (mut want, mut got) = (want.index(s![..;-1]).unwrap(), got.index(s![..;-1]).unwrap());
                want.assign(s![&indices], stored.index(s![..;-1]).unwrap()).unwrap();
                got.assign(s![&at], there.index(s![..;-1]).unwrap()).unwrap();
                assert!(got.to_bytes().unwrap() == want.to_bytes().unwrap(), "{dtype}, indices below {limit}, reversed");
            }
        }
        let mut target = zeros(20_000_000, DType::F32).unwrap().to_device(device).unwrap();
        let mut indices = arange(0, COUNT as i64, 1).unwrap();
        indices.assign(77_777, 20_000_000).unwrap();
        let done = target.assign(s![&indices.to_device(device).unwrap()], arange(0, COUNT as i64, 1).unwrap().to_device(device).unwrap());
        let done = done.and_then(|()| target.to_vec::<f32>());
        assert!(matches!(done, Err(Error::Index { index: 20_000_000, size: 20_000_000, .. })), "{done:?}");
    });
}

#[test]
fn insertion_points() {
    on_device(|device| {
        for (n, dtype) in DType::ALL.into_iter().enumerate() {
            for (size, count) in [(0, 10), (1, 100), (5, 5000), (4096, 3000), (10_000, 1025), (300_001, 70_000)] {
                let spread = if dtype.itemsize() == 1 { 2 } else { 1000 };
                let make = |count: usize, seed| {
                    let whole = Generator::new(seed).integers(0, spread, [count], DType::I64).unwrap();
                    whole.astype(dtype).unwrap()
                };
                let (sorted, values) = (make(size, n as u64).sort(0).unwrap(), make(count, 77));
                let (there, wanted) = (sorted.to_device(device).unwrap(), values.to_device(device).unwrap());
                for side in [Side::Left, Side::Right] {
                    let want = sorted.searchsorted(&values, side).unwrap().to_vec::<i64>().unwrap();
                    let got = there.searchsorted(&wanted, side).unwrap().to_vec::<i64>().unwrap();
                    assert!(got == want, "{dtype}, {count} values in {size}, {side:?}");
                }
            }
        }
    });
}
