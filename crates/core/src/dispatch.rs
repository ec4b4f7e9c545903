//! Dispatch: the registry of accelerators, the choice of a kernel among a device's accelerators, tuning, and the trace of calls.

mod accelerator_chain;
mod call_record;
mod compile_mode;
mod explain;
mod kernel;
pub mod registry;
pub mod trace;
pub mod tuning;

pub use accelerator_chain::*;
pub use call_record::{CallRecord, KernelLaunch};
pub use compile_mode::compile_mode;
pub use explain::{explain, record_launch};
