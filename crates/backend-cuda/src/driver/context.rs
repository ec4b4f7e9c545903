//! CUDA contexts: one per device for the life of the process, with its streams, memory and kernels.

use std::sync::{Mutex, OnceLock, PoisonError};

use cuprum_core::{Device, DeviceKind};

use super::driver_probe::{DeviceInfo, probe_driver};
use super::memory::ContextAllocator;
use super::primary_context::PrimaryContext;
use super::stream_table::StreamTable;
use super::sys;
use crate::error::{CudaError, Result};

/// The context of one device, which is created at the first use of the device.
#[derive(Default)]
struct ContextSlot {
    context: OnceLock<Context>,
    making: Mutex<()>,
}

/// Slots for the contexts of all devices, by device index.
static CONTEXT_SLOTS: OnceLock<Vec<ContextSlot>> = OnceLock::new();

/// The CUDA context of a device. The context exists until the process ends, so references to it are `&'static Context`. Therefore the hot
/// path counts no references, and teardown does not race with the driver's exit handlers.
pub struct Context {
    info: &'static DeviceInfo,
    driver_version: (u32, u32),
    device: Device,
    primary: &'static PrimaryContext,
    pub(super) streams: StreamTable,
    pub(super) memory: ContextAllocator,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context(cuda:{} {})", self.info.ordinal, self.info.name)
    }
}

impl Context {
    /// Returns the context of device `ordinal`. The first call creates the context.
    ///
    /// # Errors
    /// [`CudaError::Missing`] with the reason if there is no usable driver, [`CudaError::Invalid`] if there is no such device.
    #[inline]
    pub fn get(ordinal: usize) -> Result<&'static Context> {
        match CONTEXT_SLOTS.get().and_then(|slots| slots.get(ordinal)?.context.get()) {
            Some(context) => Ok(context),
            None => Context::get_or_create(ordinal),
        }
    }

    /// Returns the context of device `ordinal`, and creates it if necessary. The function is `#[cold]` to discourage inlining, so that
    /// callers need no stack space for a context.
    #[cold]
    fn get_or_create(ordinal: usize) -> Result<&'static Context> {
        let driver = probe_driver().map_err(CudaError::Missing)?;
        let slots = CONTEXT_SLOTS.get_or_init(|| driver.devices.iter().map(|_| ContextSlot::default()).collect());
        let slot = slots
            .get(ordinal)
            .ok_or_else(|| CudaError::Invalid(format!("there is no cuda:{ordinal}; this machine has {} CUDA device(s)", slots.len())))?;
        // A failure to create the context is not cached, because a device that is busy now may be free at the next call.
        let _making = slot.making.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.context.get().is_none() {
            let made = Context::create_context(&driver.devices[ordinal], driver.version)?;
            let _ = slot.context.set(made);
        }
        slot.context.get().ok_or_else(|| CudaError::Invalid("the context was not kept".into()))
    }

    fn create_context(info: &'static DeviceInfo, driver_version: (u32, u32)) -> Result<Context> {
        let kind = DeviceKind::intern("cuda").map_err(|e| CudaError::Invalid(e.to_string()))?;
        let primary = PrimaryContext::retain(info.ordinal, info.handle)?;
        let memory = ContextAllocator::new(info)?;
        let streams = StreamTable::new(primary.first_stream());
        let device = Device::new(kind, info.ordinal as u16);
        Ok(Context { info, driver_version, device, primary: primary.register(), streams, memory })
    }

    /// Returns the number of context slots: one per CUDA device, or 0 before the first context is created.
    pub(super) fn context_slot_count() -> usize {
        CONTEXT_SLOTS.get().map_or(0, Vec::len)
    }

    /// Returns the device's properties.
    pub fn info(&self) -> &'static DeviceInfo {
        self.info
    }

    /// Returns the CUDA version of the driver: major, minor.
    pub fn driver_version(&self) -> (u32, u32) {
        self.driver_version
    }

    /// Returns the driver's handle of the primary context, for libraries that take one.
    pub fn raw(&self) -> sys::CUcontext {
        self.primary.raw()
    }

    /// Returns the device as the core crate's [`Device`].
    pub fn device(&self) -> Device {
        self.device
    }

    /// Makes this context current on the calling thread. If the context is current already, this costs one comparison.
    ///
    /// Every method that requires a current context calls `make_current`. Call [`Context::set_current`] instead if other code may have
    /// changed the thread's context, such as another CUDA library in the process.
    ///
    /// Dropping a buffer, event or module of another device makes the context of that device current. So call `make_current` after all such
    /// drops, immediately before a call of the driver or a library.
    ///
    /// # Errors
    /// [`CudaError::DeviceLost`] once the context is unusable.
    #[inline]
    pub fn make_current(&self) -> Result<()> {
        self.primary.make_current()
    }

    /// Makes this context current on the calling thread, even if this crate has made the context current before.
    #[cold]
    pub fn set_current(&self) -> Result<()> {
        self.primary.set_current()
    }

    /// Returns an error if the context is unusable. Call this function after an error of a library, because the error code of a library may
    /// not tell that the device is lost.
    ///
    /// # Errors
    /// [`CudaError::DeviceLost`] after an error that made the context unusable.
    pub fn check_usable(&self) -> Result<()> {
        self.primary.check_usable()
    }
}
