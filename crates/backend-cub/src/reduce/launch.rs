//! Launches of the kernels in `kernels/reduce.cu`.

use cuprum_backend_cuda::device;
use cuprum_core::{Outcome, Result};

use super::request::{REDUCE_THREADS_PER_BLOCK, ReduceRequest, ReduceRowSplit, rows_per_block};
use crate::kernel_parameter_lists::{AxesParam, DevicePointer, IndexParam, ProgramParams, kernel_parameters};
use crate::launch::LaunchContext;

kernel_parameters! {
    /// Parameters of `reduce_chunks`. `partials` and `tickets` may be null if there is one chunk per row.
    struct ReduceChunksParams for "reduce_chunks" {
        p: ProgramParams,
        axes: AxesParam,
        out: DevicePointer,
        partials: DevicePointer,
        tickets: DevicePointer,
        rows: u32,
        chunks: u32,
        columns: IndexParam,
        chunk: IndexParam,
    }
}

/// Declares the equal parameter lists of several kernels, which differ in the number of threads per row.
macro_rules! row_parameters {
    ($($name:ident for $kernel:literal;)*) => { $(
        kernel_parameters! {
            /// Parameters of a kernel that reduces whole rows.
            struct $name for $kernel {
                p: ProgramParams,
                axes: AxesParam,
                out: DevicePointer,
                rows: IndexParam,
                columns: IndexParam,
            }
        }
    )* };
}

row_parameters! {
    BlockPerRowParams for "reduce_rows_block";
    WarpPerRowParams for "reduce_rows_warp";
    EightLanesPerRowParams for "reduce_rows_8";
}

/// Queues the kernel of a reduction.
pub fn launch_reduce_kernel(context: &LaunchContext, request: &ReduceRequest) -> Result<Outcome> {
    let output = device::allocate_output(context.call, 0)?;
    let p = context.pack_program_params(request.program, context.inputs)?;
    let (axes, out) = (request.kept_axes_param(), DevicePointer(output.pointer()));
    let (rows, columns) = (request.row_count() as u64, IndexParam(request.column_count() as u64));
    let threads = REDUCE_THREADS_PER_BLOCK as u32;
    match request.split {
        ReduceRowSplit::Chunks { chunks, chunk } => {
            let (rows, chunks, chunk) = (rows as u32, chunks as u32, IndexParam(chunk as u64));
            let work = u64::from(rows) * u64::from(chunks);
            let scratch = match chunks {
                1 => None,
                _ => Some(context.context.scratch(work as usize * request.accumulator_size()).map_err(|e| context.to_call_error(e))?),
            };
            let (partials, tickets) = scratch.as_ref().map_or((0, 0), |s| (s.partials, s.counters));
            let (partials, tickets) = (DevicePointer(partials), DevicePointer(tickets));
            let params = ReduceChunksParams { p, axes, out, partials, tickets, rows, chunks, columns, chunk };
            let grid = context.grid_size::<ReduceChunksParams>(threads, 0, work, 1)?;
            // SAFETY: the output has `rows` elements. The scratch memory has an accumulator per chunk, and a zeroed counter per row: it has
            // at least `MIN_UNSPLIT_REDUCE_ROWS` counters, and only calls with fewer rows split rows. The plan's sizes fit the kernel's
            // `Index`.
            unsafe { context.launch_kernel(grid, threads, 0, &params) }?;
        }
        ReduceRowSplit::Block => {
            // Limits the grid to 4 times the resident blocks, because long rows are faster if each block reduces several of them.
            let grid = context.grid_size::<BlockPerRowParams>(threads, 0, rows, 4)?;
            let params = BlockPerRowParams { p, axes, out, rows: IndexParam(rows), columns };
            // SAFETY: the output has `rows` elements. The plan's sizes fit the kernel's `Index`.
            unsafe { context.launch_kernel(grid, threads, 0, &params) }?;
        }
        // The grid covers all rows, because short rows are 3 % faster if blocks do not loop.
        ReduceRowSplit::Lanes(32) => {
            let grid = context.grid_size::<WarpPerRowParams>(threads, 0, rows.div_ceil(rows_per_block(32)), u32::MAX)?;
            let params = WarpPerRowParams { p, axes, out, rows: IndexParam(rows), columns };
            // SAFETY: the output has `rows` elements. The plan's sizes fit the kernel's `Index`.
            unsafe { context.launch_kernel(grid, threads, 0, &params) }?;
        }
        ReduceRowSplit::Lanes(_) => {
            let grid = context.grid_size::<EightLanesPerRowParams>(threads, 0, rows.div_ceil(rows_per_block(8)), u32::MAX)?;
            let params = EightLanesPerRowParams { p, axes, out, rows: IndexParam(rows), columns };
            // SAFETY: the output has `rows` elements. The plan's sizes fit the kernel's `Index`.
            unsafe { context.launch_kernel(grid, threads, 0, &params) }?;
        }
    }
    device::outcome_from_buffers(context.call, [output])
}
