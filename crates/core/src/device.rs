//! Devices: identity, driver interface, streams, host buffers and the host's memory pool. This crate implements only the memory of the
//! host; backends implement other devices.

pub mod collectives;
mod current_device;
mod device_drivers;
mod device_memory;
mod driver;
mod event;
pub mod host_buffer;
mod host_driver;
pub(crate) mod host_pool;
pub mod stream;
mod stream_operations;

pub(crate) use crate::types::device::MAX_DEVICE_KINDS;
pub use crate::types::device::{Device, DeviceKind};
pub use current_device::with_device;
pub use device_drivers::driver;
pub(crate) use device_drivers::{MAX_DEVICES_PER_KIND, RegistryHooks, SynchronizeHook};
pub use device_memory::{Buffer, MemoryStats};
pub use driver::*;
pub use stream::Stream;
