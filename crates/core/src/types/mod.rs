//! Errors, dtypes, scalars, layouts and basic indices. This layer accesses no memory.

pub mod dtype;
pub mod error;
pub mod index;
pub mod layout;
pub mod scalar;
