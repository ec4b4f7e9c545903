//! Calls served by CUB on a real device, against sums written out here. Prints why it skips without one.

use cuprum_backend_cub::{CUB, coverage};
use cuprum_core::{
    Availability, Complex, Device, Element, NdArray, Record, Result, add, axis, bf16, explain, f16, multiply, registry, s, segment_sum,
    with_accelerators, with_device,
};

/// Runs a test on the first CUDA device with CUB alone before the base.
fn on_device(test: impl FnOnce() -> Result<()>) {
    if let Availability::Missing { why, help } = registry::availability(&CUB) {
        return println!("skipped: {why}; {help}");
    }
    let device = match Device::parse("cuda") {
        Ok(device) => device,
        Err(reason) => return println!("skipped: {reason}"),
    };
    with_device(device, || with_accelerators("cub", test)).unwrap().unwrap();
}

/// The value of `f`, whose last call CUB must serve; the same bits three times.
fn served<T: Element + PartialEq + std::fmt::Debug>(f: impl Fn() -> Result<NdArray>) -> Result<Vec<T>> {
    let once = || -> Result<(Vec<T>, Vec<u8>)> {
        let (array, records) = explain(|| f().and_then(|a| a.eval().cloned()));
        let array = array?;
        let last = records.last().expect("a call");
        assert_eq!(last.served_by, Some("cub"), "{last}");
        Ok((array.to_vec()?, array.to_bytes()?))
    };
    let (values, bytes) = once()?;
    for _ in 0..2 {
        assert!(once()?.1 == bytes, "another result at another time");
    }
    Ok(values)
}

/// Numbers in -1..1 without a pattern that blocks could hide in.
fn numbers(count: usize) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn close(got: &[f64], want: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance, "{what}, element {i}: {g}, not {w}");
    }
}

const SIZES: [usize; 14] = [2, 3, 31, 32, 255, 257, 1023, 4095, 4096, 4097, 16_383, 100_003, 1 << 20, 5_000_001];

#[test]
fn sums_of_everything_at_every_size() {
    on_device(|| {
        for n in SIZES {
            let x = numbers(n);
            let want: f64 = x.iter().sum();
            let f64s = NdArray::from_slice(&x)?;
            close(&served::<f64>(|| f64s.sum(()))?, &[want], 1e-12 * n as f64, &format!("float64 {n}"));
            let single: Vec<f32> = x.iter().map(|x| *x as f32).collect();
            let want: f64 = single.iter().map(|x| f64::from(*x)).sum();
            let f32s = NdArray::from_slice(&single)?;
            close(&[served::<f32>(|| f32s.sum(()))?[0].into()], &[want], 1e-5 * (n as f64).sqrt().max(1.0), &format!("float32 {n}"));
            // One element further on in memory: no aligned packs.
            let tail = f32s.index(s![1..])?;
            if n > 2 {
                let want = want - f64::from(single[0]);
                close(&[served::<f32>(|| tail.sum(()))?[0].into()], &[want], 1e-5 * (n as f64).sqrt().max(1.0), &format!("from 1 of {n}"));
            }
            let ints: Vec<i32> = (0..n).map(|i| (i as i32).wrapping_mul(2_654_435_761u32 as i32)).collect();
            let total: i64 = ints.iter().map(|x| i64::from(*x)).sum();
            let ints = NdArray::from_slice(&ints)?;
            assert_eq!(served::<i64>(|| ints.sum(()))?, [total], "{n}");
            assert_eq!(served::<i64>(|| multiply(&ints, 0).and_then(|z| add(z, 1)).and_then(|o| o.sum(())))?, [n as i64]);
        }
        Ok(())
    });
}

#[test]
fn extremes_places_and_truths() {
    on_device(|| {
        for n in SIZES {
            let mut x: Vec<f32> = numbers(n).into_iter().map(|x| x as f32).collect();
            let (low, high) = (n / 3, n - 1);
            (x[low], x[high]) = (-7.0, 7.0);
            x[n - 1 - n / 5] = 7.0;
            let first_high = x.iter().position(|v| *v == 7.0).unwrap() as i64;
            let first_low = x.iter().position(|v| *v == -7.0).map(|i| i as i64);
            let a = NdArray::from_slice(&x)?;
            assert_eq!(served::<f32>(|| a.max(()))?, [7.0], "{n}");
            assert_eq!(served::<i64>(|| a.argmax(()))?, [first_high], "{n}");
            if let Some(at) = first_low {
                assert_eq!((served::<f32>(|| a.min(()))?[0], served::<i64>(|| a.argmin(()))?[0]), (-7.0, at), "{n}");
            }
            x[n / 2] = f32::NAN;
            let a = NdArray::from_slice(&x)?;
            for value in [served_nan(|| a.min(()))?, served_nan(|| a.max(()))?] {
                assert!(value.is_nan(), "{n}");
            }
            assert_eq!(served::<i64>(|| a.argmin(()))?, [(n / 2) as i64], "{n}");
            assert_eq!(served::<i64>(|| a.argmax(()))?, [(n / 2) as i64], "{n}");
            let mut bits = vec![false; n];
            bits[n - 1] = true;
            let b = NdArray::from_slice(&bits)?;
            assert_eq!((served::<bool>(|| b.any(()))?[0], served::<bool>(|| b.all(()))?[0]), (true, false), "{n}");
            assert_eq!(served::<i64>(|| b.count_nonzero(()))?, [1], "{n}");
        }
        Ok(())
    });
}

/// As [`served`], for values that are not equal to themselves.
fn served_nan(f: impl Fn() -> Result<NdArray>) -> Result<f32> {
    Ok(f32::from_bits(u32::from_le_bytes(f()?.to_bytes()?.try_into().unwrap_or_default())))
}

