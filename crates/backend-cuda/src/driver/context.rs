//! One context per device for the life of the process: the primary context, its streams, and what hangs on it.

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

/// A device's context, once it is made.
#[derive(Default)]
struct Slot {
    context: OnceLock<Context>,
    making: Mutex<()>,
}

/// The value of [`Context::usable`] that no address has.
const LOST: usize = usize::MAX;

/// By ordinal.
static SLOTS: OnceLock<Vec<Slot>> = OnceLock::new();

thread_local! {
    /// The context that we last made current on this thread, as an address.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// A device in use. Lives until the process ends, so everything may refer to it as `&'static Context`:
/// no reference counts on the hot path, and no teardown race with the driver's own exit handlers.
pub struct Context {
    info: &'static DeviceInfo,
    driver_version: (u32, u32),
    device: Device,
    raw: sys::CUcontext,
    /// The address of `raw`, or [`LOST`]: the value of [`CURRENT`] for which [`Context::bind`] has nothing to do.
    usable: AtomicUsize,
    /// Why the context is unusable, once it is.
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

// SAFETY: the raw context is a handle that the driver lets any thread use; all else is Send + Sync.
unsafe impl Send for Context {}
// SAFETY: as above; driver calls on a shared context are thread-safe.
unsafe impl Sync for Context {}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context(cuda:{} {})", self.info.ordinal, self.info.name)
    }
}

impl Context {
    /// The context of a device, made at the first call.
    ///
    /// # Errors
    /// [`CudaError::Missing`] with the probe's reason, [`CudaError::Invalid`] for a number that no device has.
    #[inline]
    pub fn get(ordinal: usize) -> Result<&'static Context> {
        match SLOTS.get().and_then(|slots| slots.get(ordinal)?.context.get()) {
            Some(context) => Ok(context),
            None => Context::get_or_make(ordinal),
        }
    }

    /// Apart, because its frame takes as much stack as a context.
    #[cold]
    fn get_or_make(ordinal: usize) -> Result<&'static Context> {
        let driver = probe().map_err(CudaError::Missing)?;
        let slots = SLOTS.get_or_init(|| driver.devices.iter().map(|_| Slot::default()).collect());
        let slot = slots
            .get(ordinal)
            .ok_or_else(|| CudaError::Invalid(format!("there is no cuda:{ordinal}; this machine has {} CUDA device(s)", slots.len())))?;
        // A failure is not kept: a device that was busy may be free at the next try.
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

    /// The device's properties.
    pub fn info(&self) -> &'static DeviceInfo {
        self.info
    }

    /// The CUDA version of the driver: major, minor.
    pub fn driver_version(&self) -> (u32, u32) {
        self.driver_version
    }

    /// The kernels loaded on this device.
    pub fn kernels(&self) -> &KernelCache {
        &self.kernels
    }

    /// The raw primary context, for libraries that take one.
    pub fn raw(&self) -> sys::CUcontext {
        self.raw
    }

    /// The device as core knows it.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Makes this context current on the calling thread; a thread-local compare when it already is.
    ///
    /// Every method here that needs it calls it. After foreign code changed the thread's context behind us
    /// (another CUDA library in the process), call [`Context::rebind`].
    ///
    /// Dropping a buffer, event or module of another device makes that device's context current: call this after anything that may
    /// drop one, right before the driver or a library is called.
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
        // SAFETY: our retained primary context.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.raw) })?;
        CURRENT.set(self.raw as usize);
        Ok(())
    }

    /// Marks the context that is current on this thread as lost, if a sticky error is its own; returns the error to report.
    #[cold]
    pub(super) fn lose_current(error: CudaError) -> CudaError {
        let current = SLOTS.get().into_iter().flatten().filter_map(|slot| slot.context.get()).find(|c| c.raw as usize == CURRENT.get());
        match current {
            Some(context) => context.lose(error),
            None => error,
        }
    }

    /// A call that names objects of two contexts may return the error of the other one, so this context is asked.
    fn lose(&self, error: CudaError) -> CudaError {
        // SAFETY: the first stream lives as long as the context.
        let is_own = unsafe { sys::cuStreamQuery(self.raw_stream(0)) }.is_sticky();
        if !is_own {
            return error;
        }
        let cause = || format!("{error}; {}", crate::device::queued_before());
        let lost = self.lost.get_or_init(|| CudaError::DeviceLost { device: self.info.ordinal, cause: cause() });
        self.usable.store(LOST, Ordering::Relaxed);
        lost.clone()
    }

    /// An error if the context is unusable: libraries report that in codes of their own.
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

    /// Waits for all work queued so far, on all streams, then reports what went wrong in it: a driver error, or a fault of a kernel
    /// that this thread queued, or a thread that has ended.
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

    /// Waits without reporting faults; false if that failed.
    pub(crate) fn synchronize_quietly(&self) -> bool {
        self.wait().is_ok()
    }

    /// True when nothing is queued or running on this thread's stream (on the first, while this thread's is being captured). Errors of
    /// finished work come out here too.
    pub fn is_idle(&self) -> Result<bool> {
        self.bind()?;
        // Asking a stream that is being captured would spoil the capture.
        let number = if self.is_capturing() { 0 } else { self.stream_number() };
        // SAFETY: our stream, in its context.
        match unsafe { sys::cuStreamQuery(self.raw_stream(number)) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => check("cuStreamQuery", other).map(|()| true),
        }
    }
}
