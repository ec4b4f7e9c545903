//! Foundations shared by all kernel crates of the CPU backend: threads, SIMD levels, typed views of host memory, prefetching, strided
//! copies.
//!
//! The crate contains no kernel and no operation. Its generic functions are compiled in the crates that call them. The interface is
//! internal to `cuprum-backend-cpu` and changes with that crate.
#![deny(unsafe_code)]
#![allow(clippy::len_without_is_empty, reason = "kernels only compare lengths")]

pub mod cache_hints;
pub mod simd;
pub mod strided;
pub mod threads;
pub mod transpose;
pub mod typed_views;
pub mod user_operations;
