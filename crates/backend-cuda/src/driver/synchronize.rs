//! New streams, waits that report faults of kernels, and queries of streams.

use super::primary_context::{check_result, create_stream};
use super::{Context, sys};
use crate::error::Result;

impl Context {
    /// Returns the number of a stream for new work. Creates a stream until there are 32 besides stream 0, then returns existing streams in
    /// turn.
    pub fn new_stream(&self) -> Result<u32> {
        self.streams.next_stream(|| self.retry_in_current_context(create_stream))
    }

    /// Blocks until all work queued so far on all streams has ended. Then returns errors of the driver, and faults of kernels that were
    /// queued by this thread or by threads that have ended.
    pub fn synchronize(&'static self) -> Result<()> {
        self.check_not_capturing("waiting for the device")?;
        let done = self.wait_and_report_faults();
        self.in_flight_owners().drop_unused_owners();
        self.return_excess_free_blocks()?;
        done
    }

    /// Blocks until the work of stream `number` has ended, and reports errors as [`Context::synchronize`] does.
    pub fn synchronize_stream(&'static self, number: u32) -> Result<()> {
        self.wait_for_stream(number)?;
        self.report_faults(|stream| stream == number)
    }

    /// Returns whether no work is queued or running on this thread's stream. During a capture, queries stream 0 instead. Returns errors of
    /// completed work.
    pub fn is_current_stream_idle(&self) -> Result<bool> {
        self.make_current()?;
        // During a capture stream 0 is queried, because a query of a capturing stream would invalidate the capture.
        let number = if self.is_capturing() { 0 } else { self.current_stream_number() };
        // SAFETY: `raw_stream` returns the handle of a stream of this context, and streams are never destroyed.
        match unsafe { sys::cuStreamQuery(self.raw_stream(number)) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => check_result("cuStreamQuery", other).map(|()| true),
        }
    }
}
