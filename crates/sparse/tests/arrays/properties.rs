//! Sparse arrays against loops over dense arrays, for random shapes, formats, structures and dtypes.

use cuprum_backend_cpu as _;
use cuprum_core::ops::elementwise::{ADD, GREATER, LESS, MAXIMUM, MINIMUM, MULTIPLY, NOT_EQUAL, SUBTRACT};
use cuprum_core::ops::linalg::Triangle;
use cuprum_core::{Array, DType, Device, Item, NdArray, Op, Result, expr::elementwise, s};
use cuprum_sparse::{BsrArray, CooArray, CscArray, CsrArray, DiaArray, Format, NormOrder, Sparse, SparseArray, SparseMath};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

const FORMATS: [Format; 5] = [Format::Csr, Format::Csc, Format::Coo, Format::Bsr, Format::Dia];

/// A random matrix by elements, which may repeat and be in any order. Values are small integers, so that sums are exact.
#[derive(Clone, Debug)]
struct Elements {
    shape: [usize; 2],
    elements: Vec<(usize, usize, i8)>,
    wide: bool,
}

impl Elements {
    fn dense(&self, dtype: DType) -> NdArray {
        let mut values = vec![0i64; self.shape[0] * self.shape[1]];
        for &(row, column, value) in &self.elements {
            values[row * self.shape[1] + column] += i64::from(value);
        }
        NdArray::from_vec(values, self.shape).unwrap().astype(dtype).unwrap()
    }

    fn coo(&self, dtype: DType) -> CooArray {
        let index = if self.wide { DType::I64 } else { DType::I32 };
        let column =
            |f: fn(&(usize, usize, i8)) -> i64| NdArray::from_vec(self.elements.iter().map(f).collect::<Vec<_>>(), self.elements.len());
        let (row, col) = (column(|e| e.0 as i64).unwrap().astype(index).unwrap(), column(|e| e.1 as i64).unwrap().astype(index).unwrap());
        CooArray::new(&column(|e| i64::from(e.2)).unwrap().astype(dtype).unwrap(), &row, &col, self.shape).unwrap()
    }

    /// Returns the matrix in CSR format with rows in the given order of elements, unsorted and with repeated elements.
    fn unsorted_csr(&self, dtype: DType) -> CsrArray {
        let mut elements = self.elements.clone();
        elements.sort_by_key(|e| e.0); // stable: columns keep their random order
        let indptr: Vec<i64> = (0..=self.shape[0]).map(|row| elements.iter().filter(|e| e.0 < row).count() as i64).collect();
        let indices: Vec<i64> = elements.iter().map(|e| e.1 as i64).collect();
        let data: Vec<i64> = elements.iter().map(|e| i64::from(e.2)).collect();
        let index = if self.wide { DType::I64 } else { DType::I32 };
        let array = |v: Vec<i64>, dtype| NdArray::from_slice(&v).unwrap().astype(dtype).unwrap();
        CsrArray::new(&array(data, dtype), &array(indices, index), &array(indptr, index), self.shape).unwrap()
    }

    fn in_format(&self, format: Format, dtype: DType) -> SparseArray {
        match format {
            Format::Csr => self.unsorted_csr(dtype).into(),
            Format::Coo => self.coo(dtype).into(),
            other => self.coo(dtype).to_format(other).unwrap(),
        }
    }
}

fn elements(rows: impl Strategy<Value = usize> + 'static, columns: impl Strategy<Value = usize> + 'static) -> BoxedStrategy<Elements> {
    (rows, columns, any::<bool>())
        .prop_flat_map(|(rows, columns, wide)| {
            let one = (0..rows.max(1), 0..columns.max(1), -3i8..4);
            let count = if rows * columns == 0 { 0 } else { 24 };
            prop::collection::vec(one, 0..=count).prop_map(move |elements| Elements { shape: [rows, columns], elements, wide })
        })
        .boxed()
}

fn any_matrix() -> BoxedStrategy<Elements> {
    elements(0usize..7, 0usize..7)
}

