//! Products of sparse matrices on a real device, against dense products and against the composites.

use std::collections::BTreeMap;

use cuprum_backend_cuda as _;
use cuprum_core::ops::sparse::{CsrParts, SPARSE_MULTIPLY, multiply_by_dense, multiply_by_sparse, solve_triangular};
use cuprum_core::{Complex, DType, Element, Error, Family, NdArray, Result, explain, ops::linalg::Triangle, zeros};

use crate::try_on_device;

/// A matrix in compressed row format, by the lengths of its rows. Values are small integers, so that sums are exact.
fn matrix(lengths: &[usize], columns: usize, dtype: DType, index: DType) -> Result<[NdArray; 3]> {
    let mut indptr = vec![0i64];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for (row, &length) in lengths.iter().enumerate() {
        for n in 0..length {
            indices.push(((row * 31 + n * 17) % columns) as i64);
            values.push(((row + n * 7) % 5) as i64 - 2);
        }
        indptr.push(indices.len() as i64);
    }
    let array = |v: &[i64], dtype| NdArray::from_slice(v)?.astype(dtype)?.eval().cloned();
    Ok([array(&indptr, index)?, array(&indices, index)?, array(&values, dtype)?])
}

fn dense(shape: &[usize], dtype: DType) -> Result<NdArray> {
    let size = shape.iter().product::<usize>();
    NdArray::from_vec((0..size).map(|i| (i % 7) as i64 - 3).collect::<Vec<_>>(), shape)?.astype(dtype)?.eval().cloned()
}

#[test]
fn products_by_kernels_equal_composites() {
    try_on_device(|_| {
        // Regular rows, empty rows, and rows that a whole block computes.
        let long: Vec<usize> = (0..40)
            .map(|n| {
                if n == 7 {
                    9000
                } else if n == 33 {
                    4097
                } else {
                    n % 3
                }
            })
            .collect();
        // Rows that a warp computes, and lengths at the limits between teams, warps and blocks.
        let mixed: Vec<usize> =
            (0..600).map(|n| *[300, 64, 65, 2048, 2049, 128, 129].get(n / 60).filter(|_| n % 60 == 7).unwrap_or(&1)).collect();
        let shapes: [(&[usize], usize); 6] =
            [(&[0, 1, 5, 0, 3], 6), (&[12; 300], 50), (&[200; 70], 1000), (&long, 500), (&mixed, 700), (&[1; 5000], 5000)];
        for dtype in [DType::Bool, DType::I8, DType::I32, DType::I64, DType::U16, DType::F32, DType::F64, DType::C64, DType::C128] {
            for (n, (lengths, columns)) in shapes.iter().enumerate() {
                let index = if n % 2 == 0 { DType::I32 } else { DType::I64 };
                let [indptr, indices, values] = matrix(lengths, *columns, dtype, index)?;
                let m = CsrParts { indptr: &indptr, indices: &indices, values: &values, columns: *columns };
                for width in [None, Some(1), Some(3), Some(33), Some(130)] {
                    let shape: Vec<usize> = std::iter::once(*columns).chain(width).collect();
                    let b = dense(&shape, dtype)?;
                    let (got, records) = explain(|| multiply_by_dense(m, &b)?.to_bytes());
                    assert!(records.iter().any(|r| r.family == Family::Sparse && r.served_by == Some("cuda")), "{records:?}");
                    let stored = [indptr.stored()?, indices.stored()?, values.stored()?, b.stored()?];
                    let composite = SPARSE_MULTIPLY.0.composite.expect("a composite");
                    let want = NdArray::from(composite(&stored, None)?.remove(0));
                    assert!(got? == want.to_bytes()?, "{dtype}, {} rows, {width:?}", lengths.len());
                }
            }
        }
        Ok(())
    });
}

#[test]
fn products_of_two_sparse_matrices() {
    try_on_device(|_| {
        let [indptr, indices, values] = matrix(&[7; 90], 90, DType::F64, DType::I32)?;
        let m = CsrParts { indptr: &indptr, indices: &indices, values: &values, columns: 90 };
        let (p, i, v) = multiply_by_sparse(m, m)?;
        let b = dense(&[90], DType::F64)?;
        let squared = CsrParts { indptr: &p, indices: &i, values: &v, columns: 90 };
        assert!(multiply_by_dense(squared, &b)?.to_bytes()? == multiply_by_dense(m, &multiply_by_dense(m, &b)?)?.to_bytes()?);
        Ok(())
    });
}

