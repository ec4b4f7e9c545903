//! Launches of the kernels in `kernels/scan_rows.cu` and `kernels/scan_columns.cu`.

use cuprum_backend_cuda::device;
use cuprum_core::{Outcome, Result};

use super::request::{SCAN_THREADS_PER_BLOCK, ScanAxis, ScanRequest};
use crate::kernel_parameter_lists::{AxesParam, DevicePointer, OffsetsParam, ProgramParams, kernel_parameters};
use crate::launch::LaunchContext;

kernel_parameters! {
    /// Parameters of `scan_rows`. `ticket` and `words` may be null if there is one tile per row.
    struct ScanRowsParams for "scan_rows" {
        p: ProgramParams,
        axes: AxesParam,
        out: DevicePointer,
        count: i64,
        ticket: DevicePointer,
        words: DevicePointer,
        tiles: u32,
        rows: u32,
    }
}

kernel_parameters! {
    /// Parameters of `scan_columns`. `ticket` and `words` may be null if there is one tile per column.
    struct ScanColumnsParams for "scan_columns" {
        p: ProgramParams,
        axes: AxesParam,
        step: OffsetsParam,
        out: DevicePointer,
        rows: i64,
        columns: i64,
        out_stride: i64,
        ticket: DevicePointer,
        words: DevicePointer,
        groups: u32,
        tiles: u32,
    }
}

/// Queues the kernel of a scan.
pub fn launch_scan_kernel(context: &LaunchContext, request: &ScanRequest) -> Result<Outcome> {
    let call = context.call;
    let (groups, tiles) = (request.scan_line_group_count() as u32, request.tiles_per_group() as u32);
    // The 32-bit tile counter takes a whole 64-bit word, which keeps the tile states aligned.
    let words = 1 + request.look_back_word_count();
    let workspace = match tiles {
        0 | 1 => None,
        _ => {
            let workspace = device::allocate(call, words * size_of::<u64>())?;
            context.queue_zero_fill(&workspace, 0, 2 * words)?;
            Some(workspace)
        }
    };
    let output = device::allocate_output(call, 0)?;
    let p = context.pack_program_params(request.program, context.inputs)?;
    let (axes, out) = (request.unscanned_axes_param(), DevicePointer(output.pointer()));
    let ticket = DevicePointer(workspace.as_ref().map_or(0, |w| w.pointer()));
    let words = DevicePointer(workspace.as_ref().map_or(0, |w| w.pointer() + size_of::<u64>() as u64));
    let (length, lines, grid, threads) =
        (request.scan_line_length() as i64, request.scan_line_count() as i64, groups * tiles, SCAN_THREADS_PER_BLOCK as u32);
    match request.axis {
        ScanAxis::Rows => {
            let params = ScanRowsParams { p, axes, out, count: length, ticket, words, tiles, rows: groups };
            // SAFETY: the output has `rows` rows of `count` elements. The counter and the tile states are zeroed, and the grid has a
            // block for each tile.
            unsafe { context.launch_kernel(grid, threads, 0, &params) }?;
        }
        ScanAxis::Columns { out_stride } => {
            let (step, out_stride) = (request.column_strides_param(), out_stride as i64);
            let params = ScanColumnsParams { p, axes, step, out, rows: length, columns: lines, out_stride, ticket, words, groups, tiles };
            // SAFETY: the output has `columns` columns of `rows` elements, `out_stride` apart. The counter and the tile states are
            // zeroed, and the grid has a block for each tile of each group of columns.
            unsafe { context.launch_kernel(grid, threads, 0, &params) }?;
        }
    }
    device::outcome_from_buffers(call, [output])
}
