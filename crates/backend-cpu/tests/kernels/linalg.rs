//! Decompositions and linear systems, by the residuals of LAPACK's tests.

use cuprum_core::error::LinAlgFailure;
use cuprum_core::ops::linalg::{
    Form, QrMode, Triangle, cholesky, det, eig, eigh, eigvals, inv, logm, lu_factor, qr, qr_raw, schur, slogdet, solve, solve_triangular,
    sqrtm, svd, svdvals,
};
use cuprum_core::random::Generator;
use cuprum_core::testing::linalg::{
    Case, MatrixKind, check_eigen, check_functions, check_hermitian, check_long, check_rectangular, check_schur, check_square,
};
use cuprum_core::{Complex, DType, Device, Error, NdArray, array, axis, eye};

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];

fn case(dtype: DType, batch: usize, rows: usize, columns: usize, kind: MatrixKind) -> Case {
    Case { device: Device::CPU, dtype, batch, rows, columns, kind }
}

fn kinds(dtype: DType) -> Vec<MatrixKind> {
    let far = if dtype.real() == DType::F32 { 1e18 } else { 1e30 };
    vec![
        MatrixKind::Random,
        MatrixKind::Graded,
        MatrixKind::RankDeficient,
        MatrixKind::Scaled(far),
        MatrixKind::Scaled(1.0 / far),
        MatrixKind::Zero,
    ]
}

#[test]
fn square_matrices() {
    for dtype in DTYPES {
        for n in [1, 2, 3, 17, 32, 33] {
            for kind in kinds(dtype) {
                check_square(case(dtype, 1 + n % 3, n, n, kind)).unwrap();
                check_eigen(case(dtype, 1 + n % 3, n, n, kind)).unwrap();
            }
            if dtype.real() == DType::F64 {
                check_eigen(case(dtype, 1, n, n, MatrixKind::Scaled(1e136))).unwrap();
            }
        }
        check_square(case(dtype, 1, 100, 100, MatrixKind::Random)).unwrap();
        check_square(case(dtype, 300, 3, 3, MatrixKind::Random)).unwrap();
    }
}

#[test]
fn rectangular_matrices() {
    for dtype in DTYPES {
        for (m, n) in [(1, 1), (1, 5), (5, 1), (3, 2), (2, 3), (17, 32), (33, 17), (40, 3), (3, 40)] {
            for kind in kinds(dtype) {
                check_rectangular(case(dtype, 1 + m % 3, m, n, kind)).unwrap();
            }
            if dtype.real() == DType::F64 {
                check_rectangular(case(dtype, 1, m, n, MatrixKind::Scaled(1e136))).unwrap();
            }
        }
        check_rectangular(case(dtype, 1, 100, 70, MatrixKind::Random)).unwrap();
        check_rectangular(case(dtype, 1, 64, 100, MatrixKind::RankDeficient)).unwrap();
    }
}

/// Tests more matrices than threads.
#[test]
fn batches_of_small_matrices() {
    for dtype in [DType::F32, DType::F64] {
        for kind in kinds(dtype) {
            [1, 2, 5].into_iter().for_each(|n| check_square(case(dtype, 37, n, n, kind)).unwrap());
        }
        [17, 32, 33].into_iter().for_each(|n| check_square(case(dtype, 19, n, n, MatrixKind::Graded)).unwrap());
        check_square(case(dtype, 10, 32, 32, MatrixKind::RankDeficient)).unwrap();
    }
}

/// Tests matrices large enough for divide-and-conquer algorithms, and for several blocks of columns.
#[test]
fn large_matrices() {
    for dtype in DTYPES {
        check_square(case(dtype, 1, 64, 64, MatrixKind::Graded)).unwrap();
        check_square(case(dtype, 1, 220, 220, MatrixKind::Random)).unwrap();
    }
    check_eigen(case(DType::F64, 1, 150, 150, MatrixKind::Random)).unwrap();
    check_rectangular(case(DType::F64, 1, 230, 205, MatrixKind::Random)).unwrap();
    check_rectangular(case(DType::F64, 1, 205, 230, MatrixKind::Graded)).unwrap();
    check_rectangular(case(DType::C128, 1, 150, 140, MatrixKind::RankDeficient)).unwrap();
}

/// Columns that depend on others, up to a remainder that is small relative to the number of rows.
#[test]
fn long_matrices() {
    let kinds = [
        MatrixKind::Random,
        MatrixKind::Graded,
        MatrixKind::RankDeficient,
        MatrixKind::Hilbert,
        MatrixKind::NearlyEqual,
        MatrixKind::Vandermonde,
        MatrixKind::BlocksOfOnes(1),
        MatrixKind::TiledIdentity(3),
        MatrixKind::Zero,
    ];
    for dtype in DTYPES {
        for kind in kinds {
            for (m, n) in [(400, 30), (30, 400), (1000, 3), (23, 12)] {
                check_long(case(dtype, 1 + m % 3, m, n, kind)).unwrap();
            }
        }
    }
    for kind in [MatrixKind::Hilbert, MatrixKind::NearlyEqual, MatrixKind::Random] {
        check_long(case(DType::F32, 1, 10_000, 10, kind)).unwrap();
        check_long(case(DType::C64, 1, 10_000, 3, kind)).unwrap();
    }
    for kind in [MatrixKind::Vandermonde, MatrixKind::Random] {
        check_long(case(DType::F32, 1, 600_000, 1, kind)).unwrap();
        check_long(case(DType::F32, 1, 300_000, 3, kind)).unwrap();
    }
}

