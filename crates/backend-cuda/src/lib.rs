//! The CUDA backend of cuprum. All CUDA libraries are loaded at run time, so the build needs none of them.
//!
//! The modules, lowest layer first:
//!
//! - [`driver`]: contexts, streams, memory, copies, events, graph capture.
//! - [`compile`]: library search, NVRTC, the disk cache of kernels, loaded modules and launches.
//! - [`codegen`]: CUDA C++ source for fused expressions.
//! - [`families`]: the kernels of each operation family, such as maps, reductions and sorts.
//! - [`user_kernels`]: kernels that the user writes.
//! - [`interop`]: memory and streams of other CUDA libraries.
//!
//! [`device`] implements the core crate's device interface, [`launch_cache`] caches kernels per thread, and [`accelerator`] registers the
//! accelerator `cuda` and NCCL, which the module `collectives` binds.
//!
//! `unsafe` code is denied by default. Each module that needs it has an `allow` attribute with the reason.

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
