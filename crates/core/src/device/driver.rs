//! Devices, and what a backend must provide so that arrays can live on one: memory, copies, waiting, timing.
//! No backend is named here but the host (`cpu`), which core itself provides the memory of.

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

/// A kind of device, known by its name (`"cpu"`, `"cuda"`). The set is open: a backend interns its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceKind(u8);

/// How many kinds one process can know; an array of chains is indexed by it.
pub(crate) const MAX_KINDS: usize = 8;

static KINDS: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());

impl DeviceKind {
    /// The host.
    pub const CPU: DeviceKind = DeviceKind(0);

    /// The kind of this name, made known if it is new. The name must be lower case. Past eight kinds, an error.
    pub fn intern(name: &'static str) -> Result<DeviceKind> {
        let mut kinds = KINDS.write().unwrap_or_else(|e| e.into_inner());
        if kinds.is_empty() {
            kinds.push("cpu");
        }
        if let Some(i) = kinds.iter().position(|k| *k == name) {
            return Ok(DeviceKind(i as u8));
        }
        if kinds.len() == MAX_KINDS {
            return Err(Error::Device { op: "register", message: format!("no room for device kind '{name}': {MAX_KINDS} are known") });
        }
        kinds.push(name);
        Ok(DeviceKind(kinds.len() as u8 - 1))
    }

    /// The name it was made known by.
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

/// One device: a kind and a number. Prints as `cpu`, `cuda:0`.
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

    /// Number `ordinal` of a kind; whether it exists shows at first use.
    pub const fn new(kind: DeviceKind, ordinal: u16) -> Device {
        Device { kind, ordinal }
    }

    /// Its kind.
    pub fn kind(self) -> DeviceKind {
        self.kind
    }

    /// Its number among those of its kind.
    pub fn ordinal(self) -> usize {
        self.ordinal as usize
    }

    /// Reads `cpu`, `cuda`, `cuda:1`, or `auto` (the first GPU that is ready, else `cpu`); says why when it is not ready.
    pub fn parse(text: &str) -> Result<Device> {
        registry::parse_device(text)
    }

    /// Every device that is ready on this machine, the host first.
    pub fn all() -> Vec<Device> {
        registry::ready_devices()
    }

    /// The device that new arrays are made on: that of the enclosing [`with_device`], else the process-wide one
    /// ([`Device::set_default`]), else `CUPRUM_DEVICE`, else the first GPU that is ready, else the host.
    pub fn current() -> Result<Device> {
        if let Some(d) = SCOPED.with(Cell::get) {
            return Ok(d);
        }
        registry::default_device()
    }

    /// Sets the process-wide default device.
    pub fn set_default(device: Device) -> Result<()> {
        driver(device)?;
        registry::set_default_device(device);
        Ok(())
    }

    /// Waits until everything issued to the device, on all of its streams, has run.
    ///
    /// Reports errors found on the device, such as an index out of bounds, of calls that this thread made, or threads that have ended.
    /// Every reader of an array that depends on such a call gets the error too.
    pub fn synchronize(self) -> Result<()> {
        driver(self)?.synchronize()?;
        trace::flush();
        Ok(())
    }

    /// What is known of the device.
    pub fn info(self) -> Result<DeviceInfo> {
        Ok(driver(self)?.info())
    }

