//! Merges of rows that consist of two sorted parts.

use cuprum_core::{DType, Result};

use super::{SortLaunch, cpp_element_type, grid_of_blocks, pointer_or_null};
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::families::kernel_lookup::{DEFAULT_THREADS_PER_BLOCK, KernelSource};

static MERGE_SOURCE: KernelSource = KernelSource {
    name: "sort_merge.cu",
    text: concat!(include_str!("../../kernels/sort_keys.cuh"), include_str!("../../kernels/sort_merge.cu")),
};

/// Returns the number of elements per thread. It is odd, as the kernel requires, and a tile takes at most 28 KiB of shared memory.
fn items_per_thread(dtype: DType) -> usize {
    match dtype.itemsize() {
        0..=4 => 15,
        8 => 11,
        _ => 7,
    }
}

/// Calls `use_defines` with the macro definitions of the kernels.
fn call_with_defines<R>(dtype: DType, descending: bool, use_defines: impl FnOnce(&[(&'static str, &str)]) -> R) -> R {
    let (threads, items) = (DEFAULT_THREADS_PER_BLOCK.to_string(), items_per_thread(dtype).to_string());
    let descending = if descending { "1" } else { "0" };
    use_defines(&[("ELEMENT", cpp_element_type(dtype)), ("THREADS", &threads), ("ITEMS", &items), ("DESCENDING", descending)])
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every dtype, alternately in ascending and
/// descending order.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let named = |(n, &dtype): (usize, &DType)| call_with_defines(dtype, n % 2 == 1, |defines| MERGE_SOURCE.named_source(defines));
    DType::ALL.iter().enumerate().map(named).collect()
}

/// Queues the merge of rows, whose first `at` elements are sorted and whose other elements are sorted. All elements of each row are output.
pub(super) fn queue_merge(launch: &SortLaunch, at: usize) -> Result<()> {
    let SortLaunch { call, context, dtype, rows, length, .. } = *launch;
    let tiles = length.div_ceil(DEFAULT_THREADS_PER_BLOCK as usize * items_per_thread(dtype));
    let splits = device::allocate(call, rows * (tiles + 1) * size_of::<i64>())?;
    let (output, splits_at, threads) = (pointer_or_null(launch.values), splits.pointer(), [DEFAULT_THREADS_PER_BLOCK, 1, 1]);
    let function = |name| {
        call_with_defines(dtype, launch.sort.descending, |defines| MERGE_SOURCE.get_or_compile_kernel(context, name, defines))
            .with_call_context(call)
    };

    let find_tiles = function("find_merge_tiles")?;
    let grid = grid_of_blocks((rows * (tiles + 1)).div_ceil(DEFAULT_THREADS_PER_BLOCK as usize));
    let mut args = Args::new();
    args.push(&splits_at).push(&launch.from).push(&rows).push(&length).push(&at).push(&tiles);
    // SAFETY: the arguments match find_merge_tiles in sort_merge.cu. `splits` has `tiles` + 1 elements for each of the `rows` rows, and
    // `at` is at most `length`.
    unsafe { find_tiles.launch(grid, threads, 0, args.pointers()) }.with_call_context(call)?;

    let merge_tiles = function("merge_tiles")?;
    let mut args = Args::new();
    args.push(&output).push(&launch.from).push(&splits_at).push(&rows).push(&length).push(&at).push(&tiles);
    // SAFETY: the arguments match merge_tiles in sort_merge.cu. `output` has as many elements as the input, and find_merge_tiles has
    // written `splits` on the same stream.
    unsafe { merge_tiles.launch(grid_of_blocks(rows * tiles), threads, 0, args.pointers()) }.with_call_context(call)
}
