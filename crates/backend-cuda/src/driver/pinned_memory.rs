//! Pinned host memory for arrays, which the device can read directly and asynchronously.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use cuprum_core::device::Buffer;
use cuprum_core::host_buffer::HostBuffer;

use super::driver_probe::require_function;
use super::memory::DeviceBuffer;
use super::primary_context::check_result;
use super::{Context, sys};
use crate::error::{CudaError, Result};

/// A block of pinned host memory, freed on drop.
struct PinnedBlock {
    memory: NonNull<u8>,
    context: &'static Context,
}

// SAFETY: pinned memory is ordinary host memory for every thread, and the owning host buffer controls access.
unsafe impl Send for PinnedBlock {}
// SAFETY: pinned memory is ordinary host memory for every thread, and the owning host buffer controls access.
unsafe impl Sync for PinnedBlock {}

impl Drop for PinnedBlock {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: `memory` came from `cuMemHostAlloc` and is freed only here. A copy that reads the block keeps the owning buffer
            // alive.
            unsafe { sys::cuMemFreeHost(self.memory.as_ptr().cast()) };
        }
    }
}

/// Allocates `nbytes` bytes of zeroed pinned memory for a host array.
pub(crate) fn allocate_pinned(context: &'static Context, nbytes: usize) -> Result<HostBuffer> {
    require_function("cuMemFreeHost")?;
    context.in_flight_owners().drop_unused_owners(); // frees the sources of completed copies
    context.set_current()?;
    let mut memory: *mut c_void = ptr::null_mut();
    // SAFETY: the context is current, and the out-pointer `memory` is a local.
    check_result("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&mut memory, nbytes.max(1), sys::CU_MEMHOSTALLOC_PORTABLE) })?;
    let memory = NonNull::new(memory.cast::<u8>()).ok_or_else(|| CudaError::Invalid("no pinned memory was given".into()))?;
    let block = PinnedBlock { memory, context };
    // SAFETY: the block owns `nbytes` page-aligned bytes at `memory`, and writing zeros initialises them.
    unsafe {
        memory.write_bytes(0, nbytes);
        Ok(HostBuffer::from_owner(memory, nbytes, Box::new(block), true))
    }
}

/// Returns the bytes of `buffer`, or `None` if it was not allocated by [`allocate_pinned`].
fn pinned_bytes(buffer: &dyn Buffer) -> Option<&[u8]> {
    let host = buffer.as_any().downcast_ref::<HostBuffer>()?;
    host.owner()?.is::<PinnedBlock>().then(|| host.as_bytes())
}

/// Returns whether `buffer` was allocated by [`allocate_pinned`].
pub(crate) fn is_pinned(buffer: &dyn Buffer) -> bool {
    pinned_bytes(buffer).is_some()
}

impl Context {
    /// Queues a copy from the pinned memory `source` to the start of `dst`. Keeps `source` alive until the copy has ended.
    pub(crate) fn copy_from_pinned(&'static self, dst: &DeviceBuffer, source: &Arc<dyn Buffer>) -> Result<()> {
        let bytes = pinned_bytes(source.as_ref()).ok_or_else(|| CudaError::Invalid("not pinned memory".into()))?;
        let to = dst.checked_address(0, bytes.len())?;
        self.check_buffer_context(dst)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.check_not_capturing("a copy from the host to an array that is there")?;
        let stream = dst.prepare_write()?;
        self.make_current()?;
        // SAFETY: `to` points to at least `bytes.len()` bytes. `source` stays alive until the copy has ended, and is shared until then,
        // so that nothing writes to it.
        let code = unsafe { sys::cuMemcpyHtoDAsync_v2(to, bytes.as_ptr().cast(), bytes.len(), self.raw_stream(stream)) };
        check_result("cuMemcpyHtoDAsync", code)?;
        match self.record_stream_mark(stream) {
            Ok(mark) => {
                dst.record_write_mark(&mark);
                self.in_flight_owners().keep_alive_until_marks_passed([mark].into_iter().collect(), source.clone());
                Ok(())
            }
            // If no event can be recorded, waits for the whole stream, so that `source` may be dropped.
            Err(error) => self.wait_for_stream(stream).and(Err(error)),
        }
    }
}
