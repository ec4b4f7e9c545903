//! Device memory: a pool of free blocks on top of the driver's memory pool, a memory limit, buffers, fills and device copies, and memory of
//! other libraries.
//!
//! The pool keeps free blocks up to a quarter of the device's memory. The module [`reclaim`] lists the cases in which free blocks return to
//! the device.

mod block_allocation;
mod buffer;
mod context_allocator;
mod fill_and_copy;
mod foreign_memory;
mod reclaim;

pub use buffer::DeviceBuffer;
pub(super) use buffer::OwningGraph;
pub(super) use context_allocator::ContextAllocator;
pub(crate) use foreign_memory::ForeignAccess;
