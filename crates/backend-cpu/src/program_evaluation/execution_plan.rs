//! Execution plans of fused programs: an inner loop for each operation, and a memory location for each value.

use std::cell::RefCell;
use std::sync::Arc;

use cuprum_core::op::{Cost, MAX_ARITY};
use cuprum_core::{DType, DeclineReason, Program, Scalar, Step, StepKind};
use cuprum_cpu_base::typed_views::{Elements, ElementsMut, ReadBlocks, ScratchBlocks};
use cuprum_cpu_elementwise::elementwise_loops::splat;
use cuprum_cpu_elementwise::half::run_kernel_in_float32;
use smallvec::SmallVec;

use super::chained_operations;
use super::instruction::{
    COPIES_OF_CYCLICALLY_READ_CONSTANT, ConstantCopies, Instruction, OperationChain, build_instruction, merge_chains,
};
use super::loop_nest::{AccessPattern, LoopNestInput};

/// Maximum number of elements per tile, the block of elements that is evaluated at once. All tile lengths are powers of two, so that tiles
/// end where leaves of the pairwise summation tree end.
pub(crate) const MAX_TILE_LEN: usize = 2048;
/// Minimum number of elements per tile, the block of elements that is evaluated at once.
const MIN_TILE_LEN: usize = 512;
/// Scratch size in bytes for all values of a tile: most of L1, with space left for inputs that stream through.
const TILE_SCRATCH_BYTES: usize = 24 << 10;

/// The memory to which a program writes its results.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultDestination {
    /// Scratch memory, from which the caller reads the results of each tile.
    Read,
    /// The outputs of the call, which the instructions write directly.
    Written,
    /// The outputs of the call, written with non-temporal stores. Each tile is computed in scratch memory first.
    Streamed,
    /// The memory of inputs, which the outputs overwrite. Each tile is computed in scratch memory first, because no slice of an input may
    /// exist while the memory of the input is written.
    InPlace,
}

/// Memory location of the value of one program step (operation) while a tile is evaluated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ValueLocation {
    /// In the input with this number, read in place or from its gather buffer.
    Input(u16),
    /// In the scratch block with this number, which is filled once for all tiles with copies of a parameter or of a one-element input. The
    /// second field is the number of copies.
    Constant(u16, ConstantCopies),
    /// In the scratch block with this number, which is reused after the last instruction that reads the value.
    Scratch(u16),
    /// In the output with this number.
    Output(u16),
    /// In registers only, because only the next chained operation reads the value.
    Register,
}

/// Location and dtype of the value of one program step (operation).
#[derive(Clone, Copy)]
pub(super) struct StepValueStorage {
    pub location: ValueLocation,
    pub dtype: DType,
}

/// An execution plan: a fused program with an inner loop chosen for every operation and a memory location assigned to every value.
pub(super) struct ExecutionPlan {
    steps: Box<[Step]>,
    outputs: Box<[u16]>,
    accesses: Box<[AccessPattern]>,
    results: ResultDestination,
    values: Box<[StepValueStorage]>,
    instructions: Box<[Instruction]>,
    /// Outputs that no instruction writes, each with the index of the program step whose value is copied to it. For
    /// [`ResultDestination::Streamed`] and [`ResultDestination::InPlace`] these are all outputs. For [`ResultDestination::Written`] they
    /// are the outputs that equal an input, a parameter or another output.
    copies: SmallVec<[(u16, u16); 2]>,
    /// Number of scratch blocks that a tile needs.
    blocks: usize,
    /// Size in bytes of the widest element type among the program's values.
    widest: usize,
    /// Number of elements per tile, a power of two.
    pub tile: usize,
    /// Cost per element in elementary operations: one for memory traffic, plus the cost of the operations of the program.
    pub cost: usize,
}

/// Number of entries of a thread's execution plan cache. The cache is direct-mapped: a new execution plan replaces the one in its slot.
const EXECUTION_PLAN_CACHE_SLOTS: usize = 64;

thread_local! {
    static EXECUTION_PLAN_CACHE: RefCell<Vec<Option<Arc<ExecutionPlan>>>> = const { RefCell::new(Vec::new()) };
}

