//! The interface to the CUDA driver: probe, contexts, memory, copies, events, graphs, faults of kernels. The module contains unsafe code.
//!
//! Every driver call goes through [`sys`]. [`probe_driver`] checks that the driver has all functions that this crate requires, and a
//! [`Context`] is created only if the probe succeeds.
//!
//! Memory belongs to the stream on which it was allocated. A freed block may be reused on that stream at once, because the device runs the
//! stream's work in order. The module `stream_order` orders the accesses of other streams to the block.
//!
//! The modules, lowest layer first. Each module imports only from modules that this list names before it or in the same line:
//!
//! - `sys`, `stream_order`, `free_blocks`, `recent_work`: the C interface, and logic that does not call the driver.
//! - `primary_context`, `driver_probe`: primary contexts, lost devices, and the detection of the driver.
//! - `stream_table`, `memory::context_allocator`, `context`, `per_device`: [`Context`] and its state.
//! - `streams`, `stream_mark`, `event`, `in_flight_owners`: current stream, waits, events.
//! - `memory`: allocation, buffers, copies between buffers, and the return of free memory to the device.
//! - `fault`, `graph_capture`: faults of kernels, graphs.
//! - `scratch`, `staging_copies`, `pinned_memory`, `synchronize`: buffers, copies and waits that use all layers above.

mod context;
mod driver_probe;
mod event;
pub mod fault;
mod free_blocks;
mod graph_capture;
mod in_flight_owners;
mod memory;
mod mutex_lock;
mod per_device;
mod pinned_memory;
mod primary_context;
pub mod profiler;
pub(crate) mod recent_work;
mod scratch;
mod staging_copies;
mod stream_mark;
mod stream_order;
mod stream_table;
mod streams;
mod synchronize;
#[allow(non_snake_case, clippy::too_many_arguments)] // the names and signatures of cuda.h
pub mod sys;

pub use context::Context;
pub use driver_probe::{DeviceInfo, DriverInfo, probe_driver, require_function};
pub use event::Event;
pub use graph_capture::Graph;
pub use memory::DeviceBuffer;
pub(crate) use memory::ForeignAccess;
pub(crate) use per_device::PerDevice;
pub(crate) use pinned_memory::{allocate_pinned, is_pinned};
pub(crate) use primary_context::check_result;
pub use scratch::{SCRATCH_COUNTER_COUNT, ScratchMemory};
