//! Launches of the kernel in `kernels/histogram.cu`.

use cuprum_backend_cuda::device;
use cuprum_backend_cuda::families::histogram::min_blocks_without_overflow;
use cuprum_core::{Outcome, Result};

use super::request::{HISTOGRAM_THREADS_PER_BLOCK, HistogramRequest, HistogramSharedMemoryLayout};
use crate::kernel_parameter_lists::{DevicePointer, ProgramParams, kernel_parameters};
use crate::launch::LaunchContext;

kernel_parameters! {
    /// Parameters of `histogram`. `edges` is null if values are bin numbers.
    struct HistogramParams for "histogram" {
        p: ProgramParams,
        edges: DevicePointer,
        count: i64,
        bins: u32,
        out: DevicePointer,
        edge_bytes: u32,
        log2_copies: u32,
    }
}

/// Queues the kernel of a histogram.
pub fn launch_histogram_kernel(context: &LaunchContext, request: &HistogramRequest) -> Result<Outcome> {
    let output = device::allocate_output(context.call, 0)?;
    context.queue_zero_fill(&output, 0, 2 * request.bins)?;
    let (program_inputs, edges) = context.program_input_addresses();
    let HistogramSharedMemoryLayout { edge_bytes, total_bytes, log2_copies } = request.shared_memory_layout();
    let params = HistogramParams {
        p: context.pack_program_params(request.program, program_inputs)?,
        edges,
        count: request.count as i64,
        bins: request.bins as u32,
        out: DevicePointer(output.pointer()),
        edge_bytes,
        log2_copies,
    };
    let work = request.count.div_ceil(request.values_per_block_step()) as u64;
    let grid = context.grid_size::<HistogramParams>(HISTOGRAM_THREADS_PER_BLOCK, total_bytes, work, 1)?;
    let grid = grid.max(min_blocks_without_overflow(request.count));
    // SAFETY: there are `bins + 1` edges, or none if values are bin numbers. The output has a zeroed 64-bit counter for each bin. The
    // shared memory holds the edges and the copies of the counters.
    unsafe { context.launch_kernel(grid, HISTOGRAM_THREADS_PER_BLOCK, total_bytes, &params) }?;
    device::outcome_from_buffers(context.call, [output])
}
