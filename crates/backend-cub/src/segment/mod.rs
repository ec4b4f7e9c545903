//! Reductions of segments (family `Reduce`), with a fused program.

pub mod describe;
#[allow(unsafe_code)] // kernel launches
pub mod launch;

use cuprum_core::{Call, Outcome, Result};

/// Runs a reduction of segments.
pub fn run(call: &Call) -> Result<Outcome> {
    crate::launch::run(call, |_| describe::describe(call), launch::launch)
}
