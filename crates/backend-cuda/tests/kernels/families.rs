//! Fill, Copy, Random, Gather, reductions, segment sums, scans and Contract on a real device, against plain loops on the host.

use cuprum_backend_cuda as _;
use cuprum_core::random::Generator;
use cuprum_core::testing::philox::PhiloxStream;
use cuprum_core::{
    Complex, DType, Element, Error, NdArray, Scalar, arange, arange_as, axis, bf16, broadcast_to, concat, count_nonzero, empty, explain,
    eye, f16, flip, full, linspace, matmul, s, segment_max, segment_min, segment_prod, segment_sum, stack, take_along_axis, tensordot,
    where_, zeros,
};

use crate::on_device;

fn bytes_of(values: impl IntoIterator<Item = Scalar>, dtype: DType) -> Vec<u8> {
    values.into_iter().flat_map(|v| v.to_bytes(dtype)[..dtype.itemsize()].to_vec()).collect()
}

/// An array of small integers, some negative if the dtype is signed.
fn numbers(shape: &[usize], dtype: DType, seed: usize) -> NdArray {
    let n: usize = shape.iter().product();
    let values = (0..n).map(|i| {
        let v = ((i * 7 + seed * 13) % 11) as i128;
        match dtype {
            DType::C64 | DType::C128 => Scalar::Complex(Complex::new(v as f64 - 5.0, (v % 3) as f64)),
            DType::Bool => Scalar::Bool(v % 4 == 0),
            d if d.int_range().is_some_and(|(low, _)| low == 0) => Scalar::Int(v),
            _ => Scalar::Int(v - 5),
        }
    });
    NdArray::from_bytes(dtype, shape, &bytes_of(values, dtype)).unwrap()
}

#[test]
fn fill_constants() {
    on_device(|_| {
        for d in DType::ALL {
            for (n, value) in [(1, Scalar::Int(0)), (1000, Scalar::Int(1)), (12345, Scalar::Int(113))] {
                let got = full([n], value, d).unwrap().to_bytes().unwrap();
                assert!(got == bytes_of(vec![value; n], d), "{d} {value:?}");
            }
            assert_eq!(empty([77], d).unwrap().to_bytes().unwrap().len(), 77 * d.itemsize());
        }
        let z = Complex::new(1.5, -2.5);
        assert_eq!(full([3, 5], z, DType::C128).unwrap().to_vec::<Complex<f64>>().unwrap(), [z; 15]);
        assert_eq!(full([7], 0.1, DType::F64).unwrap().to_vec::<f64>().unwrap(), [0.1; 7]);
        assert!(empty([1000], DType::Bool).unwrap().to_bytes().unwrap().iter().all(|b| *b < 2));
    });
}

#[test]
fn fill_ranges() {
    on_device(|_| {
        for d in DType::ALL.into_iter().filter(|d| d.is_int()) {
            let (low, high) = d.int_range().unwrap();
            let (start, step) = if low == 0 { (3, 7) } else { (-100, 3) };
            let stop = (start + 60 * step).min(high);
            let want: Vec<Scalar> = (0..).map(|i| start + i * step).take_while(|v| *v < stop).map(Scalar::Int).collect();
            let got = arange_as(start, stop, step, d).unwrap();
            assert_eq!(got.to_bytes().unwrap(), bytes_of(want, d), "{d}");
        }
        // Exact steps; the conformance cases have NumPy's roundings.
        let wide = arange_as(0.25, 50_000.0, 0.5, DType::F64).unwrap().to_vec::<f64>().unwrap();
        assert!(wide.len() == 100_000 && wide.iter().enumerate().all(|(i, v)| *v == 0.25 + i as f64 * 0.5));
        let narrow = arange_as(0.25, 1000.0, 0.5, DType::F32).unwrap().to_vec::<f32>().unwrap();
        assert!(narrow.iter().enumerate().all(|(i, v)| *v == 0.25 + i as f32 * 0.5));
        let half = arange_as(0.25, 100.0, 0.5, DType::F16).unwrap().to_vec::<f16>().unwrap();
        assert!(half.iter().enumerate().all(|(i, v)| *v == f16::from_f32(0.25 + i as f32 * 0.5)));
        let brain = arange_as(0.25, 100.0, 0.5, DType::BF16).unwrap().to_vec::<bf16>().unwrap();
        assert!(brain.iter().enumerate().all(|(i, v)| *v == bf16::from_f32(0.25 + i as f32 * 0.5)));
        assert_eq!(arange_as(-1, 1, 1, DType::Bool).unwrap().to_vec::<bool>().unwrap(), [true, false]);

        let (a, b) = (-1.7, 12.3);
        let line = linspace(a, b, 1001).unwrap().to_vec::<f64>().unwrap();
        let step = (b - a) / 1000.0;
        assert!(line.iter().enumerate().take(1000).all(|(i, v)| *v == a + i as f64 * step));
        assert_eq!(line[1000], b);
        let (a, b) = (Complex::new(0.0, 1.0), Complex::new(4.0, -3.0));
        let line = linspace(a, b, 5).unwrap().to_vec::<Complex<f64>>().unwrap();
        assert_eq!(line, [0.0, 1.0, 2.0, 3.0, 4.0].map(|t| Complex::new(t, 1.0 - t)));

        for d in DType::ALL {
            for (rows, columns, k) in [(3, 3, 0), (4, 7, 2), (7, 4, -3), (3, 3, 5), (5, 5, i64::MIN), (1, 6, 5), (6, 1, -5)] {
                let got = eye(rows, columns, k, d).unwrap();
                let one = |i: usize| (i % columns) as i128 - (i / columns) as i128 == i128::from(k);
                let want = (0..rows * columns).map(|i| Scalar::Bool(one(i)));
                assert_eq!(got.to_bytes().unwrap(), bytes_of(want, d), "{d} {rows} {columns} {k}");
            }
        }
    });
}

