//! CUDA kernels of the family `Histogram`: counts of values per bin, with a fused program.

pub mod describe;
#[allow(unsafe_code)] // kernel launches
pub mod launch;

use cuprum_core::{Call, Outcome, Result};

/// Runs `histogram` or `bincount`.
pub fn run_call(call: &Call) -> Result<Outcome> {
    crate::launch::describe_and_launch(call, |addresses| describe::describe_call(call, addresses), launch::launch_request)
}
