//! Operations: definitions, fused programs, code of user-defined operations, plans and calls.

pub mod body;
pub mod call;
mod capability;
mod op_definition;
pub mod plan;
pub mod program;

pub use capability::{Capabilities, Capability};
pub use op_definition::*;
