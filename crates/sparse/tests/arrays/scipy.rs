//! Sparse arrays against SciPy's results, which scripts/sparse_goldens.py writes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use cuprum_backend_cpu as _;
use cuprum_core::ops::linalg::{Triangle, eigvalsh};
use cuprum_core::{Array, DType, NdArray, Result, array, s};
use cuprum_sparse::{
    CsrArray, Format, LanczosOptions, LsqrOptions, NormOrder, SolverOptions, Sparse, SparseArray, SparseMath, Which, bicgstab, cg,
    connected_components, diags_array, eigsh, gmres, kron, load_npz, lsqr, read_matrix_market, save_npz, shortest_path, svds,
    write_matrix_market,
};

fn golden(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(file)
}

static GOLDENS: LazyLock<HashMap<String, NdArray>> =
    LazyLock::new(|| cuprum_io::load_npz(golden("goldens.npz")).unwrap().into_iter().collect());

fn get(name: &str) -> NdArray {
    GOLDENS.get(name).unwrap_or_else(|| panic!("no golden '{name}'")).clone()
}

/// Compares with a tolerance relative to the largest magnitude: 0 for integers.
#[track_caller]
fn assert_close(got: &NdArray, want: &NdArray, tolerance: f64) {
    assert_eq!((got.shape(), got.dtype()), (want.shape(), want.dtype()));
    if want.size() == 0 {
        return;
    }
    let wide = |a: &NdArray| a.astype(DType::C128).unwrap();
    let largest = |a: NdArray| a.abs().unwrap().max(()).unwrap().item().unwrap().as_f64();
    let difference = largest(wide(got).subtract(wide(want)).unwrap());
    let bound = tolerance * largest(wide(want)).max(1.0);
    assert!(difference <= bound, "difference {difference:e} exceeds {bound:e}\n{got:?}\n{want:?}");
}

#[test]
fn arithmetic_products_and_reductions() -> Result<()> {
    for dtype in ["float32", "float64", "complex64", "complex128", "int32"] {
        let want = |name: &str| get(&format!("{dtype}/{name}"));
        // The longest sum has 23 terms.
        let epsilon = match dtype {
            "float32" | "complex64" => 23.0 * f64::from(f32::EPSILON),
            "int32" => 0.0,
            _ => 23.0 * f64::EPSILON,
        };
        let csr = |name: &str| CsrArray::from_dense(&want(name));
        let (a, b, c) = (csr("a")?, csr("b")?, csr("c")?);
        for format in [Format::Csr, Format::Csc, Format::Coo, Format::Bsr, Format::Dia] {
            let a = a.to_format(format)?;
            let check = |got: NdArray, name: &str| assert_close(&got, &want(name), epsilon);
            check(a.matmul(&want("x"))?, "matvec");
            check(a.matmul(&want("y"))?, "matmat");
            check(a.transpose()?.rmatmul(&want("y").t()?)?, "left");
            check(a.matmul_sparse(&c)?.to_dense()?, "product");
            check(a.add(&b)?.to_dense()?, "add");
            check(a.subtract(&b)?.to_dense()?, "subtract");
            check(a.multiply(&b)?.to_dense()?, "multiply");
            check(a.not_equal(&b)?.to_dense()?, "not_equal");
            check(a.sum(())?, "sum");
            check(a.sum(0)?, "sum0");
            check(a.sum(1)?, "sum1");
            // SciPy multiplies by the reciprocal of the number of rows.
            assert_close(&a.mean(0)?, &want("mean0"), epsilon.max(1e-15));
            check(a.diagonal(2)?, "diagonal");
            check(a.index(s![3..20;2, ..;-1])?.to_dense()?, "slice");
            check(a.power(2)?.to_dense()?, "power");
            check(a.tril(-1)?.to_dense()?, "tril");
            check(kron(&a.index(s![..3, ..4])?, &b.index(s![..2, ..3])?)?.to_dense()?, "kron");
            for (order, name) in [(NormOrder::Frobenius, "norm"), (NormOrder::One, "norm1"), (NormOrder::Infinity, "norm_inf")] {
                assert_close(&a.norm(order, None)?, &want(name), epsilon.max(1e-15));
            }
            if !want("a").dtype().is_complex() {
                check(a.max(0)?, "max0");
                check(a.min(1)?, "min1");
                check(a.maximum(&b)?.to_dense()?, "maximum");
            }
        }
        // Components, element by element.
        let check = |got: &NdArray, name: &str| assert_close(got, &want(name), 0.0);
        check(a.indptr(), "csr.indptr");
        check(a.indices(), "csr.indices");
        check(a.to_csc()?.indptr(), "csc.indptr");
        check(a.to_csc()?.indices(), "csc.indices");
        check(a.to_dia()?.offsets(), "dia.offsets");
        check(a.to_dia()?.data(), "dia.data");
    }
    Ok(())
}

