//! Launches: workspaces, arguments, grids. A named unsafe room: each launch lists the parameters of its kernel.

use std::sync::Arc;

use cuprum_backend_cuda::CudaError;
use cuprum_backend_cuda::codegen::{KernelKey, pack_params, parts};
use cuprum_backend_cuda::device::{self, CudaBuffer};
use cuprum_backend_cuda::driver::Context;
use cuprum_backend_cuda::module::{Args, Function};
use cuprum_core::plan::sort::SortPlan;
use cuprum_core::{Call, Error, Outcome, Program, Reason, Result, decline};

use crate::NAME;
use crate::compile::{self, Kernels};
use crate::histogram::{self, Histogram};
use crate::reduce::{self, Reduction, Shape};
use crate::scan::{self, Scan};
use crate::segment::{self, Segments};
use crate::select::{self, Select};
use crate::sort::{self, Sort, Way};
use crate::source::Source;

/// A call that kernels take, as its family describes it.
pub trait Described {
    /// What its kernels are found by.
    fn key(&self) -> KernelKey<'_>;

    /// The text of its kernels; an error names the operation that has no code.
    fn source(&self) -> std::result::Result<Source, &'static str>;

    /// Whether its kernels take seconds to compile where the base, whose results are the same, takes less.
    fn takes_long_to_compile(&self) -> bool {
        false
    }

    /// Queues its kernels.
    fn launch(&self, on: &On) -> Result<Outcome>;
}

/// What every launch needs.
pub struct On<'a> {
    call: &'a Call<'a>,
    context: &'static Context,
    /// Those of the source, in its order.
    kernels: Kernels,
    /// Addresses of the inputs' first elements.
    inputs: &'a [u64],
}

impl On<'_> {
    fn failed(&self) -> impl Fn(CudaError) -> Error {
        failed(self.call)
    }

    /// For [`pack_params`].
    fn fault(&self, program: &Program) -> Result<Option<u64>> {
        device::fault_address(self.context, program).map_err(self.failed())
    }

    /// The addresses of the program's inputs and, behind them, that of the input that the call has beside them, or null.
    fn program_inputs(&self) -> (&[u64], u64) {
        let (of_program, last) = self.call.program_inputs();
        let address = if last.is_some() { self.inputs.last().copied().unwrap_or(0) } else { 0 };
        (&self.inputs[..of_program.len().min(self.inputs.len())], address)
    }
}

fn failed(call: &Call) -> impl Fn(CudaError) -> Error {
    let (op, device) = (call.op.name(), call.device);
    move |e| device::error(NAME, op, device, e)
}

