//! CUDA kernels of the family `Sort`: sorts, the first elements of sorted rows, and partitions.

#[allow(unsafe_code)] // kernel launches
pub mod launch;
pub mod request;

use cuprum_core::{Call, Outcome, Result};

/// Runs a sort.
pub fn run_call(call: &Call) -> Result<Outcome> {
    crate::launch::compile_and_launch_call(call, |_| request::sort_request_for_call(call), launch::launch_sort_kernels)
}