#[test]
fn rows_of_every_shape() {
    on_device(|| {
        let shapes = [(3, 7), (2, 2), (1000, 33), (1001, 32), (257, 128), (300, 129), (500, 2049), (300, 5000), (4, 100_000), (255, 9000)];
        for (rows, columns) in shapes {
            let x = numbers(rows * columns);
            let a = NdArray::from_vec(&x, [rows, columns])?;
            let what = format!("{rows} x {columns}");
            let sums: Vec<f64> = x.chunks(columns).map(|r| r.iter().sum()).collect();
            close(&served::<f64>(|| a.sum(-1))?, &sums, 1e-12 * columns as f64, &what);
            let squares: Vec<f64> = x.chunks(columns).map(|r| r.iter().map(|x| x * x).sum()).collect();
            close(&served::<f64>(|| multiply(&a, &a)?.sum(-1))?, &squares, 1e-12 * columns as f64, &what);
            let places: Vec<i64> =
                x.chunks(columns).map(|r| (0..columns).rev().max_by(|&i, &j| r[i].total_cmp(&r[j])).unwrap() as i64).collect();
            assert_eq!(served::<i64>(|| a.argmax(-1))?, places, "{what}");
            // Every other row, backwards.
            let some: Vec<f64> = sums.iter().rev().step_by(2).copied().collect();
            let view = a.index(s![..;-2, ..])?;
            close(&served::<f64>(|| view.sum(1))?, &some, 1e-12 * columns as f64, &what);
        }
        // Two axes of rows, one of them broadcast, and a prologue with a row that repeats.
        let x = numbers(5 * 40);
        let a = NdArray::from_vec(&x, [5, 1, 40])?;
        let row = NdArray::from_vec(numbers(40), [40])?;
        let want: Vec<f64> = (0..15).map(|i| (0..40).map(|c| x[i / 3 * 40 + c] + x[c]).sum()).collect();
        let wide = a.broadcast_to([5, 3, 40])?;
        close(&served::<f64>(|| add(&wide, &row)?.sum(-1))?, &want, 1e-11, "broadcast");
        Ok(())
    });
}

#[test]
fn types_keep_their_rules() {
    on_device(|| {
        let halves = NdArray::from_slice(&vec![f16::from_f64(0.1); 4096])?;
        let want = f16::from_f64(4096.0 * f16::from_f64(0.1).to_f64());
        assert_eq!(served::<f16>(|| halves.sum(()))?, [want]);
        let zeros = NdArray::from_slice(&vec![-0.0f32; 1000])?;
        assert!(served::<f32>(|| zeros.sum(()))?[0].is_sign_positive(), "as in NumPy");
        let z = [Complex::new(f64::INFINITY, 1.0), Complex::new(2.0, -3.0)];
        assert_eq!(served::<Complex<f64>>(|| NdArray::from_slice(&z)?.sum(()))?, [Complex::new(f64::INFINITY, -2.0)]);
        let bytes = NdArray::from_slice(&(0..1000).map(|i| i as u8).collect::<Vec<_>>())?;
        assert_eq!(served::<u64>(|| bytes.sum(()))?, [(0..1000u64).map(|i| i % 256).sum::<u64>()]);
        assert_eq!((served::<u8>(|| bytes.max(()))?[0], served::<u8>(|| bytes.min(()))?[0]), (255, 0));
        let twos = NdArray::from_slice(&vec![2i64; 70])?;
        assert_eq!(served::<i64>(|| twos.prod(()))?, [0], "2^70 wraps");
        Ok(())
    });
}

#[test]
fn scans_at_every_size() {
    on_device(|| {
        for n in SIZES.into_iter().chain([1, 8191, 8192, 8193, 65 * 8192, 3_000_017]) {
            let ints: Vec<i64> = (0..n as i64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64)).collect();
            let mut total = 0i64;
            let want: Vec<i64> = ints
                .iter()
                .map(|x| {
                    total = total.wrapping_add(*x);
                    total
                })
                .collect();
            let a = NdArray::from_slice(&ints)?;
            assert!(served::<i64>(|| a.cumsum(0))? == want, "int64 {n}");
            let x = numbers(n);
            let mut total = 0.0;
            let want: Vec<f64> = x
                .iter()
                .map(|x| {
                    total += x;
                    total
                })
                .collect();
            let a = NdArray::from_slice(&x)?;
            close(&served::<f64>(|| a.cumsum(0))?, &want, 1e-13 * n as f64, &format!("float64 {n}"));
            let f = a.astype(cuprum_core::DType::F32)?;
            let got: Vec<f64> = served::<f32>(|| f.cumsum(0))?.into_iter().map(f64::from).collect();
            close(&got, &want, 1e-4 * (n as f64).sqrt().max(1.0), &format!("float32 {n}"));
            let z = NdArray::from_slice(&x.iter().map(|x| Complex::new(*x, -x)).collect::<Vec<_>>())?;
            let got = served::<Complex<f64>>(|| z.cumsum(0))?;
            assert!(got.iter().zip(&want).all(|(z, w)| (z.re - w).abs() <= 1e-13 * n as f64 && z.im == -z.re), "complex128 {n}");
            let squares: Vec<f64> = {
                let mut total = 0.0;
                x.iter()
                    .map(|x| {
                        total += x * x;
                        total
                    })
                    .collect()
            };
            close(&served::<f64>(|| multiply(&a, &a)?.cumsum(0))?, &squares, 1e-12 * n as f64, &format!("squares {n}"));
        }
        let small = NdArray::from_slice(&[1u8, 2, 3, 250, 7])?;
        assert_eq!(served::<u64>(|| small.cumsum(0))?, [1, 3, 6, 256, 263]);
        assert_eq!(served::<u8>(|| small.cumprod_as(0, cuprum_core::DType::U8))?, [1, 2, 6, 220, 4]);
        Ok(())
    });
}

