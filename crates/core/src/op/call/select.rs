//! Select: the elements at which a condition holds.

use super::Request;
use crate::op::Family;
use crate::program::Program;

/// The elements at which a condition holds, in C order.
///
/// `program` (one bool result) is the condition over all inputs but, with `values`, the last. Every input is 1-D with stride 1, or 0 for
/// a repeated element (never the values). Outputs are the chosen values if `values`, then their indices (int64) if `indices`.
/// [`OutputSpec`](crate::OutputSpec) gives the largest possible length; the kernel returns arrays of the true one
/// ([`Call::done_with_length`](crate::Call::done_with_length)).
#[derive(Clone, Copy)]
pub struct Select<'a> {
    /// The condition.
    pub program: &'a Program,
    /// Whether the chosen elements of the last input are an output.
    pub values: bool,
    /// Whether the indices of the chosen elements are an output.
    pub indices: bool,
}

impl Request for Select<'_> {
    fn family(&self) -> Family {
        Family::Select
    }
    fn program(&self) -> Option<&Program> {
        Some(self.program)
    }
    fn has_extra_input(&self) -> bool {
        self.values
    }
}
