//! The trait of stored arrays ([`Array`]), an array in memory ([`StoredArray`]) and the user's handle ([`NdArray`]).
//! This module holds construction, reading and views. Arithmetic is in `ops`, deferred evaluation in `expr`.

use std::sync::Arc;

use crate::buffer::{HostBuffer, gather_elements, try_reserve};
use crate::device::{Buffer, Device, Stream, driver};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::expr::Inner;
use crate::function::FromArgs;
use crate::index::Item;
use crate::layout::{Layout, check_ndim, checked_size, normalize_axes, normalize_axis_of_scalar};
use crate::ops::value::{Args, Value};
use crate::profiler::trace;
use crate::scalar::Scalar;
use cuprum_macros::numpy;

/// A stored array: its dtype, layout, device and buffer. Read-only.
pub trait Array {
    /// Element type.
    fn dtype(&self) -> DType;
    /// Shape, strides and offset.
    fn layout(&self) -> &Layout;
    /// The device that holds the buffer.
    fn device(&self) -> Device;
    /// The buffer that holds the elements.
    fn buffer(&self) -> &Arc<dyn Buffer>;
}

/// An array in memory: a dtype, a layout and a shared buffer.
///
/// Kernels read and return this type. Cloning increments a reference count.
#[derive(Clone)]
pub struct StoredArray(Arc<Stored>);

struct Stored {
    dtype: DType,
    layout: Layout,
    buffer: Arc<dyn Buffer>,
}

impl StoredArray {
    /// Returns an array over a buffer.
    ///
    /// # Errors
    /// [`Error::Shape`] if the layout reaches outside the buffer. [`Error::Value`] if `dtype` is bool and a host buffer has bytes other
    /// than 0 and 1; [`NdArray::from_bytes`] converts them.
    #[inline]
    pub fn new(dtype: DType, layout: Layout, buffer: Arc<dyn Buffer>) -> Result<StoredArray> {
        StoredArray::check_inside(dtype, &layout, buffer.nbytes())?;
        if dtype == DType::Bool {
            StoredArray::check_bools(buffer.as_ref())?;
        }
        Ok(StoredArray(Arc::new(Stored { dtype, layout, buffer })))
    }

    fn check_inside(dtype: DType, layout: &Layout, nbytes: usize) -> Result<()> {
        let (lo, hi) = layout.extent();
        if lo < 0 || (hi as usize).saturating_mul(dtype.itemsize()) > nbytes {
            let message = format!("layout {layout:?} of {dtype} reaches outside its buffer of {nbytes} bytes");
            return Err(Error::shape("array", message, &[layout.shape()]));
        }
        Ok(())
    }

    fn check_bools(buffer: &dyn Buffer) -> Result<()> {
        match buffer.as_any().downcast_ref::<HostBuffer>() {
            Some(host) if !host.holds_bools() => {
                Err(Error::value("array", "a bool array over bytes other than 0 and 1; NdArray::from_bytes converts them"))
            }
            _ => Ok(()),
        }
    }

    /// Returns an array over the same buffer with another layout.
    ///
    /// # Errors
    /// [`Error::Shape`] if the layout reaches outside the buffer.
    pub fn with_layout(&self, layout: Layout) -> Result<StoredArray> {
        StoredArray::new(self.0.dtype, layout, self.0.buffer.clone())
    }

    /// Returns the shape.
    pub fn shape(&self) -> &[usize] {
        self.0.layout.shape()
    }

    /// Whether this handle is the only owner of the array and its buffer.
    pub(crate) fn is_unique(&mut self) -> bool {
        Arc::get_mut(&mut self.0).is_some_and(|stored| Arc::get_mut(&mut stored.buffer).is_some())
    }
}

impl Array for StoredArray {
    fn dtype(&self) -> DType {
        self.0.dtype
    }
    fn layout(&self) -> &Layout {
        &self.0.layout
    }
    fn device(&self) -> Device {
        self.0.buffer.device()
    }
    fn buffer(&self) -> &Arc<dyn Buffer> {
        &self.0.buffer
    }
}

