//! Evaluation of a fused program over runs of a loop nest, a tile at a time, in scratch memory that stays in L1.
//!
//! Inputs that lie contiguously are read in place, others are gathered into scratch first; results go straight to the output
//! where there is one. Map, Reduce, Scan, Select and Histogram all compute their values here.

use std::cell::RefCell;

use cuprum_core::array::Array;
use cuprum_core::body::{Body, ParameterKind, Type};
use cuprum_core::layout::{Dims, Strides};
use cuprum_core::op::{Cost, MAX_ARITY, Op};
use cuprum_core::plan::elementwise::across;
use cuprum_core::{DType, Element, Program, Reason, Result, Scalar, Step, StepKind, StoredArray, with_dtype};
use smallvec::SmallVec;

use crate::cache::{Ahead, NonTemporal};
use crate::elementwise::half::{is_half, through_f32};
use crate::elementwise::loops::{Kernel, Selected};
use crate::elementwise::{cast, table};
use crate::own::Native;
use crate::raw::{Elements, ElementsMut, Scratch, copy_strided, element};
use crate::transpose::{Rows, SIDE, transpose};

/// Longest tile. Shorter ones are powers of two as well, so that tiles end where the fixed blocks of reductions end.
pub(crate) const MAX_TILE: usize = 2048;
const MIN_TILE: usize = 512;
/// Bytes of scratch that a tile's values may take: most of L1, leaving room for the inputs that stream through.
const SCRATCH_BYTES: usize = 24 << 10;

/// Bytes of values from which looking ahead in the inputs is worth it: less is in the second-level cache, or read at once.
const LONG: usize = 256 << 10;

/// Where inputs lie under a loop nest, outermost axis first. Points are numbered in loop order.
pub(crate) struct Nest<'a> {
    dims: Dims,
    inputs: SmallVec<[Source<'a>; 4]>,
}

/// Rows that a band holds: neighbouring rows of an input that is contiguous across them are gathered together.
pub(crate) const BAND: usize = 2 * SIDE;

/// One input under the nest.
struct Source<'a> {
    buffer: Elements<'a>,
    offset: isize,
    strides: Strides,
    access: Access,
}

/// How an input is walked.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    /// Point i lies at `offset + i`.
    Flat,
    /// Every point is the one element at `offset`.
    Single,
    /// Anything else.
    Strided,
}

