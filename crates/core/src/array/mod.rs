//! Arrays: the trait, arrays in memory, and the user's handle.

mod handle;

pub use handle::*;
