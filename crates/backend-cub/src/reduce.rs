//! CUDA kernels of the family `Reduce` along axes, and of reductions with user code (family `Custom`).

#[allow(unsafe_code)] // kernel launches
pub mod launch;
pub mod request;

use cuprum_core::registry::decline_unless_order_is_set;
use cuprum_core::{Call, Outcome, Result};

/// Runs a reduction.
///
/// `argmin` and `argmax` are declined in the default accelerator order, because the accelerator `cuda` is faster
/// (`docs/notes/accelerator-order.md`).
pub fn run_call(call: &Call) -> Result<Outcome> {
    let describe = |addresses: &[u64]| {
        if call.op.reduction().is_some_and(|reduction| reduction.returns_index) {
            decline_unless_order_is_set("the base accelerator is faster; an order that names cub is followed")?;
        }
        request::reduce_request_for_call(call, addresses)
    };
    crate::launch::compile_and_launch_call(call, describe, launch::launch_reduce_kernel)
}
