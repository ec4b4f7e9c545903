//! Requests of the kernel family `Rows`: expressions that contain reductions along rows.

use super::kernel_request::KernelRequest;
use super::output_spec::OutputSpec;
use super::tuning_signature::TuningSignature;
use crate::array::StoredArray;
use crate::error::Result;
use crate::op::Family;
use crate::plan::row_loop::RowLoopPlan;
use crate::program::Program;

/// A fused loop that reads each row once, for expressions such as softmax and layer normalization.
///
/// Each [`Fold`](crate::StepKind::Fold) of the program is a reduction along the row. The core crate creates these calls only for devices
/// with a kernel that declares [`Capability::RowPrograms`](crate::Capability::RowPrograms). If all kernels decline, each reduction runs as
/// a separate call.
#[derive(Clone, Copy)]
pub struct RowProgram<'a> {
    /// The fused program of the call. Its result n is written to output n.
    pub program: &'a Program,
    /// The planned loop over rows. Its operands are the inputs, then the outputs. An output with stride 0 along the row has one element per
    /// row.
    pub plan: &'a RowLoopPlan,
}

impl KernelRequest for RowProgram<'_> {
    fn family(&self) -> Family {
        Family::Rows
    }
    fn program(&self) -> Option<&Program> {
        Some(self.program)
    }
    fn add_to_tuning_signature(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec], signature: &mut TuningSignature) -> Result<()> {
        signature.hash_axes(&self.plan.outer, &self.plan.outer_strides);
        signature.hash_axes(&[self.plan.length], &[&self.plan.row_strides[..]]);
        Ok(())
    }
}
