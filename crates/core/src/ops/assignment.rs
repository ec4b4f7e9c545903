//! Assignment: new values for a whole array or a slice of it, and values computed from the old ones.
//!
//! Arrays are values: no other handle, view or expression sees an assignment. The elements are written in place if nothing else uses
//! them, and otherwise in a copy.

use std::sync::Arc;

use crate::array::{Array, NdArray, StoredArray};
use crate::call::{self, OutputSpec, Work};
use crate::device::Stream;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Operand;
use crate::index::Item;
use crate::layout::{Dims, Layout};
use crate::op::Op;
use crate::ops::creation::full_on_device;
use crate::ops::elementwise::where_;
use crate::ops::index::{IndexItem, IntoIndex, as_basic_items};
use crate::ops::manipulation::COPY;

/// Returns `value` converted to `dtype`. NumPy's casting rule `same_kind` has to allow the conversion.
fn cast_same_kind(op: &'static str, value: &NdArray, dtype: DType) -> Result<NdArray> {
    if !value.dtype().can_cast_same_kind(dtype) {
        let message = format!("cannot store {} in an array of {dtype}; use astype", value.dtype());
        return Err(Error::dtype(op, message, &[value.dtype(), dtype]));
    }
    value.astype(dtype)
}

/// Broadcasts the layout of an assigned value to `shape`. As in NumPy, extra leading axes of extent 1 are dropped first.
pub(super) fn broadcast_value_layout(op: &'static str, layout: &Layout, shape: &[usize]) -> Result<Layout> {
    let extra = layout.ndim().saturating_sub(shape.len());
    let leading: Vec<isize> = (0..extra as isize).collect();
    let squeezed = layout.squeeze(Some(&leading));
    let fitted = squeezed.and_then(|layout| layout.broadcast_to(shape));
    fitted.map_err(|_| Error::shape(op, "the value cannot be broadcast to the target (value, target)", &[layout.shape(), shape]))
}