impl ExecutionPlan {
    /// Returns the execution plan of `program`, from the thread's cache if possible. An error names the operation without an inner loop.
    pub fn get_or_create_execution_plan(
        program: &Program,
        accesses: &[AccessPattern],
        results: ResultDestination,
    ) -> Result<Arc<ExecutionPlan>, DeclineReason> {
        let slot = program.structure_hash() as usize % EXECUTION_PLAN_CACHE_SLOTS;
        // Thread-locals are inaccessible only while a thread ends. The execution plan is then not cached.
        let kept = EXECUTION_PLAN_CACHE.try_with(|all| {
            let all = all.try_borrow().ok()?;
            all.get(slot)?.as_ref().filter(|kept| kept.matches_program(program, accesses, results)).cloned()
        });
        if let Ok(Some(kept)) = kept {
            return Ok(kept);
        }
        let made = Arc::new(ExecutionPlan::new(program, accesses, results)?);
        let _ = EXECUTION_PLAN_CACHE.try_with(|all| {
            if let Ok(mut all) = all.try_borrow_mut() {
                all.resize_with(EXECUTION_PLAN_CACHE_SLOTS, || None);
                all[slot] = Some(made.clone());
            }
        });
        Ok(made)
    }

    fn matches_program(&self, program: &Program, accesses: &[AccessPattern], results: ResultDestination) -> bool {
        self.results == results && *self.accesses == *accesses && *self.outputs == *program.outputs && *self.steps == *program.steps
    }

    fn new(program: &Program, accesses: &[AccessPattern], results: ResultDestination) -> Result<ExecutionPlan, DeclineReason> {
        let steps = &program.steps;
        let mut instructions = Vec::with_capacity(steps.len());
        for (i, step) in steps.iter().enumerate() {
            if let StepKind::Cast | StepKind::Apply(_) | StepKind::Fold(_) = step.kind {
                instructions.push(build_instruction(program, i)?);
            }
        }
        let instructions = merge_chains(program, instructions);
        let mut last_use: SmallVec<[u16; 20]> = (0..steps.len() as u16).collect();
        let mut constant_copies_by_step: SmallVec<[ConstantCopies; 20]> = SmallVec::from_elem(ConstantCopies::One, steps.len());
        for instruction in &instructions {
            for &arg in instruction.argument_step_indices() {
                last_use[arg as usize] = instruction.to;
                constant_copies_by_step[arg as usize] = constant_copies_by_step[arg as usize].max(instruction.constant_copies());
            }
        }
        for &output in &program.outputs {
            last_use[output as usize] = u16::MAX;
            constant_copies_by_step[output as usize] = ConstantCopies::Full;
        }

        let mut blocks = 0;
        let mut block = || (blocks, blocks += 1).0;
        let mut values = Vec::<StepValueStorage>::with_capacity(steps.len());
        let mut free: SmallVec<[u16; 8]> = SmallVec::new();
        let mut in_order = instructions.iter().peekable();
        for (i, step) in steps.iter().enumerate() {
            let instruction = in_order.next_if(|instruction| instruction.to as usize == i);
            let output = program.outputs.iter().position(|&o| results == ResultDestination::Written && o as usize == i);
            let is_constant = match step.kind {
                StepKind::Input(k) => accesses[k as usize] == AccessPattern::Single,
                kind => matches!(kind, StepKind::Param(_)),
            };
            let location = match (step.kind, output) {
                _ if is_constant => ValueLocation::Constant(block(), constant_copies_by_step[i]),
                (StepKind::Input(k), _) => ValueLocation::Input(k),
                _ if instruction.is_none() => ValueLocation::Register,
                (_, Some(output)) => ValueLocation::Output(output as u16),
                _ => ValueLocation::Scratch(free.pop().unwrap_or_else(&mut block)),
            };
            values.push(StepValueStorage { location, dtype: step.dtype });
            for &arg in instruction.map_or(&[][..], Instruction::argument_step_indices) {
                if let (ValueLocation::Scratch(block), true) = (values[arg as usize].location, last_use[arg as usize] as usize == i)
                    && !free.contains(&block)
                {
                    free.push(block);
                }
            }
        }
        let unwritten = |&(o, &step): &(usize, &u16)| values[step as usize].location != ValueLocation::Output(o as u16);
        let copies = match results {
            ResultDestination::Read => SmallVec::new(),
            _ => program.outputs.iter().enumerate().filter(unwritten).map(|(o, &step)| (o as u16, step)).collect(),
        };
        let widest = steps.iter().map(|s| s.dtype.itemsize()).max().unwrap_or(1);
        let repeated =
            values.iter().filter(|v| matches!(v.location, ValueLocation::Constant(_, ConstantCopies::One | ConstantCopies::Cycle))).count();
        let gathered = accesses.iter().filter(|a| **a == AccessPattern::Strided).count();
        let free_bytes = TILE_SCRATCH_BYTES.saturating_sub(repeated * COPIES_OF_CYCLICALLY_READ_CONSTANT * widest);
        let fits = free_bytes / (widest * (blocks as usize - repeated + gathered).max(1));
        Ok(ExecutionPlan {
            steps: steps[..].into(),
            outputs: program.outputs[..].into(),
            accesses: accesses.into(),
            results,
            values: values.into(),
            instructions: instructions.into(),
            copies,
            blocks: blocks as usize,
            widest,
            tile: (fits.clamp(MIN_TILE_LEN, MAX_TILE_LEN) + 1).next_power_of_two() / 2,
            cost: cost_per_element(program),
        })
    }