#[test]
fn copies_of_any_view() {
    use cuprum_core::s;
    on_device(|_| {
        // The expected bytes are gathered on the host from the same strides.
        let same = |view: NdArray| {
            let copy = view.copy().unwrap();
            assert!(copy.is_contiguous().unwrap());
            assert!(copy.to_bytes().unwrap() == view.to_bytes().unwrap(), "{} {:?} {:?}", view.dtype(), view.shape(), view.strides());
        };
        for d in [DType::I8, DType::F16, DType::F32, DType::F64, DType::C128] {
            let a = numbers(&[6, 70, 90], d, 1);
            same(a.clone());
            same(a.t().unwrap());
            for order in [[0, 2, 1], [1, 0, 2], [2, 0, 1], [1, 2, 0]] {
                same(a.transpose(order).unwrap());
            }
            same(flip(&a, None).unwrap());
            same(a.index(s![1..5, ..;3, 7..80]).unwrap());
            same(a.index(s![.., 3..67, 8..72]).unwrap().swapaxes(1, 2).unwrap());
            same(a.index(s![..;-2, ..;-1, 1..;2]).unwrap().t().unwrap());
            same(broadcast_to(&a.index(s![2, 5]).unwrap(), [40, 90]).unwrap());
            same(broadcast_to(&a.index(s![2, 5]).unwrap(), [40, 90]).unwrap().t().unwrap());
            same(a.index(s![3, 4, 5]).unwrap());
            same(a.diagonal(3, 1, 2).unwrap());
            // Unaligned starts and lengths.
            for (from, to) in [(0, 64), (1, 65), (2, 66), (4, 68), (3, 90)] {
                same(a.index(s![.., .., from..to]).unwrap());
            }
            let six = numbers(&[2, 3, 4, 5, 3, 2], d, 2);
            same(six.transpose([5, 3, 1, 4, 2, 0]).unwrap());
            same(six.transpose([0, 2, 1, 3, 5, 4]).unwrap());
            same(numbers(&[40, 50, 4], d, 3).transpose([1, 0, 2]).unwrap());
        }
    });
}

#[test]
fn concatenate_arrays() {
    on_device(|_| {
        for d in [DType::Bool, DType::I16, DType::F32, DType::C64, DType::C128] {
            let (a, b, c) = (numbers(&[3, 8], d, 1), numbers(&[5, 8], d, 2), numbers(&[8, 4], d, 3).t().unwrap());
            let got = concat(&[a.clone(), b.clone(), c.clone()], 0).unwrap().to_bytes().unwrap();
            assert_eq!(got, [&a, &b, &c].map(|x| x.to_bytes().unwrap()).concat(), "{d}");
            let wide = concat(&[a.clone(), flip(&a, 1).unwrap()], 1).unwrap();
            let (half, flipped) = (a.to_bytes().unwrap(), flip(&a, 1).unwrap().to_bytes().unwrap());
            let line = 8 * d.itemsize();
            let want: Vec<u8> = (0..3).flat_map(|r| [&half[r * line..][..line], &flipped[r * line..][..line]].concat()).collect();
            assert_eq!(wide.to_bytes().unwrap(), want, "{d}");
            assert_eq!(stack(&[a.clone(), a.clone()], 0).unwrap().to_bytes().unwrap(), [half.clone(), half].concat());
        }
    });
}