/// Matrices of repeated elements, whose singular values and eigenvalues are mostly zeros or equal. Divide and conquer starts at 128 rows.
#[test]
fn structured_matrices() {
    for (n, kind) in [
        (128, MatrixKind::BlocksOfOnes(1)),
        (129, MatrixKind::BlocksOfOnes(1)),
        (132, MatrixKind::BlocksOfOnes(3)),
        (150, MatrixKind::BlocksOfOnes(3)),
        (130, MatrixKind::TiledIdentity(2)),
    ] {
        check_rectangular(case(DType::F64, 1, n, n, kind)).unwrap();
        check_hermitian(case(DType::F64, 1, n, n, kind)).unwrap();
    }
    check_rectangular(case(DType::C128, 1, 150, 150, MatrixKind::BlocksOfOnes(3))).unwrap();
    check_rectangular(case(DType::F32, 1, 140, 150, MatrixKind::BlocksOfOnes(3))).unwrap();
}

/// Returns the norm of `a @ v - u @ diag(s)`, relative to the largest singular value, and the larger error of the bases of the singular
/// vectors, in units of the rounding error times the extent.
fn errors_of_svd(a: &NdArray) -> (f64, f64) {
    let (u, s, vh) = svd(a, true).unwrap();
    let size = |a: NdArray| (&a * &a).sum(()).unwrap().item().unwrap().as_f64().sqrt();
    let unit = a.shape()[0] as f64 * f64::EPSILON;
    let product = (&u * &s).matmul(&vh).unwrap();
    let eye = eye(a.shape()[0], a.shape()[0], 0, DType::F64).unwrap();
    let basis_error = |q: &NdArray| size(q.matmul(&q.t().unwrap()).unwrap() - &eye);
    (size(product - a) / s.max(()).unwrap().item().unwrap().as_f64() / unit, basis_error(&u).max(basis_error(&vh)) / unit)
}

/// Returns a square matrix of extent `n` from its elements.
fn square(n: usize, element: impl Fn(usize, usize) -> f64) -> NdArray {
    NdArray::from_vec((0..n * n).map(|k| element(k / n, k % n)).collect::<Vec<f64>>(), [n, n]).unwrap()
}

/// Asserts that the decomposition of `a` is accurate, and that `a` has `rank` singular values above rounding errors.
fn assert_accurate_svd_of_rank(a: &NdArray, rank: usize) {
    let (residual, basis) = errors_of_svd(a);
    assert!(residual < 4.0 && basis < 4.0, "{:?}, rank {rank}: {residual} {basis}", a.shape());
    let s = svdvals(a).unwrap().to_vec::<f64>().unwrap();
    let computed_rank = s.iter().filter(|value| **value > s[0] * s.len() as f64 * f64::EPSILON).count();
    assert_eq!(computed_rank, rank, "{:?}: {s:?}", a.shape());
}

/// Square matrices of low rank with other structure than [`structured_matrices`]. faer's divide and conquer returns wrong vectors of some
/// of them.
#[test]
fn singular_values_of_rank_deficient_matrices() {
    let gram = |n: usize, rank: usize, seed: u64| {
        let b = Generator::new(seed).normal(0.0, 1.0, [n, rank], DType::F64).unwrap();
        b.matmul(&b.t().unwrap()).unwrap()
    };
    let cosines = square(128, |i, j| if j < 64 { ((i * j) as f64).powf(1.3).cos() } else { 0.0 });
    for (rank, a) in [
        (64, gram(128, 64, 1)),
        (80, gram(160, 80, 2)),
        (64, cosines.matmul(&cosines.t().unwrap()).unwrap()),
        (129, square(256, |i, j| (std::f64::consts::TAU * (i * j) as f64 / 256.0).cos())),
        (4, square(128, |i, j| ((i * j) % 7) as f64)),
    ] {
        assert_accurate_svd_of_rank(&a, rank);
    }
}

/// Toeplitz matrices of low rank, for which faer's divide and conquer fails.
#[test]
#[ignore = "takes minutes without optimisation"]
fn singular_values_of_toeplitz_matrices() {
    for (n, period) in [(200, 5), (280, 7)] {
        assert_accurate_svd_of_rank(&square(n, |i, j| ((n - n % period + period + i - j) % period + 1) as f64), period);
    }
}

/// Real matrices with repeated complex eigenvalues, which have independent eigenvectors.
#[test]
fn eigenvectors_of_repeated_complex_eigenvalues() {
    let kron = |c: &[f64], n: usize, copies: usize| {
        square(n * copies, |i, j| if i % copies == j % copies { c[i / copies * n + j / copies] } else { 0.0 })
    };
    let difference = |n: usize| square(n, |i, j| f64::from(u8::from((j + 1) % n == i)) - f64::from(u8::from((i + 1) % n == j)));
    for a in [
        kron(&[0.0, 0.0, -1.0, -1.0, 3.0, 3.0, 1.0, 3.0, 0.0], 3, 2),
        kron(&[0.0, 2.0, 0.0, -1.0, 1.0, -2.0, -1.0, 2.0, 2.0, 1.0, 3.0, 0.0, -2.0, 0.0, -2.0, -2.0], 4, 4),
        difference(30),
        difference(64),
    ] {
        let n = a.shape()[0];
        let (w, v) = eig(&a).unwrap();
        let residual = a.matmul(&v).unwrap() - &v * &w;
        let largest = |a: &NdArray| complex(a).iter().map(|x| x.norm()).fold(0.0, f64::max);
        assert!(largest(&residual) < 1e-13 * n as f64, "{n}: {}", largest(&residual));
        let inverse = inv(&v).unwrap();
        assert!(largest(&inverse) < 100.0, "{n}: eigenvectors are nearly dependent: {}", largest(&inverse));
    }
}

/// Returns `a` with row `i` multiplied and column `i` divided by `2^(step * i)`.
fn graded_similar(a: impl Fn(usize, usize) -> f64, n: usize, step: i32) -> NdArray {
    let element = |k: usize| a(k / n, k % n) * 2f64.powi(step * (k / n) as i32 - step * (k % n) as i32);
    NdArray::from_vec((0..n * n).map(element).collect::<Vec<f64>>(), [n, n]).unwrap()
}

