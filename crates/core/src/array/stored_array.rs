//! The interface of every kind of array ([`Array`]), and an array in memory ([`StoredArray`]).

use std::any::Any;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::device::{Buffer, Device, Stream, driver};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host_buffer::HostBuffer;
use crate::layout::Layout;

/// The interface of every kind of array: element type, shape, size, device, and transfer to another device.
///
/// [`StoredArray`], [`NdArray`](crate::NdArray) and sparse arrays implement this trait. No method evaluates a deferred array, except
/// [`to_device`](Array::to_device). Only [`StoredArray`] has methods that return a layout and a buffer. A deferred array has no buffer, and
/// a sparse array has several.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{Array, DType, zeros};
/// fn total_bytes(arrays: &[&dyn Array]) -> usize { arrays.iter().map(|a| a.nbytes()).sum() }
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (zeros([2, 3], DType::F32)?, zeros(4, DType::F64)?);
/// assert_eq!(total_bytes(&[&a, &b.stored()?]), 24 + 32);
/// # Ok(())
/// # }
/// ```
pub trait Array {
    /// Returns the element type.
    fn dtype(&self) -> DType;
    /// Returns the shape: one extent per axis.
    fn shape(&self) -> &[usize];
    /// Returns the device that holds the elements.
    fn device(&self) -> Device;
    /// Returns a copy on `device`, or another handle to this array if `device` holds the array already.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or another error of the source device or of `device`.
    fn to_device(&self, device: Device) -> Result<Self>
    where
        Self: Sized;

    /// Returns the number of axes.
    fn ndim(&self) -> usize {
        self.shape().len()
    }
    /// Returns the number of elements.
    fn size(&self) -> usize {
        self.shape().iter().product()
    }
    /// Returns the size of all elements in bytes.
    fn nbytes(&self) -> usize {
        self.size().saturating_mul(self.dtype().itemsize())
    }
}

/// An array in memory: a dtype, a layout and a shared buffer.
///
/// Kernels read and return this type. Cloning increments a reference count.
#[derive(Clone)]
pub struct StoredArray(Arc<StoredArrayState>);

/// Output arrays of a [`Call`](crate::Call), in the order of its output specifications.
pub type Outputs = SmallVec<[StoredArray; 1]>;

// Arrays are unwind-safe: they are immutable, so a panic cannot leave one half-written.
impl std::panic::UnwindSafe for StoredArray {}
impl std::panic::RefUnwindSafe for StoredArray {}

struct StoredArrayState {
    dtype: DType,
    layout: Layout,
    buffer: Arc<dyn Buffer>,
}

impl StoredArray {
    /// Returns an array whose elements are in `buffer`, in the positions that `layout` gives.
    ///
    /// # Errors
    /// [`Error::Shape`] if the layout reaches outside the buffer. [`Error::Value`] if `dtype` is bool and `buffer` is a host buffer with
    /// bytes other than 0 and 1; [`NdArray::from_bytes`](crate::NdArray::from_bytes) converts such bytes.
    #[inline]
    pub fn new(dtype: DType, layout: Layout, buffer: Arc<dyn Buffer>) -> Result<StoredArray> {
        StoredArray::check_layout_in_buffer(dtype, &layout, buffer.nbytes())?;
        if dtype == DType::Bool {
            StoredArray::check_bool_bytes(buffer.as_ref())?;
        }
        Ok(StoredArray(Arc::new(StoredArrayState { dtype, layout, buffer })))
    }

    fn check_layout_in_buffer(dtype: DType, layout: &Layout, nbytes: usize) -> Result<()> {
        let (lo, hi) = layout.buffer_range();
        if lo < 0 || (hi as usize).saturating_mul(dtype.itemsize()) > nbytes {
            let message = format!("layout {layout:?} of {dtype} reaches outside its buffer of {nbytes} bytes");
            return Err(Error::shape("array", message, &[layout.shape()]));
        }
        Ok(())
    }

    fn check_bool_bytes(buffer: &dyn Buffer) -> Result<()> {
        match buffer.as_any().downcast_ref::<HostBuffer>() {
            Some(host) if !host.has_valid_bools() => {
                Err(Error::value("array", "a bool array over bytes other than 0 and 1; NdArray::from_bytes converts them"))
            }
            _ => Ok(()),
        }
    }