/// Rows of these lengths are copied to shared memory by blocks of 256, 512 and 1024 threads, or not at all.
#[test]
fn gathers_along_rows() {
    on_device(|_| {
        for (columns, count) in [(700, 300), (700, 1000), (11_000, 9000), (24_000, 8000), (70_000, 20_000)] {
            for d in [DType::I8, DType::F16, DType::F32, DType::F64, DType::C128] {
                let rows = if columns > 20_000 { 300 } else { 600 };
                let a = numbers(&[rows, columns], d, 4);
                let (width, bytes) = (d.itemsize(), a.to_bytes().unwrap());
                let index = |r: usize, c: usize| ((r * 31 + c * 17) % (2 * columns)) as i64 - columns as i64;
                let indices: Vec<i64> = (0..rows * count).map(|i| index(i / count, i % count)).collect();
                let element = |r: usize, i: i64| &bytes[(r * columns + i.rem_euclid(columns as i64) as usize) * width..][..width];
                let at = NdArray::from_slice(&indices).unwrap().reshape([rows, count]).unwrap();
                let want: Vec<u8> = indices.iter().enumerate().flat_map(|(n, &i)| element(n / count, i)).copied().collect();
                for at in [at.clone(), at.astype(DType::I32).unwrap(), at.t().unwrap().copy().unwrap().t().unwrap()] {
                    let got = take_along_axis(&a, &at, 1).unwrap().to_bytes().unwrap();
                    assert!(got == want, "{d}, {columns} columns, {count} indices of {}", at.dtype());
                }
                let flipped = take_along_axis(&a.index(s![.., ..;-1]).unwrap(), &at, 1).unwrap().to_bytes().unwrap();
                let want: Vec<u8> = indices.iter().enumerate().flat_map(|(n, &i)| element(n / count, -1 - i)).copied().collect();
                assert!(flipped == want, "{d}, {columns} columns from the end");
                let same = a.take(&NdArray::from_slice(&indices[..count]).unwrap(), 1).unwrap().to_bytes().unwrap();
                let want: Vec<u8> = (0..rows).flat_map(|r| indices[..count].iter().flat_map(move |&i| element(r, i))).copied().collect();
                assert!(same == want, "{d}, {columns} columns, the same indices");
            }
        }
        let a = zeros([600, 1000], DType::F32).unwrap();
        for bad in [1000i64, -1001, i64::MIN] {
            let at = where_(arange(0, 600_000, 1).unwrap().equal(123_456).unwrap(), bad, 5).unwrap().reshape([600, 1000]).unwrap();
            let got = take_along_axis(&a, &at, 1).and_then(|t| t.to_bytes());
            assert!(matches!(got, Err(Error::Index { op: "take_along_axis", index, axis: 1, size: 1000 }) if index == bad), "{bad}");
        }
    });
}

#[test]
fn take_along_axes() {
    on_device(|device| {
        for d in [DType::I8, DType::F16, DType::F32, DType::C64, DType::C128] {
            let a = numbers(&[5, 12, 16], d, 4);
            for a in [a.clone(), flip(&a, None).unwrap(), a.t().unwrap(), a.swapaxes(0, 1).unwrap()] {
                for axis in 0..3 {
                    let n = a.shape()[axis];
                    let indices: Vec<i64> = (0..17).map(|i| (i * 5 % (2 * n as i64)) - n as i64).collect();
                    let got = a.take(&NdArray::from_slice(&indices).unwrap(), axis as isize).unwrap();
                    // The same result from slices.
                    let parts: Vec<NdArray> = indices
                        .iter()
                        .map(|&i| {
                            let mut items = vec![cuprum_core::Item::slice(None, None, 1); 3];
                            items[axis] = cuprum_core::Item::slice(i as isize, (i != -1).then_some(i as isize + 1), 1);
                            a.index(&items).unwrap()
                        })
                        .collect();
                    let want = concat(&parts, axis as isize).unwrap();
                    assert_eq!((got.shape(), got.to_bytes().unwrap()), (want.shape(), want.to_bytes().unwrap()), "{d} axis {axis}");
                }
            }
        }
        let a = NdArray::from_slice(&[10, 20, 30]).unwrap();
        let i = NdArray::from_slice(&[0i64, 3, -4, 1]).unwrap();
        let bad = a.take(&i, 0).unwrap();
        bad.eval().unwrap();
        match device.synchronize() {
            Err(Error::Index { op: "take", index: 3 | -4, axis: 0, size: 3 }) => {}
            other => panic!("{other:?}"),
        }
        // The array has no value: every read fails.
        assert!(matches!(bad.to_vec::<i32>(), Err(Error::Index { op: "take", .. })));
        // Reading waits, too, and names the axis.
        let m = numbers(&[2, 3, 4], DType::F64, 1).take(&NdArray::from_slice(&[9i64]).unwrap(), 1).unwrap();
        assert!(matches!(m.to_bytes(), Err(Error::Index { op: "take", index: 9, axis: 1, size: 3 })));
    });
}