/// Returns the values as complex numbers.
fn complex(a: &NdArray) -> Vec<Complex<f64>> {
    a.astype(DType::C128).unwrap().to_vec().unwrap()
}

/// Similarity transformations by diagonal matrices leave eigenvalues unchanged, and their relative errors small.
#[test]
fn eigenvalues_of_badly_scaled_matrices() {
    for n in [2usize, 3, 10, 25] {
        // The eigenvalues of `min(i, j) + 1` are known.
        let known = |k: usize| 0.25 / ((2 * k + 1) as f64 * std::f64::consts::FRAC_PI_2 / (2 * n + 1) as f64).sin().powi(2);
        for step in [0, 1, 5, -5, 11] {
            for factor in [Complex::ONE, Complex::new(3.0, -4.0)] {
                let a = graded_similar(|i, j| (i.min(j) + 1) as f64, n, step);
                let a = if factor.im == 0.0 { a } else { a * factor };
                let (w, v) = eig(&a).unwrap();
                for w in [&w, &eigvals(&a).unwrap()] {
                    let mut w: Vec<_> = complex(w).into_iter().map(|w| w / factor).collect();
                    w.sort_by(|x, y| y.re.total_cmp(&x.re));
                    for (k, w) in w.iter().enumerate() {
                        assert!((w - known(k)).norm() < 1e-12 * n as f64 * known(k), "{n} {step} {k}: {w} {}", known(k));
                    }
                }
                // The residual is small relative to the vector of the unscaled matrix.
                let (w, v) = (complex(&w), complex(&v));
                let unscaled = |i: usize, j: usize| v[i * n + j] * 2f64.powi(-step * i as i32);
                for (j, w) in w.iter().enumerate() {
                    let size = (0..n).map(|i| unscaled(i, j).norm()).fold(0.0, f64::max);
                    for i in 0..n {
                        let product: Complex<f64> = (0..n).map(|k| factor * (i.min(k) + 1) as f64 * unscaled(k, j)).sum();
                        let error = (product - w * unscaled(i, j)).norm();
                        assert!(error <= 1e-14 * (n * n) as f64 * size * factor.norm(), "{n} {step} {j}: {error}");
                    }
                }
            }
        }
    }
    // The roots of x^4 + 1e10 x^3 + x^2 + 1e-10 x + 1e-25 are about -1e10, -1e-15, and a pair of magnitude 1e-10.
    let companion = array![[-1e10, -1.0, -1e-10, -1e-25], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]];
    let roots = complex(&eigvals(&companion).unwrap());
    assert!(roots.iter().filter(|w| (w.norm() - 1e-10).abs() < 1e-13).count() == 2, "{roots:?}");
}

/// The diagonal of a permuted triangular matrix holds its eigenvalues, which are exact.
#[test]
fn eigenvalues_of_permuted_triangular_matrices() {
    for n in [1usize, 2, 3, 7, 20, 33] {
        let order = |i: usize| (i * 2 + n / 2) % n.max(1);
        let order: Vec<usize> = if n % 2 == 1 { (0..n).map(order).collect() } else { (0..n).rev().collect() };
        let element = |i: usize, j: usize| ((i * 37 + j * 101) % 89) as f64 / 16.0 + 1.0;
        for upper in [true, false] {
            let value = |k: usize| {
                let (i, j) = (order[k / n], order[k % n]);
                if i == j || (i < j) == upper { element(i, j) } else { 0.0 }
            };
            let a = NdArray::from_vec((0..n * n).map(value).collect::<Vec<f64>>(), [n, n]).unwrap();
            for a in [a.clone(), a.astype(DType::C128).unwrap()] {
                let mut w: Vec<f64> = eigvals(&a).unwrap().real().unwrap().to_vec::<f64>().unwrap();
                let mut diagonal: Vec<f64> = (0..n).map(|i| element(i, i)).collect();
                [&mut w, &mut diagonal].into_iter().for_each(|values| values.sort_by(f64::total_cmp));
                assert_eq!(w, diagonal);
                let (w, v) = eig(&a).unwrap();
                let residual = a.astype(DType::C128).unwrap().matmul(&v).unwrap() - &v * &w;
                let worst = residual.abs().unwrap().to_vec::<f64>().unwrap().into_iter().fold(0.0, f64::max);
                assert!(worst <= 1e-14 * (n * n) as f64, "{n} {upper}: {worst}");
            }
        }
    }
}

/// Rotations whose squares do not sum to 1 make the basis drift from a unitary matrix.
#[test]
fn bases_of_complex_schur_forms_are_unitary() {
    let n = 60;
    let value = |k: usize| Complex::new(((k * 7919) % 1009) as f64 / 1009.0 - 0.5, ((k * 104_729) % 997) as f64 / 997.0 - 0.5);
    let a = NdArray::from_vec((0..n * n).map(value).collect::<Vec<_>>(), [n, n]).unwrap();
    let (t, z) = schur(&a).unwrap();
    let adjoint = z.t().unwrap().conj().unwrap();
    let size = |x: &NdArray| x.abs().unwrap().to_vec::<f64>().unwrap().iter().map(|x| x * x).sum::<f64>().sqrt();
    let unit = cuprum_core::eye(n, n, 0, DType::C128).unwrap();
    let error = size(&cuprum_core::subtract(adjoint.matmul(&z).unwrap(), &unit).unwrap()) / f64::EPSILON;
    assert!(error < 5.0 * n as f64, "{error}");
    let product = z.matmul(&t).unwrap().matmul(&adjoint).unwrap();
    let error = size(&cuprum_core::subtract(&product, &a).unwrap()) / size(&a) / f64::EPSILON;
    assert!(error < n as f64, "{error}");
}

