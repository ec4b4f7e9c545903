//! The CUDA backend of cuprum. Every CUDA library is loaded at run time, after a probe. The build needs no CUDA library.
//!
//! The modules, lowest layer first:
//!
//! - [`driver`]: contexts, streams, memory, copies, events, graph capture.
//! - [`compile`]: library search, NVRTC, the disk cache of kernels, loaded modules and launches.
//! - [`codegen`]: CUDA C++ for expressions, and the keys of the kernels.
//! - [`families`]: the kernels of each family of calls.
//! - [`user_kernels`]: kernels that the user writes.
//! - [`interop`]: memory and streams of other CUDA libraries.
//!
//! [`device`] implements the core crate's device interface, [`launch_cache`] caches kernels per thread, and [`accelerator`] registers the
//! accelerator `cuda` and NCCL, which the module `collectives` binds.
//!
//! `unsafe` is denied here and allowed only in the modules marked with a reason.

#![deny(unsafe_code)]

pub mod accelerator;
pub mod codegen;
mod collectives;
pub mod compile;
pub mod device;
#[allow(unsafe_code)] // the driver's C interface
pub mod driver;
pub mod error;
pub mod families;
#[allow(unsafe_code)] // addresses and streams of other libraries
pub mod interop;
pub mod launch_cache;
pub mod testing;
pub mod user_kernels;

pub use accelerator::{CUDA, register};
pub use compile::{libraries, module, nvrtc, program, single_flight};
pub use cudarc;
pub use error::{CudaError, Result};
pub use families::contract::cublas;
pub use families::fft::cufft;
pub use families::linalg::cusolver;
