//! Conversions to and from arrays of the crate `ndarray`, without a copy where both sides can own or borrow the same host memory.

use ::ndarray::{Array, ArrayD, ArrayRef, ArrayView, ArrayViewD, Dimension, IxDyn, ShapeBuilder, ShapeError, StrideShape};

use crate::array::NdArray;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::host_buffer::{HostBuffer, try_collect};
use crate::layout::Layout;

/// Returns the shape and strides of `layout` in the form that ndarray's constructors take. Strides of empty arrays have no meaning.
fn ndarray_shape_and_strides(layout: &Layout) -> StrideShape<IxDyn> {
    let shape = IxDyn(layout.shape());
    if layout.size() == 0 {
        return shape.into();
    }
    // A negative stride is written as the `usize` of the same bits.
    let strides: Vec<usize> = layout.strides().iter().map(|&s| s as usize).collect();
    shape.strides(IxDyn(&strides))
}

/// Returns the layout of an array of ndarray whose first element has index `offset` in the buffer.
fn layout_of_ndarray<D: Dimension>(array: &ArrayRef<impl Element, D>, offset: usize) -> Result<Layout> {
    match array.is_empty() {
        true => Layout::contiguous(array.shape()),
        false => Layout::strided(array.shape(), array.strides(), offset),
    }
}

fn ndarray_shape_error(op: &'static str) -> impl Fn(ShapeError) -> Error {
    move |e| Error::value(op, format!("ndarray: {e}"))
}

/// Converts `array` to a type with a fixed number of dimensions.
fn into_fixed_dimension<T, D: Dimension>(op: &'static str, array: ArrayD<T>) -> Result<Array<T, D>> {
    let (ndim, shape) = (array.ndim(), array.shape().to_vec());
    array.into_dimensionality().map_err(|_| dimension_error::<D>(op, ndim, &shape))
}

fn dimension_error<D: Dimension>(op: &'static str, ndim: usize, shape: &[usize]) -> Error {
    let wanted = D::NDIM.map_or("any number of".to_string(), |n| n.to_string());
    Error::shape(op, format!("an array of {ndim} dimensions, asked for {wanted}"), &[shape])
}

/// Conversions to and from the crate `ndarray` (feature `ndarray`).
impl NdArray {
    /// Moves an array of ndarray into an array on the current device. On the host the elements are not copied, whatever the layout.
    ///
    /// # Errors
    /// [`Error::Value`] for more than [`MAX_NDIM`](crate::layout::MAX_NDIM) dimensions; errors of the current device.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{Device, NdArray, with_device};
    /// # fn main() -> cuprum::Result<()> {
    /// let columns = ndarray::array![[1.0, 2.0], [3.0, 4.0]].reversed_axes();
    /// let address = columns.as_ptr();
    /// let a = with_device(Device::CPU, || NdArray::from_ndarray(columns))?;
    /// assert_eq!(a.to_vec::<f64>()?, [1.0, 3.0, 2.0, 4.0]);
    /// assert_eq!(a.view_ndarray::<f64>()?.as_ptr(), address);
    /// assert_eq!(a.into_ndarray::<f64>()?.as_ptr(), address);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_ndarray<T: Element, D: Dimension>(array: Array<T, D>) -> Result<NdArray> {
        let layout = layout_of_ndarray(&array, 0)?;
        let (values, offset) = array.into_raw_vec_and_offset();
        NdArray::from_host_buffer(T::DTYPE, layout.with_offset(offset.unwrap_or(0)), HostBuffer::from_vec(values))
    }

    /// Copies a view or a borrowed array of ndarray to the current device. Elements without gaps keep their order in memory.
    ///
    /// # Errors
    /// [`Error::Value`] for more than [`MAX_NDIM`](crate::layout::MAX_NDIM) dimensions; errors of the current device, such as
    /// [`Error::OutOfMemory`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let matrix = ndarray::array![[1, 2, 3], [4, 5, 6]];
    /// assert_eq!(NdArray::from_view(&matrix.column(1))?.to_vec::<i32>()?, [2, 5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_view<T: Element, D: Dimension>(view: &ArrayRef<T, D>) -> Result<NdArray> {
        let Some(values) = view.as_slice_memory_order() else {
            return NdArray::from_vec(try_collect("from_view", view.iter().copied())?, view.shape());
        };
        // The pointer of an ndarray view is the address of element 0. Along an axis with a negative stride, that is the highest address.
        let reversed = view.shape().iter().zip(view.strides()).filter(|(_, stride)| **stride < 0);
        let offset = reversed.map(|(&n, &stride)| (n.saturating_sub(1)) * stride.unsigned_abs()).sum();
        NdArray::from_host_buffer(T::DTYPE, layout_of_ndarray(view, offset)?, HostBuffer::from_slice(values)?)
    }

    /// Returns a view of the elements, borrowed from the array's memory, in any layout. Evaluates a deferred array.
    ///
    /// # Errors
    /// [`Error::DType`] if `T` is not the array's dtype. [`Error::Device`] for an array that is not on the host. Errors of the evaluation.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{Device, array, with_device};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = with_device(Device::CPU, || array![[1.0, 2.0], [3.0, 4.0]]);
    /// let product = (&a + 1.0).view_ndarray::<f64>()?.product();
    /// assert_eq!(product, 2.0 * 3.0 * 4.0 * 5.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn view_ndarray<T: Element>(&self) -> Result<ArrayViewD<'_, T>> {
        let op = "view_ndarray";
        let (values, layout) = self.elements_spanned_by_layout::<T>(op)?;
        ArrayViewD::from_shape(ndarray_shape_and_strides(&layout), values).map_err(ndarray_shape_error(op))
    }

    /// Returns a copy of the elements in C order, in host memory. Waits for the device.
    ///
    /// # Errors
    /// The errors of [`NdArray::to_vec`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::array;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = array![[1.0, 2.0], [3.0, 4.0]];
    /// assert_eq!((&a * 2.0).to_ndarray::<f64>()?, ndarray::array![[2.0, 4.0], [6.0, 8.0]].into_dyn());
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        ArrayD::from_shape_vec(IxDyn(self.shape()), self.to_vec()?).map_err(ndarray_shape_error("to_ndarray"))
    }

    /// Returns the elements as an array of ndarray, and consumes this array. Evaluates a deferred array and waits for the device.
    ///
    /// The elements are not copied if the memory came from a `Vec` or from ndarray, this handle is its only user, and the array begins
    /// where that memory begins. Otherwise the result is [`NdArray::to_ndarray`].
    ///
    /// # Errors
    /// The errors of [`NdArray::to_vec`].
    pub fn into_ndarray<T: Element>(mut self) -> Result<ArrayD<T>> {
        let op = "into_ndarray";
        self.check_element_type::<T>(op)?;
        self.eval()?;
        if let Some((layout, host)) = self.host_buffer_if_unique()
            && let (0, end) = layout.buffer_range()
            && !layout.may_overlap()
        {
            let shape = ndarray_shape_and_strides(layout);
            if let Some(values) = host.take_vec(end as usize) {
                return ArrayD::from_shape_vec(shape, values).map_err(ndarray_shape_error(op));
            }
        }
        self.to_ndarray()
    }
}

