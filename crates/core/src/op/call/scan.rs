//! Requests of the kernel family `Scan`: running reductions along an axis.

use super::kernel_request::KernelRequest;
use super::output_spec::OutputSpec;
use super::tuning_signature::TuningSignature;
use crate::array::StoredArray;
use crate::error::Result;
use crate::op::{Family, ReductionDef};
use crate::plan::scan::ScanPlan;
use crate::program::Program;

/// An inclusive scan along one axis. `program`, which has one result, computes the elements to scan. The inputs of the program are
/// broadcast to a common shape, the loop shape.
#[derive(Clone, Copy)]
pub struct Scan<'a> {
    /// The fused program that computes the elements to scan, in the output's dtype.
    pub program: &'a Program,
    /// Definition of the scan: how elements combine, the identity, and the accumulator dtype.
    pub reduction: &'a ReductionDef,
    /// The scanned axis, as an index into the loop shape.
    pub axis: usize,
    /// The planned loop: the strides along the scanned axis, and the loop over the other axes.
    pub plan: &'a ScanPlan,
}

impl KernelRequest for Scan<'_> {
    fn family(&self) -> Family {
        Family::Scan
    }
    fn program(&self) -> Option<&Program> {
        Some(self.program)
    }
    fn format_call_options(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec]) -> String {
        format!("axis={}", self.axis)
    }
    fn add_to_tuning_signature(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec], signature: &mut TuningSignature) -> Result<()> {
        signature.hash_axes(&[self.plan.len], &[&self.plan.axis_strides[..]]);
        signature.hash_axes(&self.plan.lines, &self.plan.line_strides);
        Ok(())
    }
}
