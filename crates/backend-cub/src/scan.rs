//! CUDA kernels of the family `Scan`: inclusive scans with a fused program.

#[allow(unsafe_code)] // kernel launches
pub mod launch;
pub mod request;

use cuprum_core::{Call, Outcome, Result};

/// Runs a scan.
pub fn run_call(call: &Call) -> Result<Outcome> {
    crate::launch::compile_and_launch_call(call, |_| request::scan_request_for_call(call), launch::launch_scan_kernel)
}
