//! Dispatch: the registry of accelerators, the choice of a kernel from its chain, tuning, and the trace of calls.

mod compile;
mod explain;
mod record;
pub mod registry;
pub mod trace;
pub mod tuning;
mod walk;

pub use compile::compile;
pub use explain::{explain, record_launch};
pub use record::{KernelLaunch, Record};
pub use walk::*;
