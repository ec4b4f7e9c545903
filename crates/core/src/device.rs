//! Devices: identity, driver interface, streams, host buffers and the host's memory pool. This crate implements only the memory of the
//! host; backends implement other devices.

pub mod buffer;
pub mod collectives;
mod current_device;
mod device_drivers;
mod device_memory;
mod driver;
mod event;
mod host;
pub(crate) mod host_pool;
pub mod stream;

pub(crate) use crate::types::device::MAX_KINDS;
pub use crate::types::device::{Device, DeviceKind};
pub use current_device::with_device;
pub use device_drivers::driver;
pub(crate) use device_drivers::{DeviceSource, MAX_ORDINALS, SynchronizeHook};
pub use device_memory::{Buffer, MemoryStats};
pub use driver::*;
pub use stream::Stream;
