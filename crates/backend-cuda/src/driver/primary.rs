//! Primary contexts of devices: made current on threads, and marked as lost after a sticky error.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::recent_work;
use super::sys::{self, CUresult};
use crate::error::{CudaError, Result};

/// A value of [`Primary::usable`] that no address equals.
const LOST: usize = usize::MAX;

thread_local! {
    /// Address of the context that this crate last made current on this thread.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The registered primary contexts. Read only after a sticky error.
static REGISTERED: Mutex<Vec<&'static Primary>> = Mutex::new(Vec::new());

/// The primary context of a device, and its first stream.
pub(super) struct Primary {
    /// Index of the device.
    ordinal: usize,
    raw: sys::CUcontext,
    first_stream: sys::CUstream,
    /// The address of `raw`, or [`LOST`]. [`Primary::bind`] returns at once if [`CURRENT`] equals it.
    usable: AtomicUsize,
    /// The error that made the context unusable.
    lost: OnceLock<CudaError>,
}

// SAFETY: any thread may use the handles of a context and a stream; all other fields are Send + Sync.
unsafe impl Send for Primary {}
// SAFETY: driver calls on a shared context are thread-safe.
unsafe impl Sync for Primary {}

impl Primary {
    /// Retains the primary context of a device and makes it current on this thread.
    pub fn retain(ordinal: usize, device: sys::CUdevice) -> Result<Primary> {
        let mut raw = ptr::null_mut();
        // SAFETY: the device handle comes from the probe; the context is never released.
        check("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&mut raw, device) })?;
        // SAFETY: `raw` was just retained.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(raw) })?;
        CURRENT.set(raw as usize);
        let first_stream = create_stream()?;
        Ok(Primary { ordinal, raw, first_stream, usable: AtomicUsize::new(raw as usize), lost: OnceLock::new() })
    }

    /// Registers the context for the rest of the process: from now on, sticky errors mark it as lost.
    pub fn register(self) -> &'static Primary {
        let primary: &'static Primary = Box::leak(Box::new(self));
        REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).push(primary);
        primary
    }

    pub fn raw(&self) -> sys::CUcontext {
        self.raw
    }

    pub fn first_stream(&self) -> sys::CUstream {
        self.first_stream
    }

    /// See [`super::Context::bind`].
    #[inline]
    pub fn bind(&self) -> Result<()> {
        if CURRENT.get() == self.usable.load(Ordering::Relaxed) { Ok(()) } else { self.rebind() }
    }

    /// [`Primary::bind`] without the check.
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

    /// See [`super::Context::check_usable`].
    pub fn check_usable(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the first stream lives as long as the context and is never captured.
        match unsafe { sys::cuStreamQuery(self.first_stream) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(()),
            other => check("cuStreamQuery", other),
        }
    }

    /// Marks the context as lost if a sticky error is its own, and returns the error to report. A call with objects of two contexts
    /// may return the error of the other context, so this context's stream is queried.
    fn lose(&self, error: CudaError) -> CudaError {
        // SAFETY: the first stream lives as long as the context.
        let is_own = unsafe { sys::cuStreamQuery(self.first_stream) }.is_sticky();
        if !is_own {
            return error;
        }
        let cause = || format!("{error}; {}", recent_work::describe());
        let lost = self.lost.get_or_init(|| CudaError::DeviceLost { device: self.ordinal, cause: cause() });
        self.usable.store(LOST, Ordering::Relaxed);
        lost.clone()
    }
}

/// Creates a stream of the current context that does not synchronise with the legacy default stream.
pub(super) fn create_stream() -> Result<sys::CUstream> {
    let mut stream = ptr::null_mut();
    let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
    // SAFETY: a context is current and the out-pointer valid.
    check("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut stream, flags) })?;
    Ok(stream)
}

/// Converts a driver result. A sticky error marks the context that is current on this thread as lost.
#[inline]
pub(crate) fn check(call: &'static str, result: CUresult) -> Result<()> {
    if result == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(failed(call, result)) }
}

#[cold]
fn failed(call: &'static str, result: CUresult) -> CudaError {
    let error = CudaError::Driver { call, code: result.0, name: result.to_string() };
    if !result.is_sticky() {
        return error;
    }
    let registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match registered.iter().find(|primary| primary.raw as usize == CURRENT.get()) {
        Some(primary) => primary.lose(error),
        None => error,
    }
}
