//! The current stream of a thread, and waits for streams.

use cuprum_core::Stream;

use super::primary_context::check_result;
use super::stream_table::FIRST_CAPTURE_STREAM_ID;
use super::{Context, sys};
use crate::error::{CudaError, Result};

impl Context {
    /// Returns the number of this thread's current stream (`cuprum_core::Stream::current`).
    #[inline]
    pub fn current_stream_number(&self) -> u32 {
        match Stream::current(self.device()).id {
            0 => 0,
            number if self.streams.get_stream(number).is_some() => number,
            _ => 0, // the current stream belongs to a capture that has ended
        }
    }

    /// Returns the driver's handle of this thread's current stream (a `cudaStream_t` for runtime libraries).
    #[inline]
    pub fn stream(&self) -> sys::CUstream {
        self.raw_stream(self.current_stream_number())
    }

    /// Returns the driver's handle of stream `number`, or of stream number 0 if there is no such stream.
    #[inline]
    pub(crate) fn raw_stream(&self, number: u32) -> sys::CUstream {
        let first = self.streams.first_stream();
        if number == 0 { first.0 } else { self.streams.get_stream(number).unwrap_or(first).0 }
    }

    /// Returns whether a stream besides stream 0 exists.
    #[inline]
    pub fn has_several_streams(&self) -> bool {
        self.streams.has_several_streams()
    }

    /// Returns whether this thread's work is being captured.
    #[inline]
    pub fn is_capturing(&self) -> bool {
        self.current_stream_number() >= FIRST_CAPTURE_STREAM_ID
    }

    /// Returns whether `number` is the number of the stream of a capture.
    #[inline]
    pub(crate) fn is_capture_stream(&self, number: u32) -> bool {
        number >= FIRST_CAPTURE_STREAM_ID
    }

    /// Returns an error if this thread's work is being captured, and therefore has not run. The error names `what`, the rejected operation.
    pub(crate) fn check_not_capturing(&self, what: &str) -> Result<()> {
        Self::check_not_capture_stream(self.current_stream_number(), what)
    }

    /// Returns an error if stream `number` is the stream of a capture. The error names `what`, the rejected operation.
    pub(super) fn check_not_capture_stream(number: u32, what: &str) -> Result<()> {
        if number >= FIRST_CAPTURE_STREAM_ID {
            return Err(CudaError::Invalid(format!("{what} cannot be captured into a graph: do it before the capture, or after a launch")));
        }
        Ok(())
    }

    /// Returns whether no work is queued or running on stream `number`, which must not be the stream of a capture. Returns false after an
    /// error.
    pub(super) fn is_stream_idle(&self, number: u32) -> bool {
        // SAFETY: `raw_stream` returns the handle of a stream of this context, and streams are never destroyed.
        self.make_current().is_ok() && unsafe { sys::cuStreamQuery(self.raw_stream(number)) } == sys::CUresult::CUDA_SUCCESS
    }

    /// Blocks until all work queued on stream `number` has ended.
    pub(crate) fn wait_for_stream(&self, number: u32) -> Result<()> {
        Self::check_not_capture_stream(number, "waiting for the device")?;
        self.make_current()?;
        // SAFETY: `raw_stream` returns the handle of a stream of this context, and streams are never destroyed.
        check_result("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw_stream(number)) })
    }

    /// Blocks until all work queued on every stream of this context has ended.
    pub(super) fn wait_for_all_streams(&self) -> Result<()> {
        self.wait_for_stream(0)?;
        if self.has_several_streams() { self.streams.added_streams().try_for_each(|number| self.wait_for_stream(number)) } else { Ok(()) }
    }

    /// Blocks until all work queued on every stream of this context has ended, without reporting faults. Returns whether the wait
    /// succeeded.
    pub(crate) fn wait_for_all_streams_ignoring_faults(&self) -> bool {
        self.wait_for_all_streams().is_ok()
    }

    /// Makes `stream` wait on the device for `event`, of any context. The caller guarantees that the event exists.
    ///
    /// The driver can lose a wait that is queued while another thread launches a graph on the stream (driver 580.159,
    /// `docs/notes/streams-and-graphs.md`). A lock per stream, which [`Context::launch_graph_exec`] also takes, prevents this.
    pub(super) fn queue_event_wait(&self, stream: u32, event: sys::CUevent) -> Result<()> {
        self.make_current()?;
        let _turn = self.streams.lock_stream(stream);
        // SAFETY: the caller guarantees that `event` exists, and a stream may wait for an event of any context.
        check_result("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.raw_stream(stream), event, 0) })
    }
}
