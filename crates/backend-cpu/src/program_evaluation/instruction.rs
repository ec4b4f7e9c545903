//! Instructions that evaluate a fused program in tiles (blocks of elements that fit L1). An instruction calls one inner loop, for one step
//! (operation) of the program or for several chained steps.

use cuprum_core::body::{BodyDType, OperationBody, ParameterKind};
use cuprum_core::op::{MAX_ARITY, Op};
use cuprum_core::{DType, DeclineReason, Program, Step, StepKind};
use cuprum_cpu_base::user_operations::NativeLoopSelector;
use cuprum_cpu_elementwise::elementwise_loops::{Kernel, SelectedKernel};
use cuprum_cpu_elementwise::half::is_half;
use cuprum_cpu_elementwise::{cast, operation_table};
use smallvec::SmallVec;

use super::chained_operations::{self, ChainOp};
use crate::reducers::row_reductions::{RowReduction, select_row_reduction};

/// Number of copies of a constant that a kernel reads cyclically: cheap to fill, and enough to run the kernel's loop at full speed.
pub(super) const COPIES_OF_CYCLICALLY_READ_CONSTANT: usize = 256;

/// Number of copies of a constant in its scratch block. It is the maximum over all instructions that read the constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConstantCopies {
    /// One copy.
    One,
    /// [`COPIES_OF_CYCLICALLY_READ_CONSTANT`] copies, read cyclically.
    Cycle,
    /// As many copies as the tile has elements.
    Full,
}

impl ConstantCopies {
    /// Returns the number of copies of a constant for a tile of `len` elements.
    #[inline]
    pub fn of(self, len: usize) -> usize {
        match self {
            ConstantCopies::One => len.min(1),
            ConstantCopies::Cycle => len.min(COPIES_OF_CYCLICALLY_READ_CONSTANT),
            ConstantCopies::Full => len,
        }
    }
}

/// A call of one inner loop, which computes one step (operation) of the fused program, or several chained steps, for a tile.
pub(super) struct Instruction {
    pub kernel: Kernel,
    pub arity: usize,
    pub args: [u16; MAX_ARITY],
    /// Arguments of a user-defined operation that are whole arrays. For each: the index of the argument, the index of the input, and the
    /// index of the scalar parameter that holds the array length.
    pub whole: SmallVec<[(usize, u16, u16); 1]>,
    pub to: u16,
    /// Whether the kernel takes and returns float32 where the program has 16-bit floats.
    pub half: bool,
    /// Whether the kernel cyclically reads arguments that are shorter than the tile.
    pub cycles_args: bool,
    /// Loop of a reduction along rows. It replaces `kernel`.
    pub row_reduction: Option<RowReduction>,
    /// Chained operations, of which the last one computes the result of this instruction. If set, `kernel` and `args` are unused.
    pub chain: Option<OperationChain>,
}

impl Instruction {
    /// Returns the indices of the program steps whose values this instruction reads.
    pub fn argument_step_indices(&self) -> &[u16] {
        match &self.chain {
            Some(chain) => &chain.args,
            None => &self.args[..self.arity],
        }
    }

    /// Returns how many copies of a constant argument this instruction reads.
    pub fn constant_copies(&self) -> ConstantCopies {
        match (&self.chain, self.cycles_args) {
            (Some(_), _) => ConstantCopies::One,
            (None, true) => ConstantCopies::Cycle,
            (None, false) => ConstantCopies::Full,
        }
    }
}

/// Consecutive binary operations that one loop computes in registers, without storing intermediate values (module `chained_operations`).
pub(super) struct OperationChain {
    pub kernel: chained_operations::ChainFunction,
    pub ops: SmallVec<[ChainOp; chained_operations::MAX_CHAIN_OPS]>,
    /// Indices of the program steps that the operations read: the initial value, then the other argument of each operation.
    pub args: SmallVec<[u16; chained_operations::MAX_CHAIN_OPS + 1]>,
}

/// Merges consecutive instructions into chained operations. An instruction is chained to the preceding one if no other instruction reads
/// the preceding result, and if its operation can be chained.
pub(super) fn merge_chains(program: &Program, instructions: Vec<Instruction>) -> Vec<Instruction> {
    let mut readers: SmallVec<[u16; 20]> = SmallVec::from_elem(0, program.steps.len());
    for &read in instructions.iter().flat_map(Instruction::argument_step_indices).chain(&program.outputs) {
        readers[read as usize] += 1;
    }
    let mut merged: Vec<Instruction> = Vec::with_capacity(instructions.len());
    for next in instructions {
        if let Some(last) = merged.last_mut()
            && readers[last.to as usize] == 1
            && let Some((chain_op, other)) = to_chain_op(program, last.to, &next)
            && let Some(mut chain) =
                last.chain.take_if(|chain| chain.ops.len() < chained_operations::MAX_CHAIN_OPS).or_else(|| start_chain(program, last))
        {
            chain.ops.push(chain_op);
            chain.args.push(other);
            *last = Instruction { chain: Some(chain), ..next };
        } else {
            merged.push(next);
        }
    }
    merged
}

/// Returns the operation that `instruction` applies to the value of program step `from`, and the step index of the operation's other
/// argument. Returns `None` if the operation cannot be chained.
fn to_chain_op(program: &Program, from: u16, instruction: &Instruction) -> Option<(ChainOp, u16)> {
    let step = program.steps[instruction.to as usize];
    let (StepKind::Apply(op), &[a, b]) = (step.kind, instruction.argument_step_indices()) else { return None };
    let position = usize::from(b == from);
    let is_link = (a == from || b == from) && program.steps[from as usize].dtype == step.dtype && !instruction.half;
    Some((ChainOp::of(op, position)?, if position == 0 { b } else { a })).filter(|_| is_link)
}