#[test]
fn scans_of_rows_and_running_extremes() {
    on_device(|| {
        for (rows, columns) in [(1, 9000), (7, 512), (300, 1000), (33, 8192), (5, 8193), (3, 70_001)] {
            let x = numbers(rows * columns);
            let a = NdArray::from_vec(&x, [rows, columns])?;
            let what = format!("{rows} x {columns}");
            let running = |f: fn(f64, f64) -> f64| -> Vec<f64> {
                let row = |r: &[f64]| {
                    r.iter()
                        .scan(None, |acc, x| {
                            *acc = Some(acc.map_or(*x, |a| f(a, *x)));
                            *acc
                        })
                        .collect::<Vec<_>>()
                };
                x.chunks(columns).flat_map(row).collect()
            };
            close(&served::<f64>(|| a.cumsum(-1))?, &running(|a, b| a + b), 1e-12 * columns as f64, &what);
            assert!(served::<f64>(|| a.cummax(-1))? == running(f64::max), "{what}");
            assert!(served::<f64>(|| a.cummin(-1))? == running(f64::min), "{what}");
            // Every other row, and a prologue.
            let view = a.index(s![..;-1, ..])?;
            let want: Vec<f64> = running(|a, b| a + b).chunks(columns).rev().flatten().copied().collect();
            close(&served::<f64>(|| add(&view, 0.0)?.cumsum(-1))?, &want, 1e-12 * columns as f64, &what);
        }
        let mut x: Vec<f32> = numbers(20_000).into_iter().map(|x| x as f32).collect();
        x[9000] = f32::NAN;
        let got = served_bits(|| NdArray::from_slice(&x)?.cummax(0))?.to_vec::<f32>()?;
        assert!(got[8999] > 0.9 && got[9000..].iter().all(|v| v.is_nan()), "NaN from the first NaN on");
        let halves: Vec<f16> = x[..5000].iter().map(|x| f16::from_f32(*x)).collect();
        let want: Vec<f16> = halves
            .iter()
            .scan(f16::INFINITY, |acc, x| {
                *acc = acc.min(*x);
                Some(*acc)
            })
            .collect();
        assert_eq!(served::<f16>(|| NdArray::from_slice(&halves)?.cummin(0))?, want);
        Ok(())
    });
}

#[test]
fn scans_of_columns() {
    on_device(|| {
        // Running results along the middle axis.
        fn running<T: Copy>(x: &[T], [outer, rows, columns]: [usize; 3], f: impl Fn(T, T) -> T) -> Vec<T> {
            let mut out = x.to_vec();
            for i in (0..outer).flat_map(|o| (1..rows).map(move |r| o * rows + r)) {
                (0..columns).for_each(|c| out[i * columns + c] = f(out[(i - 1) * columns + c], out[i * columns + c]));
            }
            out
        }
        let shapes = [[1, 33, 8], [1, 100, 33], [1, 300, 31], [1, 256, 64], [1, 257, 1000], [1, 40_001, 20], [3, 500, 40], [70, 129, 9]];
        for shape in shapes {
            let count = shape.iter().product();
            let x = numbers(count);
            let a = NdArray::from_vec(&x, shape)?;
            let what = format!("{shape:?}");
            let sums = running(&x, shape, |a, b| a + b);
            close(&served::<f64>(|| a.cumsum(1))?, &sums, 1e-12 * shape[1] as f64, &what);
            assert!(served::<f64>(|| a.cummax(1))? == running(&x, shape, f64::max), "{what}");
            let ints: Vec<i64> = x.iter().map(|x| (x * 9e18) as i64).collect();
            let i = NdArray::from_vec(&ints, shape)?;
            assert!(served::<i64>(|| i.cumsum(1))? == running(&ints, shape, i64::wrapping_add), "{what}");
            assert!(served::<i64>(|| i.cumprod(1))? == running(&ints, shape, i64::wrapping_mul), "{what}");
            let bytes: Vec<u8> = ints.iter().map(|x| *x as u8).collect();
            let b = NdArray::from_vec(&bytes, shape)?;
            assert!(served::<u8>(|| b.cummin(1))? == running(&bytes, shape, u8::min), "{what}");
            let f = a.astype(cuprum_core::DType::F32)?;
            let got: Vec<f64> = served::<f32>(|| f.cumsum(1))?.into_iter().map(f64::from).collect();
            close(&got, &sums, 1e-4 * (shape[1] as f64).sqrt(), &what);
            let z = NdArray::from_vec(x.iter().map(|x| Complex::new(*x, -x)).collect::<Vec<_>>(), shape)?;
            let got = served::<Complex<f64>>(|| z.cumsum(1))?;
            assert!(got.iter().zip(&sums).all(|(z, w)| (z.re - w).abs() <= 1e-12 * shape[1] as f64 && z.im == -z.re), "complex128 {what}");
            // Backwards along both axes, with a row that repeats and a number.
            let row = NdArray::from_slice(&x[..shape[2]])?;
            let view = a.index(s![.., ..;-1, ..;-1])?;
            let terms: Vec<f64> = (0..count)
                .map(|i| {
                    let (o, r, c) = (i / shape[2] / shape[1], i / shape[2] % shape[1], i % shape[2]);
                    x[(o * shape[1] + shape[1] - 1 - r) * shape[2] + shape[2] - 1 - c] + x[c] + 0.5
                })
                .collect();
            let want = running(&terms, shape, |a, b| a + b);
            let fused = || add(&add(&view, &row)?, 0.5)?.cumsum(1);
            close(&served::<f64>(fused)?, &want, 1e-12 * shape[1] as f64, &what);
        }
        // Fortran order: the scanned axis is contiguous in memory, but not in the result.
        let x = numbers(100 * 700);
        let a = NdArray::from_vec(&x, [100, 700])?;
        let turned: Vec<f64> = (0..x.len()).map(|i| x[i % 100 * 700 + i / 100]).collect();
        let want = running(&turned, [1, 700, 100], |a, b| a + b);
        close(&served::<f64>(|| a.t()?.cumsum(0))?, &want, 1e-10, "transposed");
        let mut x: Vec<f16> = numbers(900 * 40).into_iter().map(f16::from_f64).collect();
        x[500 * 40 + 3] = f16::NAN;
        let got = served_bits(|| NdArray::from_vec(&x, [900, 40])?.cummax(0))?.to_vec::<f16>()?;
        assert!((0..got.len()).all(|i| got[i].is_nan() == (i % 40 == 3 && i / 40 >= 500)), "NaN from the first NaN on");
        Ok(())
    });
}

