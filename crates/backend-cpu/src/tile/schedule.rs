//! What is worked out of a program before it runs: a kernel for each step, a place for each value. It depends on the program's
//! structure and on how inputs are walked, never on sizes or scalars, and a thread keeps the last ones: a small call finds its own again.

use std::cell::RefCell;
use std::sync::Arc;

use cuprum_core::body::{Body, ParameterKind, Type};
use cuprum_core::op::{Cost, MAX_ARITY, Op};
use cuprum_core::{DType, Program, Reason, Scalar, Step, StepKind};
use smallvec::SmallVec;

use super::nest::{Access, Source};
use super::strip::{self, Link};
use super::{MAX_TILE, Results};
use crate::elementwise::half::{is_half, through_f32};
use crate::elementwise::loops::{Kernel, Selected, splat};
use crate::elementwise::{cast, table};
use crate::own::Native;
use crate::raw::{Blocks, Elements, ElementsMut, Others};
use crate::reduce::{FoldRows, fold_rows};

const MIN_TILE: usize = 512;
/// Bytes of scratch that a tile's values may take: most of L1, leaving room for the inputs that stream through.
const SCRATCH_BYTES: usize = 24 << 10;
/// Elements that stand for any number of equal ones, where a kernel takes an argument in turns: few to fill, and enough for its loop to
/// run at full speed.
pub(super) const TURN: usize = 256;

/// Where the value of a step is during a tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// Input number n, in place or gathered.
    Input(u16),
    /// A block that holds it for all tiles: a parameter, or an input of one element. And how many elements of it, as those who read it need.
    Constant(u16, Share),
    /// A block, reused once nobody reads it any more.
    Scratch(u16),
    /// An output.
    Output(u16),
    /// Registers: only the next operation of its run reads it.
    Register,
}

/// How many elements an instruction needs of an argument whose elements are all equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Share {
    /// One.
    One,
    /// [`TURN`]: its kernel takes them in turns.
    Turn,
    /// All.
    All,
}

impl Share {
    /// Elements of a tile of `len`.
    #[inline]
    fn of(self, len: usize) -> usize {
        match self {
            Share::One => len.min(1),
            Share::Turn => len.min(TURN),
            Share::All => len,
        }
    }
}

/// The value of a step.
#[derive(Clone, Copy)]
pub(super) struct Value {
    pub place: Place,
    pub dtype: DType,
}

/// A step that computes.
pub(super) struct Instruction {
    kernel: Kernel,
    arity: usize,
    args: [u16; MAX_ARITY],
    /// Arguments that a body sees whole: which, the input, the parameter that says how many elements.
    whole: SmallVec<[(usize, u16, u16); 1]>,
    to: u16,
    /// Whether an argument or the result is widened to float32 around the kernel.
    half: bool,
    /// Whether the kernel takes shorter arguments in turns.
    in_turns: bool,
    /// The kernel of a reduction along rows, in place of the other.
    fold: Option<FoldRows>,
    /// The run of operations that ends here, if there are several, in place of the other kernel and the arguments.
    run: Option<Run>,
}

impl Instruction {
    /// The steps that it reads.
    fn reads(&self) -> &[u16] {
        match &self.run {
            Some(run) => &run.args,
            None => &self.args[..self.arity],
        }
    }

    /// How many elements it needs of arguments whose elements are all equal.
    fn share(&self) -> Share {
        match (&self.run, self.in_turns) {
            (Some(_), _) => Share::One,
            (None, true) => Share::Turn,
            (None, false) => Share::All,
        }
    }
}

/// Operations that one kernel computes one after the other (`strip`).
struct Run {
    kernel: strip::Kernel,
    links: SmallVec<[Link; strip::LONGEST]>,
    /// The value that it begins with, and the other argument of each link.
    args: SmallVec<[u16; strip::LONGEST + 1]>,
}

/// A program made ready: kernels chosen, every value given a place.
pub(super) struct Schedule {
    steps: Box<[Step]>,
    outputs: Box<[u16]>,
    accesses: Box<[Access]>,
    results: Results,
    values: Box<[Value]>,
    instructions: Box<[Instruction]>,
    /// Outputs that no instruction writes, and the steps that they are copies of: an input, a parameter, another output, or,
    /// where outputs pass by the caches, anything.
    copies: SmallVec<[(u16, u16); 2]>,
    /// Blocks of scratch.
    blocks: usize,
    /// Bytes of the widest element among its values.
    widest: usize,
    /// Points evaluated at a time: a power of two.
    pub tile: usize,
    /// Cheap operations per point: one for the memory traffic, and those of the steps.
    pub cost: usize,
}

