//! Reductions over axes and of segments compared with simple loops.

use cuprum_core::{
    AxisOptions, Complex, DType, Error, NdArray, arange_as, axis, bf16, broadcast_to, count_nonzero, einsum, expand_dims, f16, flip, full,
    matmul, multiply, ones, s, segment_max, segment_min, segment_prod, segment_sum, with_fusion, zeros,
};

use crate::support::{as_f64, layouts, matrix, on_threads};

/// Array shapes at every boundary: one element, short rows, leaves of the pairwise tree, tiles, blocks shared by threads.
const SIZES: [(usize, usize); 10] =
    [(1, 1), (3, 5), (5, 511), (513, 3), (17, 2049), (2049, 17), (4, 70_001), (70_001, 2), (300, 700), (18, 4200)];

#[test]
fn integer_sums_over_every_axis() {
    for (rows, columns) in SIZES {
        let value = |r: usize, c: usize| (r * 31 + c * 7) as i32 % 1000 - 300;
        let all: i64 = matrix(rows, columns, value).iter().map(|&v| v as i64).sum();
        let by_row: Vec<i64> = (0..rows).map(|r| (0..columns).map(|c| value(r, c) as i64).sum()).collect();
        let by_column: Vec<i64> = (0..columns).map(|c| (0..rows).map(|r| value(r, c) as i64).sum()).collect();
        for (name, a) in layouts(rows, columns, value) {
            assert_eq!(on_threads(|| a.sum(())).to_vec::<i64>().unwrap(), [all], "{name} {rows} x {columns}");
            assert_eq!(on_threads(|| a.sum(1)).to_vec::<i64>().unwrap(), by_row, "{name} {rows} x {columns}");
            assert_eq!(on_threads(|| a.sum(0)).to_vec::<i64>().unwrap(), by_column, "{name} {rows} x {columns}");
        }
    }
}

#[test]
fn float_sums_are_pairwise_and_fixed() {
    for (rows, columns) in SIZES {
        let value = |r: usize, c: usize| 1.0f32 / (1 + r * columns + c) as f32;
        let exact: f64 = matrix(rows, columns, |r, c| value(r, c) as f64).iter().sum();
        for (name, a) in layouts(rows, columns, value) {
            let sum = on_threads(|| a.sum(())).to_vec::<f32>().unwrap()[0] as f64;
            assert!((sum - exact).abs() <= exact * 4e-7, "{name} {rows} x {columns}: {sum} {exact}");
            on_threads(|| a.sum(0));
            on_threads(|| a.sum(1));
            on_threads(|| (&a * 2.0f32).sqrt()?.sum(0));
        }
    }
    // The pairwise tree must be the same for elements read in place, interleaved or gathered.
    for n in [65_536, 65_537, 400_001] {
        let views = layouts(1, n, |_, c| ((c * 7919 % 10_007) as f32).sqrt());
        let sums: Vec<u32> = views.iter().map(|(_, a)| on_threads(|| a.sum(())).to_vec::<f32>().unwrap()[0].to_bits()).collect();
        assert!(sums.iter().all(|&sum| sum == sums[0]), "{n}: {sums:?}");
        let computed = on_threads(|| (&views[0].1 * 1.0).sum(())).to_vec::<f32>().unwrap()[0].to_bits();
        assert_eq!(computed, sums[0], "{n}");
    }
    // A sequential float32 sum would stop at 2^24.
    let ones = ones([1 << 25], DType::F32).unwrap();
    assert_eq!(on_threads(|| ones.sum(())).to_vec::<f32>().unwrap(), [(1 << 25) as f32]);
}

