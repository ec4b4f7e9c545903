//! Construction and reading of arrays, and copies between devices.

use std::sync::Arc;

use super::expression_node::NdArray;
use super::host_data::IntoElements;
use crate::arguments::IntoShape;
use crate::array::{Array, StoredArray};
use crate::device::{Buffer, Device, Stream, driver};
use crate::dispatch::trace;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::host_buffer::{HostBuffer, gather_elements, slice_as_bytes, try_reserve};
use crate::layout::{Layout, checked_size};
use crate::scalar::Scalar;

/// # Construction
///
/// [`zeros`](crate::zeros), [`arange`](crate::arange) and other functions create arrays too.
impl NdArray {
    /// Returns a 1-D array with a copy of `values` on the current device (`numpy.array`). [`NdArray::from_vec`] moves a `Vec`.
    ///
    /// The dtype corresponds to the Rust type of the values, so that no value is converted: `[1, 2, 3]` gives int32, since Rust's integer
    /// literals are `i32`. Write `[1i64, 2, 3]` for NumPy's default. Integer arguments without a dtype, as in [`arange`](crate::arange),
    /// give int64.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or an error of the current device.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[1.5, 2.5])?; // float64: the dtype is that of the Rust type
    /// assert_eq!((a.dtype(), a.shape()), (cuprum::DType::F64, &[2][..]));
    /// assert_eq!(NdArray::from_slice(&[1, 2])?.dtype(), cuprum::DType::I32);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_slice<T: Element>(values: &[T]) -> Result<NdArray> {
        Self::from_vec(values, values.len())
    }

    /// Returns an array of the given shape, with `values` in C order, on the current device.
    ///
    /// On the host, a `Vec` or boxed slice becomes the array's memory without a copy, and [`NdArray::into_vec`] returns it. Slices and Rust
    /// arrays are copied. The dtype is that of the elements: `[1, 2]` gives int32, `[1.0, 2.0]` float64.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of values differs from the size of the shape; [`Error::OutOfMemory`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{Device, NdArray, with_device};
    /// # fn main() -> cuprum::Result<()> {
    /// let samples = vec![1.0f32, 2.0, 3.0, 4.0];
    /// let address = samples.as_ptr();
    /// let a = with_device(Device::CPU, || NdArray::from_vec(samples, [2, 2]))?;
    /// assert_eq!(a.as_slice::<f32>()?.as_ptr(), address);
    /// let samples = a.into_vec::<f32>()?;
    /// assert_eq!(samples.as_ptr(), address);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_vec<T: Element>(values: impl IntoElements<T>, shape: impl IntoShape) -> Result<NdArray> {
        let (shape, count) = (shape.into_shape(), values.as_ref().len());
        let size = checked_size("from_vec", &shape)?;
        if size != count {
            return Err(Error::shape("from_vec", format!("{count} values given, {size} needed for the shape"), &[&shape]));
        }
        let (device, layout) = (Device::current()?, Layout::contiguous(&shape)?);
        let buffer: Arc<dyn Buffer> = if device == Device::CPU {
            Arc::new(values.into_host_buffer()?)
        } else {
            driver(device)?.upload(slice_as_bytes(values.as_ref()), Stream::current(device))?
        };
        Ok(NdArray::from(StoredArray::new(T::DTYPE, layout, buffer)?))
    }

    /// Returns an array over a C-order host buffer, copied to the current device unless that device is the host.
    pub(crate) fn from_c_order_buffer(dtype: DType, shape: &[usize], host: HostBuffer) -> Result<NdArray> {
        Self::from_host_buffer(dtype, Layout::contiguous(shape)?, host)
    }

    /// Returns an array over host memory, whose elements are at the positions that `layout` gives. The array takes the buffer without a
    /// copy if the current device is the host; otherwise the elements are copied to the device.
    ///
    /// # Errors
    /// [`Error::Shape`] if the layout reaches outside the buffer. [`Error::Value`] if the memory is not aligned for `dtype`, or if `dtype`
    /// is bool and there are bytes other than 0 and 1 ([`HostBuffer::normalize_bools`]). Errors of the current device.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::host_buffer::HostBuffer;
    /// use cuprum::{DType, Layout, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// let columns = HostBuffer::from_vec(vec![1.0, 2.0, 3.0, 4.0]);
    /// let a = NdArray::from_host_buffer(DType::F64, Layout::strided(&[2, 2], &[1, 2], 0)?, columns)?;
    /// assert_eq!(a.to_vec::<f64>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_host_buffer(dtype: DType, layout: Layout, host: HostBuffer) -> Result<NdArray> {
        if !host.is_aligned_for(dtype) {
            let message = format!("memory at {:p} is not aligned for {dtype} ({} bytes); copy it", host.as_ptr(), dtype.alignment());
            return Err(Error::value("array", message));
        }
        let device = Device::current()?;
        let stored = StoredArray::new(dtype, layout, Arc::new(host))?;
        Ok(NdArray::from(if device == Device::CPU { stored } else { stored.upload(device, Stream::current(device))? }))
    }

    /// Returns an array of the given dtype and shape from the raw little-endian bytes of its elements in C order. Nonzero bytes of bool
    /// count as true.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of bytes does not match the shape and dtype; [`Error::OutOfMemory`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_bytes(DType::I16, [2], &[1, 0, 2, 1])?;
    /// assert_eq!(a.to_vec::<i16>()?, [1, 258]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_bytes(dtype: DType, shape: impl IntoShape, bytes: &[u8]) -> Result<NdArray> {
        let shape = shape.into_shape();
        let want = checked_size("from_bytes", &shape)?.saturating_mul(dtype.itemsize());
        if want != bytes.len() {
            return Err(Error::shape("from_bytes", format!("{} bytes given, {want} needed for {dtype}", bytes.len()), &[&shape]));
        }
        let mut host = HostBuffer::from_bytes(bytes)?;
        if dtype == DType::Bool {
            host.normalize_bools()?;
        }
        Self::from_c_order_buffer(dtype, &shape, host)
    }

    /// Returns a 0-d array of a scalar in its default dtype ([`Scalar::default_dtype`]).
    ///
    /// # Errors
    /// [`Error::Value`] for an integer outside the range of int64 and uint64.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::scalar(2.5)?;
    /// assert_eq!((a.ndim(), a.item_as::<f64>()?), (0, 2.5));
    /// # Ok(())
    /// # }
    /// ```
    pub fn scalar(value: impl Into<Scalar>) -> Result<NdArray> {
        let value = value.into();
        let dtype = value.default_dtype();
        Self::scalar_as(value.to_checked_element("scalar", dtype)?, dtype)
    }

    /// Returns a 0-d array of a scalar converted to `dtype`.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(NdArray::scalar_as(7, DType::U8)?.to_vec::<u8>()?, [7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scalar_as(value: impl Into<Scalar>, dtype: DType) -> Result<NdArray> {
        let bytes = value.into().to_bytes(dtype);
        Self::from_bytes(dtype, (), &bytes[..dtype.itemsize()])
    }
}