#[test]
fn linear_systems() -> Result<()> {
    let csr = |name: &str| CsrArray::from_dense(&get(name));
    let (poisson, general, right) = (csr("system/poisson")?, csr("system/general")?, get("system/right"));
    let options = SolverOptions { rtol: 1e-12, ..Default::default() };
    let solution = cg(&poisson, &right, &options)?;
    assert!(solution.has_converged);
    assert_close(&solution.x, &get("system/poisson_solution"), 1e-9);
    for (name, solution) in [
        ("bicgstab", bicgstab(&general, &right, &options)?),
        ("gmres", gmres(&general, &right, &options)?),
        ("gmres without restart", gmres(&general, &right, &SolverOptions { restart: Some(60), ..options })?),
        (
            "cg for csc",
            cg(&poisson.to_csc()?, &right, &options).map(|s| cuprum_sparse::Solution { x: get("system/general_solution"), ..s })?,
        ),
    ] {
        assert!(solution.has_converged, "{name}: {solution:?}");
        assert_close(&solution.x, &get("system/general_solution"), 1e-8);
    }
    // A diagonal preconditioner, a first approximation, and a limit of iterations.
    let inverse: SparseArray = cuprum_sparse::diags_array(&[general.diagonal(0)?.reciprocal()?], &[0], None, DType::F64)?.into();
    let preconditioned = SolverOptions { preconditioner: Some(&inverse), ..options };
    for solution in [gmres(&general, &right, &preconditioned)?, bicgstab(&general, &right, &preconditioned)?] {
        assert_close(&solution.x, &get("system/general_solution"), 1e-8);
    }
    assert!(cg(&poisson, &right, &SolverOptions { preconditioner: Some(&inverse), ..options })?.has_converged);
    let known = get("system/poisson_solution");
    assert_eq!(cg(&poisson, &right, &SolverOptions { x0: Some(&known), rtol: 1e-9, ..Default::default() })?.iterations, 0);
    let short = cg(&poisson, &right, &SolverOptions { maxiter: Some(2), ..options })?;
    assert!(!short.has_converged && short.iterations == 2);
    assert!(cg(&poisson, &get("system/tall_right"), &options).is_err());

    let lower = general.tril(0)?.solve_triangular(&right, Triangle::Lower, false)?;
    assert_close(&lower, &get("system/lower_solution"), 1e-11);
    assert_close(&general.solve_triangular(&right, Triangle::Lower, false)?, &lower, 0.0); // the other triangle is not read

    let exact = LsqrOptions { atol: 1e-14, btol: 1e-14, conlim: 0.0, maxiter: Some(500), ..Default::default() };
    let fit = lsqr(&csr("system/tall")?, &get("system/tall_right"), &exact)?;
    assert_close(&fit.x, &get("system/tall_solution"), 1e-8);
    assert!(fit.stop != 7 && fit.condition > 1.0);
    Ok(())
}