/// Takes minutes without optimisation: `cargo test --release -p cuprum-backend-cpu --test kernels linalg -- --ignored`.
/// Iterations by divide and conquer, from 128 rows on, have their own tolerances.
#[test]
fn large_hermitian_matrices_of_every_scale() {
    for (dtype, n) in [(DType::F64, 128), (DType::F64, 129), (DType::F64, 200), (DType::C128, 130), (DType::F32, 130)] {
        let scales = if dtype == DType::F32 { [1e18, 1e-18] } else { [1e5, 1e150] };
        for scale in scales {
            check_eigen(case(dtype, 1, n, n, MatrixKind::Scaled(scale))).unwrap();
        }
    }
}

#[test]
#[ignore = "slow without optimisation"]
fn matrices_of_extent_1000() {
    for dtype in DTYPES {
        check_square(case(dtype, 1, 1000, 1000, MatrixKind::Random)).unwrap();
        check_eigen(case(dtype, 1, 1000, 1000, MatrixKind::Random)).unwrap();
        check_rectangular(case(dtype, 1, 1000, 1000, MatrixKind::Graded)).unwrap();
        check_rectangular(case(dtype, 1, 1000, 700, MatrixKind::RankDeficient)).unwrap();
    }
}

/// The bits of all results are equal on one and on several threads.
#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let n = 250;
    let values = (0..n * n).map(|k| ((k * 7919) % 1009) as f64 / 1009.0 - 0.5).collect::<Vec<f64>>();
    let a = NdArray::from_vec(values, [n, n]).unwrap();
    let definite = a.matmul(&a.swapaxes(0, 1).unwrap()).unwrap() + cuprum_core::eye(n, n, 0, DType::F64).unwrap();
    let definite = definite.copy().unwrap();
    let results = |threads| {
        let compute = || -> cuprum_core::Result<Vec<f64>> {
            let (q, r) = qr(&a, QrMode::Complete)?;
            let arrays = [solve(&a, &definite)?, inv(&a)?, det(&a)?, cholesky(&definite, true)?, q, r, svd(&a, true)?.0];
            let arrays = arrays.into_iter().chain([lu_factor(&a)?.0, solve_triangular(&a, &definite, Triangle::Lower, Form::Plain, true)?]);
            arrays.map(|a| a.to_vec::<f64>()).collect::<cuprum_core::Result<Vec<_>>>().map(|v| v.concat())
        };
        cuprum_backend_cpu::with_threads(threads, compute).unwrap().unwrap()
    };
    let (one, four) = (results(1), results(4));
    assert!(one.iter().zip(&four).all(|(x, y)| x.to_bits() == y.to_bits()));
}

/// A matrix of a batch with NaN does not change the results of the others.
#[test]
fn small_matrices_do_not_affect_each_other() {
    let (count, n) = (20, 6);
    let value = |k: usize| ((k * 7919) % 1009) as f64 / 1009.0 + if (k % (n * n)).is_multiple_of(n + 1) { 3.0 } else { 0.0 };
    let values: Vec<f64> = (0..count * n * n).map(value).collect();
    let mut spoiled = values.clone();
    spoiled[5 * n * n..6 * n * n].fill(f64::NAN);
    let (a, spoiled) = (NdArray::from_vec(values, [count, n, n]).unwrap(), NdArray::from_vec(spoiled, [count, n, n]).unwrap());
    let len = n * n;
    for f in [inv, |a: &NdArray| solve(a, a)] {
        let (x, y) = (f(&a).unwrap().to_vec::<f64>().unwrap(), f(&spoiled).unwrap().to_vec::<f64>().unwrap());
        assert!(y[5 * len..6 * len].iter().all(|v| v.is_nan()));
        assert_eq!((&x[..5 * len], &x[6 * len..]), (&y[..5 * len], &y[6 * len..]));
    }
    let (x, y) = (det(&a).unwrap().to_vec::<f64>().unwrap(), det(&spoiled).unwrap().to_vec::<f64>().unwrap());
    assert!(y[5].is_nan());
    assert_eq!((&x[..5], &x[6..]), (&y[..5], &y[6..]));
    assert_eq!(failure(cholesky(&spoiled, false)), (LinAlgFailure::NotPositiveDefinite, 5, count));
}

#[test]
fn schur_forms_and_functions() {
    // Without optimisation, the larger matrices take two minutes. `scripts/test_simd_levels.sh` tests them.
    let (sizes, largest): (&[usize], usize) =
        if cfg!(debug_assertions) { (&[1, 2, 3, 4, 17], 36) } else { (&[1, 2, 3, 4, 17, 32, 33], 120) };
    for dtype in DTYPES {
        for &n in sizes {
            for kind in kinds(dtype) {
                check_schur(case(dtype, 1 + n % 3, n, n, kind)).unwrap();
                check_functions(case(dtype, 1 + n % 3, n, n, kind)).unwrap();
            }
        }
        check_schur(case(dtype, 1, largest, largest, MatrixKind::Random)).unwrap();
        check_functions(case(dtype, 1, largest, largest, MatrixKind::Graded)).unwrap();
        check_schur(case(dtype, 300, 3, 3, MatrixKind::Random)).unwrap();
        check_functions(case(dtype, 40, 5, 5, MatrixKind::Random)).unwrap();
    }
}

/// Returns the largest magnitude of an element of `a - b`, as a multiple of the largest magnitude of `b`.
fn relative_error(a: &NdArray, b: &NdArray) -> f64 {
    let largest = |x: &NdArray| x.abs().unwrap().astype(DType::F64).unwrap().to_vec::<f64>().unwrap().into_iter().fold(0.0, f64::max);
    largest(&cuprum_core::subtract(a, b).unwrap()) / largest(b)
}

