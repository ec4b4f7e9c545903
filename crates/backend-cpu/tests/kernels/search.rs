//! Search compared with counting.

use cuprum_core::{Complex, DType, NdArray, Side, arange};

use crate::support::on_threads;

/// Returns descending and ascending values with repeats.
fn values(n: usize) -> Vec<i64> {
    (0..n).map(|i| (i * 7919 % 1009) as i64 - 100).collect()
}

#[test]
fn every_dtype_on_both_sides() {
    for dtype in DType::ALL {
        for n in [1usize, 2, 3, 15, 16, 17, 100, 1000, 33_000] {
            let sorted = arange(0, n as i64, 1).unwrap().remainder(120).unwrap().astype(dtype).unwrap().sort(-1).unwrap();
            let queries = NdArray::from_vec(values(20_003), 20_003).unwrap().abs().unwrap().remainder(125).unwrap().astype(dtype).unwrap();
            let wide = |a: &NdArray| a.real().unwrap().astype(DType::F64).unwrap().to_vec::<f64>().unwrap();
            let (all, each) = (wide(&sorted), wide(&queries));
            let got = |side| on_threads(|| sorted.searchsorted(&queries, side)).to_vec::<i64>().unwrap();
            let left: Vec<i64> = each.iter().map(|q| all.partition_point(|v| v < q) as i64).collect();
            let right: Vec<i64> = each.iter().map(|q| all.partition_point(|v| v <= q) as i64).collect();
            assert!(got(Side::Left) == left, "{dtype} in {n}, left");
            assert!(got(Side::Right) == right, "{dtype} in {n}, right");
        }
    }
}

#[test]
fn special_values() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let sorted = NdArray::from_slice(&[-inf, -1.0, -0.0, 0.0, 2.0, inf, nan, -nan]).unwrap();
    let queries = NdArray::from_slice(&[nan, -nan, inf, -inf, 0.0, -0.0, 1.0, 3.0]).unwrap();
    assert_eq!(sorted.searchsorted(&queries, Side::Left).unwrap().to_vec::<i64>().unwrap(), [6, 6, 5, 0, 2, 2, 4, 5]);
    assert_eq!(sorted.searchsorted(&queries, Side::Right).unwrap().to_vec::<i64>().unwrap(), [8, 8, 6, 1, 4, 4, 4, 5]);
    let z = |re: f64, im: f64| Complex::new(re, im);
    let nan = f64::NAN;
    let sorted = NdArray::from_slice(&[z(0.0, 1.0), z(0.0, 2.0), z(1.0, 0.0), z(0.0, nan), z(5.0, nan), z(nan, 0.0), z(nan, nan)]).unwrap();
    let queries = NdArray::from_slice(&[z(-0.0, 1.5), z(1.0, nan), z(nan, -5.0), z(9.0, 9.0), z(nan, nan)]).unwrap();
    assert_eq!(sorted.searchsorted(&queries, Side::Left).unwrap().to_vec::<i64>().unwrap(), [1, 4, 5, 3, 6]);
}

#[test]
fn long_arrays_and_sorted_queries() {
    let n = 1_000_003;
    let sorted = arange(0, n, 1).unwrap().multiply(3).unwrap();
    for queries in [arange(-5, 400_000, 1).unwrap(), NdArray::from_vec(values(100_000), 100_000).unwrap().multiply(2909).unwrap()] {
        let each = queries.to_vec::<i64>().unwrap();
        let want: Vec<i64> = each.iter().map(|&q| ((q + 2).div_euclid(3)).clamp(0, n)).collect();
        assert!(on_threads(|| sorted.searchsorted(&queries, Side::Left)).to_vec::<i64>().unwrap() == want);
    }
}
