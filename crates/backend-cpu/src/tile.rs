//! Evaluation of fused programs in tiles: blocks of consecutive elements, short enough that all intermediate values stay in L1.
//!
//! Contiguous inputs are read in place; other inputs are first gathered into scratch blocks. The kernel families `Map`, `Rows` and `Fft`
//! write results to outputs ([`ResultDestination`]). The families `Reduce`, `Scan`, `Select` and `Histogram` read the results of each tile
//! from scratch memory.

mod instruction;
mod nest;
mod schedule;
mod strip;

use std::cell::RefCell;
use std::sync::Arc;

use cuprum_core::ops::elementwise::{MULTIPLY, SQUARE};
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{DType, Program, Reason, Result, Step, StepKind, StoredArray};
use cuprum_cpu_base::cache::{NonTemporal, Prefetch};
use cuprum_cpu_base::transpose::BLOCK_SIDE;
use cuprum_cpu_base::views::{Elements, ElementsMut, Scratch, ScratchBlocks};
use cuprum_cpu_base::with_bits;
use smallvec::SmallVec;

use self::nest::{AccessPattern, NestInput};
pub(crate) use self::nest::{BAND_ROWS, LoopNest};
pub(crate) use self::schedule::{MAX_TILE, ResultDestination};
use self::schedule::{Schedule, TileSlices};

/// Minimum size in bytes (elements of the loop times element size) for software prefetching of inputs. Less data fits the second-level
/// cache.
const MIN_PREFETCHED_BYTES: usize = 256 << 10;

/// A fused program bound to its inputs, with a kernel for each of its operations, ready for evaluation.
pub(crate) struct CompiledProgram<'a> {
    program: &'a Program,
    nest: LoopNest<'a>,
    schedule: Arc<Schedule>,
    /// Whether outputs are written with non-temporal stores.
    streamed: bool,
    /// If the program is a single product: the indices of the inputs that are its factors.
    factors: Option<[usize; 2]>,
}

impl<'a> CompiledProgram<'a> {
    /// Prepares `program` for evaluation over the loops and inputs of `nest`. An error names the missing kernel.
    pub fn new(program: &'a Program, nest: LoopNest<'a>, results: ResultDestination) -> std::result::Result<CompiledProgram<'a>, Reason> {
        let accesses: SmallVec<[AccessPattern; 8]> = nest.inputs.iter().map(|source| source.access).collect();
        let schedule = Schedule::get_or_create(program, &accesses, results)?;
        Ok(CompiledProgram {
            program,
            nest,
            schedule,
            streamed: results == ResultDestination::Streamed,
            factors: find_product_factors(program),
        })
    }

    /// Returns the number of elements per tile, a power of two.
    pub fn tile_len(&self) -> usize {
        self.schedule.tile
    }

    /// Returns the loop nest, which holds the program's inputs.
    pub fn nest(&self) -> &LoopNest<'a> {
        &self.nest
    }

    /// Returns whether the program is the identity of a contiguous input, so that its values can be read in place.
    pub fn is_contiguous_identity(&self) -> bool {
        self.program.is_identity() && self.nest.inputs.first().is_some_and(|input| input.access == AccessPattern::Flat)
    }

    /// Returns the cost per element in elementary operations: one for memory traffic, plus the cost of the program's operations.
    pub fn cost_per_element(&self) -> usize {
        self.schedule.cost
    }
}

/// Returns the input indices of both factors, if the program only multiplies two float32 or float64 inputs or squares one such input.
fn find_product_factors(program: &Program) -> Option<[usize; 2]> {
    let (root, inputs) = program.steps.split_last()?;
    let (StepKind::Apply(op), DType::F32 | DType::F64) = (root.kind, root.dtype) else { return None };
    let input = |step: &u16| match inputs.get(*step as usize)? {
        Step { kind: StepKind::Input(k), dtype, .. } if *dtype == root.dtype => Some(*k as usize),
        _ => None,
    };
    if (op != MULTIPLY && op != SQUARE) || program.outputs[..] != [inputs.len() as u16] {
        return None;
    }
    Some([input(root.args().first()?)?, input(root.args().last()?)?])
}

/// A fused program over contiguous inputs that fit one tile. The inputs are read in place. Only the constants are copied to scratch blocks
/// before the evaluation.
pub(crate) struct SingleTile<'a> {
    program: &'a Program,
    schedule: Arc<Schedule>,
    inputs: SmallVec<[Elements<'a>; 4]>,
    len: usize,
}

