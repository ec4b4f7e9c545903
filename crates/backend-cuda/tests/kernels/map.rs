//! Map on a real device, compared with plain loops on the host: views at every alignment, every layout class, several results
//! per kernel, and more than 2^32 elements.

use cuprum_backend_cuda as _;
use cuprum_core::{DType, Element, NdArray, arange_as, full, s};

use crate::on_device;

fn values<T>(n: usize, f: impl Fn(usize) -> T) -> Vec<T> {
    (0..n).map(|i| f((i * 7 + 3) % 101)).collect()
}

/// Checks `2 a + b` over views that start at every offset within 16 bytes, with lengths near that of a 16-byte access.
fn unaligned<T: Element>(from: impl Fn(usize) -> T, twice_plus: impl Fn(T, T) -> T) {
    let host = values(300, from);
    let (a, b) = (NdArray::from_slice(&host).unwrap(), NdArray::from_slice(&host).unwrap());
    for start in 0..17 {
        for length in [1, 3, 4, 15, 16, 17, 64, 255] {
            let (x, y) = (a.index(s![start..start + length]).unwrap(), b.index(s![7..7 + length]).unwrap());
            let got = (&x + &x + &y).to_vec::<T>().unwrap();
            let want: Vec<T> = (0..length as usize).map(|i| twice_plus(host[start as usize + i], host[7 + i])).collect();
            assert!(got == want, "{} from {start}, {length} elements", T::DTYPE);
        }
    }
}

#[test]
fn views_at_every_alignment() {
    on_device(|_| {
        unaligned(|v| v as u8, |a, b| a.wrapping_mul(2).wrapping_add(b));
        unaligned(|v| v as i16, |a, b| 2 * a + b);
        unaligned(|v| v as f32 * 0.25, |a, b| 2.0 * a + b);
        unaligned(|v| v as f64 * 0.25, |a, b| 2.0 * a + b);
        unaligned(|v| cuprum_core::Complex::new(v as f64, -1.0), |a, b| a + a + b);
    });
}

#[test]
fn a_cached_map_takes_new_scalars_sizes_and_inputs() {
    on_device(|_| {
        let host = values(4000, |v| v as f32);
        let a = NdArray::from_slice(&host).unwrap();
        for n in [1, 2, 3, 1000, 3999, 4000] {
            let x = a.index(s![..n as isize]).unwrap();
            let one = a.index(s![n as isize - 1..n as isize]).unwrap();
            for factor in [0.5, 3.0] {
                let got = (&x * factor + 1).to_vec::<f32>().unwrap();
                assert!((0..n).all(|i| got[i] == host[i] * factor + 1.0), "{n} elements times {factor}");
                // The same program with a repeated input.
                let got = (&x * factor + &one).to_vec::<f32>().unwrap();
                assert!((0..n).all(|i| got[i] == host[i] * factor + host[n - 1]), "{n} elements and the last one");
                let got = (&x * factor + &x).to_vec::<f32>().unwrap();
                assert!((0..n).all(|i| got[i] == host[i] * factor + host[i]), "{n} elements twice");
            }
        }
    });
}

/// Checks `a + row`, `column + row` and a row that is not aligned, for rows of several lengths. The kernels compute 16 bytes of a row per
/// thread where the length is a multiple of them and the rows are aligned.
fn broadcast_rows<T: Element>(from: impl Fn(usize) -> T, plus: impl Fn(T, T) -> T) {
    let host = values(70 * 260, from);
    let all = NdArray::from_slice(&host).unwrap();
    for columns in [4usize, 15, 16, 64, 250, 256] {
        let rows = 70;
        let a = all.index(s![..(rows * columns) as isize]).unwrap().reshape([rows, columns]).unwrap();
        let column = a.index(s![.., 1..2]).unwrap();
        let check = |name: &str, got: NdArray, want: &dyn Fn(usize, usize) -> T| {
            let got = got.to_vec::<T>().unwrap();
            let is_equal = (0..rows * columns).all(|i| got[i] == want(i / columns, i % columns));
            assert!(is_equal, "{} {name}, {columns} columns", T::DTYPE);
        };
        for start in [0, 1, 16] {
            let row = all.index(s![start as isize..(start + columns) as isize]).unwrap();
            check("a + row", &a + &row, &|r, c| plus(host[r * columns + c], host[start + c]));
            check("column + row", &column + &row, &|r, c| plus(host[r * columns + 1], host[start + c]));
        }
        if 2 * rows * columns <= host.len() {
            let wide = all.index(s![..(2 * rows * columns) as isize]).unwrap().reshape([rows, 2 * columns]).unwrap();
            let half = wide.index(s![.., ..columns as isize]).unwrap();
            check("half rows + column", &half + &column, &|r, c| plus(host[r * 2 * columns + c], host[r * columns + 1]));
        }
    }
}

