//! Plans shared by all backends: merged axes, loop order, and memory patterns of reductions.
//!
//! Planning is arithmetic on shapes and strides, independent of memory and devices.

pub mod contract;
pub mod elementwise;
pub mod reduce;
pub mod rows;
pub mod scan;
pub mod sort;
