//! The bytes of an array as elements of another dtype, the reversal of byte order, and `fill`.

use crate::array::{NdArray, StoredArray};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Operand;
use crate::host_buffer::HostBuffer;
use crate::index::Item;
use crate::layout::Layout;
use crate::ops::elementwise::not_equal;
use crate::ops::python_value::{Args, Value};
use cuprum_macros::numpy;

fn view_from_args(args: &Args) -> Result<Value> {
    let a = args.array("a")?;
    args.dtype("dtype")?.map_or(Ok(a.clone()), |dtype| a.view_as(dtype)).map(Value::Array)
}

/// # Bytes
impl NdArray {
    /// Returns the bytes of the array as elements of another dtype (`numpy.ndarray.view`).
    ///
    /// The last axis gets shorter for a larger dtype and longer for a smaller one. The result shares the memory. The elements are copied
    /// first only if the array's offset or a stride is not a multiple of the new element size, or if memory of another library is not aligned
    /// for the new elements. With bool, the result has one element per
    /// byte, which is true if the byte is not zero.
    ///
    /// # Errors
    /// A dtype of another element size, if the array is 0-d or its last axis is not contiguous. A last axis whose size in bytes is not a
    /// multiple of the new element size.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, array};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(array![1.0f32].view_as(DType::U32)?.item()?, 0x3f80_0000);
    /// assert_eq!(array![1u16, 2].view_as(DType::U8)?, array![1u8, 0, 2, 0]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("ndarray.view(a, dtype=None, type=None)", call = view_from_args)]
    pub fn view_as(&self, dtype: DType) -> Result<NdArray> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        if dtype == DType::Bool {
            return not_equal(self.view_as(DType::U8)?, 0);
        }
        let stored = self.stored()?;
        let layout = stored.layout();
        let (from, to) = (self.dtype().itemsize(), dtype.itemsize());
        if from == to {
            return StoredArray::new(dtype, layout.clone(), stored.buffer().clone()).map(NdArray::from);
        }
        let refuse = |why: &str| Err(Error::shape("view", why, &[self.shape()]));
        let Some((&extent, outer)) = self.shape().split_last() else {
            return refuse("the size of a 0-d array's elements cannot change");
        };
        if extent > 1 && self.size() > 0 && layout.strides().last() != Some(&1) {
            return refuse("to change to a dtype of a different size, the last axis must be contiguous");
        }
        let bytes = extent * from;
        if bytes % to != 0 {
            return refuse("the last axis must be a multiple of the size of the dtype in bytes");
        }
        let shape: Vec<usize> = outer.iter().copied().chain([bytes / to]).collect();
        if self.size() == 0 {
            return crate::ops::creation::full_on_device(self.device(), &shape, 0.into(), dtype);
        }
        let in_elements = |elements: isize| {
            let bytes = elements * from as isize;
            (bytes % to as isize == 0).then_some(bytes / to as isize)
        };
        let strides =
            layout.strides()[..outer.len()].iter().map(|&stride| in_elements(stride)).chain([Some(1)]).collect::<Option<Vec<_>>>();
        // Memory of other libraries may be aligned for elements of the old dtype only.
        let is_aligned = stored.buffer().as_any().downcast_ref::<HostBuffer>().is_none_or(|buffer| buffer.is_aligned_for(dtype));
        match (strides, in_elements(layout.offset() as isize)) {
            (Some(strides), Some(offset)) if is_aligned => {
                let layout = Layout::strided(&shape, &strides, offset as usize)?;
                StoredArray::new(dtype, layout, stored.buffer().clone()).map(NdArray::from)
            }
            _ => self.copy()?.view_as(dtype),
        }
    }

    /// Returns the elements with their bytes in the other order (`numpy.ndarray.byteswap`). The real and imaginary parts of complex numbers
    /// are swapped separately.
    ///
    /// The call takes one pass over memory.
    ///
    /// # Errors
    /// Errors of evaluation, or too little memory.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::array;
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(array![1u16, 256].byteswap()?, array![256u16, 1]);
    /// # Ok(())
    /// # }
    /// ```
    // `eval` assigns the result to the variable if `inplace` is true.
    #[numpy("ndarray.byteswap(a, inplace=False)")]
    pub fn byteswap(&self) -> Result<NdArray> {
        let part = self.dtype().real().itemsize();
        if part == 1 {
            return self.copy();
        }
        let bytes = self.ravel()?.contiguous()?.view_as(DType::U8)?.reshape((-1, part))?;
        let swapped = bytes.flip(-1)?.contiguous()?.ravel()?.view_as(self.dtype())?;
        let shape: Vec<isize> = self.shape().iter().map(|&n| n as isize).collect();
        swapped.reshape(shape)
    }

    /// Sets every element to a value (`numpy.ndarray.fill`), as [`NdArray::assign`] does.
    ///
    /// # Errors
    /// A value that is not one number, or a number that the dtype cannot hold.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::array;
    /// # fn main() -> cuprum::Result<()> {
    /// let mut a = array![1.5, 2.5];
    /// a.fill(3)?;
    /// assert_eq!(a, array![3.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("ndarray.fill(a, value)")]
    pub fn fill(&mut self, value: impl Into<Operand>) -> Result<()> {
        let value = value.into();
        if let Operand::Array(a) = &value
            && a.ndim() != 0
        {
            return Err(Error::shape("fill", "the value must be one number", &[a.shape()]));
        }
        self.assign(&[Item::Ellipsis], value)
    }
}