#[test]
fn sums_of_segments() {
    on_device(|_| {
        let lengths = [0, 1, 5, 31, 32, 33, 0, 100, 4096, 4097, 50_000, 3, 0];
        let offsets: Vec<i64> = lengths.iter().scan(0, |at, n| (Some(*at), *at += n).0).chain([lengths.iter().sum()]).collect();
        let n = lengths.iter().sum::<i64>() as usize;
        let ints: Vec<i64> = (0..n as i64).map(|i| i * i - 1_000_000).collect();
        let offset = NdArray::from_slice(&offsets).unwrap();
        let ranges = || offsets.windows(2).map(|w| w[0] as usize..w[1] as usize);
        let got = segment_sum(&NdArray::from_slice(&ints).unwrap(), &offset).unwrap().to_vec::<i64>().unwrap();
        assert_eq!(got, ranges().map(|r| ints[r].iter().sum::<i64>()).collect::<Vec<_>>());
        macro_rules! check {
            ($t:ty, $value:expr, $wide:expr, $tolerance:expr) => {{
                let values: Vec<$t> = (0..n).map($value).collect();
                let got = segment_sum(&NdArray::from_slice(&values).unwrap(), &offset).unwrap().to_vec::<$t>().unwrap();
                for (got, r) in got.iter().zip(ranges()) {
                    let want: f64 = values[r.clone()].iter().map($wide).sum();
                    let scale: f64 = values[r].iter().map($wide).map(f64::abs).sum();
                    assert!(($wide(got) - want).abs() <= $tolerance * scale, "{got} {want}");
                }
            }};
        }
        // Values computed in the same pass, one input of them repeated.
        let (numbers, two) = (NdArray::from_slice(&ints).unwrap(), NdArray::scalar(2i64).unwrap());
        let (got, records) = explain(|| segment_sum(&((&flip(&numbers, None).unwrap() + &numbers) * &two), &offset).unwrap());
        assert!(records.iter().filter(|r| r.op == "segment_sum").all(|r| r.served_by == Some("cuda")), "{records:?}");
        let value = |i: usize| 2 * (ints[n - 1 - i] + ints[i]);
        assert_eq!(got.to_vec::<i64>().unwrap(), ranges().map(|r| r.map(value).sum::<i64>()).collect::<Vec<_>>());
        check!(f64, |i| (i % 97) as f64 * 0.37 - 11.0, |v: &f64| *v, 1e-13);
        check!(f32, |i| (i % 97) as f32 * 0.37 - 11.0, |v: &f32| f64::from(*v), 1e-6);
        check!(f16, |i| f16::from_f64((i % 7) as f64 * 0.25 - 0.5), |v: &f16| v.to_f64(), 1e-3);
        check!(bf16, |i| bf16::from_f64((i % 7) as f64 * 0.25 - 0.5), |v: &bf16| v.to_f64(), 1e-2);
        check!(Complex<f64>, |i| Complex::new((i % 5) as f64, -1.0), |v: &Complex<f64>| v.re, 1e-15);
        let zero = segment_sum(&NdArray::from_slice(&[-0.0f64]).unwrap(), &NdArray::from_slice(&[0i64, 0, 1]).unwrap()).unwrap();
        assert_eq!(zero.to_vec::<f64>().unwrap().map_bits(), [0, 0]);
        for bad in [[0i64, 3], [-1, 2], [2, 1]] {
            let sum = segment_sum(&NdArray::from_slice(&[1.0, 2.0]).unwrap(), &NdArray::from_slice(&bad).unwrap()).unwrap();
            assert!(matches!(sum.to_vec::<f64>(), Err(Error::Value { op: "segment_sum", .. })), "{bad:?}");
        }
    });
}

