//! Operations: definitions, fused programs, code of user-defined operations, plans and calls.

pub mod body;
pub mod call;
mod kernel_capability;
mod op_definition;
pub mod plan;
pub mod program;

pub use kernel_capability::{Capabilities, Capability};
pub use op_definition::*;
