//! Launches of the kernels in `kernels/segment.cu`.

use cuprum_backend_cuda::device;
use cuprum_core::{Outcome, Result};

use super::request::{SEGMENT_THREADS_PER_BLOCK, SegmentRequest};
use crate::kernel_parameter_lists::{DevicePointer, ProgramParams, kernel_parameters};
use crate::launch::LaunchContext;

kernel_parameters! {
    /// Parameters of `find_tile_segments`.
    struct FindTileSegmentsParams for "find_tile_segments" {
        offsets: DevicePointer,
        segments: i64,
        length: i64,
        cuts: DevicePointer,
        tiles: i64,
    }
}

kernel_parameters! {
    /// Parameters of `reduce_segment_tiles`.
    struct ReduceSegmentTilesParams for "reduce_segment_tiles" {
        p: ProgramParams,
        out: DevicePointer,
        length: i64,
        offsets: DevicePointer,
        segments: i64,
        cuts: DevicePointer,
        heads: DevicePointer,
        tails: DevicePointer,
        fault: DevicePointer,
        op: u64,
    }
}

kernel_parameters! {
    /// Parameters of `combine_segment_partials`.
    struct CombineSegmentPartialsParams for "combine_segment_partials" {
        out: DevicePointer,
        length: i64,
        offsets: DevicePointer,
        segments: i64,
        cuts: DevicePointer,
        heads: DevicePointer,
        tails: DevicePointer,
        tiles: i64,
    }
}

/// Queues the three kernels of a segment reduction: find the tiles, reduce each tile, combine segments that span several tiles.
pub fn launch_segment_kernels(context: &LaunchContext, request: &SegmentRequest) -> Result<Outcome> {
    let call = context.call;
    let output = device::allocate_output(call, 0)?;
    if request.segments == 0 {
        return device::outcome_from_buffers(call, [output]);
    }
    // The workspace holds two partial results per tile, then the index of the first segment of each tile and a final index.
    let tile_count = request.tile_count();
    let partial_bytes = (tile_count * request.accumulator_size()).next_multiple_of(16);
    let workspace = device::allocate(call, 2 * partial_bytes + (tile_count + 1) * size_of::<i64>())?;
    let at = |offset: usize| DevicePointer(workspace.pointer() + offset as u64);
    let [heads, tails, cuts] = [0, partial_bytes, 2 * partial_bytes].map(at);
    let (program_inputs, offsets) = context.program_input_addresses();
    let p = context.pack_program_params(request.program, program_inputs)?;
    let out = DevicePointer(output.pointer());
    let (segments, length, tiles) = (request.segments as i64, request.length as i64, tile_count as i64);
    let fault = DevicePointer(context.context.fault_pointer().map_err(|e| context.to_call_error(e))?);
    let threads = SEGMENT_THREADS_PER_BLOCK as u32;

    let cut = FindTileSegmentsParams { offsets, segments, length, cuts, tiles };
    // SAFETY: `offsets` has `segments + 1` elements, and `cuts` has `tiles + 1`. The grid has a thread for each element of `cuts`.
    unsafe { context.launch_kernel((tile_count / SEGMENT_THREADS_PER_BLOCK + 1) as u32, threads, 0, &cut) }?;

    let op = device::fault_operation_id(call.op, 0);
    let tile = ReduceSegmentTilesParams { p, out, length, offsets, segments, cuts, heads, tails, fault, op };
    // SAFETY: the inputs have `length` values, or one that is repeated. The output has `segments` elements, and `heads` and `tails` an
    // accumulator per tile. The kernel checks the offsets against `length`. The grid has a block for each tile.
    unsafe { context.launch_kernel(tile_count as u32, threads, 0, &tile) }?;

    let combine = CombineSegmentPartialsParams { out, length, offsets, segments, cuts, heads, tails, tiles };
    let warps_per_block = SEGMENT_THREADS_PER_BLOCK / 32;
    let grid = context.grid_size::<CombineSegmentPartialsParams>(threads, 0, tile_count.div_ceil(warps_per_block) as u64, 4)?;
    // SAFETY: the output has `segments` elements, and `heads` and `tails` an accumulator per tile, which the kernel
    // `reduce_segment_tiles` has written.
    unsafe { context.launch_kernel(grid, threads, 0, &combine) }?;
    device::outcome_from_buffers(call, [output])
}
