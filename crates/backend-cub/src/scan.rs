//! CUDA kernels of the family `Scan`: inclusive scans with a fused program.

pub mod describe;
#[allow(unsafe_code)] // kernel launches
pub mod launch;

use cuprum_core::{Call, Outcome, Result};

/// Runs a scan.
pub fn run_call(call: &Call) -> Result<Outcome> {
    crate::launch::describe_and_launch(call, |_| describe::describe_call(call), launch::launch_request)
}
