//! CUDA kernels that merge two sorted arrays.

use cuprum_core::call::Merge;
use cuprum_core::{Array, Call, DType, Outcome, Result, decline};

use super::element_type_and_grid::{cpp_element_type, grid_of_blocks};
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

/// Executes `call`, a merge of two sorted arrays.
pub fn run_merge(call: &Call, request: Merge) -> Result<Outcome> {
    let ([left, right], [spec]) = (call.inputs, call.outputs) else { decline!("not a merge of two arrays") };
    let (dtype, left_count, right_count) = (spec.dtype, left.size(), right.size());
    let size = left_count + right_count;
    if [left, right].iter().any(|input| !input.layout().is_c_contiguous() || input.dtype() != dtype) || spec.layout.shape() != [size] {
        decline!("arrays that are not contiguous, or of several dtypes");
    }
    let output = device::allocate_output(call, 0)?;
    if size == 0 {
        return device::outcome_from_buffers(call, [output]);
    }
    let context = device::context(call.device)?;
    let tiles = size.div_ceil(DEFAULT_THREADS_PER_BLOCK as usize * items_per_thread(dtype));
    let splits = device::allocate(call, (tiles + 1) * size_of::<i64>())?;
    let (from_left, from_right) = (device::pointer_to_read(left)?, device::pointer_to_read(right)?);
    let (to, splits_at, threads) = (output.pointer(), splits.pointer(), [DEFAULT_THREADS_PER_BLOCK, 1, 1]);
    let function = |name| {
        call_with_defines(dtype, request.descending, |defines| MERGE_SOURCE.get_or_compile_kernel(context, name, defines))
            .with_call_context(call)
    };

    let find_tiles = function("find_merge_tiles")?;
    let grid = grid_of_blocks((tiles + 1).div_ceil(DEFAULT_THREADS_PER_BLOCK as usize));
    let mut args = Args::new();
    args.push(&splits_at).push(&from_left).push(&left_count).push(&from_right).push(&right_count).push(&tiles);
    // SAFETY: the arguments match find_merge_tiles in sort_merge.cu. `splits` has `tiles` + 1 elements, and the inputs have `left_count`
    // and `right_count` elements.
    unsafe { find_tiles.launch(grid, threads, 0, args.pointers()) }.with_call_context(call)?;

    let merge_tiles = function("merge_tiles")?;
    let mut args = Args::new();
    args.push(&to).push(&from_left).push(&from_right).push(&splits_at).push(&size).push(&tiles);
    // SAFETY: the arguments match merge_tiles in sort_merge.cu. The output has `size` elements, as many as both inputs together, and
    // find_merge_tiles writes `splits` on the same stream.
    unsafe { merge_tiles.launch(grid_of_blocks(tiles), threads, 0, args.pointers()) }.with_call_context(call)?;
    device::outcome_from_buffers(call, [output])
}
