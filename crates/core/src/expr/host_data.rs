//! Access to the elements of a host array without a copy: moves a `Vec` in and out, and borrows a slice.

use super::expression_node::NdArray;
use crate::array::Array;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::host_buffer::HostBuffer;
use crate::layout::Layout;

/// Values for a new array. A `Vec` or boxed slice is moved into the array. Rust arrays and references to slices are copied.
pub trait IntoElements<T: Element>: AsRef<[T]> + Sized {
    /// Returns a host buffer with the values.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for values that are copied.
    fn into_host_buffer(self) -> Result<HostBuffer> {
        HostBuffer::from_slice(self.as_ref())
    }
}

impl<T: Element> IntoElements<T> for Vec<T> {
    fn into_host_buffer(self) -> Result<HostBuffer> {
        Ok(HostBuffer::from_vec(self))
    }
}
impl<T: Element> IntoElements<T> for Box<[T]> {
    fn into_host_buffer(self) -> Result<HostBuffer> {
        Ok(HostBuffer::from_vec(self.into_vec()))
    }
}
impl<T: Element, const N: usize> IntoElements<T> for [T; N] {}
impl<T: Element, S: AsRef<[T]> + ?Sized> IntoElements<T> for &S {}

/// # Host memory without copies
///
/// These methods borrow or move the elements of an array on the host.
impl NdArray {
    /// Returns an error unless `T` is the type of the elements.
    pub(crate) fn check_element_type<T: Element>(&self, op: &'static str) -> Result<()> {
        if T::DTYPE == self.dtype() {
            return Ok(());
        }
        Err(Error::dtype(op, format!("array is {}, asked for {}; use astype", self.dtype(), T::DTYPE), &[self.dtype()]))
    }

    /// Returns the elements in C order, borrowed from the array's memory. Evaluates a deferred array.
    ///
    /// # Errors
    /// [`Error::DType`] if `T` is not the array's dtype. [`Error::Device`] for an array that is not on the host ([`NdArray::to_device`]).
    /// [`Error::Value`] for elements that are not contiguous in C order ([`NdArray::contiguous`]). Errors of the evaluation.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{Device, NdArray, with_device};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = with_device(Device::CPU, || NdArray::from_vec([1, 2, 3, 4], [2, 2]))?;
    /// assert_eq!((&a * 10).as_slice::<i32>()?, [10, 20, 30, 40]);
    /// assert!(a.t()?.as_slice::<i32>().is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        let op = "as_slice";
        let (elements, layout) = self.elements_spanned_by_layout(op)?;
        if !layout.is_c_contiguous() {
            return Err(Error::value(op, format!("strides {:?} are not in C order; use contiguous or to_vec", layout.strides())));
        }
        Ok(elements)
    }

    /// Returns the elements of the buffer that the array's layout covers, and the array's layout within these elements.
    pub(crate) fn elements_spanned_by_layout<T: Element>(&self, op: &'static str) -> Result<(&[T], Layout)> {
        self.check_element_type::<T>(op)?;
        let stored = self.stored_value()?;
        let Some(host) = stored.buffer().as_any().downcast_ref::<HostBuffer>() else {
            let message = format!("the array is on {}, not on the host; use to_device or to_vec", stored.device());
            return Err(Error::Device { op, message });
        };
        let layout = stored.layout();
        if layout.size() == 0 {
            return Ok((&[], layout.with_offset(0)));
        }
        let (start, end) = layout.buffer_range();
        let elements = host.typed_elements(start as usize, (end - start) as usize);
        let elements = elements.ok_or_else(|| Error::value(op, "the memory is not aligned for the dtype; use to_vec"))?;
        Ok((elements, layout.with_offset(layout.offset() - start as usize)))
    }

    /// Returns the elements in C order, in host memory, and consumes the array. Evaluates a deferred array and waits for the device.
    ///
    /// The elements are not copied if the memory is that of a `Vec` ([`NdArray::from_vec`]), this handle is its only user
    /// ([`NdArray::is_unique`]), and the elements are contiguous from the start of the `Vec`. Otherwise the result is [`NdArray::to_vec`].
    ///
    /// # Errors
    /// The errors of [`NdArray::to_vec`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let mut a = NdArray::from_vec(vec![1.0; 100_000], 100_000)?;
    /// a += 0.5; // in place
    /// assert_eq!(a.into_vec::<f64>()?, vec![1.5; 100_000]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_vec<T: Element>(mut self) -> Result<Vec<T>> {
        self.check_element_type::<T>("into_vec")?;
        self.stored_value()?;
        if let Some((layout, host)) = self.host_buffer_if_unique()
            && layout.is_c_contiguous()
            && layout.offset() == 0
            && let Some(values) = host.take_vec(layout.size())
        {
            return Ok(values);
        }
        self.to_vec()
    }
}
