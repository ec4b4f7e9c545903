//! Device memory: a pool of free blocks over the driver's pool, a memory limit, buffers, fills and device copies, and memory
//! of other libraries.
//!
//! The pool keeps free blocks up to a quarter of the device's memory. [`reclaim`] lists when they return to the device.

mod block;
mod buffer;
mod foreign;
mod reclaim;
mod state;
mod transfer;

pub use buffer::DeviceBuffer;
pub(super) use buffer::OwningGraph;
pub(crate) use foreign::Access;
pub(super) use state::Memory;