impl<'a> Nest<'a> {
    /// The nest of `dims` over arrays with the given strides, an entry per array.
    pub fn new(dims: &[usize], arrays: &'a [StoredArray], strides: impl Fn(usize) -> Strides) -> Result<Nest<'a>> {
        let inputs: Result<_> = arrays
            .iter()
            .enumerate()
            .map(|(k, array)| {
                let strides = strides(k);
                let mut step = 1;
                let mut flat = true;
                for (&n, &s) in dims.iter().zip(&strides).rev() {
                    flat &= n == 1 || s == step;
                    step *= n as isize;
                }
                let single = dims.iter().zip(&strides).all(|(&n, &s)| n == 1 || s == 0);
                let access = match () {
                    _ if single => Access::Single,
                    _ if flat => Access::Flat,
                    _ => Access::Strided,
                };
                Ok(Source { buffer: Elements::buffer(array)?, offset: array.layout().offset() as isize, strides, access })
            })
            .collect();
        Ok(Nest { dims: dims.into(), inputs: inputs? })
    }

    /// Extent of the innermost axis.
    pub fn inner(&self) -> usize {
        self.dims.last().copied().unwrap_or(1)
    }

    /// Number of points.
    pub fn size(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether some input is walked in long strides, so that neighbouring rows should be computed together.
    pub fn is_scattered(&self) -> bool {
        self.inputs.iter().any(|s| s.access == Access::Strided && s.strides.last().is_some_and(|s| s.unsigned_abs() > 1))
    }
}

impl<'a> Source<'a> {
    /// Whether it is contiguous from row to row, and in long steps along them: rows are gathered a band at a time.
    fn is_turned(&self) -> bool {
        let rows = across(&self.strides).filter(|axis| axis + 2 == self.strides.len());
        self.access == Access::Strided && rows.is_some_and(|axis| self.strides[axis] == 1)
    }

    /// Copies a band: `rows` rows from point `start` on, `len` points of each, `pitch` apart in `out`. `false` if it is not one.
    fn gather_band(&self, dims: &[usize], start: usize, rows: usize, len: usize, pitch: usize, out: ElementsMut) -> bool {
        let (at, _) = self.locate(dims, start);
        let along = self.strides.last().copied().unwrap_or(0);
        let (from, to) = (Rows { start: at as usize, stride: along }, Rows { start: 0, stride: pitch as isize });
        with_dtype!(self.buffer.dtype(), T => transpose(self.buffer.typed::<T>(), from, out.typed::<T>(), to, rows, len))
    }

    /// The run `start..start + len` where it lies, if it is contiguous there.
    fn direct(&self, dims: &[usize], start: usize, len: usize) -> Option<Elements<'a>> {
        match self.access {
            Access::Flat => Some(self.buffer.slice((self.offset + start as isize) as usize, len)),
            Access::Strided if self.strides.last() == Some(&1) => {
                let (at, left) = self.locate(dims, start);
                (len <= left).then(|| self.buffer.slice(at as usize, len))
            }
            _ => None,
        }
    }

    /// Place of a point in the buffer, and how many points its row still has.
    fn locate(&self, dims: &[usize], point: usize) -> (isize, usize) {
        let (mut at, mut rest, mut left) = (self.offset, point, 1);
        for (axis, (&n, &s)) in dims.iter().zip(&self.strides).enumerate().rev() {
            let i = rest % n;
            rest /= n;
            at += i as isize * s;
            if axis + 1 == dims.len() {
                left = n - i;
            }
        }
        (at, left)
    }

    /// Copies the run that begins at `start` to `out`.
    fn gather(&self, dims: &[usize], start: usize, out: ElementsMut) {
        with_dtype!(self.buffer.dtype(), T => self.gather_typed::<T>(dims, start, out.typed()))
    }

    fn gather_typed<T: Element>(&self, dims: &[usize], start: usize, out: &mut [T]) {
        let source = self.buffer.typed::<T>();
        let Some((&inner, outer)) = dims.split_last() else {
            out.fill(source[self.offset as usize]);
            return;
        };
        let (&stride, outer_strides) = self.strides.split_last().unwrap_or((&0, &[]));
        // Index of the first row, counted up like an odometer.
        let mut index: Dims = SmallVec::from_elem(0, outer.len());
        let mut rest = start / inner;
        for (i, &n) in index.iter_mut().zip(outer).rev() {
            *i = rest % n;
            rest /= n;
        }
        let mut row = self.offset + index.iter().zip(outer_strides).map(|(&i, &s)| i as isize * s).sum::<isize>();
        let mut column = start % inner;
        let mut out = out;
        while !out.is_empty() {
            let len = (inner - column).min(out.len());
            let (head, tail) = out.split_at_mut(len);
            copy_strided(source, row + column as isize * stride, stride, head);
            (out, column) = (tail, 0);
            for axis in (0..outer.len()).rev() {
                index[axis] += 1;
                row += outer_strides[axis];
                if index[axis] < outer[axis] {
                    break;
                }
                row -= outer_strides[axis] * outer[axis] as isize;
                index[axis] = 0;
            }
        }
    }
}

/// Where the value of a step is during a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// Input number n, in place or gathered.
    Input(u16),
    /// A scratch block that holds it for all tiles: a parameter, or an input of one element.
    Constant(u16),
    /// A scratch block, reused once nobody reads it any more.
    Scratch(u16),
    /// An output.
    Output(u16),
}

/// A step that computes.
struct Instruction {
    kernel: Kernel,
    arity: usize,
    args: [u16; MAX_ARITY],
    /// Arguments that a body sees whole: which, the input, how many elements.
    whole: SmallVec<[(usize, u16, usize); 1]>,
    to: u16,
    /// Whether an argument or the result is widened to float32 around the kernel.
    half: bool,
}

/// What becomes of a program's results.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Results {
    /// The caller reads them, tile by tile.
    Read,
    /// They are written to outputs.
    Written,
    /// The same, past the caches: each tile is computed in scratch first.
    Streamed,
}

