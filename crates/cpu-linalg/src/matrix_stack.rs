//! Matrices of a batch in any strides, and copies between them and column-major scratch memory.

use std::any::TypeId;

use bytemuck::Pod;
use cuprum_core::layout::{Dims, Strides};
use cuprum_core::{Error, Result, StoredArray};
use cuprum_cpu_base::transpose::{ContiguousRowLayout, try_transpose};
use cuprum_cpu_base::typed_views::Elements;

use crate::column_blocks::ThreadsPerMatrix;
use crate::matrix_element::Field;

/// Side of the square blocks in which a matrix is transposed, in elements. Source and target then use whole cache lines.
const TRANSPOSE_BLOCK_SIDE: usize = 16;

/// The matrices in the last two axes of an array.
pub(crate) struct MatrixStack<'a, T> {
    values: &'a [T],
    offset: usize,
    batch: Dims,
    batch_strides: Strides,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    strides: [isize; 2],
}

impl<'a, T: Field> MatrixStack<'a, T> {
    pub(crate) fn new(array: &'a StoredArray) -> Result<MatrixStack<'a, T>> {
        let layout = array.layout();
        let ([batch @ .., rows, columns], [batch_strides @ .., down, across]) = (layout.shape(), layout.strides()) else {
            return Err(Error::backend("cpu", "linalg", "an array of fewer than two dimensions"));
        };
        Ok(MatrixStack {
            values: Elements::from_whole_buffer(array)?.typed_slice(),
            offset: layout.offset(),
            batch: batch.into(),
            batch_strides: batch_strides.into(),
            rows: *rows,
            columns: *columns,
            strides: [*down, *across],
        })
    }

    /// Returns the number of matrices.
    pub(crate) fn len(&self) -> usize {
        self.batch.iter().product()
    }

    /// Returns the index in the buffer of the first element of matrix `n`.
    fn matrix_start_index(&self, n: usize) -> isize {
        let (mut at, mut rest) = (self.offset as isize, n);
        for (&extent, &stride) in self.batch.iter().zip(&self.batch_strides).rev() {
            at += (rest % extent) as isize * stride;
            rest /= extent;
        }
        at
    }

    /// Copies matrix `n` of the batch to `to`, in column-major order.
    pub(crate) fn copy_matrix(&self, team: ThreadsPerMatrix, n: usize, to: &mut [T]) {
        self.copy_with_strides(team, n, self.strides, self.rows, to, |v| v);
    }

    /// Copies matrix `n` of the batch to `to`, in column-major order, and converts each element by `value`, which returns its argument if
    /// `U` is `T`.
    pub(crate) fn copy_converted<U: Pod + Send>(&self, team: ThreadsPerMatrix, n: usize, to: &mut [U], value: impl Fn(T) -> U + Sync) {
        self.copy_with_strides(team, n, self.strides, self.rows, to, value);
    }

    /// Copies the transpose of matrix `n` of the batch to `to`, in column-major order.
    pub(crate) fn copy_transposed(&self, team: ThreadsPerMatrix, n: usize, to: &mut [T]) {
        self.copy_with_strides(team, n, [self.strides[1], self.strides[0]], self.columns, to, |v| v);
    }

    /// Copies matrix `n` of the batch like [`copy_columns`], with the given strides.
    fn copy_with_strides<U: Pod + Send>(
        &self,
        team: ThreadsPerMatrix,
        n: usize,
        strides: [isize; 2],
        rows: usize,
        to: &mut [U],
        value: impl Fn(T) -> U + Sync,
    ) {
        copy_columns(team, self.values, self.matrix_start_index(n), strides, rows, to, value);
    }

    /// Copies the conjugate transpose of matrix `n` of the batch to `to`, in column-major order, and converts each element by `value`,
    /// which returns its argument if `U` is `T`.
    pub(crate) fn copy_adjoint_converted<U: Field>(&self, team: ThreadsPerMatrix, n: usize, to: &mut [U], value: impl Fn(T) -> U + Sync) {
        self.copy_with_strides(team, n, [self.strides[1], self.strides[0]], self.columns, to, value);
        if U::DTYPE.is_complex() {
            to.iter_mut().for_each(|v| *v = v.conjugate());
        }
    }
}

/// Copies a column-major matrix of `rows` rows to `to` in C order.
pub(crate) fn store_in_c_order<T: Field>(team: ThreadsPerMatrix, from: &[T], rows: usize, to: &mut [T]) {
    store_converted_in_c_order(team, from, rows, to, |v| v);
}

/// Copies a column-major matrix of `rows` rows to `to` in C order. Each element becomes `value(element)`, which returns its argument if `U`
/// is `T`.
pub(crate) fn store_converted_in_c_order<T: Pod + Sync, U: Pod + Send>(
    team: ThreadsPerMatrix,
    from: &[T],
    rows: usize,
    to: &mut [U],
    value: impl Fn(T) -> U + Sync,
) {
    // Rows of the target are the columns of its transpose.
    copy_columns(team, from, 0, [rows as isize, 1], to.len() / rows.max(1), to, value);
}

/// Copies a strided matrix to `to`, as columns of `rows` elements, and converts each element by `value`, which returns its argument if `U` is
/// `T`. `start` is the index of the first element of the source, `down` and `across` are its strides along a column and along a row of the
/// copy.
fn copy_columns<T: Pod + Sync, U: Pod + Send>(
    team: ThreadsPerMatrix,
    from: &[T],
    start: isize,
    [down, across]: [isize; 2],
    rows: usize,
    to: &mut [U],
    value: impl Fn(T) -> U + Sync,
) {
    team.for_each_slice_of_columns(to, rows, |first_column, columns| {
        let start = start + first_column as isize * across;
        if TypeId::of::<T>() == TypeId::of::<U>() && across == 1 {
            let source = ContiguousRowLayout { start: start as usize, stride: down };
            let target = ContiguousRowLayout { start: 0, stride: rows as isize };
            let count = columns.len() / rows;
            if try_transpose(from, source, bytemuck::cast_slice_mut(columns), target, count, rows) {
                return;
            }
        }
        for (block, columns) in columns.chunks_mut(rows * TRANSPOSE_BLOCK_SIDE).enumerate() {
            for first in (0..rows).step_by(TRANSPOSE_BLOCK_SIDE) {
                let last = rows.min(first + TRANSPOSE_BLOCK_SIDE);
                for (j, column) in columns.chunks_mut(rows).enumerate() {
                    let at = start + (block * TRANSPOSE_BLOCK_SIDE + j) as isize * across;
                    for (i, element) in (first..last).zip(&mut column[first..last]) {
                        *element = value(from[(at + i as isize * down) as usize]);
                    }
                }
            }
        }
    });
}
