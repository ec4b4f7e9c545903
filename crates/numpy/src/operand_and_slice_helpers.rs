//! Helpers for slices, filled arrays, ranges of indices, and the conversion of operands, which several modules of this crate use.

use cuprum_core::op::{ArgumentType, result_type};
use cuprum_core::ops::python_value::Value;
use cuprum_core::{Args, DType, Device, Error, Item, NdArray, Operand, Result, Scalar, arange, full, with_device};

/// Returns the view of an array that the slice `start:stop:step` selects along one axis.
pub(crate) fn slice_axis(
    a: &NdArray,
    axis: usize,
    start: impl Into<Option<isize>>,
    stop: impl Into<Option<isize>>,
    step: isize,
) -> Result<NdArray> {
    let mut items = vec![Item::slice(None, None, 1); axis];
    items.push(Item::slice(start, stop, step));
    a.index(&items)
}

/// Returns an array on the device of `model`, filled with one number.
pub(crate) fn new_filled_array(model: &NdArray, shape: &[usize], value: impl Into<Scalar>, dtype: DType) -> Result<NdArray> {
    let value = value.into();
    with_device(model.device(), || full(shape, value, dtype))
}

/// Returns the 1-D int64 array of the integers from 0 to `count - 1`, on `device`.
pub(crate) fn index_range(device: Device, count: usize) -> Result<NdArray> {
    with_device(device, || arange(0, count, 1))
}

/// Returns `0..count` in int64 on `device`, along `axis` of `ndim` axes. The other axes have extent 1.
pub(crate) fn index_range_along(device: Device, count: usize, axis: usize, ndim: usize) -> Result<NdArray> {
    let mut shape = vec![1; ndim];
    shape[axis] = count;
    index_range(device, count)?.reshape(shape)
}

/// Prepends axes of extent 1 until the array has at least `ndim` axes. Returns a view.
pub(crate) fn with_at_least_ndim(a: &NdArray, ndim: usize) -> Result<NdArray> {
    if a.ndim() >= ndim { Ok(a.clone()) } else { a.index(&vec![Item::NewAxis; ndim - a.ndim()]) }
}

/// Returns an error of the function `op` unless the integers of `indices` convert to int64 without overflow.
pub(crate) fn check_indices_cast_safely(op: &'static str, indices: &NdArray) -> Result<()> {
    match indices.dtype().can_cast_safe(DType::I64) {
        true => Ok(()),
        false => Err(Error::dtype(op, "Cannot cast array data to int64 according to the rule 'safe'", &[indices.dtype()])),
    }
}

/// Returns the types of operands for promotion: the dtype of an array, or a weak scalar.
pub(crate) fn promotion_arguments<'a>(operands: impl IntoIterator<Item = &'a Operand>) -> Vec<ArgumentType> {
    let arg_type = |operand: &Operand| match operand {
        Operand::Array(a) => ArgumentType::Array(a.dtype()),
        Operand::Scalar(s) => ArgumentType::Weak(*s),
    };
    operands.into_iter().map(arg_type).collect()
}

/// Returns the dtype of the result of an operation on arrays and weak scalars (`numpy.result_type`).
pub(crate) fn result_dtype<'a>(operands: impl IntoIterator<Item = &'a Operand>) -> DType {
    result_type(&promotion_arguments(operands))
}

/// Converts an operand to an array (`numpy.asarray`). A number becomes a 0-d array of its default dtype on `device`. An array is returned
/// unchanged, on its own device. An integer outside the range of 64 bits is an error of the function `op`.
pub(crate) fn operand_to_array(op: &'static str, device: Device, operand: &Operand) -> Result<NdArray> {
    match operand {
        Operand::Array(a) => Ok(a.clone()),
        Operand::Scalar(s) => with_device(device, || NdArray::scalar(s.check_fits_dtype(op, s.default_dtype())?)),
    }
}

/// Converts an operand to an array of the float or complex dtype `dtype`. A number becomes a 0-d array on `device`.
pub(crate) fn operand_to_inexact_array(device: Device, operand: &Operand, dtype: DType) -> Result<NdArray> {
    match operand {
        Operand::Array(a) => a.astype(dtype),
        Operand::Scalar(s) => with_device(device, || NdArray::scalar_as(*s, dtype)),
    }
}

/// Returns a Python list of arrays.
pub(crate) fn arrays_to_list_value(arrays: Vec<NdArray>) -> Value {
    Value::List(arrays.into_iter().map(Value::Array).collect::<Vec<_>>().into())
}

/// Returns the variadic arguments (`*args`) as arrays, when `eval` calls a function by its name.
pub(crate) fn variadic_args_as_arrays(args: &Args) -> Result<Vec<NdArray>> {
    args.rest().iter().map(|value| value.array(args.op())).collect()
}
