//! Matrices of a batch in any strides, and copies between them and column-major scratch memory.

use cuprum_core::layout::{Dims, Strides};
use cuprum_core::{Error, Result, StoredArray};
use cuprum_cpu_base::typed_views::Elements;

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
    pub(crate) fn copy_matrix(&self, n: usize, to: &mut [T]) {
        self.copy_with_strides(n, self.strides, self.rows, to, |v| v);
    }

    /// Copies matrix `n` of the batch to `to`, in column-major order, and converts each element by `value`.
    pub(crate) fn copy_converted<U>(&self, n: usize, to: &mut [U], value: impl Fn(T) -> U) {
        self.copy_with_strides(n, self.strides, self.rows, to, value);
    }

    /// Copies the transpose of matrix `n` of the batch to `to`, in column-major order.
    pub(crate) fn copy_transposed(&self, n: usize, to: &mut [T]) {
        self.copy_with_strides(n, [self.strides[1], self.strides[0]], self.columns, to, |v| v);
    }

    /// Copies the conjugate transpose of matrix `n` of the batch to `to`, in column-major order.
    pub(crate) fn copy_adjoint(&self, n: usize, to: &mut [T]) {
        self.copy_with_strides(n, [self.strides[1], self.strides[0]], self.columns, to, T::conjugate);
    }

    /// Copies the conjugate transpose of matrix `n` of the batch to `to`, in column-major order, and converts each element by `value`.
    pub(crate) fn copy_adjoint_converted<U>(&self, n: usize, to: &mut [U], value: impl Fn(T) -> U) {
        self.copy_with_strides(n, [self.strides[1], self.strides[0]], self.columns, to, |v| value(v.conjugate()));
    }

    /// Copies matrix `n` of the batch to `to`, as columns of `rows` elements, and converts each element by `value`. `down` and `across` are
    /// the source strides along a column and along a row of the copy.
    fn copy_with_strides<U>(&self, n: usize, [down, across]: [isize; 2], rows: usize, to: &mut [U], value: impl Fn(T) -> U) {
        let start = self.matrix_start_index(n);
        for (block, columns) in to.chunks_mut(rows * TRANSPOSE_BLOCK_SIDE).enumerate() {
            for first in (0..rows).step_by(TRANSPOSE_BLOCK_SIDE) {
                let last = rows.min(first + TRANSPOSE_BLOCK_SIDE);
                for (j, column) in columns.chunks_mut(rows).enumerate() {
                    let at = start + (block * TRANSPOSE_BLOCK_SIDE + j) as isize * across;
                    for (i, element) in (first..last).zip(&mut column[first..last]) {
                        *element = value(self.values[(at + i as isize * down) as usize]);
                    }
                }
            }
        }
    }
}

/// Copies a column-major matrix of `rows` rows to `to` in C order. Each element becomes `value(row, column, element)`.
pub(crate) fn store_row_major<T: Copy, U>(from: &[T], rows: usize, to: &mut [U], value: impl Fn(usize, usize, T) -> U) {
    let columns = to.len() / rows.max(1);
    for first_row in (0..rows).step_by(TRANSPOSE_BLOCK_SIDE) {
        for first in (0..columns).step_by(TRANSPOSE_BLOCK_SIDE) {
            let last = columns.min(first + TRANSPOSE_BLOCK_SIDE);
            for i in first_row..rows.min(first_row + TRANSPOSE_BLOCK_SIDE) {
                for (j, element) in (first..last).zip(&mut to[i * columns + first..i * columns + last]) {
                    *element = value(i, j, from[j * rows + i]);
                }
            }
        }
    }
}
