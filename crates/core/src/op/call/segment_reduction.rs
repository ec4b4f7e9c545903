//! Requests of the kernel family `Reduce` for segments: reductions of consecutive parts of a 1-D array.

use super::kernel_request::KernelRequest;
use crate::dtype::DType;
use crate::op::{Family, ReductionDef};
use crate::program::Program;

/// A reduction of each segment `offsets[i]..offsets[i + 1]` of the values of `program` (one result of the output's dtype).
///
/// The program reads all inputs except the last; each is 1-D with stride 1, or 0 for a repeated element. The last input holds the offsets:
/// C-contiguous int64, non-decreasing. The kernel checks the offsets. Offsets outside the values are an error at run time.
///
/// An empty segment gives the identity: 0 for sums and 1 for products. The identity of minima is the largest value of the dtype (infinity
/// for floats, true for bool), and that of maxima the smallest.
#[derive(Clone, Copy)]
pub struct SegmentReduction<'a> {
    /// The fused program that computes the elements to reduce.
    pub program: &'a Program,
    /// Definition of the reduction. The identity of the reduction is the result of an empty segment.
    pub reduction: &'a ReductionDef,
    /// dtype of the accumulators, such as float32 for sums of float16 and bfloat16.
    pub acc: DType,
}

impl KernelRequest for SegmentReduction<'_> {
    fn family(&self) -> Family {
        Family::Reduce
    }
    fn program(&self) -> Option<&Program> {
        Some(self.program)
    }
    fn has_input_outside_program(&self) -> bool {
        true
    }
}
