//! CUDA kernels of the family `Search`: insertion points of values in a sorted array (`searchsorted`). Blocks search a sample of the array
//! in shared memory first.

use cuprum_core::call;
use cuprum_core::{Array, Call, DType, Outcome, Result, Work, decline};

use crate::codegen::ctype;
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::families::kernel::KernelSource;

static SEARCH_SOURCE: KernelSource =
    KernelSource { name: "search.cu", text: concat!(include_str!("../kernels/sort_keys.cuh"), include_str!("../kernels/search.cu")) };

/// Threads per block, as in `search.cu`.
const THREADS_PER_BLOCK: u32 = 1024;
/// Shared memory for the sample of the sorted array, in bytes. It allows two resident blocks per multiprocessor.
const MAX_SAMPLE_BYTES: u32 = 64 << 10;
/// Shared memory for the sample if fewer than [`MIN_LONG_COUNT`] values are searched. Reading a larger sample would then take longer than
/// it saves.
const MAX_SAMPLE_BYTES_OF_SHORT: usize = 8 << 10;
/// Minimum number of searched values for which a large sample of the sorted array pays off.
const MIN_LONG_COUNT: usize = 1 << 20;
/// Maximum distance between sampled elements at which a thread searches four values at a time. At larger distances, the L1 cache only has
/// enough space for the searches of one value per thread.
const MAX_STEP_OF_FOUR: usize = 8;

/// Returns the macro definitions of the kernel. `after_equal` tells whether insertion points are after equal elements instead of before
/// them, `several` whether a thread searches several values.
fn kernel_defines(dtype: DType, after_equal: bool, several: bool) -> [(&'static str, &'static str); 3] {
    [("ELEMENT", ctype(dtype)), ("AFTER", if after_equal { "1" } else { "0" }), ("ITEMS", if several { "4" } else { "1" })]
}

/// Returns names and sources of the kernels, for compile checks without a device: every dtype, with insertion points
/// alternately before and after equal elements.
pub fn compile_check_sources() -> Vec<(String, String)> {
    DType::ALL.iter().enumerate().map(|(n, &dtype)| SEARCH_SOURCE.named_source(&kernel_defines(dtype, n % 2 == 0, n % 3 == 0))).collect()
}

/// Runs a call of the kernel family `Search`.
pub fn run_call(call: &Call) -> Result<Outcome> {
    let (&Work::Search(call::Search { after_equal }), [sorted, values], [spec]) = (&call.work, call.inputs, call.outputs) else {
        decline!("not a search of one array in another");
    };
    if sorted.dtype() != values.dtype() || spec.dtype != DType::I64 {
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
    let max_bytes = if count < MIN_LONG_COUNT { MAX_SAMPLE_BYTES_OF_SHORT } else { limit as usize };
    // The samples are fewer than a power of two, because the tree in shared memory has one element that is not used.
    let step = size / (max_bytes / values.dtype().itemsize()) + 1;
    let sample_bytes = ((size / step + 1).next_power_of_two() * values.dtype().itemsize()) as u32;
    let several = step <= MAX_STEP_OF_FOUR;
    let queue = || {
        let function = SEARCH_SOURCE.kernel(context, "search_sorted", &kernel_defines(values.dtype(), after_equal, several))?;
        function.allow_dynamic_shared(limit)?; // the same limit for all threads
        let mut args = Args::new();
        args.push(&addresses[0]).push(&addresses[1]).push(&size).push(&step).push(&addresses[2]).push(&count);
        // Each block reads the samples, so there are no more blocks than run at the same time.
        let resident = function.blocks_per_sm(THREADS_PER_BLOCK, sample_bytes)? * context.info().sm_count;
        let tiles = count.div_ceil(THREADS_PER_BLOCK as usize * if several { 4 } else { 1 });
        let grid = [tiles.min(resident.max(1) as usize) as u32, 1, 1];
        // SAFETY: the arguments match search_sorted. `sorted` has `size` elements, and values and output have `count` each. The shared
        // memory holds a key for each sample, of the size of an element.
        unsafe { function.launch(grid, [THREADS_PER_BLOCK, 1, 1], sample_bytes, args.pointers()) }
    };
    queue().with_call_context(call)?;
    device::done(call, [out])
}