/// Schedules that a thread keeps; of two with one place the later stays.
const KEPT: usize = 64;

thread_local! {
    static SCHEDULES: RefCell<Vec<Option<Arc<Schedule>>>> = const { RefCell::new(Vec::new()) };
}

impl Schedule {
    /// The schedule of a program over inputs that are walked so. `Err` says what is not there.
    pub fn of(program: &Program, accesses: &[Access], results: Results) -> Result<Arc<Schedule>, Reason> {
        let place = program.fingerprint() as usize % KEPT;
        // A thread that is ending keeps nothing.
        let kept = SCHEDULES.try_with(|all| {
            let all = all.try_borrow().ok()?;
            all.get(place)?.as_ref().filter(|kept| kept.is_for(program, accesses, results)).cloned()
        });
        if let Ok(Some(kept)) = kept {
            return Ok(kept);
        }
        let made = Arc::new(Schedule::new(program, accesses, results)?);
        let _ = SCHEDULES.try_with(|all| {
            if let Ok(mut all) = all.try_borrow_mut() {
                all.resize_with(KEPT, || None);
                all[place] = Some(made.clone());
            }
        });
        Ok(made)
    }

    fn is_for(&self, program: &Program, accesses: &[Access], results: Results) -> bool {
        self.results == results && *self.accesses == *accesses && *self.outputs == *program.outputs && *self.steps == *program.steps
    }

    fn new(program: &Program, accesses: &[Access], results: Results) -> Result<Schedule, Reason> {
        let steps = &program.steps;
        let mut instructions = Vec::with_capacity(steps.len());
        for (i, step) in steps.iter().enumerate() {
            if let StepKind::Cast | StepKind::Apply(_) | StepKind::Fold(_) = step.kind {
                instructions.push(instruction(program, i)?);
            }
        }
        let instructions = in_runs(program, instructions);
        let mut last_use: SmallVec<[u16; 20]> = (0..steps.len() as u16).collect();
        let mut shares: SmallVec<[Share; 20]> = SmallVec::from_elem(Share::One, steps.len());
        for instruction in &instructions {
            for &arg in instruction.reads() {
                last_use[arg as usize] = instruction.to;
                shares[arg as usize] = shares[arg as usize].max(instruction.share());
            }
        }
        for &output in &program.outputs {
            last_use[output as usize] = u16::MAX;
            shares[output as usize] = Share::All;
        }

        let mut blocks = 0;
        let mut block = || (blocks, blocks += 1).0;
        let mut values = Vec::<Value>::with_capacity(steps.len());
        let mut free: SmallVec<[u16; 8]> = SmallVec::new();
        let mut in_order = instructions.iter().peekable();
        for (i, step) in steps.iter().enumerate() {
            let instruction = in_order.next_if(|instruction| instruction.to as usize == i);
            let output = program.outputs.iter().position(|&o| results == Results::Written && o as usize == i);
            let is_constant = match step.kind {
                StepKind::Input(k) => accesses[k as usize] == Access::Single,
                kind => matches!(kind, StepKind::Param(_)),
            };
            let place = match (step.kind, output) {
                _ if is_constant => Place::Constant(block(), shares[i]),
                (StepKind::Input(k), _) => Place::Input(k),
                _ if instruction.is_none() => Place::Register,
                (_, Some(output)) => Place::Output(output as u16),
                _ => Place::Scratch(free.pop().unwrap_or_else(&mut block)),
            };
            values.push(Value { place, dtype: step.dtype });
            for &arg in instruction.map_or(&[][..], Instruction::reads) {
                if let (Place::Scratch(block), true) = (values[arg as usize].place, last_use[arg as usize] as usize == i)
                    && !free.contains(&block)
                {
                    free.push(block);
                }
            }
        }
        let unwritten = |&(o, &step): &(usize, &u16)| values[step as usize].place != Place::Output(o as u16);
        let copies = match results {
            Results::Read => SmallVec::new(),
            _ => program.outputs.iter().enumerate().filter(unwritten).map(|(o, &step)| (o as u16, step)).collect(),
        };
        let widest = steps.iter().map(|s| s.dtype.itemsize()).max().unwrap_or(1);
        let repeated = values.iter().filter(|v| matches!(v.place, Place::Constant(_, Share::One | Share::Turn))).count();
        let gathered = accesses.iter().filter(|a| **a == Access::Strided).count();
        let room = SCRATCH_BYTES.saturating_sub(repeated * TURN * widest);
        let fits = room / (widest * (blocks as usize - repeated + gathered).max(1));
        Ok(Schedule {
            steps: steps[..].into(),
            outputs: program.outputs[..].into(),
            accesses: accesses.into(),
            results,
            values: values.into(),
            instructions: instructions.into(),
            copies,
            blocks: blocks as usize,
            widest,
            tile: (fits.clamp(MIN_TILE, MAX_TILE) + 1).next_power_of_two() / 2,
            cost: cost(program),
        })
    }