#[test]
fn other_reductions_of_segments() {
    on_device(|_| {
        let lengths = [0, 1, 5, 31, 32, 33, 0, 100, 4096, 4097, 50_000, 3, 0];
        let offsets: Vec<i64> = lengths.iter().scan(0, |at, n| (Some(*at), *at += n).0).chain([lengths.iter().sum()]).collect();
        let n = lengths.iter().sum::<i64>();
        let offset = NdArray::from_slice(&offsets).unwrap();
        macro_rules! check {
            ($t:ty, $value:expr, $least:expr, $most:expr) => {{
                let values: Vec<$t> = (0..n).map($value).collect();
                let a = NdArray::from_slice(&values).unwrap();
                let ranges = || offsets.windows(2).map(|w| values[w[0] as usize..w[1] as usize].iter().copied());
                let least: Vec<$t> = ranges().map(|x| x.fold($least, |a, b| if b < a { b } else { a })).collect();
                let most: Vec<$t> = ranges().map(|x| x.fold($most, |a, b| if b > a { b } else { a })).collect();
                assert_eq!(segment_min(&a, &offset).unwrap().to_vec::<$t>().unwrap(), least);
                assert_eq!(segment_max(&a, &offset).unwrap().to_vec::<$t>().unwrap(), most);
            }};
        }
        check!(f64, |i| (i * 7919 % 50_021) as f64 * 0.5 - 11.0, f64::INFINITY, f64::NEG_INFINITY);
        check!(f16, |i| f16::from_f64((i * 7919 % 1009) as f64), f16::INFINITY, f16::NEG_INFINITY);
        check!(i8, |i| (i * 7919 % 251) as i8, i8::MAX, i8::MIN);
        check!(u32, |i| (i * 7919 % 50_021) as u32, u32::MAX, u32::MIN);
        check!(bool, |i| i % 97 > 50, true, false);
        let complex: Vec<Complex<f32>> = (0..n).map(|i| Complex::new((i * 7919 % 13) as f32, -i as f32)).collect();
        let got = segment_min(&NdArray::from_slice(&complex).unwrap(), &offset).unwrap().to_vec::<Complex<f32>>().unwrap();
        let key = |z: &Complex<f32>| (z.re, z.im);
        for (got, w) in got.iter().zip(offsets.windows(2)) {
            let part = complex[w[0] as usize..w[1] as usize].iter().map(key);
            assert_eq!(key(got), part.fold((f32::INFINITY, f32::INFINITY), |a, b| if b < a { b } else { a }));
        }
        let odd: Vec<i64> = (0..n).map(|i| 2 * i - 999).collect();
        let got = segment_prod(&NdArray::from_slice(&odd).unwrap(), &offset).unwrap().to_vec::<i64>().unwrap();
        let product = |w: &[i64]| odd[w[0] as usize..w[1] as usize].iter().fold(1i64, |a, b| a.wrapping_mul(*b));
        assert_eq!(got, offsets.windows(2).map(product).collect::<Vec<_>>());
        let mut nan = vec![1.0f32; n as usize];
        nan[200] = f32::NAN;
        let a = NdArray::from_slice(&nan).unwrap();
        for got in [segment_min(&a, &offset).unwrap(), segment_max(&a, &offset).unwrap(), segment_prod(&a, &offset).unwrap()] {
            let got = got.to_vec::<f32>().unwrap();
            assert!(got.iter().zip(offsets.windows(2)).all(|(x, w)| x.is_nan() == (w[0]..w[1]).contains(&200)), "{got:?}");
        }
    });
}

#[test]
fn running_sums() {
    on_device(|_| {
        for n in [1, 5, 31, 256, 1000, 5000, 100_000] {
            let values: Vec<i64> = (0..n).map(|i| i % 17 - 5).collect();
            let want: Vec<i64> = values.iter().scan(0, |sum, v| (*sum += v, Some(*sum)).1).collect();
            assert!(NdArray::from_slice(&values).unwrap().cumsum(0).unwrap().to_vec::<i64>().unwrap() == want, "{n}");
        }
        let (shape, strides) = ([7, 50, 11], [550, 11, 1]);
        let values: Vec<f64> = (0..7 * 50 * 11).map(|i| f64::from(i % 5) * 0.5).collect();
        let a = NdArray::from_vec(&values, shape).unwrap();
        for axis in 0..3 {
            let mut want = values.clone();
            for i in (0..want.len()).filter(|i| i / strides[axis] % shape[axis] > 0) {
                want[i] += want[i - strides[axis]];
            }
            assert_eq!(a.cumsum(axis as isize).unwrap().to_vec::<f64>().unwrap(), want, "axis {axis}");
        }
        let signs = NdArray::from_slice(&[2i32, -1, 3, -1]).unwrap();
        assert_eq!(signs.cumprod(0).unwrap().to_vec::<i64>().unwrap(), [2, -2, -6, 6]);
    });
}

trait MapBits {
    fn map_bits(&self) -> Vec<u64>;
}
impl MapBits for Vec<f64> {
    fn map_bits(&self) -> Vec<u64> {
        self.iter().map(|v| v.to_bits()).collect()
    }
}