/// Products of arrays in memory are summed without a temporary, other products in tiles. Both must have the bits of a sum over stored
/// products.
#[test]
fn fused_sums_of_products_equal_sums_of_stored_products() {
    let bits = |sums: NdArray| sums.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>();
    for (rows, columns) in [(3, 31), (2, 33), (5, 511), (3, 2048), (2, 4099), (18, 4200), (1, 70_001)] {
        let a = layouts(rows, columns, |r, c| ((r * 31 + c * 7919) % 10_007) as f32 / 97.0 - 51.0);
        let b = layouts(rows, columns, |r, c| ((r * 17 + c * 104_729) % 9973) as f32 / 89.0 - 56.0);
        for ((name, a), (_, b)) in a.iter().zip(&b) {
            let (products, squares) = ((a * b).eval().unwrap().clone(), a.square().unwrap().eval().unwrap().clone());
            for along in [1, 0] {
                let (of_products, of_squares) = (bits(on_threads(|| products.sum(along))), bits(on_threads(|| squares.sum(along))));
                assert!(bits(on_threads(|| (a * b).sum(along))) == of_products, "{name} {rows} x {columns} along {along}");
                assert!(bits(on_threads(|| a.square()?.sum(along))) == of_squares, "{name} {rows} x {columns} along {along}");
                assert!(bits(on_threads(|| (a * a).sum(along))) == of_squares, "{name} {rows} x {columns} along {along}");
            }
        }
    }
    let zeros = (zeros([2, 600], DType::F64).unwrap(), full([2, 600], -1.0, DType::F64).unwrap());
    let sums = on_threads(|| (&zeros.0 * &zeros.1).sum(1)).to_vec::<f64>().unwrap();
    assert!(sums.iter().all(|sum| *sum == 0.0 && sum.is_sign_positive()), "{sums:?}: of negative zeros only");
}

/// Tests NaN at every index of a group of leaves, and zeros of both signs.
#[test]
fn extremes_with_nan_and_signed_zeros() {
    for n in [31, 512, 513, 2048, 2049, 5000] {
        let values: Vec<f32> = (0..n).map(|i| ((i * 7919) % 1009) as f32 - 2000.0).collect();
        for at in [0, n / 3, n / 2 + 1, n - 1] {
            let mut with_nan = values.clone();
            with_nan[at] = f32::NAN;
            let a = NdArray::from_vec(with_nan, [1, n]).unwrap();
            for extreme in [on_threads(|| a.max(1)), on_threads(|| a.min(1))] {
                assert!(extreme.to_vec::<f32>().unwrap()[0].is_nan(), "{n}, NaN at {at}");
            }
            for place in [on_threads(|| a.argmax(1)), on_threads(|| a.argmin(1))] {
                assert_eq!(place.to_vec::<i64>().unwrap(), [at as i64], "{n}, NaN at {at}");
            }
            let mut with_zeros = values.clone();
            with_zeros[at] = -0.0;
            with_zeros[n - 1] = 0.0;
            let a = NdArray::from_vec(with_zeros, [1, n]).unwrap();
            assert_eq!(on_threads(|| a.max(1)).to_vec::<f32>().unwrap(), [0.0]);
            assert_eq!(on_threads(|| a.argmax(1)).to_vec::<i64>().unwrap(), [at as i64], "{n}, the first zero at {at}");
        }
    }
}

#[test]
fn three_axes() {
    let shape = [6usize, 70, 90];
    let a = NdArray::from_vec((0..6 * 70 * 90).map(|i| i as f64).collect::<Vec<_>>(), shape).unwrap();
    let at = |i: usize, j: usize, k: usize| ((i * 70 + j) * 90 + k) as f64;
    let outer: Vec<f64> = (0..70).map(|j| (0..6).map(|i| (0..90).map(|k| at(i, j, k)).sum::<f64>()).sum()).collect();
    assert_eq!(on_threads(|| a.sum([0, 2])).to_vec::<f64>().unwrap(), outer);
    let p = a.transpose([1, 2, 0]).unwrap();
    assert_eq!(on_threads(|| p.sum([1, 2])).to_vec::<f64>().unwrap(), outer);
    let middle: Vec<f64> = (0..6).flat_map(|i| (0..90).map(move |k| (i, k))).map(|(i, k)| (0..70).map(|j| at(i, j, k)).sum()).collect();
    assert_eq!(on_threads(|| a.sum(1)).to_vec::<f64>().unwrap(), middle);
    assert_eq!(a.sum(axis(1).keepdims()).unwrap().shape(), &[6, 1, 90]);
}

