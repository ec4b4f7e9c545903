//! Cholesky decompositions.

use std::cmp::Ordering;

use cuprum_core::call::Triangle;
use cuprum_core::error::LinAlgFailure::NotPositiveDefinite;
use cuprum_core::{Call, Outcome, Result};
use cuprum_cpu_base::typed_views::Output;
use faer::dyn_stack::MemStack;
use faer::linalg::cholesky::llt::factor::{LltRegularization, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_lower_triangular_in_place_with_conj;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Conj, MatMut, Par};

use crate::column_blocks::{BLOCK_COLUMNS, ThreadsPerMatrix};
use crate::matrix_batch::{MatrixBatch, MatrixFailure};
use crate::matrix_element::Field;
use crate::matrix_stack::{MatrixStack, store_row_major};

/// Maximum extent of a matrix that is decomposed by faer on one thread. Larger matrices are split recursively.
const MAX_UNSPLIT_EXTENT: usize = 128;

/// Replaces the lower triangle of `a` by its Cholesky factor. The values above the diagonal are arbitrary. Returns whether all pivots were
/// positive.
#[inline(never)]
fn factorize_in_place<T: Field>(mut a: MatMut<'_, T>, team: ThreadsPerMatrix, stack: &mut MemStack) -> bool {
    let n = a.nrows();
    if n <= MAX_UNSPLIT_EXTENT {
        let none = LltRegularization {
            dynamic_regularization_delta: num_traits::Zero::zero(),
            dynamic_regularization_epsilon: num_traits::Zero::zero(),
        };
        return cholesky_in_place(a, none, Par::Seq, stack, Default::default()).is_ok();
    }
    let half = (n / 2).next_multiple_of(BLOCK_COLUMNS).min(n - 1);
    let (mut first, _, mut below, mut second) = a.rb_mut().split_at_mut(half, half);
    if !factorize_in_place(first.rb_mut(), team, stack) {
        return false;
    }
    let rest = n - half;
    let factor = first.rb();
    team.for_each_block(below.rb_mut().transpose_mut(), rest.saturating_mul(half).saturating_mul(half) / 8, |_, rows| {
        solve_lower_triangular_in_place_with_conj(factor, Conj::Yes, rows, Par::Seq);
    });
    let below = below.rb();
    team.for_each_block(second.rb_mut(), rest.saturating_mul(rest).saturating_mul(half) / 8, |start, block| {
        let (width, rows) = (block.ncols(), below.subrows(start, rest - start));
        let block = block.subrows_mut(start, rest - start);
        matmul(block, Accum::Add, rows, below.subrows(start, width).adjoint(), -T::one(), Par::Seq);
    });
    factorize_in_place(second, team, stack)
}

/// Computes the lower or upper Cholesky factor of each matrix.
pub(crate) fn compute_factors<T: Field>(call: &Call, triangle: Triangle) -> Result<Outcome> {
    let a = MatrixStack::<T>::new(&call.inputs[0])?;
    let n = a.rows;
    let batch = MatrixBatch::new(call, a.len(), n.saturating_mul(n).saturating_mul(n / 6 + 1));
    let mut output = Output::allocate(call, 0)?;
    let factors = output.elements_mut()?.typed_slice::<T>();
    let size = cholesky_in_place_scratch::<T>(n.min(MAX_UNSPLIT_EXTENT), Par::Seq, Default::default());
    batch.for_each_task(
        factors.chunks_mut(batch.per_task * n * n),
        || Ok((batch.allocate_zeros::<T>(n * n)?, batch.allocate_scratch(size)?)),
        |(matrix, memory), first, factors| {
            for (index, factor) in (first..).zip(factors.chunks_mut(n * n)) {
                // The decomposition reads a lower triangle, so an upper triangle is copied as its adjoint.
                match triangle {
                    Triangle::Lower => a.copy_matrix(index, matrix),
                    Triangle::Upper => a.copy_adjoint(index, matrix),
                }
                // As in LAPACK, the imaginary part of the diagonal is not read.
                matrix.iter_mut().step_by(n + 1).for_each(|v| *v = T::from_real_part(v.real_part()));
                let values = MatMut::from_column_major_slice_mut(matrix, n, n);
                let decomposed = factorize_in_place(values, batch.threads_per_matrix(), MemStack::new(memory));
                // A NaN anywhere in the triangle makes the last diagonal element of the factor NaN, so only this element is tested.
                if !decomposed || num_traits::Float::is_nan(matrix[n * n - 1].max_part_magnitude()) {
                    return Err(MatrixFailure::Matrix(index, NotPositiveDefinite));
                }
                match triangle {
                    // Rounding errors give the diagonal of a complex factor small imaginary parts, which are dropped here.
                    Triangle::Lower => store_row_major(matrix, n, factor, |i, j, v| match i.cmp(&j) {
                        Ordering::Greater => v,
                        Ordering::Equal => T::from_real_part(v.real_part()),
                        Ordering::Less => T::zero(),
                    }),
                    // Row i of the upper factor is the adjoint of column i of the lower factor. Rows of `factor` and columns of `matrix`
                    // are contiguous, so the elements are conjugated in memory order.
                    Triangle::Upper => {
                        for (j, (row, column)) in factor.chunks_mut(n).zip(matrix.chunks(n)).enumerate() {
                            row[..j].fill(T::zero());
                            row[j..].iter_mut().zip(&column[j..]).for_each(|(to, v)| *to = v.conjugate());
                            row[j] = T::from_real_part(column[j].real_part());
                        }
                    }
                }
            }
            Ok(())
        },
    )?;
    call.outcome_from_buffers([output.into_buffer()])
}
