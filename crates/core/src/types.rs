//! Identities of devices, errors, dtypes, scalars, layouts, arguments and basic indices. This layer accesses no memory.

pub mod arguments;
pub mod device;
pub mod dtype;
mod dtype_names;
pub mod error;
pub mod index;
pub mod layout;
pub mod rounding;
pub mod scalar;
pub mod scalar_conversion;
