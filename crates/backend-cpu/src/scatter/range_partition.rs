//! Partition of the values of single elements by ranges of target rows, so that threads can update different ranges at once.
//!
//! Each chunk of consecutive indices is sorted by range on its own (a stable counting sort). The values of a range, chunk by chunk, have
//! the order of the indices.

use cuprum_core::{DType, Element, Result};
use cuprum_cpu_base::cache_hints::prefetch_all_lines;
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, Output};

use super::{COST_PER_ELEMENT, are_all_valid, for_each_row};

/// Number of indices in a chunk. Chunks are partitioned separately. The row numbers and values of a chunk fit the second-level cache.
pub(super) const INDICES_PER_CHUNK: usize = if cfg!(miri) { 1 << 6 } else { 1 << 16 };

/// Row numbers and values, sorted by ranges of rows within each chunk of [`INDICES_PER_CHUNK`] indices.
pub(super) struct PartitionedValues {
    rows: Output,
    values: Output,
}

impl PartitionedValues {
    /// Allocates memory for `len` row numbers and values.
    pub(super) fn allocate(dtype: DType, len: usize) -> Result<PartitionedValues> {
        Ok(PartitionedValues { rows: Output::allocate_temporary(DType::U32, len)?, values: Output::allocate_temporary(dtype, len)? })
    }

    /// Writes a row number, relative to the first row of its range, and a value for each of `indices`. A range has `1 << range_bits` of
    /// `extent` rows. The values begin at index `first` of `values` and are `stride` apart.
    ///
    /// Returns, for each chunk, the start of each range relative to the chunk, followed by the chunk's length. Returns `None` if an index
    /// is out of bounds.
    pub(super) fn partition_by_row_range<T: Element>(
        &mut self,
        indices: Elements,
        extent: usize,
        range_bits: u32,
        (values, first, stride): (&[T], isize, isize),
    ) -> Result<Option<Vec<Vec<u32>>>> {
        let ranges = extent.div_ceil(1 << range_bits);
        let (rows, sorted) = (self.rows.elements_mut()?.typed_slice::<u32>(), self.values.elements_mut()?.typed_slice::<T>());
        let chunks = threads::map(
            rows.chunks_mut(INDICES_PER_CHUNK).zip(sorted.chunks_mut(INDICES_PER_CHUNK)).enumerate(),
            indices.len().saturating_mul(COST_PER_ELEMENT),
            || (),
            |_, (chunk, (rows, sorted))| {
                let start = chunk * INDICES_PER_CHUNK;
                let indices = indices.slice(start, rows.len());
                if !are_all_valid(indices, extent) {
                    return None;
                }
                let value = |k: usize| values[(first + (start + k) as isize * stride) as usize];
                let mut starts = vec![0; ranges + 1];
                for_each_row(indices, extent, |_, row| starts[(row >> range_bits) + 1] += 1);
                for range in 0..ranges {
                    starts[range + 1] += starts[range];
                }
                // Prefetches the memory that the loop below writes. Stores are committed in order, so each store to memory outside the
                // cache would delay the next one.
                prefetch_all_lines(rows);
                prefetch_all_lines(sorted);
                let mut next: Vec<u32> = starts.clone();
                let row_mask = (1 << range_bits) - 1;
                for_each_row(indices, extent, |k, row| {
                    let next = &mut next[row >> range_bits];
                    (rows[*next as usize], sorted[*next as usize]) = ((row & row_mask) as u32, value(k));
                    *next += 1;
                });
                Some(starts)
            },
        )?;
        Ok(chunks.into_iter().collect())
    }

    /// Returns the row numbers of all chunks, and the values of all chunks.
    pub(super) fn rows_and_values<T: Element>(&mut self) -> Result<(&[u32], &[T])> {
        Ok((self.rows.elements_mut()?.typed_slice(), self.values.elements_mut()?.typed_slice()))
    }
}
