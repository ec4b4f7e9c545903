//! QR decompositions by Householder reflections.

use cuprum_core::call::QrMode;
use cuprum_core::{Call, Outcome, Result};
use cuprum_cpu_base::typed_views::{HostVec, Output};
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::householder::{
    apply_block_householder_on_the_left_in_place_scratch, apply_block_householder_on_the_left_in_place_with_conj,
    apply_block_householder_transpose_on_the_left_in_place_scratch, apply_block_householder_transpose_on_the_left_in_place_with_conj,
};
use faer::linalg::qr::no_pivoting::factor::recommended_block_size;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Conj, MatMut, MatRef, Par};
use num_traits::{Float, One};

use crate::column_blocks::{BLOCK_COLUMNS, ThreadsPerMatrix};
use crate::householder_panel::{decompose_panel, panel_scratch_size};
use crate::matrix_batch::{FaerWorkspace, MatrixBatch, allocate_scratch};
use crate::matrix_element::Field;
use crate::matrix_stack::{MatrixStack, store_in_c_order};

/// Replaces the matrix `a` by its upper factor R, with the Householder vectors below the diagonal. Writes the coefficients of the vectors
/// to `reflections`. Works panel by panel; each panel has as many columns as `reflections` has rows.
#[inline(never)]
pub(crate) fn decompose_qr_in_place<T: Field>(
    team: ThreadsPerMatrix,
    mut a: MatMut<'_, T>,
    mut reflections: MatMut<'_, T>,
    stack: &mut MemStack,
) -> Result<()> {
    let (block, k) = reflections.shape();
    for first in (0..k).step_by(block) {
        let width = block.min(k - first);
        let rows = a.nrows() - first;
        let (mut panel, right) = a.rb_mut().subrows_mut(first, rows).split_at_col_mut(first + width);
        let mut panel = panel.rb_mut().subcols_mut(first, width);
        let mut coefficients = reflections.rb_mut().submatrix_mut(0, first, width, width);
        decompose_panel(panel.rb_mut(), coefficients.rb_mut(), stack);
        let (panel, coefficients) = (panel.rb(), coefficients.rb());
        let cost = rows.saturating_mul(width).saturating_mul(right.ncols()) / 2;
        team.for_each_block_with_scratch(
            right,
            cost,
            || allocate_scratch("qr", reflections_scratch_size::<T>(rows, block)),
            |memory, _, columns| {
                let stack = MemStack::new(memory);
                let (left, conj) = (panel.subcols(0, width), Conj::Yes);
                apply_block_householder_transpose_on_the_left_in_place_with_conj(left, coefficients, conj, columns, Par::Seq, stack);
            },
        )?;
    }
    Ok(())
}

/// Scales up each column (of `rows` elements) whose magnitudes are all near the smallest normal number or below it. Writes to `scales` the
/// power of two that scales the column back, or 1. faer treats subnormal columns as zeros. The factor Q does not depend on the scales.
fn scale_up_small_columns<T: Field>(matrix: &mut [T], rows: usize, scales: &mut [T::Base]) {
    let (smallest, one) = (T::Base::min_positive_value(), T::Base::one());
    for (column, scale) in matrix.chunks_mut(rows.max(1)).zip(scales) {
        let is_small = |v: &T| v.max_part_magnitude() < smallest / <T::Base as Float>::epsilon();
        *scale = if column.iter().all(is_small) { smallest } else { one };
        if *scale != one {
            column.iter_mut().for_each(|v| *v = v.times_real(one / smallest));
        }
    }
}

/// Writes the first columns of the factor Q to `q`. `basis` and `reflections` are the results of [`decompose_qr_in_place`].
#[inline(never)]
fn compute_q<T: Field>(team: ThreadsPerMatrix, basis: MatRef<'_, T>, reflections: MatRef<'_, T>, q: MatMut<'_, T>) -> Result<()> {
    let ((block, k), m) = (reflections.shape(), q.nrows());
    let cost = m.saturating_mul(k).saturating_mul(q.ncols()) / 2;
    team.for_each_block_with_scratch(
        q,
        cost,
        || allocate_scratch("qr", reflections_scratch_size::<T>(m, block)),
        |memory, start, mut columns| {
            columns.fill(T::zero());
            let end = start + columns.ncols();
            columns.rb_mut().subrows_mut(start, end - start).diagonal_mut().fill(T::one());
            // `columns` holds columns of the identity, which are zero from row `end` on. Panels of reflections that start at row `end` or
            // below do not change them.
            apply_panels(basis, reflections, k.min(end), columns, MemStack::new(memory));
        },
    )
}

