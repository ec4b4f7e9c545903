//! Scan compared with simple loops.

use cuprum_core::{DType, NdArray, axis, cummax, cummin, f16, full, ones};

use crate::support::{as_f64, layouts, matrix, on_threads};

/// Array shapes at every boundary: one element, short rows, blocks of a long row, blocks of columns.
const SIZES: [(usize, usize); 8] = [(1, 1), (3, 5), (1, 32_769), (2, 70_001), (70, 1100), (1100, 70), (40_000, 2), (100, 1025)];

/// Returns the scan of every row of a matrix with `columns` columns, by the function `f`.
fn along_rows<T: Copy>(values: &[T], columns: usize, f: impl Fn(T, T) -> T) -> Vec<T> {
    let mut totals = values.to_vec();
    for row in totals.chunks_mut(columns) {
        (1..columns).for_each(|c| row[c] = f(row[c - 1], row[c]));
    }
    totals
}

/// Returns the scan of every column of a matrix with `columns` columns, by the function `f`.
fn along_columns<T: Copy>(values: &[T], columns: usize, f: impl Fn(T, T) -> T) -> Vec<T> {
    let mut totals = values.to_vec();
    (columns..values.len()).for_each(|i| totals[i] = f(totals[i - columns], totals[i]));
    totals
}

#[test]
fn integers_along_either_axis() {
    for (rows, columns) in SIZES {
        let value = |r: usize, c: usize| ((r * 31 + c * 7) % 1000) as i32 - 300;
        let wide: Vec<i64> = matrix(rows, columns, |r, c| value(r, c) as i64);
        for (name, a) in layouts(rows, columns, value) {
            let got = |axis| on_threads(|| a.cumsum(axis)).to_vec::<i64>().unwrap();
            assert!(got(1) == along_rows(&wide, columns, i64::wrapping_add), "{name} {rows} x {columns} along rows");
            assert!(got(0) == along_columns(&wide, columns, i64::wrapping_add), "{name} {rows} x {columns} along columns");
            let product = on_threads(|| a.cumprod(1)).to_vec::<i64>().unwrap();
            assert!(product == along_rows(&wide, columns, i64::wrapping_mul), "{name} {rows} x {columns}, products");
            let flat = on_threads(|| a.cumsum(None)).to_vec::<i64>().unwrap();
            assert!(flat == along_rows(&wide, rows * columns, i64::wrapping_add), "{name} {rows} x {columns} as one row");
        }
    }
}

#[test]
fn float_sums_of_long_rows_are_accurate() {
    // A sequential float32 total of ones would stop at 2^24.
    let n = (1 << 24) + 100;
    let ones = ones([n], DType::F32).unwrap();
    let totals = on_threads(|| ones.cumsum(0)).to_vec::<f32>().unwrap();
    assert_eq!((totals[0], totals[n - 100], totals[n - 1]), (1.0, (n - 99) as f32, n as f32));
    for (rows, columns) in SIZES {
        let value = |r: usize, c: usize| 1.0f32 / (1 + (r * columns + c) % 97) as f32;
        let wide: Vec<f64> = matrix(rows, columns, |r, c| value(r, c) as f64);
        for (name, a) in layouts(rows, columns, value) {
            for (axis, want) in [(1, along_rows(&wide, columns, |x, y| x + y)), (0, along_columns(&wide, columns, |x, y| x + y))] {
                let got = as_f64(&on_threads(|| a.cumsum(axis)));
                let near = got.iter().zip(&want).all(|(g, w)| (g - w).abs() <= 1e-7 * w);
                assert!(near, "{name} {rows} x {columns} along {axis}");
            }
        }
    }
    // 16-bit floats are rounded once per result, not at every step.
    let halves = NdArray::from_vec(vec![f16::from_f32(0.1); 6000], [2, 3000]).unwrap();
    let tenth = f16::from_f32(0.1).to_f32();
    for (axis, view) in [(1, halves.clone()), (0, halves.t().unwrap().copy().unwrap())] {
        let totals = as_f64(&on_threads(|| view.cumsum(axis)));
        let last = f16::from_f32(3000.0 * tenth).to_f64();
        assert!((totals[totals.len() - 1] - last).abs() <= last * 1e-3, "{} {last}", totals[totals.len() - 1]);
    }
}

#[test]
fn every_dtype() {
    for dtype in DType::ALL {
        let a = ones([3, 4], dtype).unwrap();
        let bool_or = |n: f64| if dtype == DType::Bool && a.cumsum(0).unwrap().dtype() == DType::Bool { 1.0 } else { n };
        let want: Vec<f64> = matrix(3, 4, |r, _| bool_or(r as f64 + 1.0));
        assert_eq!(as_f64(&on_threads(|| a.cumsum(0)?.real())), want, "{dtype}");
        assert_eq!(as_f64(&on_threads(|| a.cumprod(1)?.real())), [1.0; 12], "{dtype}");
    }
    let flags = NdArray::from_slice(&[true, false, true]).unwrap();
    assert_eq!(flags.cumsum(0).unwrap().to_vec::<i64>().unwrap(), [1, 1, 2]);
    assert_eq!(flags.cumsum(axis(0).dtype(DType::Bool)).unwrap().to_vec::<bool>().unwrap(), [true; 3]);
    let bytes = full([300], 1, DType::U8).unwrap();
    assert_eq!(bytes.cumsum(axis(0).dtype(DType::U8)).unwrap().to_vec::<u8>().unwrap()[299], (300 % 256) as u8);
}