#[test]
fn draw_random_numbers() {
    on_device(|_| {
        let want = PhiloxStream(0x0123_4567_89ab_cdef);
        for n in [1, 2, 3, 5, 10_007] {
            let generator = || Generator::new(want.0);
            let f64s = generator().random([n], DType::F64).unwrap().to_vec::<f64>().unwrap();
            assert!(f64s.iter().enumerate().all(|(i, v)| *v == want.unit_f64(i)));
            let f32s = generator().random([n], DType::F32).unwrap().to_vec::<f32>().unwrap();
            assert!(f32s.iter().enumerate().all(|(i, v)| *v == want.unit_f32(i)));
            let f16s = generator().random([n], DType::F16).unwrap().to_vec::<f16>().unwrap();
            assert!(f16s.iter().enumerate().all(|(i, v)| f32::from(*v) == want.unit_with_digits(i, 11)));
            let (low, high) = (-3.7f32, 11.1f32);
            let ranged = generator().uniform(low, high, [n], DType::F32).unwrap().to_vec::<f32>().unwrap();
            assert!(ranged.iter().enumerate().all(|(i, v)| *v == low + want.unit_f32(i) * (high - low)));
            for (low, high) in [(1.0, 1.25), (-3e38, 3e38)] {
                let numbers = generator().uniform(low, high, [n], DType::F32).unwrap().to_vec::<f32>().unwrap();
                assert!(numbers.iter().all(|v| f64::from(*v) >= low && f64::from(*v) < high), "{low} {high}");
            }
            let dice = generator().integers(-3, 4, [n], DType::I8).unwrap().to_vec::<i8>().unwrap();
            assert!(dice.iter().enumerate().all(|(i, v)| i64::from(*v) == -3 + want.below(i, 7) as i64));
            let wide = generator().integers(0, 3 << 61, [n], DType::I64).unwrap().to_vec::<i64>().unwrap();
            assert!(wide.iter().enumerate().all(|(i, v)| *v as u64 == want.below(i, 3 << 61)));
            let normals = generator().normal(2.0, 0.5, [n], DType::F64).unwrap().to_vec::<f64>().unwrap();
            assert!(normals.iter().enumerate().all(|(i, v)| (v - (2.0 + 0.5 * want.normal(i))).abs() < 1e-14));
            for d in [DType::F32, DType::F16, DType::BF16] {
                assert!(generator().normal(0.0, 1.0, [n], d).unwrap().to_bytes().is_ok());
            }
        }
        // The random stream continues where it stopped.
        let g = Generator::new(want.0);
        g.random([4], DType::F32).unwrap();
        assert_eq!(g.random([1], DType::F32).unwrap().to_vec::<f32>().unwrap()[0], want.unit_f32(4));
    });
}

fn dot_scalars(pairs: impl Iterator<Item = (Scalar, Scalar)>, dtype: DType) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Bool(pairs.fold(false, |sum, (x, y)| sum | (x.as_bool() & y.as_bool()))),
        d if d.is_int() => Scalar::Int(pairs.fold(0, |sum, (x, y)| sum + x.as_int().unwrap() * y.as_int().unwrap())),
        d if d.is_complex() => Scalar::Complex(pairs.map(|(x, y)| x.as_complex() * y.as_complex()).sum()),
        _ => Scalar::Float(pairs.map(|(x, y)| x.as_f64() * y.as_f64()).sum()),
    }
}

/// Returns the elements of `a` in C order.
fn scalars(a: &NdArray) -> Vec<Scalar> {
    a.to_bytes().unwrap().chunks(a.dtype().itemsize()).map(|b| Scalar::from_bytes(a.dtype(), b)).collect()
}

/// Compares `matmul` with loops on the host. The numbers are small integers, so the result of every dtype is exact (or wraps).
fn check_matmul(a: &NdArray, b: &NdArray) {
    let (m, k, n, d) = (a.shape()[a.ndim() - 2], a.shape()[a.ndim() - 1], b.shape()[b.ndim() - 1], a.dtype());
    let got = matmul(a, b).unwrap();
    let batch: usize = a.shape()[..a.ndim() - 2].iter().product();
    let (x, y) = (scalars(a), scalars(b));
    let shared = b.ndim() < a.ndim();
    let want = (0..batch * m * n).map(|i| {
        let (l, r, c) = (i / (m * n), i / n % m, i % n);
        dot_scalars((0..k).map(|p| (x[(l * m + r) * k + p], y[(if shared { 0 } else { l * k } + p) * n + c])), d)
    });
    assert!(got.to_bytes().unwrap() == bytes_of(want, d), "{d} {:?} {:?} @ {:?} {:?}", a.shape(), a.strides(), b.shape(), b.strides());
}

