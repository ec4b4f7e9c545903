//! NumPy's functions that are compositions of core's operations, with one file for each page of NumPy's reference.
//!
//! Every function is declared by `#[numpy(..)]`, so that it can be called by name. Compositions need no kernels and run on every device.
#![forbid(unsafe_code)]

// Paths that `#[numpy(..)]` writes begin with the facade's name.
extern crate cuprum_core as cuprum;

pub mod creation;
pub mod linalg;
pub mod logic;
pub mod manipulation;
pub mod nan;
pub mod statistics;

pub use creation::{asarray, asnumpy};
pub use logic::{Tolerance, allclose, array_equal, isclose};
pub use manipulation::{fliplr, flipud, hstack, matrix_transpose, vstack};
pub use nan::{nanprod, nansum};
pub use statistics::ptp;
