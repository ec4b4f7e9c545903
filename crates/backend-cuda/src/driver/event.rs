//! CUDA events: points in a stream, and device time.

use std::ptr;

use super::primary::check;
use super::{Context, sys};
use crate::error::Result;

/// A CUDA event of one context.
pub struct Event {
    raw: sys::CUevent,
    context: &'static Context,
}

// SAFETY: any thread may use an event handle.
unsafe impl Send for Event {}
// SAFETY: the driver synchronises calls on an event.
unsafe impl Sync for Event {}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Event({:?})", self.context)
    }
}

impl Event {
    /// Creates an event without timing, which is cheaper.
    pub fn new(context: &'static Context) -> Result<Event> {
        Event::with_flags(context, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32)
    }

    /// Creates an event with timing, for [`Event::elapsed_ms`].
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

    /// Records the end of the work queued so far on this thread's stream.
    pub fn record(&self) -> Result<()> {
        self.record_on(self.context.stream_number())
    }

    /// Records the end of the work queued so far on a stream.
    pub fn record_on(&self, stream: u32) -> Result<()> {
        Context::not_captured(stream, "recording an event")?;
        self.context.bind()?;
        // SAFETY: event and stream belong to the same, current context.
        check("cuEventRecord", unsafe { sys::cuEventRecord(self.raw, self.context.raw_stream(stream)) })
    }

    /// Blocks until the device reaches the recorded point. Returns at once if none was recorded.
    pub fn synchronize(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the event is alive.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.raw) })
    }

    /// Whether the device has reached the recorded point. True if none was recorded.
    pub fn is_reached(&self) -> Result<bool> {
        self.context.bind()?;
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(self.raw) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => check("cuEventQuery", other).map(|()| true),
        }
    }

    /// Makes this thread's stream of a context wait on the device for this event. The host does not wait.
    pub fn make_wait(&self, waiter: &Context) -> Result<()> {
        self.make_wait_on(waiter, waiter.stream_number())
    }

    /// Makes a stream of a context wait on the device for this event. The host does not wait.
    pub fn make_wait_on(&self, waiter: &Context, stream: u32) -> Result<()> {
        Context::not_captured(stream, "waiting for an event")?;
        waiter.queue_wait(stream, self.raw)
    }

    /// Returns the device time from `start` to `self` in milliseconds. Both must come from [`Event::with_timing`] and be
    /// reached.
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
            // SAFETY: destroyed only here; the driver keeps the event until pending work has passed it.
            unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}