/// An n-dimensional array with NumPy's semantics: a cheap handle to an immutable value. The model is `numpy.ndarray`.
///
/// dtype, shape and device are known without evaluation. Elementwise operations are deferred and fused;
/// they run when the value is needed (see [`NdArray::eval`]). Cloning shares the value.
///
/// ```
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, NdArray};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1.0f32, 2.0, 3.0, 4.0])?.reshape([2, 2])?;
/// assert_eq!(a.shape(), &[2, 2]);
/// assert_eq!(a.dtype(), DType::F32);
/// assert_eq!(a.t()?.strides()?, vec![1, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct NdArray(pub(crate) Arc<Inner>);

/// Shape arguments of constructors: `4`, `[2, 3]`, `(2, 3)`, `vec![..]`, `&[..]`.
pub trait IntoShape {
    /// Returns the extents.
    fn into_shape(self) -> Vec<usize>;
}
impl IntoShape for usize {
    fn into_shape(self) -> Vec<usize> {
        vec![self]
    }
}
impl<const N: usize> IntoShape for [usize; N] {
    fn into_shape(self) -> Vec<usize> {
        self.to_vec()
    }
}
impl IntoShape for &[usize] {
    fn into_shape(self) -> Vec<usize> {
        self.to_vec()
    }
}
impl IntoShape for Vec<usize> {
    fn into_shape(self) -> Vec<usize> {
        self
    }
}
impl IntoShape for &Vec<usize> {
    fn into_shape(self) -> Vec<usize> {
        self.clone()
    }
}
impl IntoShape for () {
    fn into_shape(self) -> Vec<usize> {
        vec![]
    }
}
macro_rules! shape_tuples {
    ($(($($n:tt $t:ident),+)),*) => {$(
        impl IntoShape for ($($t,)+) {
            fn into_shape(self) -> Vec<usize> { vec![$(self.$n),+] }
        }
    )*};
}
type U = usize;
shape_tuples!((0 U), (0 U, 1 U), (0 U, 1 U, 2 U), (0 U, 1 U, 2 U, 3 U), (0 U, 1 U, 2 U, 3 U, 4 U));

fn squeeze_by_name(args: &Args) -> Result<Value> {
    let a = args.array("a")?;
    match args.get("axis") {
        // NumPy accepts the integers 0 and -1 as axes of a 0-d array, but not inside a tuple.
        Some(axis) if a.ndim() == 0 && axis.items().is_none() => normalize_axis_of_scalar("squeeze", axis.index("squeeze")?, 0).map(|_| a),
        _ => a.squeeze(args.ints("axis")?.as_deref()),
    }
    .map(Value::Array)
}

fn permute_dims_by_name(args: &Args) -> Result<Value> {
    let axes: Option<Vec<isize>> = FromArgs::from_args(args, "axes")?;
    let a = args.array("a")?;
    axes.map_or_else(|| a.t(), |axes| a.permute_dims(&axes)).map(Value::Array)
}

impl NdArray {
    /// Returns a 1-D array with a copy of `values` on the current device (`numpy.array`).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or an error of the current device.
    pub fn from_slice<T: Element>(values: &[T]) -> Result<NdArray> {
        Self::from_vec(values, values.len())
    }

    /// Returns an array of the given shape with a copy of `values` in C order, on the current device.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of values differs from the size of the shape; [`Error::OutOfMemory`].
    pub fn from_vec<T: Element>(values: impl AsRef<[T]>, shape: impl IntoShape) -> Result<NdArray> {
        let (values, shape) = (values.as_ref(), shape.into_shape());
        if checked_size("array", &shape)? != values.len() {
            return Err(Error::shape("array", format!("{} values do not fill the shape", values.len()), &[&shape]));
        }
        let host = HostBuffer::from_slice(values)?;
        Self::from_host(T::DTYPE, &shape, host)
    }

