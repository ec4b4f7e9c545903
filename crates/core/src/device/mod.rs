//! Devices: identity, driver interface, streams, host buffers and the host's memory pool.

pub mod buffer;
mod driver;
pub(crate) mod pool;
pub mod stream;

pub use driver::*;
