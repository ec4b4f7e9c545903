//! Gather compared with simple loops.

use cuprum_core::{DType, Error, NdArray, arange, take_along_axis, zeros};

use crate::support::{layouts, matrix, on_threads};

/// Returns `count` indices into an axis of length `extent`, with repeats, descending runs and negative values.
fn indices(count: usize, extent: usize) -> Vec<i64> {
    (0..count).map(|i| ((count - i) * 37 % (2 * extent)) as i64 - extent as i64).collect()
}

#[test]
fn rows_and_columns_of_every_layout() {
    for (rows, columns, count) in [(1, 1, 1), (3, 5, 7), (500, 3, 9_000), (70, 900, 100), (2, 40_001, 5)] {
        let value = |r: usize, c: usize| (r * columns + c) as i32;
        let (of_rows, of_columns) = (indices(count, rows), indices(count, columns));
        let index_of = |i: i64, extent: usize| i.rem_euclid(extent as i64) as usize;
        for (name, a) in layouts(rows, columns, value) {
            let take = |indices: &[i64], axis| on_threads(|| a.take(&NdArray::from_slice(indices)?, axis)).to_vec::<i32>().unwrap();
            assert!(take(&of_rows, 0) == matrix(count, columns, |r, c| value(index_of(of_rows[r], rows), c)), "{name} {rows} x {columns}");
            let want = matrix(rows, count, |r, c| value(r, index_of(of_columns[c], columns)));
            assert!(take(&of_columns, 1) == want, "{name} {rows} x {columns}");
            let narrow: Vec<i32> = of_columns.iter().map(|&i| i as i32).collect();
            let got = on_threads(|| a.take(&NdArray::from_slice(&narrow)?, 1)).to_vec::<i32>().unwrap();
            assert!(got == want, "{name} {rows} x {columns}, int32 indices");
        }
    }
}

#[test]
fn indices_of_any_shape_and_layout() {
    let a = arange(0, 60, 1).unwrap().reshape([3, 4, 5]).unwrap();
    for (name, at) in layouts(6, 7, |r, c| ((r * 7 + c) * 5 % 8) as i64 - 4) {
        let got = on_threads(|| a.take(&at, 1));
        assert_eq!(got.shape(), [3, 6, 7, 5], "{name}");
        let at = |r: usize, c: usize| (((r * 7 + c) * 5 % 8) as i64 - 4).rem_euclid(4) as usize;
        let want: Vec<i64> = (0..3 * 6 * 7 * 5).map(|n| ((n / 210 * 4 + at(n / 35 % 6, n / 5 % 7)) * 5 + n % 5) as i64).collect();
        assert_eq!(got.to_vec::<i64>().unwrap(), want, "{name}");
    }
    let one = NdArray::scalar(-1).unwrap();
    assert_eq!(a.take(&one, 2).unwrap().to_vec::<i64>().unwrap(), (0..12).map(|i| 5 * i + 4).collect::<Vec<_>>());
    assert_eq!(a.take(&zeros([0], DType::I64).unwrap(), 0).unwrap().shape(), [0, 4, 5]);
}

#[test]
fn every_dtype_keeps_its_bits() {
    for dtype in DType::ALL {
        let a = arange(0, 100, 1).unwrap().astype(dtype).unwrap();
        let bytes = a.to_bytes().unwrap();
        let at: Vec<u8> = (0..1000).map(|i| (i * 7 % 100) as u8).collect();
        let got = on_threads(|| a.take(&NdArray::from_slice(&at)?, 0)).to_bytes().unwrap();
        let want: Vec<u8> = at.iter().flat_map(|&i| &bytes[i as usize * dtype.itemsize()..][..dtype.itemsize()]).copied().collect();
        assert!(got == want, "{dtype}");
    }
}

#[test]
fn invalid_index_is_an_error() {
    let a = NdArray::from_slice(&[10, 20, 30]).unwrap();
    let got = a.take(&NdArray::from_slice(&[0, 3, i32::MIN]).unwrap(), 0).and_then(|t| t.to_vec::<i32>());
    assert!(matches!(got, Err(Error::Index { op: "take", index: 3, axis: 0, size: 3 })), "{got:?}");
    for bad in [3i64, -4, i64::MAX, i64::MIN] {
        let got = a.take(&NdArray::from_slice(&[0, bad, 1]).unwrap(), 0).and_then(|t| t.to_vec::<i32>());
        assert!(matches!(got, Err(Error::Index { op: "take", index, axis: 0, size: 3 }) if index == bad), "{bad}: {got:?}");
    }
}

