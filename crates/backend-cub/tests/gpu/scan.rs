//! Scans by CUB, compared with loops on the host.

use cuprum_core::{Complex, DType, NdArray, add, axis, cummax, cummin, f16, multiply, s};

use crate::{SIZES, close, numbers, on_device, served, served_array};

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
            let f = a.astype(DType::F32)?;
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
        assert_eq!(served::<u8>(|| small.cumprod(axis(0).dtype(DType::U8)))?, [1, 2, 6, 220, 4]);
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
            assert!(served::<f64>(|| cummax(&a, -1))? == running(f64::max), "{what}");
            assert!(served::<f64>(|| cummin(&a, -1))? == running(f64::min), "{what}");
            // Rows in reverse order with a fused program.
            let view = a.index(s![..;-1, ..])?;
            let want: Vec<f64> = running(|a, b| a + b).chunks(columns).rev().flatten().copied().collect();
            close(&served::<f64>(|| add(&view, 0.0)?.cumsum(-1))?, &want, 1e-12 * columns as f64, &what);
        }
        let mut x: Vec<f32> = numbers(20_000).into_iter().map(|x| x as f32).collect();
        x[9000] = f32::NAN;
        let got = served_array(|| cummax(&NdArray::from_slice(&x)?, 0))?.to_vec::<f32>()?;
        assert!(got[8999] > 0.9 && got[9000..].iter().all(|v| v.is_nan()), "NaN from the first NaN on");
        let halves: Vec<f16> = x[..5000].iter().map(|x| f16::from_f32(*x)).collect();
        let want: Vec<f16> = halves
            .iter()
            .scan(f16::INFINITY, |acc, x| {
                *acc = acc.min(*x);
                Some(*acc)
            })
            .collect();
        assert_eq!(served::<f16>(|| cummin(&NdArray::from_slice(&halves)?, 0))?, want);
        Ok(())
    });
}

#[test]
fn scans_of_columns() {
    on_device(|| {
        // Inclusive scan along the middle axis.
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
            assert!(served::<f64>(|| cummax(&a, 1))? == running(&x, shape, f64::max), "{what}");
            let ints: Vec<i64> = x.iter().map(|x| (x * 9e18) as i64).collect();
            let i = NdArray::from_vec(&ints, shape)?;
            assert!(served::<i64>(|| i.cumsum(1))? == running(&ints, shape, i64::wrapping_add), "{what}");
            assert!(served::<i64>(|| i.cumprod(1))? == running(&ints, shape, i64::wrapping_mul), "{what}");
            let bytes: Vec<u8> = ints.iter().map(|x| *x as u8).collect();
            let b = NdArray::from_vec(&bytes, shape)?;
            assert!(served::<u8>(|| cummin(&b, 1))? == running(&bytes, shape, u8::min), "{what}");
            let f = a.astype(DType::F32)?;
            let got: Vec<f64> = served::<f32>(|| f.cumsum(1))?.into_iter().map(f64::from).collect();
            close(&got, &sums, 1e-4 * (shape[1] as f64).sqrt(), &what);
            let z = NdArray::from_vec(x.iter().map(|x| Complex::new(*x, -x)).collect::<Vec<_>>(), shape)?;
            let got = served::<Complex<f64>>(|| z.cumsum(1))?;
            assert!(got.iter().zip(&sums).all(|(z, w)| (z.re - w).abs() <= 1e-12 * shape[1] as f64 && z.im == -z.re), "complex128 {what}");
            // Reversed along both axes, with a fused addition of a broadcast row and a scalar.
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
        // Fortran order: the scanned axis is contiguous in the input, but not in the result.
        let x = numbers(100 * 700);
        let a = NdArray::from_vec(&x, [100, 700])?;
        let turned: Vec<f64> = (0..x.len()).map(|i| x[i % 100 * 700 + i / 100]).collect();
        let want = running(&turned, [1, 700, 100], |a, b| a + b);
        close(&served::<f64>(|| a.t()?.cumsum(0))?, &want, 1e-10, "transposed");
        let mut x: Vec<f16> = numbers(900 * 40).into_iter().map(f16::from_f64).collect();
        x[500 * 40 + 3] = f16::NAN;
        let got = served_array(|| cummax(&NdArray::from_vec(&x, [900, 40])?, 0))?.to_vec::<f16>()?;
        assert!((0..got.len()).all(|i| got[i].is_nan() == (i % 40 == 3 && i / 40 >= 500)), "NaN from the first NaN on");
        Ok(())
    });
}