    /// Whether some body sees an argument whole.
    pub fn sees_whole(&self) -> bool {
        self.instructions.iter().any(|i| !i.whole.is_empty())
    }

    /// Fills the blocks of what is the same at all points, for tiles of up to `len` of them. `single` gives an input of one element.
    pub fn fill_constants(&self, program: &Program, blocks: &mut Blocks, len: usize, single: impl Fn(usize, ElementsMut)) {
        blocks.cut(self.blocks, len * self.widest);
        for (step, value) in self.steps.iter().zip(&self.values) {
            let (block, len) = match value.place {
                Place::Constant(block, share) => (block, share.of(len)),
                _ => continue,
            };
            let out = blocks.elements_mut(block.into(), value.dtype, len);
            match step.kind {
                StepKind::Param(n) => splat(param(program, n), out),
                StepKind::Input(k) => single(k.into(), out),
                _ => {}
            }
        }
    }

    /// Computes the `len` points that the inputs hold. Of `sources` bodies see arguments whole.
    pub fn run(&self, program: &Program, sources: &[Source], tile: &mut Tile, blocks: &mut Blocks) {
        for instruction in &self.instructions {
            // The target is taken out of its place, so that the others can be read meanwhile.
            let Value { place, dtype } = self.values[instruction.to as usize];
            match place {
                Place::Output(o) => {
                    let mut to = std::mem::take(&mut tile.outputs[o as usize]);
                    self.apply(instruction, (program, sources), tile, blocks.all(), to.reborrow());
                    tile.outputs[o as usize] = to;
                }
                Place::Scratch(block) => {
                    let (to, others) = blocks.beside(block.into(), dtype, tile.len);
                    self.apply(instruction, (program, sources), tile, others, to);
                }
                Place::Input(_) | Place::Constant(..) | Place::Register => {}
            }
        }
    }

    fn apply(&self, instruction: &Instruction, (program, sources): (&Program, &[Source]), tile: &Tile, blocks: Others, to: ElementsMut) {
        let arg = |n: usize| self.value(instruction.args[n], tile, blocks);
        if let Some(fold) = instruction.fold {
            return fold(arg(0), to, tile.row);
        }
        if let Some(Run { kernel, links, args }) = &instruction.run {
            let mut runs = SmallVec::<[Elements; strip::LONGEST + 1]>::new();
            for &step in args {
                runs.push(self.value(step, tile, blocks));
            }
            return kernel(links, &runs, to);
        }
        match instruction.arity {
            1 if !instruction.half => (instruction.kernel)(&[arg(0)], to),
            2 if !instruction.half => (instruction.kernel)(&[arg(0), arg(1)], to),
            arity => {
                let mut args: SmallVec<[Elements; MAX_ARITY]> = (0..arity).map(arg).collect();
                for &(arg, input, len) in &instruction.whole {
                    let len = param(program, len).as_int().and_then(|len| usize::try_from(len).ok()).unwrap_or(0);
                    args[arg] = sources[input as usize].whole(len);
                }
                if instruction.half {
                    through_f32(instruction.kernel, &args, to);
                } else {
                    (instruction.kernel)(&args, to);
                }
            }
        }
    }

    /// Writes the outputs that no instruction has written.
    pub fn copy(&self, tile: &mut Tile, blocks: &Blocks, copy: impl Fn(&mut ElementsMut, Elements)) {
        for &(output, step) in &self.copies {
            let mut to = std::mem::take(&mut tile.outputs[output as usize]);
            copy(&mut to, self.value(step, tile, blocks.all()));
            tile.outputs[output as usize] = to;
        }
    }