    /// Returns an array with the given layout over the buffer of `self`, without a copy.
    ///
    /// # Errors
    /// [`Error::Shape`] if the layout reaches outside the buffer.
    pub fn with_layout(&self, layout: Layout) -> Result<StoredArray> {
        StoredArray::new(self.0.dtype, layout, self.0.buffer.clone())
    }

    /// Returns shape, strides and offset.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// Returns the buffer that holds the elements.
    #[inline]
    pub fn buffer(&self) -> &Arc<dyn Buffer> {
        &self.0.buffer
    }

    /// Returns the shape.
    pub fn shape(&self) -> &[usize] {
        self.0.layout.shape()
    }

    /// Returns a copy in host memory of the bytes that the layout covers. Waits for the device.
    pub(crate) fn copy_to_host(&self) -> Result<StoredArray> {
        let (lo, hi) = self.0.layout.buffer_range();
        let item = self.0.dtype.itemsize();
        let bytes = HostBuffer::download_buffer(self.0.dtype, self.0.buffer.as_ref(), lo as usize * item, (hi - lo) as usize * item)?;
        StoredArray::new(self.0.dtype, self.0.layout.with_offset(self.0.layout.offset() - lo as usize), Arc::new(bytes))
    }

    /// Returns a copy on `device` with the strides of `self`. The copy is queued on `stream`.
    pub(crate) fn upload(&self, device: Device, stream: Stream) -> Result<StoredArray> {
        let (lo, hi) = self.0.layout.buffer_range();
        let item = self.0.dtype.itemsize();
        let range = lo as usize * item..hi as usize * item;
        let layout = self.0.layout.with_offset(self.0.layout.offset() - lo as usize);
        let Some(host) = self.0.buffer.as_any().downcast_ref::<HostBuffer>() else {
            return match driver(device)?.copy_from_other_device(&self.0.buffer, range, stream) {
                Some(direct) => StoredArray::new(self.0.dtype, layout, direct?),
                None => self.copy_to_host()?.upload(device, stream),
            };
        };
        let bytes = host.as_bytes().get(range).unwrap_or_default();
        StoredArray::new(self.0.dtype, layout, driver(device)?.upload(bytes, stream)?)
    }

    /// Returns the layout and the host buffer, if this handle is the only owner of the array and of the buffer. Returns `None` if there are
    /// other owners, or if the elements are not in host memory.
    pub(crate) fn host_buffer_if_unique(&mut self) -> Option<(&Layout, &mut HostBuffer)> {
        let stored = Arc::get_mut(&mut self.0)?;
        let buffer: &mut dyn Any = Arc::get_mut(&mut stored.buffer)?;
        Some((&stored.layout, buffer.downcast_mut()?))
    }

    /// Returns whether this handle is the only owner of the array and its buffer. Always false for memory that another library may use
    /// ([`Buffer::is_foreign`]).
    pub(crate) fn is_unique(&mut self) -> bool {
        let buffer = Arc::get_mut(&mut self.0).and_then(|stored| Arc::get_mut(&mut stored.buffer));
        buffer.is_some_and(|buffer| !buffer.is_foreign())
    }
}

impl StoredArray {
    /// Returns whether the array has exactly one handle besides this one, and is the only owner of its buffer.
    pub(crate) fn has_one_other_handle(&self) -> bool {
        Arc::strong_count(&self.0) == 2 && Arc::strong_count(&self.0.buffer) == 1
    }
}

impl Array for StoredArray {
    fn dtype(&self) -> DType {
        self.0.dtype
    }
    fn shape(&self) -> &[usize] {
        self.0.layout.shape()
    }
    fn device(&self) -> Device {
        self.0.buffer.device()
    }
    fn to_device(&self, device: Device) -> Result<StoredArray> {
        if self.device() == device {
            return Ok(self.clone());
        }
        if device == Device::CPU { self.copy_to_host() } else { self.upload(device, Stream::current(device)) }
    }
}
