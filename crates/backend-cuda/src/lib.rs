//! The CUDA backend of cuprum. Every CUDA library is loaded at run time, after a probe; none is needed to build.
//!
//! Foundations, from the bottom: [`libraries`] finds shared libraries and headers, [`nvrtc`] compiles, [`cache`]
//! keeps cubins on disk.
//!
//! `unsafe` is denied here and allowed only in the modules marked below.

#![deny(unsafe_code)]

pub mod cache;
pub mod error;
mod ld_cache;
#[allow(unsafe_code)] // dlopen
pub mod libraries;
#[allow(unsafe_code)] // NVRTC's C interface
pub mod nvrtc;

pub use error::{CudaError, Result};
