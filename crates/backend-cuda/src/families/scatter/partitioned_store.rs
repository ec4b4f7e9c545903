//! A faster store for rows of one item, if the rows are more than the L2 cache holds. The values are first grouped by ranges of rows, so
//! that the random accesses of a block are to a small part of the target (`docs/notes/scatter-sums.md`).

use cuprum_core::{Call, Result};

use super::scatter_launch::ScatterLaunch;
use crate::codegen::ctype;
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::families::copy::item_cpp_type;
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK, KernelSource};
use crate::families::sort::{RADIX, SortTile};

static PARTITIONED_STORE_SOURCE: KernelSource = KernelSource {
    name: "scatter_partition.cu",
    text: concat!(
        include_str!("../../kernels/sort_keys.cuh"),
        include_str!("../../kernels/relaxed.cuh"),
        include_str!("../../kernels/count_look_back.cuh"),
        include_str!("../../kernels/block_range.cuh"),
        include_str!("../../kernels/sort_radix.cuh"),
        include_str!("../../kernels/digit_look_back.cuh"),
        include_str!("../../kernels/resolve_index.cuh"),
        include_str!("../../kernels/scatter_partition.cu"),
    ),
};

/// Binary logarithm of the number of rows of a bucket, as in scatter_partition.cu.
const BUCKET_BITS: u32 = 13;
/// Maximum number of values of a bucket that one block stores, as in scatter_partition.cu.
const LARGE_BUCKET_THRESHOLD: usize = 1 << 14;
/// Minimum number of values. For fewer values, launching the seven kernels of this method takes longer than another method.
const MIN_VALUES_FOR_PARTITIONED_STORE: usize = 1 << 19;
/// Minimum number of target rows per value of at most 4 bytes. With fewer rows, [`ScatterLaunch::queue_packed_store`] takes half the time
/// for sorted indices.
const MIN_TARGET_ROWS_PER_SMALL_VALUE: usize = 2;
/// Maximum number of target rows per value. With more rows, a bucket (a range of 2^BUCKET_BITS rows) has few values.
const MAX_TARGET_ROWS_PER_VALUE: usize = 32;
/// Minimum number of indices from which a block counts radix digits before it adds its counts to the global counts.
const MIN_INDICES_COUNTED_PER_BLOCK: usize = 1 << 14;

/// Returns names and sources of the kernels, for compile checks without a device.
pub(super) fn sources_for_compile_check() -> Vec<(String, String)> {
    let uses = [(1, "i64"), (2, "i32"), (4, "i64"), (8, "i32"), (16, "i64")];
    uses.map(|(item, index)| call_with_defines(item, index, |_, defines| PARTITIONED_STORE_SOURCE.named_source(defines))).into()
}

