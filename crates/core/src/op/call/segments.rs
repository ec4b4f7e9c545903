//! Segments: reductions of consecutive parts of a 1-D array.

use super::request::Request;
use crate::dtype::DType;
use crate::op::{Family, ReductionDef};
use crate::program::Program;

/// A reduction of each segment `offsets[i]..offsets[i + 1]` of the values of `program` (one result of the output's dtype).
///
/// The program reads all inputs except the last; each is 1-D with stride 1, or 0 for a repeated element. The last input holds the
/// offsets: C-contiguous int64, non-decreasing. The kernel checks them, and offsets outside the values are an error at run time.
///
/// An empty segment gives the identity: 0 for sums and 1 for products. For minima it is the dtype's largest value (infinity, true),
/// for maxima the smallest.
#[derive(Clone, Copy)]
pub struct Segments<'a> {
    /// The program that computes the elements to reduce.
    pub program: &'a Program,
    /// The reduction. Its identity is the result of an empty segment.
    pub reduction: &'a ReductionDef,
    /// dtype of accumulation.
    pub acc: DType,
}

impl Request for Segments<'_> {
    fn family(&self) -> Family {
        Family::Reduce
    }
    fn program(&self) -> Option<&Program> {
        Some(self.program)
    }
    fn has_extra_input(&self) -> bool {
        true
    }
}
