//! Products of sparse matrices on a real device, against dense products and against the composites.

use cuprum_backend_cuda as _;
use cuprum_core::ops::sparse::{CsrParts, SPARSE_MULTIPLY, multiply, product, solve_triangular};
use cuprum_core::{DType, Error, Family, NdArray, Result, explain, ops::linalg::Triangle, zeros};

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
                    let (got, records) = explain(|| multiply(m, &b)?.to_bytes());
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
        let (p, i, v) = product(m, m)?;
        let b = dense(&[90], DType::F64)?;
        let squared = CsrParts { indptr: &p, indices: &i, values: &v, columns: 90 };
        assert!(multiply(squared, &b)?.to_bytes()? == multiply(m, &multiply(m, &b)?)?.to_bytes()?);
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
        let x = solve_triangular(m, &multiply(m, &want)?, Triangle::Lower, false)?;
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
            let outcome = multiply(m, &b).and_then(|a| a.to_bytes());
            assert!(matches!(outcome, Err(Error::Index { size: 3, .. })), "{:?}", outcome.err());
        }
        Ok(())
    });
}