/// `indptr`, `indices` and `values` of a matrix.
type HostMatrix<T> = (Vec<i64>, Vec<i64>, Vec<T>);

/// Returns the product of two matrices. Its sums add their terms in the order of the elements of the first matrix.
fn product_on_host<T: Copy>(a: &HostMatrix<T>, b: &HostMatrix<T>, times: fn(T, T) -> T, plus: fn(T, T) -> T) -> HostMatrix<T> {
    let mut out: HostMatrix<T> = (vec![0], Vec::new(), Vec::new());
    for row in a.0.windows(2) {
        let mut sums = BTreeMap::new();
        for at in row[0] as usize..row[1] as usize {
            let inner = a.1[at] as usize;
            for p in b.0[inner] as usize..b.0[inner + 1] as usize {
                let term = times(a.2[at], b.2[p]);
                sums.entry(b.1[p]).and_modify(|sum| *sum = plus(*sum, term)).or_insert(term);
            }
        }
        out.1.extend(sums.keys());
        out.2.extend(sums.values());
        out.0.push(out.1.len() as i64);
    }
    out
}

/// Multiplies two matrices on the device and on the host, and compares structure and bits.
fn check_product<T: Element>(a: [&NdArray; 3], b: [&NdArray; 3], columns: usize, times: fn(T, T) -> T, plus: fn(T, T) -> T) -> Result<()> {
    let host = |m: [&NdArray; 3]| Ok::<_, Error>((read_integers(m[0])?, read_integers(m[1])?, m[2].to_vec::<T>()?));
    fn parts([indptr, indices, values]: [&NdArray; 3], columns: usize) -> CsrParts<'_> {
        CsrParts { indptr, indices, values, columns }
    }
    let (inner, index) = (b[0].size() - 1, a[1].dtype());
    let (got, records) = explain(|| multiply_by_sparse(parts(a, inner), parts(b, columns)));
    let (indptr, indices, values) = got?;
    let is_served = records.iter().any(|r| r.family == Family::Sparse && r.served_by == Some("cuda"));
    assert!(is_served || a[1].size() == 0, "{records:?}");
    let want = product_on_host(&host(a)?, &host(b)?, times, plus);
    assert_eq!([indptr.dtype(), indices.dtype(), values.dtype()], [index, index, T::DTYPE]);
    assert!(read_integers(&indptr)? == want.0 && read_integers(&indices)? == want.1, "{} structure", T::DTYPE);
    assert!(values.to_bytes()? == NdArray::from_slice(&want.2)?.to_bytes()?, "{} values", T::DTYPE);
    Ok(())
}

fn read_integers(a: &NdArray) -> Result<Vec<i64>> {
    a.astype(DType::I64)?.to_vec()
}

/// Products of every class of rows: without elements, with few, and with so many that their products exceed the hash tables.
#[test]
fn products_of_sparse_matrices_have_ordered_sums() {
    try_on_device(|_| {
        let mixed: Vec<usize> = (0..500).map(|n| if n % 97 == 5 { 400 } else { n % 14 }).collect();
        let hubs: Vec<usize> = (0..300).map(|n| if n % 50 == 0 { 900 } else { 3 }).collect();
        let shapes: [(&[usize], &[usize], usize); 7] = [
            (&[0, 0], &[1, 0, 2], 4),
            (&[1], &[1], 1),
            (&[7; 90], &[7; 90], 90),
            (&[16; 200], &[16; 150], 5000),
            (&[32; 64], &[8; 80], 33),
            (&mixed, &mixed, 700),
            (&hubs, &[5; 1000], 100_003),
        ];
        for (n, (lengths, other, columns)) in shapes.into_iter().enumerate() {
            let index = if n % 2 == 0 { DType::I32 } else { DType::I64 };
            macro_rules! check {
                ($($t:ty: $times:expr, $plus:expr, $value:expr;)*) => {$({
                    // Sums of reciprocals depend on the order of their terms.
                    let value: fn(NdArray) -> Result<NdArray> = $value;
                    let made = |lengths: &[usize], columns| matrix(lengths, columns, <$t>::DTYPE, index);
                    let ([p, i, v], [q, j, w]) = (made(lengths, other.len())?, made(other, columns)?);
                    let (v, w) = (value(v)?.eval()?.clone(), value(w)?.eval()?.clone());
                    check_product::<$t>([&p, &i, &v], [&q, &j, &w], columns, $times, $plus)?;
                })*};
            }
            check! {
                bool: |a, b| a & b, |a, b| a | b, Ok;
                u8: u8::wrapping_mul, u8::wrapping_add, Ok;
                i32: i32::wrapping_mul, i32::wrapping_add, Ok;
                i64: i64::wrapping_mul, i64::wrapping_add, Ok;
                f32: |a, b| a * b, |a, b| a + b, |v| v.add(2.5)?.reciprocal();
                f64: |a, b| a * b, |a, b| a + b, |v| v.add(2.5)?.reciprocal();
                Complex<f32>: |a, b| a * b, |a, b| a + b, |v| v.add(2.5)?.reciprocal();
                Complex<f64>: |a, b| a * b, |a, b| a + b, |v| v.add(2.5)?.reciprocal();
            }
        }
        Ok(())
    });
}