#[test]
fn three_axes_and_fused_operands() {
    let shape = [6usize, 50, 70];
    let a = NdArray::from_vec((0..6 * 50 * 70).map(|i| (i % 1009) as i64).collect::<Vec<_>>(), shape).unwrap();
    let strides = [3500, 70, 1];
    for axis in 0..3usize {
        let mut want: Vec<i64> = (0..6 * 50 * 70).map(|i| 2 * (i % 1009) + 1).collect();
        (0..want.len()).filter(|i| i / strides[axis] % shape[axis] > 0).for_each(|i| want[i] += want[i - strides[axis]]);
        assert!(on_threads(|| (&a * 2 + 1).cumsum(axis as isize)).to_vec::<i64>().unwrap() == want, "axis {axis}");
        // A view whose axes are in another order.
        let back = a.transpose([2, 0, 1]).unwrap();
        let along = [1, 2, 0][axis];
        let got = on_threads(|| (&back * 2 + 1).cumsum(along)?.transpose([1, 2, 0])?.copy());
        assert!(got.to_vec::<i64>().unwrap() == want, "axis {axis} of a permuted view");
    }
}

#[test]
fn sums_of_positive_numbers_never_decrease() {
    for n in [1000, 200_001] {
        let values: Vec<f64> = (0..n).map(|i| if i % 37 == 0 { 1e3 / 7.0 } else { 1e-14 * (i % 11) as f64 }).collect();
        let a = NdArray::from_slice(&values).unwrap();
        let totals = on_threads(|| a.cumsum(0)).to_vec::<f64>().unwrap();
        assert!(totals.windows(2).all(|w| w[0] <= w[1]));
    }
    let zeros = NdArray::from_slice(&[-0.0f64; 3]).unwrap();
    assert!(zeros.cumsum(0).unwrap().to_vec::<f64>().unwrap().iter().all(|z| z.is_sign_negative()));
}

#[test]
fn running_extremes() {
    for (rows, columns) in SIZES {
        let value = |r: usize, c: usize| ((r * 7919 + c * 104_729) % 1_000_003) as f32 - 5e5;
        let flat: Vec<f32> = matrix(rows, columns, value);
        for (name, a) in layouts(rows, columns, value) {
            let got = |a: NdArray| a.to_vec::<f32>().unwrap();
            assert!(got(on_threads(|| cummax(&a, 1))) == along_rows(&flat, columns, f32::max), "{name} {rows} x {columns}");
            assert!(got(on_threads(|| cummin(&a, 0))) == along_columns(&flat, columns, f32::min), "{name} {rows} x {columns}");
        }
    }
    for dtype in DType::ALL {
        let a = NdArray::from_slice(&[1, 0, 1, 3, 2]).unwrap().astype(dtype).unwrap();
        let real = |a: NdArray| as_f64(&a.real().unwrap());
        let one = if dtype == DType::Bool { 1.0 } else { 3.0 };
        assert_eq!(real(cummax(&a, 0).unwrap()), [1.0, 1.0, 1.0, one, one], "{dtype}");
        assert_eq!(real(cummin(&a, 0).unwrap()), [1.0, 0.0, 0.0, 0.0, 0.0], "{dtype}");
        assert_eq!(cummax(&a, 0).unwrap().dtype(), dtype);
    }
    // All results from the first NaN on must be NaN, also across the blocks of a long row.
    let n = 100_000;
    let values: Vec<f64> = (0..n).map(|i| if i == 40_000 { f64::NAN } else { i as f64 }).collect();
    let got = on_threads(|| cummax(&NdArray::from_slice(&values)?, 0)).to_vec::<f64>().unwrap();
    assert!(got.iter().enumerate().all(|(i, v)| if i < 40_000 { *v == i as f64 } else { v.is_nan() }));
    let z = |re: f64, im: f64| cuprum_core::Complex::new(re, im);
    let a = NdArray::from_slice(&[z(1.0, 2.0), z(1.0, 1.0), z(0.0, 9.0), z(0.0, f64::NAN), z(-5.0, 0.0)]).unwrap();
    let least = cummin(&a, 0).unwrap().to_vec::<cuprum_core::Complex<f64>>().unwrap();
    assert_eq!(least[..3], [z(1.0, 2.0), z(1.0, 1.0), z(0.0, 9.0)]);
    assert!(least[3].im.is_nan() && least[4].im.is_nan());
}

