//! Cholesky decompositions.

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
use crate::matrix_stack::MatrixStack;

/// Maximum extent of a matrix that is decomposed by faer on one thread. Larger matrices are split recursively.
const MAX_UNSPLIT_EXTENT: usize = 128;

/// Replaces the lower triangle of `a` by its Cholesky factor. The values above the diagonal are arbitrary. `block` is scratch memory for a
/// matrix of up to [`MAX_UNSPLIT_EXTENT`] rows. Returns whether all pivots were positive.
#[inline(never)]
fn factorize_in_place<T: Field>(mut a: MatMut<'_, T>, team: ThreadsPerMatrix, block: &mut [T], stack: &mut MemStack) -> bool {
    let n = a.nrows();
    if n <= MAX_UNSPLIT_EXTENT {
        // faer's loops over columns have SIMD code only if columns are contiguous.
        let mut columns = MatMut::from_column_major_slice_mut(&mut block[..n * n], n, n);
        columns.copy_from_triangular_lower(a.rb());
        let none = LltRegularization {
            dynamic_regularization_delta: num_traits::Zero::zero(),
            dynamic_regularization_epsilon: num_traits::Zero::zero(),
        };
        let decomposed = cholesky_in_place(columns.rb_mut(), none, Par::Seq, stack, Default::default()).is_ok();
        a.copy_from_triangular_lower(columns.rb());
        return decomposed;
    }
    let half = (n / 2).next_multiple_of(BLOCK_COLUMNS).min(n - 1);
    let (mut first, _, mut below, mut second) = a.rb_mut().split_at_mut(half, half);
    if !factorize_in_place(first.rb_mut(), team, block, stack) {
        return false;
    }
    let rest = n - half;
    let factor = first.rb();
    team.for_each_block(below.rb_mut().transpose_mut(), rest.saturating_mul(half).saturating_mul(half) / 8, |_, rows| {
        solve_lower_triangular_in_place_with_conj(factor, Conj::Yes, rows, Par::Seq);
    });
    let below = below.rb();
    team.for_each_block(second.rb_mut(), rest.saturating_mul(rest).saturating_mul(half) / 8, |start, columns| {
        let (width, rows) = (columns.ncols(), below.subrows(start, rest - start));
        let columns = columns.subrows_mut(start, rest - start);
        matmul(columns, Accum::Add, rows, below.subrows(start, width).adjoint(), -T::one(), Par::Seq);
    });
    factorize_in_place(second, team, block, stack)
}

/// Computes the lower or upper Cholesky factor of each matrix.
pub(crate) fn compute_factors<T: Field>(call: &Call, triangle: Triangle) -> Result<Outcome> {
    let a = MatrixStack::<T>::new(&call.inputs[0])?;
    let n = a.rows;
    let batch = MatrixBatch::new(call, a.len(), n.saturating_mul(n).saturating_mul(n / 6 + 1));
    let team = batch.threads_per_matrix();
    let mut output = Output::allocate(call, 0)?;
    let factors = output.elements_mut()?.typed_slice::<T>();
    let extent = n.min(MAX_UNSPLIT_EXTENT);
    let size = cholesky_in_place_scratch::<T>(extent, Par::Seq, Default::default());
    let scratch = || Ok((batch.allocate_values::<T>(extent * extent)?, batch.allocate_scratch(size)?));
    batch.for_each_task(factors.chunks_mut(batch.per_task * n * n), scratch, |(block, memory), first, factors| {
        for (index, factor) in (first..).zip(factors.chunks_mut(n * n)) {
            a.copy_transposed(team, index, factor);
            // As in LAPACK, the imaginary part of the diagonal is not read.
            let clear_imaginary_parts = |v: &mut T| *v = T::from_real_part(v.real_part());
            factor.iter_mut().step_by(n + 1).for_each(clear_imaginary_parts);
            // The factor is computed in place. The upper factor in C order is, in column-major order, the lower factor of the transpose.
            let lower = match triangle {
                Triangle::Lower => MatMut::from_row_major_slice_mut(factor, n, n),
                Triangle::Upper => MatMut::from_column_major_slice_mut(factor, n, n),
            };
            let decomposed = factorize_in_place(lower, team, block, MemStack::new(memory));
            // A NaN anywhere in the triangle makes the last diagonal element of the factor NaN, so only this element is tested.
            if !decomposed || num_traits::Float::is_nan(factor[n * n - 1].max_part_magnitude()) {
                return Err(MatrixFailure::Matrix(index, NotPositiveDefinite));
            }
            for (i, row) in factor.chunks_mut(n).enumerate() {
                // Rounding errors give the diagonal of a complex factor small imaginary parts, which are dropped here.
                clear_imaginary_parts(&mut row[i]);
                match triangle {
                    Triangle::Lower => row[i + 1..].fill(T::zero()),
                    Triangle::Upper => row[..i].fill(T::zero()),
                }
            }
        }
        Ok(())
    })?;
    call.outcome_from_buffers([output.into_buffer()])
}
