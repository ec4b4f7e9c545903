//! Indexing routines: index arrays, and elements at given indices.

mod bounds;
mod choose;
mod diag_and_triangle_indices;
mod indices;
mod ravel_index;
mod select;

pub use bounds::*;
pub use choose::*;
pub use diag_and_triangle_indices::*;
pub use indices::*;
pub use ravel_index::*;
pub use select::*;
