//! Decompositions and linear systems on a real device, by the residuals of LAPACK's tests, for the kernels of this crate and the libraries.
//!
//! NVRTC compiles the kernels of this crate for each operation, dtype and kind of team, which takes most of the time. The default tests
//! therefore run each operation with some dtypes only, and `every_kernel` runs all of them:
//!
//!     cargo test -p cuprum-backend-cuda --test kernels -- --ignored every_kernel
//!
//! `times_of_all_paths` prints the times that decide the thresholds in `families/linalg/decomposition_path.rs`.

use std::thread;

use cuprum_backend_cpu as _;
use cuprum_backend_cuda::families::linalg::{DecompositionPath, with_decomposition_path};
use cuprum_backend_cuda::{cusolver, device, testing};
use cuprum_core::error::LinAlgFailure;
use cuprum_core::ops::linalg::{
    QrMode, Triangle, cholesky, det, eig, eigh, eigvals, inv, lu_factor, qr, solve, solve_triangular, svd, svdvals,
};
use cuprum_core::profiler::{BenchmarkLimits, benchmark_on};
use cuprum_core::random::Generator;
use cuprum_core::testing::linalg::{
    Case, MatrixKind, check_eigen, check_hermitian, check_rectangular, check_square, check_systems, check_triangular,
};
use cuprum_core::{Complex, DType, Device, Error, NdArray, Result, Stream, with_device, with_stream};

use crate::on_device;

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];