/// Sizes at the edges of warps and of the tiles of `tile` elements.
fn edges(tile: usize) -> [usize; 9] {
    [1, 31, 33, tile - 1, tile, tile + 1, 2 * tile, 35 * tile + 7, 100_003]
}

#[test]
fn selections_at_every_size() {
    on_device(|| {
        for n in edges(384 * 16).into_iter().chain(edges(384 * 10)) {
            let x: Vec<f32> = numbers(n).into_iter().map(|x| x as f32).collect();
            let a = NdArray::from_slice(&x)?;
            // All, none, half, one in a hundred.
            for above in [-2.0f32, 2.0, 0.0, 0.98] {
                let want: Vec<f32> = x.iter().copied().filter(|x| *x > above).collect();
                let places: Vec<i64> = (0..n as i64).filter(|i| x[*i as usize] > above).collect();
                let what = format!("{} of {n}", want.len());
                assert!(served::<f32>(|| a.extract(&a.greater(above)?))? == want, "{what}");
                assert!(served::<i64>(|| a.greater(above)?.flatnonzero())? == places, "{what}");
                let mask = a.greater(above)?.eval()?.clone();
                assert!(served::<f32>(|| a.extract(&mask))? == want, "{what}");
                let wide = a.astype(cuprum_core::DType::F64)?.eval()?.clone();
                let want: Vec<f64> = want.iter().map(|x| f64::from(*x)).collect();
                assert!(served::<f64>(|| wide.extract(&mask))? == want, "{what}");
            }
        }
        Ok(())
    });
}

#[test]
fn selections_of_every_width() {
    on_device(|| {
        let n = 10_007;
        let x = numbers(n);
        let mask: Vec<bool> = x.iter().map(|x| *x < 0.25).collect();
        let m = NdArray::from_slice(&mask)?;
        let chosen = |i: usize| mask[i];
        let bytes: Vec<u8> = (0..n).map(|i| i as u8).collect();
        let want: Vec<u8> = (0..n).filter(|i| chosen(*i)).map(|i| bytes[i]).collect();
        assert!(served::<u8>(|| NdArray::from_slice(&bytes)?.extract(&m))? == want);
        let halves: Vec<f16> = x.iter().map(|x| f16::from_f64(*x)).collect();
        let want: Vec<f16> = (0..n).filter(|i| chosen(*i)).map(|i| halves[i]).collect();
        assert!(served::<f16>(|| NdArray::from_slice(&halves)?.extract(&m))? == want);
        let complex: Vec<Complex<f64>> = x.iter().map(|x| Complex::new(*x, -x)).collect();
        let want: Vec<Complex<f64>> = (0..n).filter(|i| chosen(*i)).map(|i| complex[i]).collect();
        assert!(served::<Complex<f64>>(|| NdArray::from_slice(&complex)?.extract(&m))? == want);
        // One element that stands for all, and a view that begins elsewhere.
        let ones = NdArray::full(1, 1.0f64, cuprum_core::DType::F64)?.broadcast_to(100)?;
        assert_eq!(served::<i64>(|| ones.flatnonzero())?.len(), 100);
        let tail = NdArray::from_slice(&x)?.index(s![1..])?;
        let want: Vec<f64> = x[1..].iter().copied().filter(|x| *x > 0.5).collect();
        assert!(served::<f64>(|| tail.extract(&tail.greater(0.5)?))? == want);
        Ok(())
    });
}

#[test]
fn histograms_count_by_their_edges() {
    on_device(|| {
        let oracle = |x: &[f64], edges: &[f64]| {
            let mut counts = vec![0i64; edges.len() - 1];
            for v in x.iter().filter(|v| **v >= edges[0] && **v <= edges[edges.len() - 1]) {
                counts[edges[..edges.len() - 1].partition_point(|e| e <= v) - 1] += 1;
            }
            counts
        };
        for n in [1, 1000, 8192, 8193, 300_007] {
            let mut x = numbers(n);
            (x[n / 2], x[n / 3]) = (f64::NAN, 0.5);
            x[n - 1] = 1.0;
            let a = NdArray::from_slice(&x)?;
            let f = a.astype(cuprum_core::DType::F32)?.eval()?.clone();
            let singles: Vec<f64> = f.to_vec::<f32>()?.into_iter().map(f64::from).collect();
            for bins in [1, 2, 10, 256, 5000, 20_000] {
                let what = format!("{n} in {bins}");
                let edges = cuprum_core::histogram_bin_edges(&a, (bins, -1.0, 1.0))?.to_vec::<f64>()?;
                assert!(served::<i64>(|| Ok(a.histogram((bins, -1.0, 1.0))?.0))? == oracle(&x, &edges), "float64 {what}");
                let edges = cuprum_core::histogram_bin_edges(&f, (bins, -0.3, 1.0))?.to_vec::<f32>()?;
                let edges: Vec<f64> = edges.into_iter().map(f64::from).collect();
                assert!(served::<i64>(|| Ok(f.histogram((bins, -0.3, 1.0))?.0))? == oracle(&singles, &edges), "float32 {what}");
                // Uneven ones, some of them equal.
                let edges: Vec<f64> = (0..=bins).map(|i| (i / 2 * 2) as f64 / bins as f64 - 0.5).map(|e| e * e * e * 4.0).collect();
                let e = NdArray::from_slice(&edges)?;
                assert!(served::<i64>(|| Ok(a.histogram(&e)?.0))? == oracle(&x, &edges), "edges {what}");
            }
        }
        // A range so narrow that all edges are two floats.
        let x = NdArray::from_slice(&[1.0f32, 1.0 + f32::EPSILON, 1.0])?;
        let (counts, edges) = x.histogram((10, 1.0, 1.0 + f64::from(f32::EPSILON)))?;
        let edges: Vec<f64> = edges.to_vec::<f32>()?.into_iter().map(f64::from).collect();
        assert_eq!(counts.to_vec::<i64>()?, oracle(&[1.0, 1.0 + f64::from(f32::EPSILON), 1.0], &edges));
        Ok(())
    });
}

