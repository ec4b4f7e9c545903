//! Devices, and the interface that a backend implements for its devices: memory, copies, synchronisation and timing.
//! Core itself provides only host memory (`cpu`).

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, RwLock};

use crate::buffer::HostBuffer;
use crate::error::{Error, Result};
use crate::graph::DeviceGraph;
use crate::profiler::trace;
use crate::registry;
pub use crate::stream::Stream;

/// A kind of device, identified by a name such as `"cpu"` or `"cuda"`. Backends add their own kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceKind(u8);

/// Maximum number of device kinds in a process.
pub(crate) const MAX_KINDS: usize = 8;

static KINDS: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());

impl DeviceKind {
    /// The host.
    pub const CPU: DeviceKind = DeviceKind(0);

    /// Returns the kind with this lower-case name, adding it if it is new.
    ///
    /// # Errors
    /// [`Error::Device`] if eight kinds exist already.
    pub fn intern(name: &'static str) -> Result<DeviceKind> {
        let mut kinds = KINDS.write().unwrap_or_else(|e| e.into_inner());
        if kinds.is_empty() {
            kinds.push("cpu");
        }
        if let Some(i) = kinds.iter().position(|k| *k == name) {
            return Ok(DeviceKind(i as u8));
        }
        if kinds.len() == MAX_KINDS {
            return Err(Error::Device {
                op: "register",
                message: format!("cannot add device kind '{name}': there are {MAX_KINDS} already"),
            });
        }
        kinds.push(name);
        Ok(DeviceKind(kinds.len() as u8 - 1))
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        KINDS.read().unwrap_or_else(|e| e.into_inner()).get(self.index()).copied().unwrap_or("cpu")
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A device: a kind and an ordinal. Displays as `cpu` or `cuda:0`.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// use cuprum_core::Device;
/// assert_eq!(Device::CPU.to_string(), "cpu");
/// assert_eq!(Device::parse("cpu")?, Device::CPU);
/// # Ok::<(), cuprum_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device {
    kind: DeviceKind,
    ordinal: u16,
}

impl Device {
    /// The host.
    pub const CPU: Device = Device { kind: DeviceKind::CPU, ordinal: 0 };

    /// Returns the device `ordinal` of a kind. Its existence is checked on first use.
    pub const fn new(kind: DeviceKind, ordinal: u16) -> Device {
        Device { kind, ordinal }
    }

    /// Returns the kind.
    pub fn kind(self) -> DeviceKind {
        self.kind
    }

    /// Returns the index among devices of the same kind.
    pub fn ordinal(self) -> usize {
        self.ordinal as usize
    }

    /// Parses `cpu`, `cuda`, `cuda:1`, or `auto` (the first ready GPU, else `cpu`).
    ///
    /// # Errors
    /// [`Error::Setting`] for an unknown kind, [`Error::Device`] with the reason if the device is not ready.
    pub fn parse(text: &str) -> Result<Device> {
        registry::parse_device(text)
    }

    /// Returns every ready device of this machine, the host first.
    pub fn all() -> Vec<Device> {
        registry::ready_devices()
    }

    /// Returns the device of new arrays.
    ///
    /// The first of: the innermost [`with_device`], [`Device::set_default`], `CUPRUM_DEVICE`, the first ready GPU, the host.
    ///
    /// # Errors
    /// Errors of [`Device::parse`] for the value of `CUPRUM_DEVICE`.
    pub fn current() -> Result<Device> {
        if let Some(d) = SCOPED.with(Cell::get) {
            return Ok(d);
        }
        registry::default_device()
    }

    /// Sets the default device of the process.
    ///
    /// # Errors
    /// [`Error::Device`] if the device is not ready.
    pub fn set_default(device: Device) -> Result<()> {
        driver(device)?;
        registry::set_default_device(device);
        Ok(())
    }

    /// Waits for all work on all streams of the device.
    ///
    /// Also reports asynchronous errors, such as an index out of bounds, of calls by this thread or by threads that have ended.
    /// Every reader of an array that depends on such a call gets the error too.
    pub fn synchronize(self) -> Result<()> {
        driver(self)?.synchronize()?;
        trace::flush();
        Ok(())
    }

    /// Returns the properties of the device.
    pub fn info(self) -> Result<DeviceInfo> {
        Ok(driver(self)?.info())
    }