#[test]
fn minima_maxima_and_their_indices() {
    for (rows, columns) in SIZES {
        let value = |r: usize, c: usize| ((r * 7919 + c * 104_729) % 10_007) as i32 - 5000;
        let first = |values: &[i32], best: i32| values.iter().position(|v| *v == best).unwrap() as i64;
        for (name, a) in layouts(rows, columns, value) {
            let all = matrix(rows, columns, value);
            let (low, high) = (*all.iter().min().unwrap(), *all.iter().max().unwrap());
            assert_eq!(on_threads(|| a.min(())).to_vec::<i32>().unwrap(), [low], "{name}");
            assert_eq!(on_threads(|| a.argmin(())).to_vec::<i64>().unwrap(), [first(&all, low)], "{name} {rows} x {columns}");
            assert_eq!(on_threads(|| a.argmax(())).to_vec::<i64>().unwrap(), [first(&all, high)], "{name} {rows} x {columns}");
            let columns_of: Vec<Vec<i32>> = (0..columns).map(|c| (0..rows).map(|r| value(r, c)).collect()).collect();
            let want: Vec<i64> = columns_of.iter().map(|v| first(v, *v.iter().max().unwrap())).collect();
            assert_eq!(on_threads(|| a.argmax(0)).to_vec::<i64>().unwrap(), want, "{name} {rows} x {columns}");
            let rows_of: Vec<Vec<i32>> = (0..rows).map(|r| (0..columns).map(|c| value(r, c)).collect()).collect();
            let want: Vec<i64> = rows_of.iter().map(|v| first(v, *v.iter().min().unwrap())).collect();
            assert_eq!(on_threads(|| a.argmin(1)).to_vec::<i64>().unwrap(), want, "{name} {rows} x {columns}");
        }
    }
}

#[test]
fn nan_propagates() {
    for n in [3usize, 40, 600, 5000, 200_000] {
        for at in [0, n / 2, n - 1] {
            let mut v = vec![1.0f64; n];
            (v[at], v[n / 3]) = (f64::NAN, -2.0);
            v[at] = f64::NAN;
            let a = NdArray::from_slice(&v).unwrap();
            assert!(as_f64(&on_threads(|| a.min(())))[0].is_nan() && as_f64(&on_threads(|| a.max(())))[0].is_nan());
            assert_eq!(on_threads(|| a.argmax(())).to_vec::<i64>().unwrap(), [at as i64]);
            assert_eq!(on_threads(|| a.argmin(())).to_vec::<i64>().unwrap(), [at as i64]);
        }
    }
    let z = [(1.0, 2.0), (1.0, f64::NAN), (5.0, 0.0)].map(|(re, im)| cuprum_core::Complex::new(re, im));
    let z = NdArray::from_slice(&z).unwrap();
    assert_eq!(z.argmax(()).unwrap().to_vec::<i64>().unwrap(), [1]);
    assert_eq!(z.real().unwrap().argmax(()).unwrap().to_vec::<i64>().unwrap(), [2]);
}

#[test]
fn any_and_all() {
    for n in [1usize, 100, 3000, 200_000] {
        let v: Vec<i32> = (0..n).map(|i| (i % 3 == 1) as i32 * 5).collect();
        let a = NdArray::from_slice(&v).unwrap();
        let count = v.iter().filter(|v| **v != 0).count() as i64;
        assert_eq!(on_threads(|| count_nonzero(&a, ())).to_vec::<i64>().unwrap(), [count]);
        assert_eq!(on_threads(|| a.any(())).to_vec::<bool>().unwrap(), [n > 1]);
        assert_eq!(on_threads(|| a.all(())).to_vec::<bool>().unwrap(), [false]);
        assert_eq!(on_threads(|| a.equal(a.clone())?.all(())).to_vec::<bool>().unwrap(), [true]);
    }
    let nan = NdArray::from_slice(&[0.0f32, f32::NAN]).unwrap();
    assert_eq!(nan.any(()).unwrap().to_vec::<bool>().unwrap(), [true]);
}