impl<'a> SingleTile<'a> {
    /// Prepares `program`, or returns `None` if a [`CompiledProgram`] is needed: for more elements than a tile, strided arrays, or
    /// arguments that are whole arrays. The strides in `plan` are those of `arrays`, followed by those of the outputs.
    pub fn of(program: &'a Program, arrays: &'a [StoredArray], plan: &LoopPlan) -> Result<Option<SingleTile<'a>>> {
        if plan.size > MAX_TILE || !plan.is_flat() {
            return Ok(None);
        }
        let (mut accesses, mut inputs) = (SmallVec::<[AccessPattern; 8]>::new(), SmallVec::new());
        for (array, strides) in arrays.iter().zip(&plan.strides) {
            let access = if strides[..] == [1] { AccessPattern::Flat } else { AccessPattern::Single };
            let len = if access == AccessPattern::Flat { plan.size } else { 1 };
            accesses.push(access);
            inputs.push(Elements::buffer(array)?.slice(array.layout().offset(), len));
        }
        let schedule = Schedule::get_or_create(program, &accesses, ResultDestination::Written).ok();
        let fits = |schedule: &Arc<Schedule>| plan.size <= schedule.tile && !schedule.takes_whole_arrays();
        Ok(schedule.filter(fits).map(|schedule| SingleTile { program, schedule, inputs, len: plan.size }))
    }

    /// Computes all elements; `outputs` has one slice per output.
    pub fn run(&self, outputs: &mut [ElementsMut]) {
        let mut blocks = SPARE_SCRATCH.try_with(RefCell::take).unwrap_or_default();
        self.schedule.fill_constants(self.program, &mut blocks, self.len, |k, out| fill_repeated(self.inputs[k], out));
        let mut tile = TileSlices { len: self.len, row: self.len, inputs: &self.inputs, outputs };
        self.schedule.run_tile(self.program, &[], &mut tile, &mut blocks);
        self.schedule.copy_outputs(&mut tile, &blocks, |to, value| to.copy_from(value));
        // Thread-locals are inaccessible while a thread ends. The scratch blocks are then freed instead of being kept for reuse.
        let _ = SPARE_SCRATCH.try_with(|spare| spare.replace(blocks));
    }
}

/// Fills `out` with copies of the single element in `element`.
fn fill_repeated(element: Elements, out: ElementsMut) {
    with_bits!(out.dtype(), T => out.typed::<T>().fill(element.typed::<T>()[0]))
}

/// Maximum number of unused buffers for gathered elements that a thread keeps for reuse.
const MAX_SPARE_GATHER_BUFFERS: usize = 24;

