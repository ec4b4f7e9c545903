//! Dispatch: the registry of accelerators, the walk along a chain, tuning, and the trace of calls.

pub mod registry;
pub mod trace;
pub mod tuning;
mod walk;

pub use walk::*;
