//! Elementwise loops of the CPU backend: one per operation and dtype, over contiguous slices that fit a tile.
//!
//! `table` has a row per operation, `cast` the conversions, `half` the 16-bit floats. The crate knows no array, program or thread; tiles
//! and the Map family belong to `cuprum-backend-cpu`. The interface is internal to that crate and changes with it.
#![deny(unsafe_code)]

pub mod cast;
pub mod complex;
mod float;
pub mod half;
mod int;
pub mod loops;
pub mod table;