/// Multiplies `matrix` by Q from the left. `basis` and `reflections` are the results of [`decompose_qr_in_place`].
#[inline(never)]
pub(crate) fn multiply_by_q<T: Field>(
    team: ThreadsPerMatrix,
    basis: MatRef<'_, T>,
    reflections: MatRef<'_, T>,
    matrix: MatMut<'_, T>,
) -> Result<()> {
    let ((block, k), m) = (reflections.shape(), matrix.nrows());
    let cost = m.saturating_mul(k).saturating_mul(matrix.ncols());
    team.for_each_block_with_scratch(
        matrix,
        cost,
        || allocate_scratch("qr", reflections_scratch_size::<T>(m, block)),
        |memory, _, columns| apply_panels(basis, reflections, k, columns, MemStack::new(memory)),
    )
}

/// Multiplies `columns` by the panels of reflections that start before column `end` of `basis`, the last panel first.
fn apply_panels<T: Field>(basis: MatRef<'_, T>, reflections: MatRef<'_, T>, end: usize, mut columns: MatMut<'_, T>, stack: &mut MemStack) {
    let ((block, k), m) = (reflections.shape(), columns.nrows());
    for first in (0..end).step_by(block).rev() {
        let (rows, width) = (m - first, block.min(k - first));
        let panel = basis.submatrix(first, first, rows, width);
        let (coefficients, below) = (reflections.submatrix(0, first, width, width), columns.rb_mut().subrows_mut(first, rows));
        apply_block_householder_on_the_left_in_place_with_conj(panel, coefficients, Conj::No, below, Par::Seq, stack);
    }
}

/// Returns the size of the scratch memory for the application of a panel of reflections to one block of columns.
fn reflections_scratch_size<T: Field>(rows: usize, block: usize) -> StackReq {
    apply_block_householder_on_the_left_in_place_scratch::<T>(rows, block, BLOCK_COLUMNS)
        .or(apply_block_householder_transpose_on_the_left_in_place_scratch::<T>(rows, block, BLOCK_COLUMNS))
}

