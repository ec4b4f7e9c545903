//! CUDA kernels of the family `Reduce` along axes, and of reductions with user code (family `Custom`).

pub mod describe;
#[allow(unsafe_code)] // kernel launches
pub mod launch;

use cuprum_core::registry::if_order_is_named;
use cuprum_core::{Call, Outcome, Result};

/// Runs a reduction.
///
/// `argmin` and `argmax` decline in the default accelerator order, because the accelerator `cuda` is faster
/// (`docs/notes/accelerator-order.md`).
pub fn run_call(call: &Call) -> Result<Outcome> {
    let describe = |addresses: &[u64]| {
        if call.op.reduction().is_some_and(|reduction| reduction.returns_index) {
            if_order_is_named("the base accelerator is faster; an order that names cub is followed")?;
        }
        describe::describe_call(call, addresses)
    };
    crate::launch::describe_and_launch(call, describe, launch::launch_request)
}
