//! Primary contexts of devices. A context is made current on threads, and is marked as lost after an unrecoverable error.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::recent_work;
use super::sys::{self, CUresult};
use crate::error::{CudaError, Result};

/// Marker in [`PrimaryContext::usable_address`] for a context that an unrecoverable error has made unusable. No context has this address.
const LOST_CONTEXT_ADDRESS: usize = usize::MAX;

thread_local! {
    /// Address of the driver context that this crate last made current on this thread.
    static CURRENT_CONTEXT: Cell<usize> = const { Cell::new(0) };
}

/// The primary contexts in use. The list is read only after an unrecoverable error, to find the context that must be marked as lost.
static REGISTERED_CONTEXTS: Mutex<Vec<&'static PrimaryContext>> = Mutex::new(Vec::new());

/// The primary context of a device, and the first stream that this crate created in the context (stream number 0).
pub(super) struct PrimaryContext {
    /// Device index.
    ordinal: usize,
    raw: sys::CUcontext,
    first_stream: sys::CUstream,
    /// The address of the driver context `raw`, or [`LOST_CONTEXT_ADDRESS`] once the context is lost. If this thread's [`CURRENT_CONTEXT`]
    /// has the same address, the context is current on this thread.
    usable_address: AtomicUsize,
    /// The unrecoverable error that made the context unusable, if there was one.
    lost: OnceLock<CudaError>,
}

// SAFETY: the driver allows context and stream handles on any thread. All other fields are Send + Sync.
unsafe impl Send for PrimaryContext {}
// SAFETY: driver calls on a shared context are thread-safe.
unsafe impl Sync for PrimaryContext {}

impl PrimaryContext {
    /// Retains the primary context of `device`, whose index is `ordinal`, and makes it current on this thread.
    pub fn retain(ordinal: usize, device: sys::CUdevice) -> Result<PrimaryContext> {
        let mut raw = ptr::null_mut();
        // SAFETY: `device` comes from the probe, and the out-pointer `raw` is a local. The context is never released.
        check_result("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&mut raw, device) })?;
        // SAFETY: the driver just returned `raw` as a retained context.
        check_result("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(raw) })?;
        CURRENT_CONTEXT.set(raw as usize);
        let first_stream = create_stream()?;
        Ok(PrimaryContext { ordinal, raw, first_stream, usable_address: AtomicUsize::new(raw as usize), lost: OnceLock::new() })
    }

    /// Adds the context to [`REGISTERED_CONTEXTS`] for the rest of the process, so that an unrecoverable error can mark the context as
    /// lost.
    pub fn register(self) -> &'static PrimaryContext {
        let primary: &'static PrimaryContext = Box::leak(Box::new(self));
        REGISTERED_CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner).push(primary);
        primary
    }

    pub fn raw(&self) -> sys::CUcontext {
        self.raw
    }

    pub fn first_stream(&self) -> sys::CUstream {
        self.first_stream
    }

    /// Makes the context current on this thread. See [`super::Context::make_current`].
    #[inline]
    pub fn make_current(&self) -> Result<()> {
        if CURRENT_CONTEXT.get() == self.usable_address.load(Ordering::Relaxed) { Ok(()) } else { self.set_current() }
    }

    /// Makes the context current on this thread, even if [`CURRENT_CONTEXT`] tells that the context is current already.
    #[cold]
    pub fn set_current(&self) -> Result<()> {
        if let Some(lost) = self.lost.get() {
            return Err(lost.clone());
        }
        // SAFETY: `raw` is a retained primary context that is never released.
        check_result("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.raw) })?;
        CURRENT_CONTEXT.set(self.raw as usize);
        Ok(())
    }

    /// Returns an error if the context is unusable. See [`super::Context::check_usable`].
    pub fn check_usable(&self) -> Result<()> {
        self.make_current()?;
        // SAFETY: the stream lives as long as the context and is never captured.
        match unsafe { sys::cuStreamQuery(self.first_stream) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(()),
            other => check_result("cuStreamQuery", other),
        }
    }

    /// Marks this context as lost if the unrecoverable `error` comes from this context, and returns the error to report. A driver call with
    /// objects of two contexts may return an error of the other context. This method therefore first queries a stream of this context.
    fn mark_lost(&self, error: CudaError) -> CudaError {
        // SAFETY: the stream lives as long as the context.
        let is_own = unsafe { sys::cuStreamQuery(self.first_stream) }.is_sticky();
        if !is_own {
            return error;
        }
        let cause = || format!("{error}; {}", recent_work::describe_recent_work());
        let lost = self.lost.get_or_init(|| CudaError::DeviceLost { device: self.ordinal, cause: cause() });
        self.usable_address.store(LOST_CONTEXT_ADDRESS, Ordering::Relaxed);
        lost.clone()
    }
}

/// Creates a stream in the current context that does not synchronise with the legacy default stream.
pub(super) fn create_stream() -> Result<sys::CUstream> {
    let mut stream = ptr::null_mut();
    let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
    // SAFETY: a context is current, and the out-pointer `stream` is a local.
    check_result("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut stream, flags) })?;
    Ok(stream)
}

/// Converts the `result` of the driver function `call`. An unrecoverable error marks the thread's current context as lost.
#[inline]
pub(crate) fn check_result(call: &'static str, result: CUresult) -> Result<()> {
    if result == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(driver_error(call, result)) }
}

#[cold]
fn driver_error(call: &'static str, result: CUresult) -> CudaError {
    let error = CudaError::Driver { call, code: result.0, name: result.to_string() };
    if !result.is_sticky() {
        return error;
    }
    let registered = REGISTERED_CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match registered.iter().find(|primary| primary.raw as usize == CURRENT_CONTEXT.get()) {
        Some(primary) => primary.mark_lost(error),
        None => error,
    }
}