    /// How much memory arrays hold here, and how much is kept for the next ones.
    ///
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, Device, NdArray, with_device};
    /// # fn main() -> cuprum::Result<()> {
    /// let before = Device::CPU.memory_stats()?.used;
    /// let a = with_device(Device::CPU, || NdArray::zeros([1000, 1000], DType::F64))?;
    /// assert_eq!(Device::CPU.memory_stats()?.used, before + a.nbytes());
    /// # Ok(())
    /// # }
    /// ```
    pub fn memory_stats(self) -> Result<MemoryStats> {
        driver(self)?.memory_stats()
    }

    /// Sets or removes (`None`) the limit on the device's memory, in bytes, for the process; what `CUPRUM_CPU_MEMORY_LIMIT`
    /// and `CUPRUM_GPU_MEMORY_LIMIT` set at its start. Arrays alive stay; a request beyond it is an
    /// [`Error::OutOfMemory`]. An error on a device that has no limit.
    ///
    /// The limit of the host covers arrays, free blocks that are kept for them, working memory of kernels whose size depends on
    /// the arguments, lists of [`Value`](crate::ops::value::Value), and files while they are read. Vectors and texts that are returned
    /// to the caller are checked when they are made. Working memory of constant size, some megabytes a thread, is not counted.
    pub fn set_memory_limit(self, limit: Option<usize>) -> Result<()> {
        driver(self)?.set_memory_limit(limit)
    }

    /// Gives memory that is kept for later arrays back to the system, as `free_all_blocks` of CuPy's pools does.
    ///
    /// A GPU returns kept memory by itself in two cases. A request of this process does not fit. Or less memory is free for other users of
    /// the GPU than is kept, which calls that need memory and [`Device::synchronize`] look at every 100 ms. An idle process keeps it.
    pub fn free_all(self) -> Result<()> {
        driver(self)?.free_all()
    }
}

thread_local! {
    static SCOPED: Cell<Option<Device>> = const { Cell::new(None) };
}

/// Runs `f` with `device` as this thread's default for new arrays.
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

/// A device's own account of itself, for `cuprum info`.
#[derive(Clone, Debug, Default)]
pub struct DeviceInfo {
    /// Product name.
    pub name: String,
    /// Compute units: cores of a CPU, multiprocessors of a GPU.
    pub units: usize,
    /// Bytes of memory; 0 when not known.
    pub memory_total: usize,
    /// Bytes in use by cuprum.
    pub memory_used: usize,
    /// Further facts, as name and value (SIMD level, compute capability, driver).
    pub details: Vec<(&'static str, String)>,
}

/// Memory of a device as cuprum uses it, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Held by arrays.
    pub used: usize,
    /// The most that `used` has been.
    pub peak: usize,
    /// Held by the pool: blocks of arrays, rounded up, and free ones. Blocks up to 32 KiB on the host are not counted.
    pub reserved: usize,
    /// The part of `reserved` that is free.
    pub cached: usize,
    /// The limit in force, if any.
    pub limit: Option<usize>,
    /// Requests of the pool that a free block has met.
    pub hits: u64,
    /// Requests of the pool that needed new memory.
    pub misses: u64,
}

/// A block of device memory. Backends downcast [`Buffer::as_any`] to their own type.
pub trait Buffer: Any + Send + Sync {
    /// Where it lies.
    fn device(&self) -> Device;
    /// Its size.
    fn nbytes(&self) -> usize;
    /// For downcasting.
    fn as_any(&self) -> &dyn Any;
}

/// A backend's [`Event`](crate::Event): a point in a device's work, and its time.
pub trait DeviceEvent: Send + Sync {
    /// Milliseconds from `earlier` (of the same device) to this one; waits for both. What went wrong on the device before (such as an
    /// index out of bounds) is not told here but where the program reads or synchronises.
    fn millis_since(&self, earlier: &dyn DeviceEvent) -> Result<f64>;
    /// Waits for it. By default it is reached when it was recorded.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
    /// Whether it has been reached.
    fn is_reached(&self) -> Result<bool> {
        Ok(true)
    }
    /// For downcasting.
    fn as_any(&self) -> &dyn Any;
}

