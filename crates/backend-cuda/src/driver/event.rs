//! CUDA events, which mark positions in a stream and measure device time.

use std::ptr;

use super::primary_context::check_result;
use super::{Context, sys};
use crate::error::Result;

/// A CUDA event of one context, destroyed on drop.
pub struct Event {
    raw: sys::CUevent,
    context: &'static Context,
}

// SAFETY: the driver allows an event handle on any thread.
unsafe impl Send for Event {}
// SAFETY: the driver synchronises concurrent calls on an event.
unsafe impl Sync for Event {}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Event({:?})", self.context)
    }
}

impl Event {
    /// Creates an event without timing, which the driver handles faster than one with timing.
    pub fn new(context: &'static Context) -> Result<Event> {
        Event::with_flags(context, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32)
    }

    /// Creates an event with timing, for [`Event::elapsed_ms`].
    pub fn with_timing(context: &'static Context) -> Result<Event> {
        Event::with_flags(context, sys::CUevent_flags::CU_EVENT_DEFAULT as u32)
    }

    fn with_flags(context: &'static Context, flags: u32) -> Result<Event> {
        context.set_current()?; // the driver creates the event in the thread's current context
        let mut raw = ptr::null_mut();
        // SAFETY: the context is current, and the out-pointer is a local.
        check_result("cuEventCreate", unsafe { sys::cuEventCreate(&mut raw, flags) })?;
        Ok(Event { raw, context })
    }

    /// Records the event after all work queued so far on this thread's stream.
    pub fn record(&self) -> Result<()> {
        self.record_on_stream(self.context.current_stream_number())
    }

    /// Records the event after all work queued so far on stream number `stream`.
    pub fn record_on_stream(&self, stream: u32) -> Result<()> {
        Context::check_not_capture_stream(stream, "recording an event")?;
        self.context.make_current()?;
        // SAFETY: the event and the stream belong to this context, which is current.
        check_result("cuEventRecord", unsafe { sys::cuEventRecord(self.raw, self.context.raw_stream(stream)) })
    }

    /// Records the event after all work queued so far on `stream`, a stream of another library.
    ///
    /// # Safety
    /// `stream` is a stream of the event's context, or the driver's constant for a default stream.
    pub(super) unsafe fn record_on_foreign_stream(&self, stream: sys::CUstream) -> Result<()> {
        self.context.set_current()?; // another library may have changed the thread's current context
        // SAFETY: the event is of this context, and the caller guarantees that the stream is too.
        check_result("cuEventRecord", unsafe { sys::cuEventRecord(self.raw, stream) })
    }

    /// Makes `stream`, a stream of another library, wait on the device for this event.
    ///
    /// # Safety
    /// `stream` is a stream of the event's context, or the driver's constant for a default stream.
    pub(super) unsafe fn make_foreign_stream_wait(&self, stream: sys::CUstream) -> Result<()> {
        self.context.set_current()?; // another library may have changed the thread's current context
        // SAFETY: the event exists until `drop`, and the caller guarantees that the stream is of this context.
        check_result("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(stream, self.raw, 0) })
    }

    /// Blocks until the device reaches the recorded event. Returns at once if the event was never recorded.
    pub fn synchronize(&self) -> Result<()> {
        self.context.make_current()?;
        // SAFETY: the event exists until `drop`.
        check_result("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.raw) })
    }

    /// Returns whether the device has reached the recorded event. True if the event was never recorded.
    pub fn is_reached(&self) -> Result<bool> {
        self.context.make_current()?;
        // SAFETY: the event exists until `drop`.
        match unsafe { sys::cuEventQuery(self.raw) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => check_result("cuEventQuery", other).map(|()| true),
        }
    }

    /// Makes this thread's stream of the context `waiter` wait on the device for this event. The host does not wait.
    pub fn make_current_stream_wait(&self, waiter: &Context) -> Result<()> {
        self.make_stream_wait(waiter, waiter.current_stream_number())
    }

    /// Makes stream number `stream` of the context `waiter` wait on the device for this event. The host does not wait.
    pub fn make_stream_wait(&self, waiter: &Context, stream: u32) -> Result<()> {
        Context::check_not_capture_stream(stream, "waiting for an event")?;
        waiter.queue_event_wait(stream, self.raw)
    }

    /// Returns the device time from the event `start` to this event, in milliseconds. Both events must come from [`Event::with_timing`],
    /// and the device must have reached both.
    pub fn elapsed_ms(&self, start: &Event) -> Result<f32> {
        self.context.make_current()?;
        let mut ms = 0.0;
        // This call uses the name without `_v2`. CUDA 13's header declares `cuEventElapsedTime_v2`, which drivers before 12.8 lack.
        // SAFETY: both events exist, and the out-pointer is a local. The driver returns an error code for events without timing.
        check_result("cuEventElapsedTime", unsafe { sys::cuEventElapsedTime(&mut ms, start.raw, self.raw) })?;
        Ok(ms)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: the event is destroyed only in this `drop`. The driver keeps the event until pending work has passed it.
            unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}