    /// Returns the memory in use by arrays and the memory cached for reuse.
    ///
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, Device, NdArray, with_device, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// let before = Device::CPU.memory_stats()?.used;
    /// let a = with_device(Device::CPU, || zeros([1000, 1000], DType::F64))?;
    /// assert_eq!(Device::CPU.memory_stats()?.used, before + a.nbytes());
    /// # Ok(())
    /// # }
    /// ```
    pub fn memory_stats(self) -> Result<MemoryStats> {
        driver(self)?.memory_stats()
    }

    /// Sets or removes (`None`) the memory limit of the device for the process, in bytes.
    ///
    /// The initial limit is `CUPRUM_CPU_MEMORY_LIMIT` or `CUPRUM_GPU_MEMORY_LIMIT`. Live arrays stay; a request beyond the limit
    /// returns [`Error::OutOfMemory`].
    ///
    /// On the host the limit covers arrays, cached blocks, scratch memory whose size depends on the arguments, lists of
    /// [`Value`](crate::ops::value::Value), and files while they are read. Vectors and strings returned to the caller are checked
    /// when they are allocated. Scratch memory of constant size, some megabytes per thread, is not counted.
    ///
    /// # Errors
    /// [`Error::Value`] if the device has no settable limit.
    pub fn set_memory_limit(self, limit: Option<usize>) -> Result<()> {
        driver(self)?.set_memory_limit(limit)
    }

    /// Returns cached memory to the system, like `free_all_blocks` of CuPy's pools.
    ///
    /// A GPU releases cached memory automatically if a request of this process does not fit. It also releases memory if less is free
    /// for
    /// other processes than is cached; allocations and [`Device::synchronize`] check this every 100 ms. An idle process keeps its
    /// cache.
    pub fn free_all(self) -> Result<()> {
        driver(self)?.free_all()
    }
}

thread_local! {
    static SCOPED: Cell<Option<Device>> = const { Cell::new(None) };
}

/// Runs `f` with `device` as the device of new arrays on this thread.
pub fn with_device<R>(device: Device, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Device>);
    impl Drop for Restore {
        fn drop(&mut self) {
            SCOPED.with(|s| s.set(self.0));
        }
    }
    let _restore = Restore(SCOPED.with(|s| s.replace(Some(device))));
    f()
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == DeviceKind::CPU { f.write_str("cpu") } else { write!(f, "{}:{}", self.kind.name(), self.ordinal) }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

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

/// Memory use of a device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Memory in arrays.
    pub used: usize,
    /// Maximum of `used` so far.
    pub peak: usize,
    /// Memory held by the pool: rounded-up blocks of arrays, and free blocks. Excludes host blocks up to 32 KiB.
    pub reserved: usize,
    /// Memory in free blocks of the pool.
    pub cached: usize,
    /// The current limit, if any.
    pub limit: Option<usize>,
    /// Number of allocations served from free blocks.
    pub hits: u64,
    /// Number of allocations that needed new memory.
    pub misses: u64,
}

/// A block of memory on a device. Backends downcast [`Buffer::as_any`] to their own type.
pub trait Buffer: Any + Send + Sync {
    /// The device of the memory.
    fn device(&self) -> Device;
    /// Size in bytes.
    fn nbytes(&self) -> usize;
    /// Returns `self` for downcasting.
    fn as_any(&self) -> &dyn Any;
}

/// A backend's [`Event`](crate::Event): a point in a stream, with its time.
pub trait DeviceEvent: Send + Sync {
    /// Returns the milliseconds from `earlier`, an event of the same device, to this one. Waits for both.
    ///
    /// Asynchronous errors are not reported here, but by reads and [`DeviceDriver::synchronize`].
    fn millis_since(&self, earlier: &dyn DeviceEvent) -> Result<f64>;
    /// Waits for the event. By default an event is complete when it is recorded.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
    /// Whether the event is complete.
    fn is_reached(&self) -> Result<bool> {
        Ok(true)
    }
    /// Returns `self` for downcasting.
    fn as_any(&self) -> &dyn Any;
}

