//! The interface that a backend implements for its devices: memory, copies, synchronisation and timing.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::device_memory::{Buffer, MemoryStats};
use super::host_buffer::HostBuffer;
use super::stream::Stream;
use crate::error::{Error, Result};

/// Properties of a device, for `cuprum info`.
#[derive(Clone, Debug, Default)]
pub struct DeviceInfo {
    /// Product name.
    pub name: String,
    /// Number of compute units: cores of a CPU, multiprocessors of a GPU.
    pub units: usize,
    /// Total memory in bytes; 0 if unknown.
    pub memory_total: usize,
    /// Memory used by cuprum, in bytes.
    pub memory_used: usize,
    /// Further properties as name and value (SIMD level, compute capability, driver).
    pub details: Vec<(&'static str, String)>,
}

impl fmt::Display for DeviceInfo {
    /// Formats the properties on one line: name, compute units, memory in GiB, details.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} units", self.name, self.units)?;
        if self.memory_total > 0 {
            write!(f, ", {:.1} GiB", self.memory_total as f64 / (1u64 << 30) as f64)?;
        }
        self.details.iter().try_for_each(|(name, value)| write!(f, ", {name} {value}"))
    }
}

/// A backend's [`Event`](crate::Event): a marker in the queue of a stream, with the time at which the stream reaches it.
pub trait DeviceEvent: Send + Sync {
    /// Returns the milliseconds from `earlier`, an event of the same device, to this one. Waits for both events.
    ///
    /// This function does not report asynchronous errors. Reads and [`DeviceDriver::synchronize`] report them.
    fn millis_since(&self, earlier: &dyn DeviceEvent) -> Result<f64>;
    /// Blocks the host until the stream has reached the event. The default implementation returns at once, for devices that run work
    /// synchronously.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
    /// Returns whether the stream has reached the event. The default implementation returns true, for devices that run work synchronously.
    fn is_reached(&self) -> Result<bool> {
        Ok(true)
    }
    /// Returns `self` for downcasting.
    fn as_any(&self) -> &dyn Any;
}

