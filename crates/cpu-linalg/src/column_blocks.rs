//! Loops over blocks of columns of one large matrix, on several threads.
//!
//! The block boundaries depend only on the shape of the matrix, so results do not depend on the number of threads.

use cuprum_core::Result;
use cuprum_cpu_base::threads;
use faer::MatMut;

use crate::matrix_element::Field;

/// Number of columns of one block. Wider blocks leave threads idle at the end of a loop, narrower blocks slow down matrix products.
pub(crate) const BLOCK_COLUMNS: usize = 96;

/// Consecutive blocks of columns of a matrix.
struct ColumnBlocks<'a, T> {
    rest: Option<MatMut<'a, T>>,
}

impl<'a, T> ColumnBlocks<'a, T> {
    fn new(matrix: MatMut<'a, T>) -> ColumnBlocks<'a, T> {
        ColumnBlocks { rest: Some(matrix).filter(|matrix| matrix.ncols() > 0) }
    }
}

impl<'a, T> Iterator for ColumnBlocks<'a, T> {
    type Item = MatMut<'a, T>;

    fn next(&mut self) -> Option<MatMut<'a, T>> {
        let rest = self.rest.take()?;
        let width = BLOCK_COLUMNS.min(rest.ncols());
        let (block, rest) = rest.split_at_col_mut(width);
        self.rest = Some(rest).filter(|rest| rest.ncols() > 0);
        Some(block)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.rest.as_ref().map_or(0, |rest| rest.ncols().div_ceil(BLOCK_COLUMNS));
        (count, Some(count))
    }
}

impl<T> ExactSizeIterator for ColumnBlocks<'_, T> {}

/// Threads that one matrix may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadsPerMatrix {
    /// Only the calling thread, because other threads compute other matrices.
    One,
    /// All threads of the pool.
    All,
}

impl ThreadsPerMatrix {
    /// Calls `body` with the index of the first column and each block of columns of a column-major matrix, whose columns have `len` elements.
    pub(crate) fn for_each_slice_of_columns<T: Send>(self, matrix: &mut [T], len: usize, body: impl Fn(usize, &mut [T]) + Sync) {
        let cost = self.cost_or_zero_if_one_thread(matrix.len());
        let blocks = matrix.chunks_mut(len.max(1) * BLOCK_COLUMNS).enumerate();
        threads::for_each(blocks, cost, || (), |(), (block, columns)| body(block * BLOCK_COLUMNS, columns));
    }

    /// Calls `body` with the index of the first column and each block of columns of `matrix`. `cost` is the work of all blocks, in
    /// elementary operations.
    pub(crate) fn for_each_block<T: Field>(self, matrix: MatMut<'_, T>, cost: usize, body: impl Fn(usize, MatMut<'_, T>) + Sync) {
        let blocks = ColumnBlocks::new(matrix).enumerate();
        threads::for_each(
            blocks,
            self.cost_or_zero_if_one_thread(cost),
            || (),
            |(), (block, columns)| body(block * BLOCK_COLUMNS, columns),
        );
    }

    /// Calls `body` like [`ThreadsPerMatrix::for_each_block`], with scratch memory that each thread allocates by `scratch`.
    ///
    /// # Errors
    /// Returns an error if a thread cannot allocate its scratch memory.
    pub(crate) fn for_each_block_with_scratch<T: Field, S>(
        self,
        matrix: MatMut<'_, T>,
        cost: usize,
        scratch: impl Fn() -> Result<S> + Sync,
        body: impl Fn(&mut S, usize, MatMut<'_, T>) + Sync,
    ) -> Result<()> {
        let compute = |kept: &mut Option<S>, (block, columns): (usize, MatMut<'_, T>)| {
            let scratch = match kept {
                Some(scratch) => scratch,
                None => kept.insert(scratch()?),
            };
            body(scratch, block * BLOCK_COLUMNS, columns);
            Ok(())
        };
        threads::map(ColumnBlocks::new(matrix).enumerate(), self.cost_or_zero_if_one_thread(cost), || None, compute)?.into_iter().collect()
    }

    fn cost_or_zero_if_one_thread(self, cost: usize) -> usize {
        if self == ThreadsPerMatrix::All { cost } else { 0 }
    }
}
