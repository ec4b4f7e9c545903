//! Elementwise loops of the CPU backend: one loop per operation and dtype, over contiguous slices that are short enough for the first-level
//! cache.
//!
//! `operation_table` lists the operations, `cast` the conversions, `half` the 16-bit floats. The crate has no arrays, fused programs or
//! threads: `cuprum-backend-cpu` splits arrays into slices. The interface is internal to that crate and changes with it.
#![deny(unsafe_code)]

pub mod cast;
pub mod complex;
pub mod elementwise_loops;
mod float;
pub mod half;
mod int;
pub mod operation_table;