/// Returns `instruction` as a chain of one operation. Returns `None` if other operations cannot be chained to it.
fn start_chain(program: &Program, instruction: &Instruction) -> Option<OperationChain> {
    let kernel = chained_operations::select_chain_function(program.steps[instruction.to as usize].dtype)?;
    let first = *instruction.argument_step_indices().first()?;
    let (chain_op, other) = to_chain_op(program, first, instruction)?;
    Some(OperationChain { kernel, ops: SmallVec::from_slice(&[chain_op]), args: SmallVec::from_slice(&[first, other]) })
}

/// Returns the instruction of step `i` of the program, after checking that there is a loop for the dtypes of its arguments and result.
pub(super) fn build_instruction(program: &Program, i: usize) -> Result<Instruction, DeclineReason> {
    let step = program.steps[i];
    if let StepKind::Apply(op) = step.kind
        && let Some(body) = op.0.body
    {
        return build_user_operation_instruction(program, i, op, body);
    }
    let dtype = |a: usize| program.steps[step.args[a] as usize].dtype;
    if let StepKind::Fold(op) = step.kind {
        return build_row_reduction_instruction(op, dtype(0), step, i as u16);
    }
    let (selected, arity): (Option<SelectedKernel>, usize) = match step.kind {
        StepKind::Apply(op) => (operation_table::select_kernel(op, dtype(if op.arity() == 3 { 1 } else { 0 })), op.arity()),
        _ => (cast::select_cast_kernel(dtype(0), step.dtype), 1),
    };
    let unsupported = || match step.kind {
        StepKind::Apply(op) => DeclineReason::with_text(|| format!("{} has no kernel for {}", op.name(), dtype(0))),
        _ => DeclineReason::with_text(|| format!("no conversion from {} to {}", dtype(0), step.dtype)),
    };
    let selected = selected.ok_or_else(unsupported)?;
    let fits = |kernel: DType, value: DType| kernel == value || (kernel == DType::F32 && is_half(value));
    let fit = arity <= 3 && (0..arity).all(|a| fits(selected.args[a], dtype(a))) && fits(selected.result, step.dtype);
    if !fit {
        return Err(unsupported());
    }
    let half = (0..arity).any(|a| selected.args[a] != dtype(a)) || selected.result != step.dtype;
    let cycles_args = selected.cycles_args && !half;
    Ok(Instruction {
        kernel: selected.kernel,
        arity,
        args: step.args,
        whole: SmallVec::new(),
        to: i as u16,
        half,
        cycles_args,
        row_reduction: None,
        chain: None,
    })
}

/// Returns the instruction that computes the program step `step`, a reduction by `op` along rows. The reduced values have dtype `values`;
/// `to` is the index of the step.
fn build_row_reduction_instruction(op: Op, values: DType, step: Step, to: u16) -> Result<Instruction, DeclineReason> {
    let kernel = select_row_reduction(op, values).filter(|_| values == step.dtype);
    let kernel = Some(kernel.ok_or_else(|| DeclineReason::with_text(|| format!("{} of rows has no kernel for {values}", op.name())))?);
    let nothing: Kernel = |_, _| {};
    Ok(Instruction {
        kernel: nothing,
        arity: 1,
        args: step.args,
        whole: SmallVec::new(),
        to,
        half: false,
        cycles_args: false,
        row_reduction: kernel,
        chain: None,
    })
}

/// Returns the instruction of step `i` of the program, which applies a user-defined operation.
fn build_user_operation_instruction(program: &Program, i: usize, op: Op, body: &OperationBody) -> Result<Instruction, DeclineReason> {
    let step = program.steps[i];
    let unsupported = || DeclineReason::with_text(|| format!("{} has no kernel for {}", op.name(), step.dtype));
    let dtype = |n: usize| step.args().get(n).map_or(step.dtype, |&a| program.steps[a as usize].dtype);
    let generic = body.generic_dtype(dtype, step.dtype);
    let of = |of: BodyDType| if let BodyDType::Fixed(dtype) = of { dtype } else { generic };
    let arity = usize::from(OperationBody::total_argument_count(body.parameters));
    if step.args().len() != arity
        || step.dtype != of(body.result)
        || body.parameters_with_argument_index().any(|(at, p)| dtype(at) != of(p.of))
    {
        return Err(unsupported());
    }
    let mut whole = SmallVec::new();
    for (at, _) in body.parameters_with_argument_index().filter(|(_, p)| p.kind == ParameterKind::Whole) {
        let [elements, len] = [at, at + 1].map(|n| program.steps[step.args[n] as usize]);
        let (StepKind::Input(input), StepKind::Param(n), DType::I64) = (elements.kind, len.kind, len.dtype) else {
            return Err(unsupported());
        };
        whole.push((at, input, n));
    }
    let native = body.native.downcast_ref::<NativeLoopSelector>().ok_or_else(unsupported)?;
    let kernel = (native.0)(generic).ok_or_else(unsupported)?;
    Ok(Instruction {
        kernel,
        arity,
        args: step.args,
        whole,
        to: i as u16,
        half: false,
        cycles_args: false,
        row_reduction: None,
        chain: None,
    })
}
