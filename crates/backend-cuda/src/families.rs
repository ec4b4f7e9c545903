//! The kernels of the accelerator `cuda`, one module per operation family. The module `kernel_lookup` looks up compiled kernel functions by
//! key, and compiles those that are missing.

#[allow(unsafe_code)] // kernel launches
pub mod contract;
#[allow(unsafe_code)] // kernel launches, the driver's copies
pub mod copy;
#[allow(unsafe_code)] // kernel launches
pub mod fft;
#[allow(unsafe_code)] // kernel launches
pub mod fill;
#[allow(unsafe_code)] // kernel launches
pub mod gather;
#[allow(unsafe_code)] // kernel launches
pub mod histogram;
#[allow(unsafe_code)] // kernel launches
mod indexed_loop;
pub(crate) mod kernel_lookup;
#[allow(unsafe_code)] // kernel launches
pub mod linalg;
#[allow(unsafe_code)] // kernel launches
pub mod map;
#[allow(unsafe_code)] // kernel launches
pub mod random;
#[allow(unsafe_code)] // kernel launches
pub mod reduce;
#[allow(unsafe_code)] // kernel launches
pub mod rows;
#[allow(unsafe_code)] // kernel launches
pub mod scan;
#[allow(unsafe_code)] // kernel launches
pub mod scatter;
#[allow(unsafe_code)] // kernel launches
pub mod search;
#[allow(unsafe_code)] // kernel launches
pub mod segment;
#[allow(unsafe_code)] // kernel launches
pub mod select;
#[allow(unsafe_code)] // kernel launches
pub mod sort;
#[allow(unsafe_code)] // kernel launches
pub mod sparse;
