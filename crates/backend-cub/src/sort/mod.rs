//! Family `Sort`: sorts, the first elements of sorted rows, and partitions.

pub mod describe;
#[allow(unsafe_code)] // kernel launches
pub mod launch;

use cuprum_core::{Call, Outcome, Result};

/// Runs a sort.
pub fn run(call: &Call) -> Result<Outcome> {
    crate::launch::run(call, |_| describe::describe(call), launch::launch)
}