    /// Returns whether some user-defined operation takes an argument as a whole array.
    pub fn has_whole_array_argument(&self) -> bool {
        self.instructions.iter().any(|i| !i.whole.is_empty())
    }

    /// Fills the constants into `blocks` for tiles of up to `len` elements. `single(k, out)` fills `out` with copies of the only element of
    /// input `k`.
    pub fn fill_constants(&self, program: &Program, blocks: &mut ScratchBlocks, len: usize, single: impl Fn(usize, ElementsMut)) {
        blocks.resize(self.blocks, len * self.widest);
        for (step, value) in self.steps.iter().zip(&self.values) {
            let (block, len) = match value.location {
                ValueLocation::Constant(block, constant_copies) => (block, constant_copies.of(len)),
                _ => continue,
            };
            let out = blocks.elements_mut(block.into(), value.dtype, len);
            match step.kind {
                StepKind::Param(n) => splat(scalar_parameter_or_zero(program, n), out),
                StepKind::Input(k) => single(k.into(), out),
                _ => {}
            }
        }
    }

    /// Runs all instructions for the elements of `tile`. User-defined operations that take whole arrays read them from `sources`.
    pub fn run_tile(&self, program: &Program, sources: &[LoopNestInput], tile: &mut TileSlices, blocks: &mut ScratchBlocks) {
        for instruction in &self.instructions {
            // Separates the output or scratch block that the instruction writes from the blocks that the instruction may read.
            let StepValueStorage { location, dtype } = self.values[instruction.to as usize];
            match location {
                ValueLocation::Output(o) => {
                    let mut to = std::mem::take(&mut tile.outputs[o as usize]);
                    self.run_instruction(instruction, (program, sources), tile, blocks.read_all_blocks(), to.reborrow());
                    tile.outputs[o as usize] = to;
                }
                ValueLocation::Scratch(block) => {
                    let (to, others) = blocks.write_block_and_read_others(block.into(), dtype, tile.len);
                    self.run_instruction(instruction, (program, sources), tile, others, to);
                }
                ValueLocation::Input(_) | ValueLocation::Constant(..) | ValueLocation::Register => {}
            }
        }
    }

