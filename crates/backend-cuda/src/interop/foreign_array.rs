//! Arrays over device memory of other libraries.

use std::any::Any;
use std::sync::Arc;

use cuprum_core::layout::checked_size;
use cuprum_core::{DType, Device, Error, IntoShape, Layout, NdArray, Result, StoredArray};

use super::foreign_stream::ForeignStream;
use crate::device::{self, CudaBuffer, to_core_error};
use crate::driver::DeviceBuffer;

/// Returns a buffer over `nbytes` bytes of device memory at `pointer`, without a copy.
///
/// Work that uses the buffer runs after the work queued so far on `ready`. If `ready` is `None`, the contents must be complete already, or
/// the caller must have made this thread's stream ([`raw_stream`](super::raw_stream)) wait for the work that writes them.
/// [`StoredArray::new`] makes an array with any layout from the result.
///
/// # Errors
/// [`Error::Device`] if `device` is not a CUDA device. [`Error::Backend`] if the driver does not know the address as memory of
/// `device`, and during a capture.
///
/// # Safety
/// `owner` keeps the bytes allocated, and nothing writes to them while `owner` exists. If `ready` is `Some`, its stream exists.
pub unsafe fn wrap_device_memory(
    device: Device,
    pointer: u64,
    nbytes: usize,
    owner: Box<dyn Any + Send + Sync>,
    ready: Option<ForeignStream>,
) -> Result<Arc<CudaBuffer>> {
    const OP: &str = "wrap_device_memory";
    let context = device::cuda_context(OP, device)?;
    // SAFETY: the caller meets the safety requirements of this function, which include those of `DeviceBuffer::wrap_foreign_memory`.
    let wrapped = unsafe { DeviceBuffer::wrap_foreign_memory(context, pointer, nbytes, Arc::from(owner), ready.map(ForeignStream::raw)) };
    wrapped.map(CudaBuffer::from_device_buffer).map_err(|e| to_core_error("cuda", OP, device, e))
}

/// Returns an array over device memory of another library, in C order and without a copy.
///
/// `owner` is dropped after the last use of the memory. Work that uses the array runs after the work queued so far on `ready`. If `ready`
/// is `None`, the requirements of [`wrap_device_memory`] apply.
///
/// # Errors
/// The errors of [`wrap_device_memory`], an error for a shape that is too large, and [`Error::Value`] for an address that is not a multiple
/// of the element size.
///
/// # Safety
/// `owner` keeps the elements allocated, and nothing writes to them while `owner` exists. Elements of dtype bool are 0 or 1. If `ready` is
/// `Some`, its stream exists.
///
/// # Examples
/// ```no_run
/// use cuprum_backend_cuda::interop::{SharedPointer, ForeignStream, from_device_pointer};
/// use cuprum_core::{DType, Device, ones};
/// # fn main() -> cuprum_core::Result<()> {
/// # let device = Device::parse("cuda")?;
/// // Memory that "another library" has filled on the default stream.
/// let theirs = SharedPointer::new(&ones((2, 3), DType::F32)?, Some(ForeignStream::LEGACY_DEFAULT))?;
/// let address = theirs.address();
/// // SAFETY: the guard keeps six float32 alive, and nothing writes to them.
/// let ours = unsafe { from_device_pointer(device, address, DType::F32, (2, 3), Box::new(theirs), Some(ForeignStream::LEGACY_DEFAULT)) }?;
/// assert_eq!(ours.sum(())?.item()?.as_f64(), 6.0);
/// # Ok(())
/// # }
/// ```
pub unsafe fn from_device_pointer(
    device: Device,
    pointer: u64,
    dtype: DType,
    shape: impl IntoShape,
    owner: Box<dyn Any + Send + Sync>,
    ready: Option<ForeignStream>,
) -> Result<NdArray> {
    const OP: &str = "from_device_pointer";
    let shape = shape.into_shape();
    let nbytes = checked_size(OP, &shape)? * dtype.itemsize();
    if !pointer.is_multiple_of(dtype.itemsize() as u64) {
        return Err(Error::value(OP, format!("the address {pointer:#x} is not aligned for {dtype}")));
    }
    // SAFETY: the caller meets the safety requirements of this function, which include those of `wrap_device_memory`.
    let buffer = unsafe { wrap_device_memory(device, pointer, nbytes, owner, ready) }?;
    Ok(NdArray::from(StoredArray::new(dtype, Layout::contiguous(&shape)?, buffer)?))
}