thread_local! {
    /// Scratch blocks of this thread's last evaluation, which its next evaluation reuses.
    static SPARE_SCRATCH: RefCell<ScratchBlocks> = RefCell::default();
    /// Unused buffers for gathered elements, from earlier evaluations of this thread.
    static SPARE_GATHER_BUFFERS: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

/// The state of one thread that evaluates a [`CompiledProgram`] tile by tile.
pub(crate) struct Evaluator<'c, 'a> {
    compiled: &'c CompiledProgram<'a>,
    blocks: ScratchBlocks,
    /// Buffer for the gathered elements of each strided input.
    gathered: SmallVec<[Scratch; 4]>,
    /// The current tile of each input that is read in place.
    direct: SmallVec<[Option<Elements<'a>>; 4]>,
    /// For each input, the band (several neighbouring rows) in the input's gather buffer. Used only by evaluators from
    /// [`Evaluator::in_bands`].
    bands: SmallVec<[BufferedBand; 4]>,
    /// Number of elements per row, for reductions along rows.
    row: usize,
    stores: NonTemporal,
}

/// The rows and columns that an input's gather buffer holds, and the offset of the current tile in that buffer.
#[derive(Clone, Copy, Default)]
struct BufferedBand {
    /// Whether several rows of the input are gathered at once.
    is_banded: bool,
    /// First row in the buffer. `rows` is the number of rows (initially 0), `column` the first column, and `len` the number of columns.
    row: usize,
    rows: usize,
    column: usize,
    len: usize,
    /// Offset of the current tile in the buffer, in elements.
    at: usize,
}

impl<'c, 'a> Evaluator<'c, 'a> {
    /// Returns an evaluator of `compiled` with its own scratch memory, in which the constants are filled in.
    pub fn new(compiled: &'c CompiledProgram<'a>) -> Evaluator<'c, 'a> {
        Evaluator::for_rows(compiled, compiled.tile_len(), 1)
    }

    /// Returns an evaluator for a program over rows of `row` elements. A tile has up to `rows_per_tile` rows.
    pub fn for_rows(compiled: &'c CompiledProgram<'a>, row: usize, rows_per_tile: usize) -> Evaluator<'c, 'a> {
        // Thread-locals are inaccessible only while a thread ends. The evaluator then allocates new buffers.
        let spare = || SPARE_GATHER_BUFFERS.try_with(|s| s.borrow_mut().pop()).ok().flatten().unwrap_or_default();
        let inputs = &compiled.nest.inputs;
        let mut evaluator = Evaluator {
            compiled,
            blocks: SPARE_SCRATCH.try_with(RefCell::take).unwrap_or_default(),
            gathered: inputs.iter().map(|s| if s.access == AccessPattern::Strided { spare() } else { Scratch::default() }).collect(),
            direct: SmallVec::from_elem(None, inputs.len()),
            bands: SmallVec::from_elem(BufferedBand::default(), inputs.len()),
            row,
            stores: NonTemporal::default(),
        };
        let len = (row * rows_per_tile).min(compiled.nest.size());
        compiled.schedule.fill_constants(compiled.program, &mut evaluator.blocks, len, |k, out| inputs[k].gather(&[], 0, out));
        for (source, block) in inputs.iter().zip(&mut evaluator.gathered) {
            if source.access == AccessPattern::Strided {
                block.reserve(len * source.buffer.dtype().itemsize());
            }
        }
        evaluator
    }

    /// Returns an evaluator for a caller that visits [`BAND_ROWS`] neighbouring rows, with the same range of columns in each, before the
    /// next range. For inputs that are contiguous across rows, these rows are then gathered at once.
    pub fn in_bands(compiled: &'c CompiledProgram<'a>) -> Evaluator<'c, 'a> {
        let mut evaluator = Evaluator::new(compiled);
        for (k, source) in compiled.nest.inputs.iter().enumerate().filter(|(_, source)| source.is_transposed()) {
            evaluator.bands[k].is_banded = true;
            evaluator.gathered[k].reserve(BAND_ROWS * band_pitch(compiled.tile_len()) * source.buffer.dtype().itemsize());
        }
        evaluator
    }

    /// Gathers the elements `start..start + len` of input `k` into the input's gather buffer. For an input that is gathered in bands, also
    /// gathers the following rows of the band.
    fn gather_input(&mut self, k: usize, start: usize, len: usize) {
        let (source, dims) = (&self.compiled.nest.inputs[k], &self.compiled.nest.dims);
        let (block, band) = (&mut self.gathered[k], &mut self.bands[k]);
        let inner = self.compiled.nest.inner_extent();
        let (row, column) = (start / inner, start % inner);
        let (pitch, dtype) = (band_pitch(self.compiled.tile_len()), source.buffer.dtype());
        if band.is_banded && column + len <= inner {
            if (band.row..band.row + band.rows).contains(&row) && (band.column, band.len) == (column, len) {
                band.at = (row - band.row) * pitch;
                return;
            }
            let height = dims[dims.len() - 2];
            let rows = BAND_ROWS.min(height - row % height);
            if source.gather_band(dims, start, rows, len, pitch, block.elements_mut(dtype, BAND_ROWS * pitch)) {
                *band = BufferedBand { is_banded: true, row, rows, column, len, at: 0 };
                return;
            }
        }
        *band = BufferedBand { is_banded: band.is_banded, ..BufferedBand::default() };
        source.gather(dims, start, block.elements_mut(dtype, len));
    }

    /// Computes the elements `start..start + len` (at most a tile) into `outputs`, which has one slice per output.
    pub fn evaluate_into(&mut self, start: usize, len: usize, outputs: &mut [ElementsMut]) {
        self.prepare_inputs(start, len);
        let CompiledProgram { program, nest, schedule, streamed, .. } = self.compiled;
        let inputs = tile_inputs(self.compiled, &self.direct, &self.gathered, &self.bands, len);
        let mut tile = TileSlices { len, row: self.row, inputs: &inputs, outputs };
        schedule.run_tile(program, &nest.inputs, &mut tile, &mut self.blocks);
        schedule.copy_outputs(&mut tile, &self.blocks, |to, value| {
            if *streamed { to.copy_non_temporal_from(value, &self.stores) } else { to.copy_from(value) }
        });
    }

    /// Computes and returns the elements `start..start + len` (at most a tile) of a program with one result.
    pub fn evaluate(&mut self, start: usize, len: usize) -> Elements<'_> {
        self.prepare_inputs(start, len);
        let CompiledProgram { program, nest, schedule, .. } = self.compiled;
        let inputs = tile_inputs(self.compiled, &self.direct, &self.gathered, &self.bands, len);
        schedule.run_tile(
            program,
            &nest.inputs,
            &mut TileSlices { len, row: self.row, inputs: &inputs, outputs: &mut [] },
            &mut self.blocks,
        );
        schedule.first_result(&inputs, self.blocks.all_scratch_blocks(), len)
    }

    /// Like [`Evaluator::evaluate`], but also returns a prefetching state, with which the caller's loop prefetches the next elements of one
    /// input. The state is `None` if no input is contiguous with elements as wide as the result's, or if the program's values take less
    /// than [`MIN_PREFETCHED_BYTES`].
    pub fn evaluate_and_get_prefetch(&mut self, start: usize, len: usize) -> (Elements<'_>, Option<Prefetch>) {
        let nest = &self.compiled.nest;
        let width = self.compiled.program.output_dtype(0).itemsize();
        let as_wide = |source: &&NestInput| source.access != AccessPattern::Single && source.buffer.dtype().itemsize() == width;
        let long = nest.size().saturating_mul(width) >= MIN_PREFETCHED_BYTES;
        let input = if long { nest.inputs.iter().filter(as_wide).find_map(|s| s.contiguous_range(&nest.dims, start, len)) } else { None };
        (self.evaluate(start, len), input.map(Elements::prefetch_state_before_second_loop))
    }

    /// Returns the two factors of the elements `start..start + len` in place, with the prefetching state for a loop over the first factor.
    /// `len` is not limited to a tile.
    ///
    /// `None` unless the program is a product of two floats whose inputs are contiguous in that range.
    pub fn factors_in_place(&self, start: usize, len: usize) -> Option<([Elements<'a>; 2], Option<Prefetch>)> {
        let CompiledProgram { nest, factors, .. } = self.compiled;
        let [a, b] = (*factors)?;
        let run = |k: usize| nest.inputs.get(k)?.contiguous_range(&nest.dims, start, len);
        let (a, b) = (run(a)?, run(b)?);
        Some(([a, b], self.prefetch_for(a)))
    }

    /// Returns the elements `start..start + len` in place, with the prefetching state for a loop over them. `len` is not limited to a tile.
    ///
    /// `None` unless the program is the identity of an input that is contiguous in that range.
    pub fn values_in_place(&self, start: usize, len: usize) -> Option<(Elements<'a>, Option<Prefetch>)> {
        let CompiledProgram { program, nest, .. } = self.compiled;
        let run = if program.is_identity() { nest.inputs.first()?.contiguous_range(&nest.dims, start, len)? } else { return None };
        Some((run, self.prefetch_for(run)))
    }

    /// Returns the prefetching state for a loop over `run`, elements of one input. Returns `None` if the program reads less than
    /// [`MIN_PREFETCHED_BYTES`] of the input, or if the processor does not benefit from prefetching.
    fn prefetch_for(&self, run: Elements) -> Option<Prefetch> {
        let long = self.compiled.nest.size().saturating_mul(run.dtype().itemsize()) >= MIN_PREFETCHED_BYTES;
        if long { run.prefetch_state() } else { None }
    }

    /// Prepares each input for a tile: refers to contiguous elements in place, and copies strided elements to the input's gather buffer.
    fn prepare_inputs(&mut self, start: usize, len: usize) {
        let nest = &self.compiled.nest;
        for (k, source) in nest.inputs.iter().enumerate() {
            self.direct[k] = source.contiguous_range(&nest.dims, start, len);
            if self.direct[k].is_none() && source.access == AccessPattern::Strided {
                self.gather_input(k, start, len);
            }
        }
    }
}

/// Returns the current tile of each input: its elements in place, or those in its gather buffer.
fn tile_inputs<'v>(
    compiled: &'v CompiledProgram,
    direct: &[Option<Elements<'v>>],
    gathered: &'v [Scratch],
    bands: &[BufferedBand],
    len: usize,
) -> SmallVec<[Elements<'v>; 4]> {
    let run = |(k, source): (usize, &NestInput)| match (direct[k], source.access) {
        (Some(run), _) => run,
        (None, AccessPattern::Strided) => gathered[k].elements(source.buffer.dtype(), bands[k].at + len).slice(bands[k].at, len),
        (None, _) => Elements::of::<u8>(&[]),
    };
    compiled.nest.inputs.iter().enumerate().map(run).collect()
}

impl Drop for Evaluator<'_, '_> {
    fn drop(&mut self) {
        let blocks = std::mem::take(&mut self.blocks);
        let gathered = self.gathered.drain(..).filter(|block| !block.is_empty());
        // Thread-locals are inaccessible while a thread ends. The scratch blocks are then freed instead of being kept for reuse.
        let _ = SPARE_SCRATCH.try_with(|spare| spare.replace(blocks));
        let _ = SPARE_GATHER_BUFFERS.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            let free = MAX_SPARE_GATHER_BUFFERS.saturating_sub(spare.len());
            spare.extend(gathered.take(free));
        });
    }
}

/// Returns the number of elements between the starts of gathered rows. Not a power of two, so that rows do not share cache sets.
fn band_pitch(tile: usize) -> usize {
    tile + BLOCK_SIDE
}
