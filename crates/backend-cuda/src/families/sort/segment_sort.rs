//! Sorts within segments of a 1-D array. Segments of up to [`MAX_ALL_PAIRS_SEGMENT_LENGTH`] elements are sorted by comparing all pairs.
//! Longer segments are sorted by a radix sort in shared memory, with the smallest tile that holds the segment. Calls with a segment that is
//! longer than the largest tile are declined.

use cuprum_core::call;
use cuprum_core::op::Op;
use cuprum_core::ops::segments::{SEGMENT_ARGSORT, SEGMENT_SORT};
use cuprum_core::{Array, Call, DType, Outcome, Result, Work, decline};

use super::element_type_and_grid::{cpp_element_type, grid_of_blocks};
use super::{SHARED_RADIX_SOURCE, SortTile};
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::families::kernel_lookup::{DEFAULT_THREADS_PER_BLOCK, KernelSource, grid_for_items};

static SEGMENT_SORT_SOURCE: KernelSource = KernelSource {
    name: "sort_segments.cu",
    text: concat!(include_str!("../../kernels/sort_keys.cuh"), include_str!("../../kernels/sort_segments.cu")),
};

/// The operations that sort within segments.
pub(crate) const SEGMENT_SORT_OPS: &[Op] = &[SEGMENT_SORT, SEGMENT_ARGSORT];

/// Maximum length of segments that are sorted by comparing all pairs, in elements, as in `sort_segments.cu`.
const MAX_ALL_PAIRS_SEGMENT_LENGTH: usize = 128;
/// Number of elements per tile of the kernel for short segments, as in `sort_segments.cu`. A block sorts the segments that
/// start in its tile.
const SHORT_SEGMENT_TILE_LENGTH: usize = 1024;
/// Number of lists of long segments, as in `sort_segments.cu`. Each list has the segments that are sorted with one tile size.
const LONG_SEGMENT_LIST_COUNT: usize = 3;
/// Maximum number of blocks per multiprocessor that sort one list of segments. More blocks are queued than can be resident, so that no
/// multiprocessor idles.
const MAX_BLOCKS_PER_SM: usize = 16;

/// Returns the tile sizes for long segments, one for each list of long segments. `indices` tells whether indices are sorted too.
fn tile_size_of_each_list(itemsize: usize, indices: bool) -> [SortTile; LONG_SEGMENT_LIST_COUNT] {
    [SortTile { threads: 256, items: 2 }, SortTile { threads: 256, items: 6 }, SortTile::largest_tile(itemsize, indices)]
}

