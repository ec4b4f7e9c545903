//! Evaluation of fused programs over few elements, without the set-up of a [`CompiledProgram`](super::CompiledProgram).

use std::cell::RefCell;
use std::sync::Arc;

use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Program, Result, StoredArray};
use cuprum_cpu_base::typed_views::{Elements, ElementsMut};
use cuprum_cpu_base::with_bits;
use smallvec::SmallVec;

use super::SPARE_SCRATCH_BLOCKS;
use super::execution_plan::{ExecutionPlan, MAX_TILE_LEN, ResultDestination, TileSlices};
use super::loop_nest::AccessPattern;

/// A fused program over contiguous inputs that fit one tile. The inputs are read in place. Only the constants are copied to scratch blocks
/// before the evaluation.
pub(crate) struct SingleTileProgram<'a> {
    program: &'a Program,
    execution_plan: Arc<ExecutionPlan>,
    inputs: SmallVec<[Elements<'a>; 4]>,
    len: usize,
}

impl<'a> SingleTileProgram<'a> {
    /// Prepares `program`, or returns `None` if a [`CompiledProgram`](super::CompiledProgram) is needed: for more elements than a tile,
    /// strided arrays, or arguments that are whole arrays. The strides in `plan` are those of `arrays`, followed by those of the outputs.
    pub fn of(program: &'a Program, arrays: &'a [StoredArray], plan: &LoopPlan) -> Result<Option<SingleTileProgram<'a>>> {
        if plan.size > MAX_TILE_LEN || !plan.is_flat() {
            return Ok(None);
        }
        let (mut accesses, mut inputs) = (SmallVec::<[AccessPattern; 8]>::new(), SmallVec::new());
        for (array, strides) in arrays.iter().zip(&plan.strides) {
            let access = if strides[..] == [1] { AccessPattern::Flat } else { AccessPattern::Single };
            let len = if access == AccessPattern::Flat { plan.size } else { 1 };
            accesses.push(access);
            inputs.push(Elements::from_whole_buffer(array)?.slice(array.layout().offset(), len));
        }
        let execution_plan = ExecutionPlan::get_or_create_execution_plan(program, &accesses, ResultDestination::Written).ok();
        let fits = |execution_plan: &Arc<ExecutionPlan>| plan.size <= execution_plan.tile && !execution_plan.has_whole_array_argument();
        Ok(execution_plan.filter(fits).map(|execution_plan| SingleTileProgram { program, execution_plan, inputs, len: plan.size }))
    }

    /// Computes all elements; `outputs` has one slice per output.
    pub fn evaluate_into(&self, outputs: &mut [ElementsMut]) {
        let mut blocks = SPARE_SCRATCH_BLOCKS.try_with(RefCell::take).unwrap_or_default();
        self.execution_plan.fill_constants(self.program, &mut blocks, self.len, |k, out| fill_repeated(self.inputs[k], out));
        let mut tile = TileSlices { len: self.len, row: self.len, inputs: &self.inputs, outputs };
        self.execution_plan.run_tile(self.program, &[], &mut tile, &mut blocks);
        self.execution_plan.copy_uncomputed_outputs(&mut tile, &blocks, |to, value| to.copy_from(value));
        // Thread-locals are inaccessible while a thread ends. The scratch blocks are then freed instead of being kept for reuse.
        let _ = SPARE_SCRATCH_BLOCKS.try_with(|spare| spare.replace(blocks));
    }
}

/// Fills `out` with copies of the single element in `element`.
fn fill_repeated(element: Elements, out: ElementsMut) {
    with_bits!(out.dtype(), T => out.typed_slice::<T>().fill(element.typed_slice::<T>()[0]))
}
