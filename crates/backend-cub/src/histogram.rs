//! CUDA kernels of the family `Histogram`: counts of values per bin, with a fused program.

#[allow(unsafe_code)] // kernel launches
pub mod launch;
pub mod request;

use cuprum_core::{Call, Outcome, Result};

/// Runs `histogram` or `bincount`.
pub fn run_call(call: &Call) -> Result<Outcome> {
    crate::launch::compile_and_launch_call(
        call,
        |addresses| request::histogram_request_for_call(call, addresses),
        launch::launch_histogram_kernel,
    )
}