/// Normal matrices (rotations and permutations), Jordan blocks and triangular matrices.
#[test]
fn schur_forms_of_normal_and_defective_matrices() {
    for n in [2, 3, 5, 12, 40] {
        let shift = |k: usize| f64::from(u8::from(k / n == (k % n + 1) % n));
        let jordan = |value: f64| move |k: usize| if k / n == k % n { value } else { f64::from(u8::from(k % n == k / n + 1)) };
        let rotation = |k: usize| match (k / n, k % n) {
            (i, j) if i / 2 == j / 2 && (n % 2 == 0 || i + 1 < n && j + 1 < n) => {
                let (sin, cos) = (0.1 + (i / 2) as f64).sin_cos();
                if i == j {
                    cos
                } else if i > j {
                    sin
                } else {
                    -sin
                }
            }
            (i, j) => f64::from(u8::from(i == j)),
        };
        let symmetric = |k: usize| 1.0 / ((k / n + k % n) as f64 + 1.0);
        let skew = |k: usize| (k / n) as f64 - (k % n) as f64;
        let matrices: [&dyn Fn(usize) -> f64; 7] = [&shift, &jordan(0.0), &jordan(1.0), &jordan(-1e30), &rotation, &symmetric, &skew];
        for (which, element) in matrices.into_iter().enumerate() {
            let a = NdArray::from_vec((0..n * n).map(element).collect::<Vec<f64>>(), [n, n]).unwrap();
            for a in [a.clone(), a.astype(DType::C128).unwrap()] {
                let (t, z) = schur(&a).unwrap();
                let adjoint = if z.dtype().is_complex() { z.t().unwrap().conj().unwrap() } else { z.t().unwrap() };
                let product = z.matmul(&t).unwrap().matmul(&adjoint).unwrap();
                let error = relative_error(&product, &a) / f64::EPSILON;
                assert!(error < 30.0 * n as f64, "matrix {which} of extent {n}: {error}");
                let unit = cuprum_core::eye(n, n, 0, DType::F64).unwrap();
                let error = relative_error(&adjoint.matmul(&z).unwrap(), &unit) / f64::EPSILON;
                assert!(error < 30.0 * n as f64, "basis of matrix {which} of extent {n}: {error}");
            }
        }
    }
}

/// Nilpotent matrices have exact logarithms: the series ends.
#[test]
fn logarithms_of_unipotent_matrices() {
    for n in [2, 3, 6, 10] {
        let unipotent = |k: usize| f64::from(u8::from(k % n == k / n || k % n == k / n + 1));
        let a = NdArray::from_vec((0..n * n).map(unipotent).collect::<Vec<f64>>(), [n, n]).unwrap();
        // log(1 + x) = x - x² / 2 + ..., where xᵏ has ones on diagonal k.
        let expected = |k: usize| match (k % n).checked_sub(k / n) {
            None | Some(0) => 0.0,
            Some(k) => {
                if k % 2 == 1 {
                    1.0 / k as f64
                } else {
                    -1.0 / k as f64
                }
            }
        };
        let expected = NdArray::from_vec((0..n * n).map(expected).collect::<Vec<f64>>(), [n, n]).unwrap();
        assert!(relative_error(&logm(&a).unwrap(), &expected) < 1e-14 * n as f64);
    }
}

#[test]
fn logarithms_near_the_ends_of_the_range() {
    let log = logm(&array![[1e-300, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.7e308]]).unwrap();
    assert_eq!(log, array![[1e-300f64.ln(), 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.7e308f64.ln()]]);
}

#[test]
fn functions_on_the_branch_cut() {
    let minus_one = array![[-1.0, 0.0], [0.0, -1.0]];
    let log = logm(&minus_one).unwrap().to_vec::<Complex<f64>>().unwrap();
    assert_eq!(log, [Complex::new(0.0, std::f64::consts::PI), Complex::ZERO, Complex::ZERO, Complex::new(0.0, std::f64::consts::PI)]);
    assert_eq!(sqrtm(&minus_one).unwrap().to_vec::<Complex<f64>>().unwrap()[0], Complex::I);
    // Rotations by less than a half turn have real logarithms: the angle.
    let angle = 3.0f64;
    let rotation = array![[angle.cos(), -angle.sin()], [angle.sin(), angle.cos()]];
    let log = logm(&rotation).unwrap();
    assert_eq!(log.dtype(), DType::F64);
    assert!(relative_error(&log, &array![[0.0, -angle], [angle, 0.0]]) < 1e-15 * 10.0);
    // One matrix with a negative eigenvalue makes the whole batch complex.
    let batch = cuprum_core::stack([&array![[1.0]], &array![[-4.0]]], 0).unwrap();
    assert_eq!(sqrtm(&batch).unwrap().to_vec::<Complex<f64>>().unwrap(), [Complex::ONE, Complex::new(0.0, 2.0)]);
}

/// Eigenvalues of opposite signs are on both sides of the branch cut.
#[test]
fn logarithms_of_integer_matrices_equal_the_closed_form() {
    // All elements from -4 to 4. The closed form needs distinct eigenvalues.
    let elements = |n: usize| [n / 729, n / 81 % 9, n / 9 % 9, n % 9].map(|digit| digit as f64 - 4.0);
    let has_closed_form = |&[a, b, c, d]: &[f64; 4]| a * d != b * c && (a - d) * (a - d) + 4.0 * b * c != 0.0;
    let matrices: Vec<[f64; 4]> = (0..9 * 729).map(elements).filter(has_closed_form).collect();
    let a = NdArray::from_vec(matrices.concat(), [matrices.len(), 2, 2]).unwrap();
    let log = logm(&a).unwrap().to_vec::<Complex<f64>>().unwrap();
    for ([a, b, c, d], log) in matrices.into_iter().zip(log.chunks(4)) {
        let root = Complex::from(0.25 * (a - d) * (a - d) + b * c).sqrt();
        let (first, second) = (Complex::from(0.5 * (a + d)) + root, Complex::from(0.5 * (a + d)) - root);
        let slope = (second.ln() - first.ln()) / (second - first);
        let expected = [first.ln() + slope * (a - first), slope * b, slope * c, first.ln() + slope * (d - first)];
        let error = log.iter().zip(expected).map(|(x, y)| (x - y).norm()).fold(0.0, f64::max);
        assert!(error < 1e-12, "[[{a}, {b}], [{c}, {d}]]: {log:?}, expected {expected:?}");
    }
}