#[test]
fn rows_and_columns_that_are_broadcast() {
    on_device(|_| {
        broadcast_rows(|v| v as u8, |a, b| a.wrapping_add(b));
        broadcast_rows(|v| v as i16, |a, b| a + b);
        broadcast_rows(|v| v as f32 * 0.25, |a, b| a + b);
        broadcast_rows(|v| v as f64 * 0.25, |a, b| a + b);
        broadcast_rows(|v| cuprum_core::Complex::new(v as f32, -1.0), |a, b| a + b);
    });
}

#[test]
fn layouts_of_every_class() {
    on_device(|_| {
        let (rows, columns) = (37, 53);
        let host = values(rows * columns, |v| v as f32);
        let a = NdArray::from_vec(&host, [rows, columns]).unwrap();
        let row = NdArray::from_slice(&host[..columns]).unwrap();
        let at = |r: usize, c: usize| host[r * columns + c];
        let check = |name: &str, array: &NdArray, f: &dyn Fn(usize, usize) -> f32| {
            let (n, m) = (array.shape()[0], array.shape()[1]);
            let got = array.to_vec::<f32>().unwrap();
            assert!((0..n * m).all(|i| got[i] == f(i / m, i % m)), "{name}");
        };
        check("rows and a row", &(&a + &row), &|r, c| at(r, c) + host[c]);
        check("a column", &(&a + &a.index(s![.., 5..6]).unwrap()), &|r, c| at(r, c) + at(r, 5));
        check("transposed", &(&a.t().unwrap() + 1), &|r, c| at(c, r) + 1.0);
        check("both ways", &(&a.index(s![..37, ..37]).unwrap().t().unwrap() - &a.index(s![..37, ..37]).unwrap()), &|r, c| {
            at(c, r) - at(r, c)
        });
        check("backwards", &(&a.index(s![..;-1, ..;-2]).unwrap() * 2), &|r, c| 2.0 * at(rows - 1 - r, columns - 1 - 2 * c));
        let one = NdArray::from_slice(&[2.5f32]).unwrap();
        check("a repeated element", &(&a * &one), &|r, c| at(r, c) * 2.5);
    });
}

#[test]
fn shared_subexpressions_are_stored_by_the_same_launch() {
    on_device(|_| {
        let a = NdArray::from_slice(&values(1000, |v| v as f64 / 101.0)).unwrap();
        let inner = a.exp().unwrap();
        let outer = (&inner + 1).to_vec::<f64>().unwrap();
        assert!(!inner.is_deferred(), "a live expensive subexpression is a second result");
        assert!(inner.to_vec::<f64>().unwrap().iter().zip(outer).all(|(x, y)| x + 1.0 == y));
    });
}

#[test]
fn more_elements_than_32_bits_count() {
    on_device(|device| {
        let n = (1usize << 31) + 12_345;
        let free = device.info().map_or(0, |i| i.memory_total.saturating_sub(i.memory_used));
        if free < 4 * n {
            return println!("skipped: {free} bytes of device memory, {} needed", 4 * n);
        }
        // Flat, then strided: a row of elements repeated down the rows.
        let ones = full([n], 3, DType::U8).unwrap();
        let sum = (&ones + &ones).eval().unwrap().clone();
        for at in [0, 1 << 30, (1 << 31) - 1, 1 << 31, n - 1] {
            let at = at as isize;
            assert_eq!(sum.index(s![at..at + 1]).unwrap().to_vec::<u8>().unwrap(), [6], "element {at}");
        }
        drop((ones, sum));
        let (rows, columns) = (1usize << 16, (1usize << 15) + 3);
        let row = arange_as(0, columns as i64, 1, DType::I32).unwrap().astype(DType::U8).unwrap();
        let tall = full([rows, 1], 1, DType::U8).unwrap();
        let table = (&row + &tall).eval().unwrap().clone();
        for r in [0, rows as isize / 2, rows as isize - 1] {
            let got = table.index(s![r, ..]).unwrap().to_vec::<u8>().unwrap();
            assert!(got.iter().enumerate().all(|(c, v)| *v == (c as u8).wrapping_add(1)), "row {r}");
        }
    });
}
