//! Points in streams: reusable events without timing, which order work between streams.

use std::fmt;
use std::ptr;
use std::sync::Arc;

use super::order::{Queues, StreamSet, numbers};
use super::pool::Fence;
use super::primary::check;
use super::stream_table::RawEvent;
use super::{Context, sys};
use crate::error::{CudaError, Result};

/// A point in a stream, for ordering. Its event is reused after the last reference is dropped.
pub(super) struct Mark {
    event: RawEvent,
    stream: u32,
    context: &'static Context,
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mark(stream {} of {:?})", self.stream, self.context)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // Waits that are queued on the device refer to the event's earlier record and stay valid.
        self.context.streams.put_event(self.event);
    }
}

impl Mark {
    /// Blocks the host until the device reaches the point.
    pub(super) fn wait(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the event is alive.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.event.0) })
    }
}

impl Context {
    /// Returns a point after all work queued so far on a stream.
    pub(super) fn mark(&'static self, stream: u32) -> Result<Arc<Mark>> {
        self.bind()?;
        let kept = self.streams.take_event();
        let event = match kept {
            Some(event) => event,
            None => {
                let mut raw = ptr::null_mut();
                let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
                // SAFETY: the context is current and the out-pointer valid.
                check("cuEventCreate", unsafe { sys::cuEventCreate(&mut raw, flags) })?;
                RawEvent(raw)
            }
        };
        let mark = Mark { event, stream, context: self };
        // SAFETY: event and stream are of this context, which is current.
        check("cuEventRecord", unsafe { sys::cuEventRecord(mark.event.0, self.raw_stream(stream)) })?;
        Ok(Arc::new(mark))
    }

    /// Makes a stream wait for all work queued so far on other streams.
    pub(super) fn order_after(&'static self, stream: u32, others: StreamSet) -> Result<()> {
        numbers(others).try_for_each(|other| Queues::wait(&self, stream, &self.mark(other)?))
    }
}

impl Queues for &'static Context {
    type Mark = Arc<Mark>;
    type Error = CudaError;

    fn mark(&self, stream: u32) -> Result<Arc<Mark>> {
        Context::mark(self, stream)
    }

    fn wait(&self, stream: u32, mark: &Arc<Mark>) -> Result<()> {
        self.queue_wait(stream, mark.event.0)
    }
}

impl Fence for Mark {
    fn stream(&self) -> u32 {
        self.stream
    }

    fn is_passed(&self) -> bool {
        // SAFETY: the event is alive. After an error of the device, the state is never known.
        self.context.bind().is_ok() && unsafe { sys::cuEventQuery(self.event.0) } == sys::CUresult::CUDA_SUCCESS
    }
}