#[test]
fn products_and_dtypes() {
    let a = NdArray::from_slice(&[3i8, 5, 7, 11, 13]).unwrap();
    assert_eq!(a.prod(()).unwrap().to_vec::<i64>().unwrap(), [15015]);
    assert_eq!(a.prod(axis(0).dtype(DType::I8)).unwrap().to_vec::<i8>().unwrap(), [15015i64 as i8]);
    let h = NdArray::from_vec(vec![f16::from_f32(0.1); 10_000], [100, 100]).unwrap();
    let want = f16::from_f32(f16::from_f32(0.1).to_f32() * 100.0);
    assert!(on_threads(|| h.sum(0)).to_vec::<f16>().unwrap().iter().all(|v| *v == want));
    assert!(on_threads(|| h.sum(1)).to_vec::<f16>().unwrap().iter().all(|v| *v == want));
    let b = NdArray::from_slice(&[bf16::from_f32(2.0), bf16::from_f32(-4.0)]).unwrap();
    assert_eq!(b.min(()).unwrap().to_vec::<bf16>().unwrap()[0].to_f32(), -4.0);
    let flags = NdArray::from_slice(&[true, false]).unwrap();
    assert_eq!(flags.max(()).unwrap().to_vec::<bool>().unwrap(), [true]);
    assert_eq!(flags.argmin(()).unwrap().to_vec::<i64>().unwrap(), [1]);
    for dtype in DType::ALL {
        let a = ones([7], dtype).unwrap();
        assert_eq!(as_f64(&a.sum(()).unwrap().real().unwrap()), [7.0], "{dtype}");
        assert_eq!(as_f64(&a.prod(()).unwrap().real().unwrap()), [1.0], "{dtype}");
        assert_eq!(as_f64(&a.max(()).unwrap().real().unwrap()), [1.0], "{dtype}");
        assert_eq!(as_f64(&a.argmax(()).unwrap()), [0.0], "{dtype}");
    }
}

/// Values in the order of a reduction whose partial products overflow and underflow.
fn value_out_of_range(kind: usize, i: usize, n: usize) -> f32 {
    let sign = if i.is_multiple_of(3) { -1.0 } else { 1.0 };
    let large = match kind {
        0 => i < n / 2,
        1 => i >= n / 2,
        _ => i.is_multiple_of(2),
    };
    match kind {
        3 if i == n - 1 => 0.0,
        4 if i == n / 3 => 0.0,
        4 if i == n - 1 => f32::INFINITY,
        _ => sign * if large { 1e30 } else { 1e-30 },
    }
}