/// A program made ready for evaluation: kernels chosen, every value given a place.
pub(crate) struct Compiled<'a> {
    program: &'a Program,
    nest: Nest<'a>,
    places: SmallVec<[Place; 20]>,
    instructions: SmallVec<[Instruction; 12]>,
    /// Outputs that no instruction writes, and the steps that they are copies of: an input, a parameter, another output, or,
    /// where outputs pass by the caches, anything.
    copies: SmallVec<[(u16, u16); 2]>,
    /// Whether they do.
    streamed: bool,
    blocks: usize,
    tile: usize,
}

impl<'a> Compiled<'a> {
    /// Prepares `program` over `nest`. `Err` says what is not there.
    pub fn new(program: &'a Program, nest: Nest<'a>, results: Results) -> std::result::Result<Compiled<'a>, Reason> {
        let steps = &program.steps;
        let mut last_use: SmallVec<[u16; 20]> = (0..steps.len() as u16).collect();
        for (i, step) in steps.iter().enumerate() {
            step.args().iter().for_each(|&a| last_use[a as usize] = i as u16);
        }
        program.outputs.iter().for_each(|&o| last_use[o as usize] = u16::MAX);

        let mut compiled = Compiled {
            program,
            nest,
            places: SmallVec::new(),
            instructions: SmallVec::new(),
            copies: SmallVec::new(),
            streamed: results == Results::Streamed,
            blocks: 0,
            tile: MAX_TILE,
        };
        let mut free: SmallVec<[u16; 8]> = SmallVec::new();
        compiled.places.reserve(steps.len());
        compiled.instructions.reserve(steps.len());
        for (i, step) in steps.iter().enumerate() {
            let output = program.outputs.iter().position(|&o| results == Results::Written && o as usize == i);
            let place = match step.kind {
                StepKind::Input(k) if compiled.nest.inputs[k as usize].access == Access::Single => Place::Constant(compiled.block()),
                StepKind::Param(_) => Place::Constant(compiled.block()),
                // A block of its own, in case that it has to be gathered: blocks of inputs come first, by number.
                StepKind::Input(k) => Place::Input(k),
                _ => match output {
                    Some(o) => Place::Output(o as u16),
                    None => Place::Scratch(free.pop().unwrap_or_else(|| compiled.block())),
                },
            };
            compiled.places.push(place);
            if let StepKind::Cast | StepKind::Apply(_) | StepKind::Fold(_) = step.kind {
                compiled.instructions.push(instruction(program, i)?);
                for &a in step.args() {
                    if let (Place::Scratch(block), true) = (compiled.places[a as usize], last_use[a as usize] as usize == i)
                        && !free.contains(&block)
                    {
                        free.push(block);
                    }
                }
            }
        }
        if results != Results::Read {
            let unwritten = |&(o, &step): &(usize, &u16)| compiled.places[step as usize] != Place::Output(o as u16);
            compiled.copies = program.outputs.iter().enumerate().filter(unwritten).map(|(o, &step)| (o as u16, step)).collect();
        }
        let widest = steps.iter().map(|s| s.dtype.itemsize()).max().unwrap_or(1);
        let strided = compiled.nest.inputs.iter().filter(|s| s.access == Access::Strided).count();
        let fits = SCRATCH_BYTES / (widest * (compiled.blocks + strided).max(1));
        compiled.tile = (fits.clamp(MIN_TILE, MAX_TILE) + 1).next_power_of_two() / 2;
        Ok(compiled)
    }

    fn block(&mut self) -> u16 {
        self.blocks += 1;
        self.blocks as u16 - 1
    }

    /// Points evaluated at a time: a power of two.
    pub fn tile(&self) -> usize {
        self.tile
    }

    /// The nest.
    pub fn nest(&self) -> &Nest<'a> {
        &self.nest
    }

    /// Cheap operations per point: one for the memory traffic, and those of the steps.
    pub fn cost(&self) -> usize {
        cost(self.program)
    }
}

/// Cheap operations per point of a program. Functions of float32 take a quarter of the time that those of float64 take: twice as many fit a
/// register, and their polynomials are half as long.
pub(crate) fn cost(program: &Program) -> usize {
    let step = |step: &Step| match step.kind {
        StepKind::Apply(op) => match op.0.cost {
            Cost::Cheap => 1,
            Cost::Medium => 4,
            // A loop, or several functions.
            Cost::Dear if op.0.body.is_some() => 64,
            Cost::Dear if program.steps[step.args[0] as usize].dtype == DType::F32 => 4,
            Cost::Dear => 16,
        },
        _ => 0,
    };
    1 + program.steps.iter().map(step).sum::<usize>()
}

