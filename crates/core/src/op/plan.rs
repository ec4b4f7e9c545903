//! Plans that all backends share: merged axes, the order of loops, and memory patterns of reductions.
//!
//! Planning is arithmetic on shapes and strides. It does not depend on memory or devices.

pub mod contract;
pub mod elementwise;
pub mod reduce;
pub mod row_loop;
pub mod scan;
pub mod sort;