#[test]
fn breakdowns_and_values_that_are_not_finite() -> Result<()> {
    let options = SolverOptions::default();
    let definite = CsrArray::from_dense(&array![[2.0, 0.5], [0.5, 3.0]])?;
    let not_finite = CsrArray::from_dense(&array![[2.0, 0.5], [0.5, f64::NAN]])?;
    for solve in [cg, gmres, bicgstab] {
        for b in [array![f64::NAN, 1.0], array![f64::INFINITY, 1.0]] {
            assert!(!solve(&definite, &b, &options)?.has_converged);
        }
        assert!(!solve(&not_finite, &array![1.0, 1.0], &options)?.has_converged);
        let zero = solve(&definite, &array![0.0, 0.0], &SolverOptions { x0: Some(&array![1.0, 1.0]), ..options })?;
        assert!(zero.has_converged && zero.x == array![0.0, 0.0], "{zero:?}");
    }
    assert!(lsqr(&definite, &array![f64::NAN, 1.0], &LsqrOptions::default())?.residual_norm.is_nan());
    assert!(lsqr(&not_finite, &array![1.0, 1.0], &LsqrOptions::default())?.residual_norm.is_nan());
    let large = cg(&definite, &array![1e20f32, 1e20], &options)?;
    let residual = array![1e20f32, 1e20].subtract(definite.matmul(&large.x)?)?.abs()?.max(())?.item()?.as_f64();
    assert!(!large.has_converged || residual < 1e16, "{large:?}");
    for dtype in [DType::F32, DType::F64] {
        let singular = CsrArray::from_dense(&array![[1.0, 1.0], [1.0, 1.0]].astype(dtype)?)?;
        let solution = gmres(&singular, &array![1.0, 2.0].astype(dtype)?, &options)?;
        assert!(!solution.has_converged);
        assert_close(&solution.x, &array![0.5, 1.0].astype(dtype)?, 1e-6);
    }
    let rotation = CsrArray::from_dense(&array![[0.0, -1.0], [1.0, 0.0]])?;
    let solution = bicgstab(&rotation, &array![1.0, 0.0], &options)?;
    assert!(!solution.has_converged && solution.x == array![0.0, 0.0], "{solution:?}");
    Ok(())
}

#[test]
fn complex_systems() -> Result<()> {
    let matrix = get("eigen/hermitian");
    let n = matrix.shape()[0];
    // Adding a multiple of the identity makes the matrix positive definite.
    let definite = matrix.add(cuprum_core::eye(n, n, 0, DType::C128)?.multiply(30.0)?)?;
    let a = CsrArray::from_dense(&definite)?;
    let want = get("complex128/x").index(s![..1])?.broadcast_to([n])?.multiply(cuprum_core::arange(1, n as i64 + 1, 1)?)?;
    let right = definite.matmul(&want)?;
    let options = SolverOptions { rtol: 1e-12, ..Default::default() };
    for solution in [cg(&a, &right, &options)?, gmres(&a, &right, &options)?, bicgstab(&a, &right, &options)?] {
        assert!(solution.has_converged);
        assert_close(&solution.x, &want, 1e-9);
    }
    let exact = LsqrOptions { atol: 1e-14, btol: 1e-14, conlim: 0.0, maxiter: Some(500), ..Default::default() };
    assert_close(&lsqr(&a, &right, &exact)?.x, &want, 1e-8);
    Ok(())
}

/// Eigenvalues that are small against the largest one have the accuracy of the largest one.
#[test]
fn small_eigenvalues_converge() -> Result<()> {
    let second_difference = |n, dtype| diags_array(&[array![-1.0], array![2.0], array![-1.0]], &[-1, 0, 1], Some([n, n]), dtype);
    for (n, k, which, dtype, tolerance) in [
        (50, 6, Which::SmallestAlgebraic, DType::F64, 1e-12),
        (50, 3, Which::SmallestAlgebraic, DType::F64, 1e-12),
        (150, 3, Which::SmallestAlgebraic, DType::F64, 1e-12),
        (100, 6, Which::SmallestMagnitude, DType::F64, 1e-12),
        (200, 6, Which::SmallestAlgebraic, DType::F32, 1e-4),
    ] {
        let a = second_difference(n, dtype)?;
        let (got, vectors) = eigsh(&a, k, which, &LanczosOptions::default())?;
        let want = eigvalsh(&a.to_dense()?, Triangle::Lower)?.index(s![..k as isize])?;
        assert_close(&got, &want, tolerance);
        assert_close(&a.to_dense()?.matmul(&vectors)?, &vectors.multiply(&got)?, tolerance);
    }
    let few_large =
        cuprum_core::arange(0, 300, 1)?.multiply(1.0 / 300.0)?.add(cuprum_core::arange(0, 300, 1)?.floor_divide(295)?.multiply(4)?)?;
    let (got, _) = eigsh(
        &diags_array(std::slice::from_ref(&few_large), &[0], None, DType::F64)?,
        10,
        Which::SmallestAlgebraic,
        &LanczosOptions::default(),
    )?;
    assert_close(&got, &few_large.index(s![..10])?, 1e-12);
    Ok(())
}

