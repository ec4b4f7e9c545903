//! Device memory: a pool of free blocks over the driver's pool, a memory limit, buffers, fills and device copies.
//!
//! The pool keeps free blocks up to a quarter of the device's memory. [`reclaim`] lists when they return to the device.

mod block;
mod buffer;
mod reclaim;
mod state;
mod transfer;

pub use buffer::DeviceBuffer;
pub(super) use buffer::OwningGraph;
pub(super) use state::Memory;
