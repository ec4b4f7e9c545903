//! Arrays in memory ([`StoredArray`]), which kernels read and return. The module `expr` defines the user's handle [`NdArray`], together
//! with deferred evaluation.

mod stored_array;

pub use crate::expr::{IntoElements, NdArray};
pub use stored_array::*;