#[test]
fn numbers_are_counted() {
    on_device(|| {
        for (n, bins) in [(1, 1), (1000, 3), (100_003, 256), (100_003, 12_000), (50_000, 40_000)] {
            let x: Vec<i32> = numbers(n).iter().map(|x| ((x.abs() * bins as f64) as i32).min(bins - 1)).collect();
            let mut want = vec![0i64; bins as usize];
            x.iter().for_each(|v| want[*v as usize] += 1);
            let a = NdArray::from_slice(&x)?;
            assert!(served::<i64>(|| a.bincount(None, bins as usize))? == want, "{n} in {bins}");
        }
        Ok(())
    });
}

/// NumPy's order of floats, NaN last; of other elements their own.
trait Ordered: Element + Copy + PartialEq + std::fmt::Debug {
    fn order(&self, other: &Self) -> std::cmp::Ordering;
}

fn by_number(a: f64, b: f64) -> std::cmp::Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

macro_rules! ordered {
    ($($t:ty: $order:expr;)*) => { $(impl Ordered for $t {
        fn order(&self, other: &Self) -> std::cmp::Ordering {
            let order: fn(&$t, &$t) -> std::cmp::Ordering = $order;
            order(self, other)
        }
    })* };
}

ordered! {
    bool: |a, b| a.cmp(b);
    u8: |a, b| a.cmp(b);
    i8: |a, b| a.cmp(b);
    u16: |a, b| a.cmp(b);
    i16: |a, b| a.cmp(b);
    u32: |a, b| a.cmp(b);
    i32: |a, b| a.cmp(b);
    u64: |a, b| a.cmp(b);
    i64: |a, b| a.cmp(b);
    f16: |a, b| by_number(a.to_f64(), b.to_f64());
    bf16: |a, b| by_number(a.to_f64(), b.to_f64());
    f32: |a, b| by_number(f64::from(*a), f64::from(*b));
    f64: |a, b| by_number(*a, *b);
    Complex<f32>: |a, b| {
        let class = |z: &Complex<f32>| 2 * u8::from(z.re.is_nan()) + u8::from(z.im.is_nan());
        let parts = by_number(a.re.into(), b.re.into()).then(by_number(a.im.into(), b.im.into()));
        class(a).cmp(&class(b)).then(parts)
    };
}

/// Sorts, places and the largest few of rows of `columns` elements, both ways.
fn check_sorts<T: Ordered>(x: &[T], columns: usize) -> Result<()> {
    let a = NdArray::from_vec(x, [x.len() / columns, columns])?;
    let itemsize = a.dtype().itemsize();
    let sorted_bits = |bytes: &[u8]| {
        let mut rows: Vec<Vec<&[u8]>> = bytes.chunks(columns * itemsize).map(|row| row.chunks(itemsize).collect()).collect();
        rows.iter_mut().for_each(|row| row.sort());
        rows.concat().concat()
    };
    for descending in [false, true] {
        let what = format!("{} {} x {columns}, descending {descending}", a.dtype(), x.len() / columns);
        let over = || if descending { axis(-1).descending() } else { axis(-1) };
        let order = |a: &T, b: &T| if descending { b.order(a) } else { a.order(b) };
        let rows = || x.chunks(columns);
        let places: Vec<i64> = rows()
            .flat_map(|row| {
                let mut places: Vec<i64> = (0..columns as i64).collect();
                places.sort_by(|i, j| order(&row[*i as usize], &row[*j as usize]));
                places
            })
            .collect();
        let got = served_bits(|| a.argsort(over()))?.to_vec::<i64>()?;
        let wrong = got.iter().zip(&places).position(|(a, b)| a != b);
        assert!(wrong.is_none(), "places of {what}: at {wrong:?}");
        let values = served_bits(|| a.sort(over()))?;
        let elements = values.to_vec::<T>()?;
        let wrong = (0..x.len()).find(|i| order(&elements[*i], &x[i / columns * columns + places[*i] as usize]).is_ne());
        assert!(wrong.is_none(), "values of {what}: at {wrong:?}");
        assert!(sorted_bits(&values.to_bytes()?) == sorted_bits(&a.to_bytes()?), "elements of {what}");
        for k in [columns.min(5), columns] {
            let (best, at) = a.topk(k, -1, descending)?;
            let head: Vec<i64> = places.chunks(columns).flat_map(|row| &row[..k]).copied().collect();
            let at = at.to_vec::<i64>()?;
            let wrong = at.iter().zip(&head).position(|(a, b)| a != b);
            assert!(wrong.is_none() && at.len() == head.len(), "places of the top {k} of {what}: at {wrong:?}");
            let best = best.to_vec::<T>()?;
            assert!((0..head.len()).all(|i| order(&best[i], &x[i / k * columns + head[i] as usize]).is_eq()), "top {k} of {what}");
        }
    }
    Ok(())
}

/// An array that cub declines, with what its reason says.
type Decline<'a> = (&'a str, Box<dyn Fn() -> Result<NdArray> + 'a>);

