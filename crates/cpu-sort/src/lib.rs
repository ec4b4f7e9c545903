//! Kernels of the CPU backend for the families `Sort` and `Search`, with the sort algorithms that they use.
//!
//! The kernels read arrays in memory. Kernels that read fused expressions are in `cuprum-backend-cpu`. The interface is internal to that
//! crate and changes with it.
#![deny(unsafe_code)]

mod complex_sort;
mod counting_sort;
mod key_coding;
pub mod key_sort;
mod radix_partition;
mod radix_sort;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "no registers for it"))]
mod register_sort;
mod row_sort;
#[cfg(target_arch = "x86_64")]
mod simd_registers;
pub mod sort;
mod sort_key;
mod sort_record;
pub mod sorted_search;
mod sorting_network;

pub use self::sort_key::Ordered;