/// The kernel of step `i`, checked against the dtypes of its arguments and its result.
fn instruction(program: &Program, i: usize) -> std::result::Result<Instruction, Reason> {
    let step = program.steps[i];
    if let StepKind::Apply(op) = step.kind
        && let Some(body) = op.0.body
    {
        return body_instruction(program, i, op, body);
    }
    let dtype = |a: usize| program.steps[step.args[a] as usize].dtype;
    let (selected, arity): (Option<Selected>, usize) = match step.kind {
        StepKind::Apply(op) => (table::kernel(op, dtype(if op.arity() == 3 { 1 } else { 0 })), op.arity()),
        StepKind::Fold(_) => (None, 1),
        _ => (cast::select(dtype(0), step.dtype), 1),
    };
    let refuse = || match step.kind {
        StepKind::Apply(op) | StepKind::Fold(op) => Reason::with(|| format!("{} has no kernel for {}", op.name(), dtype(0))),
        _ => Reason::with(|| format!("no conversion from {} to {}", dtype(0), step.dtype)),
    };
    let selected = selected.ok_or_else(refuse)?;
    let fits = |kernel: DType, value: DType| kernel == value || (kernel == DType::F32 && is_half(value));
    let fit = arity <= 3 && (0..arity).all(|a| fits(selected.args[a], dtype(a))) && fits(selected.result, step.dtype);
    if !fit {
        return Err(refuse());
    }
    let half = (0..arity).any(|a| selected.args[a] != dtype(a)) || selected.result != step.dtype;
    Ok(Instruction { kernel: selected.kernel, arity, args: step.args, whole: SmallVec::new(), to: i as u16, half })
}

/// As [`instruction`], for an operation with a body of its own.
fn body_instruction(program: &Program, i: usize, op: Op, body: &Body) -> std::result::Result<Instruction, Reason> {
    let step = program.steps[i];
    let refuse = || Reason::with(|| format!("{} has no kernel for {}", op.name(), step.dtype));
    let dtype = |n: usize| step.args().get(n).map_or(step.dtype, |&a| program.steps[a as usize].dtype);
    let generic = body.generic(dtype, step.dtype);
    let of = |of: Type| if let Type::Fixed(dtype) = of { dtype } else { generic };
    let arity = usize::from(Body::arity(body.parameters));
    if step.args().len() != arity || step.dtype != of(body.result) || body.places().any(|(at, p)| dtype(at) != of(p.of)) {
        return Err(refuse());
    }
    let mut whole = SmallVec::new();
    for (at, _) in body.places().filter(|(_, p)| p.kind == ParameterKind::Whole) {
        let [elements, len] = [at, at + 1].map(|n| program.steps[step.args[n] as usize]);
        let (StepKind::Input(input), StepKind::Param(n), DType::I64) = (elements.kind, len.kind, len.dtype) else {
            return Err(refuse());
        };
        let len = program.params.get(n as usize).and_then(|len| len.as_int()).and_then(|len| usize::try_from(len).ok());
        whole.push((at, input, len.unwrap_or(0)));
    }
    let native = body.native.downcast_ref::<Native>().ok_or_else(refuse)?;
    let kernel = (native.0)(generic).ok_or_else(refuse)?;
    Ok(Instruction { kernel, arity, args: step.args, whole, to: i as u16, half: false })
}

/// A program of one operation on contiguous inputs, no longer than a tile: its kernel is called on them, nothing is set up.
pub(crate) struct AtOnce<'a> {
    instruction: Instruction,
    inputs: &'a [StoredArray],
}