/// # Properties
///
/// Only [`NdArray::strides`] and [`NdArray::is_contiguous`] evaluate a deferred array.
impl NdArray {
    /// Returns the element type.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(NdArray::from_slice(&[1u8])?.dtype(), DType::U8);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Returns the shape: one extent per axis.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(zeros([2, 3], DType::F32)?.shape(), [2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    /// Returns the number of axes.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(zeros([2, 3], DType::F32)?.ndim(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ndim(&self) -> usize {
        self.0.shape.len()
    }

    /// Returns the number of elements.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(zeros([2, 3], DType::F32)?.size(), 6);
    /// # Ok(())
    /// # }
    /// ```
    pub fn size(&self) -> usize {
        self.0.shape.iter().product()
    }

    /// Returns the size of all elements in bytes.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(zeros([2, 3], DType::F32)?.nbytes(), 24);
    /// # Ok(())
    /// # }
    /// ```
    pub fn nbytes(&self) -> usize {
        self.size() * self.dtype().itemsize()
    }

    /// Returns the device that holds the array.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{Device, NdArray, with_device};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = with_device(Device::CPU, || NdArray::scalar(1))?;
    /// assert_eq!(a.device(), Device::CPU);
    /// # Ok(())
    /// # }
    /// ```
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// Returns the strides in elements. Evaluates a deferred array.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(zeros([2, 3], DType::F32)?.t()?.strides()?, [1, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn strides(&self) -> Result<Vec<isize>> {
        Ok(self.stored()?.layout().strides().to_vec())
    }

    /// Returns whether the elements are in C order without gaps. Evaluates a deferred array.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = zeros([2, 3], DType::F32)?;
    /// assert!(a.is_contiguous()? && !a.t()?.is_contiguous()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_contiguous(&self) -> Result<bool> {
        Ok(self.stored()?.layout().is_c_contiguous())
    }
}

