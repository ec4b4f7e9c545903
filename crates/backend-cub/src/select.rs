//! CUDA kernels of the family `Select`: the elements at which a condition holds, and their indices, with a fused program.

#[allow(unsafe_code)] // kernel launches
pub mod launch;
pub mod request;

use cuprum_core::{Call, Outcome, Result};

/// Runs a call of the family `Select`. Waits for the device, because the number of selected elements determines the shape of the result.
pub fn run_call(call: &Call) -> Result<Outcome> {
    crate::launch::compile_and_launch_call(
        call,
        |addresses| request::select_request_for_call(call, addresses),
        launch::launch_select_kernel,
    )
}