#[test]
fn eigenvalues_and_singular_values() -> Result<()> {
    for (name, values) in [("eigen/matrix", "eigen/values"), ("eigen/hermitian", "eigen/hermitian_values")] {
        let (dense, values) = (get(name), get(values).to_vec::<f64>()?);
        let a = CsrArray::from_dense(&dense)?;
        let n = values.len();
        for which in [Which::LargestAlgebraic, Which::SmallestAlgebraic, Which::LargestMagnitude] {
            for k in [1, 4, 9] {
                let (got, vectors) = eigsh(&a, k, which, &LanczosOptions::default())?;
                let mut order: Vec<f64> = values.clone();
                match which {
                    Which::LargestAlgebraic => order.sort_by(|a, b| b.total_cmp(a)),
                    Which::SmallestAlgebraic => order.sort_by(f64::total_cmp),
                    _ => order.sort_by(|a, b| b.abs().total_cmp(&a.abs())),
                }
                let mut want = order[..k].to_vec();
                want.sort_by(f64::total_cmp);
                assert_close(&got, &NdArray::from_slice(&want)?, 1e-12);
                let residual = dense.matmul(&vectors)?.subtract(vectors.multiply(&got)?)?.abs()?.max(())?.item()?.as_f64();
                assert!(residual < 1e-11 * values[n - 1].abs().max(values[0].abs()) * 10.0, "{which:?}, {k}: {residual:e}");
                let gram = cuprum_core::conj(vectors.t()?)?.matmul(&vectors)?;
                assert_close(&gram.astype(DType::C128)?, &cuprum_core::eye(k, k, 0, DType::C128)?, 1e-12);
            }
        }
    }
    let dense = get("eigen/rectangular");
    let singular = get("eigen/singular").to_vec::<f64>()?;
    for matrix in [dense.clone(), dense.t()?.contiguous()?] {
        let (u, got, vh) = svds(&CsrArray::from_dense(&matrix)?, 5, &LanczosOptions::default())?;
        let mut want = singular[..5].to_vec();
        want.reverse();
        assert_close(&got, &NdArray::from_slice(&want)?, 1e-11);
        let approximation = u.multiply(&got)?.matmul(&vh)?;
        let rest = matrix.subtract(&approximation)?;
        let norm = rest.multiply(&rest)?.sum(())?.sqrt()?.item()?.as_f64();
        let tail = singular[5..].iter().map(|s| s * s).sum::<f64>().sqrt();
        assert!((norm - tail).abs() < 1e-9 * tail, "{norm} {tail}");
    }
    // The vectors of zero singular values are orthonormal too.
    for matrix in [array![[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], array![[0.0; 4]; 3]] {
        for matrix in [matrix.astype(DType::C128)?, matrix.t()?.contiguous()?, matrix] {
            let (u, got, vh) = svds(&CsrArray::from_dense(&matrix)?, 2, &LanczosOptions::default())?;
            let rest = u.multiply(&got)?.matmul(&vh)?.subtract(&matrix)?.abs()?.max(())?.item()?.as_f64();
            assert!(rest < 1e-14 && got.index(0)?.item()?.as_f64() < 1e-14, "{got:?}");
            for vectors in [u.t()?, vh] {
                let gram = vectors.matmul(&cuprum_core::conj(vectors.t()?)?)?;
                assert_close(&gram.astype(DType::C128)?, &cuprum_core::eye(2, 2, 0, DType::C128)?, 1e-14);
            }
        }
    }
    assert!(eigsh(&dense, 2, Which::LargestMagnitude, &LanczosOptions::default()).is_err(), "not square");
    assert!(svds(&dense, 30, &LanczosOptions::default()).is_err(), "k is too large");
    // An invariant subspace, and eigenvalues of high multiplicity.
    let identity = cuprum_sparse::eye_array(40, 40, 0, DType::F64)?;
    let (got, _) = eigsh(&identity, 3, Which::LargestMagnitude, &LanczosOptions::default())?;
    assert_close(&got, &NdArray::from_slice(&[1.0, 1.0, 1.0])?, 1e-14);
    Ok(())
}

/// Returns the Laplacian of a grid of `n` points along each of `axes` axes, and its eigenvalues in ascending order.
fn grid_laplacian(n: usize, axes: usize, is_periodic: bool) -> Result<(SparseArray, Vec<f64>)> {
    let mut offsets = vec![0, 1, -1];
    if is_periodic {
        offsets.extend([n as i64 - 1, 1 - n as i64]);
    }
    let diagonals: Vec<NdArray> = offsets.iter().map(|offset| array![if *offset == 0 { 2.0 } else { -1.0 }]).collect();
    let line: SparseArray = diags_array(&diagonals, &offsets, Some([n, n]), DType::F64)?.into();
    let angle = |j: usize| std::f64::consts::PI * if is_periodic { 2.0 * j as f64 / n as f64 } else { (j + 1) as f64 / (n + 1) as f64 };
    let of_line: Vec<f64> = (0..n).map(|j| 2.0 - 2.0 * angle(j).cos()).collect();
    let (mut grid, mut values) = (line.clone(), of_line.clone());
    for _ in 1..axes {
        let rows = cuprum_core::Array::shape(&grid)[0];
        let left = kron(&grid, &cuprum_sparse::eye_array(n, n, 0, DType::F64)?)?;
        grid = left.add(&kron(&cuprum_sparse::eye_array(rows, rows, 0, DType::F64)?, &line)?)?;
        values = values.iter().flat_map(|value| of_line.iter().map(move |other| value + other)).collect();
    }
    values.sort_by(f64::total_cmp);
    Ok((grid, values))
}

#[test]
fn copies_of_repeated_eigenvalues() -> Result<()> {
    let options = LanczosOptions::default();
    for (n, axes, is_periodic, k) in [(100, 1, true, 3), (10, 2, true, 4), (8, 3, false, 4), (2, 7, false, 8)] {
        let (a, values) = grid_laplacian(n, axes, is_periodic)?;
        for which in [Which::LargestAlgebraic, Which::SmallestAlgebraic] {
            let want = if which == Which::SmallestAlgebraic { &values[..k] } else { &values[values.len() - k..] };
            let (got, vectors) = eigsh(&a, k, which, &options)?;
            assert_close(&got, &NdArray::from_slice(want)?, 1e-12);
            assert_close(&a.matmul(&vectors)?, &vectors.multiply(&got)?, 1e-8);
            assert_close(&vectors.t()?.matmul(&vectors)?, &cuprum_core::eye(k, k, 0, DType::F64)?, 1e-12);
        }
    }
    let pairs = cuprum_core::arange(2, 42, 1)?.floor_divide(2)?;
    let a = diags_array(&[pairs], &[0], None, DType::F64)?;
    for ncv in [5, 20, 40] {
        let (got, _) = eigsh(&a, 2, Which::LargestAlgebraic, &LanczosOptions { ncv: Some(ncv), ..options })?;
        assert_close(&got, &array![20.0, 20.0], 1e-12);
    }
    let ones = [array![1.0], array![-1.0], array![-1.0]];
    let (_, values, _) = svds(&diags_array(&ones, &[0, 1, -49], Some([50, 50]), DType::F64)?, 3, &options)?;
    let second = 2.0 * (0.48 * std::f64::consts::PI).sin();
    assert_close(&values, &array![second, second, 2.0], 1e-12);
    Ok(())
}

#[test]
fn eigenvalues_and_singular_values_of_any_scale() -> Result<()> {
    let options = LanczosOptions::default();
    let diagonal = |scale: f64, dtype: DType| {
        let values = cuprum_core::arange(1.0, 31.0, 1.0)?.multiply(scale)?;
        cuprum_sparse::diags_array(&[values], &[0], None, dtype)
    };
    let check = |got: NdArray, scale: f64, tolerance: f64| {
        let got = got.astype(DType::F64)?.divide(scale)?;
        assert_close(&got, &array![29.0, 30.0], tolerance);
        Result::Ok(())
    };
    let scales = [1e-300, 1e-160, 1e-85, 1e80, 1e160, 1e300].map(|scale| (DType::F64, scale, 1e-12));
    for (dtype, scale, tolerance) in scales.into_iter().chain([1e-30, 1e-10, 1e10, 1e36].map(|scale| (DType::F32, scale, 1e-5))) {
        let a = diagonal(scale, dtype)?;
        check(eigsh(&a, 2, Which::LargestMagnitude, &options)?.0, scale, tolerance)?;
        let (u, values, vh) = svds(&a, 2, &options)?;
        check(values, scale, tolerance)?;
        for vectors in [u, vh.t()?] {
            assert_close(&vectors.t()?.matmul(&vectors)?, &cuprum_core::eye(2, 2, 0, dtype)?, tolerance);
        }
    }
    let subnormal = cuprum_sparse::diags_array(&[array![1e-310, 2e-310, 3e-310, 4e-310]], &[0], None, DType::F64)?;
    assert_close(&eigsh(&subnormal, 2, Which::LargestMagnitude, &options)?.0.divide(1e-310)?, &array![3.0, 4.0], 1e-12);
    let a = diagonal(f64::NAN, DType::F64)?;
    assert!(eigsh(&a, 2, Which::LargestMagnitude, &options).is_err() && svds(&a, 2, &options).is_err());
    let zeros = cuprum_core::zeros(30, DType::F64)?;
    let options = LanczosOptions { v0: Some(&zeros), ..options };
    assert!(eigsh(&diagonal(1.0, DType::F64)?, 2, Which::LargestMagnitude, &options).unwrap_err().to_string().contains("v0"));
    Ok(())
}

#[test]
fn graphs() -> Result<()> {
    let graph = CsrArray::from_dense(&get("graph/matrix"))?;
    let (count, labels) = connected_components(&graph)?;
    assert_close(&labels.astype(DType::I32)?, &get("graph/labels").astype(DType::I32)?, 0.0);
    assert_eq!(count as i128, get("graph/labels").max(())?.item()?.as_int().unwrap() + 1);
    let (got, want) = (shortest_path(&graph, 0)?.to_vec::<f64>()?, get("graph/paths").to_vec::<f64>()?);
    for (got, want) in got.into_iter().zip(want) {
        assert!(got == want || (got - want).abs() < 1e-14, "{got} {want}");
    }
    let cycle = CsrArray::from_dense(&cuprum_core::array![[0.0, -1.0], [-1.0, 0.0]])?;
    assert!(shortest_path(&cycle, 0).unwrap_err().to_string().contains("negative length"));
    let inf = f64::INFINITY;
    for length in [-inf, f64::NAN] {
        let graph = CsrArray::from_dense(&cuprum_core::array![[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, length, 0.0]])?;
        assert_eq!(shortest_path(&graph, 0)?.to_vec::<f64>()?, [0.0, 1.0, inf]);
    }
    Ok(())
}

#[test]
fn files_of_scipy() -> Result<()> {
    let dense = cuprum_io::load(golden("small.npy"))?;
    for name in ["csr", "csc", "coo", "dia", "bsr", "matrix"] {
        let a = load_npz(golden(&format!("{name}.npz")))?;
        assert_eq!(a.format().name(), if name == "matrix" { "csr" } else { name });
        assert_close(&a.to_dense()?, &dense, 0.0);
    }
    assert_close(&read_matrix_market(golden("small.mtx"))?.to_dense()?, &dense, 0.0);
    assert_close(&read_matrix_market(golden("hermitian.mtx"))?.to_dense()?, &cuprum_io::load(golden("hermitian.npy"))?, 0.0);
    assert_close(&read_matrix_market(golden("symmetric.mtx"))?.to_dense()?, &get("system/poisson").index(s![..5, ..5])?.contiguous()?, 0.0);
    Ok(())
}

#[test]
fn files_of_every_format_and_dtype() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let dense = cuprum_io::load(golden("small.npy"))?;
    for dtype in [DType::F32, DType::F64, DType::C64, DType::C128, DType::I8, DType::I64, DType::U64, DType::Bool] {
        let a = CsrArray::from_dense(&dense.multiply(3.0)?.astype(dtype)?)?;
        for format in [Format::Csr, Format::Csc, Format::Coo, Format::Bsr, Format::Dia] {
            let path = folder.path().join("a.npz");
            let a = a.to_format(format)?;
            save_npz(&path, &a, format == Format::Csr)?;
            let back = load_npz(&path)?;
            assert_eq!((back.format(), back.dtype()), (format, dtype));
            assert_close(&back.to_dense()?, &a.to_dense()?, 0.0);
        }
        let path = folder.path().join("a.mtx");
        write_matrix_market(&path, &a, "first line\nsecond line")?;
        assert_close(&read_matrix_market(&path)?.to_dense()?.astype(dtype)?, &a.to_dense()?, 0.0);
    }
    Ok(())
}
