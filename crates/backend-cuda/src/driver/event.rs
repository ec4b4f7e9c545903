//! Marks in the stream: for waiting on a point, and for device time.

use std::ptr;

use super::{Context, check, sys};
use crate::error::Result;

/// A CUDA event of one context.
pub struct Event {
    raw: sys::CUevent,
    context: &'static Context,
}

// SAFETY: an event is a handle that any thread may use.
unsafe impl Send for Event {}
// SAFETY: as above; the driver synchronises calls on it.
unsafe impl Sync for Event {}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Event({:?})", self.context)
    }
}

impl Event {
    /// An event that only orders, the cheap kind.
    pub fn new(context: &'static Context) -> Result<Event> {
        Event::with_flags(context, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32)
    }

    /// An event that also keeps the device's time, for [`Event::elapsed_ms`].
    pub fn with_timing(context: &'static Context) -> Result<Event> {
        Event::with_flags(context, sys::CUevent_flags::CU_EVENT_DEFAULT as u32)
    }

    fn with_flags(context: &'static Context, flags: u32) -> Result<Event> {
        context.bind()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the context is current and the out-pointer valid.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&mut raw, flags) })?;
        Ok(Event { raw, context })
    }

    /// Marks the point that this thread's stream of the context has been queued up to.
    pub fn record(&self) -> Result<()> {
        self.record_on(self.context.stream_number())
    }

    /// Marks the point that a stream of the context has been queued up to.
    pub fn record_on(&self, stream: u32) -> Result<()> {
        Context::not_captured(stream, "recording an event")?;
        self.context.bind()?;
        // SAFETY: event and stream belong to the same, current context.
        check("cuEventRecord", unsafe { sys::cuEventRecord(self.raw, self.context.raw_stream(stream)) })
    }

    /// Waits until the device has reached the recorded point (at once if never recorded).
    pub fn synchronize(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the event is alive.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.raw) })
    }

    /// Whether the device has reached the recorded point (so too if never recorded).
    pub fn is_reached(&self) -> Result<bool> {
        self.context.bind()?;
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(self.raw) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => check("cuEventQuery", other).map(|()| true),
        }
    }

    /// Makes this thread's stream of another context (or of this one) wait on the device for this event; the host does not wait.
    pub fn make_wait(&self, waiter: &Context) -> Result<()> {
        self.make_wait_on(waiter, waiter.stream_number())
    }

    /// Makes a stream of a context wait on the device for this event; the host does not wait.
    pub fn make_wait_on(&self, waiter: &Context, stream: u32) -> Result<()> {
        Context::not_captured(stream, "waiting for an event")?;
        waiter.queue_wait(stream, self.raw)
    }

    /// Device time from `start` to `self` in milliseconds; both made by [`Event::with_timing`], recorded and reached.
    pub fn elapsed_ms(&self, start: &Event) -> Result<f32> {
        self.context.bind()?;
        let mut ms = 0.0;
        // The `_v2` of CUDA 13's header is missing from drivers before 12.8; the old name is in all.
        // SAFETY: both events are alive and the out-pointer valid; events without timing are an error code.
        check("cuEventElapsedTime", unsafe { sys::cuEventElapsedTime(&mut ms, start.raw, self.raw) })?;
        Ok(ms)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: created by us, destroyed only here; the driver keeps it until pending work has passed it.
            unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}
