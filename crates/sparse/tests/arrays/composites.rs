//! The composites of the kernel family `Sparse` against the CPU's kernels, for devices without kernels.

use cuprum_backend_cpu as _;
use cuprum_core::call::Sparse as Request;
use cuprum_core::ops::linalg::Triangle;
use cuprum_core::ops::sparse::{
    CsrParts, SPARSE_MULTIPLY, SPARSE_PRODUCT, SPARSE_SAMPLE, SPARSE_SOLVE_TRIANGULAR, multiply_by_dense, multiply_by_sparse,
    sample_dense_product, solve_triangular,
};
use cuprum_core::{DType, Error, NdArray, Op, Result, eye, random};
use cuprum_sparse::{CsrArray, Sparse, SparseMath, random_array};

/// Runs the composite of an operation.
fn composite(op: Op, inputs: &[&NdArray], request: Request) -> Result<Vec<NdArray>> {
    let stored = inputs.iter().map(|a| a.stored()).collect::<Result<Vec<_>>>()?;
    let outputs = op.0.composite.expect("a composite")(&stored, Some(&request))?;
    Ok(outputs.into_iter().map(NdArray::from).collect())
}

fn parts(a: &CsrArray) -> CsrParts<'_> {
    CsrParts { indptr: a.indptr(), indices: a.indices(), values: a.data(), columns: a.columns() }
}

/// The number of columns, for the components.
trait Columns {
    fn columns(&self) -> usize;
}
impl Columns for CsrArray {
    fn columns(&self) -> usize {
        cuprum_core::Array::shape(self)[1]
    }
}

/// Returns a matrix of small integers, whose sums are exact in every dtype.
fn matrix(shape: [usize; 2], density: f64, dtype: DType, seed: u64) -> Result<CsrArray> {
    let a = random_array(shape, density, DType::F64, &random::default_rng(seed))?.to_csr()?;
    let data = a.data().multiply(9.0)?.floor()?.astype(dtype)?;
    CsrArray::new(&data, a.indices(), a.indptr(), shape)
}

#[track_caller]
fn assert_same(got: &NdArray, want: &NdArray) {
    assert_eq!((got.shape(), got.dtype()), (want.shape(), want.dtype()));
    assert!(got.size() == 0 || got.equal(want).unwrap().all(()).unwrap().item().unwrap().as_bool(), "{got:?}\n{want:?}");
}

#[test]
fn composites_give_the_results_of_kernels() -> Result<()> {
    for dtype in [DType::Bool, DType::I8, DType::U16, DType::I32, DType::I64, DType::F32, DType::F64, DType::C64, DType::C128] {
        for (rows, inner, columns, density) in [(1, 1, 1, 1.0), (40, 30, 20, 0.1), (7, 200, 9, 0.02), (60, 5, 50, 0.5), (9, 9, 9, 0.0)] {
            let (a, b) = (matrix([rows, inner], density, dtype, 1)?, matrix([inner, columns], density, dtype, 2)?);
            let dense = b.to_dense()?;
            if a.nnz() == 0 {
                continue;
            }
            for x in [dense.index(cuprum_core::s![.., 0])?.contiguous()?, dense.clone()] {
                let got = composite(SPARSE_MULTIPLY, &[a.indptr(), a.indices(), a.data(), &x], Request::Multiply)?;
                assert_same(&got[0], &multiply_by_dense(parts(&a), &x)?);
            }
            if b.nnz() > 0 {
                let inputs = [a.indptr(), a.indices(), a.data(), b.indptr(), b.indices(), b.data()];
                let got = composite(SPARSE_PRODUCT, &inputs, Request::Product { columns })?;
                let (indptr, indices, values) = multiply_by_sparse(parts(&a), parts(&b))?;
                assert_same(&got[0], &indptr);
                assert_same(&got[1], &indices);
                assert_same(&got[2], &values);
            }
            let (x, y) = (matrix([rows, 11], 0.8, dtype, 3)?.to_dense()?, matrix([inner, 11], 0.8, dtype, 4)?.to_dense()?);
            let got = composite(SPARSE_SAMPLE, &[a.indptr(), a.indices(), &x, &y], Request::Sample)?;
            assert_same(&got[0], &sample_dense_product(a.indptr(), a.indices(), &x, &y)?);
        }
    }
    Ok(())
}

