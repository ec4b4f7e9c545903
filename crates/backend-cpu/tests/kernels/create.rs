//! Fill and Copy.

use cuprum_core::{DType, NdArray, arange, arange_as, broadcast_to, concat, empty, eye, flip, full, linspace, stack, with_dtype, zeros};

use crate::support::{layouts, matrix, on_threads};

#[test]
fn constants() {
    for dtype in DType::ALL {
        for value in [0, 1] {
            let a = on_threads(|| full([100, 1000], value, dtype));
            assert!(a.equal(value).unwrap().all(()).unwrap().to_vec::<bool>().unwrap()[0], "{dtype}");
        }
        assert_eq!(empty([5], dtype).unwrap().to_bytes().unwrap().len(), 5 * dtype.itemsize());
    }
    assert_eq!(full((), 2.5, DType::F32).unwrap().to_vec::<f32>().unwrap(), [2.5]);
    assert_eq!(zeros([0, 3], DType::F32).unwrap().to_vec::<f32>().unwrap(), [0f32; 0]);
}

#[test]
fn ranges() {
    let n = 100_000i64;
    assert_eq!(on_threads(|| arange(5, 5 + 3 * n, 3)).to_vec::<i64>().unwrap(), (0..n).map(|i| 5 + 3 * i).collect::<Vec<_>>());
    assert_eq!(arange_as(0, 300, 1, DType::I16).unwrap().to_vec::<i16>().unwrap()[299], 299);
    assert_eq!(arange(1.0, 2.0, 0.25).unwrap().to_vec::<f64>().unwrap(), [1.0, 1.25, 1.5, 1.75]);
    let l = linspace(0.0, 1.0, 11).unwrap().to_vec::<f64>().unwrap();
    assert_eq!((l[3], l[10]), (3.0 * 0.1, 1.0));
    let down = arange(5, 0, -2).unwrap();
    assert_eq!(down.to_vec::<i64>().unwrap(), [5, 3, 1]);
}

#[test]
fn identity_matrices() {
    for (rows, columns, k) in [(3, 3, 0), (200, 300, 7), (200, 300, -11), (300, 200, 250), (2, 2, 5), (1, 40_000, 39_999)] {
        let got = on_threads(|| eye(rows, columns, k, DType::F32)).to_vec::<f32>().unwrap();
        assert_eq!(got, matrix(rows, columns, |r, c| (c as i64 == r as i64 + k) as u8 as f32), "{rows} {columns} {k}");
    }
}

#[test]
fn copies_of_every_layout() {
    for dtype in [DType::Bool, DType::I16, DType::F32, DType::F64, DType::C128] {
        with_dtype!(dtype, T => {
            for (rows, columns) in [(1, 1), (33, 70), (1000, 200), (3, 50_000), (50_000, 3)] {
                let a = NdArray::from_vec(matrix(rows, columns, |r, c| ((r * columns + c) % 251) as u8), [rows, columns]).unwrap();
                let a = a.astype(dtype).unwrap();
                let want = a.to_vec::<T>().unwrap();
                let t = on_threads(|| a.t()?.copy());
                for (name, view) in [("transposed back", t.t().unwrap()), ("flipped back", flip(&flip(&a, None).unwrap().copy().unwrap(), None).unwrap())] {
                    assert_eq!(on_threads(|| view.copy()).to_vec::<T>().unwrap(), want, "{name} {dtype}");
                }
            }
        });
    }
    let a = NdArray::from_vec((0..3 * 4 * 5 * 6).collect::<Vec<i32>>(), [3, 4, 5, 6]).unwrap();
    for order in [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1], [0, 2, 1, 3]] {
        let p = a.transpose(order).unwrap();
        assert_eq!(on_threads(|| p.copy()).to_vec::<i32>().unwrap(), p.to_vec::<i32>().unwrap());
    }
    let wide = broadcast_to(&NdArray::from_slice(&[1.5f32]).unwrap(), [300, 400]).unwrap();
    assert_eq!(wide.copy().unwrap().to_vec::<f32>().unwrap(), vec![1.5; 120_000]);
}

#[test]
fn concatenation() {
    let (rows, columns) = (70, 90);
    for (name, a) in layouts(rows, columns, |r, c| (r * columns + c) as i64) {
        for (name_b, b) in layouts(rows, columns, |r, c| -((r * columns + c) as i64)) {
            let below = on_threads(|| concat(&[a.clone(), b.clone()], 0)).to_vec::<i64>().unwrap();
            let beside = on_threads(|| concat(&[a.clone(), b.clone()], 1)).to_vec::<i64>().unwrap();
            let value = |r: usize, c: usize| (r * columns + c) as i64;
            let want = matrix(2 * rows, columns, |r, c| if r < rows { value(r, c) } else { -value(r - rows, c) });
            assert!(below == want, "{name} {name_b}");
            let want = matrix(rows, 2 * columns, |r, c| if c < columns { value(r, c) } else { -value(r, c - columns) });
            assert!(beside == want, "{name} {name_b}");
            let stacked = on_threads(|| stack(&[a.clone(), b.clone()], 2)).to_vec::<i64>().unwrap();
            assert!(stacked == matrix(rows * columns, 2, |i, s| if s == 0 { i as i64 } else { -(i as i64) }));
        }
    }
}
