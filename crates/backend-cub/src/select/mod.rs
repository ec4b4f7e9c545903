//! Family `Select`: the elements at which a condition holds, and their indices, with a fused program.

pub mod describe;
#[allow(unsafe_code)] // kernel launches
pub mod launch;

use cuprum_core::{Call, Outcome, Result};

/// Runs a selection. Waits for the number of selected elements.
pub fn run(call: &Call) -> Result<Outcome> {
    crate::launch::run(call, |addresses| describe::describe(call, addresses), launch::launch)
}
