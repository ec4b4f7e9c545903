//! CUDA kernels of the family `Search`: insertion points of values in a sorted array (`searchsorted`), or whether it has an equal
//! element (`isin`). Blocks search a sample of the array in shared memory first.

use cuprum_core::call::{self, SearchResultKind};
use cuprum_core::{Array, Call, DType, Outcome, Result, Work, decline};

use crate::codegen::ctype;
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::driver::Context;
use crate::families::kernel_lookup::KernelSource;

static SEARCH_SOURCE: KernelSource =
    KernelSource { name: "search.cu", text: concat!(include_str!("../kernels/sort_keys.cuh"), include_str!("../kernels/search.cu")) };

/// Threads per block, as in `search.cu`.
const SEARCH_THREADS_PER_BLOCK: u32 = 1024;
/// Maximum shared memory for the sample of the sorted array, in bytes. At this size, a multiprocessor can hold two blocks at once.
const MAX_SAMPLE_BYTES: u32 = 64 << 10;
/// Maximum shared memory for the sample if fewer than [`MIN_COUNT_FOR_LARGE_SAMPLE`] values are searched, in bytes. Reading a larger sample
/// would then take longer than it saves.
const MAX_SAMPLE_BYTES_FOR_FEW_VALUES: usize = 8 << 10;
/// Minimum number of searched values for which a large sample of the sorted array pays off.
const MIN_COUNT_FOR_LARGE_SAMPLE: usize = 1 << 20;
/// Maximum distance between sampled elements at which a thread searches four values at a time. At larger distances, the L1 cache is too
/// small for that, so each thread searches one value at a time.
const MAX_SAMPLE_DISTANCE_FOR_FOUR_VALUES_PER_THREAD: usize = 8;

/// Shared memory of a block of the kernel `find_members`, as in `search.cu`: a filter of 2^19 bits, and a list of 8192 16-bit numbers.
const FIND_MEMBERS_SHARED_BYTES: u32 = (1 << 16) + 2 * FIND_MEMBERS_TILE_LENGTH as u32;
/// Number of values that a block of `find_members` searches at a time, as in `search.cu`.
const FIND_MEMBERS_TILE_LENGTH: usize = 8 * SEARCH_THREADS_PER_BLOCK as usize;
/// Maximum size of the sorted array for which the filter of `find_members` excludes most values.
const MAX_FILTERED_ELEMENTS: usize = 1 << 16;
/// Minimum number of searched values per element of the sorted array at which the filter of `find_members` pays off.
const MIN_VALUES_PER_FILTERED_ELEMENT: usize = 64;

/// Returns the macro definitions of the kernel. `several` tells whether a thread searches four values at a time instead of one.
fn kernel_defines(dtype: DType, result: SearchResultKind, several: bool) -> [(&'static str, &'static str); 3] {
    let result = match result {
        SearchResultKind::BeforeEqual => "0",
        SearchResultKind::AfterEqual => "1",
        SearchResultKind::IsFound => "2",
        SearchResultKind::IsMissing => "3",
    };
    [("ELEMENT", ctype(dtype)), ("RESULT", result), ("ITEMS", if several { "4" } else { "1" })]
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every dtype, with insertion points and
/// with the search for equal elements.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let pairs = [[SearchResultKind::BeforeEqual, SearchResultKind::IsFound], [SearchResultKind::AfterEqual, SearchResultKind::IsMissing]];
    let named = |(n, result): (usize, SearchResultKind), dtype| SEARCH_SOURCE.named_source(&kernel_defines(dtype, result, n % 3 == 0));
    DType::ALL.iter().enumerate().flat_map(|(n, &dtype)| pairs[n % 2].map(|result| named((n, result), dtype))).collect()
}