fn call_with_defines<R>(item: usize, index_element: &str, use_defines: impl FnOnce(SortTile, &[(&'static str, &str)]) -> R) -> R {
    let tile = SortTile::largest_tile(item.max(4), true);
    let (threads, items) = (tile.threads.to_string(), tile.items.to_string());
    use_defines(tile, &[("ITEM", item_cpp_type(item)), ("INDEX_ELEMENT", index_element), ("THREADS", &threads), ("ITEMS", &items)])
}

/// Returns the number of radix passes that sort by bucket, with one more bucket for indices out of bounds.
fn radix_pass_count(buckets: usize) -> usize {
    ((usize::BITS - buckets.leading_zeros()) as usize).div_ceil(8)
}

impl ScatterLaunch {
    /// Returns whether [`ScatterLaunch::queue_partitioned_store`] can store `count` values and is faster than the other kernels.
    pub(super) fn fits_partitioned_store(&self, count: usize) -> bool {
        let (rows, item) = (self.scatter.extent, self.scatter.item);
        let min_rows = if item <= 4 { MIN_TARGET_ROWS_PER_SMALL_VALUE.saturating_mul(count) } else { count };
        // Look-back states have 30 bits for a position, which limits `count`.
        self.scatter.dims.len() == 1
            && (MIN_VALUES_FOR_PARTITIONED_STORE..1 << 30).contains(&count)
            && rows < 1 << 31
            && (min_rows..=MAX_TARGET_ROWS_PER_VALUE.saturating_mul(count)).contains(&rows)
            && rows.saturating_mul(item + 8) > 2 * self.context.info().l2_bytes as usize
    }

    /// Queues the kernels that store the last value of each row.
    pub(super) fn queue_partitioned_store(&self, call: &Call, count: usize) -> Result<()> {
        let (context, extent, item) = (self.context, self.scatter.extent, self.scatter.item);
        let buckets = extent.div_ceil(1 << BUCKET_BITS);
        let passes = radix_pass_count(buckets);
        call_with_defines(item, ctype(self.index_dtype), |tile, defines| {
            let tiles = count.div_ceil(tile.element_count());
            // The zeroed memory holds the digit counts, the tickets, the last positions in large buckets, and the look-back states of the
            // tiles. A second set of states follows: each pass uses one set and clears the other for the next pass.
            let (counts, states) = (passes * RADIX * 4, tiles * RADIX * 4);
            let last_positions = count.div_ceil(LARGE_BUCKET_THRESHOLD) << (BUCKET_BITS + 2);
            let zeros = counts + passes * 4 + last_positions + states;
            let scratch = device::allocate(call, zeros + states + (buckets + 1) * 4)?;
            context.fill(scratch.memory(), 0, [0u8; 4], zeros / 4).with_call_context(call)?;
            let at = |offset: usize| scratch.pointer() + offset as u64;
            let (starts, tickets, lasts, bucket_starts) = (at(0), at(counts), at(counts + passes * 4), at(zeros + states));
            let states = [at(zeros - states), at(zeros)];
            let row_memory = [device::allocate(call, count * 4)?, device::allocate(call, if passes > 1 { count * 4 } else { 0 })?];
            let item_memory = [device::allocate(call, count * item)?, device::allocate(call, if passes > 1 { count * item } else { 0 })?];

            let ([source, target], step) = (&self.scatter.addresses, self.scatter.strides[0][0]);
            let (bucket_count, pass_count) = (buckets as u32, passes as u32);
            let threads = [tile.threads as u32, 1, 1];
            let queue_passes = || {
                let fault = context.fault_pointer()?;
                let sm_count = context.info().sm_count.max(1) as usize;
                let chunk = MIN_INDICES_COUNTED_PER_BLOCK.max(count.div_ceil(16 * sm_count)).next_multiple_of(tile.threads);
                let count_digits = PARTITIONED_STORE_SOURCE.get_or_compile_kernel(context, "scatter_count_digits", defines)?;
                let mut args = Args::new();
                args.push(&self.indices).push(&starts).push(&count).push(&extent).push(&bucket_count).push(&pass_count);
                args.push(&chunk).push(&fault).push(&self.op);
                let blocks = |count: usize| [count as u32, 1, 1];
                // SAFETY: the arguments match scatter_count_digits. `starts` has RADIX counts for each pass.
                unsafe { count_digits.launch(blocks(count.div_ceil(chunk)), threads, 0, args.pointers())? };
                let digit_starts = PARTITIONED_STORE_SOURCE.get_or_compile_kernel(context, "scatter_digit_starts", defines)?;
                let mut args = Args::new();
                args.push(&starts);
                // SAFETY: the arguments match scatter_digit_starts, with a block for each pass.
                unsafe { digit_starts.launch(blocks(passes), [RADIX as u32, 1, 1], 0, args.pointers())? };

                let partition = PARTITIONED_STORE_SOURCE.get_or_compile_kernel(context, "scatter_partition", defines)?;
                for pass in 0..passes {
                    let (from, to) = ((pass + 1) % 2, pass % 2);
                    let input = match pass {
                        0 => [self.indices, 0, *source, step as u64],
                        _ => [0, row_memory[from].pointer(), item_memory[from].pointer(), 1],
                    };
                    let ticket = tickets + 4 * pass as u64;
                    let (out_rows, out_items, pass) = (row_memory[to].pointer(), item_memory[to].pointer(), pass as u32);
                    let mut args = Args::new();
                    args.push(&input).push(&out_rows).push(&out_items).push(&starts).push(&ticket).push(&states[to]).push(&states[from]);
                    args.push(&count).push(&extent).push(&bucket_count).push(&pass);
                    // SAFETY: the arguments match scatter_partition. `input` has the layout of the C++ struct. Rows and items have `count`
                    // elements. There are RADIX look-back states per tile in both sets, and a block per tile.
                    unsafe { partition.launch(blocks(tiles), threads, 0, args.pointers())? };
                }

                let last = (passes - 1) % 2;
                let (rows, items) = (row_memory[last].pointer(), item_memory[last].pointer());
                let find_starts = PARTITIONED_STORE_SOURCE.get_or_compile_kernel(context, "scatter_bucket_starts", defines)?;
                let mut args = Args::new();
                args.push(&bucket_starts).push(&rows).push(&count).push(&bucket_count);
                let grid = kernel_lookup::grid_for_items(count as u64 + 1, DEFAULT_THREADS_PER_BLOCK);
                // SAFETY: the arguments match scatter_bucket_starts. `bucket_starts` has a number for each bucket and one more. A row
                // number is below `buckets << BUCKET_BITS`, or equal to it.
                unsafe { find_starts.launch(grid, [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers())? };
                let store = PARTITIONED_STORE_SOURCE.get_or_compile_kernel(context, "scatter_store_buckets", defines)?;
                let mut args = Args::new();
                args.push(target).push(&rows).push(&items).push(&bucket_starts).push(&self.scatter.step);
                // SAFETY: the arguments match scatter_store_buckets, with a block for each bucket. The kernel stores to rows that
                // scatter_count_digits checked.
                unsafe { store.launch(blocks(buckets), [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers())? };

                let large_blocks = blocks(count.div_ceil(LARGE_BUCKET_THRESHOLD));
                let find_last = PARTITIONED_STORE_SOURCE.get_or_compile_kernel(context, "scatter_find_last_in_large_buckets", defines)?;
                let mut args = Args::new();
                args.push(&lasts).push(&rows).push(&bucket_starts).push(&count).push(&bucket_count);
                // SAFETY: the arguments match scatter_find_last_in_large_buckets, with a block for every LARGE_BUCKET_THRESHOLD values. A
                // large bucket has more values than a block, and `lasts` has a number for each row of as many buckets as there are blocks.
                unsafe { find_last.launch(large_blocks, [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers())? };
                let store_large = PARTITIONED_STORE_SOURCE.get_or_compile_kernel(context, "scatter_store_large_buckets", defines)?;
                let mut args = Args::new();
                args.push(target).push(&lasts).push(&rows).push(&items).push(&bucket_starts).push(&count).push(&bucket_count);
                args.push(&self.scatter.step);
                // SAFETY: the arguments match scatter_store_large_buckets, with a block for every LARGE_BUCKET_THRESHOLD values. The kernel
                // stores to rows that scatter_count_digits checked.
                unsafe { store_large.launch(large_blocks, [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }
            };
            queue_passes().with_call_context(call)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_cover_all_buckets() {
        assert_eq!([1, 255, 256, 65_535, 65_536, 1 << 18].map(radix_pass_count), [1, 1, 2, 2, 3, 3]);
    }
}
