//! Device addresses of arrays, for work of other libraries.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use cuprum_core::error::shape_text;
use cuprum_core::{Array, Layout, NdArray, Result, StoredArray};

use super::foreign_stream::ForeignStream;
use crate::device::{self, CudaBuffer, to_core_error};
use crate::driver::ForeignAccess;

/// The device address of an array's elements, for work of another library.
///
/// The array stays alive until the value is dropped. The other library may only read the elements, because other arrays may share the
/// memory. [`SharedPointer::for_writing`] permits writes. Dropping the value orders the reuse of the memory after all work queued so far on
/// the stream, without blocking the host. With [`ForeignStream::PER_THREAD_DEFAULT`], dropping the value on another thread blocks until all
/// work of the device has ended.
///
/// # Examples
/// ```no_run
/// use cuprum_backend_cuda::interop::{SharedPointer, ForeignStream};
/// use cuprum_core::{DType, ones};
/// # fn main() -> cuprum_core::Result<()> {
/// let a = ones((2, 3), DType::F32)?; // on a CUDA device
/// let pointer = SharedPointer::new(&a, Some(ForeignStream::LEGACY_DEFAULT))?;
/// // Work of another library on the default stream reads 6 float32 at this address.
/// println!("{:#x} {:?}", pointer.address(), pointer.layout().strides());
/// drop(pointer); // after that work is queued
/// # Ok(())
/// # }
/// ```
pub struct SharedPointer {
    array: StoredArray,
    access: ForeignAccess,
    release: ReleaseOrder,
}

/// The work that must end before the memory of a dropped [`SharedPointer`] is reused.
#[derive(Clone, Copy, Debug)]
enum ReleaseOrder {
    /// The memory is reused after the work queued on this stream.
    Stream(ForeignStream),
    /// The memory is reused after the work on the per-thread default stream of the thread with this number.
    ThreadDefault(u64),
    /// The memory is reused after all work of the context, for which the host waits.
    Context,
}

/// Returns a number that no other thread of the process has.
fn unique_thread_number() -> u64 {
    static NEXT_THREAD_NUMBER: AtomicU64 = AtomicU64::new(0);
    thread_local!(static NUMBER: u64 = NEXT_THREAD_NUMBER.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}

impl SharedPointer {
    /// Evaluates `array` and makes `stream` wait on the device for the work that computes `array`.
    ///
    /// If `stream` is `None`, no stream waits: the caller orders its work after this thread's current stream
    /// ([`raw_stream`](super::raw_stream)). Dropping the `SharedPointer` then blocks until all work of the device has ended.
    ///
    /// # Errors
    /// Errors of the evaluation. [`Error::Device`](cuprum_core::Error::Device) if the array is not on a CUDA device.
    /// [`Error::Backend`](cuprum_core::Error::Backend) during a capture.
    pub fn new(array: &NdArray, stream: Option<ForeignStream>) -> Result<SharedPointer> {
        SharedPointer::lend_to_stream(array.stored()?, stream, ForeignAccess::Read)
    }

    /// Like [`SharedPointer::new`], for work that also writes the elements. The array is copied first if its memory is shared, or belongs
    /// to another library or a graph.
    ///
    /// The work may write until the value is dropped. `stream` waits on the device for every earlier use of the memory.
    ///
    /// # Errors
    /// The errors of [`SharedPointer::new`], and an error if there is too little memory for a copy.
    pub fn for_writing(mut array: NdArray, stream: Option<ForeignStream>) -> Result<SharedPointer> {
        array.make_unique()?;
        if !array.stored()?.buffer().is_writable() {
            array = array.copy()?;
        }
        let stored = array.stored()?;
        drop(array);
        SharedPointer::lend_to_stream(stored, stream, ForeignAccess::Write)
    }

    fn lend_to_stream(array: StoredArray, stream: Option<ForeignStream>, access: ForeignAccess) -> Result<SharedPointer> {
        let memory = device::memory_to_read(&array)?.memory();
        // SAFETY: `ForeignStream::from_raw` requires that the stream exists while the `ForeignStream` is in use.
        let lent = unsafe { memory.prepare_for_foreign_stream(stream.map(ForeignStream::raw), access) };
        lent.map_err(|e| to_core_error("cuda", "device_pointer", memory.context().device(), e))?;
        let release = match stream {
            None => ReleaseOrder::Context,
            Some(ForeignStream::PER_THREAD_DEFAULT) => ReleaseOrder::ThreadDefault(unique_thread_number()),
            Some(stream) => ReleaseOrder::Stream(stream),
        };
        Ok(SharedPointer { array, access, release })
    }

    /// Declares that the stream may be destroyed before this value is dropped.
    ///
    /// Dropping the value then blocks until all work of the device has ended, unless the stream is the legacy default stream.
    pub fn may_outlive_stream(mut self) -> SharedPointer {
        if !matches!(self.release, ReleaseOrder::Stream(ForeignStream::LEGACY_DEFAULT)) {
            self.release = ReleaseOrder::Context;
        }
        self
    }

    /// Returns the device address of element 0, or 0 for an empty array. With negative strides, other elements have lower addresses.
    pub fn address(&self) -> u64 {
        self.buffer().map_or(0, |buffer| device::element_0_address(buffer, &self.array))
    }

    /// Returns the shape, and the strides in elements.
    pub fn layout(&self) -> &Layout {
        self.array.layout()
    }

    /// Returns the array.
    pub fn array(&self) -> &StoredArray {
        &self.array
    }

    /// Returns the device memory. `None` for an empty array.
    fn buffer(&self) -> Option<&CudaBuffer> {
        CudaBuffer::of(self.array.buffer().as_ref()).filter(|buffer| !buffer.memory().is_empty())
    }
}

impl fmt::Debug for SharedPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedPointer({:#x}, {} {})", self.address(), self.array.dtype(), shape_text(self.array.shape()))
    }
}

impl Drop for SharedPointer {
    fn drop(&mut self) {
        let Some(memory) = self.buffer().map(CudaBuffer::memory) else { return };
        let stream = match self.release {
            ReleaseOrder::Stream(stream) => Some(stream),
            ReleaseOrder::ThreadDefault(thread) => Some(ForeignStream::PER_THREAD_DEFAULT).filter(|_| thread == unique_thread_number()),
            ReleaseOrder::Context => None,
        };
        let ordered = match stream {
            // SAFETY: `ForeignStream::from_raw` requires that the stream exists until this `SharedPointer` is dropped.
            Some(stream) => unsafe { memory.order_reuse_after_stream(stream.raw(), self.access) },
            None => memory.synchronize_whole_context(),
        };
        if ordered.is_err() && memory.synchronize_whole_context().is_err() {
            // If the wait failed, the memory may still be in use. Leaking a reference to the array prevents its reuse.
            std::mem::forget(self.array.clone());
        }
    }
}
