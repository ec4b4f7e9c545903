//! Reusable CUDA events without timing, which order work between streams.

use std::fmt;
use std::ptr;
use std::sync::Arc;

use super::free_blocks::StreamFence;
use super::primary_context::check_result;
use super::stream_order::{StreamQueues, StreamSet, stream_numbers};
use super::stream_table::EventHandle;
use super::{Context, sys};
use crate::error::{CudaError, Result};

/// A CUDA event that is recorded once in a stream, so that other streams can wait for it. The handle is reused after the last reference is
/// dropped.
pub(super) struct StreamMark {
    event: EventHandle,
    stream: u32,
    context: &'static Context,
}

impl fmt::Debug for StreamMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mark(stream {} of {:?})", self.stream, self.context)
    }
}

impl Drop for StreamMark {
    fn drop(&mut self) {
        // The event may be recorded again at once, because waits that are queued already refer to its earlier record.
        self.context.streams.return_event(self.event);
    }
}

impl StreamMark {
    /// Blocks the host until the device reaches the event.
    pub(super) fn wait_on_host(&self) -> Result<()> {
        self.context.make_current()?;
        // SAFETY: the event handle of a mark is never destroyed.
        check_result("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.event.0) })
    }
}

impl Context {
    /// Records and returns an event after all work queued so far on `stream`.
    pub(super) fn record_stream_mark(&'static self, stream: u32) -> Result<Arc<StreamMark>> {
        self.make_current()?;
        let kept = self.streams.take_event();
        let event = match kept {
            Some(event) => event,
            None => {
                self.set_current()?;
                let mut raw = ptr::null_mut();
                let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
                // SAFETY: the context is current, and the out-pointer `raw` is a local.
                check_result("cuEventCreate", unsafe { sys::cuEventCreate(&mut raw, flags) })?;
                EventHandle(raw)
            }
        };
        // SAFETY: the event and the stream are of this context, which is current.
        let recorded = check_result("cuEventRecord", unsafe { sys::cuEventRecord(event.0, self.raw_stream(stream)) });
        if let Err(error) = recorded {
            // An event whose recording failed is destroyed instead of reused.
            // SAFETY: the event is unused, and no mark has its handle.
            unsafe { sys::cuEventDestroy_v2(event.0) };
            return Err(error);
        }
        Ok(Arc::new(StreamMark { event, stream, context: self }))
    }

    /// Makes `stream` wait on the device for all work queued so far on the streams `others`.
    pub(super) fn order_stream_after(&'static self, stream: u32, others: StreamSet) -> Result<()> {
        stream_numbers(others).try_for_each(|other| StreamQueues::wait_for_mark(&self, stream, &self.record_stream_mark(other)?))
    }
}

impl StreamQueues for &'static Context {
    type Mark = Arc<StreamMark>;
    type Error = CudaError;

    fn record_mark(&self, stream: u32) -> Result<Arc<StreamMark>> {
        Context::record_stream_mark(self, stream)
    }

    fn wait_for_mark(&self, stream: u32, mark: &Arc<StreamMark>) -> Result<()> {
        self.queue_event_wait(stream, mark.event.0)
    }
}

impl StreamFence for StreamMark {
    fn stream_number(&self) -> u32 {
        self.stream
    }

    fn is_passed(&self) -> bool {
        // SAFETY: the event handle of a mark is never destroyed. After an error of the device, the result is false.
        self.context.make_current().is_ok() && unsafe { sys::cuEventQuery(self.event.0) } == sys::CUresult::CUDA_SUCCESS
    }
}
