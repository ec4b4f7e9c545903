//! One context per device for the life of the process: the primary context, its streams, and what hangs on it.

use std::cell::Cell;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::fault::FaultBlock;
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
    pub(super) streams: Streams,
    pub(super) memory: Memory,
    pub(super) staging: Staging,
    pub(super) lent: Lent,
    pub(super) scratch: Kept,
    fault: OnceLock<FaultBlock>,
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
            streams: Streams::new()?,
            memory: Memory::new(info)?,
            staging: Staging::default(),
            lent: Lent::default(),
            scratch: Kept::new(),
            fault: OnceLock::new(),
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
    #[inline]
    pub fn bind(&self) -> Result<()> {
        if CURRENT.get() == self.raw as usize { Ok(()) } else { self.rebind() }
    }

    /// [`Context::bind`] without the check.
    #[cold]
    pub fn rebind(&self) -> Result<()> {
        // SAFETY: our retained primary context.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.raw) })?;
        CURRENT.set(self.raw as usize);
        Ok(())
    }

    /// Waits for all work queued so far, on all streams, then reports what went wrong in it: a driver error, or a fault that a
    /// kernel wrote to the error word.
    pub fn synchronize(&self) -> Result<()> {
        self.not_capturing("waiting for the device")?;
        self.wait()?;
        self.lent.settle();
        self.check_device_error()
    }

    /// [`Context::synchronize`] for the work of one stream; an error may be another's.
    pub fn synchronize_stream(&self, number: u32) -> Result<()> {
        self.wait_for(number)?;
        self.check_device_error()
    }

    /// Waits without taking the error word; false if that failed.
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

    /// The device address of this context's error word, to pass to kernels that may find a bad index; allocated at
    /// the first call. See [`super::fault`].
    pub fn fault_pointer(&self) -> Result<u64> {
        if let Some(block) = self.fault.get() {
            return Ok(block.device_pointer());
        }
        // A failure is not kept: there may be room the next time.
        self.bind()?;
        let made = FaultBlock::new()?;
        Ok(self.fault.get_or_init(|| made).device_pointer())
    }

    /// Reads and clears the error word. Meaningful after a wait; [`Context::synchronize`] and host copies call it.
    #[inline]
    pub fn check_device_error(&self) -> Result<()> {
        match self.fault.get() {
            Some(block) => block.take(),
            None => Ok(()),
        }
    }
}
