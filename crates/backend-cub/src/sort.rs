//! CUDA kernels of the family `Sort`: sorts, the first elements of sorted rows, and partitions.

pub mod describe;
#[allow(unsafe_code)] // kernel launches
pub mod launch;

use cuprum_core::{Call, Outcome, Result};

/// Runs a sort.
pub fn run_call(call: &Call) -> Result<Outcome> {
    crate::launch::describe_and_launch(call, |_| describe::describe_call(call), launch::launch_request)
}