/// Executes `call`, an operation of the kernel family `Search`, on the device.
pub fn run_search(call: &Call) -> Result<Outcome> {
    let (&Work::Search(call::Search { result }), [sorted, values], [spec]) = (&call.work, call.inputs, call.outputs) else {
        decline!("not a search of one array in another");
    };
    if sorted.dtype() != values.dtype() {
        decline!("values of another dtype than the sorted array");
    }
    if !sorted.layout().is_c_contiguous() || !values.layout().is_c_contiguous() || !spec.layout.is_c_contiguous() {
        decline!("an array that is not contiguous");
    }
    let context = device::context(call.device)?;
    let out = device::allocate_output(call, 0)?;
    let (size, count) = (sorted.layout().size(), values.layout().size());
    let addresses = [out.pointer(), device::pointer_to_read(sorted)?, device::pointer_to_read(values)?];
    let limit = MAX_SAMPLE_BYTES.min(context.info().shared_per_block_optin);
    let max_bytes = if count < MIN_COUNT_FOR_LARGE_SAMPLE { MAX_SAMPLE_BYTES_FOR_FEW_VALUES } else { limit as usize };
    // The number of samples is less than a power of two, because element 0 of the search tree in shared memory is not used.
    let step = size / (max_bytes / values.dtype().itemsize()) + 1;
    let sample_bytes = ((size / step + 1).next_power_of_two() * values.dtype().itemsize()) as u32;
    let several = step <= MAX_SAMPLE_DISTANCE_FOR_FOUR_VALUES_PER_THREAD;
    let finds_members = matches!(result, SearchResultKind::IsFound | SearchResultKind::IsMissing)
        && size <= MAX_FILTERED_ELEMENTS
        && count / MIN_VALUES_PER_FILTERED_ELEMENT >= size.max(FIND_MEMBERS_TILE_LENGTH)
        && FIND_MEMBERS_SHARED_BYTES <= context.info().shared_per_block_optin;
    if finds_members {
        queue_find_members(context, values.dtype(), result, addresses, [size, count]).with_call_context(call)?;
        return device::outcome_from_buffers(call, [out]);
    }
    let queue = || {
        let function = SEARCH_SOURCE.get_or_compile_kernel(context, "search_sorted", &kernel_defines(values.dtype(), result, several))?;
        function.allow_dynamic_shared_memory(sample_bytes)?;
        let mut args = Args::new();
        args.push(&addresses[0]).push(&addresses[1]).push(&size).push(&step).push(&addresses[2]).push(&count);
        // Each block reads all samples, so the grid has no more blocks than can run at the same time.
        let resident = function.blocks_per_sm(SEARCH_THREADS_PER_BLOCK, sample_bytes)? * context.info().sm_count;
        let tiles = count.div_ceil(SEARCH_THREADS_PER_BLOCK as usize * if several { 4 } else { 1 });
        let grid = [tiles.min(resident.max(1) as usize) as u32, 1, 1];
        // SAFETY: the arguments match search_sorted. The sorted array has `size` elements. The values and the output have `count` elements
        // each, and the core crate sets the output's dtype as `result` requires. The shared memory holds one element-sized key per sample.
        unsafe { function.launch(grid, [SEARCH_THREADS_PER_BLOCK, 1, 1], sample_bytes, args.pointers()) }
    };
    queue().with_call_context(call)?;
    device::outcome_from_buffers(call, [out])
}

/// Queues the kernel that looks up values in a filter of a sorted array. `addresses` are the addresses of the output, the sorted array and
/// the values. `sizes` are the numbers of elements of the sorted array and of the values.
fn queue_find_members(
    context: &'static Context,
    dtype: DType,
    result: SearchResultKind,
    addresses: [u64; 3],
    sizes: [usize; 2],
) -> crate::Result<()> {
    let function = SEARCH_SOURCE.get_or_compile_kernel(context, "find_members", &kernel_defines(dtype, result, false))?;
    function.allow_dynamic_shared_memory(FIND_MEMBERS_SHARED_BYTES)?;
    let mut args = Args::new();
    args.push(&addresses[0]).push(&addresses[1]).push(&sizes[0]).push(&addresses[2]).push(&sizes[1]);
    // Each block builds a filter, so the grid has no more blocks than can run at the same time.
    let resident = function.blocks_per_sm(SEARCH_THREADS_PER_BLOCK, FIND_MEMBERS_SHARED_BYTES)? * context.info().sm_count;
    let grid = [sizes[1].div_ceil(FIND_MEMBERS_TILE_LENGTH).min(resident.max(1) as usize) as u32, 1, 1];
    // SAFETY: the arguments match find_members. The sorted array has `sizes[0]` elements, and values and output have `sizes[1]` each. The
    // shared memory has [`FIND_MEMBERS_SHARED_BYTES`] bytes, which hold the filter and the list of numbers of the kernel.
    unsafe { function.launch(grid, [SEARCH_THREADS_PER_BLOCK, 1, 1], FIND_MEMBERS_SHARED_BYTES, args.pointers()) }
}
