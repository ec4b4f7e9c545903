//! New streams, waits that report faults, and queries of streams.

use super::primary::{check, create_stream};
use super::{Context, sys};
use crate::error::Result;

impl Context {
    /// Returns the number of a stream for new work. Creates a stream until there are 32 besides the first, then reuses these
    /// in turn.
    pub fn new_stream(&self) -> Result<u32> {
        self.streams.next(|| self.retry_out_of_memory(create_stream))
    }

    /// Waits for all work queued so far on all streams. Then reports driver errors, and faults of kernels that this thread,
    /// or a thread that has ended, queued.
    pub fn synchronize(&'static self) -> Result<()> {
        self.not_capturing("waiting for the device")?;
        let done = self.wait_and_report();
        self.copy_sources().drop_completed();
        self.yield_kept_memory()?;
        done
    }

    /// [`Context::synchronize`] for the work of one stream.
    pub fn synchronize_stream(&'static self, number: u32) -> Result<()> {
        self.wait_for(number)?;
        self.report_faults(|stream| stream == number)
    }

    /// Whether nothing is queued or running on this thread's stream, or on the first stream during a capture. Reports errors
    /// of completed work too.
    pub fn is_idle(&self) -> Result<bool> {
        self.bind()?;
        // A query of a capturing stream would invalidate the capture.
        let number = if self.is_capturing() { 0 } else { self.stream_number() };
        // SAFETY: a stream of this context.
        match unsafe { sys::cuStreamQuery(self.raw_stream(number)) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => check("cuStreamQuery", other).map(|()| true),
        }
    }
}