/// Returns the exponential of a stack of matrices, by a Taylor polynomial of `a / 1024` and squares.
fn exponential(a: &NdArray) -> NdArray {
    let n = a.shape()[2];
    let (x, unit) = (a * (1.0 / 1024.0), cuprum_core::eye(n, n, 0, DType::C128).unwrap());
    let sum = (1..=10).rev().fold(unit.broadcast_to(a.shape()).unwrap(), |sum, k| &unit + x.matmul(&sum).unwrap() * (1.0 / f64::from(k)));
    (0..10).fold(sum, |power, _| power.matmul(&power).unwrap())
}

#[test]
fn exponentials_of_logarithms_are_the_matrices() {
    for n in 3..=8 {
        for dtype in [DType::F64, DType::C128] {
            let mut state = n as u64;
            let mut next = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 32) as f64 / 2f64.powi(31) - 1.0
            };
            let count = 100;
            let parts = [0; 2].map(|_| NdArray::from_vec((0..count * n * n).map(|_| next()).collect::<Vec<f64>>(), [count, n, n]).unwrap());
            let a = if dtype.is_complex() { &parts[0] + &parts[1] * Complex::new(0.0, 1.0) } else { parts[0].clone() };
            let log = logm(&a).unwrap().astype(DType::C128).unwrap();
            let error = relative_error(&exponential(&log), &a.astype(DType::C128).unwrap());
            assert!(error < 1e-9, "extent {n}, {dtype}: {error:e}");
        }
    }
}

#[test]
fn square_roots_near_the_branch_cut() {
    let i = Complex::I;
    let a = array![[Complex::from(-1.0), Complex::from(5.0)], [Complex::ZERO, -1.0 - i * 1e-14]];
    let root = sqrtm(&a).unwrap().to_vec::<Complex<f64>>().unwrap();
    assert!((root[1] - 1e15).norm() < 1.0, "{root:?}"); // 5 / (i + (5e-15 - i))
    for (scale, unscale) in [(1.0, 1.0), (2f64.powi(1022), 2f64.powi(511)), (2f64.powi(-980), 2f64.powi(-490))] {
        let root = sqrtm(&(array![[-1.0, -1e-12], [1e-12, -1.0]] * scale)).unwrap().to_vec::<f64>().unwrap();
        assert!((root[0] / unscale - 5e-13).abs() < 1e-27 && (root[2].abs() / unscale - 1.0).abs() < 1e-15, "{scale:e}: {root:?}");
    }
}

#[test]
fn logarithms_of_numbers_near_the_unit_circle() {
    let (x, y) = (2f64.powi(-40), 2f64.powi(-20));
    let log = logm(&array![[Complex::new(1.0 + x, y), Complex::ONE], [Complex::ZERO, Complex::from(2.0)]]).unwrap();
    let log = log.to_vec::<Complex<f64>>().unwrap()[0];
    let expected = Complex::new(0.5 * (2.0 * x + x * x + y * y).ln_1p(), y.atan2(1.0 + x));
    assert!((log.re / expected.re - 1.0).abs() < 1e-15 && (log.im / expected.im - 1.0).abs() < 1e-15, "{log:?}");
}

#[test]
fn matrices_without_a_function() {
    assert_eq!(failure(sqrtm(&array![[0.0, 1.0], [0.0, 0.0]])), (LinAlgFailure::Singular, 0, 1));
    assert_eq!(failure(logm(&array![[1.0, 2.0], [0.0, 0.0]])), (LinAlgFailure::Singular, 0, 1));
    for bad in [f64::NAN, f64::INFINITY] {
        let a = array![[1.0, bad], [0.0, 1.0]];
        assert_eq!(failure(schur(&a)).0, LinAlgFailure::NotFinite);
        assert_eq!(failure(sqrtm(&a)).0, LinAlgFailure::NotFinite);
        assert_eq!(failure(logm(&a)).0, LinAlgFailure::NotFinite);
    }
    let empty = cuprum_core::zeros([3, 0, 0], DType::F64).unwrap();
    assert_eq!(schur(&empty).unwrap().1.shape(), &[3, 0, 0]);
    assert_eq!((sqrtm(&empty).unwrap().shape(), logm(&empty).unwrap().dtype()), (&[3, 0, 0][..], DType::F64));
    assert_eq!(qr_raw(&cuprum_core::zeros([3, 0], DType::F64).unwrap()).unwrap().0.shape(), &[0, 3]);
}

/// Jordan blocks have one eigenvector each.
#[test]
fn defective_matrices() {
    for n in [2, 3, 10, 40] {
        for value in [0.0f64, 1.0, -1e30, 1e-30] {
            let element = |k: usize| {
                if k % n == k / n {
                    value
                } else if k % n == k / n + 1 {
                    value.abs().max(1e-30)
                } else {
                    0.0
                }
            };
            let a = NdArray::from_vec((0..n * n).map(element).collect::<Vec<f64>>(), [n, n]).unwrap();
            let (w, v) = eig(&a).unwrap();
            let residual = a.astype(DType::C128).unwrap().matmul(&v).unwrap() - &v * &w;
            let worst = residual.abs().unwrap().to_vec::<f64>().unwrap().into_iter().fold(0.0, f64::max);
            assert!(worst <= 30.0 * n as f64 * f64::EPSILON * value.abs().max(1e-30), "{n} {value}: {worst}");
        }
    }
}

