//! Launches: workspaces, arguments, grids. A named unsafe room: each launch lists the parameters of its kernel.

use std::sync::{Arc, LazyLock};

use cuprum_backend_cuda::CudaError;
use cuprum_backend_cuda::codegen::pack_params;
use cuprum_backend_cuda::device;
use cuprum_backend_cuda::driver::{Context, DeviceBuffer};
use cuprum_backend_cuda::module::{Args, Function};
use cuprum_backend_cuda::single_flight::SingleFlight;
use cuprum_core::{Call, Error, Outcome, Result};
use smallvec::SmallVec;

use crate::NAME;
use crate::reduce::{self, MAX_SPLIT_ROWS, Reduction, Shape};
use crate::scan::{self, Scan};
use crate::source;

/// Addresses of the inputs' first elements.
pub fn addresses(call: &Call) -> Result<SmallVec<[u64; 4]>> {
    call.inputs.iter().map(device::pointer).collect()
}

fn failed(call: &Call) -> impl Fn(CudaError) -> Error {
    let (op, device) = (call.op.name(), call.device);
    move |e| device::error(NAME, op, device, e)
}

/// Blocks for `work` pieces that each block steps through: at most `waves` times what the device holds at once.
fn grid(context: &Context, function: &Function, work: u64, waves: u32) -> Result<[u32; 3], CudaError> {
    let resident = function.blocks_per_sm(reduce::THREADS as u32, 0)?.max(1) * context.info().sm_count.max(1);
    Ok([u32::try_from(work).unwrap_or(u32::MAX).min(resident.saturating_mul(waves)).max(1), 1, 1])
}

/// Counters of a device's stream, 0 whenever no kernel runs: kernels that share them follow one another.
fn tickets(context: &'static Context, call: &Call) -> Result<Arc<DeviceBuffer>, CudaError> {
    static TICKETS: LazyLock<SingleFlight<Arc<DeviceBuffer>>> = LazyLock::new(SingleFlight::default);
    let stream = (context.info().ordinal as u64) << 32 | u64::from(call.stream.id);
    TICKETS.get_or_make(stream, &stream.to_le_bytes(), || {
        let buffer = context.alloc(MAX_SPLIT_ROWS * size_of::<u32>())?;
        context.fill(&buffer, 0, [0u8; 4], MAX_SPLIT_ROWS)?;
        Ok(Arc::new(buffer))
    })
}

/// Runs a reduction over inputs at these addresses.
pub fn reduce(call: &Call, reduction: &Reduction, inputs: &[u64]) -> Result<Outcome> {
    let context = device::context(call.device)?;
    let failed = failed(call);
    let kernels = match source::kernels(context, reduction.key(), || reduction.source()).map_err(&failed)? {
        Ok(kernels) => kernels,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let Some(function) = kernels.get(reduction.kernel()) else {
        cuprum_core::decline!("no kernel for this shape");
    };
    let (rows, columns) = (reduction.rows() as u64, reduction.columns() as u64);
    let out = device::allocate_output(call, 0)?;
    let (params, axes, to) = (pack_params(reduction.program, inputs), reduction.axes(), out.pointer());
    let mut args = Args::new();
    args.push_bytes(&params).push_bytes(&axes).push(&to);
    let threads = [reduce::THREADS as u32, 1, 1];
    match reduction.shape {
        Shape::Split { chunks, chunk } => {
            let (rows, chunks, chunk) = (rows as u32, chunks as u32, chunk as u64);
            let work = u64::from(rows) * u64::from(chunks);
            let (workspace, tickets) = match chunks {
                1 => (None, None),
                _ => {
                    let bytes = work as usize * reduction.acc_size();
                    (Some(device::allocate(call, bytes)?), Some(tickets(context, call).map_err(&failed)?))
                }
            };
            let partials = workspace.as_ref().map_or(0, |w| w.pointer());
            let counters = tickets.as_ref().map_or(0, |t| t.pointer());
            args.push(&partials).push(&counters).push(&rows).push(&chunks).push(&columns).push(&chunk);
            let grid = grid(context, function, work, 1).map_err(&failed)?;
            // SAFETY: the parameters of reduce_split: Params, Rows, the output of `rows` elements, a partial result for each
            // of `work` chunks, a counter for each of fewer than MAX_SPLIT_ROWS rows, then numbers, of which Index takes the
            // low half where it is 32 bits (little-endian; the plan said that they fit).
            unsafe { function.launch(grid, threads, 0, args.pointers()) }.map_err(&failed)?;
        }
        Shape::Block | Shape::Lanes(_) => {
            args.push(&rows).push(&columns);
            let per_block = if let Shape::Lanes(lanes) = reduction.shape { (reduce::THREADS / lanes) as u64 } else { 1 };
            let grid = grid(context, function, rows.div_ceil(per_block), 4).map_err(&failed)?;
            // SAFETY: the parameters of the kernels of rows: Params, Rows, the output of `rows` elements, two numbers of type
            // Index, as above.
            unsafe { function.launch(grid, threads, 0, args.pointers()) }.map_err(&failed)?;
        }
    }
    device::done(call, [out])
}

/// Runs a scan over inputs at these addresses.
pub fn scan(call: &Call, scan: &Scan, inputs: &[u64]) -> Result<Outcome> {
    let context = device::context(call.device)?;
    let failed = failed(call);
    let tiles = match u32::try_from(scan.count.div_ceil(scan.tile())) {
        Ok(tiles) if tiles <= i32::MAX as u32 => tiles,
        _ => cuprum_core::decline!("{} elements are more than 2^31 tiles", scan.count),
    };
    let kernels = match source::kernels(context, scan.key(), || scan.source()).map_err(&failed)? {
        Ok(kernels) => kernels,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let Some(function) = kernels.first() else {
        cuprum_core::decline!("no kernel for it");
    };
    // A ticket, in a word of its own, then the states of the tiles.
    let words = 1 + scan.words() * tiles as usize;
    let workspace = match tiles {
        1 => None,
        _ => {
            let workspace = device::allocate(call, words * size_of::<u64>())?;
            context.fill(workspace.memory(), 0, [0u8; 4], 2 * words).map_err(&failed)?;
            Some(workspace)
        }
    };
    let out = device::allocate_output(call, 0)?;
    let (params, to, count) = (pack_params(scan.program, inputs), out.pointer(), scan.count as u64);
    let ticket = workspace.as_ref().map_or(0, |w| w.pointer());
    let states = workspace.as_ref().map_or(0, |w| w.pointer() + size_of::<u64>() as u64);
    let mut args = Args::new();
    args.push_bytes(&params).push(&to).push(&count).push(&ticket).push(&states).push(&tiles);
    // SAFETY: the parameters of scan_flat: Params, the output of `count` elements, the count, a zeroed counter, `words()`
    // zeroed words for each tile, the number of tiles, which is also that of blocks.
    unsafe { function.launch([tiles, 1, 1], [scan::THREADS as u32, 1, 1], 0, args.pointers()) }.map_err(&failed)?;
    device::done(call, [out])
}
