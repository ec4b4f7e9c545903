//! Device memory: this crate's pool over the driver's, a memory limit, buffers, fills and device copies.
//!
//! Free blocks are kept, up to a quarter of the device's memory. [`reclaim`] lists when they return to the device.

mod block;
mod buffer;
mod reclaim;
mod state;
mod transfer;

pub use buffer::DeviceBuffer;
pub(super) use buffer::OwningGraph;
pub(super) use state::Memory;