#[test]
fn products_out_of_range_are_multiplied_in_order() {
    let same = |got: &NdArray, want: &[f32]| {
        let got = got.to_vec::<f32>().unwrap();
        got.len() == want.len() && got.iter().zip(want).all(|(g, w)| g.to_bits() == w.to_bits() || g.is_nan() && w.is_nan())
    };
    let fold = |values: &mut dyn Iterator<Item = f32>| values.reduce(|product, v| product * v).unwrap();
    for (kind, (rows, n)) in (0..5).flat_map(|kind| [(3, 5000), (40, 600), (2, 150_000)].map(|size| (kind, size))) {
        let value = |r: usize, c: usize| value_out_of_range(kind, c, n) * (1 + r) as f32;
        let want: Vec<f32> = (0..rows).map(|r| fold(&mut (0..n).map(|c| value(r, c)))).collect();
        let whole = fold(&mut (0..rows * n).map(|i| value(i / n, i % n)));
        assert!(kind >= 3 || want.iter().all(|product| !product.is_nan()), "{want:?}");
        for (name, a) in layouts(rows, n, value) {
            let context = format!("{name} {rows} x {n}, kind {kind}");
            assert!(same(&on_threads(|| a.prod(1)), &want), "{context}");
            assert!(same(&on_threads(|| (&a * 1.0f32).prod(1)), &want), "fused, {context}");
            assert!(same(&on_threads(|| a.t()?.copy()?.prod(0)), &want), "columns, {context}");
            assert!(
                same(
                    &on_threads(|| (&a * a.prod(axis(1).keepdims())?).index(s![.., 1])),
                    &want.iter().enumerate().map(|(r, w)| value(r, 1) * w).collect::<Vec<_>>()
                ),
                "row program, {context}"
            );
            assert!(name != "contiguous" || same(&on_threads(|| a.prod(())), &[whole]), "both axes, {context}");
            let offsets = NdArray::from_vec((0..=rows).map(|r| (r * n) as i64).collect::<Vec<_>>(), rows + 1).unwrap();
            assert!(same(&on_threads(|| segment_prod(&a.reshape(rows * n)?, &offsets)), &want), "segments, {context}");
        }
    }
    let alternating = (0..2000).map(|i| Complex::new(if i % 2 == 0 { 1e200 } else { 1e-200 }, 0.0)).collect::<Vec<_>>();
    let product = NdArray::from_vec(alternating, 2000).unwrap().prod(()).unwrap().to_vec::<Complex<f64>>().unwrap()[0];
    assert!((product.re - 1.0).abs() < 1e-10 && product.im == 0.0, "{product}");
}

#[test]
fn elementwise_operands_are_fused() {
    let a = NdArray::from_vec((0..256 * 1024).map(|i| (i % 100) as f64 / 10.0).collect::<Vec<_>>(), [256, 1024]).unwrap();
    let norms = on_threads(|| (&a * &a).sum(-1)?.sqrt()).to_vec::<f64>().unwrap();
    for (r, norm) in norms.iter().enumerate() {
        let want: f64 = (0..1024).map(|c| ((r * 1024 + c) % 100) as f64 / 10.0).map(|v| v * v).sum::<f64>().sqrt();
        assert!((norm - want).abs() < 1e-9 * want);
    }
    let row = NdArray::from_vec((0..1024).map(|i| i as f64).collect::<Vec<_>>(), [1024]).unwrap();
    let got = on_threads(|| (&a * &row).sum(0)).to_vec::<f64>().unwrap();
    for (c, got) in got.iter().enumerate() {
        let want: f64 = (0..256).map(|r| ((r * 1024 + c) % 100) as f64 / 10.0 * c as f64).sum();
        assert!((got - want).abs() <= 1e-9 * want.abs());
    }
}

#[test]
fn segments() {
    for n in [0usize, 1, 10, 100_000] {
        let values: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let offsets: Vec<i64> = [0, 0, n / 3, n / 3, n].map(|o| o as i64).to_vec();
        let (a, o) = (NdArray::from_slice(&values).unwrap(), NdArray::from_slice(&offsets).unwrap());
        let got = on_threads(|| segment_sum(&a, &o)).to_vec::<f64>().unwrap();
        let want: Vec<f64> = offsets.windows(2).map(|w| values[w[0] as usize..w[1] as usize].iter().sum()).collect();
        assert_eq!(got, want);
        // Fused values, whose inputs have another memory layout.
        let backwards = flip(&NdArray::from_slice(&values).unwrap(), None).unwrap();
        let computed = (&backwards * &a + 0.5) * NdArray::scalar(2.0).unwrap();
        let value = |i: usize| ((n - 1 - i) as f64 * i as f64 + 0.5) * 2.0;
        let got = on_threads(|| segment_sum(&computed, &o)).to_vec::<f64>().unwrap();
        let want: Vec<f64> = offsets.windows(2).map(|w| (w[0] as usize..w[1] as usize).map(value).sum()).collect();
        assert!(got.iter().zip(&want).all(|(got, want)| (got - want).abs() <= 1e-14 * want.abs()), "{got:?} {want:?}");
    }
    let halves: Vec<f16> = (0..3000).map(|i| f16::from_f32((i % 8) as f32)).collect();
    let (a, o) = (NdArray::from_slice(&halves).unwrap(), NdArray::from_slice(&[0i32, 1000, 3000]).unwrap());
    assert_eq!(as_f64(&segment_sum(&(&a + 1), &o).unwrap()), [4500.0, 9000.0]);
    let a = NdArray::from_slice(&[1i32, 2, 3]).unwrap();
    assert_eq!(segment_sum(&(&a * &a), &NdArray::from_slice(&[0, 2, 3]).unwrap()).unwrap().to_vec::<i64>().unwrap(), [5, 9]);
    let check = |offsets: &[i64]| segment_sum(&a, &NdArray::from_slice(offsets).unwrap());
    assert_eq!(check(&[0, 1, 3]).unwrap().to_vec::<i64>().unwrap(), [1, 5]);
    assert!(matches!(check(&[0, 4]), Err(Error::Index { index: 4, .. })));
    assert!(matches!(check(&[-1, 3]), Err(Error::Index { index: -1, .. })));
    assert!(matches!(check(&[2, 1]), Err(Error::Value { .. })));
}

