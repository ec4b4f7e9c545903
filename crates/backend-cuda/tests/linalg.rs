//! Decompositions and linear systems on a real device, by the residuals of LAPACK's tests.

use cuprum_backend_cpu as _;
use cuprum_backend_cuda::testing;
use cuprum_core::error::LinAlgFailure;
use cuprum_core::ops::linalg::{Triangle, cholesky, eigh, inv, solve, svd};
use cuprum_core::testing::linalg::{Case, Kind, check_rectangular, check_square};
use cuprum_core::{DType, Device, Error, NdArray, with_device};

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];

fn on_device(test: impl FnOnce(Device)) {
    if let Some(device) = testing::device() {
        with_device(device, || test(device));
    }
}

fn kinds(dtype: DType) -> Vec<Kind> {
    let far = if dtype.real() == DType::F32 { 1e18 } else { 1e30 };
    vec![Kind::Random, Kind::Graded, Kind::RankDeficient, Kind::Scaled(far), Kind::Scaled(1.0 / far), Kind::Zero]
}

/// Runs `check` for every case, and fails with all texts.
fn check_all(cases: impl IntoIterator<Item = Case>, check: fn(Case) -> Result<(), String>) {
    let failures: Vec<String> = cases.into_iter().filter_map(|case| check(case).err()).collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn square_matrices() {
    on_device(|device| {
        let case = move |dtype, batch, n, kind| Case { device, dtype, batch, rows: n, columns: n, kind };
        let small = DTYPES.into_iter().flat_map(|dtype| {
            let extents = [1, 2, 3, 4, 5, 17, 32, 33].into_iter();
            extents.flat_map(move |n| kinds(dtype).into_iter().map(move |kind| case(dtype, 1 + n % 3, n, kind)))
        });
        check_all(small, check_square);
        check_all(DTYPES.map(|dtype| case(dtype, 1000, 3, Kind::Random)), check_square);
        check_all(DTYPES.map(|dtype| case(dtype, 3, 100, Kind::Random)), check_square);
    });
}

#[test]
fn rectangular_matrices() {
    on_device(|device| {
        let case = move |dtype, batch, rows, columns, kind| Case { device, dtype, batch, rows, columns, kind };
        let small = DTYPES.into_iter().flat_map(|dtype| {
            let extents = [(1, 1), (1, 5), (5, 1), (3, 2), (2, 3), (17, 32), (33, 17), (40, 3), (3, 40)].into_iter();
            extents.flat_map(move |(m, n)| kinds(dtype).into_iter().map(move |kind| case(dtype, 1 + m % 3, m, n, kind)))
        });
        check_all(small, check_rectangular);
        check_all(DTYPES.map(|dtype| case(dtype, 2, 100, 70, Kind::RankDeficient)), check_rectangular);
        check_all(DTYPES.map(|dtype| case(dtype, 500, 3, 4, Kind::Random)), check_rectangular);
    });
}

fn failure<T>(result: cuprum_core::Result<T>) -> (LinAlgFailure, usize) {
    match result.err() {
        Some(Error::LinAlg { failure, matrix, .. }) => (failure, matrix),
        other => panic!("{other:?}"),
    }
}

#[test]
fn matrices_without_a_result_are_reported_when_the_result_is_read() {
    on_device(|_| {
        for n in [2usize, 6, 40] {
            let mut values = vec![0.0; 500 * n * n];
            for (index, value) in values.iter_mut().enumerate() {
                let (matrix, i, j) = (index / (n * n), index / n % n, index % n);
                *value = if matrix == 321 { 1.0 } else { f64::from(i == j) };
            }
            let a = NdArray::from_vec(values, [10, 50, n, n]).unwrap();
            assert_eq!(failure(inv(&a).and_then(|x| x.to_vec::<f64>())), (LinAlgFailure::Singular, 321));
            assert_eq!(failure(solve(&a, &a).and_then(|x| x.to_vec::<f64>())), (LinAlgFailure::Singular, 321));
            assert_eq!(failure(cholesky(&a, true).and_then(|x| x.to_vec::<f64>())), (LinAlgFailure::NotPositiveDefinite, 321));
        }
    });
}

#[test]
fn nan_and_infinity() {
    on_device(|_| {
        for n in [2usize, 20] {
            for bad in [f64::NAN, f64::INFINITY] {
                let a = NdArray::from_vec(vec![bad; n * n], [n, n]).unwrap();
                assert_eq!(failure(svd(&a, true).and_then(|(_, s, _)| s.to_vec::<f64>())).0, LinAlgFailure::SvdDiverges);
                assert_eq!(failure(eigh(&a, Triangle::Lower).and_then(|(w, _)| w.to_vec::<f64>())).0, LinAlgFailure::EigenvaluesDiverge);
                assert_eq!(failure(cholesky(&a, false).and_then(|x| x.to_vec::<f64>())).0, LinAlgFailure::NotPositiveDefinite);
            }
        }
    });
}
