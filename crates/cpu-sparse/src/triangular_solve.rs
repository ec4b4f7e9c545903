//! Solutions of triangular systems by substitution, row by row.

use cuprum_core::call::Triangle;
use cuprum_core::error::LinAlgFailure;
use cuprum_core::{Array, Call, Error, Outcome, Result, decline};
use cuprum_cpu_base::typed_views::{Elements, Output};

use crate::csr_structure::CsrStructure;
use crate::sparse_element::SparseElement;
use crate::sparse_index::SparseIndex;

/// Computes the output of `call`: solves a triangular system for all columns of the right-hand side.
pub(crate) fn solve_triangular_system<T: SparseElement, I: SparseIndex>(
    call: &Call,
    triangle: Triangle,
    unit_diagonal: bool,
) -> Result<Outcome> {
    let ([indptr, indices, values, b], name) = (call.inputs, call.op.name()) else { decline!("not a triangular solution") };
    if !b.dtype().is_inexact() {
        decline!("values of {}", b.dtype());
    }
    let width = b.shape().get(1).copied().unwrap_or(1);
    let structure = CsrStructure::<I>::new(name, indptr, indices)?;
    let (values, b) = (Elements::from_contiguous_array(values)?.typed_slice::<T>(), Elements::from_contiguous_array(b)?.typed_slice::<T>());
    let mut output = Output::allocate(call, 0)?;
    let x = output.elements_mut()?.typed_slice::<T>();
    let n = structure.row_count();
    for step in 0..n {
        let row = if triangle == Triangle::Lower { step } else { n - 1 - step };
        // The solved rows precede the current row in a lower triangle and follow it in an upper triangle.
        let (before, rest) = x.split_at_mut(row * width);
        let (current, after) = rest.split_at_mut(width);
        let sums = current;
        sums.fill(T::ZERO);
        let mut diagonal = T::ZERO;
        let at = structure.row_range(row);
        for (index, &value) in structure.indices[at.clone()].iter().zip(&values[at]) {
            let column = index.to_usize();
            let solved = match (triangle, column) {
                (_, column) if column >= n => {
                    return Err(Error::Index { op: name, index: index.to_i64(), axis: 1, size: n });
                }
                (_, column) if column == row => {
                    diagonal = diagonal.plus(value);
                    continue;
                }
                (Triangle::Lower, column) if column < row => &before[column * width..][..width],
                (Triangle::Upper, column) if column > row => &after[(column - row - 1) * width..][..width],
                _ => continue,
            };
            sums.iter_mut().zip(solved).for_each(|(sum, &x)| *sum = sum.plus(value.times(x)));
        }
        let right = &b[row * width..][..width];
        if unit_diagonal {
            sums.iter_mut().zip(right).for_each(|(sum, &b)| *sum = b.minus(*sum));
        } else if diagonal.is_zero() {
            return Err(Error::LinAlg { op: name, failure: LinAlgFailure::Singular, matrix: 0, batch: 1 });
        } else {
            sums.iter_mut().zip(right).for_each(|(sum, &b)| *sum = b.minus(*sum).divided_by(diagonal));
        }
    }
    call.outcome_from_buffers([output.into_buffer()])
}
