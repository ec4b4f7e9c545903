//! From CUDA C++ to loaded kernels: [`libraries`] finds shared libraries and headers, [`nvrtc`] compiles, [`disk_cache`] stores
//! machine code, [`program`] turns source into a loaded [`module`]. [`source_dump`] writes sources to a folder on request.

pub mod disk_cache;
#[allow(unsafe_code)] // dlopen
pub(crate) mod dynamic_library;
mod ld_cache;
#[allow(unsafe_code)] // symbols of loaded libraries
pub mod libraries;
mod library_spec;
#[allow(unsafe_code)] // a kernel launch
pub mod minimal_launch;
#[allow(unsafe_code)] // the driver's C interface
pub mod module;
#[allow(unsafe_code)] // NVRTC's C interface
pub mod nvrtc;
mod platform;
pub mod program;
pub mod single_flight;
pub mod source_dump;
