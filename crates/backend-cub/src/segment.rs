//! CUDA kernels of reductions of segments (family `Reduce`), with a fused program.

#[allow(unsafe_code)] // kernel launches
pub mod launch;
pub mod request;

use cuprum_core::{Call, Outcome, Result};

/// Runs a reduction of segments.
pub fn run_call(call: &Call) -> Result<Outcome> {
    crate::launch::compile_and_launch_call(call, |_| request::segment_request_for_call(call), launch::launch_segment_kernels)
}
