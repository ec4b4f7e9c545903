//! Fused programs that are ready for evaluation: bound to their inputs, with a kernel for each operation.

use std::sync::Arc;

use cuprum_core::ops::elementwise::{MULTIPLY, SQUARE};
use cuprum_core::{DType, DeclineReason, Program, Step, StepKind};
use smallvec::SmallVec;

use super::execution_plan::{ExecutionPlan, ResultDestination};
use super::loop_nest::{AccessPattern, LoopNest};

/// A fused program bound to its inputs, with a kernel for each of its operations, ready for evaluation.
pub(crate) struct CompiledProgram<'a> {
    pub(super) program: &'a Program,
    pub(super) nest: LoopNest<'a>,
    pub(super) execution_plan: Arc<ExecutionPlan>,
    /// Whether outputs are written with non-temporal stores.
    pub(super) streamed: bool,
    /// If the program is a single product: the indices of the inputs that are its factors.
    pub(super) factors: Option<[usize; 2]>,
}

impl<'a> CompiledProgram<'a> {
    /// Prepares `program` for evaluation over the loops and inputs of `nest`. An error names the missing kernel.
    pub fn new(
        program: &'a Program,
        nest: LoopNest<'a>,
        results: ResultDestination,
    ) -> std::result::Result<CompiledProgram<'a>, DeclineReason> {
        let accesses: SmallVec<[AccessPattern; 8]> = nest.inputs.iter().map(|source| source.access).collect();
        let execution_plan = ExecutionPlan::get_or_create_execution_plan(program, &accesses, results)?;
        Ok(CompiledProgram {
            program,
            nest,
            execution_plan,
            streamed: results == ResultDestination::Streamed,
            factors: find_product_factors(program),
        })
    }

    /// Returns the number of elements per tile, a power of two.
    pub fn tile_len(&self) -> usize {
        self.execution_plan.tile
    }

    /// Returns the loop nest, which holds the program's inputs.
    pub fn loop_nest(&self) -> &LoopNest<'a> {
        &self.nest
    }

    /// Returns whether the program is the identity of a contiguous input, so that its values can be read in place.
    pub fn is_contiguous_identity(&self) -> bool {
        self.program.is_identity() && self.nest.inputs.first().is_some_and(|input| input.access == AccessPattern::Flat)
    }

    /// Returns the cost per element in elementary operations: one for memory traffic, plus the cost of the program's operations.
    pub fn cost_per_element(&self) -> usize {
        self.execution_plan.cost
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