impl<T: Element, D: Dimension> From<Array<T, D>> for NdArray {
    /// Moves the array, as [`NdArray::from_ndarray`] does. If that fails, reading the result returns the error.
    fn from(array: Array<T, D>) -> NdArray {
        let shape = array.shape().to_vec();
        NdArray::from_ndarray(array).unwrap_or_else(|e| NdArray::failed_array(T::DTYPE, &shape, e))
    }
}

impl<T: Element, D: Dimension> TryFrom<ArrayView<'_, T, D>> for NdArray {
    type Error = Error;

    /// Copies the elements, as [`NdArray::from_view`] does.
    fn try_from(view: ArrayView<'_, T, D>) -> Result<NdArray> {
        NdArray::from_view(&view)
    }
}

impl<T: Element, D: Dimension> TryFrom<&Array<T, D>> for NdArray {
    type Error = Error;

    /// Copies the elements, as [`NdArray::from_view`] does.
    fn try_from(array: &Array<T, D>) -> Result<NdArray> {
        NdArray::from_view(array)
    }
}

impl<T: Element, D: Dimension> TryFrom<NdArray> for Array<T, D> {
    type Error = Error;

    /// Returns the elements, as [`NdArray::into_ndarray`] does. An array with another number of dimensions than `D` is an error.
    fn try_from(array: NdArray) -> Result<Array<T, D>> {
        into_fixed_dimension("into_ndarray", array.into_ndarray()?)
    }
}

impl<T: Element, D: Dimension> TryFrom<&NdArray> for Array<T, D> {
    type Error = Error;

    /// Returns a copy of the elements, as [`NdArray::to_ndarray`] does. An array with another number of dimensions than `D` is an error.
    fn try_from(array: &NdArray) -> Result<Array<T, D>> {
        into_fixed_dimension("to_ndarray", array.to_ndarray()?)
    }
}

impl<'a, T: Element, D: Dimension> TryFrom<&'a NdArray> for ArrayView<'a, T, D> {
    type Error = Error;

    /// Borrows the elements, as [`NdArray::view_ndarray`] does. An array with another number of dimensions than `D` is an error.
    fn try_from(array: &'a NdArray) -> Result<ArrayView<'a, T, D>> {
        let view = array.view_ndarray()?;
        view.into_dimensionality().map_err(|_| dimension_error::<D>("view_ndarray", array.ndim(), array.shape()))
    }
}