/// Runs `test` if cuSOLVER is installed.
fn with_library(test: impl FnOnce(Device)) {
    on_device(|device| match cusolver::load_cusolver(device::context(device).unwrap()) {
        Ok(()) => test(device),
        Err(missing) => testing::skip(1, missing),
    });
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

/// A test of the cases of one kind.
type Check = fn(Case) -> std::result::Result<(), String>;

/// Runs `check` for every case, and fails with all texts.
fn check_all(cases: impl IntoIterator<Item = Case>, check: Check) {
    let failures: Vec<String> = cases.into_iter().filter_map(|case| check(case).err()).collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn kernels_of_this_crate() {
    on_device(|device| {
        let cases = move |dtype, n: usize, batch| {
            kinds(dtype).into_iter().map(move |kind| Case { device, dtype, batch, rows: n, columns: n, kind })
        };
        with_decomposition_path(DecompositionPath::Team, || {
            check_all(cases(DType::F32, 3, 1000).take(1).chain(cases(DType::F32, 3, 5)).chain(cases(DType::F32, 33, 2)), check_systems);
            check_all(cases(DType::C128, 17, 3), check_systems);
            check_all(cases(DType::C64, 2, 4).chain(cases(DType::C64, 32, 2)), check_hermitian);
            check_all(cases(DType::F64, 100, 2).take(1), check_hermitian);
            check_all(cases(DType::F64, 5, 3).take(1), check_triangular);
            let rectangles = [(DType::F32, 3, 4, 500), (DType::F64, 33, 17, 2), (DType::C64, 3, 40, 2), (DType::C128, 100, 70, 1)];
            for (dtype, rows, columns, batch) in rectangles {
                check_all(cases(dtype, rows, batch).map(|case| Case { columns, ..case }), check_rectangular);
            }
        });
    });
}

#[test]
fn matrices_in_the_registers_of_a_warp() {
    on_device(|device| {
        let case = |dtype, n: usize, batch, kind| Case { device, dtype, batch, rows: n, columns: n, kind };
        with_decomposition_path(DecompositionPath::Warp, || {
            for dtype in DTYPES {
                let extents = [5, 8, 13, 16].into_iter().chain([17, 31, 32].into_iter().filter(|_| dtype != DType::C128));
                let random = || extents.clone().map(|n| case(dtype, n, 1 + n % 7, MatrixKind::Random));
                check_all(random(), check_systems);
                check_all(random(), check_hermitian);
                let n = if dtype == DType::C128 { 11 } else { 20 };
                check_all(kinds(dtype).into_iter().map(|kind| case(dtype, n, 3, kind)), check_systems);
                check_all(kinds(dtype).into_iter().map(|kind| case(dtype, n, 3, kind)), check_hermitian);
            }
            check_all([case(DType::F32, 6, 1000, MatrixKind::Random)], check_hermitian);
        });
    });
}

#[test]
#[ignore = "NVRTC compiles some 800 kernels"]
fn every_kernel() {
    on_device(|device| {
        with_decomposition_path(DecompositionPath::Team, || {
            let all = |extents: &'static [(usize, usize)]| {
                DTYPES.into_iter().flat_map(move |dtype| {
                    extents.iter().flat_map(move |&(rows, columns)| {
                        kinds(dtype).into_iter().map(move |kind| Case { device, dtype, batch: 1 + rows % 3, rows, columns, kind })
                    })
                })
            };
            check_all(all(&[(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (17, 17), (32, 32), (33, 33)]), check_square);
            check_all(all(&[(1, 1), (1, 5), (5, 1), (3, 2), (2, 3), (17, 32), (33, 17), (40, 3), (3, 40)]), check_rectangular);
            check_all(all(&[(100, 100)]).step_by(6), check_square);
            check_all(all(&[(100, 70)]), check_rectangular);
        });
    });
}

#[test]
fn square_matrices_by_the_libraries() {
    with_library(|device| {
        with_decomposition_path(DecompositionPath::Library, || {
            for dtype in DTYPES {
                let case = |n: usize, kind| Case { device, dtype, batch: 1 + n % 3, rows: n, columns: n, kind };
                check_all([1, 2, 3, 17, 32, 33, 64, 100].map(|n| case(n, MatrixKind::Random)), check_square);
                check_all(kinds(dtype).into_iter().flat_map(|kind| [3, 33].map(|n| case(n, kind))), check_square);
            }
        });
    });
}

#[test]
fn square_matrices_by_routines_for_batches() {
    with_library(|device| {
        with_decomposition_path(DecompositionPath::LibraryBatch, || {
            for dtype in DTYPES {
                let case = |n: usize, kind| Case { device, dtype, batch: 2 + n % 3, rows: n, columns: n, kind };
                let random = || [1, 2, 3, 17, 33, 64, 130].map(|n| case(n, MatrixKind::Random));
                check_all(random(), check_systems);
                check_all(random(), check_hermitian);
                check_all(kinds(dtype).into_iter().map(|kind| case(33, kind)), check_systems);
                check_all(kinds(dtype).into_iter().map(|kind| case(33, kind)), check_hermitian);
            }
            for dtype in [DType::F32, DType::C64] {
                let case = |(rows, columns): (usize, usize), kind| Case { device, dtype, batch: 2, rows, columns, kind };
                let extents = [(1, 1), (3, 3), (40, 40), (70, 33), (33, 70), (130, 130)];
                check_all(extents.map(|extents| case(extents, MatrixKind::Random)), check_rectangular);
                check_all(kinds(dtype).into_iter().map(|kind| case((66, 66), kind)), check_rectangular);
            }
        });
    });
}

#[test]
fn rectangular_matrices_by_the_libraries() {
    with_library(|device| {
        with_decomposition_path(DecompositionPath::Library, || {
            for dtype in DTYPES {
                let case = |(rows, columns): (usize, usize), kind| Case { device, dtype, batch: 1 + rows % 3, rows, columns, kind };
                let extents = [(1, 1), (1, 5), (5, 1), (3, 2), (17, 32), (33, 17), (40, 3), (3, 40), (64, 64), (100, 70), (64, 100)];
                check_all(extents.map(|extents| case(extents, MatrixKind::Random)), check_rectangular);
                check_all(kinds(dtype).into_iter().flat_map(|kind| [(2, 3), (33, 17), (17, 33)].map(|e| case(e, kind))), check_rectangular);
            }
        });
    });
}

#[test]
fn eigenvalues_of_general_matrices() {
    with_library(|device| {
        for dtype in DTYPES {
            let case = |n: usize, kind| Case { device, dtype, batch: 1 + n % 3, rows: n, columns: n, kind };
            check_all([1, 2, 3, 17, 32, 33, 64, 100].map(|n| case(n, MatrixKind::Random)), check_eigen);
            check_all(kinds(dtype).into_iter().flat_map(|kind| [3, 33].map(|n| case(n, kind))), check_eigen);
        }
        let empty = cuprum_core::zeros([2, 0, 0], DType::F64).unwrap();
        assert_eq!((eig(&empty).unwrap().0.shape(), eigvals(&empty).unwrap().shape()), (&[2, 0][..], &[2, 0][..]));
        // A Jordan block is defective. A rotation has conjugate eigenvalues, whose real parts are equal.
        let block = NdArray::from_vec(vec![2.0, 1.0, 0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 2.0], [3, 3]).unwrap();
        assert!(eigvals(&block).unwrap().to_vec::<f64>().unwrap().iter().all(|w| (w - 2.0).abs() < 1e-4));
        let rotation = NdArray::from_vec(vec![0.6, -0.8, 0.8, 0.6], [2, 2]).unwrap();
        let w = eigvals(&rotation).unwrap().to_vec::<Complex<f64>>().unwrap();
        assert!(w[0] == w[1].conj() && (w[0].re - 0.6).abs() < 1e-15 && (w[0].im.abs() - 0.8).abs() < 1e-15, "{w:?}");
    });
}

/// Returns the 1-norm of a matrix.
fn norm(a: &NdArray) -> f64 {
    a.abs().unwrap().sum(0).unwrap().max(()).unwrap().item().unwrap().as_f64()
}

/// Residuals in float64 on the device, because loops on the host are too slow for this extent.
#[test]
fn an_extent_of_a_thousand() {
    with_library(|_| {
        const N: usize = 1000;
        for dtype in [DType::F32, DType::C128] {
            let wide = if dtype.is_complex() { DType::C128 } else { DType::F64 };
            let epsilon = if dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
            let part = |seed| Generator::new(seed).normal(0.0, 1.0, [N, N], dtype.real()).unwrap();
            let random = |seed| match dtype.is_complex() {
                true => (part(seed) + part(seed + 100) * Complex::new(0.0, 1.0)).eval().unwrap().clone(),
                false => part(seed),
            };
            let w = |x: &NdArray| x.astype(wide).unwrap();
            let h = |x: &NdArray| x.conj().unwrap().t().unwrap();
            let product = |x: &NdArray, y: &NdArray| w(x).matmul(&w(y)).unwrap();
            let small = |name: &str, difference: NdArray, size: f64| {
                let ratio = norm(&difference) / (size * epsilon * N as f64);
                assert!(ratio < 30.0, "{name} of {dtype}: ratio {ratio:.2e}");
            };
            let eye = cuprum_core::eye(N, N, 0, wide).unwrap();
            let (a, b) = (random(1), random(2));
            let x = solve(&a, &b).unwrap();
            small("solve", product(&a, &x) - w(&b), norm(&a) * norm(&x));
            let inverse = inv(&a).unwrap();
            small("inv", product(&a, &inverse) - &eye, norm(&a) * norm(&inverse));
            let hermitian = (&a + h(&a)).eval().unwrap().clone();
            let (values, vectors) = eigh(&hermitian, Triangle::Lower).unwrap();
            small("eigh", product(&hermitian, &vectors) - w(&vectors) * w(&values), norm(&hermitian));
            small("vectors of eigh", product(&h(&vectors), &vectors) - &eye, 1.0);
            let positive = (product(&a, &h(&a)) / N as f64 + &eye).astype(dtype).unwrap();
            let factor = cholesky(&positive, false).unwrap();
            small("cholesky", product(&factor, &h(&factor)) - w(&positive), norm(&positive));
            let (q, r) = qr(&a, QrMode::Reduced).unwrap();
            small("qr", product(&q, &r) - w(&a), norm(&a));
            small("q of qr", product(&h(&q), &q) - &eye, 1.0);
            let (u, s, vh) = svd(&a, true).unwrap();
            small("svd", (w(&u) * w(&s)).matmul(&w(&vh)).unwrap() - w(&a), norm(&a));
            small("u of svd", product(&h(&u), &u) - &eye, 1.0);
            let x = solve_triangular(&r, &b, Triangle::Upper, cuprum_core::ops::linalg::Form::Adjoint, false).unwrap();
            small("solve_triangular", product(&h(&r), &x) - w(&b), norm(&r) * norm(&x));
            assert!(lu_factor(&a).unwrap().1.max(()).unwrap().item().unwrap().as_f64() < N as f64);
        }
    });
}

fn failure<T>(result: Result<T>) -> (LinAlgFailure, usize) {
    match result.err() {
        Some(Error::LinAlg { failure, matrix, .. }) => (failure, matrix),
        other => panic!("{other:?}"),
    }
}

/// Runs `test` for all paths, or for the kernels of this crate alone if there is no cuSOLVER.
fn on_all_paths(test: impl Fn()) {
    on_device(|device| {
        [DecompositionPath::Team, DecompositionPath::Warp].into_iter().for_each(|path| with_decomposition_path(path, &test));
        match cusolver::load_cusolver(device::context(device).unwrap()) {
            Ok(()) => [DecompositionPath::Library, DecompositionPath::LibraryBatch]
                .into_iter()
                .for_each(|path| with_decomposition_path(path, &test)),
            Err(missing) => testing::skip(1, missing),
        }
    });
}

#[test]
fn matrices_without_a_result_are_reported_when_the_result_is_read() {
    on_all_paths(|| {
        for n in [2usize, 6, 40] {
            let mut values = vec![0.0; 20 * n * n];
            for (index, value) in values.iter_mut().enumerate() {
                let (matrix, i, j) = (index / (n * n), index / n % n, index % n);
                *value = if matrix == 13 { 1.0 } else { f64::from(i == j) };
            }
            let a = NdArray::from_vec(values, [4, 5, n, n]).unwrap();
            assert_eq!(failure(inv(&a).and_then(|x| x.to_vec::<f64>())), (LinAlgFailure::Singular, 13));
            assert_eq!(failure(solve(&a, &a).and_then(|x| x.to_vec::<f64>())), (LinAlgFailure::Singular, 13));
            assert_eq!(failure(cholesky(&a, true).and_then(|x| x.to_vec::<f64>())), (LinAlgFailure::NotPositiveDefinite, 13));
            let dets = det(&a).unwrap().to_vec::<f64>().unwrap();
            assert!(dets.iter().enumerate().all(|(index, &d)| d == if index == 13 { 0.0 } else { 1.0 }), "{dets:?}");
            let zeros = cuprum_core::zeros([2, n, n], DType::F64).unwrap();
            let x = solve_triangular(&zeros, &zeros, Triangle::Lower, cuprum_core::ops::linalg::Form::Plain, false);
            // Both matrices are singular, and the report names one of them.
            assert!(matches!(failure(x.and_then(|x| x.to_vec::<f64>())), (LinAlgFailure::Singular, 0 | 1)));
        }
    });
}

#[test]
fn nan_and_infinity() {
    on_all_paths(|| {
        for n in [2usize, 20] {
            for bad in [f64::NAN, f64::INFINITY] {
                let a = NdArray::from_vec(vec![bad; n * n], [n, n]).unwrap();
                assert_eq!(failure(svd(&a, true).and_then(|(_, s, _)| s.to_vec::<f64>())).0, LinAlgFailure::SvdDiverges);
                assert_eq!(failure(svdvals(&a).and_then(|s| s.to_vec::<f64>())).0, LinAlgFailure::SvdDiverges);
                assert_eq!(failure(eigh(&a, Triangle::Lower).and_then(|(w, _)| w.to_vec::<f64>())).0, LinAlgFailure::EigenvaluesDiverge);
                assert_eq!(failure(cholesky(&a, false).and_then(|x| x.to_vec::<f64>())).0, LinAlgFailure::NotPositiveDefinite);
            }
        }
    });
    with_library(|_| {
        for bad in [f64::NAN, f64::INFINITY] {
            let a = NdArray::from_vec(vec![1.0, 2.0, 3.0, 4.0, 1.0, bad, 3.0, 4.0], [2, 2, 2]).unwrap();
            assert_eq!(failure(eig(&a)), (LinAlgFailure::NotFinite, 1));
            assert_eq!(failure(eigvals(&a)), (LinAlgFailure::NotFinite, 1));
            let c = a.astype(DType::C64).unwrap();
            assert_eq!(failure(eig(&c).and_then(|(w, _)| w.to_vec::<Complex<f32>>())), (LinAlgFailure::NotFinite, 1));
        }
        // The upper triangle is not read.
        let a = NdArray::from_vec(vec![4.0, f64::NAN, 2.0, 5.0], [2, 2]).unwrap();
        with_decomposition_path(DecompositionPath::Library, || {
            assert!(eigh(&a, Triangle::Lower).and_then(|(w, _)| w.to_vec::<f64>()).is_ok());
            assert_eq!(cholesky(&a, false).unwrap().to_vec::<f64>().unwrap(), [2.0, 0.0, 1.0, 2.0]);
        });
    });
}

#[test]
fn subnormal_and_extreme_magnitudes() {
    on_all_paths(|| {
        for n in [3usize, 6] {
            // The product of the first two elements is subnormal.
            let mut values = vec![0.0; n * n];
            (0..n).for_each(|i| values[i * (n + 1)] = [1e-162, 1.3e-160, 1e300, 1.0, 1.0, 1.0][i]);
            let d = det(&NdArray::from_vec(values, [n, n]).unwrap()).unwrap().item().unwrap().as_f64();
            assert!((d / 1.3e-22 - 1.0).abs() < 1e-14, "determinant {d:e}");
        }
    });
    on_device(|_| {
        let parts = [(DType::F32, 1e-40), (DType::F64, 1e-310), (DType::F64, 1e305), (DType::C64, 1e-40), (DType::C128, 1e-310)];
        for ((dtype, factor), n) in parts.into_iter().flat_map(|part: (DType, f64)| [(part, 3), (part, 20)]) {
            let part = |seed| Generator::new(seed).normal(0.0, 1.0, [n, n], dtype.real()).unwrap();
            let random = if dtype.is_complex() { part(1) + part(2) * Complex::new(0.0, 1.0) } else { part(1) };
            let a = (random * factor).astype(dtype).unwrap();
            let (q, r) = with_decomposition_path(DecompositionPath::Team, || qr(&a, QrMode::Reduced)).unwrap();
            let wide = if dtype.is_complex() { DType::C128 } else { DType::F64 };
            let w = |x: &NdArray| x.astype(wide).unwrap();
            let back = |x: &NdArray| w(x) * factor.sqrt().recip() * factor.sqrt().recip();
            let largest = |x: NdArray| x.abs().unwrap().max(()).unwrap().item().unwrap().as_f64();
            let adjoint = w(&q).conj().unwrap().t().unwrap();
            let orthogonality = largest(adjoint.matmul(&w(&q)).unwrap() - cuprum_core::eye(n, n, 0, wide).unwrap());
            let residual = largest(w(&q).matmul(&back(&r)).unwrap() - back(&a));
            // Subnormal elements have 44 bits here, or 16 in float32.
            let (least, most) = if dtype.real() == DType::F32 { (1e-5, 1e-2) } else { (1e-13, 1e-11) };
            assert!(orthogonality < least && residual < most, "{dtype}, {factor:e}: {orthogonality:e}, {residual:e}");
        }
    });
}

/// As in LAPACK, a reflection gives a negative diagonal element if the first element of the column is 0 or positive.
#[test]
fn signs_of_reflections() {
    on_device(|_| {
        let a = NdArray::from_vec([0.0, 1.0, 1.0, 0.0], [2, 2]).unwrap();
        let (q, _) = with_decomposition_path(DecompositionPath::Team, || qr(&a, QrMode::Reduced)).unwrap();
        assert_eq!(q.to_vec::<f64>().unwrap(), [0.0, -1.0, -1.0, 0.0]);
        // The squares of the elements below the head underflow.
        let a = NdArray::from_vec([1f32, 2.0, 1e-25, 3.0], [2, 2]).unwrap();
        let (_, r) = with_decomposition_path(DecompositionPath::Team, || qr(&a, QrMode::Reduced)).unwrap();
        assert_eq!(r.to_vec::<f32>().unwrap(), [-1.0, -2.0, 0.0, 3.0]);
    });
}

/// The arena of a team fits in 48 KiB of shared memory, but not together with static shared memory.
#[test]
fn systems_at_the_default_limit_of_shared_memory() {
    on_device(|_| {
        with_decomposition_path(DecompositionPath::Team, || {
            let a = (cuprum_core::eye(76, 76, 0, DType::F64).unwrap() * 2.0).broadcast_to([3, 76, 76]).unwrap();
            for k in [2usize, 3] {
                let b = Generator::new(0).normal(0.0, 1.0, [3, 76, k], DType::F64).unwrap();
                assert!((solve(&a, &b).unwrap() * 2.0).to_vec::<f64>().unwrap() == b.to_vec::<f64>().unwrap(), "{k}");
            }
        });
    });
}

#[test]
fn handles_serve_several_threads_and_streams() {
    with_library(|device| {
        let a = Generator::new(0).normal(0.0, 1.0, [3, 60, 60], DType::F64).unwrap();
        let run = |a: &NdArray| with_decomposition_path(DecompositionPath::Library, || solve(a, &inv(a)?)?.to_vec::<f64>());
        let want = run(&a).unwrap();
        thread::scope(|scope| {
            for own_stream in [false, true, false, true] {
                let (a, want) = (&a, &want);
                scope.spawn(move || {
                    with_device(device, || {
                        let repeat = || (0..10).for_each(|_| assert!(run(a).unwrap() == *want));
                        if own_stream { with_stream(Stream::new(device).unwrap(), repeat) } else { repeat() }
                    });
                });
            }
        });
    });
}

/// Prints the device times of all paths in milliseconds.
#[test]
#[ignore = "a measurement"]
fn times_of_all_paths() {
    with_library(|device| {
        type Task = (&'static str, fn(&NdArray) -> Result<NdArray>);
        let tasks: [Task; 8] = [
            ("solve", |a| solve(a, &a.index(cuprum_core::s![.., .., ..16])?)),
            ("inv", inv),
            ("det", det),
            ("cholesky", |a| cholesky(a, false)),
            ("qr", |a| Ok(qr(a, QrMode::Reduced)?.0)),
            ("eigh", |a| Ok(eigh(a, Triangle::Lower)?.1)),
            ("svd", |a| Ok(svd(a, false)?.0)),
            ("solve_triangular", |a| solve_triangular(a, a, Triangle::Lower, cuprum_core::ops::linalg::Form::Plain, false)),
        ];
        // A path that does not support the task gives the times of another one.
        let limits = BenchmarkLimits { warmup: 1, repeat: 3, max_seconds: 0.3 };
        for (batch, n) in [(1, 32), (1, 64), (1, 128), (1, 256), (8, 64), (8, 128), (64, 64), (64, 128), (64, 256), (512, 64), (4096, 32)] {
            let a = Generator::new(0).normal(0.0, 1.0, [batch, n, n], DType::F32).unwrap();
            let eye = cuprum_core::eye(n, n, 0, DType::F32).unwrap();
            let a = (a.matmul(&a.swapaxes(1, 2).unwrap()).unwrap() / n as f64 + eye).eval().unwrap().clone();
            for (name, task) in tasks {
                let time = |path| {
                    let timing = with_decomposition_path(path, || benchmark_on(&[device], limits, || task(&a))).unwrap().1;
                    timing.device_times().min / 1e3
                };
                let times = [DecompositionPath::Team, DecompositionPath::Warp, DecompositionPath::Library, DecompositionPath::LibraryBatch]
                    .map(time);
                let [team, warp, library, batch_routine] = times;
                println!(
                    "{name} of {batch} x {n}: kernels {team:.3} ms, by warps {warp:.3}, library {library:.3}, batch {batch_routine:.3}"
                );
            }
        }
    });
}
