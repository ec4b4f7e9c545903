//! Arrays in memory, which kernels read and return. The user's handle [`NdArray`] is defined with deferral, in `expr`.

mod stored;

pub use crate::expr::{IntoElements, NdArray};
pub use stored::*;
