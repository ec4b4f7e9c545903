//! Matrix products of batches in any memory layout.

use cuprum::{DType, matmul};
use proptest::prelude::*;

use crate::arrays::{Sample, check, check_cases, expect, samples_of_shape};
use crate::reference::{Reference, broadcast_shape};

const DTYPES: &[DType] = &[DType::I32, DType::I64, DType::F32, DType::F64, DType::C64, DType::C128];

/// Two samples of one dtype that can be multiplied. Batch axes broadcast, and an operand may be a vector.
fn factors(extents: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = (Sample, Sample)> {
    let batch = prop::collection::vec((1..=3usize, any::<bool>(), any::<bool>()), 0..=2);
    let matrix = (extents.clone(), extents.clone(), extents);
    (batch, matrix, 0..10usize, 0..DTYPES.len()).prop_flat_map(|(batch, (rows, inner, columns), vectors, dtype)| {
        let of_batch = |ones: fn(&(usize, bool, bool)) -> bool| -> Vec<usize> {
            batch.iter().map(|axis| if ones(axis) { 1 } else { axis.0 }).collect()
        };
        let mut left = [of_batch(|axis| axis.1), vec![rows, inner]].concat();
        let mut right = [of_batch(|axis| axis.2), vec![inner, columns]].concat();
        match vectors {
            0 => left = vec![inner],
            1 => right = vec![inner],
            2 => (left, right) = (vec![inner], vec![inner]),
            3 => left = vec![rows, inner],
            _ => {}
        }
        let dtypes = &DTYPES[dtype..=dtype];
        (samples_of_shape(left, dtypes), samples_of_shape(right, dtypes))
    })
}

/// Returns the product by one sum for each element.
fn product(a: &Reference, b: &Reference) -> Reference {
    let mut left = a.clone();
    let mut right = b.clone();
    if a.ndim() == 1 {
        left.shape = vec![1, a.shape[0]];
    }
    if b.ndim() == 1 {
        right.shape = vec![b.shape[0], 1];
    }
    let (batch_a, batch_b) = (left.ndim() - 2, right.ndim() - 2);
    let (rows, inner, columns) = (left.shape[batch_a], left.shape[batch_a + 1], right.shape[batch_b + 1]);
    let batch = broadcast_shape(&[&left.shape[..batch_a], &right.shape[..batch_b]]);
    let n = batch.len();
    // Shapes whose batch axes have extent 1 or that of the batch, so that only these broadcast.
    let mut result = Reference::from_fn(&[&batch[..], &[rows, columns]].concat(), |index| {
        let at = |model: &Reference, batch_ndim: usize, row: usize, column: usize| {
            let own = index[n - batch_ndim..n].iter().zip(&model.shape).map(|(&n, &extent)| if extent == 1 { 0 } else { n });
            model.at(&own.chain([row, column]).collect::<Vec<_>>())
        };
        (0..inner).map(|k| at(&left, batch_a, index[n], k) * at(&right, batch_b, k, index[n + 1])).sum::<i64>()
    });
    if b.ndim() == 1 {
        result.shape.pop();
    }
    if a.ndim() == 1 {
        result.shape.remove(n);
    }
    result
}

#[test]
fn matmul_sums_products_of_rows_and_columns() {
    check(factors(0..=6), |(a, b)| expect(&matmul(&a.array()?, &b.array()?)?, a.dtype, &product(&a.values, &b.values)));
}

#[test]
fn matmul_of_larger_matrices_sums_products() {
    check_cases(16, factors(15..=40), |(a, b)| expect(&matmul(&a.array()?, &b.array()?)?, a.dtype, &product(&a.values, &b.values)));
}

#[test]
fn factors_that_do_not_fit_are_errors() {
    let cases = factors(1..=4).prop_flat_map(|(a, _)| {
        let inner = a.values.shape.last().copied().unwrap_or(0);
        (Just(a), samples_of_shape(vec![inner + 1, 2], &[DType::F64]))
    });
    check(cases, |(a, b)| {
        prop_assert!(matmul(&a.array()?, &b.array()?).is_err());
        Ok(())
    });
}