    /// Returns an array over a C-order host buffer, copied to the current device if that is not the host.
    pub(crate) fn from_host(dtype: DType, shape: &[usize], host: HostBuffer) -> Result<NdArray> {
        let device = Device::current()?;
        let layout = Layout::contiguous(shape)?;
        let buffer: Arc<dyn Buffer> =
            if device == Device::CPU { Arc::new(host) } else { driver(device)?.upload(host.as_bytes(), Stream::current(device))? };
        Ok(NdArray::from(StoredArray::new(dtype, layout, buffer)?))
    }

    /// Returns an array of raw little-endian bytes in C order. Nonzero bytes of bool count as true.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of bytes does not match the shape and dtype; [`Error::OutOfMemory`].
    pub fn from_bytes(dtype: DType, shape: impl IntoShape, bytes: &[u8]) -> Result<NdArray> {
        let shape = shape.into_shape();
        let want = checked_size("array", &shape)?.saturating_mul(dtype.itemsize());
        if want != bytes.len() {
            return Err(Error::shape("array", format!("{} bytes given, {want} needed for {dtype}", bytes.len()), &[&shape]));
        }
        let mut host = HostBuffer::from_bytes(bytes)?;
        if dtype == DType::Bool {
            host.as_mut_bytes().iter_mut().for_each(|b| *b = (*b != 0) as u8);
        }
        Self::from_host(dtype, &shape, host)
    }

    /// Returns a 0-d array of a scalar in its default dtype ([`Scalar::default_dtype`]).
    pub fn scalar(value: impl Into<Scalar>) -> Result<NdArray> {
        let value = value.into();
        Self::scalar_as(value, value.default_dtype())
    }