/// Computes the factors Q and R of each matrix.
pub(crate) fn decompose_qr<T: Field>(call: &Call, mode: QrMode) -> Result<Outcome> {
    let a = MatrixStack::<T>::new(&call.inputs[0])?;
    let (m, n) = (a.rows, a.columns);
    let k = m.min(n);
    let (columns, rows) = match mode {
        QrMode::Reduced => (k, k),
        QrMode::Complete => (m, m),
        QrMode::R => (0, k),
        QrMode::Raw => return decompose_qr_raw::<T>(call),
    };
    let block = recommended_block_size::<T>(m, n);
    let batch = MatrixBatch::new(call, a.len(), m.saturating_mul(n).saturating_mul(k).saturating_mul(2));
    let team = batch.threads_per_matrix();
    let mut outputs = (0..call.outputs.len()).map(|i| Output::allocate(call, i)).collect::<Result<Vec<_>>>()?;
    let size = panel_scratch_size::<T>(m, block);
    let scratch = || {
        let (matrix, vectors) = (batch.allocate_values::<T>(m * n)?, batch.allocate_values::<T>(m * columns)?);
        Ok((matrix, batch.allocate_zeros::<T>(block * k)?, vectors, batch.allocate_zeros(n)?, batch.allocate_scratch(size)?))
    };
    type Scratch<T> = (HostVec<T>, Vec<T>, HostVec<T>, Vec<<T as Field>::Base>, FaerWorkspace);
    let one = |(matrix, reflections, vectors, scales, memory): &mut Scratch<T>, index, q: Option<&mut [T]>, r: &mut [T]| {
        a.copy_matrix(team, index, matrix);
        scale_up_small_columns(matrix, m, scales);
        let mut coefficients = MatMut::from_column_major_slice_mut(reflections, block, k);
        let values = MatMut::from_column_major_slice_mut(matrix, m, n);
        decompose_qr_in_place(team, values, coefficients.rb_mut(), MemStack::new(memory))?;
        let upper = |i: usize, j: usize| if i <= j && i < k { matrix[j * m + i].times_real(scales[j]) } else { T::zero() };
        for (i, row) in r.chunks_mut(n).enumerate() {
            row.iter_mut().enumerate().for_each(|(j, to)| *to = upper(i, j));
        }
        if let Some(q) = q {
            let basis = MatRef::from_column_major_slice(matrix, m, n);
            compute_q(team, basis, coefficients.rb(), MatMut::from_column_major_slice_mut(vectors, m, columns))?;
            store_in_c_order(team, vectors, m, q);
        }
        Ok(())
    };
    match &mut outputs[..] {
        [q, r] => {
            let items = q.elements_mut()?.typed_slice::<T>().chunks_mut(batch.per_task * m * columns);
            batch.for_each_task(
                items.zip(r.elements_mut()?.typed_slice::<T>().chunks_mut(batch.per_task * rows * n)),
                scratch,
                |scratch, first, (q, r)| {
                    let results = q.chunks_mut(m * columns).zip(r.chunks_mut(rows * n));
                    (first..).zip(results).try_for_each(|(index, (q, r))| one(scratch, index, Some(q), r))
                },
            )?;
        }
        outputs => {
            let items = outputs[0].elements_mut()?.typed_slice::<T>().chunks_mut(batch.per_task * rows * n);
            batch.for_each_task(items, scratch, |scratch, first, r| {
                (first..).zip(r.chunks_mut(rows * n)).try_for_each(|(index, r)| one(scratch, index, None, r))
            })?;
        }
    }
    call.outcome_from_buffers(outputs.into_iter().map(Output::into_buffer))
}

/// Computes the decomposition of each matrix in LAPACK's form: the transpose of the matrix that holds R and the Householder vectors, and
/// the scalar factors `tau`.
fn decompose_qr_raw<T: Field>(call: &Call) -> Result<Outcome> {
    let a = MatrixStack::<T>::new(&call.inputs[0])?;
    let (m, n) = (a.rows, a.columns);
    let k = m.min(n);
    let block = recommended_block_size::<T>(m, n);
    let batch = MatrixBatch::new(call, a.len(), m.saturating_mul(n).saturating_mul(k).saturating_mul(2));
    let team = batch.threads_per_matrix();
    let (mut h, mut tau) = (Output::allocate(call, 0)?, Output::allocate(call, 1)?);
    let size = panel_scratch_size::<T>(m, block);
    let items = h.elements_mut()?.typed_slice::<T>().chunks_mut(batch.per_task * m * n);
    let items = items.zip(tau.elements_mut()?.typed_slice::<T>().chunks_mut(batch.per_task * k));
    let scratch = || Ok((batch.allocate_zeros::<T>(block * k)?, batch.allocate_zeros::<T::Base>(n)?, batch.allocate_scratch(size)?));
    batch.for_each_task(items, scratch, |(reflections, scales, memory), first, (h, tau)| {
        for (index, (h, tau)) in (first..).zip(h.chunks_mut(m * n).zip(tau.chunks_mut(k))) {
            // The output `h` is the transpose in C order, which has the same memory layout as the matrix in column-major order.
            a.copy_matrix(team, index, h);
            scale_up_small_columns(h, m, scales);
            let coefficients = MatMut::from_column_major_slice_mut(reflections, block, k);
            decompose_qr_in_place(team, MatMut::from_column_major_slice_mut(h, m, n), coefficients, MemStack::new(memory))?;
            for (j, column) in h.chunks_mut(m).enumerate() {
                column.iter_mut().take(j + 1).for_each(|v| *v = v.times_real(scales[j]));
            }
            // LAPACK multiplies by the factors `tau`. faer divides by its factors, the diagonals of the triangular blocks.
            tau.iter_mut()
                .enumerate()
                .for_each(|(j, tau)| *tau = T::from_real_part(reflections[j * block + j % block].real_part().recip()));
        }
        Ok(())
    })?;
    call.outcome_from_buffers([h, tau].into_iter().map(Output::into_buffer))
}
