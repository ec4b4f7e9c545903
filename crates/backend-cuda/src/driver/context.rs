//! One context per device for the life of the process: the primary context, with its streams, memory and kernels.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::fault::Faults;
use super::memory::Memory;
use super::pinned::Lent;
use super::scratch::Kept;
use super::staging::Staging;
use super::streams::Streams;
use super::{DeviceInfo, check, probe, sys};
use cuprum_core::{Device, DeviceKind};

use crate::compile::module::KernelCache;
use crate::error::{CudaError, Result};
use crate::families::contract::cublas::Blas;

/// A device's context, once it exists.
#[derive(Default)]
struct Slot {
    context: OnceLock<Context>,
    making: Mutex<()>,
}

/// A value of [`Context::usable`] that no address equals.
const LOST: usize = usize::MAX;

/// Contexts by device index.
static SLOTS: OnceLock<Vec<Slot>> = OnceLock::new();

thread_local! {
    /// Address of the context that this crate last made current on this thread.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// A device in use. It lives until the process ends and is referred to as `&'static Context`. So the hot path has no
/// reference counts, and teardown does not race with the driver's exit handlers.
pub struct Context {
    info: &'static DeviceInfo,
    driver_version: (u32, u32),
    device: Device,
    raw: sys::CUcontext,
    /// The address of `raw`, or [`LOST`]. [`Context::bind`] returns at once if [`CURRENT`] equals it.
    usable: AtomicUsize,
    /// The error that made the context unusable.
    lost: OnceLock<CudaError>,
    pub(super) streams: Streams,
    pub(super) memory: Memory,
    pub(super) staging: Staging,
    pub(super) lent: Lent,
    pub(super) scratch: Kept,
    pub(super) faults: Faults,
    kernels: KernelCache,
    pub(crate) blas: OnceLock<Blas>,
}

// SAFETY: any thread may use the raw context; all other fields are Send + Sync.
unsafe impl Send for Context {}
// SAFETY: driver calls on a shared context are thread-safe.
unsafe impl Sync for Context {}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context(cuda:{} {})", self.info.ordinal, self.info.name)
    }
}

