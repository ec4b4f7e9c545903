//! cudarc's slices as arrays, and arrays as cudarc's slices, without a copy.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtrMut};
use cuprum_core::dtype::Element;
use cuprum_core::layout::checked_size;
use cuprum_core::{Device, DeviceKind, Error, IntoShape, NdArray, Result};

use super::foreign_array::from_device_pointer;
use super::foreign_stream::ForeignStream;
use super::shared_pointer::SharedPointer;
use crate::device;

/// Returns the slice's memory as an array of the given shape, in C order and without a copy.
///
/// Work that uses the array runs after the work on the slice's stream, and after all uses of the slice that cudarc has recorded. The
/// slice is dropped after the array's last use.
///
/// # Errors
/// [`Error::Shape`] if the number of elements differs from the size of the shape. [`Error::Device`] if the slice's context is not the
/// primary context of the device. [`Error::Backend`] during a capture.
///
/// # Examples
/// ```no_run
/// use cuprum_backend_cuda::cudarc::driver::CudaContext;
/// use cuprum_backend_cuda::interop::{SharedSlice, from_cuda_slice};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = CudaContext::new(0)?.new_stream()?;
/// let slice = stream.clone_htod(&[1.0f32, 2.0, 3.0, 4.0])?;
/// let a = from_cuda_slice(slice, (2, 2))?;
/// let b = SharedSlice::<f32>::new(&(&a + 1.0f32), &stream)?;
/// assert_eq!(stream.clone_dtoh(&*b)?, [2.0, 3.0, 4.0, 5.0]);
/// # Ok(())
/// # }
/// ```
pub fn from_cuda_slice<T: Element>(mut slice: CudaSlice<T>, shape: impl IntoShape) -> Result<NdArray> {
    const OP: &str = "from_cuda_slice";
    let shape = shape.into_shape();
    if checked_size(OP, &shape)? != slice.len() {
        return Err(Error::shape(OP, format!("a slice of {} elements does not fill the shape", slice.len()), &[&shape]));
    }
    let device = Device::new(DeviceKind::intern(device::DEVICE_KIND_NAME)?, u16::try_from(slice.ordinal()).unwrap_or(u16::MAX));
    check_is_primary_context(OP, device, slice.stream())?;
    let stream = slice.stream().clone();
    // `device_ptr_mut` makes the stream also wait for reads on other streams, because the array may be written.
    let (pointer, recorded) = slice.device_ptr_mut(&stream);
    drop(recorded);
    // SAFETY: `stream` exists until the end of this function.
    let ready = unsafe { ForeignStream::from_raw(stream.cu_stream()) };
    // SAFETY: the slice owns its elements, which nothing else refers to. cudarc frees memory on any thread.
    unsafe { from_device_pointer(device, pointer, T::DTYPE, &shape, Box::new(slice), Some(ready)) }
}

/// Returns an error unless `stream` belongs to the context that this crate uses for `device`.
fn check_is_primary_context(op: &'static str, device: Device, stream: &CudaStream) -> Result<()> {
    if device::context(device)?.raw() == stream.context().cu_ctx() {
        return Ok(());
    }
    let message = format!("the context of the CudaStream is not the primary context of {device}, which cuprum uses; see CudaContext::new");
    Err(Error::Device { op, message })
}

/// An array as a [`CudaSlice`] for work on one stream, without a copy.
///
/// The value dereferences to the slice, which is read-only because other arrays may share the memory. The array stays alive until the value
/// is dropped. The drop orders the reuse of the memory after all work that is queued on the stream at that time.
///
/// cudarc makes its other streams wait for the array before they use the slice. Code that calls the unsafe
/// `CudaContext::disable_event_tracking` orders its streams itself.
#[derive(Debug)]
pub struct SharedSlice<T> {
    slice: ManuallyDrop<CudaSlice<T>>,
    /// Dropping this field orders the reuse of the memory after the work on the stream. The field precedes `_stream`, so that it is dropped
    /// while the stream exists.
    _pointer: SharedPointer,
    _stream: Arc<CudaStream>,
}

impl<T: Element> SharedSlice<T> {
    /// Evaluates `array` and makes `stream` wait on the device for the work that computes `array`.
    ///
    /// # Errors
    /// Errors of the evaluation. [`Error::DType`] if the elements are not of type `T`. [`Error::Shape`] if the elements are not in C order.
    /// [`Error::Device`] if the array is not on the stream's device. [`Error::Backend`] during a capture.
    pub fn new(array: &NdArray, stream: &Arc<CudaStream>) -> Result<SharedSlice<T>> {
        const OP: &str = "cuda_slice";
        if array.dtype() != T::DTYPE {
            return Err(Error::dtype(OP, format!("the array is not of {}; use astype", T::DTYPE), &[array.dtype()]));
        }
        if !array.is_contiguous()? {
            return Err(Error::shape(OP, "the elements are not in C order; use contiguous", &[array.shape()]));
        }
        check_is_primary_context(OP, device::cuda_context(OP, array.device())?.device(), stream)?;
        // SAFETY: the returned `SharedSlice` keeps `stream` alive until `pointer` has been dropped.
        let foreign = unsafe { ForeignStream::from_raw(stream.cu_stream()) };
        let pointer = SharedPointer::new(array, Some(foreign))?;
        // SAFETY: `pointer` keeps `array.size()` elements of type `T` alive at this address. The slice is leaked on drop, never freed.
        let slice = unsafe { stream.upgrade_device_ptr::<T>(pointer.address(), array.size()) };
        let mut slice = ManuallyDrop::new(slice);
        // Records the slice's write event on `stream`, which already waits for the work that computes the array. Other streams of cudarc
        // wait for this event.
        drop(slice.device_ptr_mut(stream));
        Ok(SharedSlice { slice, _pointer: pointer, _stream: stream.clone() })
    }
}

impl<T> Deref for SharedSlice<T> {
    type Target = CudaSlice<T>;

    fn deref(&self) -> &CudaSlice<T> {
        &self.slice
    }
}

impl<T> Drop for SharedSlice<T> {
    fn drop(&mut self) {
        // SAFETY: only this `drop` takes the slice, and `drop` runs once.
        let slice = unsafe { ManuallyDrop::take(&mut self.slice) };
        // `leak` makes the stream wait for uses of the slice on other streams of cudarc. `leak` does not free the memory, which belongs to
        // the array.
        let _ = slice.leak();
    }
}
