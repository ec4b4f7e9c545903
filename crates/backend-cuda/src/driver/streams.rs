//! The current stream of a thread, and waits for streams.

use cuprum_core::Stream;

use super::primary::check;
use super::stream_table::FIRST_CAPTURE;
use super::{Context, sys};
use crate::error::{CudaError, Result};

impl Context {
    /// Returns the number of this thread's stream (`cuprum_core::Stream::current`).
    #[inline]
    pub fn stream_number(&self) -> u32 {
        match Stream::current(self.device()).id {
            0 => 0,
            number if self.streams.get(number).is_some() => number,
            _ => 0, // a capture that has ended
        }
    }

    /// Returns this thread's stream (a `cudaStream_t` for runtime libraries).
    #[inline]
    pub fn stream(&self) -> sys::CUstream {
        self.raw_stream(self.stream_number())
    }

    /// Returns the stream with this number, or the first stream if there is none.
    #[inline]
    pub(crate) fn raw_stream(&self, number: u32) -> sys::CUstream {
        let first = self.streams.first();
        if number == 0 { first.0 } else { self.streams.get(number).unwrap_or(first).0 }
    }

    /// Whether work may be on another stream than the first.
    #[inline]
    pub fn has_several_streams(&self) -> bool {
        self.streams.has_several()
    }

    /// Whether this thread's work is being captured.
    #[inline]
    pub fn is_capturing(&self) -> bool {
        self.stream_number() >= FIRST_CAPTURE
    }

    /// Whether a stream number is a capture's.
    #[inline]
    pub(crate) fn is_capture(&self, number: u32) -> bool {
        number >= FIRST_CAPTURE
    }

    /// Returns an error if this thread's work is being captured and so has not run.
    pub(crate) fn not_capturing(&self, what: &str) -> Result<()> {
        Self::not_captured(self.stream_number(), what)
    }

    /// Returns an error for the stream of a capture.
    pub(super) fn not_captured(number: u32, what: &str) -> Result<()> {
        if number >= FIRST_CAPTURE {
            return Err(CudaError::Invalid(format!("{what} cannot be captured into a graph: do it before the capture, or after a launch")));
        }
        Ok(())
    }

    /// Waits for one stream.
    pub(super) fn wait_for(&self, number: u32) -> Result<()> {
        Self::not_captured(number, "waiting for the device")?;
        self.bind()?;
        // SAFETY: a stream of this context.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw_stream(number)) })
    }

    /// Waits for all streams.
    pub(super) fn wait(&self) -> Result<()> {
        self.wait_for(0)?;
        if self.has_several_streams() { self.streams.added().try_for_each(|number| self.wait_for(number)) } else { Ok(()) }
    }

    /// Waits without reporting faults. Returns false on failure.
    pub(crate) fn synchronize_quietly(&self) -> bool {
        self.wait().is_ok()
    }

    /// Makes a stream wait for an event of any context. The caller guarantees that the event is alive.
    ///
    /// A wait that is queued while another thread launches a graph on the same stream is occasionally lost (driver 580.159,
    /// `docs/notes/streams-and-graphs.md`). A lock prevents this, here and in [`Context::queue_graph`].
    pub(super) fn queue_wait(&self, stream: u32, event: sys::CUevent) -> Result<()> {
        self.bind()?;
        let _turn = self.streams.turn(stream);
        // SAFETY: the event is alive. A stream may wait for an event of any context.
        check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.raw_stream(stream), event, 0) })
    }
}