#[test]
fn triangular_solutions_by_composition() -> Result<()> {
    for (n, density) in [(1, 0.0), (30, 0.2), (100, 0.02)] {
        let a = matrix([n, n], density, DType::F64, 5)?.scale(0.1)?;
        for (triangle, part) in [(Triangle::Lower, a.tril(-1)?), (Triangle::Upper, a.triu(1)?)] {
            let system = part.add(&CsrArray::from_dense(&eye(n, n, 0, DType::F64)?.multiply(2.0)?)?)?.to_csr()?;
            // Elements of the other triangle are not read.
            let noisy = system.add(&if triangle == Triangle::Lower { a.triu(1)? } else { a.tril(-1)? })?.to_csr()?;
            for shape in [vec![n], vec![n, 3]] {
                let size: usize = shape.iter().product();
                let b = NdArray::from_vec((0..size).map(|i| (i % 7) as f64).collect::<Vec<_>>(), shape)?;
                for unit_diagonal in [false, true] {
                    let request = Request::SolveTriangular { triangle, unit_diagonal };
                    let got = composite(SPARSE_SOLVE_TRIANGULAR, &[noisy.indptr(), noisy.indices(), noisy.data(), &b], request)?;
                    let want = solve_triangular(parts(&noisy), &b, triangle, unit_diagonal)?;
                    let difference = got[0].subtract(&want)?.abs()?.max(())?.item()?.as_f64();
                    assert!(difference <= 1e-12, "{difference}");
                }
            }
        }
    }
    let singular = CsrArray::from_dense(&cuprum_core::array![[1.0, 0.0], [1.0, 0.0]])?;
    let request = Request::SolveTriangular { triangle: Triangle::Lower, unit_diagonal: false };
    let inputs = [singular.indptr(), singular.indices(), singular.data(), &cuprum_core::array![1.0, 1.0]];
    assert!(matches!(composite(SPARSE_SOLVE_TRIANGULAR, &inputs, request), Err(Error::LinAlg { .. })));
    Ok(())
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() -> Result<()> {
    let a = random_array([5000, 4000], 0.005, DType::F32, &random::default_rng(7))?.to_csr()?;
    let x = random::default_rng(8).random([4000, 20], DType::F32)?;
    let compute = || -> Result<Vec<NdArray>> {
        let squared = a.matmul_sparse(&a.transpose()?)?.to_csr()?;
        let column = x.index(cuprum_core::s![.., 3])?;
        [
            a.matmul(&column)?,
            a.matmul(&x)?,
            squared.data().clone(),
            a.sampled_matmul(&cuprum_core::ones([5000, 20], DType::F32)?, &x.t()?)?.to_csr()?.data().clone(),
        ]
        .iter()
        .map(|a| a.contiguous()?.eval().cloned())
        .collect()
    };
    let one = cuprum_backend_cpu::with_threads(1, compute)??;
    for threads in [2, 3, 7] {
        for (got, want) in cuprum_backend_cpu::with_threads(threads, compute)??.iter().zip(&one) {
            assert_same(got, want);
        }
    }
    Ok(())
}

#[test]
fn indices_beyond_the_rows() -> Result<()> {
    let (a, b) = (cuprum_core::zeros((0, 1), DType::F64)?, cuprum_core::array![[1.0]]);
    assert_eq!(sample_dense_product(&cuprum_core::array![0], &cuprum_core::array![0, 0], &a, &b)?, cuprum_core::array![0.0, 0.0]);
    Ok(())
}

#[test]
fn kernels_check_indices() {
    let (values, b) = (cuprum_core::array![1.0, 2.0], cuprum_core::array![1.0, 1.0]);
    let (indptr, valid) = (cuprum_core::array![0, 1, 2], cuprum_core::array![0, 1]);
    for indices in [cuprum_core::array![0, 2], cuprum_core::array![0, -1], cuprum_core::array![i32::MAX, i32::MIN]] {
        let m = CsrParts { indptr: &indptr, indices: &indices, values: &values, columns: 2 };
        let good = CsrParts { indices: &valid, ..m };
        assert!(matches!(multiply_by_dense(m, &b), Err(Error::Index { .. })));
        assert!(matches!(multiply_by_dense(m, &eye(2, 2, 0, DType::F64).unwrap()), Err(Error::Index { .. })));
        assert!(
            matches!(multiply_by_sparse(m, good), Err(Error::Index { .. }))
                && matches!(multiply_by_sparse(good, m), Err(Error::Index { .. }))
        );
        let square = eye(2, 2, 0, DType::F64).unwrap();
        assert!(matches!(sample_dense_product(&indptr, &indices, &square, &square), Err(Error::Index { .. })));
        assert!(matches!(solve_triangular(m, &b, Triangle::Lower, true), Err(Error::Index { .. })));
    }
    for indptr in [cuprum_core::array![0, 3, 2], cuprum_core::array![0, 1, 3], cuprum_core::array![-1, 1, 2]] {
        let m = CsrParts { indptr: &indptr, indices: &valid, values: &values, columns: 2 };
        assert!(multiply_by_dense(m, &b).unwrap_err().to_string().contains("must not decrease"));
        assert!(multiply_by_sparse(m, m).is_err() && solve_triangular(m, &b, Triangle::Upper, true).is_err());
    }
}