#[test]
fn what_cub_declines_the_base_serves() {
    on_device(|| {
        let x = numbers(6400);
        let a = NdArray::from_vec(&x, [80, 80])?;
        let line = NdArray::from_slice(&x)?;
        let z = NdArray::from_slice(&x.chunks(2).map(|p| Complex::new(p[0], p[1].round())).collect::<Vec<_>>())?;
        let small = NdArray::from_slice(&x.iter().map(|x| (x.abs() * 9.0) as i32).collect::<Vec<_>>())?;
        let offsets = NdArray::from_slice(&[0i64, 5, 5, 3000, 6400])?;
        let cases: Vec<Decline> = vec![
            ("the reduced axis is not the last: column", Box::new(|| a.sum(0))),
            ("not contiguous along the reduced axis", Box::new(|| a.index(s![.., ..;2])?.max(1))),
            ("one element per result", Box::new(|| a.reshape([6400, 1])?.sum(1))),
            ("min of complex128: complex numbers are only added and multiplied", Box::new(|| z.min(()))),
            ("argmax of complex128: complex numbers are only added and multiplied", Box::new(|| z.argmax(()))),
            ("var: not one of its operations", Box::new(|| a.var(1))),
            ("sums of segments of unequal length", Box::new(|| segment_sum(&line, &offsets))),
            ("not contiguous along the scanned axis", Box::new(|| line.index(s![..;-1])?.cumsum(0))),
            ("rows of 80 elements are too short for a block each", Box::new(|| a.cumprod(1))),
            ("no more than 2 columns side by side", Box::new(|| a.reshape([3200, 2])?.cumsum(0))),
            ("columns of 20 elements", Box::new(|| a.reshape([20, 320])?.cumsum(0))),
            ("cummax of complex128: complex numbers are only added and multiplied", Box::new(|| z.cummax(0))),
            ("complex128 has keys of 128 bits", Box::new(|| z.argsort(0))),
            ("weights: sums of a fixed order", Box::new(|| small.bincount(Some(&line), 0))),
        ];
        for (why, run) in &cases {
            let (array, records) = explain(|| run().and_then(|a| a.eval().cloned()));
            let array = array?;
            let says = |record: &Record| {
                record.served_by != Some("cub") && record.declined.iter().any(|(who, w)| *who == "cub" && w.contains(why))
            };
            let said: Vec<String> = records.iter().map(|r| r.to_string()).collect();
            assert!(records.iter().any(says), "{why}: {}", said.join("\n"));
            let alone = with_accelerators("", || run()?.to_bytes())??;
            assert!(array.to_bytes()? == alone, "{why}: another result than the base's");
        }
        // Arg-reductions stand back where no order names cub.
        let (places, records) = with_accelerators(None::<&str>, || explain(|| a.argmax(1)?.to_vec::<i64>()))?;
        assert!(
            records.iter().any(|r| r.served_by == Some("cuda") && r.declined.iter().any(|(_, w)| w.contains("an order that names cub")))
        );
        assert_eq!(places?, served::<i64>(|| a.argmax(1))?);
        // The table's reasons are among those above.
        for listed in coverage()? {
            let Some(why) = &listed.declined else { continue };
            let tail = |text: &str| text.rsplit(": ").next().unwrap_or_default().to_owned();
            let common = |case: &str| why.contains(case) || tail(why) == tail(case);
            assert!(cases.iter().any(|(case, _)| common(case)), "{} of {}: {why}", listed.op.name(), listed.dtype);
        }
        Ok(())
    });
}

/// As [`served`], for elements that are not equal to themselves.
fn served_bits(f: impl Fn() -> Result<NdArray>) -> Result<NdArray> {
    let (array, records) = explain(|| f().and_then(|a| a.eval().cloned()));
    let array = array?;
    let last = records.last().expect("a call");
    assert_eq!(last.served_by, Some("cub"), "{last}");
    Ok(array)
}

#[test]
fn sorts_of_rows() {
    on_device(|| {
        let shapes = [
            (1, 1),
            (1, 2),
            (7, 33),
            (3, 128),
            (3, 129),
            (2, 1000),
            (1, 4096),
            (1, 4097),
            (20, 5000),
            (17, 8192),
            (5, 20_000),
            (1, 100_003),
        ];
        for (rows, columns) in shapes {
            let x = numbers(rows * columns);
            // Many of a kind, all kinds of NaN and zeros.
            let floats: Vec<f32> = x
                .iter()
                .enumerate()
                .map(|(i, x)| match i % 11 {
                    3 => [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0][i / 11 % 6],
                    5 => (x * 10.0).round() as f32,
                    _ => *x as f32,
                })
                .collect();
            check_sorts(&floats, columns)?;
            let ints: Vec<i64> = x.iter().map(|x| (x * 1e18) as i64 >> ((x.abs() * 60.0) as u32)).collect();
            check_sorts(&ints, columns)?;
            let bytes: Vec<i8> = x.iter().map(|x| (x * 128.0) as i8).collect();
            check_sorts(&bytes, columns)?;
        }
        Ok(())
    });
}

#[test]
fn sorts_leave_out_digits_that_are_alike() {
    on_device(|| {
        let columns = 9_001;
        let x = numbers(columns);
        // Rows that need no pass, the first, the last, two, three, all but the first, all.
        let row = |n: usize, x: f64| {
            let bits = (x * 9e18) as i64 as u64;
            let mask = [0, 0xff, 0xff << 56, 0xffff, 0xff_00ff_0000_00ff, !0xff, u64::MAX][n];
            (bits & mask | 0x0101_0101_0101_0101 & !mask) as i64
        };
        for rows in [vec![0], vec![1], vec![2], vec![5], vec![0, 1, 2, 3, 4, 5, 6], vec![6, 3, 0, 0, 4, 2, 5, 1]] {
            let of_rows: Vec<i64> = rows.iter().flat_map(|n| x.iter().map(|x| row(*n, *x))).collect();
            check_sorts(&of_rows, columns)?;
            let halves: Vec<u32> = of_rows.iter().map(|x| (x >> 16) as u32).collect();
            check_sorts(&halves, columns)?;
            let words: Vec<i16> = of_rows.iter().map(|x| (x >> 48) as i16).collect();
            check_sorts(&words, columns)?;
        }
        let a = NdArray::from_slice(&(0..100_000i64).map(|i| i * i % 1000).collect::<Vec<_>>())?;
        let all = a.unique_all()?;
        let values = all.values.to_vec::<i64>()?;
        assert!(values.windows(2).all(|w| w[0] < w[1]) && values.len() == 159, "{}", values.len());
        assert_eq!(all.counts.to_vec::<i64>()?.iter().sum::<i64>(), 100_000);
        assert_eq!(all.values.take(&all.inverse, 0)?.to_vec::<i64>()?, a.to_vec::<i64>()?);
        Ok(())
    });
}

