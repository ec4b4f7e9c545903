//! Evaluation of a compiled program tile by tile, with scratch memory for one thread.

use std::cell::RefCell;

use cuprum_cpu_base::cache_hints::{NonTemporalStores, PrefetchState};
use cuprum_cpu_base::transpose::TRANSPOSE_BLOCK_SIDE;
use cuprum_cpu_base::typed_views::{Elements, ElementsMut, Scratch, ScratchBlocks};
use smallvec::SmallVec;

use super::SPARE_SCRATCH_BLOCKS;
use super::compiled_program::CompiledProgram;
use super::execution_plan::TileSlices;
use super::loop_nest::{AccessPattern, LoopNestInput, ROWS_PER_BAND};

/// Minimum size in bytes (elements of the loop times element size) for software prefetching of inputs. Less data fits the second-level
/// cache.
const MIN_PREFETCHED_BYTES: usize = 256 << 10;

/// Maximum number of unused buffers for gathered elements that a thread keeps for reuse.
const MAX_SPARE_GATHER_BUFFERS: usize = 24;

thread_local! {
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
    /// [`Evaluator::new_for_row_bands`].
    bands: SmallVec<[GatheredBand; 4]>,
    /// Number of elements per row, for reductions along rows.
    row: usize,
    stores: NonTemporalStores,
}

/// The rows and columns that an input's gather buffer holds, and the offset of the current tile in that buffer.
#[derive(Clone, Copy, Default)]
struct GatheredBand {
    /// Whether several rows of the input are gathered at once.
    is_banded: bool,
    /// First row in the gather buffer. The fields `rows` and `len` are the numbers of rows (initially 0) and columns in the buffer, and
    /// `column` is the first column.
    row: usize,
    rows: usize,
    column: usize,
    len: usize,
    /// Offset of the current tile in the gather buffer, in elements.
    at: usize,
}

impl<'c, 'a> Evaluator<'c, 'a> {
    /// Returns an evaluator of `compiled` with its own scratch memory, in which the constants are filled in.
    pub fn new(compiled: &'c CompiledProgram<'a>) -> Evaluator<'c, 'a> {
        Evaluator::new_for_rows(compiled, compiled.tile_len(), 1)
    }

    /// Returns an evaluator for a program over rows of `row` elements. A tile has up to `rows_per_tile` rows.
    pub fn new_for_rows(compiled: &'c CompiledProgram<'a>, row: usize, rows_per_tile: usize) -> Evaluator<'c, 'a> {
        // Thread-locals are inaccessible only while a thread ends. The evaluator then allocates new buffers.
        let spare = || SPARE_GATHER_BUFFERS.try_with(|s| s.borrow_mut().pop()).ok().flatten().unwrap_or_default();
        let inputs = &compiled.nest.inputs;
        let mut evaluator = Evaluator {
            compiled,
            blocks: SPARE_SCRATCH_BLOCKS.try_with(RefCell::take).unwrap_or_default(),
            gathered: inputs.iter().map(|s| if s.access == AccessPattern::Strided { spare() } else { Scratch::default() }).collect(),
            direct: SmallVec::from_elem(None, inputs.len()),
            bands: SmallVec::from_elem(GatheredBand::default(), inputs.len()),
            row,
            stores: NonTemporalStores::default(),
        };
        let len = (row * rows_per_tile).min(compiled.nest.size());
        compiled
            .execution_plan
            .fill_constants(compiled.program, &mut evaluator.blocks, len, |k, out| inputs[k].gather_elements(&[], 0, out));
        for (source, block) in inputs.iter().zip(&mut evaluator.gathered) {
            if source.access == AccessPattern::Strided {
                block.reserve(len * source.buffer.dtype().itemsize());
            }
        }
        evaluator
    }

    /// Returns an evaluator for a caller that visits [`ROWS_PER_BAND`] neighbouring rows, with the same range of columns in each, before
    /// the next range. For inputs that are contiguous across rows, these rows are then gathered at once.
    pub fn new_for_row_bands(compiled: &'c CompiledProgram<'a>) -> Evaluator<'c, 'a> {
        let mut evaluator = Evaluator::new(compiled);
        for (k, source) in compiled.nest.inputs.iter().enumerate().filter(|(_, source)| source.is_transposed()) {
            evaluator.bands[k].is_banded = true;
            evaluator.gathered[k].reserve(ROWS_PER_BAND * gathered_row_pitch(compiled.tile_len()) * source.buffer.dtype().itemsize());
        }
        evaluator
    }

    /// Gathers the elements `start..start + len` of input `k` into the input's gather buffer. For an input that is gathered in bands, also
    /// gathers the following rows of the band.
    fn gather_input(&mut self, k: usize, start: usize, len: usize) {
        let (source, dims) = (&self.compiled.nest.inputs[k], &self.compiled.nest.dims);
        let (block, band) = (&mut self.gathered[k], &mut self.bands[k]);
        let inner = self.compiled.nest.innermost_extent();
        let (row, column) = (start / inner, start % inner);
        let (pitch, dtype) = (gathered_row_pitch(self.compiled.tile_len()), source.buffer.dtype());
        if band.is_banded && column + len <= inner {
            if (band.row..band.row + band.rows).contains(&row) && (band.column, band.len) == (column, len) {
                band.at = (row - band.row) * pitch;
                return;
            }
            let height = dims[dims.len() - 2];
            let rows = ROWS_PER_BAND.min(height - row % height);
            if source.try_gather_band(dims, start, rows, len, pitch, block.elements_mut(dtype, ROWS_PER_BAND * pitch)) {
                *band = GatheredBand { is_banded: true, row, rows, column, len, at: 0 };
                return;
            }
        }
        *band = GatheredBand { is_banded: band.is_banded, ..GatheredBand::default() };
        source.gather_elements(dims, start, block.elements_mut(dtype, len));
    }