/// Matrices with so many equal eigenvalues that an unscaled back-substitution overflows.
#[test]
fn long_chains_of_equal_eigenvalues() {
    let n = 40;
    let matrix = |element: fn(usize, usize) -> f64| {
        NdArray::from_vec((0..n * n).map(|k| element(k / n, k % n)).collect::<Vec<f64>>(), [n, n]).unwrap()
    };
    let triangle = matrix(|i, j| f64::from(u8::from(i <= j)));
    let pairs = matrix(|i, j| match (i / 2, j / 2) {
        (a, b) if a == b => [0.0, 2.0, -0.5, 0.0][i % 2 * 2 + j % 2],
        (a, b) => f64::from(u8::from(a < b)),
    });
    let cases = [triangle.clone(), matrix(|i, j| f64::from(u8::from(i + 1 == j))), matrix(|i, j| f64::from(u8::from(i == j + 1))), pairs];
    let complex = triangle * cuprum_core::Complex::new(1.0, 2.0);
    for a in cases.into_iter().chain([complex]) {
        let (w, v) = eig(&a).unwrap();
        let residual = a.astype(DType::C128).unwrap().matmul(&v).unwrap() - &v * &w;
        let largest = |x: NdArray| x.abs().unwrap().to_vec::<f64>().unwrap().into_iter().fold(0.0, f64::max);
        let (residual, worst) = (largest(residual), 1e-14 * largest(a.clone()) * n as f64);
        assert!(residual <= worst, "{a}: {residual}");
        let norms = (v.abs().unwrap() * v.abs().unwrap()).sum(0).unwrap().to_vec::<f64>().unwrap();
        assert!(norms.iter().all(|norm| (norm - 1.0).abs() < 1e-12), "{a}: {norms:?}");
    }
}

/// Eigenvectors of pairs of complex eigenvalues far below the norm, and of equal pairs with one eigenvector each.
#[test]
fn pairs_of_complex_eigenvalues() {
    let small = array![
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1e-9, 2e-9, 3e-9, 1e-9],
        [0.0, -3e-9, 1e-9, 4e-9, 2e-9],
        [0.0, 0.0, 0.0, 5e-9, 2e-9],
        [0.0, 0.0, 0.0, -7e-9, 5e-9]
    ];
    let equal = |n: usize| {
        let element = |k: usize| match (k / n, k % n) {
            (i, j) if i / 2 == j / 2 => [0.0, 2.0, -0.5, 0.0][i % 2 * 2 + j % 2],
            (i, j) => f64::from(u8::from(j == i + 2)),
        };
        NdArray::from_vec((0..n * n).map(element).collect::<Vec<f64>>(), [n, n]).unwrap()
    };
    for a in [small, equal(4), equal(10), equal(40)] {
        let (w, v) = eig(&a).unwrap();
        let residual = a.astype(DType::C128).unwrap().matmul(&v).unwrap() - &v * &w;
        let worst = residual.abs().unwrap().to_vec::<f64>().unwrap().into_iter().fold(0.0, f64::max);
        assert!(worst <= 30.0 * a.shape()[0] as f64 * f64::EPSILON, "{a}: {worst}");
    }
}

#[test]
fn subnormal_numbers() {
    let a = array![[1e-162, 0.0, 0.0], [0.0, 1.3e-160, 0.0], [0.0, 0.0, 1e300]];
    let value = det(&a).unwrap().to_vec::<f64>().unwrap()[0];
    assert!((value / 1.3e-22 - 1.0).abs() < 1e-12, "{value:e}: the product of two pivots is subnormal");
    let (a, half) = (array![[1e-310, 3.0], [1e-310, 1.0]], 0.5f64.sqrt());
    let near = |x: NdArray, want: [f64; 4]| x.to_vec::<f64>().unwrap().iter().zip(want).all(|(x, y)| (x - y).abs() <= 1e-13 * y.abs());
    let (q, r) = qr(&a, QrMode::Reduced).unwrap();
    assert!(near(q.abs().unwrap(), [half; 4]), "{q}");
    let want = [2f64.sqrt() * 1e-310, 8f64.sqrt(), 0.0, 2f64.sqrt()];
    assert!(near(r.abs().unwrap(), want), "{r}");
    let upper = qr_raw(&a).unwrap().0.t().unwrap() * array![[1.0, 1.0], [0.0, 1.0]];
    assert!(near(upper.abs().unwrap(), want), "{upper}");
}

#[test]
fn subnormal_pivots() {
    let tiny = array![[1e-310, 0.0], [3e-310, 1.0]];
    let right = array![1e-310, 4.0 + 3e-310];
    let ones = array![1.0, 4.0];
    assert_eq!(solve_triangular(&tiny, &right, Triangle::Lower, Form::Plain, false).unwrap(), ones);
    assert_eq!(solve(&array![[1e-310, 0.0], [0.0, 1.0]], &array![1e-310, 4.0]).unwrap(), ones);
    assert_eq!(solve(&array![[1e-40f32, 0.0], [0.0, 1.0]], &array![1e-40f32, 4.0]).unwrap(), array![1f32, 4.0]);
    assert_eq!(inv(&array![[5e-309, 0.0], [0.0, 1e308]]).unwrap(), array![[1.0 / 5e-309, 0.0], [0.0, 1e-308]]);
    let i = Complex::new(0.0, 1.0);
    let a = NdArray::from_vec(vec![i * 1e-200, i * 1e-200, i * 1e-200, i * 3e-200], [2, 2]).unwrap();
    let x = solve(&a, &NdArray::from_slice(&[i * 2e-200, i * 4e-200]).unwrap()).unwrap().to_vec::<Complex<f64>>().unwrap();
    assert!(x.iter().all(|x| (x - 1.0).norm() < 1e-14), "{x:?}");
}

