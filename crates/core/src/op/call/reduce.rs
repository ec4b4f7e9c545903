//! Requests of the kernel family `Reduce`: reductions over axes.

use super::kernel_request::KernelRequest;
use super::output_spec::OutputSpec;
use super::tuning_signature::TuningSignature;
use crate::array::StoredArray;
use crate::dtype::DType;
use crate::error::{Result, shape_text};
use crate::op::{Family, ReductionDef};
use crate::plan::reduce::ReducePlan;
use crate::program::Program;

/// A reduction over the plan's reduced axes. `program`, which has one result, computes the elements to reduce. The inputs of the program
/// are broadcast to a common shape, the loop shape.
///
/// A call of the operation `var` requests the sum of squared distances from the mean. Only kernels that declare
/// [`Capability::Variance`](crate::Capability::Variance) receive such calls.
#[derive(Clone, Copy)]
pub struct Reduce<'a> {
    /// The fused program that computes the elements to reduce, in the dtype in which they enter the reduction.
    pub program: &'a Program,
    /// Definition of the reduction: how elements combine, the identity, and the accumulator dtype.
    pub reduction: &'a ReductionDef,
    /// The reduced axes, as indices into the loop shape. They differ from the axes of `plan`, which merges adjacent axes.
    pub axes: &'a [usize],
    /// The planned loops over kept and over reduced axes, both with merged axes.
    pub plan: &'a ReducePlan,
    /// dtype of the accumulators, such as float32 for sums of float16 and bfloat16.
    pub acc: DType,
}

impl KernelRequest for Reduce<'_> {
    fn family(&self) -> Family {
        Family::Reduce
    }
    fn program(&self) -> Option<&Program> {
        Some(self.program)
    }
    fn format_call_options(&self, inputs: &[StoredArray], outputs: &[OutputSpec]) -> String {
        let ndim = inputs.first().map_or(0, |input| input.shape().len());
        let axes = match self.axes {
            axes if axes.len() == ndim => "None".to_owned(),
            [axis] => axis.to_string(),
            axes => shape_text(axes),
        };
        let keepdims = !self.axes.is_empty() && outputs.first().is_some_and(|output| output.layout.ndim() == ndim);
        format!("axis={axes}{}", if keepdims { ", keepdims" } else { "" })
    }
    fn add_to_tuning_signature(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec], signature: &mut TuningSignature) -> Result<()> {
        signature.hash_axes(&self.plan.kept, &self.plan.kept_strides);
        signature.hash_axes(&self.plan.reduced, &self.plan.reduced_strides);
        Ok(())
    }
}
