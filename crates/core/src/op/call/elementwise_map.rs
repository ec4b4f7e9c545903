//! Requests of the kernel family `Map`: elementwise loops.

use super::kernel_request::KernelRequest;
use super::output_spec::OutputSpec;
use super::tuning_signature::TuningSignature;
use crate::array::StoredArray;
use crate::error::Result;
use crate::op::Family;
use crate::plan::elementwise::LoopPlan;
use crate::program::Program;

/// An elementwise loop: evaluates `program` for every element. The inputs of the program are broadcast to a common shape, the loop shape.
#[derive(Clone, Copy)]
pub struct Map<'a> {
    /// The fused program of the call. Its result n is written to output n.
    pub program: &'a Program,
    /// The planned loop with merged axes. Its operands are the inputs, then the outputs.
    pub plan: &'a LoopPlan,
}

impl KernelRequest for Map<'_> {
    fn family(&self) -> Family {
        Family::Map
    }
    fn program(&self) -> Option<&Program> {
        Some(self.program)
    }
    fn add_to_tuning_signature(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec], signature: &mut TuningSignature) -> Result<()> {
        signature.hash_axes(&self.plan.dims, &self.plan.strides);
        Ok(())
    }
}