    /// The first result, of a schedule whose results are read.
    pub fn result<'v>(&self, inputs: &[Elements<'v>], blocks: Others<'v>, len: usize) -> Elements<'v> {
        let Value { place, dtype } = self.values[self.outputs[0] as usize];
        match place {
            Place::Input(k) => inputs[k as usize],
            Place::Constant(block, _) | Place::Scratch(block) | Place::Output(block) => blocks.elements(block.into(), dtype, len),
            Place::Register => Elements::of::<u8>(&[]),
        }
    }

    /// The value of a step, once it has been computed.
    #[inline]
    fn value<'v>(&self, step: u16, tile: &'v Tile, blocks: Others<'v>) -> Elements<'v> {
        let Value { place, dtype } = self.values[step as usize];
        match place {
            Place::Input(k) => tile.inputs[k as usize],
            Place::Constant(block, share) => blocks.elements(block.into(), dtype, share.of(tile.len)),
            Place::Scratch(block) => blocks.elements(block.into(), dtype, tile.len),
            Place::Output(o) => tile.outputs[o as usize].as_elements(),
            Place::Register => Elements::of::<u8>(&[]),
        }
    }
}

/// What one tile reads and writes: so many points, a run of each input and each output. Inputs of one element have no run.
pub(super) struct Tile<'t, 'o> {
    pub len: usize,
    /// Points of a row, where the program has reductions along rows.
    pub row: usize,
    pub inputs: &'t [Elements<'t>],
    pub outputs: &'t mut [ElementsMut<'o>],
}

fn param(program: &Program, n: u16) -> Scalar {
    program.params.get(n as usize).copied().unwrap_or(Scalar::Int(0))
}

/// Cheap operations per point of a program. Functions of float32 take a quarter of the time that those of float64 take: twice as many fit a
/// register, and their polynomials are half as long.
fn cost(program: &Program) -> usize {
    let step = |step: &Step| match step.kind {
        StepKind::Apply(op) => match op.0.cost {
            Cost::Cheap => 1,
            Cost::Medium => 4,
            // A loop, or several functions.
            Cost::Expensive if op.0.body.is_some() => 64,
            Cost::Expensive if program.steps[step.args[0] as usize].dtype == DType::F32 => 4,
            Cost::Expensive => 16,
        },
        StepKind::Fold(_) => 1,
        _ => 0,
    };
    1 + program.steps.iter().map(step).sum::<usize>()
}

/// Makes one instruction of those that follow each other and each read nothing but the result of the one before, which nobody else
/// reads, and a value that was there before.
fn in_runs(program: &Program, instructions: Vec<Instruction>) -> Vec<Instruction> {
    let mut readers: SmallVec<[u16; 20]> = SmallVec::from_elem(0, program.steps.len());
    for &read in instructions.iter().flat_map(Instruction::reads).chain(&program.outputs) {
        readers[read as usize] += 1;
    }
    let mut merged: Vec<Instruction> = Vec::with_capacity(instructions.len());
    for next in instructions {
        if let Some(last) = merged.last_mut()
            && readers[last.to as usize] == 1
            && let Some((link, other)) = link_to(program, last.to, &next)
            && let Some(mut run) = last.run.take_if(|run| run.links.len() < strip::LONGEST).or_else(|| run_of(program, last))
        {
            run.links.push(link);
            run.args.push(other);
            *last = Instruction { run: Some(run), ..next };
        } else {
            merged.push(next);
        }
    }
    merged
}

/// An instruction as a link of a run on step `from`, and its other argument.
fn link_to(program: &Program, from: u16, instruction: &Instruction) -> Option<(Link, u16)> {
    let step = program.steps[instruction.to as usize];
    let (StepKind::Apply(op), &[a, b]) = (step.kind, instruction.reads()) else { return None };
    let place = usize::from(b == from);
    let is_link = (a == from || b == from) && program.steps[from as usize].dtype == step.dtype && !instruction.half;
    Some((Link::of(op, place)?, if place == 0 { b } else { a })).filter(|_| is_link)
}

