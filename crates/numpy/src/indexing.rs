//! Indexing routines: index arrays, and elements at given indices.

mod choose;
mod diag_and_triangle_indices;
mod grid_indices;
mod index_bounds;
mod ravel_index;
mod select_and_piecewise;

pub use choose::*;
pub use diag_and_triangle_indices::*;
pub use grid_indices::*;
pub use index_bounds::*;
pub use ravel_index::*;
pub use select_and_piecewise::*;
