//! Devices: identity, driver interface, streams, host buffers and the host's memory pool. Core itself provides only host memory (`cpu`).

pub mod buffer;
mod current;
mod driver;
mod event;
mod host;
mod memory;
mod open;
pub(crate) mod pool;
pub mod stream;

pub(crate) use crate::types::device::MAX_KINDS;
pub use crate::types::device::{Device, DeviceKind};
pub use current::with_device;
pub use driver::*;
pub use memory::{Buffer, MemoryStats};
pub use open::driver;
pub(crate) use open::{DeviceSource, MAX_ORDINALS, SynchronizeHook};
pub use stream::Stream;
