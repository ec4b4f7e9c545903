//! The lowest layer: device identities, errors, dtypes, scalars, layouts, arguments and basic indices. No code in this layer accesses array
//! memory.

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
