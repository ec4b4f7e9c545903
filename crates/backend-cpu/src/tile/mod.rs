//! Evaluation of a fused program over runs of a loop nest, a tile at a time, in scratch memory that stays in L1.
//!
//! Inputs that lie contiguously are read in place, others are gathered into scratch first; results go straight to the output
//! where there is one. Map, Reduce, Scan, Select and Histogram all compute their values here.

mod nest;
mod schedule;
mod strip;

use std::cell::RefCell;
use std::sync::Arc;

use cuprum_core::ops::elementwise::{MULTIPLY, SQUARE};
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Array, DType, Program, Reason, Result, Step, StepKind, StoredArray, with_dtype};
use smallvec::SmallVec;

use self::nest::{Access, Source};
pub(crate) use self::nest::{BAND, Nest};
use self::schedule::{Schedule, Tile};
use crate::cache::{Ahead, NonTemporal};
use crate::raw::{Blocks, Elements, ElementsMut, Scratch};
use crate::transpose::SIDE;

/// Longest tile. Shorter ones are powers of two as well, so that tiles end where the fixed blocks of reductions end.
pub(crate) const MAX_TILE: usize = 2048;

/// Bytes of values from which looking ahead in the inputs is worth it: less is in the second-level cache, or read at once.
const LONG: usize = 256 << 10;

/// What becomes of a program's results.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Results {
    /// The caller reads them, tile by tile.
    Read,
    /// They are written to outputs.
    Written,
    /// The same, past the caches: each tile is computed in scratch first.
    Streamed,
}

/// A program over the inputs that it reads, made ready for evaluation.
pub(crate) struct Compiled<'a> {
    program: &'a Program,
    nest: Nest<'a>,
    schedule: Arc<Schedule>,
    /// Whether outputs pass by the caches.
    streamed: bool,
    /// The inputs that it multiplies, if it does nothing else.
    factors: Option<[usize; 2]>,
}

impl<'a> Compiled<'a> {
    /// Prepares `program` over `nest`. `Err` says what is not there.
    pub fn new(program: &'a Program, nest: Nest<'a>, results: Results) -> std::result::Result<Compiled<'a>, Reason> {
        let accesses: SmallVec<[Access; 8]> = nest.inputs.iter().map(|source| source.access).collect();
        let schedule = Schedule::of(program, &accesses, results)?;
        Ok(Compiled { program, nest, schedule, streamed: results == Results::Streamed, factors: factors(program) })
    }

    /// Points evaluated at a time: a power of two.
    pub fn tile(&self) -> usize {
        self.schedule.tile
    }

    /// The nest.
    pub fn nest(&self) -> &Nest<'a> {
        &self.nest
    }

    /// Whether it hands through an input whose points lie side by side.
    pub fn is_in_place(&self) -> bool {
        self.program.is_identity() && self.nest.inputs.first().is_some_and(|input| input.access == Access::Flat)
    }

    /// Cheap operations per point: one for the memory traffic, and those of the steps.
    pub fn cost(&self) -> usize {
        self.schedule.cost
    }
}

/// The inputs of a program that multiplies two floats, or squares one.
fn factors(program: &Program) -> Option<[usize; 2]> {
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

/// A program on inputs that lie side by side, no more points than a tile has: nothing is set up but constants.
pub(crate) struct AtOnce<'a> {
    program: &'a Program,
    schedule: Arc<Schedule>,
    inputs: SmallVec<[Elements<'a>; 4]>,
    len: usize,
}

impl<'a> AtOnce<'a> {
    /// The program as one, if it is; `plan` goes over `arrays`, then outputs.
    pub fn of(program: &'a Program, arrays: &'a [StoredArray], plan: &LoopPlan) -> Result<Option<AtOnce<'a>>> {
        if plan.size > MAX_TILE || !plan.is_flat() {
            return Ok(None);
        }
        let (mut accesses, mut inputs) = (SmallVec::<[Access; 8]>::new(), SmallVec::new());
        for (array, strides) in arrays.iter().zip(&plan.strides) {
            let access = if strides[..] == [1] { Access::Flat } else { Access::Single };
            let len = if access == Access::Flat { plan.size } else { 1 };
            accesses.push(access);
            inputs.push(Elements::buffer(array)?.slice(array.layout().offset(), len));
        }
        let schedule = Schedule::of(program, &accesses, Results::Written).ok();
        let fits = |schedule: &Arc<Schedule>| plan.size <= schedule.tile && !schedule.sees_whole();
        Ok(schedule.filter(fits).map(|schedule| AtOnce { program, schedule, inputs, len: plan.size }))
    }

    /// Computes all points into one run per output.
    pub fn run(&self, outputs: &mut [ElementsMut]) {
        let mut blocks = SPARE_BLOCKS.try_with(RefCell::take).unwrap_or_default();
        self.schedule.fill_constants(self.program, &mut blocks, self.len, |k, out| repeat(self.inputs[k], out));
        let mut tile = Tile { len: self.len, row: self.len, inputs: &self.inputs, outputs };
        self.schedule.run(self.program, &[], &mut tile, &mut blocks);
        self.schedule.copy(&mut tile, &blocks, |to, value| to.copy_from(value));
        // A thread that is ending keeps nothing.
        let _ = SPARE_BLOCKS.try_with(|spare| spare.replace(blocks));
    }
}

