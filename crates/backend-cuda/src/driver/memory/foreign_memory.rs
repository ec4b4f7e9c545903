//! Device memory that is shared with other libraries, and the ordering between their streams and the streams of this crate.

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::buffer::DeviceBuffer;
use crate::driver::event::Event;
use crate::driver::in_flight_owners::Marks;
use crate::driver::primary_context::check_result;
use crate::driver::stream_order::{StreamSet, stream_numbers};
use crate::driver::stream_table::FIRST_CAPTURE_STREAM_ID;
use crate::driver::{Context, sys};
use crate::error::{CudaError, Result};

/// Value of `CU_POINTER_ATTRIBUTE_MEMORY_TYPE` for device memory (`CU_MEMORYTYPE_DEVICE`).
const MEMORY_TYPE_DEVICE: c_int = 2;

/// How another library uses the memory of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ForeignAccess {
    /// The library only reads the memory.
    Read,
    /// The library reads and writes the memory, and nothing else uses it meanwhile.
    Write,
}

impl Context {
    /// Returns an error if the driver does not know `pointer` as memory of this device.
    fn check_device_memory(&self, pointer: u64) -> Result<()> {
        self.set_current()?;
        let attribute = |attribute| {
            let mut value: c_int = -1;
            // SAFETY: the driver writes an `int` for these attributes, and returns an error for an unknown address.
            let code = unsafe { sys::cuPointerGetAttribute((&raw mut value).cast::<c_void>(), attribute, pointer) };
            (code == sys::CUresult::CUDA_SUCCESS).then_some(value)
        };
        let ours = self.info().ordinal;
        if attribute(sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE) != Some(MEMORY_TYPE_DEVICE) {
            return Err(CudaError::Invalid(format!("the address {pointer:#x} is not memory of a CUDA device")));
        }
        match attribute(sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
            Some(theirs) if theirs != ours as c_int => {
                Err(CudaError::Invalid(format!("the address {pointer:#x} is memory of cuda:{theirs}, not of cuda:{ours}")))
            }
            _ => Ok(()),
        }
    }

    /// Drops `owner` after the work queued so far on `streams`. If these streams are idle, drops `owner` at once. Otherwise a later call
    /// that allocates or waits drops `owner`.
    pub(super) fn drop_owner_after_streams(&'static self, streams: StreamSet, owner: Arc<dyn Any + Send + Sync>) {
        self.in_flight_owners().drop_unused_owners();
        let busy = stream_numbers(streams).filter(|&stream| !self.is_stream_idle(stream));
        match busy.map(|stream| self.record_stream_mark(stream)).collect::<Result<Marks>>() {
            Ok(marks) if !marks.is_empty() => self.in_flight_owners().keep_alive_until_marks_passed(marks, owner),
            Ok(_) => drop(owner),
            // If no event can be recorded, the host waits instead. In a lost context, no work runs any more.
            Err(_) => {
                self.wait_for_all_streams_ignoring_faults();
                drop(owner);
            }
        }
    }
}

impl DeviceBuffer {
    /// Wraps `bytes` bytes at `pointer` that another library allocated. If `ready` is a stream of the library, work on the buffer runs
    /// after the work queued so far on that stream. `owner` is dropped after the last work that uses the buffer.
    ///
    /// # Errors
    /// [`CudaError::Invalid`] if the driver does not know the address as memory of the device, and during a capture.
    ///
    /// # Safety
    /// `owner` keeps the bytes allocated, and nothing writes to them while `owner` exists. `owner` may be dropped on any thread. `ready` is
    /// a stream of `context`, or the driver's constant for a default stream.
    pub(crate) unsafe fn wrap_foreign_memory(
        context: &'static Context,
        pointer: u64,
        bytes: usize,
        owner: Arc<dyn Any + Send + Sync>,
        ready: Option<sys::CUstream>,
    ) -> Result<DeviceBuffer> {
        context.check_not_capturing("using memory of another library")?;
        context.in_flight_owners().drop_unused_owners();
        let home = context.current_stream_number();
        if bytes == 0 {
            return context.alloc_buffer_on_stream(home, 0);
        }
        context.check_device_memory(pointer)?;
        if let Some(stream) = ready {
            let event = Event::new(context)?;
            // SAFETY: the caller guarantees that `stream` is of this context.
            unsafe { event.record_on_foreign_stream(stream) }?;
            event.make_stream_wait(context, home)?;
        }
        Ok(DeviceBuffer::wrap_foreign_block(context, home, pointer, bytes, owner))
    }

    /// Makes `stream`, a stream of another library, wait on the device for earlier work on the buffer. For [`ForeignAccess::Read`],
    /// `stream` waits for the work that writes the buffer. For [`ForeignAccess::Write`], `stream` waits for all work that uses the buffer.
    /// If `stream` is `None`, only this thread's stream waits.
    ///
    /// # Safety
    /// `stream` is a stream of the buffer's context, or the driver's constant for a default stream.
    pub(crate) unsafe fn prepare_for_foreign_stream(&self, stream: Option<sys::CUstream>, access: ForeignAccess) -> Result<()> {
        let context = self.context();
        context.check_not_capturing("giving an array to another library")?;
        context.set_current()?; // the other library may have changed the thread's current context
        let number = match access {
            ForeignAccess::Read => self.prepare_read()?,
            ForeignAccess::Write => self.prepare_write()?,
        };
        let Some(stream) = stream else { return Ok(()) };
        let event = Event::new(context)?;
        event.record_on_stream(number)?;
        // SAFETY: the caller guarantees that `stream` is of this context.
        unsafe { event.make_foreign_stream_wait(stream) }
    }

    /// Orders later writes and the reuse of the memory after all work queued so far on `stream`, a stream of another library. For
    /// [`ForeignAccess::Write`], also orders later reads.
    ///
    /// # Safety
    /// `stream` is a stream of the buffer's context, or the driver's constant for a default stream.
    pub(crate) unsafe fn order_reuse_after_stream(&self, stream: sys::CUstream, access: ForeignAccess) -> Result<()> {
        let context = self.context();
        context.set_current()?; // the other library may have changed the thread's current context
        let event = Event::new(context)?;
        // SAFETY: the caller guarantees that `stream` is of this context.
        unsafe { event.record_on_foreign_stream(stream) }?;
        // The home stream of the block waits for the event and is recorded as a user of the block. Other streams that access the block
        // later wait for the home stream.
        let home = if self.home_stream() < FIRST_CAPTURE_STREAM_ID { self.home_stream() } else { 0 };
        event.make_stream_wait(context, home)?;
        match access {
            ForeignAccess::Read => self.prepare_read_on_stream(home),
            ForeignAccess::Write => self.prepare_write_on_stream(home),
        }
    }

    /// Blocks until all work of the buffer's context has ended, including the work of other libraries.
    pub(crate) fn synchronize_whole_context(&self) -> Result<()> {
        self.context().set_current()?;
        // SAFETY: the call has no arguments, and the context is current.
        check_result("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }
}