fn dtypes() -> impl Strategy<Value = DType> {
    prop::sample::select(vec![DType::F32, DType::F64, DType::C64, DType::C128, DType::I8, DType::I32, DType::I64, DType::U8])
}

fn formats() -> impl Strategy<Value = Format> {
    prop::sample::select(FORMATS.to_vec())
}

/// Runs cases with a fixed seed, as the other property tests do.
fn check<S: Strategy>(strategy: S, test: impl Fn(S::Value) -> Result<()>) {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[25; 32]));
    let outcome = cuprum_core::with_device(Device::CPU, || {
        runner.run(&strategy, |value| test(value).map_err(|e| TestCaseError::fail(e.to_string())))
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[track_caller]
fn assert_same(got: &NdArray, want: &NdArray) {
    assert_eq!((got.shape(), got.dtype()), (want.shape(), want.dtype()));
    let is_equal = got.size() == 0 || got.equal(want).unwrap().all(()).unwrap().item().unwrap().as_bool();
    assert!(is_equal, "{got:?}\nis not\n{want:?}");
}

/// Checks the structure of the components of a result, as the constructors do.
fn assert_valid(a: &SparseArray) {
    let shape = [a.shape()[0], a.shape()[1]];
    match a {
        SparseArray::Csr(a) => drop(CsrArray::new(a.data(), a.indices(), a.indptr(), shape).unwrap()),
        SparseArray::Csc(a) => drop(CscArray::new(a.data(), a.indices(), a.indptr(), shape).unwrap()),
        SparseArray::Coo(a) => drop(CooArray::new(a.data(), a.row(), a.column(), shape).unwrap()),
        SparseArray::Bsr(a) => drop(BsrArray::new(a.data(), a.indices(), a.indptr(), shape).unwrap()),
        SparseArray::Dia(a) => drop(DiaArray::new(a.data(), a.offsets(), shape).unwrap()),
    }
}

#[test]
fn conversions_keep_the_elements() {
    check((any_matrix(), formats(), formats(), dtypes()), |(m, from, to, dtype)| {
        let (a, want) = (m.in_format(from, dtype), m.dense(dtype));
        assert_valid(&a);
        let b = a.to_format(to)?;
        assert_valid(&b);
        assert_eq!(b.format(), to);
        assert_same(&a.to_dense()?, &want);
        assert_same(&b.to_dense()?, &want);
        let t = b.transpose()?;
        assert_valid(&t);
        assert_same(&t.to_dense()?, &want.t()?.contiguous()?);
        assert_same(&t.transpose()?.to_dense()?, &want);
        let back: SparseArray = CsrArray::from_dense(&want)?.into();
        assert_same(&back.to_dense()?, &want);
        Ok(())
    });
}

#[test]
fn blocks_hold_all_elements() {
    check((elements((1usize..4).prop_map(|n| n * 2), (1usize..4).prop_map(|n| n * 3)), dtypes()), |(m, dtype)| {
        let a = m.coo(dtype).to_bsr([2, 3])?;
        assert_same(&a.to_dense()?, &m.dense(dtype));
        assert_same(&a.transpose()?.to_dense()?, &m.dense(dtype).t()?.contiguous()?);
        assert!(m.coo(dtype).to_bsr([4, 5]).is_err() || m.shape[0] % 4 == 0);
        Ok(())
    });
}

#[test]
fn products_with_dense_arrays() {
    let cases = (any_matrix(), formats(), dtypes(), prop::sample::select(vec![None, Some(1usize), Some(2), Some(5), Some(19), Some(37)]));
    check(cases, |(m, format, dtype, width)| {
        let (a, dense) = (m.in_format(format, dtype), m.dense(dtype));
        let numbers = |shape: Vec<usize>| {
            let size: usize = shape.iter().product();
            NdArray::from_vec((0..size as i64).map(|i| (i * 7 + 3) % 5 - 2).collect::<Vec<_>>(), shape)?.astype(dtype)
        };
        let [rows, columns] = m.shape;
        let right = numbers(std::iter::once(columns).chain(width).collect())?;
        assert_same(&a.matmul(&right)?, &dense.matmul(&right)?);
        let left = numbers(width.into_iter().chain([rows]).collect())?;
        assert_same(&a.rmatmul(&left)?, &left.matmul(&dense)?);
        // A strided dense factor.
        if let Some(width) = width {
            let right = numbers(vec![width, columns])?.t()?;
            assert_same(&a.matmul(&right)?, &dense.matmul(&right)?);
        }
        Ok(())
    });
}

#[test]
fn products_of_sparse_arrays() {
    let pairs = (0usize..7, 0usize..7, 0usize..7).prop_flat_map(|(m, k, n)| (elements(Just(m), Just(k)), elements(Just(k), Just(n))));
    check((pairs, formats(), formats(), dtypes()), |((a, b), format_a, format_b, dtype)| {
        let product = a.in_format(format_a, dtype).matmul_sparse(&b.in_format(format_b, dtype))?;
        assert_valid(&product);
        assert_same(&product.to_dense()?, &a.dense(dtype).matmul(&b.dense(dtype))?);
        let csr = product.to_csr()?;
        assert!(csr.has_canonical_format()? || !matches!(product, SparseArray::Csr(_)));
        Ok(())
    });
}

#[test]
fn bools_combine_by_or() {
    check((elements(Just(4usize), Just(5usize)), elements(Just(5usize), Just(4usize))), |(a, b)| {
        let sparse = |m: &Elements| m.coo(DType::I64).to_csr()?.astype(DType::Bool);
        let dense = |m: &Elements| m.dense(DType::Bool);
        assert_same(&sparse(&a)?.matmul(&dense(&b))?, &dense(&a).matmul(&dense(&b))?);
        assert_same(&sparse(&a)?.matmul_sparse(&sparse(&b)?)?.to_dense()?, &dense(&a).matmul(&dense(&b))?);
        Ok(())
    });
}

#[test]
fn sampled_products() {
    check((any_matrix(), formats(), 0usize..12), |(m, format, k)| {
        let [rows, columns] = m.shape;
        let x = NdArray::from_vec((0..rows * k).map(|i| (i % 5) as f64).collect::<Vec<_>>(), [rows, k])?;
        let y = NdArray::from_vec((0..columns * k).map(|i| (i % 3) as f64 - 1.0).collect::<Vec<_>>(), [k, columns])?;
        let pattern = m.in_format(format, DType::F64);
        let got = pattern.sampled_matmul(&x, &y)?;
        let mask = pattern.to_csr()?.sum_duplicates()?;
        let ones: SparseArray = CsrArray::new(&mask.data().multiply(0)?.add(1.0)?, mask.indices(), mask.indptr(), m.shape)?.into();
        assert_same(&got.to_dense()?, &ones.to_dense()?.multiply(x.matmul(&y)?)?);
        Ok(())
    });
}

#[test]
fn elementwise_operations() {
    let ops: Vec<Op> = vec![ADD, SUBTRACT, MULTIPLY, MAXIMUM, MINIMUM, NOT_EQUAL, LESS, GREATER];
    // The shape of each operand, or an extent of 1, which is broadcast.
    let pairs = (0usize..6, 0usize..6, any::<[bool; 4]>()).prop_flat_map(|(rows, columns, ones)| {
        let side = |a: bool, b: bool| elements(Just(if a { 1 } else { rows }), Just(if b { 1 } else { columns }));
        (side(ones[0] && ones[1], ones[2] && ones[3]), side(ones[0] && ones[2], ones[1] && ones[3]))
    });
    check((pairs, formats(), formats(), dtypes(), prop::sample::select(ops)), |((a, b), format_a, format_b, dtype, op)| {
        let (x, y) = (a.in_format(format_a, dtype), b.in_format(format_b, dtype));
        let want = elementwise(op, &[a.dense(dtype).into(), b.dense(dtype).into()])?;
        let got = x.elementwise(op, &y)?;
        assert_valid(&got);
        assert_same(&got.to_dense()?, &want.contiguous()?);
        assert!(got.eliminate_zeros()?.nnz() == got.nnz(), "results that are zero are not stored");
        assert_same(&x.add_dense(&b.dense(dtype))?, &a.dense(dtype).add(b.dense(dtype))?);
        assert_same(&x.multiply_dense(&b.dense(dtype))?.to_dense()?, &a.dense(dtype).multiply(b.dense(dtype))?);
        assert_same(&x.scale(3)?.to_dense()?, &a.dense(dtype).multiply(3)?);
        assert_same(&x.power(2)?.to_dense()?, &a.dense(dtype).power(2)?);
        Ok(())
    });
}

#[test]
fn operations_that_are_not_sparse_are_errors() {
    let a = CsrArray::from_dense(&NdArray::from_vec(vec![1.0, 0.0], [1, 2]).unwrap()).unwrap();
    let message = a.elementwise(cuprum_core::ops::elementwise::EQUAL, &a).unwrap_err().to_string();
    assert!(message.contains("the result of two zeros is not zero"), "{message}");
    assert!(a.map(cuprum_core::ops::elementwise::COS).is_err() && a.power(0).is_err() && a.power(0.0).is_err());
    let other = CsrArray::zeros([2, 3], DType::F64).unwrap();
    assert!(a.add(&other).unwrap_err().to_string().contains("(1, 2), (2, 3)"));
}

#[test]
fn reductions_along_axes() {
    // Repeated elements of narrow integers are added in int64 here, and wrap in the dense array.
    let wide = dtypes().prop_filter("wide", |dtype| dtype.itemsize() > 1);
    check((elements(1usize..7, 1usize..7), formats(), wide, -7i64..8), |(m, format, dtype, k)| {
        let (a, dense) = (m.in_format(format, dtype), m.dense(dtype));
        assert_same(&a.sum(())?, &dense.sum(())?);
        assert_same(&a.count_nonzero(())?, &cuprum_core::count_nonzero(&dense, ())?);
        assert_same(&a.max(())?, &dense.max(())?);
        assert_same(&a.min(())?, &dense.min(())?);
        for axis in [0, 1, -1] {
            assert_same(&a.sum(axis)?, &dense.sum(axis)?);
            assert_same(&a.count_nonzero(axis)?, &cuprum_core::count_nonzero(&dense, axis)?);
            assert_same(&a.max(axis)?, &dense.max(axis)?);
            assert_same(&a.min(axis)?, &dense.min(axis)?);
            let difference = a.mean(axis)?.subtract(dense.mean(axis)?)?.abs()?.max(())?.item()?.as_f64();
            assert!(difference < 1e-6 && a.mean(axis)?.dtype() == dense.mean(axis)?.dtype());
        }
        assert_same(&a.diagonal(k)?, &dense.diagonal(k as isize, 0, 1)?.contiguous()?);
        assert!(a.sum(2).is_err());
        Ok(())
    });
}

#[test]
fn norms() {
    check((elements(1usize..7, 1usize..7), formats()), |(m, format)| {
        let (a, dense) = (m.in_format(format, DType::F64), m.dense(DType::F64).abs()?);
        let close = |got: NdArray, want: NdArray| {
            let difference = got.subtract(want)?.abs()?.max(())?.item()?.as_f64();
            assert!(difference < 1e-12, "{difference}");
            Result::Ok(())
        };
        close(a.norm(NormOrder::Frobenius, None)?, dense.multiply(&dense)?.sum(())?.sqrt()?)?;
        close(a.norm(NormOrder::One, None)?, dense.sum(0)?.max(())?)?;
        close(a.norm(NormOrder::MinusOne, None)?, dense.sum(0)?.min(())?)?;
        close(a.norm(NormOrder::Infinity, None)?, dense.sum(1)?.max(())?)?;
        close(a.norm(NormOrder::MinusInfinity, None)?, dense.sum(1)?.min(())?)?;
        for axis in [0, 1] {
            close(a.norm(NormOrder::Frobenius, Some(axis))?, dense.multiply(&dense)?.sum(axis)?.sqrt()?)?;
            close(a.norm(NormOrder::Infinity, Some(axis))?, dense.max(axis)?)?;
            close(a.norm(NormOrder::MinusInfinity, Some(axis))?, dense.min(axis)?)?;
        }
        Ok(())
    });
}

#[test]
fn slices_and_elements() {
    let bound = || prop::option::of(-9isize..10);
    let step = prop::sample::select(vec![1isize, 1, 2, 3, -1, -2]);
    let slice = (bound(), bound(), step).prop_map(|(start, stop, step)| Item::slice(start, stop, step)).boxed();
    check((elements(1usize..7, 1usize..7), formats(), slice.clone(), slice, any::<[u8; 4]>()), |(m, format, rows, columns, picks)| {
        let (a, dense) = (m.in_format(format, DType::F64), m.dense(DType::F64));
        let part = a.index(s![rows, columns])?;
        assert_valid(&part);
        assert_same(&part.to_dense()?, &dense.index(s![rows, columns])?.contiguous()?);
        assert_same(&a.index(s![rows])?.to_dense()?, &dense.index(s![rows])?.contiguous()?);
        let [r, c] = m.shape;
        let list = NdArray::from_slice(&picks.map(|p| i64::from(p) % r as i64 - i64::from(p & 1) * r as i64 / 2))?;
        assert_same(&a.index(s![&list, columns])?.to_dense()?, &dense.take(&list, 0)?.index(s![.., columns])?.contiguous()?);
        let list = NdArray::from_slice(&picks.map(|p| i64::from(p) % c as i64))?;
        assert_same(&a.index(s![rows, &list])?.to_dense()?, &dense.take(&list, 1)?.index(s![rows, ..])?.contiguous()?);
        let (i, j) = (picks[0] as usize % r, picks[1] as usize % c);
        assert_same(&a.index(s![i, ..])?.to_dense()?, &dense.index(s![i..i + 1])?);
        assert_eq!(a.get(i as isize, j as isize)?.as_f64(), dense.index(s![i, j])?.item()?.as_f64());
        let (row, column) = (NdArray::from_slice(&[i as i64, 0])?, NdArray::from_slice(&[j as i64, -1])?);
        assert_same(&a.values_at(&row, &column)?, &dense.index(s![&row, &column])?);
        let mask = dense.sum(1)?.greater(0)?;
        assert_same(&a.index(s![&mask])?.to_dense()?, &dense.compress(&mask, 0)?);
        assert_same(&a.tril(picks[2] as i64 % 5 - 2)?.to_dense()?.add(a.triu(picks[2] as i64 % 5 - 1)?.to_dense()?)?, &dense);
        assert!(a.index(s![r as isize]).is_err() && a.get(0, c as isize).is_err() && a.index(s![0, 0, 0]).is_err());
        Ok(())
    });
}

#[test]
fn triangular_solutions() {
    let square = (1usize..8).prop_flat_map(|n| elements(Just(n), Just(n)));
    check((square, formats(), any::<[bool; 2]>(), prop::option::of(1usize..4)), |(m, format, [lower, unit], width)| {
        let n = m.shape[0];
        let mut m = m.clone();
        m.elements.retain(|e| e.0 != e.1);
        m.elements.extend((0..n).map(|i| (i, i, 2)));
        let (a, dense) = (m.in_format(format, DType::F64), m.dense(DType::F64));
        let want = NdArray::from_vec((0..n * width.unwrap_or(1)).map(|i| (i % 5) as f64).collect::<Vec<_>>(), [n, width.unwrap_or(1)])?;
        let want = if width.is_none() { want.ravel()? } else { want };
        let part: SparseArray = CsrArray::from_dense(&dense)?.into();
        let mut part = if lower { part.tril(-1)? } else { part.triu(1)? }.to_dense()?;
        let diagonal = cuprum_core::eye(n, n, 0, DType::F64)?.multiply(if unit { 1.0 } else { 2.0 })?;
        part = part.add(diagonal)?;
        let triangle = if lower { Triangle::Lower } else { Triangle::Upper };
        let got = a.solve_triangular(&part.matmul(&want)?, triangle, unit)?;
        let difference = got.subtract(&want)?.abs()?.max(())?.item()?.as_f64();
        assert!(difference < 1e-6, "{difference}");
        Ok(())
    });
}