#[test]
fn views_of_empty_arrays_stay_in_their_buffer() {
    let column = zeros((0, 1000), DType::F64).unwrap().index(s![.., 999]).unwrap();
    assert!(column.to_vec::<f64>().unwrap().is_empty());
    assert_eq!(as_f64(&segment_sum(&column, &NdArray::from_slice(&[0, 0]).unwrap()).unwrap()), [0.0]);
}

#[test]
fn segments_do_not_depend_on_threads() {
    let lengths = [0, 5, 65_536, 1, 65_537, 0, 200_001, 3, 70_000];
    let offsets: Vec<i64> =
        lengths.iter().scan(2, |at, n| Some(std::mem::replace(at, *at + n))).chain([2 + lengths.iter().sum::<i64>()]).collect();
    let values: Vec<f64> = (0..offsets[lengths.len()] + 4).map(|i| ((i * 7919) % 10_007) as f64 * 0.1 - 400.0).collect();
    let (a, o) = (NdArray::from_slice(&values).unwrap(), NdArray::from_slice(&offsets).unwrap());
    let ranges = || offsets.windows(2).map(|w| &values[w[0] as usize..w[1] as usize]);
    let sums = on_threads(|| segment_sum(&a, &o)).to_vec::<f64>().unwrap();
    assert!(
        sums.iter().zip(ranges()).all(|(got, x)| (got - x.iter().sum::<f64>()).abs() <= 1e-12 * x.iter().map(|v| v.abs()).sum::<f64>())
    );
    let least = on_threads(|| segment_min(&a, &o)).to_vec::<f64>().unwrap();
    assert_eq!(least, ranges().map(|x| x.iter().copied().fold(f64::INFINITY, f64::min)).collect::<Vec<_>>());
    let most = on_threads(|| segment_max(&(-&a), &o)).to_vec::<f64>().unwrap();
    assert_eq!(most, least.iter().map(|x| -x).collect::<Vec<_>>());
    let signs = on_threads(|| segment_prod(&a.sign().unwrap(), &o)).to_vec::<f64>().unwrap();
    assert_eq!(signs, ranges().map(|x| x.iter().map(|v| if *v == 0.0 { 0.0 } else { v.signum() }).product()).collect::<Vec<f64>>());
}

/// Returns the variance of `values` in float64, computed in two passes. The divisor is the length minus `correction`.
fn variance(values: &[f64], correction: f64) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - correction)
}