#[test]
fn overflow_persists() {
    // Row lengths of several blocks, of several runs and of one run, each with the index at which a total overflows before values that
    // would undo it.
    for (columns, place) in [(5, 1), (70, 66), (1100, 600), (70_001, 40_000), (70_001, 32_768), (70_001, 3)] {
        let sums: Vec<f32> = (0..columns)
            .map(|i| {
                if i < place - 1 {
                    0.0
                } else if i <= place {
                    3e38
                } else {
                    -3e38
                }
            })
            .collect();
        let products: Vec<f32> = (0..columns)
            .map(|i| {
                if i < place - 1 {
                    1.0
                } else if i <= place {
                    1e30
                } else {
                    1e-3
                }
            })
            .collect();
        let vanishing: Vec<f32> = (0..columns)
            .map(|i| {
                if i < place - 1 {
                    1.0
                } else if i <= place {
                    1e-30
                } else {
                    2.0
                }
            })
            .collect();
        let wide: Vec<f64> = sums.iter().map(|&v| if v == 0.0 { 0.0 } else { 1.7e308f64.copysign(v as f64) }).collect();
        let half: Vec<f16> = sums.iter().map(|&v| if v == 0.0 { f16::ZERO } else { f16::from_f32(60_000f32.copysign(v)) }).collect();
        let inputs = [&sums, &products, &vanishing].map(|values| NdArray::from_slice(values).unwrap());
        for (n, a) in inputs.iter().enumerate() {
            for rows in [false, true] {
                // Scans the values as one long row, as rows, and as columns.
                let of = |a: &NdArray, axis: isize| if n == 0 { a.cumsum(axis) } else { a.cumprod(axis) };
                let values: Vec<f32> = match rows {
                    false => on_threads(|| of(a, 0)).to_vec().unwrap(),
                    true => on_threads(|| of(&stacked(a).t()?, 0)?.t()?.index(cuprum_core::s![1])).to_vec().unwrap(),
                };
                let end = if n == 2 { 0.0 } else { f32::INFINITY };
                assert!(values[place - 1] != end && values[place..].iter().all(|&v| v == end), "{n}: {columns}, {place}, columns: {rows}");
            }
        }
        let wide = on_threads(|| NdArray::from_slice(&wide)?.cumsum(0)).to_vec::<f64>().unwrap();
        assert!(wide[place..].iter().all(|&v| v == f64::INFINITY), "float64: {columns}, {place}");
        let half = on_threads(|| NdArray::from_slice(&half)?.cumsum(0)).to_vec::<f16>().unwrap();
        assert!(half[place..].iter().all(|&v| v == f16::INFINITY), "float16: {columns}, {place}");
    }
}

/// Returns two copies of a row, stacked.
fn stacked(a: &NdArray) -> NdArray {
    cuprum_core::stack(&[a.clone(), a.clone()], 0).unwrap()
}

#[test]
fn overflow_of_partial_results_is_hidden() {
    // The second run of 64 elements overflows when summed separately, but not when added to the first.
    let a: Vec<f64> = (0..200)
        .map(|i| {
            if i == 3 {
                -1.5e308
            } else if [70, 75].contains(&i) {
                1.5e308
            } else {
                0.0
            }
        })
        .collect();
    let sums = on_threads(|| NdArray::from_slice(&a)?.cumsum(0)).to_vec::<f64>().unwrap();
    assert_eq!((sums[69], sums[72], sums[75], sums[199]), (-1.5e308, 0.0, 1.5e308, 1.5e308));
    let a: Vec<f64> = (0..200)
        .map(|i| {
            if i == 3 {
                1e200
            } else if [70, 75].contains(&i) {
                1e-200
            } else {
                1.0
            }
        })
        .collect();
    let products = on_threads(|| NdArray::from_slice(&a)?.cumprod(0)).to_vec::<f64>().unwrap();
    assert_eq!(products[69], 1e200);
    assert!((products[199] * 1e200 - 1.0).abs() < 1e-15, "{}", products[199]);
    // The product of the second run is subnormal or zero, but not the running product.
    let small = 10f64.powf(-322.5 / 64.0);
    let subnormal = [vec![1e300], vec![1.0; 63], vec![small; 64], vec![1e5; 10]].concat();
    let zero = [vec![1e4; 64], vec![1e-6; 64], vec![1.0; 10]].concat();
    for (before, runs) in [0, 960, 70_016].into_iter().flat_map(|before| [(before, &subnormal), (before, &zero)]) {
        let a: Vec<f64> = [&vec![1.0; before], &runs[..]].concat();
        let want = a.iter().copied().reduce(|product, v| product * v).unwrap();
        let products = on_threads(|| NdArray::from_slice(&a)?.cumprod(0)).to_vec::<f64>().unwrap();
        assert!((products[a.len() - 1] / want - 1.0).abs() < 1e-13, "{before}: {} {want}", products[a.len() - 1]);
    }
}
