//! Launches of the kernel in `kernels/select.cu`.

use std::sync::Arc;

use cuprum_backend_cuda::codegen::device_sources;
use cuprum_backend_cuda::device::{self, CudaBuffer};
use cuprum_core::{Error, Outcome, Result, decline};

use super::request::{SELECT_THREADS_PER_BLOCK, SelectRequest};
use crate::kernel_parameter_lists::{DevicePointer, ProgramParams, kernel_parameters};
use crate::launch::LaunchContext;

kernel_parameters! {
    /// Parameters of `select_elements`. The pointers of values and indices are null if the call does not need them.
    struct SelectParams for "select_elements" {
        p: ProgramParams,
        from: DevicePointer,
        values: DevicePointer,
        indices: DevicePointer,
        count: i64,
        ticket: DevicePointer,
        states: DevicePointer,
        tiles: u32,
        length: DevicePointer,
    }
}

/// Queues the kernel of a selection, and waits for the number of selected elements.
pub fn launch_select_kernel(context: &LaunchContext, request: &SelectRequest) -> Result<Outcome> {
    let call = context.call;
    // The number of selected elements and the tile counter take a 64-bit word each. The look-back states follow.
    let tiles = request.tile_count() as u32;
    let words = 2 + device_sources::look_back_state_count(tiles as usize);
    let workspace = device::allocate(call, words * size_of::<u64>())?;
    context.queue_zero_fill(&workspace, 0, 2 * words)?;
    let outputs: Vec<Arc<CudaBuffer>> = match (0..call.outputs.len()).map(|n| device::allocate_output(call, n)).collect() {
        Err(Error::OutOfMemory { .. }) => decline!("not enough memory for outputs of full length; the base accelerator counts first"),
        outputs => outputs?,
    };
    let (program_inputs, from) = context.program_input_addresses();
    let [length, ticket, states] = [0, 1, 2].map(|word| DevicePointer(workspace.pointer() + word * size_of::<u64>() as u64));
    let params = SelectParams {
        p: context.pack_program_params(request.program, program_inputs)?,
        from,
        values: DevicePointer(outputs.first().filter(|_| request.values.is_some()).map_or(0, |o| o.pointer())),
        indices: DevicePointer(outputs.last().filter(|_| request.indices).map_or(0, |o| o.pointer())),
        count: request.count as i64,
        ticket,
        states,
        tiles,
        length,
    };
    // SAFETY: values and outputs have `count` elements each, or are null. Counter, states and length are zeroed words of the workspace, and
    // the grid has a block for each tile.
    unsafe { context.launch_kernel(tiles, SELECT_THREADS_PER_BLOCK as u32, 0, &params) }?;
    let length = device::read_output_length(call, &workspace)?.min(request.count);
    device::outcome_with_length(call, length, outputs)
}