/// Calls `use_defines` with the macro definitions of the kernel that sorts segments in `tile`. `indices` tells whether indices are an
/// output.
fn call_with_defines<R>(tile: SortTile, dtype: DType, indices: bool, use_defines: impl FnOnce(&[(&'static str, &str)]) -> R) -> R {
    let (threads, items) = (tile.threads.to_string(), tile.items.to_string());
    let indices = if indices { "1" } else { "0" };
    use_defines(&[("ELEMENT", cpp_element_type(dtype)), ("INDICES", indices), ("SEGMENTS", "1"), ("THREADS", &threads), ("ITEMS", &items)])
}

/// Returns names and sources of the kernels, for compile checks without a device. The list has one tile size for each dtype. The output is
/// alternately indices and values.
pub(super) fn sources_for_compile_check() -> impl Iterator<Item = (String, String)> {
    DType::ALL.into_iter().enumerate().flat_map(|(n, dtype)| {
        let indices = n % 2 == 0;
        let tile = tile_size_of_each_list(dtype.itemsize(), indices)[n % LONG_SEGMENT_LIST_COUNT];
        let long = call_with_defines(tile, dtype, indices, |defines| SHARED_RADIX_SOURCE.named_source(defines));
        [SEGMENT_SORT_SOURCE.named_source(&[("ELEMENT", cpp_element_type(dtype))]), long]
    })
}

/// Runs `call`, a sort within segments.
pub(crate) fn run_segment_sort(call: &Call) -> Result<Outcome> {
    let (&Work::SegmentSort(call::SegmentSort { indices, longest }), [input, offsets], [output]) = (&call.work, call.inputs, call.outputs)
    else {
        decline!("not a sort of segments of one array")
    };
    let (dtype, length, segments) = (input.dtype(), input.layout().size(), offsets.layout().size().saturating_sub(1));
    let is_flat = input.layout().is_c_contiguous() && offsets.layout().is_c_contiguous() && output.layout.is_c_contiguous();
    if !is_flat || offsets.dtype() != DType::I64 || output.layout.size() != length {
        decline!("arrays that are not contiguous, or offsets that are not int64");
    }
    let lists = tile_size_of_each_list(dtype.itemsize(), indices);
    let most = lists[LONG_SEGMENT_LIST_COUNT - 1].element_count();
    if longest > most {
        decline!("a segment of {longest} elements: a block holds {most}");
    }
    if length.div_ceil(SHORT_SEGMENT_TILE_LENGTH) > i32::MAX as usize {
        decline!("{length} elements are more than 2^31 tiles");
    }
    let context = device::context(call.device)?;
    let out = device::allocate_output(call, 0)?;
    let (from, offsets) = (device::pointer_to_read(input)?, device::pointer_to_read(offsets)?);
    let [to_values, to_indices] = if indices { [0, out.pointer()] } else { [out.pointer(), 0] };

    // A kernel appends each long segment to one of the lists. The capacity of a list is the maximum number of segments that it may receive.
    // The scratch memory has the number of segments in each list, then the index of the first segment of each tile, then the lists.
    let tile_count = length.div_ceil(SHORT_SEGMENT_TILE_LENGTH);
    let shorter = [MAX_ALL_PAIRS_SEGMENT_LENGTH, lists[0].element_count(), lists[1].element_count()];
    let capacity = shorter.map(|shorter| if longest > shorter { segments.min(length / (shorter + 1)) } else { 0 });
    let cuts_at = size_of::<u64>() * LONG_SEGMENT_LIST_COUNT;
    let lists_at = cuts_at + size_of::<i64>() * (tile_count + 1);
    let scratch = device::allocate(call, lists_at + size_of::<i64>() * capacity.iter().sum::<usize>())?;
    context.fill(scratch.memory(), 0, [0u8; 4], cuts_at / 4).with_call_context(call)?;
    let at = |bytes: usize| scratch.pointer() + bytes as u64;
    let before = [0, capacity[0], capacity[0] + capacity[1]];
    let (counts, cuts, list_at) = (at(0), at(cuts_at), before.map(|segments| at(lists_at + size_of::<i64>() * segments)));
    // The kernel takes one struct of two arrays. The first has the address of each list. The second has, for each list, the maximum length
    // of the segments in it.
    let all_lists = [list_at, lists.map(|tile| tile.element_count() as u64)];

    let defines: &[_] = &[("ELEMENT", cpp_element_type(dtype))];
    let function = SEGMENT_SORT_SOURCE.get_or_compile_kernel(context, "assign_segments_to_tiles", defines).with_call_context(call)?;
    let mut args = Args::new();
    args.push(&offsets).push(&segments).push(&cuts).push(&tile_count).push(&all_lists).push(&counts);
    // SAFETY: the arguments match assign_segments_to_tiles in sort_segments.cu; the C++ struct `LongSegmentLists` is two arrays. `offsets`
    // has `segments` + 1 elements, and `cuts` has `tile_count` + 1. No list receives more segments than its capacity, because an array of
    // `length` elements does not have more segments of these lengths.
    unsafe {
        function.launch(
            grid_for_items(segments.max(tile_count + 1) as u64, DEFAULT_THREADS_PER_BLOCK),
            [DEFAULT_THREADS_PER_BLOCK, 1, 1],
            0,
            args.pointers(),
        )
    }
    .with_call_context(call)?;

    let function = SEGMENT_SORT_SOURCE.get_or_compile_kernel(context, "sort_segments_short", defines).with_call_context(call)?;
    let mut args = Args::new();
    args.push(&from).push(&to_values).push(&to_indices).push(&length).push(&offsets).push(&cuts);
    // SAFETY: the arguments match sort_segments_short in sort_segments.cu. The input and one output have `length` elements, and the other
    // output is null. The core crate checks that the offsets never decrease, start at 0 and end at `length`. There is a block per tile.
    unsafe { function.launch(grid_of_blocks(tile_count), [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }
        .with_call_context(call)?;

    let waves = MAX_BLOCKS_PER_SM * context.info().sm_count.max(1) as usize;
    for (n, tile) in lists.into_iter().enumerate().filter(|(n, _)| capacity[*n] > 0) {
        let function =
            call_with_defines(tile, dtype, indices, |defines| SHARED_RADIX_SOURCE.get_or_compile_kernel(context, "sort_segments", defines))
                .with_call_context(call)?;
        let count = counts + (n * size_of::<u32>()) as u64;
        let mut args = Args::new();
        args.push(&from).push(&to_values).push(&to_indices).push(&offsets).push(&list_at[n]).push(&count);
        // SAFETY: the arguments match sort_segments in sort_block.cu: a list and its length. A tile holds each segment of its list,
        // and the index output exists if the kernel was compiled for it.
        unsafe { function.launch(grid_of_blocks(capacity[n].min(waves)), [tile.threads as u32, 1, 1], 0, args.pointers()) }
            .with_call_context(call)?;
    }
    device::outcome_from_buffers(call, [out])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_grow() {
        for dtype in DType::ALL {
            for indices in [false, true] {
                let sizes = tile_size_of_each_list(dtype.itemsize(), indices).map(SortTile::element_count);
                assert!(MAX_ALL_PAIRS_SEGMENT_LENGTH < sizes[0] && sizes.is_sorted_by(|a, b| a < b), "{dtype}: {sizes:?}");
            }
        }
        assert_eq!(tile_size_of_each_list(4, false).map(SortTile::element_count), [512, 1536, 8064]);
        assert_eq!(tile_size_of_each_list(16, true).map(SortTile::element_count), [512, 1536, 1920]);
    }
}
