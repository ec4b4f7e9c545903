//! Sorts, partitions, and the first elements of sorted rows by CUB, compared with the standard library's sort.

use cuprum_core::{Complex, Element, NdArray, Result, axis, bf16, explain, f16, full, topk, unique_all, unique_counts};

use crate::{numbers, on_device, served, served_array};

/// NumPy's sort order: NaN comes last.
trait Ordered: Element + Copy + PartialEq + std::fmt::Debug {
    fn order(&self, other: &Self) -> std::cmp::Ordering;
}

fn by_number(a: f64, b: f64) -> std::cmp::Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn by_parts(a: Complex<f64>, b: Complex<f64>) -> std::cmp::Ordering {
    let class = |z: Complex<f64>| 2 * u8::from(z.re.is_nan()) + u8::from(z.im.is_nan());
    class(a).cmp(&class(b)).then(by_number(a.re, b.re).then(by_number(a.im, b.im)))
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
    Complex<f32>: |a, b| by_parts(Complex::new(a.re.into(), a.im.into()), Complex::new(b.re.into(), b.im.into()));
    Complex<f64>: |a, b| by_parts(*a, *b);
}

/// Checks `sort`, `argsort` and `topk` of rows of `columns` elements, ascending and descending.
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
        let indices: Vec<i64> = rows()
            .flat_map(|row| {
                let mut indices: Vec<i64> = (0..columns as i64).collect();
                indices.sort_by(|i, j| order(&row[*i as usize], &row[*j as usize]));
                indices
            })
            .collect();
        let got = served_array(|| a.argsort(over()))?.to_vec::<i64>()?;
        let wrong = got.iter().zip(&indices).position(|(a, b)| a != b);
        assert!(wrong.is_none(), "indices of {what}: at {wrong:?}");
        let values = served_array(|| a.sort(over()))?;
        let elements = values.to_vec::<T>()?;
        let wrong = (0..x.len()).find(|i| order(&elements[*i], &x[i / columns * columns + indices[*i] as usize]).is_ne());
        assert!(wrong.is_none(), "values of {what}: at {wrong:?}");
        assert!(sorted_bits(&values.to_bytes()?) == sorted_bits(&a.to_bytes()?), "elements of {what}");
        for k in [columns.min(5), columns] {
            let (best, at) = topk(&a, k, -1, descending)?;
            let head: Vec<i64> = indices.chunks(columns).flat_map(|row| &row[..k]).copied().collect();
            let at = at.to_vec::<i64>()?;
            let wrong = at.iter().zip(&head).position(|(a, b)| a != b);
            assert!(wrong.is_none() && at.len() == head.len(), "indices of the top {k} of {what}: at {wrong:?}");
            let best = best.to_vec::<T>()?;
            assert!((0..head.len()).all(|i| order(&best[i], &x[i / k * columns + head[i] as usize]).is_eq()), "top {k} of {what}");
        }
    }
    Ok(())
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
            // Random numbers, repeated values, NaNs, infinities and zeros of both signs.
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
fn passes_over_equal_digits_are_skipped() {
    on_device(|| {
        let columns = 9_001;
        let x = numbers(columns);
        // Masks of the bytes that differ within a row: none, the first, the last, two, three, all but the first, all.
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
        let all = unique_all(&a)?;
        let values = all.values.to_vec::<i64>()?;
        assert!(values.windows(2).all(|w| w[0] < w[1]) && values.len() == 159, "{}", values.len());
        assert_eq!(all.counts.to_vec::<i64>()?.iter().sum::<i64>(), 100_000);
        assert_eq!(all.values.take(&all.inverse, 0)?.to_vec::<i64>()?, a.to_vec::<i64>()?);
        Ok(())
    });
}

/// Checks the smallest and the largest `k` elements of each row.
fn check_first<T: Ordered>(x: &[T], columns: usize, k: usize) -> Result<()> {
    let a = NdArray::from_vec(x, [x.len() / columns, columns])?;
    for largest in [false, true] {
        let what = format!("the first {k} of {} {} x {columns}, largest: {largest}", a.dtype(), x.len() / columns);
        let order = |a: &T, b: &T| if largest { b.order(a) } else { a.order(b) };
        let of_row = |row: &[T]| {
            let mut indices: Vec<i64> = (0..columns as i64).collect();
            indices.sort_by(|i, j| order(&row[*i as usize], &row[*j as usize]));
            indices.truncate(k);
            indices
        };
        let want: Vec<i64> = x.chunks(columns).flat_map(of_row).collect();
        let (arrays, records) = explain(|| topk(&a, k, -1, largest));
        let (values, indices) = arrays?;
        assert_eq!(records.last().and_then(|r| r.served_by), Some("cub"), "{what}");
        assert!(indices.to_vec::<i64>()? == want, "indices of {what}");
        let values = values.to_vec::<T>()?;
        assert!((0..want.len()).all(|i| order(&values[i], &x[i / k * columns + want[i] as usize]).is_eq()), "{what}");
    }
    Ok(())
}