#[test]
fn variances_are_accurate_with_a_large_mean() {
    for (rows, columns) in SIZES.into_iter().filter(|&(rows, columns)| rows > 1 && columns > 1) {
        let value = |r: usize, c: usize| 1e6 + ((r * 31 + c * 7) % 1000) as f64 / 1000.0;
        let row = |r: usize| (0..columns).map(|c| value(r, c)).collect::<Vec<_>>();
        let column = |c: usize| (0..rows).map(|r| value(r, c)).collect::<Vec<_>>();
        for (name, a) in layouts(rows, columns, value) {
            let near = |got: NdArray, want: Vec<f64>| {
                let close = as_f64(&got).iter().zip(&want).all(|(g, w)| (g - w).abs() <= 1e-7 * w + 1e-15);
                assert!(close, "{name} {rows} x {columns}");
            };
            near(on_threads(|| a.var(1)), (0..rows).map(|r| variance(&row(r), 0.0)).collect());
            near(on_threads(|| a.var(axis(0).correction(1.0))), (0..columns).map(|c| variance(&column(c), 1.0)).collect());
            near(on_threads(|| a.var(())), vec![variance(&matrix(rows, columns, value), 0.0)]);
        }
    }
    let z = NdArray::from_slice(&[Complex::new(1.0f32, 2.0), Complex::new(3.0, -2.0)]).unwrap();
    assert_eq!(z.var(()).unwrap().to_vec::<f32>().unwrap(), [5.0]);
    for bad in [f32::NAN, f32::INFINITY] {
        let a = NdArray::from_slice(&[1.0f32, bad, 2.0]).unwrap();
        assert!(a.var(()).unwrap().to_vec::<f32>().unwrap()[0].is_nan());
        assert!(expand_dims(&a, 1).unwrap().var(1).unwrap().to_vec::<f32>().unwrap()[1].is_nan());
    }
}

#[test]
fn sums_of_negative_zeros_are_positive() {
    for (rows, columns) in SIZES.into_iter().filter(|(_, columns)| *columns > 1) {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128] {
            let a = zeros([rows, columns], dtype).unwrap().negative().unwrap().copy().unwrap();
            let ones = ones([columns], dtype).unwrap();
            let offsets = NdArray::from_slice(&[0, columns as i64]).unwrap();
            let mut sums = vec![
                ("all", on_threads(|| a.sum(()))),
                ("rows", on_threads(|| a.sum(1))),
                ("columns", on_threads(|| a.sum(0))),
                ("means", on_threads(|| a.mean(axis(1).keepdims()))),
                ("a fused product", on_threads(|| multiply(&a, &ones)?.sum(1))),
                ("a fused expression", on_threads(|| multiply(&a, 3)?.negative()?.negative()?.sum(0))),
                ("a segment", on_threads(|| segment_sum(&a.index(cuprum_core::s![0])?, &offsets))),
                ("einsum", on_threads(|| einsum("ij->i", [&a]))),
            ];
            if !dtype.is_complex() {
                sums.push(("a product with a vector", on_threads(|| matmul(&a, &ones))));
                sums.push(("a product with a matrix", on_threads(|| matmul(&a, &ones.reshape([columns, 1])?))));
            }
            for (name, sum) in sums {
                let bytes = sum.to_bytes().unwrap();
                assert!(bytes.iter().all(|&b| b == 0), "{name} of {rows} x {columns} {dtype}: {sum}");
            }
        }
    }
}

#[test]
fn fused_variance_equals_reduced_variance() {
    let dtypes = [(DType::F16, 4), (DType::F32, 4), (DType::F64, 8), (DType::C64, 8), (DType::C128, 16)];
    for (rows, columns) in [(3, 2), (70, 5), (5, 511), (4, 512), (5, 513), (17, 1024), (1, 1000), (9, 2048)] {
        // Only rows of up to 8 KiB, which take two passes.
        for (dtype, _) in dtypes.into_iter().filter(|(_, bytes)| columns * bytes <= 8192) {
            let a = arange_as(0, (rows * columns) as i64, 1, DType::F64).unwrap().reshape([rows, columns]).unwrap();
            let a = multiply(a.sin().unwrap(), 3.7).unwrap().astype(dtype).unwrap();
            let a = if dtype.is_complex() { multiply(&a, Complex::new(0.3, 0.9)).unwrap() } else { a };
            let a = a.copy().unwrap();
            let fused = on_threads(|| with_fusion(true, || multiply(&a.var(axis(-1).keepdims())?, &a.equal(&a)?)));
            let alone = on_threads(|| broadcast_to(&a.var(axis(-1).keepdims())?, [rows, columns])?.copy());
            let unfused = on_threads(|| with_fusion(false, || broadcast_to(&a.var(-1)?.reshape([rows, 1])?, [rows, columns])?.copy()));
            let of_expression = on_threads(|| broadcast_to(&multiply(&a, 1)?.var(-1)?.reshape([rows, 1])?, [rows, columns])?.copy());
            for (name, other) in [("alone", alone), ("unfused", unfused), ("of an expression", of_expression)] {
                assert!(fused.to_bytes().unwrap() == other.to_bytes().unwrap(), "{name}, {rows} x {columns} {dtype}");
            }
        }
    }
}