    /// Returns a 0-d array of a scalar converted to `dtype`.
    pub fn scalar_as(value: impl Into<Scalar>, dtype: DType) -> Result<NdArray> {
        let bytes = value.into().to_bytes(dtype);
        Self::from_bytes(dtype, (), &bytes[..dtype.itemsize()])
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Returns the shape: one extent per axis.
    #[numpy("shape(a)", call = |args| Ok(Value::tuple(args.array("a")?.shape().iter().map(|&n| n.into()))))]
    pub fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    /// Returns the number of axes.
    #[numpy("ndim(a)", call = |args| Ok(args.array("a")?.ndim().into()))]
    pub fn ndim(&self) -> usize {
        self.0.shape.len()
    }

    /// Returns the number of elements.
    #[numpy("size(a)", call = |args| Ok(args.array("a")?.size().into()))]
    pub fn size(&self) -> usize {
        self.0.shape.iter().product()
    }

    /// Returns the size of all elements in bytes.
    pub fn nbytes(&self) -> usize {
        self.size() * self.dtype().itemsize()
    }

    /// Returns the device that holds the array.
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// Returns the strides in elements. Evaluates a deferred array.
    pub fn strides(&self) -> Result<Vec<isize>> {
        Ok(self.stored()?.layout().strides().to_vec())
    }

    /// Whether the elements are in C order without gaps. Evaluates a deferred array.
    pub fn is_contiguous(&self) -> Result<bool> {
        Ok(self.stored()?.layout().is_c_contiguous())
    }

    /// Returns a copy of the elements in C order, in host memory. Waits for the device.
    ///
    /// # Errors
    /// [`Error::DType`] if `T` is not the array's dtype ([`NdArray::astype`] converts); errors of deferred and queued work.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype() {
            return Err(Error::dtype("to_vec", format!("array is {}, asked for {}; use astype", self.dtype(), T::DTYPE), &[self.dtype()]));
        }
        let (bytes, layout) = self.host_bytes()?;
        gather_elements(&bytes, &layout)
    }

    /// Returns the only element of an array of size 1 (`numpy.ndarray.item`). Waits for the device.
    ///
    /// # Errors
    /// [`Error::Shape`] for any other size; errors of deferred and queued work.
    pub fn item(&self) -> Result<Scalar> {
        if self.size() != 1 {
            return Err(Error::shape("item", "can only convert an array of size 1 to a scalar", &[self.shape()]));
        }
        let (bytes, layout) = self.host_bytes()?;
        let at = layout.offset() * self.dtype().itemsize();
        Ok(Scalar::from_bytes(self.dtype(), bytes.get(at..).unwrap_or_default()))
    }

    /// Returns a copy of the elements in C order as raw little-endian bytes, in host memory. Waits for the device.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.eval()?;
        let mut out = Vec::new();
        try_reserve("to_bytes", &mut out, self.nbytes())?;
        self.for_each_run(|run| {
            out.extend_from_slice(run);
            Ok(())
        })?;
        Ok(out)
    }

    /// Calls `f` with the bytes of the elements in C order: once if contiguous, else in chunks of 16 KiB. Waits for the device.
    pub(crate) fn for_each_run(&self, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        const CHUNK_BYTES: usize = 1 << 14;
        let (bytes, layout) = self.host_bytes()?;
        let item = self.dtype().itemsize();
        if layout.is_c_contiguous() {
            let start = layout.offset() * item;
            return f(bytes.get(start..start + layout.size() * item).unwrap_or_default());
        }
        let mut run = Vec::with_capacity(CHUNK_BYTES);
        for at in crate::buffer::offsets(&layout) {
            let start = at as usize * item;
            run.extend_from_slice(bytes.get(start..start + item).unwrap_or_default());
            if run.len() >= CHUNK_BYTES {
                f(&run)?;
                run.clear();
            }
        }
        f(&run)
    }

    /// Returns host bytes that cover the array, and the array's layout within them.
    fn host_bytes(&self) -> Result<(HostBytes, Layout)> {
        let stored = self.stored()?;
        if stored.buffer().as_any().is::<HostBuffer>() {
            return Ok((HostBytes(stored.buffer().clone()), stored.layout().clone()));
        }
        // A sparse view is packed on the device, so that only its elements are copied.
        let (lo, hi) = stored.layout().extent();
        if (hi - lo) as usize > 2 * stored.layout().size() {
            return self.contiguous()?.host_bytes();
        }
        let item = self.dtype().itemsize();
        let bytes = HostBuffer::downloaded(self.dtype(), stored.buffer().as_ref(), lo as usize * item, (hi - lo) as usize * item)?;
        trace::flush();
        let layout = stored.layout().with_offset(stored.layout().offset() - lo as usize);
        Ok((HostBytes(Arc::new(bytes)), layout))
    }

    /// Returns a view of the same buffer with another layout.
    fn view(&self, layout: impl FnOnce(&Layout) -> Result<Layout>) -> Result<NdArray> {
        let stored = self.stored()?;
        Ok(NdArray::from(stored.with_layout(layout(stored.layout())?)?))
    }

    /// Basic indexing (`a[1:, ::2, None]`): a view. The macro [`s!`](crate::s) writes the items.
    ///
    /// ```
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{NdArray, s};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1, 2, 3, 4, 5, 6], [2, 3])?;
    /// assert_eq!(a.index(s![.., ..;-1])?.to_vec::<i32>()?, [3, 2, 1, 6, 5, 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn index(&self, items: &[Item]) -> Result<NdArray> {
        self.view(|l| l.index(items))
    }

    /// Returns the elements in C order with another shape, as a view where possible, else a copy (`numpy.reshape`).
    ///
    /// One extent may be -1 and is then computed.
    ///
    /// # Errors
    /// [`Error::Value`] if the sizes differ or more than one extent is -1.
    #[numpy("reshape(a, shape)", method)]
    pub fn reshape(&self, #[read(Vec<isize>)] shape: impl IntoReshape) -> Result<NdArray> {
        let shape = resolve_reshape(&shape.into_reshape(), self.shape())?;
        if shape[..] == *self.shape() {
            return Ok(self.clone());
        }
        let stored = self.stored()?;
        match stored.layout().reshape(&shape) {
            Some(layout) => Ok(NdArray::from(stored.with_layout(layout)?)),
            None => self.contiguous()?.reshape(shape),
        }
    }

    /// Returns the elements in C order as a 1-D array, as a view where possible, else a copy (`numpy.ravel`).
    #[numpy("ravel(a)", aliases("flatten"), method)]
    pub fn ravel(&self) -> Result<NdArray> {
        self.reshape([-1])
    }

    /// Reverses the order of the axes: a view (`numpy.ndarray.T`).
    pub fn t(&self) -> Result<NdArray> {
        self.view(|l| Ok(l.transpose()))
    }

    /// Permutes the axes: a view (`numpy.permute_dims`, `numpy.transpose`).
    #[numpy("permute_dims(a, axes=None)", aliases("transpose"), method, call = permute_dims_by_name)]
    pub fn permute_dims(&self, axes: &[isize]) -> Result<NdArray> {
        self.view(|l| l.permute(axes))
    }

    /// Exchanges two axes: a view (`numpy.swapaxes`).
    #[numpy("swapaxes(a, axis1, axis2)", method)]
    pub fn swapaxes(&self, axis1: isize, axis2: isize) -> Result<NdArray> {
        let a = crate::layout::normalize_axis("swapaxes", axis1, self.ndim())?;
        let b = crate::layout::normalize_axis("swapaxes", axis2, self.ndim())?;
        let mut order: Vec<isize> = (0..self.ndim() as isize).collect();
        order.swap(a, b);
        self.permute_dims(&order)
    }

    /// Moves axes to other positions, the remaining axes keeping their order: a view (`numpy.moveaxis`).
    #[numpy("moveaxis(a, source, destination)")]
    pub fn moveaxis(&self, source: &[isize], destination: &[isize]) -> Result<NdArray> {
        let from = normalize_axes("moveaxis", source, self.ndim())?;
        let to = normalize_axes("moveaxis", destination, self.ndim())?;
        if from.len() != to.len() {
            return Err(Error::value("moveaxis", "source and destination must have the same number of axes"));
        }
        let mut rest = (0..self.ndim()).filter(|a| !from.contains(a));
        let order: Vec<isize> = (0..self.ndim())
            .filter_map(|place| to.iter().position(|&t| t == place).map(|i| from[i]).or_else(|| rest.next()))
            .map(|a| a as isize)
            .collect();
        self.permute_dims(&order)
    }

    /// Removes axes of extent 1: all of them (`None`) or the given ones. A view (`numpy.squeeze`).
    #[numpy("squeeze(a, axis=None)", method, call = squeeze_by_name)]
    pub fn squeeze(&self, axes: Option<&[isize]>) -> Result<NdArray> {
        self.view(|l| l.squeeze(axes))
    }

    /// Inserts axes of extent 1 at the given positions of the result: a view (`numpy.expand_dims`).
    #[numpy("expand_dims(a, axis)")]
    pub fn expand_dims(&self, #[name("axis")] axes: &[isize]) -> Result<NdArray> {
        self.view(|l| l.expand_dims(axes))
    }

    /// Reverses the elements along the given axes (`None`: all): a view (`numpy.flip`).
    #[numpy("flip(a, axis=None)")]
    pub fn flip(&self, #[name("axis")] axes: Option<&[isize]>) -> Result<NdArray> {
        let axes = match axes {
            None => (0..self.ndim()).collect(),
            Some(axes) => normalize_axes("flip", axes, self.ndim())?,
        };
        self.view(|l| Ok(l.flip(&axes)))
    }

    /// Broadcasts to a shape by repeating axes of extent 1: a view (`numpy.broadcast_to`).
    #[numpy("broadcast_to(a, shape)")]
    pub fn broadcast_to(&self, #[read(Vec<usize>)] shape: impl IntoShape) -> Result<NdArray> {
        let shape = shape.into_shape();
        self.view(|l| l.broadcast_to(&shape))
    }

    /// Returns the diagonals of two axes as the last axis: a view (`numpy.diagonal`).
    #[numpy("diagonal(a, offset=0, axis1=0, axis2=1)", method)]
    pub fn diagonal(&self, offset: isize, axis1: isize, axis2: isize) -> Result<NdArray> {
        if self.ndim() < 2 {
            return Err(Error::shape("diagonal", "an array of at least two dimensions is needed", &[self.shape()]));
        }
        self.view(|l| l.diagonal(offset, axis1, axis2))
    }

    /// Returns a copy in pinned (page-locked) host memory, which `device` reads directly. For the host, returns the same handle.
    ///
    /// [`NdArray::to_device`] of such an array returns at once, and the copy runs at full bus speed. Copies from other memory go
    /// through
    /// the library's own pinned blocks. Pinning takes longer than a copy, so keep such arrays.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, Device, NdArray, with_device};
    /// # fn main() -> cuprum::Result<()> {
    /// let gpu = Device::parse("cuda")?;
    /// let batch = with_device(Device::CPU, || NdArray::ones([4096, 4096], DType::F32))?.pin_memory(gpu)?;
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
        let mut host = driver(device)?.pinned(self.nbytes())?;
        host.fill_from(bytes.get(start..start + self.nbytes()).unwrap_or_default())?;
        Ok(NdArray::from(StoredArray::new(self.dtype(), Layout::contiguous(self.shape())?, Arc::new(host))?))
    }

    /// Returns a copy on another device, or the same handle if the array is on it already. Asynchronous where the device allows.
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
        let whole = start == 0 && stored.buffer().nbytes() == self.nbytes();
        if let Some(direct) = whole.then(|| target.upload_from(stored.buffer(), Stream::current(device))).flatten() {
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

/// Bytes in a host buffer, which is the array's own or a downloaded copy.
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

/// Shape arguments of [`NdArray::reshape`]: extents, one of which may be -1.
pub trait IntoReshape {
    /// Returns the extents as given.
    fn into_reshape(self) -> Vec<isize>;
}
macro_rules! reshape_from {
    ($($t:ty),*) => {$(
        impl IntoReshape for $t {
            fn into_reshape(self) -> Vec<isize> { vec![self as isize] }
        }
        impl<const N: usize> IntoReshape for [$t; N] {
            fn into_reshape(self) -> Vec<isize> { self.iter().map(|&n| n as isize).collect() }
        }
        impl IntoReshape for &[$t] {
            fn into_reshape(self) -> Vec<isize> { self.iter().map(|&n| n as isize).collect() }
        }
        impl IntoReshape for Vec<$t> {
            fn into_reshape(self) -> Vec<isize> { self.iter().map(|&n| n as isize).collect() }
        }
    )*};
}
reshape_from!(i32, isize, usize);
impl IntoReshape for crate::layout::Dims {
    fn into_reshape(self) -> Vec<isize> {
        self.iter().map(|&n| n as isize).collect()
    }
}
impl IntoReshape for () {
    fn into_reshape(self) -> Vec<isize> {
        vec![]
    }
}

fn resolve_reshape(wanted: &[isize], shape: &[usize]) -> Result<crate::layout::Dims> {
    check_ndim("reshape", wanted.len())?;
    let size: usize = shape.iter().product();
    let text = || wanted.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let fail = || Error::value("reshape", format!("cannot reshape array of shape {} into ({})", crate::error::shape_text(shape), text()));
    let holes = wanted.iter().filter(|n| **n == -1).count();
    if holes > 1 || wanted.iter().any(|&n| n < -1) {
        return Err(Error::value("reshape", format!("({}): extents are non-negative, and at most one may be -1", text())));
    }
    let known = wanted.iter().filter(|n| **n != -1).try_fold(1usize, |p, &n| p.checked_mul(n as usize)).ok_or_else(fail)?;
    let hole = match (holes, known) {
        (0, _) => 0,
        (_, 0) => return Err(fail()),
        (_, k) if size.is_multiple_of(k) => size / k,
        _ => return Err(fail()),
    };
    if holes == 0 && known != size {
        return Err(fail());
    }
    let shape = wanted.iter().map(|&n| if n == -1 { hole } else { n as usize }).collect::<crate::layout::Dims>();
    checked_size("reshape", &shape)?;
    Ok(shape)
}