#[test]
fn few_elements_of_long_rows() {
    on_device(|| {
        for (rows, columns) in [(1, 9_000), (3, 20_000)] {
            let x = numbers(rows * columns);
            // Distinct numbers, few distinct numbers, one number, and NaNs and zeros of both signs.
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

/// Checks stable partitions of rows around sorted element `nth`.
fn check_partition<T: Ordered>(x: &[T], columns: usize, nth: usize) -> Result<()> {
    let a = NdArray::from_vec(x, [x.len() / columns, columns])?;
    // The partition is likely to reuse this buffer, which exposes elements that the kernel does not write.
    drop(full(a.shape(), 1, a.dtype())?.eval()?.clone());
    for descending in [false, true] {
        let what = format!("{} {} x {columns} around {nth}, descending: {descending}", a.dtype(), x.len() / columns);
        let over = || if descending { axis(-1).descending() } else { axis(-1) };
        let order = |a: &T, b: &T| if descending { b.order(a) } else { a.order(b) };
        let of_row = |row: &[T]| {
            let mut sorted = row.to_vec();
            sorted.sort_by(order);
            let mut indices: Vec<i64> = (0..columns as i64).collect();
            indices.sort_by_key(|i| order(&row[*i as usize], &sorted[nth]));
            indices
        };
        let want: Vec<i64> = x.chunks(columns).flat_map(of_row).collect();
        assert!(served::<i64>(|| a.argpartition(nth as isize, over()))? == want, "indices of {what}");
        let got = served_array(|| a.partition(nth as isize, over()))?.to_bytes()?;
        let taken: Vec<T> = want.iter().enumerate().map(|(i, p)| x[i / columns * columns + *p as usize]).collect();
        assert!(got == NdArray::from_vec(taken, a.shape())?.to_bytes()?, "{what}");
    }
    Ok(())
}

#[test]
fn partitions_of_long_rows() {
    on_device(|| {
        // Sizes around tiles of 4096 elements, up to several chunks.
        for (rows, columns) in [(1, 4097), (1, 8192), (3, 8193), (2, 100_003), (1, 3_000_001)] {
            let x = numbers(rows * columns);
            let nan_or_zero = |x: &f64| if x.abs() > 0.5 { f64::NAN.copysign(*x) } else { 0.0f64.copysign(*x) };
            let kinds: [Vec<f64>; 4] =
                [x.clone(), x.iter().map(|x| (x * 3.0).round()).collect(), vec![7.0; x.len()], x.iter().map(nan_or_zero).collect()];
            for (n, x) in kinds.iter().enumerate() {
                let nth = [0, columns / 2, columns - 1, columns / 3][(n + rows) % 4];
                check_partition(x, columns, nth)?;
                check_partition(&x.iter().map(|x| *x as f32).collect::<Vec<_>>(), columns, nth)?;
            }
            check_partition(&x.iter().map(|x| *x > 0.9).collect::<Vec<_>>(), columns, columns - 7)?;
            check_partition(&x.iter().map(|x| (x * 1e18) as i64).collect::<Vec<_>>(), columns, columns / 2)?;
            check_partition(&x.iter().map(|x| (x * 30_000.0) as i16).collect::<Vec<_>>(), columns, 1)?;
            check_partition(&x.iter().map(|x| bf16::from_f64(*x)).collect::<Vec<_>>(), columns, columns / 2)?;
            let part = |x: f64| if x > 0.6 { f32::NAN } else { (x * 2.0).round() as f32 };
            let pairs: Vec<_> = x.iter().zip(x.iter().rev()).map(|(a, b)| Complex::new(part(*a), part(*b))).collect();
            check_partition(&pairs, columns, columns / 2)?;
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
            // All bit patterns of the 16-bit floats.
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
fn sorts_of_two_words() {
    on_device(|| {
        for (rows, columns) in [(1, 1), (7, 33), (2, 1000), (1, 4096), (1, 4097), (20, 3000), (3, 12_001), (1, 100_003)] {
            let x = numbers(2 * rows * columns);
            let special = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0];
            // Common parts, distinct parts, and NaN or infinite parts.
            let part = |x: f64| match (x.abs() * 1000.0) as usize % 10 {
                0 | 1 => special[(x.abs() * 1e6) as usize % 6],
                2..5 => (x * 3.0).round(),
                _ => x,
            };
            let of = |re: &dyn Fn(f64) -> f64, im: &dyn Fn(f64) -> f64| -> Vec<Complex<f64>> {
                x.chunks(2).map(|pair| Complex::new(re(pair[0]), im(pair[1]))).collect()
            };
            check_sorts(&of(&part, &part), columns)?;
            check_sorts(&of(&|_| f64::NEG_INFINITY, &part), columns)?;
            check_sorts(&of(&|x| x.round(), &|_| 0.0), columns)?;
            // In every other row all real parts are equal, so that rows end in different passes.
            let row_parity = |i: usize| i / columns % 2;
            let mixed = of(&|x| x, &|x| x).into_iter().enumerate().map(|(i, z)| Complex::new(z.re * row_parity(i) as f64, z.im));
            check_sorts(&mixed.collect::<Vec<_>>(), columns)?;
        }
        let x = numbers(200_000);
        let z = NdArray::from_slice(&x.chunks(2).map(|p| Complex::new((p[0] * 9.0).round(), (p[1] * 9.0).round())).collect::<Vec<_>>())?;
        let (values, counts) = unique_counts(&z)?;
        assert_eq!((values.size(), counts.to_vec::<i64>()?.iter().sum::<i64>()), (19 * 19, 100_000));
        Ok(())
    });
}

#[test]
fn sorts_of_20_million_elements() {
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