/// Large and small values in one matrix, and functions of matrices whose elements have squares that overflow.
#[test]
fn distant_magnitudes() {
    for (large, small) in [(1e200f64, 1e-100f64), (1e200, 1e-180), (1e130, 1e-130), (1e-130, 1e-200), (1e300, 1e-20)] {
        let a = array![[large, 0.0], [0.0, small]];
        let near = |values: NdArray, context: &str| {
            let values = values.to_vec::<f64>().unwrap();
            let error = (values[0] / large - 1.0).abs().max((values[1] / small - 1.0).abs());
            assert!(error < 1e-14, "{context} of {large:e} and {small:e}: {values:?}");
        };
        // faer divides by the largest value.
        if (small / large).is_normal() {
            near(svdvals(&a).unwrap(), "svdvals");
        }
        near(eigh(&a, Triangle::Lower).unwrap().0.sort(axis(-1).descending()).unwrap(), "eigh");
        near(eig(&a).unwrap().0.real().unwrap(), "eig");
    }
    let a = array![[1.0, 2.0], [3.0, 4.0]];
    for scale in [1e150f64, 1e155, 1e300, 1e-160, 1e-300] {
        let expected = logm(&a).unwrap().to_vec::<Complex<f64>>().unwrap();
        let log = logm(&(&a * scale)).unwrap().to_vec::<Complex<f64>>().unwrap();
        for (k, (got, want)) in log.iter().zip(&expected).enumerate() {
            let want = want + if k % 3 == 0 { scale.ln() } else { 0.0 };
            assert!((got - want).norm() < 1e-12, "{scale} {k}: {got} {want}");
        }
        let root = sqrtm(&(&a * scale)).unwrap();
        assert!(relative_error(&(root.matmul(&root).unwrap() / scale), &a.astype(DType::C128).unwrap()) < 1e-14, "{scale}");
    }
}

#[test]
fn functions_of_triangular_matrices_of_distant_magnitudes() {
    for small in [1e-300f64, 1e-310] {
        let a = array![[small, 1.0], [0.0, 1e300]];
        let root = sqrtm(&a).unwrap().real().unwrap().to_vec::<f64>().unwrap();
        assert!((root[0] / small.sqrt() - 1.0).abs() < 1e-14 && (root[3] / 1e150 - 1.0).abs() < 1e-14, "{root:?}");
        assert!((root[1] / 1e-150 - 1.0).abs() < 1e-14 && root[2] == 0.0, "{root:?}");
        let log = logm(&a).unwrap().real().unwrap().to_vec::<f64>().unwrap();
        assert!((log[0] - small.ln()).abs() < 1e-12 && (log[3] - 300.0 * 10f64.ln()).abs() < 1e-12, "{log:?}");
    }
}

#[test]
fn determinants_of_infinite_and_large_matrices() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for (matrix, determinant, sign, log) in [
        (array![[inf, 0.0], [0.0, 1.0]], inf, 1.0, inf),
        (array![[0.0, 1.0], [inf, 0.0]], -inf, -1.0, inf),
        (array![[1.0, 0.0], [0.0, -inf]], -inf, -1.0, inf),
        (array![[0.0, 0.0], [0.0, inf]], 0.0, 0.0, -inf),
        (array![[nan]], nan, 1.0, nan),
    ] {
        let value = |a: &NdArray| a.item().unwrap().as_f64();
        let equal = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
        let (got_sign, got_log) = slogdet(&matrix).unwrap();
        assert!(equal(value(&det(&matrix).unwrap()), determinant), "{matrix}");
        assert!(equal(value(&got_sign), sign) && equal(value(&got_log), log), "{matrix}: {got_sign} {got_log}");
    }
    // The determinant overflows in single precision. In double precision, the imaginary part stays 0.
    let bidiagonal = |k: usize| f64::from(u8::from(k % 129 == k / 129)) * 2.0 + f64::from(u8::from(k % 129 == k / 129 + 1));
    let matrix = NdArray::from_vec((0..129 * 129).map(bidiagonal).collect::<Vec<f64>>(), [129, 129]).unwrap();
    for (factor, expected) in [(1.0, inf), (-1.0, -inf)] {
        let a = (&matrix * factor).astype(DType::C64).unwrap();
        assert_eq!(det(&a).unwrap().to_vec::<Complex<f32>>().unwrap(), [Complex::new(expected as f32, 0.0)]);
        assert_eq!(det(&a.real().unwrap()).unwrap().item().unwrap().as_f64(), expected);
    }
    for scales in [[1e30f32, 1e30, 1e-30, 1e-30], [1e-30, 1e-30, 1e30, 1e30]] {
        let diagonal = |k: usize| if k / 4 == k % 4 { scales[k / 4] } else { 0.0 };
        let a = NdArray::from_vec((0..16).map(diagonal).collect::<Vec<f32>>(), [4, 4]).unwrap();
        assert_eq!(det(&a).unwrap().item().unwrap().as_f64(), 1.0);
        assert_eq!(det(&a.astype(DType::C64).unwrap()).unwrap().to_vec::<Complex<f32>>().unwrap(), [Complex::ONE]);
    }
    let i = Complex::new(0.0, 1.0);
    for scale in [1e200f64, 1e-200] {
        let (sign, log) = slogdet(&NdArray::from_vec(vec![i * scale], [1, 1]).unwrap()).unwrap();
        assert_eq!((sign.to_vec::<Complex<f64>>().unwrap()[0], log.item().unwrap().as_f64()), (i, scale.ln()));
    }
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
    let (q, r) = qr(&zeros(&[3, 0]), QrMode::Complete).unwrap();
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