#[test]
fn products_of_matrices() {
    on_device(|_| {
        for d in DType::ALL {
            for (m, n, k) in [(1, 1, 4), (3, 5, 7), (1, 70, 33), (70, 1, 33), (65, 67, 19), (9, 8, 130)] {
                let (a, b) = (numbers(&[m, k], d, 1), numbers(&[k, n], d, 2));
                let (at, bt) = (numbers(&[k, m], d, 3).t().unwrap(), numbers(&[n, k], d, 4).t().unwrap());
                for (x, y) in [(&a, &b), (&at, &b), (&a, &bt), (&at, &bt)] {
                    check_matmul(x, y);
                }
                check_matmul(&flip(&a, 0).unwrap(), &flip(&b, 0).unwrap());
            }
            let (a, b) = (numbers(&[2, 3, 6, 5], d, 1), numbers(&[2, 3, 5, 7], d, 2));
            check_matmul(&a, &b);
            check_matmul(&a, &numbers(&[5, 7], d, 3));
            check_matmul(&a.swapaxes(0, 1).unwrap(), &numbers(&[3, 2, 5, 7], d, 2));
            check_matmul(&a.swapaxes(1, 3).unwrap(), &numbers(&[2, 5, 3, 7], d, 5).swapaxes(2, 2).unwrap());
            // Long vectors, which are split.
            let (x, y) = (numbers(&[1, 9000], d, 6), numbers(&[9000, 1], d, 7));
            if !matches!(d, DType::F16 | DType::BF16) {
                check_matmul(&x, &y);
            }
        }
    });
}

#[test]
fn contractions_of_any_axes() {
    on_device(|_| {
        for d in [DType::I32, DType::F32, DType::C128] {
            let (a, b) = (numbers(&[3, 4, 5, 6], d, 1), numbers(&[6, 4, 7], d, 2));
            let got = tensordot(&a, &b, ([1, 3], [1, 0])).unwrap();
            let flat =
                |x: &NdArray, order: &[isize], shape: [usize; 2]| x.transpose(order).unwrap().copy().unwrap().reshape(shape).unwrap();
            let want = matmul(&flat(&a, &[0, 2, 1, 3], [15, 24]), &flat(&b, &[1, 0, 2], [24, 7])).unwrap();
            assert_eq!((got.shape(), got.to_bytes().unwrap()), (&[3, 5, 7][..], want.to_bytes().unwrap()), "{d}");
            let mixed = cuprum_core::einsum("abx,xcd->acbd", [&numbers(&[2, 3, 4], d, 3), &numbers(&[4, 5, 6], d, 4)]).unwrap();
            let plain = cuprum_core::einsum("abx,xcd->abcd", [&numbers(&[2, 3, 4], d, 3), &numbers(&[4, 5, 6], d, 4)]).unwrap();
            assert_eq!(mixed.to_bytes().unwrap(), plain.transpose([0, 2, 1, 3]).unwrap().to_bytes().unwrap(), "{d}");
        }
    });
}

#[test]
fn round_trips_keep_elements() {
    fn check<T: Element>(values: Vec<T>) {
        assert_eq!(NdArray::from_slice(&values).unwrap().to_vec::<T>().unwrap(), values);
    }
    on_device(|device| {
        check::<u8>((0..=255).collect());
        check::<f64>((0..100_000).map(f64::from).collect());
        let info = device.info().unwrap();
        println!("{info:?}");
        assert!(info.units > 0 && info.memory_total > 0);
    });
}

/// Host reference: the extreme of real numbers and its index.
fn extreme(values: &[f64], smallest: bool) -> (f64, i64) {
    let better = |a: f64, b: f64| if smallest { a < b } else { a > b };
    let mut best = (values[0], 0);
    for (i, &v) in values.iter().enumerate() {
        if !best.0.is_nan() && (v.is_nan() || better(v, best.0)) {
            best = (v, i as i64);
        }
    }
    best
}