/// An instruction as a run of one link.
fn run_of(program: &Program, instruction: &Instruction) -> Option<Run> {
    let kernel = strip::kernel(program.steps[instruction.to as usize].dtype)?;
    let first = *instruction.reads().first()?;
    let (link, other) = link_to(program, first, instruction)?;
    Some(Run { kernel, links: SmallVec::from_slice(&[link]), args: SmallVec::from_slice(&[first, other]) })
}

/// The kernel of step `i`, checked against the dtypes of its arguments and its result.
fn instruction(program: &Program, i: usize) -> Result<Instruction, Reason> {
    let step = program.steps[i];
    if let StepKind::Apply(op) = step.kind
        && let Some(body) = op.0.body
    {
        return body_instruction(program, i, op, body);
    }
    let dtype = |a: usize| program.steps[step.args[a] as usize].dtype;
    if let StepKind::Fold(op) = step.kind {
        return fold_instruction(op, dtype(0), step, i as u16);
    }
    let (selected, arity): (Option<Selected>, usize) = match step.kind {
        StepKind::Apply(op) => (table::kernel(op, dtype(if op.arity() == 3 { 1 } else { 0 })), op.arity()),
        _ => (cast::select(dtype(0), step.dtype), 1),
    };
    let refuse = || match step.kind {
        StepKind::Apply(op) => Reason::with(|| format!("{} has no kernel for {}", op.name(), dtype(0))),
        _ => Reason::with(|| format!("no conversion from {} to {}", dtype(0), step.dtype)),
    };
    let selected = selected.ok_or_else(refuse)?;
    let fits = |kernel: DType, value: DType| kernel == value || (kernel == DType::F32 && is_half(value));
    let fit = arity <= 3 && (0..arity).all(|a| fits(selected.args[a], dtype(a))) && fits(selected.result, step.dtype);
    if !fit {
        return Err(refuse());
    }
    let half = (0..arity).any(|a| selected.args[a] != dtype(a)) || selected.result != step.dtype;
    let in_turns = selected.in_turns && !half;
    Ok(Instruction {
        kernel: selected.kernel,
        arity,
        args: step.args,
        whole: SmallVec::new(),
        to: i as u16,
        half,
        in_turns,
        fold: None,
        run: None,
    })
}

/// As [`instruction`], for a reduction along rows.
fn fold_instruction(op: Op, values: DType, step: Step, to: u16) -> Result<Instruction, Reason> {
    let fold = fold_rows(op, values).filter(|_| values == step.dtype);
    let fold = Some(fold.ok_or_else(|| Reason::with(|| format!("{} of rows has no kernel for {values}", op.name())))?);
    let nothing: Kernel = |_, _| {};
    Ok(Instruction {
        kernel: nothing,
        arity: 1,
        args: step.args,
        whole: SmallVec::new(),
        to,
        half: false,
        in_turns: false,
        fold,
        run: None,
    })
}

/// As [`instruction`], for an operation with a body of its own.
fn body_instruction(program: &Program, i: usize, op: Op, body: &Body) -> Result<Instruction, Reason> {
    let step = program.steps[i];
    let refuse = || Reason::with(|| format!("{} has no kernel for {}", op.name(), step.dtype));
    let dtype = |n: usize| step.args().get(n).map_or(step.dtype, |&a| program.steps[a as usize].dtype);
    let generic = body.generic(dtype, step.dtype);
    let of = |of: Type| if let Type::Fixed(dtype) = of { dtype } else { generic };
    let arity = usize::from(Body::arity(body.parameters));
    if step.args().len() != arity || step.dtype != of(body.result) || body.indexed_parameters().any(|(at, p)| dtype(at) != of(p.of)) {
        return Err(refuse());
    }
    let mut whole = SmallVec::new();
    for (at, _) in body.indexed_parameters().filter(|(_, p)| p.kind == ParameterKind::Whole) {
        let [elements, len] = [at, at + 1].map(|n| program.steps[step.args[n] as usize]);
        let (StepKind::Input(input), StepKind::Param(n), DType::I64) = (elements.kind, len.kind, len.dtype) else {
            return Err(refuse());
        };
        whole.push((at, input, n));
    }
    let native = body.native.downcast_ref::<Native>().ok_or_else(refuse)?;
    let kernel = (native.0)(generic).ok_or_else(refuse)?;
    Ok(Instruction { kernel, arity, args: step.args, whole, to: i as u16, half: false, in_turns: false, fold: None, run: None })
}