/// Runs a call as `describe` describes it, given the addresses of the inputs' first elements, or declines with its reason.
pub fn run<D: Described>(call: &Call, describe: impl FnOnce(&[u64]) -> std::result::Result<D, Reason>) -> Result<Outcome> {
    let inputs = device::pointers(call.inputs)?;
    let described = match describe(&inputs) {
        Ok(described) => described,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let context = device::context(call.device)?;
    match compile::kernels(context, described.key(), described.takes_long_to_compile(), || described.source()).map_err(failed(call))? {
        Ok(kernels) => described.launch(&On { call, context, kernels, inputs: &inputs }),
        Err(reason) => Ok(Outcome::Declined(reason)),
    }
}

/// Blocks of this shape for `work` pieces that each block steps through: at most `waves` times what the device holds at once.
fn grid(context: &Context, function: &Function, (threads, shared): (u32, u32), work: u64, waves: u32) -> Result<[u32; 3], CudaError> {
    let resident = function.blocks_per_sm(threads, shared)?.max(1) * context.info().sm_count.max(1);
    Ok([u32::try_from(work).unwrap_or(u32::MAX).min(resident.saturating_mul(waves)).max(1), 1, 1])
}

/// Runs a reduction over inputs at these addresses.
pub fn reduce(on: &On, reduction: &Reduction) -> Result<Outcome> {
    let (&On { call, context, inputs, .. }, failed) = (on, on.failed());
    let Some(function) = on.kernels.get(reduction.kernel()) else { decline!("no kernel for this shape") };
    let (rows, columns) = (reduction.rows() as u64, reduction.columns() as u64);
    let out = device::allocate_output(call, 0)?;
    let (params, axes, to) = (pack_params(reduction.program, inputs, on.fault(reduction.program)?), reduction.axes(), out.pointer());
    let mut args = Args::new();
    args.push_bytes(&params).push_bytes(&axes).push(&to);
    let threads = [reduce::THREADS as u32, 1, 1];
    match reduction.shape {
        Shape::Split { chunks, chunk } => {
            let (rows, chunks, chunk) = (rows as u32, chunks as u32, chunk as u64);
            let work = u64::from(rows) * u64::from(chunks);
            let scratch = match chunks {
                1 => None,
                _ => Some(context.scratch(work as usize * reduction.acc_size()).map_err(&failed)?),
            };
            let (partials, counters) = scratch.as_ref().map_or((0, 0), |s| (s.room, s.counters));
            args.push(&partials).push(&counters).push(&rows).push(&chunks).push(&columns).push(&chunk);
            let grid = grid(context, function, (threads[0], 0), work, 1).map_err(&failed)?;
            // SAFETY: the parameters of reduce_split: Params, Rows, the output of `rows` elements, a partial result for each
            // of `work` chunks, a counter for each of fewer than COUNTERS rows, then numbers, of which Index takes the
            // low half where it is 32 bits (little-endian; the plan said that they fit).
            unsafe { function.launch(grid, threads, 0, args.pointers()) }.map_err(&failed)?;
        }
        Shape::Block | Shape::Lanes(_) => {
            args.push(&rows).push(&columns);
            // Short rows gain from blocks that come once (3 %), long ones from blocks that go on.
            let (per_block, waves) = match reduction.shape {
                Shape::Lanes(lanes) => ((reduce::THREADS / lanes * reduce::ROWS_TOGETHER) as u64, u32::MAX),
                _ => (1, 4),
            };
            let grid = grid(context, function, (threads[0], 0), rows.div_ceil(per_block), waves).map_err(&failed)?;
            // SAFETY: the parameters of the kernels of rows: Params, Rows, the output of `rows` elements, two numbers of type
            // Index, as above.
            unsafe { function.launch(grid, threads, 0, args.pointers()) }.map_err(&failed)?;
        }
    }
    device::done(call, [out])
}

/// Reduces segments: cuts values and segments into tiles, takes each, and joins what lies in several.
pub fn segments(on: &On, segments: &Segments) -> Result<Outcome> {
    let (&On { call, context, .. }, failed) = (on, on.failed());
    let [cut, take, join] = &on.kernels[..] else { decline!("no kernel for it") };
    let out = device::allocate_output(call, 0)?;
    if segments.count == 0 {
        return device::done(call, [out]);
    }
    // What a tile has of segments of others at its begin and at its end, then where each begins.
    let tiles = segments.tiles();
    let partials = (tiles * segments.acc_size()).next_multiple_of(16);
    let workspace = device::allocate(call, 2 * partials + (tiles + 1) * size_of::<i64>())?;
    let [heads, tails, cuts] = [0, partials, 2 * partials].map(|offset| workspace.pointer() + offset as u64);
    let (of_program, offsets) = on.program_inputs();
    let (params, to) = (pack_params(segments.program, of_program, on.fault(segments.program)?), out.pointer());
    let (count, length, tile_count) = (segments.count as u64, segments.length as u64, tiles as u64);
    let (fault, op) = (context.fault_pointer().map_err(&failed)?, device::fault_word(call.op, 0));
    let threads = [segment::THREADS as u32, 1, 1];

    let mut args = Args::new();
    args.push(&offsets).push(&count).push(&length).push(&cuts).push(&tile_count);
    let grid = [(tiles / segment::THREADS + 1) as u32, 1, 1];
    // SAFETY: the parameters of segment_cut: one offset more than there are segments, the numbers of segments and of values, room for one
    // place more than there are tiles, and their number; a thread for each place.
    unsafe { cut.launch(grid, threads, 0, args.pointers()) }.map_err(&failed)?;
    let mut args = Args::new();
    args.push_bytes(&params)
        .push(&to)
        .push(&length)
        .push(&offsets)
        .push(&count)
        .push(&cuts)
        .push(&heads)
        .push(&tails)
        .push(&fault)
        .push(&op);
    // SAFETY: the parameters of segment_tile: Params over `length` values (or one, repeated), the output of `count` elements, the offsets,
    // which it checks against `length`, the places from before, room for two accumulators a tile, and the word for faults; a block for
    // each tile.
    unsafe { take.launch([tiles as u32, 1, 1], threads, 0, args.pointers()) }.map_err(&failed)?;
    let mut args = Args::new();
    args.push(&to).push(&length).push(&offsets).push(&count).push(&cuts).push(&heads).push(&tails).push(&tile_count);
    let warps = segment::THREADS / 32;
    let grid = self::grid(context, join, (threads[0], 0), tiles.div_ceil(warps) as u64, 4).map_err(&failed)?;
    // SAFETY: the parameters of segment_join: the same.
    unsafe { join.launch(grid, threads, 0, args.pointers()) }.map_err(&failed)?;
    device::done(call, [out])
}

/// Runs a scan over inputs at these addresses.
pub fn scan(on: &On, scan: &Scan) -> Result<Outcome> {
    let (&On { call, context, inputs, .. }, failed) = (on, on.failed());
    let [function] = &on.kernels[..] else { decline!("no kernel for it") };
    // A ticket, in a word of its own, then the states of the tiles.
    let (groups, tiles) = (scan.groups() as u32, scan.tiles() as u32);
    let words = 1 + scan.states();
    let workspace = match tiles {
        0 | 1 => None,
        _ => {
            let workspace = device::allocate(call, words * size_of::<u64>())?;
            context.fill(workspace.memory(), 0, [0u8; 4], 2 * words).map_err(&failed)?;
            Some(workspace)
        }
    };
    let out = device::allocate_output(call, 0)?;
    let (params, axes, step) = (pack_params(scan.program, inputs, on.fault(scan.program)?), scan.axes(), scan.step());
    let (to, lanes, length) = (out.pointer(), scan.lanes() as u64, scan.length() as u64);
    let ticket = workspace.as_ref().map_or(0, |w| w.pointer());
    let states = workspace.as_ref().map_or(0, |w| w.pointer() + size_of::<u64>() as u64);
    let (grid, threads) = ([groups * tiles, 1, 1], [scan::THREADS as u32, 1, 1]);
    let mut args = Args::new();
    match scan.way {
        scan::Way::Rows => {
            args.push_bytes(&params).push_bytes(&axes).push(&to).push(&length).push(&ticket).push(&states).push(&tiles).push(&groups);
            // SAFETY: the parameters of scan_rows: Params, the axes of the rows, the output of `groups` rows of `length` elements,
            // a zeroed counter, `states()` zeroed words, the tiles of a row and the rows, which together are the blocks.
            unsafe { function.launch(grid, threads, 0, args.pointers()) }.map_err(&failed)?;
        }
        scan::Way::Columns { pitch } => {
            let pitch = pitch as u64;
            args.push_bytes(&params).push_bytes(&axes).push_bytes(&step).push(&to).push(&length).push(&lanes).push(&pitch);
            args.push(&ticket).push(&states).push(&groups).push(&tiles);
            // SAFETY: the parameters of scan_columns: Params, the axes of the columns, the inputs' steps along them, the output of
            // `lanes` columns of `length` elements, which lie `pitch` apart, a zeroed counter, `states()` zeroed words, the groups
            // of columns and the tiles of each, which together are the blocks.
            unsafe { function.launch(grid, threads, 0, args.pointers()) }.map_err(&failed)?;
        }
    }
    device::done(call, [out])
}

/// Runs a selection; waits for its count.
pub fn select(on: &On, select: &Select) -> Result<Outcome> {
    let (&On { call, context, .. }, failed) = (on, on.failed());
    let [function] = &on.kernels[..] else { decline!("no kernel for it") };
    // The count, a ticket in a word of its own, then the states of the tiles.
    let tiles = select.tiles() as u32;
    let words = 2 + parts::states_of_row(tiles as usize);
    let workspace = device::allocate(call, words * size_of::<u64>())?;
    context.fill(workspace.memory(), 0, [0u8; 4], 2 * words).map_err(&failed)?;
    let outputs: Vec<Arc<CudaBuffer>> = match (0..call.outputs.len()).map(|n| device::allocate_output(call, n)).collect() {
        Err(Error::OutOfMemory { .. }) => decline!("no memory for all elements; the base counts first"),
        outputs => outputs?,
    };
    let (of_program, from) = on.program_inputs();
    let values = if select.values.is_some() { outputs.first().map_or(0, |o| o.pointer()) } else { 0 };
    let places = if select.places { outputs.last().map_or(0, |o| o.pointer()) } else { 0 };
    let (params, count) = (pack_params(select.program, of_program, on.fault(select.program)?), select.count as u64);
    let [length, ticket, states] = [0, 1, 2].map(|word| workspace.pointer() + word * size_of::<u64>() as u64);
    let mut args = Args::new();
    args.push_bytes(&params).push(&from).push(&values).push(&places).push(&count).push(&ticket).push(&states).push(&tiles).push(&length);
    // SAFETY: the parameters of select_flat: Params, the `count` values to choose from, outputs of `count` elements for what is
    // asked for, the count, a zeroed counter, the zeroed states of a row of tiles, the number of tiles, which is also that of blocks,
    // and a word for the result's length.
    unsafe { function.launch([tiles, 1, 1], [select::THREADS as u32, 1, 1], 0, args.pointers()) }.map_err(&failed)?;
    let length = device::read_length(call, &workspace)?.min(select.count);
    device::done_with_length(call, length, outputs)
}

/// Counts values in bins.
pub fn histogram(on: &On, histogram: &Histogram) -> Result<Outcome> {
    let (&On { call, context, .. }, failed) = (on, on.failed());
    let [function] = &on.kernels[..] else { decline!("no kernel for it") };
    let out = device::allocate_output(call, 0)?;
    context.fill(out.memory(), 0, [0u8; 4], 2 * histogram.bins).map_err(&failed)?;
    let (of_program, edges) = on.program_inputs();
    let (params, to) = (pack_params(histogram.program, of_program, on.fault(histogram.program)?), out.pointer());
    let (count, bins) = (histogram.count as u64, histogram.bins as u32);
    let (edge_bytes, shared, copies) = histogram.shared();
    let mut args = Args::new();
    args.push_bytes(&params).push(&edges).push(&count).push(&bins).push(&to).push(&edge_bytes).push(&copies);
    let work = count.div_ceil(histogram.chunk() as u64);
    let grid = grid(context, function, (histogram::THREADS, shared), work, 1).map_err(&failed)?;
    // SAFETY: the parameters of histogram: Params, `bins + 1` edges where there are edges, the count of values, the number of
    // bins, a zeroed counter for each, and how the shared memory of the launch is used.
    unsafe { function.launch(grid, [histogram::THREADS, 1, 1], shared, args.pointers()) }.map_err(&failed)?;
    device::done(call, [out])
}

/// Sorts rows.
pub fn sort(on: &On, sort: &Sort) -> Result<Outcome> {
    let (&On { call, context, inputs, .. }, failed) = (on, on.failed());
    let outputs: Vec<Arc<CudaBuffer>> = (0..call.outputs.len()).map(|n| device::allocate_output(call, n)).collect::<Result<_>>()?;
    if !sort.plan.is_empty() {
        let values = outputs.first().filter(|_| sort.asked.values);
        let places = outputs.last().filter(|_| sort.asked.indices);
        let from = inputs.first().copied().unwrap_or(0);
        match (sort.way, &on.kernels[..]) {
            (Way::Rows, [rows]) => sort_rows(context, sort, rows, from, values, places).map_err(&failed)?,
            (Way::Top, [digit, gather, rank]) => sort_top(on, sort, [digit, gather, rank], from, values, places)?,
            (Way::Around, [digit, count, write]) => sort_around(on, sort, [digit, count, write], from, values, places)?,
            (Way::Passes, [count, begin, pass]) => sort_passes(on, sort, [count, begin, pass], from, values, places)?,
            _ => decline!("no kernel for it"),
        }
    }
    device::done(call, outputs)
}

type Memory<'a> = Option<&'a Arc<CudaBuffer>>;

fn address(memory: Memory) -> u64 {
    memory.map_or(0, |m| m.pointer())
}

/// A block a row.
fn sort_rows(context: &Context, sort: &Sort, function: &Function, from: u64, values: Memory, places: Memory) -> Result<(), CudaError> {
    let (values, places, threads) = (address(values), address(places), sort.threads as u32);
    let (rows, columns, limit) = (sort.plan.rows as u64, sort.plan.columns as u32, sort.plan.kept as u32);
    let mut args = Args::new();
    args.push(&from).push(&values).push(&places).push(&rows).push(&columns).push(&limit);
    let grid = grid(context, function, (threads, 0), rows, 16)?;
    // SAFETY: the parameters of sort_rows: `rows` rows of `columns` elements, outputs of `limit` elements a row or null, and
    // these numbers; a block holds `columns` elements.
    unsafe { function.launch(grid, [threads, 1, 1], 0, args.pointers()) }
}

/// How rows are cut for a kernel whose blocks each take a piece: the length of a piece, and how many a row has.
fn pieces(context: &Context, function: &Function, sort: &Sort) -> Result<(u64, u32), CudaError> {
    let SortPlan { rows, columns, .. } = sort.plan;
    let blocks = function.blocks_per_sm(sort.threads as u32, 0)?.max(1) as usize * context.info().sm_count.max(1) as usize;
    let count = blocks.div_ceil(rows).min(columns.div_ceil(sort.threads * 16)).max(1);
    Ok((columns.div_ceil(count) as u64, count as u32))
}

/// Bytes of `Progress` in `top.cu`.
const PROGRESS: usize = 40;

/// What a selection has found: the progress of its rows, and how they are cut.
struct Selected {
    workspace: Arc<CudaBuffer>,
    /// Where what comes behind the progress and the counts of `top_digit` begins in the workspace.
    behind: u64,
    chunk: u64,
    chunks: u32,
}

/// Finds the last of those that are selected of each row. The workspace has room for so many more words a row, given the number of pieces of
/// a row. Passes whose digits are not needed any more end at once.
fn select_last(on: &On, sort: &Sort, digit: &Function, from: u64, words: impl Fn(usize) -> usize) -> Result<Selected> {
    let (&On { call, context, .. }, failed) = (on, on.failed());
    let SortPlan { rows, columns, .. } = sort.plan;
    let (chunk, chunks) = pieces(context, digit, sort).map_err(&failed)?;
    let zeros = rows * (PROGRESS + sort::TOP_BINS * size_of::<u64>());
    let workspace = device::allocate(call, zeros + rows * words(chunks as usize) * size_of::<u64>())?;
    context.fill(workspace.memory(), 0, [0u8; 4], zeros / 4).map_err(&failed)?;
    let [progress, counts, behind] = [0, rows * PROGRESS, zeros].map(|offset| workspace.pointer() + offset as u64);
    let (length, limit) = (columns as u64, sort.selected() as u64);
    let (grid, threads) = ([rows as u32 * chunks, 1, 1], [sort.threads as u32, 1, 1]);
    for pass in sort.digits() {
        let (of_places, sort::Digit { shift, upper, .. }) = (u32::from(pass.of_places), pass);
        let mut args = Args::new();
        args.push(&from).push(&progress).push(&counts).push(&length).push(&limit).push(&chunk).push(&chunks);
        args.push(&of_places).push(&shift).push(&upper);
        // SAFETY: the parameters of top_digit: the elements, zeroed progress and counts of each row, the length of a row and how
        // many are asked for, how it is cut, and which bits the pass is for; a block for each piece.
        unsafe { digit.launch(grid, threads, 0, args.pointers()) }.map_err(&failed)?;
    }
    Ok(Selected { workspace, behind, chunk, chunks })
}

/// The first few of each row.
fn sort_top(on: &On, sort: &Sort, [digit, gather, rank]: [&Arc<Function>; 3], from: u64, values: Memory, places: Memory) -> Result<()> {
    let failed = on.failed();
    let SortPlan { rows, columns, kept } = sort.plan;
    let Selected { workspace, behind: chosen, chunk, chunks } = select_last(on, sort, digit, from, |_| kept)?;
    let (progress, length, limit) = (workspace.pointer(), columns as u64, kept as u64);
    let (grid, threads) = ([rows as u32 * chunks, 1, 1], [sort.threads as u32, 1, 1]);
    let mut args = Args::new();
    args.push(&from).push(&progress).push(&chosen).push(&length).push(&limit).push(&chunk).push(&chunks);
    // SAFETY: the parameters of top_gather: as of top_digit, and memory for the places of those asked for in each row.
    unsafe { gather.launch(grid, threads, 0, args.pointers()) }.map_err(&failed)?;
    let (values, places, limit) = (address(values), address(places), kept as u32);
    let mut args = Args::new();
    args.push(&from).push(&chosen).push(&values).push(&places).push(&length).push(&limit);
    // SAFETY: the parameters of top_rank: as above, of no more than it has shared memory for, and the outputs or null; a block for
    // each row.
    unsafe { rank.launch([rows as u32, 1, 1], threads, 0, args.pointers()) }.map_err(&failed)
}

/// Rows in three parts: before the element asked for, equal to it, behind it.
fn sort_around(on: &On, sort: &Sort, [digit, count, write]: [&Arc<Function>; 3], from: u64, values: Memory, places: Memory) -> Result<()> {
    let failed = on.failed();
    let SortPlan { rows, columns, .. } = sort.plan;
    let Selected { workspace, behind: counts, chunk, chunks } = select_last(on, sort, digit, from, |chunks| chunks)?;
    let (progress, length) = (workspace.pointer(), columns as u64);
    let (grid, threads) = ([rows as u32 * chunks, 1, 1], [sort.threads as u32, 1, 1]);
    let mut args = Args::new();
    args.push(&from).push(&progress).push(&counts).push(&length).push(&chunk).push(&chunks);
    // SAFETY: the parameters of around_count: the elements, the progress of each row after all digits of keys, a word for each piece, the
    // length of a row and how it is cut; a block for each piece.
    unsafe { count.launch(grid, threads, 0, args.pointers()) }.map_err(&failed)?;
    let (values, places) = (address(values), address(places));
    let mut args = Args::new();
    args.push(&from).push(&progress).push(&counts).push(&values).push(&places).push(&length).push(&chunk).push(&chunks);
    // SAFETY: the parameters of around_write: as above, and the outputs, as long as the elements, or null.
    unsafe { write.launch(grid, threads, 0, args.pointers()) }.map_err(&failed)
}

/// All rows, pass by pass. Keys and places go to memory of their own and to the outputs' in turn, so that the last pass of a row
/// reads from the former.
fn sort_passes(on: &On, sort: &Sort, [count, begin, pass]: [&Arc<Function>; 3], from: u64, values: Memory, places: Memory) -> Result<()> {
    let (&On { call, context, .. }, failed) = (on, on.failed());
    let SortPlan { rows, columns, kept } = sort.plan;
    let (passes, size, tiles, whole) = (sort.key_size(), sort.place_size(), sort.tiles(), kept == columns);
    let elements = rows * columns;
    // A ticket for each pass, the masks of passes of all rows and of each, the digits' counts, then the states of the tiles.
    let words = (passes + 1 + rows).next_multiple_of(2);
    let counts = rows * passes * sort::DIGITS * size;
    let states = if tiles > 1 { rows * tiles * sort::DIGITS * size } else { 0 };
    let [masks_at, counts_at, states_at, end] = [passes * 4, words * 4, words * 4 + counts, words * 4 + counts + states];
    let workspace = device::allocate(call, end)?;
    context.fill(workspace.memory(), 0, [0u8; 4], end / 4).map_err(&failed)?;
    let at = |offset: usize| workspace.pointer() + offset as u64;
    let (masks, begins, states_begin) = (at(masks_at), at(counts_at), at(states_at));

    let own = |needed: bool, bytes: usize| if needed { device::allocate(call, bytes * elements).map(Some) } else { Ok(None) };
    let pairs = sort.has_pairs();
    let keys = [own(passes > 1, passes)?, own(passes > 2 && !(whole && values.is_some()), passes)?];
    let of_places = [own(pairs && passes > 1, size)?, own(pairs && passes > 2 && !(whole && places.is_some()), size)?];
    let [keys_former, keys_latter] = [address(keys[0].as_ref()), address(keys[1].as_ref().or(values))];
    let [places_former, places_latter] = [address(of_places[0].as_ref()), address(of_places[1].as_ref().or(places))];
    let pitch = if of_places[1].is_some() { columns } else { columns * size_of::<i64>() / size };
    let of_words = own(sort.words() > 1, size)?;
    let chained = address(of_words.as_ref());
    let between = [keys_former, keys_latter, places_former, places_latter, columns as u64, pitch as u64];

    let threads = sort.threads as u32;
    let (chunk, chunks) = pieces(context, count, sort).map_err(&failed)?;
    let (row_count, columns, limit) = (rows as u32, columns as u64, kept as u64);
    let (values_at, places_at, tiles) = (address(values), address(places), tiles as u32);
    for word in 0..sort.words() as u32 {
        if word > 0 {
            context.fill(workspace.memory(), 0, [0u8; 4], end / 4).map_err(&failed)?;
        }
        let mut args = Args::new();
        args.push(&from).push(&begins).push(&columns).push(&chunk).push(&chunks).push(&word);
        let grid = [row_count * chunks, 1, 1];
        // SAFETY: the parameters of sort_count: the elements, zeroed counts for each row, pass and digit, the length of a row, how
        // it is cut, and which word is counted; a block for each piece.
        unsafe { count.launch(grid, [threads, 1, 1], 0, args.pointers()) }.map_err(&failed)?;
        let mut args = Args::new();
        args.push(&begins).push(&masks).push(&columns);
        let grid = [(rows * passes) as u32, 1, 1];
        // SAFETY: the parameters of sort_begin: the counts, of which each block takes those of one row and pass, zeroed masks, one
        // more than rows, and the length of a row.
        unsafe { begin.launch(grid, [sort::DIGITS as u32, 1, 1], 0, args.pointers()) }.map_err(&failed)?;

        for n in 0..passes {
            let round = n % sort.tagged_passes();
            if n > 0 && round == 0 {
                context.fill(workspace.memory(), states_at, [0u8; 4], states / 4).map_err(&failed)?;
            }
            let (pass_number, tag, ticket) = (n as u32, 1 + 2 * round as u32, at(n * 4));
            let mut args = Args::new();
            args.push(&from).push(&between).push(&values_at).push(&places_at).push(&begins).push(&masks).push(&states_begin).push(&ticket);
            args.push(&columns).push(&limit).push(&tiles).push(&pass_number).push(&tag).push(&chained).push(&word);
            let grid = [row_count * tiles, 1, 1];
            // SAFETY: the parameters of sort_pass: the elements; two times memory for as many keys, and places if they travel, of
            // which the latter may be an output's (or null, where no row takes more than two passes), and how far rows of places
            // lie apart there; the outputs or null; where digits begin; each row's passes; states of tiles whose tags are other
            // passes' or 0, unless there is one tile a row; a zeroed counter; the sizes, and which pass it is; memory for the places
            // between the words, if there are two, and which of them it is; a block for each tile.
            unsafe { pass.launch(grid, [threads, 1, 1], 0, args.pointers()) }.map_err(&failed)?;
        }
    }
    Ok(())
}
