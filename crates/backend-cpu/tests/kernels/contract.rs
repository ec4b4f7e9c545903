//! Contract compared with simple loops. The values are small integers, so that the result is exact or wraps in every dtype.

use cuprum_core::{Complex, DType, NdArray, arange, einsum, matmul, ones, tensordot};

use crate::support::{as_f64, layouts, matrix, on_threads};

/// Extents m, k, n at every boundary: vectors, odd edges, blocks, one long sum.
const SIZES: [[usize; 3]; 8] = [[1, 1, 1], [3, 5, 2], [1, 300, 1], [1, 70, 33], [33, 70, 1], [17, 1, 19], [65, 67, 130], [5, 9000, 3]];

fn left(i: usize, p: usize) -> i64 {
    ((i * 7 + p * 3) % 11) as i64 - 5
}

fn right(p: usize, j: usize) -> i64 {
    ((p * 5 + j * 13) % 9) as i64 - 4
}

fn product(m: usize, k: usize, n: usize) -> Vec<i64> {
    matrix(m, n, |i, j| (0..k).map(|p| left(i, p) * right(p, j)).sum())
}

#[test]
fn matrices_in_every_layout() {
    for [m, k, n] in SIZES {
        let want = product(m, k, n);
        for dtype in [DType::F32, DType::F64, DType::I32] {
            for (of_a, a) in layouts(m, k, left) {
                for (of_b, b) in layouts(k, n, right) {
                    let got = on_threads(|| matmul(&a.astype(dtype)?, &b.astype(dtype)?));
                    assert_eq!(got.dtype(), dtype);
                    assert!(got.astype(DType::I64).unwrap().to_vec::<i64>().unwrap() == want, "{dtype} {of_a} @ {of_b}, {m} {k} {n}");
                }
            }
            // The arrays are converted before they are transposed and reversed, so that the operands have these strides.
            let like = |x: &NdArray| x.astype(dtype).unwrap();
            let (at, bt) = (like(&layouts(k, m, |p, i| left(i, p))[0].1), like(&layouts(n, k, |j, p| right(p, j))[0].1));
            let got = on_threads(|| matmul(&at.t()?, &bt.t()?.flip(1)?)?.flip(1));
            assert!(got.astype(DType::I64).unwrap().to_vec::<i64>().unwrap() == want, "{dtype} transposed @ reversed, {m} {k} {n}");
        }
    }
}

#[test]
fn every_dtype() {
    let [m, k, n] = [19, 23, 31];
    for dtype in DType::ALL {
        let make = |rows, columns, f: fn(usize, usize) -> i64| {
            let positive = dtype == DType::Bool || dtype.int_range().is_some_and(|(low, _)| low == 0);
            let whole = NdArray::from_vec(matrix(rows, columns, |r, c| if positive { f(r, c).max(0) } else { f(r, c) }), [rows, columns]);
            whole.unwrap().astype(dtype).unwrap()
        };
        let (a, b) = (make(m, k, left), make(k, n, right));
        let (x, y) = (as_f64(&a.real().unwrap()), as_f64(&b.real().unwrap()));
        let exact = matrix(m, n, |i, j| (0..k).map(|p| x[i * k + p] * y[p * n + j]).sum::<f64>());
        // The expected values in the result's dtype: integers wrap, bool is whether any product is not zero.
        let want = NdArray::from_vec(exact.iter().map(|v| *v as i64).collect::<Vec<_>>(), [m, n]).unwrap().astype(dtype).unwrap();
        let got = on_threads(|| matmul(&a, &b));
        assert!(got.to_bytes().unwrap() == want.to_bytes().unwrap(), "{dtype}");
    }
    let i = Complex::new(0.0f64, 1.0);
    let z = NdArray::from_vec(vec![i, i, Complex::new(2.0, -1.0), i], [2, 2]).unwrap();
    let square = matmul(&z, &z).unwrap().to_vec::<Complex<f64>>().unwrap();
    assert_eq!(square, [(0.0, 2.0), (-2.0, 0.0), (2.0, 4.0), (0.0, 2.0)].map(|(re, im)| Complex::new(re, im)));
}

/// A product by 1 + 0j would turn the imaginary part of an infinite sum into NaN.
#[test]
fn complex_products_with_vectors_that_overflow() {
    for k in [1, 2, 3, 5, 15, 16, 100, 9000] {
        let element = |large: f64| move |n: usize| Complex::new(if n == k - 1 { large } else { 1.0 }, 0.0);
        let vector = |large| NdArray::from_vec((0..k).map(element(large)).collect::<Vec<_>>(), [k]).unwrap();
        let (a, b) = (vector(1e308), vector(10.0));
        let infinite = |got: NdArray, count: usize| {
            assert_eq!(got.to_vec::<Complex<f64>>().unwrap(), vec![Complex::new(f64::INFINITY, 0.0); count], "{k}");
        };
        infinite(on_threads(|| matmul(&a, &b)), 1);
        infinite(on_threads(|| einsum("i,i", [&a, &b])), 1);
        infinite(on_threads(|| matmul(&a, &b.reshape((-1, 1))?)), 1);
        for (_, rows) in layouts(3, k, |_, n| element(1e308)(n)) {
            infinite(on_threads(|| matmul(&rows, &b)), 3);
            infinite(on_threads(|| matmul(&b, &rows.t()?)), 3);
            infinite(on_threads(|| einsum("ij,ij->i", [&rows, &rows])), 3);
            infinite(on_threads(|| einsum("ij,j->i", [&rows, &b])), 3);
        }
    }
}