/// What a device's base accelerator provides: memory, copies, waiting.
pub trait DeviceDriver: Send + Sync {
    /// New memory, contents undefined, ready in stream order.
    fn allocate(&self, nbytes: usize, stream: Stream) -> Result<Arc<dyn Buffer>>;
    /// New memory filled from host bytes.
    fn upload(&self, bytes: &[u8], stream: Stream) -> Result<Arc<dyn Buffer>>;
    /// Copies `out.len()` bytes from `byte_offset` to the host. Waits for all work before it. Reports errors found in work of this thread
    /// and in work that the bytes depend on.
    fn download(&self, buffer: &dyn Buffer, byte_offset: usize, out: &mut [u8]) -> Result<()>;
    /// Waits for all work of the device.
    fn synchronize(&self) -> Result<()>;
    /// The id of a stream for new work. By default all work is done when it is called, and there is one stream.
    fn new_stream(&self) -> Result<u32> {
        Ok(0)
    }
    /// Waits for the work of one stream.
    fn synchronize_stream(&self, _stream: Stream) -> Result<()> {
        self.synchronize()
    }
    /// A point in the work issued so far.
    fn record_event(&self, stream: Stream) -> Result<Box<dyn DeviceEvent>>;
    /// Makes a stream wait for an event, of this device or another. By default the host waits.
    fn wait_event(&self, _stream: Stream, event: &dyn DeviceEvent) -> Result<()> {
        event.synchronize()
    }
    /// Starts to write this thread's work into a graph instead of running it: what goes to the stream returned. By default an error.
    fn begin_capture(&self) -> Result<Stream> {
        Err(Error::Device { op: "graph", message: "work of this device runs when it is called and cannot be captured into a graph".into() })
    }
    /// Ends a capture.
    fn end_capture(&self, _stream: Stream) -> Result<Box<dyn DeviceGraph>> {
        self.begin_capture().and(Err(Error::value("graph", "no capture has begun")))
    }
    /// Gives a capture up.
    fn abandon_capture(&self, _stream: Stream) {}
    /// Copies bytes from one buffer of the device to another, each from an offset, on a stream. For [`Graph::update`](crate::Graph::update).
    fn copy_within(&self, _to: (&dyn Buffer, usize), _from: (&dyn Buffer, usize), _nbytes: usize, _stream: Stream) -> Result<()> {
        Err(Error::value("graph", "the device has no copies within itself"))
    }
    /// What is known of the device.
    fn info(&self) -> DeviceInfo;
    /// Counts of the device's allocator. By default only what [`DeviceDriver::info`] knows.
    fn memory_stats(&self) -> Result<MemoryStats> {
        let used = self.info().memory_used;
        Ok(MemoryStats { used, reserved: used, ..MemoryStats::default() })
    }
    /// Sets or removes the limit on its memory.
    fn set_memory_limit(&self, _limit: Option<usize>) -> Result<()> {
        Err(Error::value("set_memory_limit", "the device has no memory limit that can be set"))
    }
    /// Gives unused memory back to the system. By default there is none.
    fn free_all(&self) -> Result<()> {
        Ok(())
    }
    /// Marks a stretch of this thread's work for tools of the device's maker, until the value is dropped. By default there are none.
    fn mark_range(&self, _name: &str) -> Option<Box<dyn Any>> {
        None
    }
    /// Tells a profiler that watches the process to record, or to stop. By default none watches.
    fn set_profiling(&self, _on: bool) -> Result<()> {
        Ok(())
    }
    /// How many programs this process has compiled for devices of the kind; by default nothing is compiled.
    fn compiled(&self) -> Option<usize> {
        None
    }
    /// Host memory that the device copies from directly; see [`NdArray::pin_memory`](crate::NdArray::pin_memory). By default any will do.
    fn pinned(&self, nbytes: usize) -> Result<HostBuffer> {
        HostBuffer::uninit(nbytes)
    }
    /// Direct copy from a buffer of another device, or of host memory, where there is a faster way than [`DeviceDriver::upload`]. It may
    /// go on after the return, and then keeps the source.
    fn upload_from(&self, _source: &Arc<dyn Buffer>, _stream: Stream) -> Option<Result<Arc<dyn Buffer>>> {
        None
    }
}

/// The driver of a device: opened at first use, then found without a lock.
pub fn driver(device: Device) -> Result<&'static dyn DeviceDriver> {
    registry::driver(device)
}
