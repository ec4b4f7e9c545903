//! CUDA kernels of the family `Sort`. Short rows are sorted by comparing all pairs, several rows per block. Rows that fit in shared memory
//! are sorted by a radix sort, one block per row; longer rows by a radix sort on the whole device. Elements are moved unchanged. Their sort
//! keys are computed when needed.

mod element_type_and_grid;
mod merge;
pub(crate) mod segment_sort;

use std::sync::Arc;

use cuprum_core::call::Sort;
use cuprum_core::plan::sort::SortPlan;
use cuprum_core::{Array, Call, DType, Outcome, Result, Work, decline};

use self::element_type_and_grid::{cpp_element_type, grid_of_blocks};
use crate::compile::module::{Args, Function};
use crate::device::{self, CudaBuffer, WithCallContext};
use crate::driver::Context;
use crate::families::kernel_lookup::{DEFAULT_THREADS_PER_BLOCK, KernelSource};

static ALL_PAIRS_SOURCE: KernelSource =
    KernelSource { name: "sort_tiny.cu", text: concat!(include_str!("../kernels/sort_keys.cuh"), include_str!("../kernels/sort_tiny.cu")) };
static SHARED_RADIX_SOURCE: KernelSource = KernelSource {
    name: "sort_block.cu",
    text: concat!(
        include_str!("../kernels/sort_keys.cuh"),
        include_str!("../kernels/sort_radix.cuh"),
        include_str!("../kernels/sort_block.cu")
    ),
};
static ONESWEEP_SOURCE: KernelSource = KernelSource {
    name: "sort_onesweep.cu",
    text: concat!(
        include_str!("../kernels/sort_keys.cuh"),
        include_str!("../kernels/relaxed.cuh"),
        include_str!("../kernels/count_look_back.cuh"),
        include_str!("../kernels/block_range.cuh"),
        include_str!("../kernels/sort_radix.cuh"),
        include_str!("../kernels/digit_look_back.cuh"),
        include_str!("../kernels/sort_onesweep.cu")
    ),
};

/// Maximum length of rows that are sorted by comparing all pairs, in elements.
const MAX_ALL_PAIRS_LENGTH: usize = 128;
/// Number of values of a radix digit, as in `sort_radix.cuh`.
pub(super) const RADIX: usize = 256;
/// Minimum number of elements whose digits a block counts before it adds its counts to the global counts.
const MIN_DIGITS_COUNTED_PER_BLOCK: usize = 1 << 15;

/// The algorithm of a sort.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SortStrategy {
    /// Comparison of all pairs of elements of a row. Each thread counts the elements that precede its own in the sorted row.
    AllPairs,
    /// Radix sort in shared memory, with one row per block.
    SharedRadix(SortTile),
    /// Onesweep radix sort over tiles of rows. `wide` tells whether indices and counts need 64 bits.
    Onesweep { tile: SortTile, wide: bool },
}

/// The size of a tile: the number of threads times the number of elements per thread. A block holds all elements of a tile in shared
/// memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SortTile {
    /// Threads per block.
    pub threads: usize,
    /// Elements per thread.
    pub items: usize,
}

impl SortTile {
    pub fn element_count(self) -> usize {
        self.threads * self.items
    }

    /// Returns the largest tile for 48 KiB of shared memory and 80 registers per thread. `moved` is the size of an element or an index in
    /// bytes, whichever is larger. `indices` tells whether indices are sorted too.
    pub fn largest_tile(moved: usize, indices: bool) -> SortTile {
        let items = match moved {
            0..=4 if indices => 17,
            0..=4 => 21,
            8 => 11,
            _ => 5,
        };
        SortTile { threads: 384, items }
    }

    /// Returns the smallest tile that holds a row of `length` elements, or `None` if the row is too long. `indices` tells whether indices
    /// are sorted too.
    fn smallest_tile_for_row(length: usize, itemsize: usize, indices: bool) -> Option<SortTile> {
        let largest = SortTile::largest_tile(itemsize, indices);
        let small = [1, 2, 4, 8, 16]
            .map(|items| SortTile { threads: 256, items })
            .into_iter()
            .filter(|t| t.element_count() < largest.element_count());
        small.chain([largest]).find(|t| t.element_count() >= length)
    }
}