#[test]
fn batches_are_broadcast() {
    let a = arange(0, 2 * 3 * 4 * 5, 1).unwrap().reshape([2, 3, 4, 5]).unwrap();
    let b = arange(0, 3 * 5 * 6, 1).unwrap().reshape([3, 5, 6]).unwrap();
    let (x, y) = (|n: usize| n as i64, |n: usize| n as i64);
    let want: Vec<i64> = (0..2 * 3 * 4 * 6)
        .map(|at| {
            let (batch, i, j) = (at / 24, at / 6 % 4, at % 6);
            (0..5).map(|p| x((batch * 4 + i) * 5 + p) * y((batch % 3 * 5 + p) * 6 + j)).sum()
        })
        .collect();
    for dtype in [DType::I64, DType::F64, DType::C64] {
        let of = |a: &NdArray| a.astype(dtype).unwrap();
        let got = on_threads(|| matmul(&of(&a), &of(&b)));
        assert_eq!((got.shape(), as_f64(&got.real().unwrap())), (&[2, 3, 4, 6][..], want.iter().map(|v| *v as f64).collect()), "{dtype}");
        // Moves a batch axis to another index, so that it is not the first axis.
        let moved = of(&a).transpose([2, 0, 1, 3]).unwrap().copy().unwrap().transpose([1, 2, 0, 3]).unwrap();
        assert_eq!(on_threads(|| matmul(&moved, &of(&b))).to_bytes().unwrap(), got.to_bytes().unwrap(), "{dtype}");
    }
}

#[test]
fn any_axes() {
    let a = NdArray::from_vec(matrix(12, 30, left), [3, 4, 5, 6]).unwrap();
    let b = NdArray::from_vec(matrix(24, 7, right), [6, 4, 7]).unwrap();
    let (x, y) = (a.to_vec::<i64>().unwrap(), b.to_vec::<i64>().unwrap());
    let want: Vec<i64> = (0..3 * 5 * 7)
        .map(|at| {
            let (i, k, n) = (at / 35, at / 7 % 5, at % 7);
            (0..24).map(|jl| (jl / 6, jl % 6)).map(|(j, l)| x[((i * 4 + j) * 5 + k) * 6 + l] * y[(l * 4 + j) * 7 + n]).sum()
        })
        .collect();
    for dtype in [DType::I64, DType::F32, DType::C128] {
        let (a, b) = (a.astype(dtype).unwrap(), b.astype(dtype).unwrap());
        let got = on_threads(|| tensordot(&a, &b, ([1, 3], [1, 0]))?.real()?.astype(DType::I64));
        assert_eq!(got.to_vec::<i64>().unwrap(), want, "{dtype}");
        // The result has an order of axes that no matrix product writes directly.
        let got = on_threads(|| einsum("ijkl,ljn->nik", [&a, &b])?.transpose([1, 2, 0])?.real()?.astype(DType::I64));
        assert_eq!(got.to_vec::<i64>().unwrap(), want, "{dtype}");
    }
}

#[test]
fn special_values() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let a = NdArray::from_vec(vec![0.0, inf, 1.0, nan, 0.0, 0.0], [3, 2]).unwrap();
    let b = NdArray::from_vec(vec![inf, 1.0, 2.0, 0.0], [2, 2]).unwrap();
    let got = matmul(&a, &b).unwrap().to_vec::<f64>().unwrap();
    // The elements are 0 * inf + inf * 2 and 0 * 1 + inf * 0; inf + nan * 2 and 1 + nan * 0; 0 * inf and 0.
    assert!(got[..5].iter().all(|v| v.is_nan()) && got[5] == 0.0, "{got:?}");
    let (a, b) = (ones([2, 0], DType::F32).unwrap(), ones([0, 3], DType::F32).unwrap());
    assert_eq!(matmul(&a, &b).unwrap().to_vec::<f32>().unwrap(), [0.0; 6], "empty sums");
}

#[test]
fn einsum_of_16_bit_floats_rounds_once() {
    for dtype in [DType::F16, DType::BF16] {
        let array = |values: &[f64]| NdArray::from_slice(values).unwrap().astype(dtype).unwrap();
        let many = ones(70_000, dtype).unwrap();
        let close = |got: NdArray, want: f64| {
            assert_eq!(got.dtype(), dtype);
            let got = as_f64(&got)[0];
            assert!((got / want - 1.0).abs() < 0.01, "{dtype}: {got}, {want}");
        };
        close(einsum("i,->", [&many, &array(&[0.5]).reshape(()).unwrap()]).unwrap(), 35_000.0);
        close(einsum("i,j->j", [&many, &array(&[0.001])]).unwrap(), 70.0);
        let large = array(&[300.0]);
        close(einsum("i,i,i->", [&large, &large, &array(&[0.001])]).unwrap(), 90.0);
    }
}