/// # Values on the host
///
/// These methods wait for the device.
impl NdArray {
    /// Returns a copy of the elements in C order, in host memory. Waits for the device. [`NdArray::as_slice`] borrows them instead.
    ///
    /// # Errors
    /// [`Error::DType`] if `T` is not the array's dtype ([`NdArray::astype`] converts); errors of deferred and queued work.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1, 2, 3, 4], [2, 2])?;
    /// assert_eq!(a.t()?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_element_type::<T>("to_vec")?;
        let (bytes, layout) = self.host_bytes()?;
        gather_elements(&bytes, &layout)
    }

    /// Returns the only element of an array of size 1 (`numpy.ndarray.item`). Waits for the device.
    ///
    /// # Errors
    /// [`Error::Shape`] for any other size; errors of deferred and queued work.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let total = NdArray::from_slice(&[1.5, 2.0])?.sum(())?;
    /// assert_eq!(total.item()?.as_f64(), 3.5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn item(&self) -> Result<Scalar> {
        if self.size() != 1 {
            let message = format!(
                "can only convert an array of size 1 to a scalar, not one of {}; `to_vec` reads all elements, `index` and `item_as` one",
                self.size()
            );
            return Err(Error::shape("item", message, &[self.shape()]));
        }
        let (bytes, layout) = self.host_bytes()?;
        let at = layout.offset() * self.dtype().itemsize();
        Ok(Scalar::from_bytes(self.dtype(), bytes.get(at..).unwrap_or_default()))
    }

    /// Returns a copy of the elements in C order as raw little-endian bytes, in host memory. Waits for the device.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(NdArray::from_slice(&[1i16, 258])?.to_bytes()?, [1, 0, 2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.eval()?;
        let mut out = Vec::new();
        try_reserve("to_bytes", &mut out, self.nbytes())?;
        self.for_each_byte_chunk(|chunk| {
            out.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(out)
    }

    /// Calls `f` with the bytes of the elements in C order: once if contiguous, else in chunks of 16 KiB. Waits for the device.
    pub(crate) fn for_each_byte_chunk(&self, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        const CHUNK_BYTES: usize = 1 << 14;
        let (bytes, layout) = self.host_bytes()?;
        let item = self.dtype().itemsize();
        if layout.is_c_contiguous() {
            let start = layout.offset() * item;
            return f(bytes.get(start..start + layout.size() * item).unwrap_or_default());
        }
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        for at in crate::host_buffer::element_offsets(&layout) {
            let start = at as usize * item;
            chunk.extend_from_slice(bytes.get(start..start + item).unwrap_or_default());
            if chunk.len() >= CHUNK_BYTES {
                f(&chunk)?;
                chunk.clear();
            }
        }
        f(&chunk)
    }

    /// Returns host bytes that cover the array, and the array's layout within them.
    fn host_bytes(&self) -> Result<(HostBytes, Layout)> {
        let stored = self.stored()?;
        if stored.buffer().as_any().is::<HostBuffer>() {
            return Ok((HostBytes(stored.buffer().clone()), stored.layout().clone()));
        }
        // If the view covers less than half of its range in the buffer, the device first packs the view's elements. Only the packed
        // elements are then copied to the host.
        let (lo, hi) = stored.layout().buffer_range();
        if (hi - lo) as usize > 2 * stored.layout().size() {
            return self.contiguous()?.host_bytes();
        }
        let item = self.dtype().itemsize();
        let bytes = HostBuffer::download_buffer(self.dtype(), stored.buffer().as_ref(), lo as usize * item, (hi - lo) as usize * item)?;
        trace::flush();
        let layout = stored.layout().with_offset(stored.layout().offset() - lo as usize);
        Ok((HostBytes(Arc::new(bytes)), layout))
    }

    /// Returns a view of this array's buffer with the layout that `layout` returns.
    pub(crate) fn view_with_layout(&self, layout: impl FnOnce(&Layout) -> Result<Layout>) -> Result<NdArray> {
        let stored = self.stored()?;
        Ok(NdArray::from(stored.with_layout(layout(stored.layout())?)?))
    }
}

