//! Decompositions and linear systems, by the residuals of LAPACK's tests.

use cuprum_core::error::LinAlgFailure;
use cuprum_core::ops::linalg::{Triangle, cholesky, det, eig, eigh, inv, lu_factor, qr, slogdet, solve, svd, svdvals};
use cuprum_core::testing::linalg::{Case, Kind, check_eigen, check_rectangular, check_square};
use cuprum_core::{DType, Device, Error, NdArray, array};

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];

fn case(dtype: DType, batch: usize, rows: usize, columns: usize, kind: Kind) -> Case {
    Case { device: Device::CPU, dtype, batch, rows, columns, kind }
}

fn kinds(dtype: DType) -> Vec<Kind> {
    let far = if dtype.real() == DType::F32 { 1e18 } else { 1e30 };
    vec![Kind::Random, Kind::Graded, Kind::RankDeficient, Kind::Scaled(far), Kind::Scaled(1.0 / far), Kind::Zero]
}

#[test]
fn square_matrices() {
    for dtype in DTYPES {
        for n in [1, 2, 3, 17, 32, 33] {
            for kind in kinds(dtype) {
                check_square(case(dtype, 1 + n % 3, n, n, kind)).unwrap();
                check_eigen(case(dtype, 1 + n % 3, n, n, kind)).unwrap();
            }
        }
        check_square(case(dtype, 1, 100, 100, Kind::Random)).unwrap();
        check_square(case(dtype, 300, 3, 3, Kind::Random)).unwrap();
    }
}

#[test]
fn rectangular_matrices() {
    for dtype in DTYPES {
        for (m, n) in [(1, 1), (1, 5), (5, 1), (3, 2), (2, 3), (17, 32), (33, 17), (40, 3), (3, 40)] {
            for kind in kinds(dtype) {
                check_rectangular(case(dtype, 1 + m % 3, m, n, kind)).unwrap();
            }
        }
        check_rectangular(case(dtype, 1, 100, 70, Kind::Random)).unwrap();
        check_rectangular(case(dtype, 1, 64, 100, Kind::RankDeficient)).unwrap();
    }
}

/// Tests matrices large enough for divide-and-conquer algorithms.
#[test]
fn large_matrices() {
    check_square(case(DType::F64, 1, 150, 150, Kind::Random)).unwrap();
    check_eigen(case(DType::F64, 1, 150, 150, Kind::Random)).unwrap();
    check_rectangular(case(DType::C128, 1, 150, 140, Kind::RankDeficient)).unwrap();
}

#[test]
fn matrices_without_elements() {
    let zeros = |shape: &[usize]| cuprum_core::zeros(shape, DType::F64).unwrap();
    assert_eq!(solve(&zeros(&[0, 0]), &zeros(&[0, 3])).unwrap().shape(), &[0, 3]);
    assert_eq!(solve(&zeros(&[4, 0, 0]), &zeros(&[0])).unwrap().shape(), &[4, 0]);
    assert_eq!(inv(&zeros(&[2, 0, 0])).unwrap().shape(), &[2, 0, 0]);
    assert_eq!(det(&zeros(&[2, 0, 0])).unwrap().to_vec::<f64>().unwrap(), [1.0, 1.0]);
    assert_eq!(slogdet(&zeros(&[0, 0])).unwrap().1.item().unwrap(), 0.0);
    assert_eq!(lu_factor(&zeros(&[0, 2])).unwrap().1.shape(), &[0]);
    let (q, r) = qr(&zeros(&[3, 0]), cuprum_core::ops::linalg::QrMode::Complete).unwrap();
    assert_eq!((q.to_vec::<f64>().unwrap(), r.shape()), (vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], &[3, 0][..]));
    let (u, s, vh) = svd(&zeros(&[0, 2]), true).unwrap();
    assert_eq!((u.shape(), s.shape(), vh.to_vec::<f64>().unwrap()), (&[0, 0][..], &[0][..], vec![1.0, 0.0, 0.0, 1.0]));
    assert_eq!(eigh(&zeros(&[3, 0, 0]), Triangle::Lower).unwrap().1.shape(), &[3, 0, 0]);
    assert_eq!(eig(&zeros(&[0, 3, 3])).unwrap().0.shape(), &[0, 3]);
}

fn failure<T>(result: cuprum_core::Result<T>) -> (LinAlgFailure, usize, usize) {
    match result.err() {
        Some(Error::LinAlg { failure, matrix, batch, .. }) => (failure, matrix, batch),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_matrix_without_a_result_is_named() {
    let mut values = vec![[[2.0, 1.0], [1.0, 2.0]]; 500];
    values[321] = [[1.0, 1.0], [1.0, 1.0]];
    values[400] = [[0.0, 0.0], [0.0, 0.0]];
    let a = NdArray::from_vec(values.into_iter().flatten().flatten().collect::<Vec<f64>>(), [10, 50, 2, 2]).unwrap();
    assert_eq!(failure(inv(&a)), (LinAlgFailure::Singular, 321, 500));
    assert_eq!(failure(solve(&a, &array![1.0, 2.0])), (LinAlgFailure::Singular, 321, 500));
    assert_eq!(failure(cholesky(&a, false)), (LinAlgFailure::NotPositiveDefinite, 321, 500));
    let message = inv(&a).unwrap_err().to_string();
    assert_eq!(message, "[inv] Singular matrix (matrix 321 of a batch of 500)");
    assert_eq!(inv(&array![[0.0]]).unwrap_err().to_string(), "[inv] Singular matrix");
    assert_eq!(det(&a).unwrap().to_vec::<f64>().unwrap()[320..322], [3.0, 0.0]);
}

#[test]
fn nan_and_infinity() {
    for bad in [f64::NAN, f64::INFINITY] {
        let a = array![[1.0, bad], [bad, 1.0]];
        assert_eq!(failure(svd(&a, true)).0, LinAlgFailure::SvdDiverges);
        assert_eq!(failure(svdvals(&a)).0, LinAlgFailure::SvdDiverges);
        assert_eq!(failure(eigh(&a, Triangle::Lower)).0, LinAlgFailure::EigenvaluesDiverge);
        assert_eq!(failure(eig(&a)).0, LinAlgFailure::NotFinite);
        assert_eq!(failure(cholesky(&a, false)).0, LinAlgFailure::NotPositiveDefinite);
    }
    assert!(inv(&array![[f64::NAN]]).unwrap().item().unwrap().as_f64().is_nan());
    // The upper triangle is not read.
    let a = array![[4.0, f64::NAN], [2.0, 5.0]];
    assert_eq!(cholesky(&a, false).unwrap(), array![[2.0, 0.0], [1.0, 2.0]]);
    assert!(eigh(&a, Triangle::Lower).is_ok());
}

#[test]
fn refused_arguments() {
    let text = |result: cuprum_core::Result<NdArray>| result.unwrap_err().to_string();
    let f64s = |shape: &[usize]| cuprum_core::ones(shape, DType::F64).unwrap();
    assert_eq!(text(inv(&f64s(&[2, 3]))), "[inv] Last 2 dimensions of the array must be square: (2, 3)");
    assert_eq!(text(det(&f64s(&[3]))), "[det] 1-dimensional array given. Array must be at least two-dimensional: (3,)");
    assert!(text(solve(&f64s(&[2, 2]), &f64s(&[3]))).contains("2 columns need as many rows on the right, not 3"));
    let half = f64s(&[2, 2]).astype(DType::F16).unwrap();
    assert!(text(inv(&half)).contains("array type float16 is unsupported in linalg; use astype('float32')"));
}