#[test]
fn index_per_element_of_every_layout() {
    for (rows, columns, count) in [(1, 1, 1), (3, 5, 7), (5_000, 3, 2), (700, 90, 120), (2, 40_001, 5), (300_000, 1, 1)] {
        let value = |r: usize, c: usize| (r * columns + c) as i32;
        let index = |r: usize, c: usize, extent: usize| ((r * 31 + c * 17) % (2 * extent)) as i64 - extent as i64;
        let at = |r: usize, c: usize, extent: usize| index(r, c, extent).rem_euclid(extent as i64) as usize;
        for (name, a) in layouts(rows, columns, value) {
            for (index_layout, along_rows) in layouts(rows, count, |r, c| index(r, c, columns)) {
                let got = on_threads(|| take_along_axis(&a, &along_rows, 1)).to_vec::<i32>().unwrap();
                assert!(got == matrix(rows, count, |r, c| value(r, at(r, c, columns))), "{name}, {index_layout} {rows} x {columns}");
            }
            for (index_layout, along_columns) in layouts(count, columns, |r, c| index(r, c, rows) as i32) {
                let got = on_threads(|| take_along_axis(&a, &along_columns, 0)).to_vec::<i32>().unwrap();
                assert!(got == matrix(count, columns, |r, c| value(at(r, c, rows), c)), "{name}, {index_layout} {rows} x {columns}");
            }
        }
    }
}

#[test]
fn index_per_element_broadcasts_and_reports_the_first_invalid_index() {
    let a = arange(0, 24, 1).unwrap().reshape([2, 3, 4]).unwrap();
    let row = NdArray::from_vec(vec![2i64, -1, 0], [1, 1, 3]).unwrap();
    let got = on_threads(|| take_along_axis(&a, &row, 2));
    assert_eq!(got.shape(), [2, 3, 3]);
    assert_eq!(got.to_vec::<i64>().unwrap(), (0..6).flat_map(|r| [4 * r + 2, 4 * r + 3, 4 * r]).collect::<Vec<_>>());
    let one = a.index(cuprum_core::s![.., 1..2, ..]).unwrap();
    let column = NdArray::from_vec(vec![0i64, 1, 1, 0, 0, 0], [2, 3, 1]).unwrap();
    let got = on_threads(|| take_along_axis(&one, &column, 0)).to_vec::<i64>().unwrap();
    let first = [[0, 1, 1], [0, 0, 0]].as_flattened().iter().flat_map(|&i| (0..4).map(move |c| 12 * i + 4 + c));
    assert_eq!(got, first.collect::<Vec<_>>());

    let mut indices: Vec<i64> = (0..200_000).map(|i| i % 4).collect();
    let wide = zeros([50_000, 4], DType::F32).unwrap();
    for bad in [4i64, -5, i64::MIN, i64::MAX] {
        (indices[150_001], indices[190_000]) = (bad, 9);
        let indices = NdArray::from_vec(indices.clone(), [50_000, 4]).unwrap();
        let got = take_along_axis(&wide, &indices, 1).and_then(|t| t.to_vec::<f32>());
        assert!(matches!(got, Err(Error::Index { op: "take_along_axis", index, axis: 1, size: 4 }) if index == bad), "{bad}: {got:?}");
        let got = take_along_axis(&wide, &indices.index(cuprum_core::s![..;-1]).unwrap(), 1).and_then(|t| t.to_vec::<f32>());
        assert!(matches!(got, Err(Error::Index { op: "take_along_axis", index: 9, axis: 1, size: 4 })), "{bad}: {got:?}");
    }
    let nothing = zeros([0, 3], DType::I64).unwrap();
    assert_eq!(take_along_axis(&nothing, &nothing, 0).unwrap().shape(), [0, 3]);
    let of_empty = take_along_axis(&nothing, &zeros([2, 3], DType::I64).unwrap(), 0).and_then(|t| t.to_vec::<i64>());
    assert!(matches!(of_empty, Err(Error::Index { index: 0, axis: 0, size: 0, .. })), "{of_empty:?}");
}