/// # Devices
///
/// [`with_device`](crate::with_device) selects the device of new arrays.
impl NdArray {
    /// Returns a copy in pinned (page-locked) host memory, which `device` reads directly. If `device` is the host, this is the same as
    /// [`NdArray::to_device`].
    ///
    /// [`NdArray::to_device`] of a pinned array returns at once, and the copy runs at full bus speed. Copies from other memory go through
    /// the library's own pinned blocks. Pinning takes longer than a copy, so reuse pinned arrays.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, Device, NdArray, ones, with_device};
    /// # fn main() -> cuprum::Result<()> {
    /// let gpu = Device::parse("cuda")?;
    /// let batch = with_device(Device::CPU, || ones([4096, 4096], DType::F32))?.pin_memory(gpu)?;
    /// let on_gpu = batch.to_device(gpu)?; // the copy is queued
    /// # Ok(())
    /// # }
    /// ```
    pub fn pin_memory(&self, device: Device) -> Result<NdArray> {
        if device == Device::CPU {
            return self.to_device(device);
        }
        let source = self.contiguous()?;
        let (bytes, layout) = source.host_bytes()?;
        let start = layout.offset() * self.dtype().itemsize();
        let mut host = driver(device)?.allocate_pinned(self.nbytes())?;
        host.overwrite_with(bytes.get(start..start + self.nbytes()).unwrap_or_default())?;
        Ok(NdArray::from(StoredArray::new(self.dtype(), Layout::contiguous(self.shape())?, Arc::new(host))?))
    }

    /// Returns a copy on `device`, or another handle to this array if `device` holds the array already. The copy is asynchronous where the
    /// device allows.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{Device, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// let on_host = NdArray::from_slice(&[1.0, 2.0])?.to_device(Device::CPU)?;
    /// assert_eq!(on_host.device(), Device::CPU);
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_device(&self, device: Device) -> Result<NdArray> {
        if self.device() == device {
            return Ok(self.clone());
        }
        let source = self.contiguous()?;
        let stored = source.stored()?;
        let target = driver(device)?;
        let item = self.dtype().itemsize();
        let start = stored.layout().offset() * item;
        let layout = Layout::contiguous(self.shape())?;
        if let Some(direct) = target.copy_from_other_device(stored.buffer(), start..start + self.nbytes(), Stream::current(device)) {
            return Ok(NdArray::from(StoredArray::new(self.dtype(), layout, direct?)?));
        }
        let (bytes, host_layout) = source.host_bytes()?;
        if device == Device::CPU {
            return Ok(NdArray::from(StoredArray::new(self.dtype(), host_layout, bytes.0)?));
        }
        let start = host_layout.offset() * item;
        let bytes = bytes.get(start..start + self.nbytes()).unwrap_or_default();
        Ok(NdArray::from(StoredArray::new(self.dtype(), layout, target.upload(bytes, Stream::current(device))?)?))
    }
}

impl Array for NdArray {
    fn dtype(&self) -> DType {
        self.dtype()
    }
    fn shape(&self) -> &[usize] {
        self.shape()
    }
    fn device(&self) -> Device {
        self.device()
    }
    fn to_device(&self, device: Device) -> Result<NdArray> {
        self.to_device(device)
    }
}

/// Bytes in host memory: the array's own buffer, or a downloaded copy.
struct HostBytes(Arc<dyn Buffer>);

impl std::ops::Deref for HostBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0.as_any().downcast_ref::<HostBuffer>().map_or(&[], HostBuffer::as_bytes)
    }
}

impl AsRef<NdArray> for NdArray {
    fn as_ref(&self) -> &NdArray {
        self
    }
}