#[test]
fn reduce_over_axes() {
    on_device(|_| {
        // One row per class, some split over blocks, some with unaligned loads.
        let shapes: [(&[usize], &[isize]); 10] = [
            (&[7], &[0]),
            (&[300_001], &[0]),
            (&[5000, 3], &[1]),
            (&[300, 100], &[1]),
            (&[3, 40_000], &[1]),
            (&[2000, 33], &[0]),
            (&[50_000, 2], &[0]),
            (&[6, 50, 70], &[0, 2]),
            (&[6, 50, 70], &[1]),
            (&[4, 9, 8, 5], &[3, 0, 1]),
        ];
        // Every operation over every dtype is the conformance program's: here each shape has one dtype, in one direction, a sum
        // and one other operation, as each combination is a kernel to compile.
        let dtypes = [DType::I64, DType::I8, DType::U16, DType::F32, DType::F64, DType::F16];
        for (n, (shape, axes)) in shapes.into_iter().enumerate() {
            let dtype = dtypes[n % dtypes.len()];
            let a = numbers(shape, dtype, 3);
            let a = if n % 2 == 0 { a } else { flip(&a, 0).unwrap() };
            let values: Vec<f64> = scalars(&a).iter().map(|s| s.as_f64()).collect();
            let (kept, groups) = by_result(shape, axes);
            let check = |name: &str, got: NdArray, want: &dyn Fn(&[f64]) -> f64| {
                assert_eq!(got.shape(), kept, "{name} {dtype} {shape:?} {axes:?}");
                for (group, s) in groups.iter().zip(scalars(&got)) {
                    let of: Vec<f64> = group.iter().map(|&i| values[i]).collect();
                    assert_eq!(s.as_f64(), want(&of), "{name} {dtype} {shape:?} {axes:?}");
                }
            };
            let sums = axis(axes).dtype(if dtype == DType::F16 { DType::F32 } else { dtype.sum_dtype() });
            check("sum", a.sum(sums).unwrap(), &|of| of.iter().sum());
            match n % 7 {
                0 if axes.len() == 1 => check("argmax", a.argmax(axes).unwrap(), &|of| extreme(of, false).1 as f64),
                1 if axes.len() == 1 => check("argmin", a.argmin(axes).unwrap(), &|of| extreme(of, true).1 as f64),
                2 => check("count", count_nonzero(&a, axes).unwrap(), &|of| of.iter().filter(|v| **v != 0.0).count() as f64),
                3 => check("any", a.any(axes).unwrap(), &|of| f64::from(of.iter().any(|v| *v != 0.0))),
                4 => check("all", a.all(axes).unwrap(), &|of| f64::from(of.iter().all(|v| *v != 0.0))),
                5 => check("max", a.max(axes).unwrap(), &|of| extreme(of, false).0),
                _ => check("min", a.min(axes).unwrap(), &|of| extreme(of, true).0),
            }
        }
        let odd = NdArray::from_slice(&[1.0f64, f64::NAN, -3.0, f64::NAN]).unwrap();
        assert!(odd.max(()).unwrap().item().unwrap().as_f64().is_nan());
        assert_eq!(odd.argmin(()).unwrap().item().unwrap(), Scalar::Int(1));
        let small = NdArray::from_slice(&[1i16, 2, 3, 4, -5]).unwrap();
        assert_eq!(small.prod(()).unwrap().item().unwrap(), Scalar::Int(-120));
    });
}

#[test]
fn the_order_of_addition_is_independent_of_alignment() {
    on_device(|_| {
        // Columns in packs; rows of a small team, of a block, and of several blocks.
        let cases: [(&[usize], isize); 5] =
            [(&[1000, 128], 0), (&[100_000, 4], 0), (&[3000, 40], 1), (&[300, 1004], 1), (&[3, 100_000], 1)];
        let generator = Generator::new(5);
        for (shape, along) in cases {
            for dtype in [DType::F32, DType::F64] {
                let n: usize = shape.iter().product();
                let unaligned = generator.normal(1.0, 1.0, [n + 1], dtype).unwrap().index(s![1..]).unwrap().reshape(shape).unwrap();
                let aligned = unaligned.copy().unwrap();
                let same = |f: &dyn Fn(&NdArray) -> NdArray| f(&aligned).to_bytes().unwrap() == f(&unaligned).to_bytes().unwrap();
                assert!(same(&|a| a.sum(along).unwrap()), "sum {dtype} {shape:?} {along}");
                assert!(same(&|a| a.var(along).unwrap()), "var {dtype} {shape:?} {along}");
            }
        }
    });
}

/// Returns the shape of a reduction's result, and for each element of the result the indices (in C order) of the elements that it reduces.
fn by_result(shape: &[usize], axes: &[isize]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let kept: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(&(*a as isize))).collect();
    let out: Vec<usize> = kept.iter().map(|&a| shape[a]).collect();
    let mut groups = vec![Vec::new(); out.iter().product()];
    for i in 0..shape.iter().product() {
        let (mut rest, mut index) = (i, vec![0; shape.len()]);
        for a in (0..shape.len()).rev() {
            (index[a], rest) = (rest % shape[a], rest / shape[a]);
        }
        groups[kept.iter().fold(0, |n, &a| n * shape[a] + index[a])].push(i);
    }
    (out, groups)
}