impl Context {
    /// Returns the context of a device, which the first call creates.
    ///
    /// # Errors
    /// [`CudaError::Missing`] with the probe's reason, [`CudaError::Invalid`] if there is no such device.
    #[inline]
    pub fn get(ordinal: usize) -> Result<&'static Context> {
        match SLOTS.get().and_then(|slots| slots.get(ordinal)?.context.get()) {
            Some(context) => Ok(context),
            None => Context::get_or_make(ordinal),
        }
    }

    /// Not inlined, because its frame is as large as a context.
    #[cold]
    fn get_or_make(ordinal: usize) -> Result<&'static Context> {
        let driver = probe().map_err(CudaError::Missing)?;
        let slots = SLOTS.get_or_init(|| driver.devices.iter().map(|_| Slot::default()).collect());
        let slot = slots
            .get(ordinal)
            .ok_or_else(|| CudaError::Invalid(format!("there is no cuda:{ordinal}; this machine has {} CUDA device(s)", slots.len())))?;
        // A failure is not cached: a busy device may be free at the next call.
        let _making = slot.making.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.context.get().is_none() {
            let made = Context::make(&driver.devices[ordinal], driver.version)?;
            let _ = slot.context.set(made);
        }
        slot.context.get().ok_or_else(|| CudaError::Invalid("the context was not kept".into()))
    }

    fn make(info: &'static DeviceInfo, driver_version: (u32, u32)) -> Result<Context> {
        let mut raw = ptr::null_mut();
        // SAFETY: the device handle comes from the probe; the context is never released.
        check("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&mut raw, info.handle) })?;
        // SAFETY: `raw` was just retained.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(raw) })?;
        CURRENT.set(raw as usize);
        let kind = DeviceKind::intern("cuda").map_err(|e| CudaError::Invalid(e.to_string()))?;
        Ok(Context {
            info,
            driver_version,
            device: Device::new(kind, info.ordinal as u16),
            raw,
            usable: AtomicUsize::new(raw as usize),
            lost: OnceLock::new(),
            streams: Streams::new()?,
            memory: Memory::new(info)?,
            staging: Staging::default(),
            lent: Lent::default(),
            scratch: Kept::new(),
            faults: Faults::default(),
            kernels: KernelCache::default(),
            blas: OnceLock::new(),
        })
    }

    /// Returns the device's properties.
    pub fn info(&self) -> &'static DeviceInfo {
        self.info
    }

    /// Returns the CUDA version of the driver: major, minor.
    pub fn driver_version(&self) -> (u32, u32) {
        self.driver_version
    }

    /// Returns the cache of kernels loaded on this device.
    pub fn kernels(&self) -> &KernelCache {
        &self.kernels
    }

    /// Returns the raw primary context, for libraries that take one.
    pub fn raw(&self) -> sys::CUcontext {
        self.raw
    }

    /// Returns the device in core's form.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Makes this context current on the calling thread. If it is current already, this is a thread-local comparison.
    ///
    /// Every method that requires a current context calls this. Call [`Context::rebind`] if other code changed the thread's
    /// context, such as another CUDA library in the process.
    ///
    /// Dropping a buffer, event or module of another device makes that device's context current. So call this after anything
    /// that may drop one, immediately before a call of the driver or a library.
    ///
    /// # Errors
    /// [`CudaError::DeviceLost`] once the context is unusable.
    #[inline]
    pub fn bind(&self) -> Result<()> {
        if CURRENT.get() == self.usable.load(Ordering::Relaxed) { Ok(()) } else { self.rebind() }
    }

    /// [`Context::bind`] without the check.
    #[cold]
    pub fn rebind(&self) -> Result<()> {
        if let Some(lost) = self.lost.get() {
            return Err(lost.clone());
        }
        // SAFETY: the primary context is retained and never released.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.raw) })?;
        CURRENT.set(self.raw as usize);
        Ok(())
    }

    /// Marks the context that is current on this thread as lost if the sticky error is its own. Returns the error to report.
    #[cold]
    pub(super) fn lose_current(error: CudaError) -> CudaError {
        let current = SLOTS.get().into_iter().flatten().filter_map(|slot| slot.context.get()).find(|c| c.raw as usize == CURRENT.get());
        match current {
            Some(context) => context.lose(error),
            None => error,
        }
    }

    /// A call with objects of two contexts may return the error of the other one, so this context's stream is queried.
    fn lose(&self, error: CudaError) -> CudaError {
        // SAFETY: the first stream lives as long as the context.
        let is_own = unsafe { sys::cuStreamQuery(self.raw_stream(0)) }.is_sticky();
        if !is_own {
            return error;
        }
        let cause = || format!("{error}; {}", super::recent_work::describe());
        let lost = self.lost.get_or_init(|| CudaError::DeviceLost { device: self.info.ordinal, cause: cause() });
        self.usable.store(LOST, Ordering::Relaxed);
        lost.clone()
    }

    /// Returns an error if the context is unusable, which libraries report with error codes of their own.
    ///
    /// # Errors
    /// [`CudaError::DeviceLost`] after a sticky error.
    pub fn check_usable(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the first stream lives as long as the context and is never captured.
        match unsafe { sys::cuStreamQuery(self.raw_stream(0)) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(()),
            other => check("cuStreamQuery", other),
        }
    }

    /// Waits for all work queued so far on all streams. Then reports driver errors, and faults of kernels that this thread,
    /// or a thread that has ended, queued.
    pub fn synchronize(&'static self) -> Result<()> {
        self.not_capturing("waiting for the device")?;
        let done = self.wait_and_report();
        self.lent.settle();
        self.yield_kept_memory()?;
        done
    }

    /// [`Context::synchronize`] for the work of one stream.
    pub fn synchronize_stream(&'static self, number: u32) -> Result<()> {
        self.wait_for(number)?;
        self.report_faults(|stream| stream == number)
    }

    /// Waits without reporting faults. Returns false on failure.
    pub(crate) fn synchronize_quietly(&self) -> bool {
        self.wait().is_ok()
    }

    /// Whether nothing is queued or running on this thread's stream, or on the first stream during a capture. Reports errors
    /// of completed work too.
    pub fn is_idle(&self) -> Result<bool> {
        self.bind()?;
        // A query of a capturing stream would invalidate the capture.
        let number = if self.is_capturing() { 0 } else { self.stream_number() };
        // SAFETY: a stream of this context.
        match unsafe { sys::cuStreamQuery(self.raw_stream(number)) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => check("cuStreamQuery", other).map(|()| true),
        }
    }
}