/// The first `k` of each row, both ways.
fn check_first<T: Ordered>(x: &[T], columns: usize, k: usize) -> Result<()> {
    let a = NdArray::from_vec(x, [x.len() / columns, columns])?;
    for largest in [false, true] {
        let what = format!("the first {k} of {} {} x {columns}, largest: {largest}", a.dtype(), x.len() / columns);
        let order = |a: &T, b: &T| if largest { b.order(a) } else { a.order(b) };
        let of_row = |row: &[T]| {
            let mut places: Vec<i64> = (0..columns as i64).collect();
            places.sort_by(|i, j| order(&row[*i as usize], &row[*j as usize]));
            places.truncate(k);
            places
        };
        let want: Vec<i64> = x.chunks(columns).flat_map(of_row).collect();
        let (arrays, records) = explain(|| a.topk(k, -1, largest));
        let (values, places) = arrays?;
        assert_eq!(records.last().and_then(|r| r.served_by), Some("cub"), "{what}");
        assert!(places.to_vec::<i64>()? == want, "places of {what}");
        let values = values.to_vec::<T>()?;
        assert!((0..want.len()).all(|i| order(&values[i], &x[i / k * columns + want[i] as usize]).is_eq()), "{what}");
    }
    Ok(())
}

#[test]
fn the_first_few() {
    on_device(|| {
        for (rows, columns) in [(1, 9_000), (3, 20_000)] {
            let x = numbers(rows * columns);
            // Nothing alike, few numbers, one number, all kinds of NaN and zeros.
            let nan_or_zero = |x: &f64| if x.abs() > 0.5 { f64::NAN.copysign(*x) } else { 0.0f64.copysign(*x) };
            let kinds: [Vec<f64>; 4] =
                [x.clone(), x.iter().map(|x| (x * 3.0).round()).collect(), vec![7.0; x.len()], x.iter().map(nan_or_zero).collect()];
            for x in &kinds {
                for k in [1, 10, 1000, 1024, 1025].into_iter().filter(|k| k * 8 <= columns) {
                    check_first(x, columns, k)?;
                    check_first(&x.iter().map(|x| *x as f32).collect::<Vec<_>>(), columns, k)?;
                    check_first(&x.iter().map(|x| *x > 0.9).collect::<Vec<_>>(), columns, k)?;
                    check_first(&x.iter().map(|x| (x * 1e18) as i64).collect::<Vec<_>>(), columns, k)?;
                    check_first(&x.iter().map(|x| f16::from_f64(*x)).collect::<Vec<_>>(), columns, k)?;
                }
            }
            let part = |x: f64| if x > 0.6 { f32::NAN } else { (x * 2.0).round() as f32 };
            let pairs: Vec<_> = x.iter().zip(x.iter().rev()).map(|(a, b)| Complex::new(part(*a), part(*b))).collect();
            check_first(&pairs, columns, 500)?;
        }
        Ok(())
    });
}

#[test]
fn sorts_of_every_dtype() {
    on_device(|| {
        for (rows, columns) in [(3, 700), (2, 21_001)] {
            let x = numbers(rows * columns);
            fn of<T>(x: &[f64], f: impl Fn(f64) -> T) -> Vec<T> {
                x.iter().map(|x| f(*x)).collect()
            }
            // Every bit pattern of the 16-bit floats among them.
            let bits = |x: f64| (x.abs() * 65536.0) as u16;
            check_sorts(&of(&x, |x| x > 0.3), columns)?;
            check_sorts(&of(&x, |x| (x.abs() * 256.0) as u8), columns)?;
            check_sorts(&of(&x, bits), columns)?;
            check_sorts(&of(&x, |x| (x * 32768.0) as i16), columns)?;
            check_sorts(&of(&x, |x| (x.abs() * 4e9) as u32), columns)?;
            check_sorts(&of(&x, |x| (x * 2e9) as i32), columns)?;
            check_sorts(&of(&x, |x| (x.abs() * 1.8e19) as u64), columns)?;
            check_sorts(&of(&x, |x| f16::from_bits(bits(x))), columns)?;
            check_sorts(&of(&x, |x| bf16::from_bits(bits(x))), columns)?;
            check_sorts(&of(&x, |x| if x > 0.9 { -f64::NAN } else { (x * 100.0).round() * x.signum() * 0.5 }), columns)?;
            let part = |x: f64| if x > 0.6 { f32::NAN } else { (x * 2.0).round() as f32 };
            let pairs = x.iter().zip(x.iter().rev()).map(|(a, b)| Complex::new(part(*a), part(*b)));
            check_sorts(&pairs.collect::<Vec<_>>(), columns)?;
        }
        Ok(())
    });
}

#[test]
fn sorts_of_many() {
    on_device(|| {
        let n = 20_000_003;
        let x: Vec<f32> = numbers(n).into_iter().map(|x| x as f32).collect();
        check_sorts(&x, n)?;
        let a = NdArray::from_slice(&x)?;
        let want: Vec<f32> = x.iter().copied().filter(|x| *x > 0.0).collect();
        assert!(served::<f32>(|| a.extract(&a.greater(0.0f32)?))? == want);
        Ok(())
    });
}

/// Whether the device has so much memory; says so if not.
fn has_gigabytes(count: usize) -> bool {
    let total = Device::current().and_then(|d| d.info()).map_or(0, |i| i.memory_total) >> 30;
    if total < count {
        println!("skipped: {count} GiB of memory are needed, and there are {total}");
    }
    total >= count
}

#[test]
fn more_than_two_to_the_31_elements() {
    on_device(|| {
        bytes_that_rise(1 << 18)?;
        columns_of_ones(1 << 10)?;
        if has_gigabytes(70) {
            bytes_that_rise(1 << 31)?;
            columns_of_ones(1 << 26)?;
        }
        Ok(())
    });
}