impl<'a> AtOnce<'a> {
    /// The program as one, if it is.
    pub fn of(program: &Program, inputs: &'a [StoredArray], len: usize) -> Option<AtOnce<'a>> {
        let (last, loads) = program.steps.split_last()?;
        let single = len <= MAX_TILE
            && program.outputs[..] == [loads.len() as u16]
            && matches!(last.kind, StepKind::Apply(_) | StepKind::Cast)
            && loads.iter().enumerate().all(|(k, s)| s.kind == StepKind::Input(k as u16))
            && inputs.iter().all(|a| a.layout().is_c_contiguous() && a.layout().size() == len);
        let instruction = single.then(|| instruction(program, loads.len()).ok()).flatten()?;
        (!instruction.half && instruction.whole.is_empty()).then_some(AtOnce { instruction, inputs })
    }

    /// Computes all elements.
    pub fn run(&self, out: ElementsMut) -> Result<()> {
        let mut args = [Elements::of::<u8>(&[]); MAX_ARITY];
        for (arg, &k) in args.iter_mut().zip(&self.instruction.args).take(self.instruction.arity) {
            let input = &self.inputs[k as usize];
            *arg = Elements::buffer(input)?.slice(input.layout().offset(), out.len());
        }
        (self.instruction.kernel)(&args[..self.instruction.arity], out);
        Ok(())
    }
}

/// Scratch blocks that a thread keeps.
const SPARES: usize = 24;

thread_local! {
    /// Scratch blocks of finished evaluators, for the next one of this thread.
    static SPARE: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

/// One thread's evaluation of a compiled program.
pub(crate) struct Evaluator<'c, 'a> {
    compiled: &'c Compiled<'a>,
    blocks: SmallVec<[Scratch; 8]>,
    /// For gathered inputs, by input number.
    gathered: SmallVec<[Scratch; 4]>,
    /// This tile's inputs that are read in place.
    direct: SmallVec<[Option<Elements<'a>>; 4]>,
    /// The bands of inputs that are gathered so; empty unless the caller goes through rows in bands.
    bands: SmallVec<[Band; 4]>,
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
        let spare = || SPARE.with(|s| s.borrow_mut().pop()).unwrap_or_default();
        let inputs = &compiled.nest.inputs;
        let mut evaluator = Evaluator {
            compiled,
            blocks: (0..compiled.blocks).map(|_| spare()).collect(),
            gathered: inputs.iter().map(|s| if s.access == Access::Strided { spare() } else { Scratch::default() }).collect(),
            direct: SmallVec::from_elem(None, inputs.len()),
            bands: SmallVec::from_elem(Band::default(), inputs.len()),
            stores: NonTemporal::default(),
        };
        let len = compiled.tile.min(compiled.nest.size());
        for (step, place) in compiled.program.steps.iter().zip(&compiled.places) {
            match *place {
                Place::Constant(block) => {
                    let block = &mut evaluator.blocks[block as usize];
                    block.reserve(len * step.dtype.itemsize());
                    let out = block.elements_mut(step.dtype, len);
                    match step.kind {
                        StepKind::Input(k) => inputs[k as usize].gather(&[], 0, out),
                        StepKind::Param(k) => splat(compiled.program.params.get(k as usize).copied().unwrap_or(Scalar::Int(0)), out),
                        _ => {}
                    }
                }
                Place::Scratch(block) => evaluator.blocks[block as usize].reserve(len * step.dtype.itemsize()),
                Place::Input(k) if inputs[k as usize].access == Access::Strided => {
                    evaluator.gathered[k as usize].reserve(len * step.dtype.itemsize())
                }
                _ => {}
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
            evaluator.gathered[k].reserve(BAND * pitch(compiled.tile) * source.buffer.dtype().itemsize());
        }
        evaluator
    }

    /// Gathers an input's tile: alone, or as a row of its band.
    fn gather(&mut self, k: usize, start: usize, len: usize) {
        let (source, dims) = (&self.compiled.nest.inputs[k], &self.compiled.nest.dims);
        let (block, band) = (&mut self.gathered[k], &mut self.bands[k]);
        let inner = self.compiled.nest.inner();
        let (row, column) = (start / inner, start % inner);
        let (pitch, dtype) = (pitch(self.compiled.tile), source.buffer.dtype());
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
        self.compute(start, len, outputs);
        for &(output, step) in &self.compiled.copies {
            let mut to = std::mem::take(&mut outputs[output as usize]);
            let value = self.value(step, len, outputs);
            if self.compiled.streamed {
                to.stream_from(value, &self.stores)
            } else {
                to.copy_from(value)
            }
            outputs[output as usize] = to;
        }
    }

    /// Computes points `start..start + len` (at most a tile) of a program with one result.
    pub fn read(&mut self, start: usize, len: usize) -> Elements<'_> {
        self.compute(start, len, &mut []);
        self.value(self.compiled.program.outputs[0], len, &[])
    }

    /// As [`Evaluator::read`], and the input memory in which the loop over these values should look ahead, where that is worth it.
    pub fn read_with_ahead(&mut self, start: usize, len: usize) -> (Elements<'_>, Option<Ahead>) {
        self.compute(start, len, &mut []);
        let values = self.value(self.compiled.program.outputs[0], len, &[]);
        let width = values.dtype().itemsize();
        let as_wide = |input: &&Elements| input.dtype().itemsize() == width;
        let long = self.compiled.nest.size().saturating_mul(width) >= LONG;
        let input = if long { self.direct.iter().flatten().find(as_wide) } else { None };
        (values, input.map(|input| input.ahead()))
    }

    /// Points `start..start + len`, any number of them, where they lie: of a program that hands through an input which is
    /// contiguous there.
    pub fn in_place(&self, start: usize, len: usize) -> Option<Elements<'a>> {
        let Compiled { program, nest, .. } = self.compiled;
        if program.is_identity() { nest.inputs.first()?.direct(&nest.dims, start, len) } else { None }
    }

    fn compute(&mut self, start: usize, len: usize, outputs: &mut [ElementsMut]) {
        let compiled = self.compiled;
        for (k, source) in compiled.nest.inputs.iter().enumerate() {
            if source.access == Access::Single {
                continue;
            }
            self.direct[k] = source.direct(&compiled.nest.dims, start, len);
            if self.direct[k].is_none() {
                self.gather(k, start, len);
            }
        }
        for instruction in &compiled.instructions {
            // The target is taken out of its place, so that the others can be read meanwhile.
            let dtype = compiled.program.steps[instruction.to as usize].dtype;
            match compiled.places[instruction.to as usize] {
                Place::Output(o) => {
                    let mut to = std::mem::take(&mut outputs[o as usize]);
                    self.apply(instruction, len, to.reborrow(), outputs);
                    outputs[o as usize] = to;
                }
                Place::Scratch(block) => {
                    let mut to = std::mem::take(&mut self.blocks[block as usize]);
                    self.apply(instruction, len, to.elements_mut(dtype, len), outputs);
                    self.blocks[block as usize] = to;
                }
                Place::Input(_) | Place::Constant(_) => {}
            }
        }
    }

    fn apply(&self, instruction: &Instruction, len: usize, to: ElementsMut, outputs: &[ElementsMut]) {
        let first = self.value(instruction.args[0], len, outputs);
        let mut args = [first; MAX_ARITY];
        for (arg, &step) in args.iter_mut().zip(&instruction.args).take(instruction.arity).skip(1) {
            *arg = self.value(step, len, outputs);
        }
        for &(arg, input, len) in &instruction.whole {
            let source = &self.compiled.nest.inputs[input as usize];
            let (at, all) = (source.offset as usize, source.buffer.len());
            args[arg] = source.buffer.slice(at.min(all), len.min(all.saturating_sub(at)));
        }
        if instruction.half {
            through_f32(instruction.kernel, &args[..instruction.arity], to);
        } else {
            (instruction.kernel)(&args[..instruction.arity], to);
        }
    }

    fn value<'v>(&'v self, step: u16, len: usize, outputs: &'v [ElementsMut]) -> Elements<'v> {
        let dtype = self.compiled.program.steps[step as usize].dtype;
        match self.compiled.places[step as usize] {
            Place::Input(k) => self.direct[k as usize].unwrap_or_else(|| {
                let at = self.bands[k as usize].at;
                self.gathered[k as usize].elements(dtype, at + len).slice(at, len)
            }),
            Place::Constant(block) | Place::Scratch(block) => self.blocks[block as usize].elements(dtype, len),
            Place::Output(o) => outputs[o as usize].as_elements(),
        }
    }
}

impl Drop for Evaluator<'_, '_> {
    fn drop(&mut self) {
        let blocks = self.blocks.drain(..).chain(self.gathered.drain(..)).filter(|block| !block.is_empty());
        // A thread that is ending keeps nothing.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            let room = SPARES.saturating_sub(spare.len());
            spare.extend(blocks.take(room));
        });
    }
}

/// Elements from row to row of a band: not a power of two, so that rows do not share cache sets.
fn pitch(tile: usize) -> usize {
    tile + SIDE
}

/// Fills a run with a scalar, converted as `astype` would.
pub(crate) fn splat(value: Scalar, out: ElementsMut) {
    with_dtype!(out.dtype(), T => out.typed::<T>().fill(element(value)))
}