fn select_strategy(length: usize, itemsize: usize, indices: bool) -> SortStrategy {
    if length <= MAX_ALL_PAIRS_LENGTH {
        return SortStrategy::AllPairs;
    }
    match SortTile::smallest_tile_for_row(length, itemsize, indices) {
        Some(tile) => SortStrategy::SharedRadix(tile),
        None => {
            let wide = length >= 1 << 30;
            let moved = if indices && wide { itemsize.max(8) } else { itemsize };
            SortStrategy::Onesweep { tile: SortTile::largest_tile(moved, indices), wide }
        }
    }
}

/// Calls `use_defines` with the source of the algorithm `strategy` and its macro definitions. `indices` tells whether indices are an
/// output.
fn call_with_defines<R>(
    strategy: SortStrategy,
    dtype: DType,
    indices: bool,
    use_defines: impl FnOnce(&KernelSource, &[(&'static str, &str)]) -> R,
) -> R {
    let indices = ("INDICES", if indices { "1" } else { "0" });
    let sizes = |tile: SortTile| (tile.threads.to_string(), tile.items.to_string());
    let element = ("ELEMENT", cpp_element_type(dtype));
    match strategy {
        SortStrategy::AllPairs => use_defines(&ALL_PAIRS_SOURCE, &[element]),
        SortStrategy::SharedRadix(tile) => {
            let (threads, items) = sizes(tile);
            use_defines(&SHARED_RADIX_SOURCE, &[element, indices, ("THREADS", &threads), ("ITEMS", &items)])
        }
        SortStrategy::Onesweep { tile, wide } => {
            let (threads, items) = sizes(tile);
            let word = ("Word", if wide { "u64" } else { "u32" });
            use_defines(&ONESWEEP_SOURCE, &[element, indices, word, ("THREADS", &threads), ("ITEMS", &items)])
        }
    }
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every dtype and algorithm, alternately
/// with values and indices as output.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let lengths = [2, 200, 1000, 3000, 1 << 20, 1 << 30];
    let uses = DType::ALL.into_iter().enumerate().flat_map(|(n, dtype)| {
        let pick = move |(m, length): (usize, usize)| (n + m).is_multiple_of(2).then_some((dtype, length, (n + m).is_multiple_of(4)));
        lengths.into_iter().enumerate().filter_map(pick)
    });
    let listed = uses.map(|(dtype, length, indices)| {
        call_with_defines(select_strategy(length, dtype.itemsize(), indices), dtype, indices, |source, defines| {
            source.named_source(defines)
        })
    });
    listed.chain(segment_sort::sources_for_compile_check()).chain(merge::sources_for_compile_check()).collect()
}

/// Executes `call`, an operation of the kernel family `Sort`, on the device.
pub fn run_sort(call: &Call) -> Result<Outcome> {
    if let Work::Merge(request) = call.work {
        return merge::run_merge(call, request);
    }
    let (&Work::Sort(sort), [input]) = (&call.work, call.inputs) else { decline!("not a sort of one array") };
    let output_count = usize::from(sort.values) + usize::from(sort.indices);
    let Some(plan) = call.outputs.first().and_then(|o| SortPlan::new(input.layout(), &o.layout)) else { decline!("no axis to sort along") };
    if call.outputs.len() != output_count || !input.layout().is_c_contiguous() || !call.outputs.iter().all(|o| o.layout.is_c_contiguous()) {
        decline!("arrays that are not contiguous, or outputs other than values, indices or both");
    }
    let outputs = (0..output_count).map(|n| device::allocate_output(call, n)).collect::<Result<Vec<_>>>()?;
    if !plan.is_empty() {
        let SortPlan { rows, columns: length, kept: limit } = plan;
        let context = device::context(call.device)?;
        let values = outputs.first().filter(|_| sort.values);
        let index_out = outputs.last().filter(|_| sort.indices);
        let rows = SortLaunch {
            call,
            context,
            dtype: input.dtype(),
            sort,
            from: device::pointer_to_read(input)?,
            rows,
            length,
            limit,
            values,
            index_out,
        };
        rows.queue_sort(select_strategy(length, input.dtype().itemsize(), sort.indices))?;
    }
    device::outcome_from_buffers(call, outputs)
}

/// The arguments of one sort of rows.
struct SortLaunch<'a> {
    call: &'a Call<'a>,
    context: &'static Context,
    dtype: DType,
    sort: Sort,
    from: u64,
    rows: usize,
    length: usize,
    limit: usize,
    values: Option<&'a Arc<CudaBuffer>>,
    index_out: Option<&'a Arc<CudaBuffer>>,
}

fn pointer_or_null(buffer: Option<&Arc<CudaBuffer>>) -> u64 {
    buffer.map_or(0, |b| b.pointer())
}

impl SortLaunch<'_> {
    fn kernel_function(&self, strategy: SortStrategy, name: &str) -> Result<Arc<Function>> {
        call_with_defines(strategy, self.dtype, self.sort.indices, |source, defines| {
            source.get_or_compile_kernel(self.context, name, defines)
        })
        .with_call_context(self.call)
    }

    /// Returns the mask that kernels XOR with each digit: all ones for descending order, else 0.
    fn digit_xor_mask(&self) -> u32 {
        if self.sort.descending { 0xff } else { 0 }
    }

    fn queue_sort(&self, strategy: SortStrategy) -> Result<()> {
        let (values, index_out) = (pointer_or_null(self.values), pointer_or_null(self.index_out));
        // The kernels `sort_tiny` and `sort_block` take row lengths in 32 bits, which suffice because these kernels sort short rows.
        let (length, limit, digit_xor_mask) = (self.length as i32, self.limit as i32, self.digit_xor_mask());
        let mut args = Args::new();
        args.push(&self.from).push(&values).push(&index_out).push(&self.rows).push(&length).push(&limit);
        match strategy {
            SortStrategy::AllPairs => {
                let (together, descending) = ((DEFAULT_THREADS_PER_BLOCK as usize / self.length) as i32, i32::from(self.sort.descending));
                args.push(&together).push(&descending);
                let function = self.kernel_function(strategy, "sort_tiny")?;
                let grid = grid_of_blocks(self.rows.div_ceil(together as usize));
                // SAFETY: the arguments match sort_tiny in sort_tiny.cu: `rows` rows of `length` elements, and outputs of `limit` elements
                // per row, or null.
                unsafe { function.launch(grid, [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }.with_call_context(self.call)
            }
            SortStrategy::SharedRadix(tile) => {
                args.push(&digit_xor_mask);
                let function = self.kernel_function(strategy, "sort_block")?;
                // SAFETY: the arguments match sort_block in sort_block.cu. A tile holds a row, and the index output exists if the kernel
                // was compiled for it.
                unsafe { function.launch(grid_of_blocks(self.rows), [tile.threads as u32, 1, 1], 0, args.pointers()) }
                    .with_call_context(self.call)
            }
            SortStrategy::Onesweep { tile, wide } => self.queue_onesweep(strategy, tile, if wide { 8 } else { 4 }),
        }
    }

    fn queue_onesweep(&self, strategy: SortStrategy, tile: SortTile, word: usize) -> Result<()> {
        let SortLaunch { call, rows, length, limit, .. } = *self;
        let itemsize = self.dtype.itemsize();
        let (elements, digit_xor_mask, passes) = (rows * length, self.digit_xor_mask(), itemsize);
        let tiles = length.div_ceil(tile.element_count());
        let chunk = MIN_DIGITS_COUNTED_PER_BLOCK
            .max(elements.div_ceil(16 * self.context.info().sm_count.max(1) as usize))
            .next_multiple_of(tile.threads);
        let chunks = length.div_ceil(chunk);

        // The zeroed memory holds the digit counts, the look-back states of the tiles, row masks and tickets. A second set of states
        // follows: each pass uses one set and clears the other for the next pass.
        let (counts, states) = (rows * passes * RADIX * word, rows * tiles * RADIX * word);
        let zeros = counts + states + (rows + passes) * 4;
        let other_states = zeros.next_multiple_of(16);
        let scratch = device::allocate(call, other_states + if passes > 1 { states } else { 0 })?;
        self.context.fill(scratch.memory(), 0, [0u8; 4], zeros / 4).with_call_context(call)?;
        let at = |offset: usize| scratch.pointer() + offset as u64;
        let (starts, masks) = (at(0), at(counts + states));
        // A single pass has no next pass, so it clears its own look-back states. This is harmless, because a block clears only the states
        // that it writes afterwards.
        let states = [at(counts), if passes > 1 { at(other_states) } else { at(counts) }];

        // Radix passes alternate between two buffers of elements, and between two buffers of indices. The first buffer of each pair may be
        // the output.
        let whole = limit == length;
        let moved = |size: usize, output: Option<&Arc<CudaBuffer>>| -> Result<[Arc<CudaBuffer>; 2]> {
            let other = device::allocate(call, if passes > 1 { elements * size } else { 0 })?;
            match output.filter(|_| whole) {
                Some(output) => Ok([output.clone(), other]),
                None => Ok([device::allocate(call, if passes > 1 { elements * size } else { 0 })?, other]),
            }
        };
        let values = moved(itemsize, self.values)?;
        let index_out = if self.sort.indices { Some(moved(word, self.index_out)?) } else { None };
        // If `whole` (all elements of each row are output), the int64 index output is also the first index buffer. Between passes, this
        // buffer holds indices of `word` bytes. The indices of a row begin where its output begins, so no other row overwrites them.
        let row_pitches = [if whole { length * (8 / word) } else { length }, length];

        let threads = [tile.threads as u32, 1, 1];
        let function = self.kernel_function(strategy, "sort_count_digits")?;
        let mut args = Args::new();
        args.push(&self.from).push(&starts).push(&length).push(&chunk).push(&chunks).push(&digit_xor_mask);
        // SAFETY: the arguments match sort_count_digits in sort_onesweep.cu. `starts` has RADIX counts for each row and pass.
        unsafe { function.launch(grid_of_blocks(rows * chunks), threads, 0, args.pointers()) }.with_call_context(call)?;
        let function = self.kernel_function(strategy, "sort_digit_starts")?;
        let mut args = Args::new();
        args.push(&starts).push(&masks).push(&length);
        // SAFETY: the arguments match sort_digit_starts in sort_onesweep.cu. `masks` has an element for each row.
        unsafe { function.launch(grid_of_blocks(rows * passes), [RADIX as u32, 1, 1], 0, args.pointers()) }.with_call_context(call)?;

        let function = self.kernel_function(strategy, "sort_pass")?;
        let address = |pair: Option<&[Arc<CudaBuffer>; 2]>, n: usize| pair.map_or(0, |p| p[n].pointer());
        let buffers = [
            self.from,
            address(Some(&values), 0),
            address(Some(&values), 1),
            address(index_out.as_ref(), 0),
            address(index_out.as_ref(), 1),
            row_pitches[0] as u64,
            row_pitches[1] as u64,
            pointer_or_null(self.values),
            pointer_or_null(self.index_out),
        ];
        for pass in 0..passes as u32 {
            let ticket = masks + 4 * (rows as u64 + u64::from(pass));
            let [mine, next] = if pass % 2 == 0 { states } else { [states[1], states[0]] };
            let mut args = Args::new();
            args.push(&buffers).push(&starts).push(&masks).push(&ticket).push(&mine).push(&next);
            args.push(&length).push(&limit).push(&tiles).push(&pass).push(&digit_xor_mask);
            // SAFETY: the arguments match sort_pass in sort_onesweep.cu. `buffers` has the layout of the C++ struct. Each buffer has
            // `length` elements per row, the outputs `limit`. There are RADIX look-back states per tile, and a block per tile.
            unsafe { function.launch(grid_of_blocks(rows * tiles), threads, 0, args.pointers()) }.with_call_context(call)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_follow_the_row_length() {
        assert_eq!(select_strategy(128, 4, true), SortStrategy::AllPairs);
        assert_eq!(select_strategy(129, 4, false), SortStrategy::SharedRadix(SortTile { threads: 256, items: 1 }));
        assert_eq!(select_strategy(4097, 4, false), SortStrategy::SharedRadix(SortTile { threads: 384, items: 21 }));
        assert_eq!(select_strategy(1500, 16, false), SortStrategy::SharedRadix(SortTile { threads: 384, items: 5 }));
        assert_eq!(select_strategy(8065, 4, false), SortStrategy::Onesweep { tile: SortTile { threads: 384, items: 21 }, wide: false });
        assert_eq!(select_strategy(8065, 1, true), SortStrategy::Onesweep { tile: SortTile { threads: 384, items: 17 }, wide: false });
        assert_eq!(select_strategy(1 << 30, 4, true), SortStrategy::Onesweep { tile: SortTile { threads: 384, items: 11 }, wide: true });
        for (itemsize, indices) in [(1, true), (2, false), (4, true), (8, true), (16, false)] {
            let SortStrategy::Onesweep { tile, .. } = select_strategy(1 << 20, itemsize, indices) else { panic!() };
            assert!(tile.element_count() * itemsize.max(4) <= 46 << 10, "shared memory for {itemsize} bytes");
        }
    }

    #[test]
    fn sources_are_complete() {
        let list = sources_for_compile_check();
        assert_eq!(list.len(), 45 + 30 + 15);
        for name in ["sort_tiny(", "sort_block(", "sort_pass(", "sort_segments(", "sort_segments_short(", "merge_tiles("] {
            assert!(list.iter().any(|(_, text)| text.contains(name)), "{name}");
        }
    }
}