#[test]
fn variances_overflow_where_numpy_does() {
    for (rows, columns) in [(4, 2), (2, 4), (600, 3), (3, 600), (2, 40_000), (40_000, 2), (1, 200_000)] {
        let a = full([rows, columns], 3.4e38f32, DType::F32).unwrap().copy().unwrap();
        for over in [AxisOptions::from(0), AxisOptions::from(1), AxisOptions::default()] {
            let values = on_threads(|| a.var(over.clone())).to_vec::<f32>().unwrap();
            let is_one = values.len() == rows * columns;
            let want = if is_one { 0.0 } else { f32::INFINITY };
            assert!(values.iter().all(|&v| v == want), "{rows} x {columns}, {over:?}: {}", values[0]);
        }
    }
    // The squared difference of the two means overflows, but the sum of squares does not.
    let a = NdArray::from_slice(&[1.3e19f32, -1.3e19]).unwrap();
    let columns = broadcast_to(&a.reshape([2, 1]).unwrap(), [2, 3]).unwrap().copy().unwrap();
    let values = on_threads(|| columns.var(0)).to_vec::<f32>().unwrap();
    assert!(values.iter().all(|&v| (v / 1.69e38 - 1.0).abs() < 1e-6), "{values:?}");
    // The variance of an infinity or NaN is NaN.
    let a = NdArray::from_vec([f32::INFINITY, 1.0, f32::NAN, 1.0, 3.0, 5.0], [3, 2]).unwrap();
    assert!(on_threads(|| a.var(0)).to_vec::<f32>().unwrap()[0].is_nan());
    assert!(on_threads(|| a.var(1)).to_vec::<f32>().unwrap()[0].is_nan());
}

/// Of several NaN or equal complex numbers, minima and maxima return the first. The initial value comes before all elements.
#[test]
fn complex_extremes_begin_with_the_initial_value() {
    let nan = f64::NAN;
    let text = |z: Complex<f64>| format!("{z:?}");
    for (initial, elements, expected) in [
        (Complex::new(nan, 0.0), [Complex::new(1.0, 0.0), Complex::new(nan, 5.0)], Complex::new(nan, 0.0)),
        (Complex::new(nan, 1.0), [Complex::new(1.0, nan), Complex::new(nan, 4.0)], Complex::new(nan, 1.0)),
        (Complex::new(2.0, nan), [Complex::new(nan, 3.0), Complex::new(7.0, 0.0)], Complex::new(2.0, nan)),
        (Complex::new(0.0, 0.0), [Complex::new(nan, 3.0), Complex::new(7.0, 0.0)], Complex::new(nan, 3.0)),
        (Complex::new(-0.0, 0.0), [Complex::new(0.0, -0.0); 2], Complex::new(-0.0, 0.0)),
    ] {
        let a = NdArray::from_slice(&elements).unwrap();
        let rows = a.reshape([2, 1]).unwrap();
        let mask = ones(2, DType::Bool).unwrap();
        for over in [AxisOptions::default(), axis(0)] {
            let over = over.initial(initial);
            for got in [a.max(over.clone()), a.min(over.clone()), a.max(over.clone().only_where(&mask)), rows.min(over)] {
                assert_eq!(text(got.unwrap().to_vec::<Complex<f64>>().unwrap()[0]), text(expected));
            }
        }
    }
}