/// The driver of a device: memory, copies, synchronisation.
///
/// Dispatch tries the accelerators of a device kind in order. The last one is the base accelerator, which has a kernel for every operation. It
/// also provides the drivers of all devices of its kind ([`Accelerator::base`](crate::Accelerator::base)).
pub trait DeviceDriver: Send + Sync {
    /// Allocates `nbytes` of memory with undefined contents, for work that is queued on `stream` afterwards.
    fn allocate(&self, nbytes: usize, stream: Stream) -> Result<Arc<dyn Buffer>>;
    /// Allocates memory and copies the host `bytes` into it. The copy runs in order with the other work of `stream`.
    fn upload(&self, bytes: &[u8], stream: Stream) -> Result<Arc<dyn Buffer>>;
    /// Copies `out.len()` bytes of a buffer, starting at `byte_offset`, to the host. The copy runs after all earlier work that writes the
    /// buffer.
    ///
    /// Reports asynchronous errors of this thread's calls and of calls that the bytes depend on.
    fn download(&self, buffer: &dyn Buffer, byte_offset: usize, out: &mut [u8]) -> Result<()>;
    /// Blocks the host until all work of the device is done.
    fn synchronize(&self) -> Result<()>;
    /// Returns whether `flag` is true in all processes that share the device. All of them call this function, and all get the same result.
    ///
    /// By default, returns `flag`, for devices of one process.
    fn is_true_in_all_processes(&self, flag: bool) -> Result<bool> {
        Ok(flag)
    }
    /// Returns the id of a new stream. By default, the device is synchronous and has only stream 0.
    fn new_stream(&self) -> Result<u32> {
        Ok(0)
    }
    /// Blocks the host until the work of the given stream is done.
    fn synchronize_stream(&self, _stream: Stream) -> Result<()> {
        self.synchronize()
    }
    /// Records an event after the work queued on `stream` so far.
    fn record_event(&self, stream: Stream) -> Result<Box<dyn DeviceEvent>>;
    /// Makes later work of the given stream wait for `event`, which may be of another device. The default implementation blocks the host
    /// until the event is reached.
    fn wait_event(&self, _stream: Stream, event: &dyn DeviceEvent) -> Result<()> {
        event.synchronize()
    }
    /// Starts a capture and returns its stream. Work that this thread queues on that stream is recorded into a graph instead of running.
    ///
    /// By default, returns an error.
    fn begin_capture(&self) -> Result<Stream> {
        Err(Error::Device { op: "graph", message: "the device runs work synchronously and cannot capture it into a graph".into() })
    }
    /// Ends the capture on the given stream and returns the captured graph.
    fn end_capture(&self, _stream: Stream) -> Result<Box<dyn DeviceGraph>> {
        self.begin_capture().and(Err(Error::value("graph", "no capture is in progress")))
    }
    /// Discards the capture on the given stream.
    fn abandon_capture(&self, _stream: Stream) {}
    /// Queues a copy of `nbytes` between two buffers of the device, for [`Graph::update`](crate::Graph::update). Each buffer comes with a
    /// byte offset.
    ///
    /// By default, returns an error.
    fn copy_between_buffers(&self, _to: (&dyn Buffer, usize), _from: (&dyn Buffer, usize), _nbytes: usize, _stream: Stream) -> Result<()> {
        Err(Error::value("graph", "the device cannot copy between its buffers"))
    }
    /// Returns the properties of the device.
    fn info(&self) -> DeviceInfo;
    /// Returns the counters of the device's allocator. By default only the memory in use is known.
    fn memory_stats(&self) -> Result<MemoryStats> {
        let used = self.info().memory_used;
        Ok(MemoryStats { used, reserved: used, ..MemoryStats::default() })
    }
    /// Sets the peak of the memory in use to the memory in use now. No effect by default, for devices without that counter.
    fn reset_peak_memory(&self) -> Result<()> {
        Ok(())
    }
    /// Sets the memory limit of the device in bytes, or removes it (`None`).
    fn set_memory_limit(&self, _limit: Option<usize>) -> Result<()> {
        Err(Error::value("set_memory_limit", "the device has no settable memory limit"))
    }
    /// Returns cached memory to the system. By default nothing is cached.
    fn free_cached_memory(&self) -> Result<()> {
        Ok(())
    }
    /// Marks a range of this thread's work for the vendor's profiling tools, until the returned value is dropped. Returns `None`, the
    /// default, if the backend has no interface to such tools.
    fn begin_profiler_range(&self, _name: &str) -> Option<Box<dyn Any>> {
        None
    }
    /// Starts or stops the recording of an attached profiler. No effect by default.
    fn set_profiling(&self, _on: bool) -> Result<()> {
        Ok(())
    }
    /// Returns the number of programs that this process has compiled for this kind of device. Returns `None` if the backend of the device
    /// compiles nothing.
    fn compiled_program_count(&self) -> Option<usize> {
        None
    }
    /// Allocates host memory for fast copies to the device: pinned memory, which the device copies from directly. See
    /// [`NdArray::pin_memory`](crate::NdArray::pin_memory).
    ///
    /// The default implementation allocates ordinary host memory, for backends without pinned memory.
    fn allocate_pinned(&self, nbytes: usize) -> Result<HostBuffer> {
        HostBuffer::uninit(nbytes)
    }
    /// Copies a range of bytes from a buffer of another device or of pinned host memory to a new buffer of this device. Returns `None`
    /// without a copy if the driver cannot read this range of `source`; the caller then passes the bytes to [`DeviceDriver::upload`].
    ///
    /// The implementation keeps `source` alive until an asynchronous copy has finished.
    fn copy_from_other_device(&self, _source: &Arc<dyn Buffer>, _bytes: Range<usize>, _stream: Stream) -> Option<Result<Arc<dyn Buffer>>> {
        None
    }
}

/// A backend's [`Graph`](crate::Graph): the captured work and the memory it uses.
pub trait DeviceGraph: Send + Sync {
    /// Queues the graph on `stream`, after all pending work that uses the graph's arrays.
    fn launch_graph(&self, stream: Stream) -> Result<()>;
    /// Returns whether the graph keeps `buffer` alive, because the captured work uses it.
    fn keeps_buffer_alive(&self, buffer: &dyn Buffer) -> bool;
    /// Returns the number of kernels, copies and fills in the graph.
    fn node_count(&self) -> usize;
}
