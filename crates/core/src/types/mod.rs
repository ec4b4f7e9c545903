//! Identities of devices, errors, dtypes, scalars, layouts and basic indices. This layer accesses no memory.

pub mod device;
pub mod dtype;
pub mod error;
pub mod index;
pub mod layout;
mod parse;
pub mod scalar;
