//! Device memory and streams that this crate shares with other CUDA libraries, as device addresses or as [`cudarc`]'s slices.
//!
//! No function blocks the host or copies elements, except that [`SharedPointer::for_writing`] copies an array if other owners share its
//! memory. The primary context of the device is shared: CUDA's runtime, PyTorch, CuPy and cudarc use it too.
//!
//! | direction | function | order |
//! |---|---|---|
//! | address in | [`from_device_pointer`], [`wrap_device_memory`] | later work of this crate runs after the work queued on the given stream |
//! | address out | [`SharedPointer`] | the given stream waits for the work that computes the array |
//! | `CudaSlice` in | [`from_cuda_slice`] | later work runs after the work on the slice |
//! | `CudaSlice` out | [`SharedSlice`] | the given stream waits for the work that computes the array |
//! | stream out | [`raw_stream`] | the other library queues its work on a stream of this crate, or orders its work with that stream |
//!
//! # Contract
//!
//! - Arrays are immutable values. While an array over foreign memory exists, nothing writes to the memory. This crate never writes to
//!   foreign memory, and never returns it to its own pool.
//! - The owner of foreign memory is dropped after the device has finished this crate's last use of the memory. If the streams that used the
//!   memory are idle, this happens at once. Otherwise it happens in a later call that allocates new memory or waits, on any thread.
//! - Dropping a [`SharedPointer`] or [`SharedSlice`] orders the reuse of the memory after the work queued so far on its stream. Without a
//!   stream, the drop blocks until the device is idle.
//! - A fault of a kernel, such as an index out of bounds, is reported to readers of the array, not to the other library. To rule out
//!   faults, call [`Device::synchronize`](cuprum_core::Device::synchronize) before giving an array to another library.
//! - These functions return an error during the capture of a graph, except [`raw_stream`].

mod cuda_slice;
mod foreign_array;
mod foreign_stream;
mod shared_pointer;

pub use cuda_slice::{SharedSlice, from_cuda_slice};
pub use foreign_array::{from_device_pointer, wrap_device_memory};
pub use foreign_stream::{ForeignStream, raw_stream};
pub use shared_pointer::SharedPointer;