/// Each family over 0 to 255 again and again, then 0, 1 and 2.
fn bytes_that_rise(most: i64) -> Result<()> {
    let (periods, n) = (most / 256, most + 3);
    let numbers = NdArray::arange(0, n, 1)?;
    assert_eq!(served_bits(|| numbers.greater(n - 3)?.argmax(()))?.to_vec::<i64>()?, [n - 2]);
    assert_eq!(served_bits(|| numbers.max(()))?.to_vec::<i64>()?, [n - 1]);
    let bytes = numbers.astype(cuprum_core::DType::U8)?.eval()?.clone();
    let shorts = numbers.astype(cuprum_core::DType::I16)?.eval()?.clone();
    drop(numbers);
    let at = |a: &NdArray, i: i64| -> Result<Vec<u8>> { a.index(s![i as isize..i as isize + 1])?.to_bytes() };

    assert_eq!(served_bits(|| bytes.sum(()))?.to_vec::<u64>()?, [periods as u64 * 32_640 + 3]);
    let odd = bytes.index(s![1..])?; // packs that are not aligned
    assert_eq!(served_bits(|| odd.sum(()))?.to_vec::<u64>()?, [periods as u64 * 32_640 + 3]);
    let two = bytes.index(s![..-3])?.reshape([2, most as usize / 2])?;
    assert_eq!(served_bits(|| two.sum(1))?.to_vec::<u64>()?, [periods as u64 / 2 * 32_640; 2]);
    assert_eq!(served_bits(|| bytes.equal(2)?.count_nonzero(()))?.to_vec::<i64>()?, [periods + 1]);

    let running = served_bits(|| bytes.cumsum_as(0, cuprum_core::DType::U8))?;
    for i in [0, 255, (most) - 1, most, n - 1] {
        let want = (i / 256 * 32_640 + (i % 256) * (i % 256 + 1) / 2) as u8;
        assert_eq!(at(&running, i)?, [want], "{i}");
    }
    let alone = with_accelerators("", || Ok::<_, cuprum_core::Error>(bytes.cumsum_as(0, cuprum_core::DType::U8)?.eval()?.clone()))??;
    assert_eq!(running.not_equal(&alone)?.count_nonzero(())?.to_vec::<i64>()?, [0]);
    drop((running, alone));

    let mut counts = vec![periods; 256];
    counts[..3].iter_mut().for_each(|c| *c += 1);
    assert_eq!(served_bits(|| bytes.bincount(None, 256))?.to_vec::<i64>()?, counts);
    assert_eq!(served_bits(|| Ok(bytes.histogram((256, 0.0, 256.0))?.0))?.to_vec::<i64>()?, counts);

    let places = served_bits(|| bytes.equal(2)?.flatnonzero())?;
    assert_eq!(
        (places.size() as i64, at(&places, 0)?, at(&places, periods)?),
        (periods + 1, 2i64.to_le_bytes().into(), (n - 1).to_le_bytes().into())
    );
    drop(places);
    let chosen = served_bits(|| bytes.extract(&bytes.less(3)?))?;
    assert_eq!((chosen.size() as i64, at(&chosen, 3 * periods + 1)?), (3 * periods + 3, vec![1]));
    drop(chosen);

    let sorted = served_bits(|| bytes.sort(0))?;
    for (i, want) in [(periods, 0), (periods + 1, 1), (3 * periods + 2, 2), (3 * periods + 3, 3), (n - 1, 255)] {
        assert_eq!(at(&sorted, i)?, [want], "{i}");
    }
    drop(sorted);
    let order = served_bits(|| bytes.argsort(0))?;
    for (i, want) in [(0, 0), (periods, most), (periods + 1, 1), (n - 1, (most) - 1)] {
        assert_eq!(at(&order, i)?, i64::to_le_bytes(want), "{i}");
    }
    drop((order, bytes));
    // Two passes, and as many of each number as there are of every byte, divided by 256.
    let sorted = served_bits(|| shorts.sort(0))?;
    for (i, want) in
        [(0, i16::MIN), (n / 2 - 2, -1), (most / 2, 0), (most / 2 + most / 65_536, 0), (most / 2 + most / 65_536 + 1, 1), (n - 1, i16::MAX)]
    {
        assert_eq!(at(&sorted, i)?, want.to_le_bytes(), "{i}");
    }
    Ok(())
}

/// Running sums of so many rows and one, 33 columns side by side.
fn columns_of_ones(most: i64) -> Result<()> {
    let rows = most + 1;
    let ones = NdArray::full([rows as usize, 33], 1, cuprum_core::DType::U8)?;
    let running = served_bits(|| ones.cumsum_as(0, cuprum_core::DType::U8))?;
    let numbers = NdArray::arange(1, rows + 1, 1)?.astype(cuprum_core::DType::U8)?.reshape([rows as usize, 1])?;
    assert_eq!(running.not_equal(&numbers)?.count_nonzero(())?.to_vec::<i64>()?, [0]);
    Ok(())
}

#[test]
fn the_base_serves_while_a_kernel_is_compiled() {
    if let Availability::Missing { why, help } = registry::availability(&CUB) {
        return println!("skipped: {why}; {help}");
    }
    if std::env::var_os("CUPRUM_COMPILE").is_some() || std::env::var_os("CUPRUM_ACCELERATORS").is_some() {
        return println!("skipped: settings decide");
    }
    let Ok(device) = Device::parse("cuda") else { return println!("skipped: no device") };
    let test = || -> Result<()> {
        // An expression that no cache has: 20 bits of the time choose its operations.
        let bits = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
        let x = NdArray::from_slice(&(0..1000i64).collect::<Vec<_>>())?;
        let condition = || {
            let term = |sum: NdArray, bit: u32| if bits >> bit & 1 == 1 { add(&sum, &x) } else { multiply(&sum, &x) };
            (0..20).try_fold(x.clone(), term)?.greater(0)
        };
        let want = condition()?.to_vec::<bool>()?;
        let want: Vec<i64> = (0..1000i64).filter(|i| want[*i as usize]).collect();
        let start = std::time::Instant::now();
        let mut first = None;
        loop {
            let (places, records) = explain(|| condition()?.flatnonzero());
            assert_eq!(places?.to_vec::<i64>()?, want);
            let select = records.iter().find(|r| r.op == "flatnonzero").expect("a selection");
            first = first.or(Some(select.to_string()));
            match select.served_by {
                Some("cub") => break,
                _ => assert!(select.declined.iter().any(|(who, why)| *who == "cub" && why.contains("being compiled")), "{select}"),
            }
            assert!(start.elapsed().as_secs() < 60, "{select}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        println!("at first: {}", first.unwrap_or_default());
        Ok(())
    };
    with_device(device, || with_accelerators(None::<&str>, test)).unwrap().unwrap();
}
