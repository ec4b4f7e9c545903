//! Requests of the kernel family `Select`: the elements at which a condition is true.

use super::kernel_request::KernelRequest;
use crate::op::Family;
use crate::program::Program;

/// The elements at which a condition is true, in C order.
///
/// `program` (one bool result) computes the condition. With `values`, the last input of the call holds the values to select from, and the
/// other inputs are the inputs of the program. All inputs are 1-D with stride 1. Inputs of the program may have stride 0 for a repeated
/// element.
///
/// Outputs are the selected values if `values`, then their int64 indices if `indices`. The [`OutputSpec`](crate::OutputSpec)s have the
/// maximum length. The kernel returns arrays of the actual length ([`Call::outcome_with_length`](crate::Call::outcome_with_length)).
#[derive(Clone, Copy)]
pub struct Select<'a> {
    /// The fused program that computes the condition for each element.
    pub program: &'a Program,
    /// Whether the selected elements of the last input are an output of the call.
    pub values: bool,
    /// Whether the indices of the selected elements are an output of the call.
    pub indices: bool,
}

impl KernelRequest for Select<'_> {
    fn family(&self) -> Family {
        Family::Select
    }
    fn program(&self) -> Option<&Program> {
        Some(self.program)
    }
    fn has_input_outside_program(&self) -> bool {
        self.values
    }
}
