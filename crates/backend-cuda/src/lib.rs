//! The CUDA backend of cuprum. Every CUDA library is loaded at run time, after a probe; none is needed to build.
//!
//! Foundations, from the bottom: [`libraries`] finds shared libraries and headers, [`driver`] owns contexts, memory,
//! copies and events, [`nvrtc`] compiles, [`cache`] keeps cubins on disk, [`module`] loads and launches kernels,
//! [`program`] ties source text to a loaded module, [`cublas`] multiplies matrices.
//!
//! On them stand [`device`], which gives core its arrays' memory, [`accelerator`], the base accelerator `cuda`,
//! [`codegen`], which turns expressions into CUDA C++, and a module for each family of kernels.
//!
//! `unsafe` is denied here and allowed only in the modules marked below.

#![deny(unsafe_code)]

pub mod accelerator;
pub mod cache;
pub mod codegen;
#[allow(unsafe_code)] // kernel launches
pub mod contract;
#[allow(unsafe_code)] // kernel launches, the driver's copies
pub mod copy;
#[allow(unsafe_code)] // cuBLAS's C interface
pub mod cublas;
pub mod device;
#[allow(unsafe_code)] // the driver's C interface
pub mod driver;
pub mod dump;
pub mod error;
#[allow(unsafe_code)] // kernel launches
pub mod fill;
#[allow(unsafe_code)] // kernel launches
pub mod gather;
#[allow(unsafe_code)] // kernel launches
pub mod histogram;
mod kernel;
mod ld_cache;
#[allow(unsafe_code)] // dlopen
pub mod libraries;
#[allow(unsafe_code)] // kernel launches
pub mod map;
#[allow(unsafe_code)] // the driver's C interface
pub mod module;
#[allow(unsafe_code)] // NVRTC's C interface
pub mod nvrtc;
pub mod program;
#[allow(unsafe_code)] // kernel launches
pub mod random;
pub mod raw;
pub mod recent;
#[allow(unsafe_code)] // kernel launches
pub mod reduce;
#[allow(unsafe_code)] // kernel launches
pub mod rows;
#[allow(unsafe_code)] // kernel launches
pub mod scan;
#[allow(unsafe_code)] // kernel launches
pub mod search;
#[allow(unsafe_code)] // kernel launches
pub mod segment;
#[allow(unsafe_code)] // kernel launches
pub mod select;
pub mod single_flight;
#[allow(unsafe_code)] // kernel launches
pub mod sort;

pub use accelerator::{CUDA, register};
pub use error::{CudaError, Result};
