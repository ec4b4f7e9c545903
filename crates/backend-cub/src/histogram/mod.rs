//! Family `Histogram`: counts of values per bin, with a fused program.

pub mod describe;
#[allow(unsafe_code)] // kernel launches
pub mod launch;

use cuprum_core::{Call, Outcome, Result};

/// Runs `histogram` or `bincount`.
pub fn run(call: &Call) -> Result<Outcome> {
    crate::launch::run(call, |addresses| describe::describe(call, addresses), launch::launch)
}