    fn run_instruction(
        &self,
        instruction: &Instruction,
        (program, sources): (&Program, &[LoopNestInput]),
        tile: &TileSlices,
        blocks: ReadBlocks,
        to: ElementsMut,
    ) {
        let arg = |n: usize| self.step_value(instruction.args[n], tile, blocks);
        if let Some(row_reduction) = instruction.row_reduction {
            return row_reduction(arg(0), to, tile.row);
        }
        if let Some(OperationChain { kernel, ops, args }) = &instruction.chain {
            let mut runs = SmallVec::<[Elements; chained_operations::MAX_CHAIN_OPS + 1]>::new();
            for &step in args {
                runs.push(self.step_value(step, tile, blocks));
            }
            return kernel(ops, &runs, to);
        }
        match instruction.arity {
            1 if !instruction.half => (instruction.kernel)(&[arg(0)], to),
            2 if !instruction.half => (instruction.kernel)(&[arg(0), arg(1)], to),
            arity => {
                let mut args: SmallVec<[Elements; MAX_ARITY]> = (0..arity).map(arg).collect();
                for &(arg, input, len) in &instruction.whole {
                    let len = scalar_parameter_or_zero(program, len).as_int().and_then(|len| usize::try_from(len).ok()).unwrap_or(0);
                    args[arg] = sources[input as usize].first_elements(len);
                }
                if instruction.half {
                    run_kernel_in_float32(instruction.kernel, &args, to);
                } else {
                    (instruction.kernel)(&args, to);
                }
            }
        }
    }

    /// Copies values, by the function `copy`, to those outputs of `tile` that no instruction writes.
    pub fn copy_uncomputed_outputs(&self, tile: &mut TileSlices, blocks: &ScratchBlocks, copy: impl Fn(&mut ElementsMut, Elements)) {
        for &(output, step) in &self.copies {
            let mut to = std::mem::take(&mut tile.outputs[output as usize]);
            copy(&mut to, self.step_value(step, tile, blocks.read_all_blocks()));
            tile.outputs[output as usize] = to;
        }
    }

    /// Returns the first result, of `len` elements, after a [`ExecutionPlan::run_tile`] with [`ResultDestination::Read`].
    pub fn first_result<'v>(&self, inputs: &[Elements<'v>], blocks: ReadBlocks<'v>, len: usize) -> Elements<'v> {
        let StepValueStorage { location, dtype } = self.values[self.outputs[0] as usize];
        match location {
            ValueLocation::Input(k) => inputs[k as usize],
            ValueLocation::Constant(block, _) | ValueLocation::Scratch(block) | ValueLocation::Output(block) => {
                blocks.elements(block.into(), dtype, len)
            }
            ValueLocation::Register => Elements::of::<u8>(&[]),
        }
    }

    /// Returns the value of program step number `step`, which has been computed or is an input.
    #[inline]
    fn step_value<'v>(&self, step: u16, tile: &'v TileSlices, blocks: ReadBlocks<'v>) -> Elements<'v> {
        let StepValueStorage { location, dtype } = self.values[step as usize];
        match location {
            ValueLocation::Input(k) => tile.inputs[k as usize],
            ValueLocation::Constant(block, constant_copies) => blocks.elements(block.into(), dtype, constant_copies.of(tile.len)),
            ValueLocation::Scratch(block) => blocks.elements(block.into(), dtype, tile.len),
            ValueLocation::Output(o) => tile.outputs[o as usize].as_elements(),
            ValueLocation::Register => Elements::of::<u8>(&[]),
        }
    }
}

/// The inputs and outputs of one tile, one slice each. The slice of a single-element input is unused.
pub(super) struct TileSlices<'t, 'o> {
    pub len: usize,
    /// Number of elements per row, for reductions along rows.
    pub row: usize,
    pub inputs: &'t [Elements<'t>],
    pub outputs: &'t mut [ElementsMut<'o>],
}

fn scalar_parameter_or_zero(program: &Program, n: u16) -> Scalar {
    program.params.get(n as usize).copied().unwrap_or(Scalar::Int(0))
}

/// Returns the cost per element of `program`, in elementary operations. Mathematical functions take a quarter of the time in float32 that
/// they take in float64: a register holds twice as many elements, and the polynomials are half as long.
fn cost_per_element(program: &Program) -> usize {
    let step = |step: &Step| match step.kind {
        StepKind::Apply(op) => match op.0.cost {
            Cost::Cheap => 1,
            Cost::Medium => 4,
            // The code of a user-defined operation may contain loops or many functions, hence the high estimate.
            Cost::Expensive if op.0.body.is_some() => 64,
            Cost::Expensive if program.steps[step.args[0] as usize].dtype == DType::F32 => 4,
            Cost::Expensive => 16,
        },
        StepKind::Fold(_) => 1,
        _ => 0,
    };
    1 + program.steps.iter().map(step).sum::<usize>()
}