/// Fills a run with the one element of another.
fn repeat(element: Elements, out: ElementsMut) {
    with_dtype!(out.dtype(), T => out.typed::<T>().fill(element.typed::<T>()[0]))
}

/// Gathered blocks that a thread keeps.
const SPARES: usize = 24;

thread_local! {
    /// Scratch of a finished evaluation, for the next one of this thread.
    static SPARE_BLOCKS: RefCell<Blocks> = RefCell::default();
    /// Blocks that inputs were gathered in, likewise.
    static SPARE: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

/// One thread's evaluation of a compiled program.
pub(crate) struct Evaluator<'c, 'a> {
    compiled: &'c Compiled<'a>,
    blocks: Blocks,
    /// For gathered inputs, by input number.
    gathered: SmallVec<[Scratch; 4]>,
    /// This tile's inputs that are read in place.
    direct: SmallVec<[Option<Elements<'a>>; 4]>,
    /// The bands of inputs that are gathered so; empty unless the caller goes through rows in bands.
    bands: SmallVec<[Band; 4]>,
    /// Points of a row.
    row: usize,
    stores: NonTemporal,
}

/// Which points of an input its gathered block holds, and where this tile begins in it.
#[derive(Clone, Copy, Default)]
struct Band {
    /// Whether the input is gathered in bands.
    used: bool,
    /// First row, number of rows, first column, number of columns; no rows at first.
    row: usize,
    rows: usize,
    column: usize,
    len: usize,
    /// This tile's place in the block.
    at: usize,
}

impl<'c, 'a> Evaluator<'c, 'a> {
    /// An evaluator with its own scratch, parameters filled in.
    pub fn new(compiled: &'c Compiled<'a>) -> Evaluator<'c, 'a> {
        Evaluator::of_rows(compiled, compiled.tile(), 1)
    }

    /// An evaluator of a program with reductions along rows of `row` points, for tiles of up to `together` of them.
    pub fn of_rows(compiled: &'c Compiled<'a>, row: usize, together: usize) -> Evaluator<'c, 'a> {
        let spare = || SPARE.with(|s| s.borrow_mut().pop()).unwrap_or_default();
        let inputs = &compiled.nest.inputs;
        let mut evaluator = Evaluator {
            compiled,
            blocks: SPARE_BLOCKS.with(RefCell::take),
            gathered: inputs.iter().map(|s| if s.access == Access::Strided { spare() } else { Scratch::default() }).collect(),
            direct: SmallVec::from_elem(None, inputs.len()),
            bands: SmallVec::from_elem(Band::default(), inputs.len()),
            row,
            stores: NonTemporal::default(),
        };
        let len = (row * together).min(compiled.nest.size());
        compiled.schedule.fill_constants(compiled.program, &mut evaluator.blocks, len, |k, out| inputs[k].gather(&[], 0, out));
        for (source, block) in inputs.iter().zip(&mut evaluator.gathered) {
            if source.access == Access::Strided {
                block.reserve(len * source.buffer.dtype().itemsize());
            }
        }
        evaluator
    }

    /// An evaluator whose caller computes [`BAND`] rows of the same columns one after the other before it goes on: inputs
    /// that are contiguous across rows are then gathered once for all of them.
    pub fn in_bands(compiled: &'c Compiled<'a>) -> Evaluator<'c, 'a> {
        let mut evaluator = Evaluator::new(compiled);
        for (k, source) in compiled.nest.inputs.iter().enumerate().filter(|(_, source)| source.is_turned()) {
            evaluator.bands[k].used = true;
            evaluator.gathered[k].reserve(BAND * pitch(compiled.tile()) * source.buffer.dtype().itemsize());
        }
        evaluator
    }

    /// Gathers an input's tile: alone, or as a row of its band.
    fn gather(&mut self, k: usize, start: usize, len: usize) {
        let (source, dims) = (&self.compiled.nest.inputs[k], &self.compiled.nest.dims);
        let (block, band) = (&mut self.gathered[k], &mut self.bands[k]);
        let inner = self.compiled.nest.inner();
        let (row, column) = (start / inner, start % inner);
        let (pitch, dtype) = (pitch(self.compiled.tile()), source.buffer.dtype());
        if band.used && column + len <= inner {
            if (band.row..band.row + band.rows).contains(&row) && (band.column, band.len) == (column, len) {
                band.at = (row - band.row) * pitch;
                return;
            }
            let height = dims[dims.len() - 2];
            let rows = BAND.min(height - row % height);
            if source.gather_band(dims, start, rows, len, pitch, block.elements_mut(dtype, BAND * pitch)) {
                *band = Band { used: true, row, rows, column, len, at: 0 };
                return;
            }
        }
        *band = Band { used: band.used, ..Band::default() };
        source.gather(dims, start, block.elements_mut(dtype, len));
    }

    /// Computes points `start..start + len` (at most a tile) into one run per output.
    pub fn write(&mut self, start: usize, len: usize, outputs: &mut [ElementsMut]) {
        self.gather_inputs(start, len);
        let Compiled { program, nest, schedule, streamed, .. } = self.compiled;
        let inputs = inputs(self.compiled, &self.direct, &self.gathered, &self.bands, len);
        let mut tile = Tile { len, row: self.row, inputs: &inputs, outputs };
        schedule.run(program, &nest.inputs, &mut tile, &mut self.blocks);
        schedule.copy(
            &mut tile,
            &self.blocks,
            |to, value| if *streamed { to.stream_from(value, &self.stores) } else { to.copy_from(value) },
        );
    }

    /// Computes points `start..start + len` (at most a tile) of a program with one result.
    pub fn read(&mut self, start: usize, len: usize) -> Elements<'_> {
        self.gather_inputs(start, len);
        let Compiled { program, nest, schedule, .. } = self.compiled;
        let inputs = inputs(self.compiled, &self.direct, &self.gathered, &self.bands, len);
        schedule.run(program, &nest.inputs, &mut Tile { len, row: self.row, inputs: &inputs, outputs: &mut [] }, &mut self.blocks);
        schedule.result(&inputs, self.blocks.all(), len)
    }

    /// As [`Evaluator::read`], and the input memory in which the loop over these values should look ahead, where that is worth it.
    pub fn read_with_ahead(&mut self, start: usize, len: usize) -> (Elements<'_>, Option<Ahead>) {
        let nest = &self.compiled.nest;
        let width = self.compiled.program.output_dtype(0).itemsize();
        let as_wide = |source: &&Source| source.access != Access::Single && source.buffer.dtype().itemsize() == width;
        let long = nest.size().saturating_mul(width) >= LONG;
        let input = if long { nest.inputs.iter().filter(as_wide).find_map(|s| s.direct(&nest.dims, start, len)) } else { None };
        (self.read(start, len), input.map(Elements::ahead_of_next))
    }

    /// The factors of points `start..start + len`, any number of them, where they lie: of a program that multiplies two floats, or squares
    /// one, from inputs that are contiguous there. And where to look ahead, as [`Evaluator::in_place`] says.
    pub fn factors(&self, start: usize, len: usize) -> Option<([Elements<'a>; 2], Option<Ahead>)> {
        let Compiled { nest, factors, .. } = self.compiled;
        let [a, b] = (*factors)?;
        let run = |k: usize| nest.inputs.get(k)?.direct(&nest.dims, start, len);
        let (a, b) = (run(a)?, run(b)?);
        Some(([a, b], self.ahead(a)))
    }

    /// Points `start..start + len`, any number of them, where they lie: of a program that hands through an input which is
    /// contiguous there. And where the loop over them should look ahead, as [`Evaluator::read_with_ahead`] says.
    pub fn in_place(&self, start: usize, len: usize) -> Option<(Elements<'a>, Option<Ahead>)> {
        let Compiled { program, nest, .. } = self.compiled;
        let run = if program.is_identity() { nest.inputs.first()?.direct(&nest.dims, start, len)? } else { return None };
        Some((run, self.ahead(run)))
    }

    /// Where a loop over a run of an input should look ahead, if that is worth it.
    fn ahead(&self, run: Elements) -> Option<Ahead> {
        let long = self.compiled.nest.size().saturating_mul(run.dtype().itemsize()) >= LONG;
        if long { run.ahead() } else { None }
    }

    /// Finds the inputs of a tile, or gathers them.
    fn gather_inputs(&mut self, start: usize, len: usize) {
        let nest = &self.compiled.nest;
        for (k, source) in nest.inputs.iter().enumerate() {
            self.direct[k] = source.direct(&nest.dims, start, len);
            if self.direct[k].is_none() && source.access == Access::Strided {
                self.gather(k, start, len);
            }
        }
    }
}

/// A run of each input: where it lies, or where it was gathered.
fn inputs<'v>(
    compiled: &'v Compiled,
    direct: &[Option<Elements<'v>>],
    gathered: &'v [Scratch],
    bands: &[Band],
    len: usize,
) -> SmallVec<[Elements<'v>; 4]> {
    let run = |(k, source): (usize, &Source)| match (direct[k], source.access) {
        (Some(run), _) => run,
        (None, Access::Strided) => gathered[k].elements(source.buffer.dtype(), bands[k].at + len).slice(bands[k].at, len),
        (None, _) => Elements::of::<u8>(&[]),
    };
    compiled.nest.inputs.iter().enumerate().map(run).collect()
}

impl Drop for Evaluator<'_, '_> {
    fn drop(&mut self) {
        let blocks = std::mem::take(&mut self.blocks);
        let gathered = self.gathered.drain(..).filter(|block| !block.is_empty());
        // A thread that is ending keeps nothing.
        let _ = SPARE_BLOCKS.try_with(|spare| spare.replace(blocks));
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            let room = SPARES.saturating_sub(spare.len());
            spare.extend(gathered.take(room));
        });
    }
}

/// Elements from row to row of a band: not a power of two, so that rows do not share cache sets.
fn pitch(tile: usize) -> usize {
    tile + SIDE
}
