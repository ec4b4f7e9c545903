//! Checked views of matrices in CSR format, and their division into tasks.

use std::ops::Range;
use std::sync::OnceLock;

use cuprum_core::host_buffer::try_reserve;
use cuprum_core::{Error, Result, StoredArray};
use cuprum_cpu_base::typed_views::Elements;

use crate::sparse_index::SparseIndex;

/// Target size of a task, in elements plus rows. Rows count too, which limits the number of empty rows in a task.
const ELEMENTS_PER_TASK: usize = 1 << 13;

/// The sparsity structure of a matrix in CSR format. The constructor checks `indptr`.
#[derive(Clone, Copy)]
pub(crate) struct CsrStructure<'a, I> {
    pub indptr: &'a [I],
    pub indices: &'a [I],
}

impl<'a, I: SparseIndex> CsrStructure<'a, I> {
    /// Returns the structure of a matrix.
    ///
    /// # Errors
    /// [`Error::Value`] if `indptr` is empty, decreases, or has a number that is negative or greater than the number of indices.
    pub fn new(op: &'static str, indptr: &'a StoredArray, indices: &'a StoredArray) -> Result<CsrStructure<'a, I>> {
        let (indptr, indices) =
            (Elements::from_contiguous_array(indptr)?.typed_slice::<I>(), Elements::from_contiguous_array(indices)?.typed_slice::<I>());
        let ([first, ..], [.., last]) = (indptr, indptr) else { return Err(Error::value(op, "indptr has no elements")) };
        let is_sorted = indptr.windows(2).fold(true, |sorted, pair| sorted & (pair[0] <= pair[1]));
        if !is_sorted || first.to_i64() < 0 || last.to_usize() > indices.len() {
            let message = format!("indptr must not decrease, from 0 to at most {}, the number of indices", indices.len());
            return Err(Error::value(op, message));
        }
        Ok(CsrStructure { indptr, indices })
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Returns the range of a row's elements in `indices` and in the array of values.
    #[inline(always)]
    pub fn row_range(&self, row: usize) -> Range<usize> {
        self.indptr[row].to_usize()..self.indptr[row + 1].to_usize()
    }

    /// Divides the rows into tasks of consecutive rows. In all tasks, the number of elements plus the number of rows is about the same. The
    /// result depends only on `indptr`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if memory for the list of tasks cannot be allocated.
    pub fn split_rows_into_tasks(&self, op: &'static str) -> Result<Vec<Range<usize>>> {
        let (rows, base) = (self.row_count(), self.indptr[0].to_usize());
        let weight = |row: usize| row + (self.indptr[row].to_usize() - base);
        let count = weight(rows).div_ceil(ELEMENTS_PER_TASK);
        let mut tasks = Vec::new();
        try_reserve(op, &mut tasks, count)?;
        let mut start = 0;
        while start < rows {
            let limit = weight(start) + ELEMENTS_PER_TASK;
            // A task ends before the first row that would exceed the limit, but has at least one row.
            let (mut low, mut high) = (start + 1, rows);
            while low < high {
                let middle = low + (high - low).div_ceil(2);
                if weight(middle) <= limit { low = middle } else { high = middle - 1 }
            }
            tasks.push(start..low);
            start = low;
        }
        Ok(tasks)
    }

    /// Returns the work of one pass over the elements, in elementary operations.
    pub fn pass_cost(&self) -> usize {
        self.indices.len().saturating_mul(4).saturating_add(self.row_count())
    }
}

/// Record of the first out-of-bounds column index that any thread found.
pub(crate) struct FirstOutOfBoundsIndex(OnceLock<i64>);

impl FirstOutOfBoundsIndex {
    pub fn new() -> FirstOutOfBoundsIndex {
        FirstOutOfBoundsIndex(OnceLock::new())
    }

    /// Returns whether all of `indices` are in `0..size`. If not, records an index that is out of bounds.
    #[inline(always)]
    pub fn check_indices<I: SparseIndex>(&self, size: usize, indices: &[I]) -> bool {
        let is_valid = indices.is_empty() || I::largest_index(indices) < size;
        if !is_valid {
            self.record_invalid_index(size, indices);
        }
        is_valid
    }

    #[cold]
    fn record_invalid_index<I: SparseIndex>(&self, size: usize, indices: &[I]) {
        if let Some(index) = indices.iter().find(|i| i.to_usize() >= size) {
            let _ = self.0.set(index.to_i64());
        }
    }

    /// Returns an index error if [`FirstOutOfBoundsIndex::check_indices`] has recorded an out-of-bounds index. The error message contains
    /// `op` and the number of columns, `size`.
    pub fn to_result(&self, op: &'static str, size: usize) -> Result<()> {
        match self.0.get() {
            Some(&index) => Err(Error::Index { op, index, axis: 1, size }),
            None => Ok(()),
        }
    }
}

/// Splits `out`, which has `width` elements per row, into one slice per task.
pub(crate) fn split_output_by_task<'o, T>(
    op: &'static str,
    tasks: &[Range<usize>],
    width: usize,
    mut out: &'o mut [T],
) -> Result<Vec<(Range<usize>, &'o mut [T])>> {
    let mut parts = Vec::new();
    try_reserve(op, &mut parts, tasks.len())?;
    for task in tasks {
        let (part, rest) = out.split_at_mut(task.len() * width);
        parts.push((task.clone(), part));
        out = rest;
    }
    Ok(parts)
}