/// # Assignment
///
/// Elements are written in place if nothing else uses them, otherwise in a copy.
impl NdArray {
    /// Assigns to the elements that an index selects (`a[index] = value`). The macro [`s!`](crate::s) writes the index.
    ///
    /// The value is converted to the array's dtype and broadcast to the selection. Other handles and views keep their values. The elements
    /// are written in place if there are no other handles or views, else in a copy. If an element receives several values, the last is
    /// stored. Assigning one value by a mask is deferred, as `where` is.
    ///
    /// Pass a slice of the array itself by value, as in `a.assign(s![0], a.index(s![1])?)`: only the slice is copied. A reference, another
    /// variable or an unevaluated expression that still uses the old elements makes a copy of the whole array necessary.
    ///
    /// # Errors
    /// An index out of bounds, a shape that does not broadcast to the slice, an integer that the dtype cannot hold, arrays on different
    /// devices, or errors of evaluation.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, NdArray, s, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// let mut a = zeros([2, 3], DType::I32)?;
    /// a.assign(s![.., 0], 7)?;
    /// a.assign(s![1, 1..], &NdArray::from_slice(&[8, 9])?)?;
    /// assert_eq!(a.to_vec::<i32>()?, [7, 0, 0, 7, 8, 9]);
    /// let mask = a.greater(7)?;
    /// a.assign(&mask, 1)?;
    /// a.assign(s![[0, 1], [2, 0]], &NdArray::from_slice(&[5, 6])?)?;
    /// assert_eq!(a.to_vec::<i32>()?, [7, 0, 5, 6, 1, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn assign(&mut self, index: impl IntoIndex, value: impl Into<Operand>) -> Result<()> {
        let value = value.into();
        index.with_index_items(|items| match as_basic_items(items) {
            Some(basic) => self.assign_to_view(&basic, value),
            None => self.assign_by_index_arrays(items, value),
        })
    }

    /// Returns an assigned value as an array of this array's dtype.
    pub(super) fn convert_assigned_value(&self, op: &'static str, value: Operand) -> Result<NdArray> {
        match value {
            Operand::Scalar(s) => full_on_device(self.device(), &[], s.to_checked_element(op, self.dtype())?, self.dtype()),
            Operand::Array(a) => {
                self.check_value_device(op, &a)?;
                a.astype(self.dtype())
            }
        }
    }

    /// Assigns by an index with arrays. If an element receives several values, the last is stored, as in NumPy.
    fn assign_by_index_arrays(&mut self, items: &[IndexItem], value: Operand) -> Result<()> {
        let op = "assign";
        let value = self.convert_assigned_value(op, value)?;
        if let [IndexItem::Array(mask)] = items
            && mask.dtype() == DType::Bool
            && (mask.ndim() > 0 && self.shape().starts_with(mask.shape()))
            && value.size() == 1
            && value.ndim() <= 1
        {
            let mut shape: Dims = mask.shape().into();
            shape.resize(self.ndim(), 1);
            *self = where_(mask.reshape(shape)?, value.reshape(())?, &*self)?;
            return Ok(());
        }
        if let [IndexItem::Array(mask)] = items
            && mask.dtype() == DType::Bool
            && mask.ndim() == self.ndim()
            && mask.shape().iter().zip(self.shape()).all(|(&of_mask, &of_array)| of_mask == of_array || of_mask == 0)
            && value.ndim() > 1
        {
            let message = "the value for a mask of all axes has at most one axis; use extract with the same mask";
            return Err(Error::shape(op, message, &[value.shape(), mask.shape()]));
        }
        self.scatter_at_index(op, items, None, value)
    }

    /// Assigns by an index without arrays, which selects a view.
    pub(super) fn assign_to_view(&mut self, index: &[Item], value: Operand) -> Result<()> {
        let op = "assign";
        let shape = self.stored_value()?.layout().index(index)?;
        let value = self.convert_assigned_value(op, value)?;
        let mut source = value.stored()?;
        drop(value);
        // If the value is a slice of this array, the slice is copied first. It then no longer shares the array's memory, and
        // `make_writable` need not copy the whole array.
        if std::ptr::addr_eq(Arc::as_ptr(source.buffer()), Arc::as_ptr(self.stored()?.buffer())) && source.layout().size() < self.size() {
            source = NdArray::from(source).copy()?.stored()?;
        }
        if index.len() == self.ndim() && source.layout().ndim() > 0 && index.iter().all(|item| matches!(item, Item::At(_))) {
            return Err(Error::shape(op, "the target is one element, but the value has axes (value, target)", &[source.shape(), &[]]));
        }
        let from = broadcast_value_layout(op, source.layout(), shape.shape())?;
        if from.size() == 0 {
            return Ok(());
        }
        self.make_writable()?;
        let target = self.stored()?;
        let to = target.layout().index(index)?;
        let reversed: Vec<usize> = (0..to.ndim()).filter(|&axis| to.strides()[axis] < 0).collect();
        let (source, to) = (source.with_layout(from.flip(&reversed))?, to.flip(&reversed));
        let output = OutputSpec::new(target.dtype(), target.layout().clone()).with_target_buffer(target.buffer().clone());
        *self = super::dispatch_single_output(COPY, target.device(), &[source], output, Work::Copy(call::Copy { regions: &[to] }))?;
        Ok(())
    }

    /// Runs a call that updates a part of this array's memory, and replaces the array by the call's output. For backends whose devices
    /// consist of other devices.
    ///
    /// The array is 1-D and C-contiguous. A shared or read-only array is copied first. `layout` is the layout of the output in the memory
    /// of the array, and the request's regions refer to the same memory. If the result of a scatter depends on the order of its values, the
    /// scatter runs by any method that the device supports, as in [`NdArray::update_at`].
    ///
    /// # Errors
    /// An array that is not 1-D and contiguous from the start of its memory, a layout that reaches outside this memory, an elementwise loop
    /// whose layout does not start at a multiple of 16 bytes, or errors of the call.
    pub fn update_by_call(&mut self, op: Op, inputs: &[StoredArray], layout: Layout, work: Work) -> Result<()> {
        self.make_writable()?;
        let target = self.stored()?;
        if target.layout().ndim() != 1 || !target.layout().is_c_contiguous() || target.layout().offset() != 0 {
            return Err(Error::shape(op.name(), "the array to update is not 1-D and contiguous", &[target.shape()]));
        }
        let region = target.with_layout(layout.clone())?;
        if let (Work::Scatter(request), [indices, values]) = (&work, inputs)
            && request.needs.is_some()
        {
            *self = super::scatter::run_float_scatter(&NdArray::from(region), indices, values, request)?;
            return Ok(());
        }
        if matches!(work, Work::Map(_)) && !(layout.offset() * target.dtype().itemsize()).is_multiple_of(16) {
            return Err(Error::value(op.name(), "an elementwise loop writes a range that starts at a multiple of 16 bytes"));
        }
        let output = OutputSpec::new(target.dtype(), layout).with_target_buffer(target.buffer().clone());
        *self = super::dispatch_single_output(op, target.device(), inputs, output, work)?;
        Ok(())
    }

    /// Replaces all elements by those of `value`, which is converted and broadcast (`numpy.copyto`, and `out=` of NumPy's functions).
    ///
    /// A deferred value is evaluated. This handle first gives up its reference to the memory. If a deferred value holds the only other
    /// reference, the value is computed in place. Other handles and views keep their values.
    ///
    /// # Errors
    /// A dtype that NumPy's rule `same_kind` does not convert, a shape that does not broadcast to the array's, or arrays on different
    /// devices. These are checked first, and the array keeps its value. After an error of the evaluation, reading the array returns this
    /// error.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, NdArray, empty};
    /// # fn main() -> cuprum::Result<()> {
    /// let (a, b) = (NdArray::from_slice(&[1.0, 2.0])?, NdArray::from_slice(&[0.5, 0.25])?);
    /// let mut out = empty(2, DType::F32)?;
    /// out.assign_from(&a * &b)?;
    /// assert_eq!(out.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "copyto")]
    pub fn assign_from(&mut self, value: impl Into<Operand>) -> Result<()> {
        self.assign_from_with_op_name("assign_from", value.into())
    }

    /// Does the same as [`NdArray::assign_from`], with `op` as the function's name in errors.
    pub(crate) fn assign_from_with_op_name(&mut self, op: &'static str, value: Operand) -> Result<()> {
        let value = match value {
            Operand::Array(a) => a,
            Operand::Scalar(s) => full_on_device(self.device(), &[], s, s.weak_promote(self.dtype()))?,
        };
        self.check_value_device(op, &value)?;
        let value = cast_same_kind(op, &value, self.dtype())?;
        if value.shape() == self.shape() {
            *self = value;
            return self.eval().map(|_| ());
        }
        let stored = value.stored()?;
        let broadcast = stored.with_layout(broadcast_value_layout(op, stored.layout(), self.shape())?)?;
        *self = NdArray::from(broadcast);
        *self = self.copy()?;
        Ok(())
    }

    /// Replaces the array by a value computed from it, as the operators `+=`, `*=` and others do.
    ///
    /// As with NumPy's in-place operators, the result must have the array's shape and is converted to its dtype. Only a 0-d array takes the
    /// shape and dtype of the result. The result may stay deferred. If no other handle or view uses the old elements, the result is
    /// computed in their memory.
    ///
    /// # Errors
    /// The errors of `f`, a result of another shape, or a result whose dtype NumPy's rule `same_kind` does not convert. The array then
    /// keeps its value.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{NdArray, maximum};
    /// # fn main() -> cuprum::Result<()> {
    /// let mut a = NdArray::from_slice(&[-1.0, 4.0])?;
    /// a.update(|a| maximum(a, 0)?.sqrt())?;
    /// assert_eq!(a.to_vec::<f64>()?, [0.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn update(&mut self, f: impl FnOnce(&NdArray) -> Result<NdArray>) -> Result<()> {
        let op = "update";
        let new = f(self)?;
        if self.ndim() == 0 {
            *self = new;
            return Ok(());
        }
        if new.shape() != self.shape() {
            return Err(Error::shape(op, "an update cannot change the shape (array, result)", &[self.shape(), new.shape()]));
        }
        *self = cast_same_kind(op, &new, self.dtype())?;
        Ok(())
    }

    /// Returns an error if `value` is on another device than the array.
    pub(super) fn check_value_device(&self, op: &'static str, value: &NdArray) -> Result<()> {
        if value.device() == self.device() {
            return Ok(());
        }
        let message = format!("the value is on {}, the array on {}; use to_device", value.device(), self.device());
        Err(Error::Device { op, message })
    }

    /// Replaces the elements by a copy if a call may not write to them.
    pub(super) fn make_writable(&mut self) -> Result<()> {
        if !self.is_writable()? {
            *self = self.copy()?;
        }
        Ok(())
    }

    /// Returns whether a call may write to the elements: nothing else uses them, and no two elements share memory.
    ///
    /// Memory of a captured graph is not writable, because each launch of the graph overwrites that memory. During a capture nothing is
    /// writable, because each launch would repeat the assignment.
    fn is_writable(&mut self) -> Result<bool> {
        let is_capturing = Stream::current(self.device()).is_capturing();
        let may_write = |a: &StoredArray| a.buffer().is_writable() && !a.layout().may_overlap();
        Ok(may_write(self.stored_value()?) && !is_capturing && self.is_unique())
    }
}