    /// Computes the elements `start..start + len` (at most a tile) into `outputs`, which has one slice per output.
    pub fn evaluate_into(&mut self, start: usize, len: usize, outputs: &mut [ElementsMut]) {
        self.prepare_inputs(start, len);
        let CompiledProgram { program, nest, execution_plan, streamed, .. } = self.compiled;
        let inputs = tile_inputs(self.compiled, &self.direct, &self.gathered, &self.bands, len);
        let mut tile = TileSlices { len, row: self.row, inputs: &inputs, outputs };
        execution_plan.run_tile(program, &nest.inputs, &mut tile, &mut self.blocks);
        execution_plan.copy_uncomputed_outputs(&mut tile, &self.blocks, |to, value| {
            if *streamed { to.copy_non_temporal_from(value, &self.stores) } else { to.copy_from(value) }
        });
    }

    /// Computes and returns the elements `start..start + len` (at most a tile) of a program with one result.
    pub fn evaluate(&mut self, start: usize, len: usize) -> Elements<'_> {
        self.prepare_inputs(start, len);
        let CompiledProgram { program, nest, execution_plan, .. } = self.compiled;
        let inputs = tile_inputs(self.compiled, &self.direct, &self.gathered, &self.bands, len);
        execution_plan.run_tile(
            program,
            &nest.inputs,
            &mut TileSlices { len, row: self.row, inputs: &inputs, outputs: &mut [] },
            &mut self.blocks,
        );
        execution_plan.first_result(&inputs, self.blocks.read_all_blocks(), len)
    }

    /// Like [`Evaluator::evaluate`], but also returns a prefetching state, with which the caller's loop prefetches the next elements of one
    /// input. The state is `None` if no input is contiguous with elements as wide as the result's, or if the program's values take less
    /// than [`MIN_PREFETCHED_BYTES`].
    pub fn evaluate_and_get_prefetch(&mut self, start: usize, len: usize) -> (Elements<'_>, Option<PrefetchState>) {
        let nest = &self.compiled.nest;
        let width = self.compiled.program.output_dtype(0).itemsize();
        let as_wide = |source: &&LoopNestInput| source.access != AccessPattern::Single && source.buffer.dtype().itemsize() == width;
        let long = nest.size().saturating_mul(width) >= MIN_PREFETCHED_BYTES;
        let input = if long {
            nest.inputs.iter().filter(as_wide).find_map(|s| s.contiguous_elements_in_range(&nest.dims, start, len))
        } else {
            None
        };
        (self.evaluate(start, len), input.map(Elements::prefetch_state_for_first_of_two_loops))
    }

    /// Returns the two factors of the elements `start..start + len` in place, with the prefetching state for a loop over the first factor.
    /// `len` is not limited to a tile.
    ///
    /// Returns `None` unless the program is a product of two floats whose inputs are contiguous in that range.
    pub fn borrow_product_factors(&self, start: usize, len: usize) -> Option<([Elements<'a>; 2], Option<PrefetchState>)> {
        let CompiledProgram { nest, factors, .. } = self.compiled;
        let [a, b] = (*factors)?;
        let run = |k: usize| nest.inputs.get(k)?.contiguous_elements_in_range(&nest.dims, start, len);
        let (a, b) = (run(a)?, run(b)?);
        Some(([a, b], self.prefetch_state_for_input(a)))
    }

    /// Returns the elements `start..start + len` in place, with the prefetching state for a loop over them. `len` is not limited to a tile.
    ///
    /// Returns `None` unless the program is the identity of an input that is contiguous in that range.
    pub fn borrow_contiguous_values(&self, start: usize, len: usize) -> Option<(Elements<'a>, Option<PrefetchState>)> {
        let CompiledProgram { program, nest, .. } = self.compiled;
        let run =
            if program.is_identity() { nest.inputs.first()?.contiguous_elements_in_range(&nest.dims, start, len)? } else { return None };
        Some((run, self.prefetch_state_for_input(run)))
    }

    /// Returns the prefetching state for a loop over `run`, elements of one input. Returns `None` if the program reads less than
    /// [`MIN_PREFETCHED_BYTES`] of the input, or if the processor does not benefit from prefetching.
    fn prefetch_state_for_input(&self, run: Elements) -> Option<PrefetchState> {
        let long = self.compiled.nest.size().saturating_mul(run.dtype().itemsize()) >= MIN_PREFETCHED_BYTES;
        if long { run.prefetch_state() } else { None }
    }

    /// Prepares each input for a tile: refers to contiguous elements in place, and copies strided elements to the input's gather buffer.
    fn prepare_inputs(&mut self, start: usize, len: usize) {
        let nest = &self.compiled.nest;
        for (k, source) in nest.inputs.iter().enumerate() {
            self.direct[k] = source.contiguous_elements_in_range(&nest.dims, start, len);
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
    bands: &[GatheredBand],
    len: usize,
) -> SmallVec<[Elements<'v>; 4]> {
    let run = |(k, source): (usize, &LoopNestInput)| match (direct[k], source.access) {
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
        let _ = SPARE_SCRATCH_BLOCKS.try_with(|spare| spare.replace(blocks));
        let _ = SPARE_GATHER_BUFFERS.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            let free = MAX_SPARE_GATHER_BUFFERS.saturating_sub(spare.len());
            spare.extend(gathered.take(free));
        });
    }
}

/// Returns the distance between the starts of gathered rows, in elements. The distance is not a power of two, so that rows do not share
/// cache sets.
fn gathered_row_pitch(tile: usize) -> usize {
    tile + TRANSPOSE_BLOCK_SIDE
}