/// The driver of a device, provided by its base accelerator: memory, copies, synchronisation.
pub trait DeviceDriver: Send + Sync {
    /// Allocates memory with undefined contents, usable in stream order.
    fn allocate(&self, nbytes: usize, stream: Stream) -> Result<Arc<dyn Buffer>>;
    /// Allocates memory and copies host bytes into it.
    fn upload(&self, bytes: &[u8], stream: Stream) -> Result<Arc<dyn Buffer>>;
    /// Copies `out.len()` bytes from `byte_offset` of a buffer to the host, after all earlier work.
    ///
    /// Reports asynchronous errors of this thread's calls and of calls that the bytes depend on.
    fn download(&self, buffer: &dyn Buffer, byte_offset: usize, out: &mut [u8]) -> Result<()>;
    /// Waits for all work of the device.
    fn synchronize(&self) -> Result<()>;
    /// Returns the id of a new stream. By default the device is synchronous and has one stream.
    fn new_stream(&self) -> Result<u32> {
        Ok(0)
    }
    /// Waits for the work of one stream.
    fn synchronize_stream(&self, _stream: Stream) -> Result<()> {
        self.synchronize()
    }
    /// Records an event after the work queued on `stream` so far.
    fn record_event(&self, stream: Stream) -> Result<Box<dyn DeviceEvent>>;
    /// Makes `stream` wait for an event of any device. By default the host waits.
    fn wait_event(&self, _stream: Stream, event: &dyn DeviceEvent) -> Result<()> {
        event.synchronize()
    }
    /// Starts to capture this thread's work into a graph instead of running it. Returns the stream that captures.
    ///
    /// Unsupported by default.
    fn begin_capture(&self) -> Result<Stream> {
        Err(Error::Device { op: "graph", message: "the device runs work synchronously and cannot capture it into a graph".into() })
    }
    /// Ends a capture and returns the graph.
    fn end_capture(&self, _stream: Stream) -> Result<Box<dyn DeviceGraph>> {
        self.begin_capture().and(Err(Error::value("graph", "no capture is in progress")))
    }
    /// Discards a capture.
    fn abandon_capture(&self, _stream: Stream) {}
    /// Copies `nbytes` between two buffers of the device, each with a byte offset, for [`Graph::update`](crate::Graph::update).
    fn copy_within(&self, _to: (&dyn Buffer, usize), _from: (&dyn Buffer, usize), _nbytes: usize, _stream: Stream) -> Result<()> {
        Err(Error::value("graph", "the device cannot copy between its buffers"))
    }
    /// Returns the properties of the device.
    fn info(&self) -> DeviceInfo;
    /// Returns the counters of the device's allocator. By default only the memory in use is known.
    fn memory_stats(&self) -> Result<MemoryStats> {
        let used = self.info().memory_used;
        Ok(MemoryStats { used, reserved: used, ..MemoryStats::default() })
    }
    /// Sets or removes the memory limit.
    fn set_memory_limit(&self, _limit: Option<usize>) -> Result<()> {
        Err(Error::value("set_memory_limit", "the device has no settable memory limit"))
    }
    /// Returns cached memory to the system. By default nothing is cached.
    fn free_all(&self) -> Result<()> {
        Ok(())
    }
    /// Marks a range of this thread's work for the vendor's profiling tools, until the value is dropped. No effect by default.
    fn mark_range(&self, _name: &str) -> Option<Box<dyn Any>> {
        None
    }
    /// Starts or stops the recording of an attached profiler. No effect by default.
    fn set_profiling(&self, _on: bool) -> Result<()> {
        Ok(())
    }
    /// Returns the number of programs that this process has compiled for this kind of device; `None` if it compiles nothing.
    fn compiled(&self) -> Option<usize> {
        None
    }
    /// Allocates pinned host memory, which the device copies from directly; see [`NdArray::pin_memory`](crate::NdArray::pin_memory).
    ///
    /// By default any host memory.
    fn pinned(&self, nbytes: usize) -> Result<HostBuffer> {
        HostBuffer::uninit(nbytes)
    }
    /// Copies a buffer of another device or of pinned host memory directly; `None` if [`DeviceDriver::upload`] is needed.
    ///
    /// The copy may be asynchronous, and keeps its source alive then.
    fn upload_from(&self, _source: &Arc<dyn Buffer>, _stream: Stream) -> Option<Result<Arc<dyn Buffer>>> {
        None
    }
}

/// Returns the driver of a device. Opens the device on first use; lock-free afterwards.
pub fn driver(device: Device) -> Result<&'static dyn DeviceDriver> {
    registry::driver(device)
}