#[test]
fn triangular_solutions() {
    try_on_device(|_| {
        // Row n of the lower triangle has the diagonal 2 and, except for the first row, 1 before it.
        let n = 50i64;
        let indptr: Vec<i64> = (0..=n).map(|row| (2 * row - 1).max(0)).collect();
        let indices: Vec<i64> = (0..n).flat_map(|row| (row - 1).max(0)..=row).collect();
        let values: Vec<f64> = (0..n).flat_map(|row| if row == 0 { vec![2.0] } else { vec![1.0, 2.0] }).collect();
        let (indptr, indices, values) = (NdArray::from_slice(&indptr)?, NdArray::from_slice(&indices)?, NdArray::from_slice(&values)?);
        let m = CsrParts { indptr: &indptr, indices: &indices, values: &values, columns: n as usize };
        let want = dense(&[n as usize], DType::F64)?;
        let x = solve_triangular(m, &multiply_by_dense(m, &want)?, Triangle::Lower, false)?;
        assert!(x.subtract(&want)?.abs()?.max(())?.item()?.as_f64() < 1e-9);
        Ok(())
    });
}

#[test]
fn indices_out_of_bounds_are_errors() {
    try_on_device(|_| {
        let values = zeros(2, DType::F32)?;
        let b = zeros(3, DType::F32)?;
        for indices in [[0i32, 3], [-1, 2]] {
            let (indptr, indices) = (NdArray::from_slice(&[0i32, 2])?, NdArray::from_slice(&indices)?);
            let m = CsrParts { indptr: &indptr, indices: &indices, values: &values, columns: 3 };
            let outcome = multiply_by_dense(m, &b).and_then(|a| a.to_bytes());
            assert!(matches!(outcome, Err(Error::Index { size: 3, .. })), "{:?}", outcome.err());
        }
        // The second factor has an index out of bounds, for rows of each class. A matrix without columns has no valid index.
        for length in [1i32, 100, 300] {
            let ranges = NdArray::from_slice(&[0, length, 2 * length])?;
            let mut indices = vec![0i32; 2 * length as usize];
            indices[2 * length as usize - 1] = 9;
            let (indices, values) = (NdArray::from_slice(&indices)?, zeros(2 * length as usize, DType::F32)?);
            let (row, both) = (NdArray::from_slice(&[0i32, 2])?, NdArray::from_slice(&[0i32, 1])?);
            let ones = zeros(2, DType::F32)?;
            let a = CsrParts { indptr: &row, indices: &both, values: &ones, columns: 2 };
            for columns in [3, 0] {
                let b = CsrParts { indptr: &ranges, indices: &indices, values: &values, columns };
                let failed = |e: Option<Error>| matches!(e, Some(Error::Index { size, .. }) if size == columns);
                let outcome = multiply_by_sparse(a, b).and_then(|(indptr, ..)| indptr.to_bytes());
                assert!(failed(outcome.err()), "product with {columns} columns, length {length}");
                for shape in [&[columns][..], &[columns, 3]] {
                    let outcome = multiply_by_dense(b, &zeros(shape, DType::F32)?).and_then(|a| a.to_bytes());
                    assert!(failed(outcome.err()), "{shape:?}, length {length}");
                }
            }
        }
        Ok(())
    });
}
