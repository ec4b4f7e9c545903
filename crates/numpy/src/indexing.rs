//! Indexing routines: index arrays, and elements at given indices.

use cuprum_core::function::{FromArgs, IntoValue};
use cuprum_core::layout::{broadcast_shapes, checked_size, normalize_axis};
use cuprum_core::ops::value::{Args, Value};
use cuprum_core::{
    DType, Device, Error, IntoShape, NdArray, Operand, Result, Scalar, add, arange_as, clip, empty, floor_divide, greater_equal, less,
    logical_and, logical_not, multiply, numpy, remainder, stack, where_, with_device,
};

use crate::common::{index_range, range_along, result_dtype};
use crate::creation::lower_mask;
use crate::manipulation::broadcast_arrays;

fn indices_by_name(args: &Args) -> Result<Value> {
    let (shape, dtype) = (args.shape("dimensions")?, args.dtype("dtype")?.unwrap_or(DType::I64));
    match args.bool_or("sparse", false)? {
        true => sparse_indices(&shape, dtype).map(IntoValue::into_value),
        false => indices(shape, dtype).map(Value::Array),
    }
}

/// Returns the index of each element of an array of the given shape along each axis (`numpy.indices`).
///
/// The first axis of the result counts the axes. [`sparse_indices`] returns one small array for each axis instead.
///
/// Passes over memory: one, of the result.
///
/// # Errors
/// A shape whose size overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, array};
/// use cuprum_numpy::indices;
/// # fn main() -> cuprum::Result<()> {
/// let grid = indices((2, 3), DType::I64)?;
/// assert_eq!(grid.index(0)?, array![[0, 0, 0], [1, 1, 1]]);
/// assert_eq!(grid.index(1)?, array![[0, 1, 2], [0, 1, 2]]);
/// # Ok(())
/// # }
/// ```
#[numpy("indices(dimensions, dtype=None, sparse=False)", call = indices_by_name)]
pub fn indices(dimensions: impl IntoShape, dtype: DType) -> Result<NdArray> {
    let shape = dimensions.into_shape();
    if shape.is_empty() {
        return empty([0], dtype);
    }
    stack(&broadcast_arrays(&sparse_indices(&shape, dtype)?)?, 0)
}

/// Returns the indices along each axis of an array of the given shape, with extent 1 along the others (`numpy.indices(sparse=True)`).
///
/// # Errors
/// Too many axes, or too little memory.
pub fn sparse_indices(dimensions: &[usize], dtype: DType) -> Result<Vec<NdArray>> {
    let device = Device::current()?;
    checked_size("indices", dimensions)?;
    let along = |(axis, &n): (usize, &usize)| {
        let mut shape = vec![1; dimensions.len()];
        shape[axis] = n;
        with_device(device, || arange_as(0, n, 1, dtype))?.reshape(shape)
    };
    dimensions.iter().enumerate().map(along).collect()
}

/// Returns index arrays that select the cross product of 1-D arrays of indices (`numpy.ix_`).
///
/// Array `n` varies along axis `n` and has extent 1 along the others. Masks become the indices of their true elements.
///
/// # Errors
/// An array that is not 1-D.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, s};
/// use cuprum_numpy::ix_;
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1, 2, 3], [4, 5, 6], [7, 8, 9]];
/// let grid = ix_(&[array![0, 2], array![0, 1]])?;
/// assert_eq!(a.index(s![&grid[0], &grid[1]])?, array![[1, 2], [7, 8]]);
/// # Ok(())
/// # }
/// ```
#[numpy("ix_(*args)", call = ix_by_name)]
pub fn ix_(args: &[NdArray]) -> Result<Vec<NdArray>> {
    let along = |(axis, indices): (usize, &NdArray)| {
        if indices.ndim() != 1 {
            return Err(Error::shape("ix_", "Cross index must be 1 dimensional", &[indices.shape()]));
        }
        let indices = if indices.dtype() == DType::Bool { cuprum_core::flatnonzero(indices)? } else { indices.clone() };
        let mut shape = vec![1isize; args.len()];
        shape[axis] = -1;
        indices.reshape(shape)
    };
    args.iter().enumerate().map(along).collect()
}

fn ix_by_name(args: &Args) -> Result<Value> {
    let integers = |value: &Value| {
        let array = value.array(args.op())?;
        if value.items().is_some() && array.size() == 0 { array.astype(DType::I64) } else { Ok(array) }
    };
    ix_(&args.rest().iter().map(integers).collect::<Result<Vec<_>>>()?).map(IntoValue::into_value)
}

/// Reads the extents and the diagonal of a matrix, and calls `f` with them. As in NumPy, a negative extent counts as 0.
fn triangle_by_name(args: &Args, f: impl Fn(usize, isize, Option<usize>) -> Result<Vec<NdArray>>) -> Result<Value> {
    let n: isize = FromArgs::from_args(args, "n")?;
    let m: Option<isize> = FromArgs::from_args(args, "m")?;
    f(n.max(0) as usize, args.int_or("k", 0)?, m.map(|m| m.max(0) as usize)).map(IntoValue::into_value)
}

fn diag_indices_by_name(args: &Args) -> Result<Value> {
    let n: isize = FromArgs::from_args(args, "n")?;
    diag_indices(n.max(0) as usize, args.int_or("ndim", 2)?.max(0) as usize).map(IntoValue::into_value)
}

/// Returns the indices of the elements on and below diagonal `k` of an `n` x `m` matrix (`numpy.tril_indices`).
///
/// The call waits for the device.
///
/// # Errors
/// A size that overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::tril_indices;
/// # fn main() -> cuprum::Result<()> {
/// let rows_and_columns = tril_indices(2, 0, None)?;
/// assert_eq!(rows_and_columns, [array![0i64, 1, 1], array![0i64, 0, 1]]);
/// # Ok(())
/// # }
/// ```
#[numpy("tril_indices(n, k=0, m=None)", call = |args| triangle_by_name(args, tril_indices))]
pub fn tril_indices(n: usize, k: isize, m: impl Into<Option<usize>>) -> Result<Vec<NdArray>> {
    let m = m.into().unwrap_or(n);
    checked_size("tril_indices", &[n, m])?;
    lower_mask(Device::current()?, n, m, k)?.nonzero()
}

/// Returns the indices of the elements on and above diagonal `k` of an `n` x `m` matrix (`numpy.triu_indices`).
///
/// The call waits for the device.
///
/// # Errors
/// A size that overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::triu_indices;
/// # fn main() -> cuprum::Result<()> {
/// let rows_and_columns = triu_indices(2, 0, None)?;
/// assert_eq!(rows_and_columns, [array![0i64, 0, 1], array![0i64, 1, 1]]);
/// # Ok(())
/// # }
/// ```
#[numpy("triu_indices(n, k=0, m=None)", call = |args| triangle_by_name(args, triu_indices))]
pub fn triu_indices(n: usize, k: isize, m: impl Into<Option<usize>>) -> Result<Vec<NdArray>> {
    let m = m.into().unwrap_or(n);
    checked_size("triu_indices", &[n, m])?;
    logical_not(lower_mask(Device::current()?, n, m, k.saturating_sub(1))?)?.nonzero()
}

/// Returns the extents of a matrix.
fn matrix_extents(op: &'static str, a: &NdArray) -> Result<(usize, usize)> {
    match *a.shape() {
        [rows, columns] => Ok((rows, columns)),
        _ => Err(Error::shape(op, "input array must be 2-d", &[a.shape()])),
    }
}

/// Returns the indices of the elements on and below diagonal `k` of a matrix (`numpy.tril_indices_from`).
///
/// # Errors
/// An array that is not 2-D.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, s};
/// use cuprum_numpy::tril_indices_from;
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1, 2], [3, 4]];
/// let at = tril_indices_from(&a, 0)?;
/// assert_eq!(a.index(s![&at[0], &at[1]])?, array![1, 3, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("tril_indices_from(arr, k=0)")]
pub fn tril_indices_from(arr: &NdArray, k: isize) -> Result<Vec<NdArray>> {
    let (rows, columns) = matrix_extents("tril_indices_from", arr)?;
    with_device(arr.device(), || tril_indices(rows, k, columns))
}

/// Returns the indices of the elements on and above diagonal `k` of a matrix (`numpy.triu_indices_from`).
///
/// # Errors
/// An array that is not 2-D.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, s};
/// use cuprum_numpy::triu_indices_from;
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1, 2], [3, 4]];
/// let at = triu_indices_from(&a, 0)?;
/// assert_eq!(a.index(s![&at[0], &at[1]])?, array![1, 2, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("triu_indices_from(arr, k=0)")]
pub fn triu_indices_from(arr: &NdArray, k: isize) -> Result<Vec<NdArray>> {
    let (rows, columns) = matrix_extents("triu_indices_from", arr)?;
    with_device(arr.device(), || triu_indices(rows, k, columns))
}

/// Returns the indices of the main diagonal of an array with `ndim` axes of `n` elements (`numpy.diag_indices`).
///
/// # Errors
/// Too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, s};
/// use cuprum_numpy::diag_indices;
/// # fn main() -> cuprum::Result<()> {
/// let at = diag_indices(2, 2)?;
/// assert_eq!(array![[1, 2], [3, 4]].index(s![&at[0], &at[1]])?, array![1, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("diag_indices(n, ndim=2)", call = diag_indices_by_name)]
pub fn diag_indices(n: usize, ndim: usize) -> Result<Vec<NdArray>> {
    checked_size("diag_indices", &vec![1; ndim.min(cuprum_core::layout::MAX_NDIM + 1)])?;
    Ok(vec![index_range(Device::current()?, n)?; ndim])
}

/// Returns the indices of the main diagonal of an array whose axes have the same extent (`numpy.diag_indices_from`).
///
/// # Errors
/// Extents that differ, or fewer than two axes.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, s};
/// use cuprum_numpy::diag_indices_from;
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1, 2], [3, 4]];
/// let at = diag_indices_from(&a)?;
/// assert_eq!(a.index(s![&at[0], &at[1]])?, array![1, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("diag_indices_from(arr)")]
pub fn diag_indices_from(arr: &NdArray) -> Result<Vec<NdArray>> {
    let name = "diag_indices_from";
    let [n, _, ..] = *arr.shape() else { return Err(Error::shape(name, "input array must be at least 2-d", &[arr.shape()])) };
    if arr.shape().iter().any(|&extent| extent != n) {
        return Err(Error::shape(name, "All dimensions of input must be of equal length", &[arr.shape()]));
    }
    with_device(arr.device(), || diag_indices(n, arr.ndim()))
}

/// The order in which elements are counted (`order=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The last axis varies fastest.
    #[default]
    C,
    /// The first axis varies fastest.
    F,
}

impl FromArgs for Order {
    fn from_args(args: &Args, name: &str) -> Result<Order> {
        match args.value(name) {
            None => Ok(Order::C),
            Some(Value::Str(text)) if text == "C" => Ok(Order::C),
            Some(Value::Str(text)) if text == "F" => Ok(Order::F),
            Some(_) => Err(Error::value(args.op(), "only 'C' or 'F' order is permitted")),
        }
    }
}

/// Returns the index along each axis of `shape` for indices into the flattened array (`numpy.unravel_index`).
///
/// The results are deferred int64 arrays. The call waits for the device to check the bounds.
///
/// # Errors
/// Indices that are not integers, or are outside the array.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// use cuprum_numpy::{Order, unravel_index};
/// # fn main() -> cuprum::Result<()> {
/// let indices = unravel_index(&NdArray::from_slice(&[1, 5])?, [2, 3], Order::C)?;
/// assert_eq!(indices[0].to_vec::<i64>()?, [0, 1]);
/// assert_eq!(indices[1].to_vec::<i64>()?, [1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("unravel_index(indices, shape, order='C')")]
pub fn unravel_index(indices: &NdArray, #[read(Vec<usize>)] shape: impl IntoShape, order: Order) -> Result<Vec<NdArray>> {
    let (name, shape) = ("unravel_index", shape.into_shape());
    let size = checked_size(name, &shape)?;
    if !indices.dtype().is_int() {
        return Err(Error::dtype(name, "only int indices permitted", &[indices.dtype()]));
    }
    if shape.is_empty() && indices.ndim() > 0 {
        return Err(Error::value(name, "multiple indices are not supported for 0d array"));
    }
    if indices.size() > 0 {
        for extreme in [indices.min(())?, indices.max(())?] {
            let index = extreme.item()?.as_int().unwrap_or(-1);
            if !(0..size as i128).contains(&index) {
                return Err(Error::value(name, format!("index {index} is out of bounds for array with size {size}")));
            }
        }
    }
    let indices = indices.astype(DType::I64)?;
    let mut inner = 1usize;
    let mut axes = Vec::with_capacity(shape.len());
    let along = |&extent: &usize| {
        let index = remainder(floor_divide(&indices, inner)?, extent.max(1))?;
        inner *= extent.max(1);
        Ok(index)
    };
    match order {
        Order::C => {
            axes.extend(shape.iter().rev().map(along).collect::<Result<Vec<_>>>()?);
            axes.reverse();
        }
        Order::F => axes.extend(shape.iter().map(along).collect::<Result<Vec<_>>>()?),
    }
    Ok(axes)
}

/// Treatment of indices out of bounds (`mode=` of `numpy.ravel_multi_index`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bounds {
    /// An error.
    #[default]
    Raise,
    /// Indices count modulo the extent.
    Wrap,
    /// Indices are limited to the extent.
    Clip,
}

impl Bounds {
    pub(crate) fn parse(op: &'static str, value: &Value) -> Result<Bounds> {
        match value {
            Value::Str(text) if text == "raise" => Ok(Bounds::Raise),
            Value::Str(text) if text == "wrap" => Ok(Bounds::Wrap),
            Value::Str(text) if text == "clip" => Ok(Bounds::Clip),
            _ => Err(Error::value(op, "clipmode must be one of 'clip', 'raise', or 'wrap'")),
        }
    }
}

fn ravel_multi_index_by_name(args: &Args) -> Result<Value> {
    let indices = args.arrays("multi_index")?;
    let modes = match args.value("mode") {
        None => vec![Bounds::Raise],
        Some(value) => match value.items() {
            Some(items) => items.iter().map(|mode| Bounds::parse(args.op(), mode)).collect::<Result<_>>()?,
            None => vec![Bounds::parse(args.op(), value)?],
        },
    };
    ravel_multi_index(&indices, args.shape("dims")?, &modes, Order::from_args(args, "order")?).map(Value::Array)
}

/// Returns indices into the flattened array for an index along each axis (`numpy.ravel_multi_index`).
///
/// `modes` has one treatment of indices out of bounds for all axes, or one for each. With [`Bounds::Raise`] the call waits for the device
/// to check the bounds. The result is a deferred int64 array.
///
/// # Errors
/// A number of arrays or modes other than that of the axes, indices that are not integers or out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// use cuprum_numpy::{Bounds, Order, ravel_multi_index};
/// # fn main() -> cuprum::Result<()> {
/// let (row, column) = (NdArray::from_slice(&[0, 1])?, NdArray::from_slice(&[1, 2])?);
/// let flat = ravel_multi_index(&[row, column], [2, 3], &[Bounds::Raise], Order::C)?;
/// assert_eq!(flat.to_vec::<i64>()?, [1, 5]);
/// # Ok(())
/// # }
/// ```
#[numpy("ravel_multi_index(multi_index, dims, mode='raise', order='C')", call = ravel_multi_index_by_name)]
pub fn ravel_multi_index(multi_index: &[NdArray], dims: impl IntoShape, modes: &[Bounds], order: Order) -> Result<NdArray> {
    let (name, dims) = ("ravel_multi_index", dims.into_shape());
    checked_size(name, &dims)?;
    if multi_index.len() != dims.len() || dims.is_empty() {
        return Err(Error::value(name, format!("parameter multi_index must be a sequence of length {}", dims.len())));
    }
    if modes.len() != 1 && modes.len() != dims.len() {
        return Err(Error::value(name, format!("{} modes for {} axes", modes.len(), dims.len())));
    }
    let mut flat: Option<NdArray> = None;
    let axes: Vec<usize> = if order == Order::C { (0..dims.len()).collect() } else { (0..dims.len()).rev().collect() };
    for axis in axes {
        let (index, extent) = (&multi_index[axis], dims[axis]);
        if !index.dtype().is_int() {
            return Err(Error::dtype(name, "only int indices permitted", &[index.dtype()]));
        }
        let index = index.astype(DType::I64)?;
        let index = match modes[axis.min(modes.len() - 1)] {
            Bounds::Wrap => remainder(&index, extent.max(1))?,
            Bounds::Clip => clip(&index, Some(0.into()), Some(extent.saturating_sub(1).into()))?,
            Bounds::Raise => {
                let inside = logical_and(greater_equal(&index, 0)?, less(&index, extent)?)?;
                if index.size() > 0 && !inside.all(())?.item()?.as_bool() {
                    return Err(Error::value(name, "invalid entry in coordinates array"));
                }
                index
            }
        };
        flat = Some(match flat {
            None => index,
            Some(flat) => add(multiply(&flat, extent)?, &index)?,
        });
    }
    flat.ok_or_else(|| Error::value(name, "need at least one axis"))
}

fn take_along_axis_by_name(args: &Args) -> Result<Value> {
    let axis: Option<isize> = FromArgs::from_args(args, "axis")?;
    take_along_axis(&args.array("arr")?, &args.indices("indices")?, axis).map(Value::Array)
}

/// Returns the elements at an index along an axis for each position of the other axes (`numpy.take_along_axis`).
///
/// `indices` has as many axes as the array, and broadcasts with it along the others. Negative indices count from the end. Without an axis,
/// the array is flattened. Applies the result of `argsort` or `argmax` along an axis.
///
/// Passes over memory: one gather. Where the device fuses `take`, the indices into the flattened array are computed in the same pass,
/// elsewhere in a pass of their own.
///
/// # Errors
/// Indices out of bounds or not integers, or numbers of axes that differ. On a GPU, the next call that waits for the device reports an
/// index out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_vec([3, 1, 2, 9, 8, 7], [2, 3])?;
/// let sorted = cuprum_numpy::take_along_axis(&a, &a.argsort(-1)?, -1)?;
/// assert_eq!(sorted.to_vec::<i32>()?, [1, 2, 3, 7, 8, 9]);
/// # Ok(())
/// # }
/// ```
#[numpy("take_along_axis(arr, indices, axis=-1)", call = take_along_axis_by_name)]
pub fn take_along_axis(arr: &NdArray, indices: &NdArray, axis: impl Into<Option<isize>>) -> Result<NdArray> {
    let name = "take_along_axis";
    let Some(axis) = axis.into() else {
        if indices.ndim() != 1 {
            return Err(Error::shape(name, "when axis=None, `indices` must have a single dimension.", &[indices.shape()]));
        }
        return take_along_axis(&arr.ravel()?, indices, 0);
    };
    let axis = normalize_axis(name, axis, arr.ndim())?;
    if !indices.dtype().is_int() {
        return Err(Error::dtype(name, "`indices` must be an integer array", &[indices.dtype()]));
    }
    if indices.ndim() != arr.ndim() {
        let message = "`indices` and `arr` must have the same number of dimensions";
        return Err(Error::shape(name, message, &[indices.shape(), arr.shape()]));
    }
    let named = |error: Error| match error {
        Error::Index { index, axis, size, .. } => Error::Index { op: name, index, axis, size },
        other => other,
    };
    if arr.ndim() == 1 {
        return arr.take(indices, 0).map_err(named);
    }
    let mut others = arr.shape().to_vec();
    others[axis] = 1;
    broadcast_shapes(name, &[&others, indices.shape()])?;
    let extent = arr.shape()[axis];
    let indices = indices.astype(DType::I64)?;
    let mut flat = where_(less(&indices, 0)?, add(&indices, extent)?, &indices)?;
    let mut step: usize = arr.shape()[axis + 1..].iter().product();
    flat = multiply(&flat, step)?;
    step = 1;
    for n in (0..arr.ndim()).rev() {
        if n != axis && arr.shape()[n] > 1 {
            flat = add(flat, multiply(range_along(arr.device(), arr.shape()[n], n, arr.ndim())?, step)?)?;
        }
        step *= arr.shape()[n];
    }
    // An index out of bounds along the axis may be inside the flattened array. It is replaced by an index that is outside, for which
    // `take` returns an error.
    let inside = logical_and(greater_equal(&indices, -(extent as i64))?, less(&indices, extent)?)?;
    let flat = where_(inside, flat, arr.size())?;
    // Axes along which the array has extent 1 or the indices do are broadcast.
    let shape = broadcast_shapes(name, &[&others, indices.shape()])?;
    arr.ravel()?.take(&cuprum_core::broadcast_to(&flat, &shape[..])?, 0).map_err(named)
}

fn read_operands(args: &Args, name: &str) -> Result<Vec<Operand>> {
    let not_a_list = || Error::value(args.op(), format!("'{name}' must be a list"));
    match args.get(name) {
        Some(Value::Array(_)) => Ok(args.arrays(name)?.into_iter().map(Operand::from).collect()),
        Some(value) => value.items().ok_or_else(not_a_list)?.iter().map(|item| item.operand(args.op())).collect(),
        None => Err(not_a_list()),
    }
}

fn select_by_name(args: &Args) -> Result<Value> {
    select(&args.arrays("condlist")?, &read_operands(args, "choicelist")?, Operand::from_args(args, "default")?).map(Value::Array)
}

/// Returns for each element the choice of the first condition that is true, or the default (`numpy.select`).
///
/// Conditions, choices and the default broadcast. Numbers are weak. The result is deferred.
///
/// Passes over memory: one.
///
/// # Errors
/// No conditions, numbers of conditions and choices that differ, conditions that are not bool, shapes that do not broadcast, or arrays on
/// different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::arange(0, 5, 1)?;
/// let chosen = cuprum_numpy::select(&[a.less(2)?, a.greater(3)?], &[(&a).into(), (-1).into()], 9)?;
/// assert_eq!(chosen.to_vec::<i64>()?, [0, 1, 9, 9, -1]);
/// # Ok(())
/// # }
/// ```
#[numpy("select(condlist, choicelist, default=0)", differs = "Python ints as choices of unsigned arrays are accepted", call = select_by_name)]
pub fn select(conditions: &[NdArray], choices: &[Operand], default: impl Into<Operand>) -> Result<NdArray> {
    let (name, default) = ("select", default.into());
    if conditions.len() != choices.len() {
        return Err(Error::value(name, "list of cases must be same length as list of conditions"));
    }
    if conditions.is_empty() {
        return Err(Error::value(name, "select with an empty condition list is not possible"));
    }
    if let Some(n) = conditions.iter().position(|condition| condition.dtype() != DType::Bool) {
        let message = format!("invalid entry {n} in condlist: should be boolean ndarray");
        return Err(Error::dtype(name, message, &[conditions[n].dtype()]));
    }
    // As in NumPy, a bool is not a weak scalar here.
    let strong = |operand: &Operand| match operand {
        Operand::Scalar(s @ Scalar::Bool(_)) => with_device(conditions[0].device(), || NdArray::scalar(*s)).map(Operand::from),
        other => Ok(other.clone()),
    };
    let choices = choices.iter().map(strong).collect::<Result<Vec<_>>>()?;
    let default = strong(&default)?;
    let dtype = result_dtype(choices.iter().chain([&default]));
    let convert = |operand: &Operand| match operand {
        Operand::Array(a) => a.astype(dtype),
        // As in NumPy, a Python int outside the dtype wraps.
        Operand::Scalar(s) => with_device(conditions[0].device(), || NdArray::scalar_as(*s, dtype)),
    };
    let mut chosen = convert(&default)?;
    for (condition, choice) in conditions.iter().zip(&choices).rev() {
        chosen = where_(condition, convert(choice)?, &chosen)?;
    }
    Ok(chosen)
}

fn piecewise_by_name(args: &Args) -> Result<Value> {
    let x = args.array("x")?;
    let is_list = |value: &Value| matches!(value, Value::List(_)) || matches!(value, Value::Array(a) if a.ndim() > 0);
    let conditions = match args.get("condlist") {
        Some(Value::Array(a)) if a.ndim() > 1 || (x.ndim() == 0 && a.ndim() > 0) => args.arrays("condlist")?,
        Some(value) if value.items().is_some_and(|items| items.first().is_some_and(is_list) || x.ndim() == 0) => args.arrays("condlist")?,
        _ => vec![args.array("condlist")?],
    };
    let values = match args.get("funclist").and_then(Value::items) {
        Some(items) => items.iter().map(|item| item.array(args.op())?.item()).collect::<Result<Vec<_>>>()?,
        None => return Err(Error::value("piecewise", "the values must be a list of numbers")),
    };
    piecewise(&x, &conditions, &values).map(Value::Array)
}

/// Returns an array with a value for each condition, in the dtype and shape of `x` (`numpy.piecewise`).
///
/// Later conditions take precedence. An extra last value is for the elements where no condition is true, which
/// are 0 otherwise. The result is deferred. Instead of functions use [`select`], or [`where_`](cuprum_core::where_).
///
/// Passes over memory: one.
///
/// # Errors
/// Numbers of conditions and values that do not match, conditions of another shape, or values that the dtype cannot hold.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{Scalar, array};
/// use cuprum_numpy::piecewise;
/// # fn main() -> cuprum::Result<()> {
/// let x = array![-2.0, 0.5, 3.0];
/// let clipped = piecewise(&x, &[x.less(0)?, x.greater(1)?], &[Scalar::from(-1.0), Scalar::from(1.0)])?;
/// assert_eq!(clipped, array![-1.0, 0.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("piecewise(x, condlist, funclist)", differs = "values instead of functions", call = piecewise_by_name)]
pub fn piecewise(x: &NdArray, conditions: &[NdArray], values: &[Scalar]) -> Result<NdArray> {
    let (name, n) = ("piecewise", conditions.len());
    if values.len() != n && values.len() != n + 1 {
        return Err(Error::value(name, format!("with {n} condition(s), either {n} or {} functions are expected", n + 1)));
    }
    let constant = |value: Scalar| {
        if matches!(value, Scalar::Complex(_)) && !x.dtype().is_complex() {
            return Err(Error::dtype(name, "a complex value cannot be stored", &[x.dtype()]));
        }
        with_device(x.device(), || NdArray::scalar_as(value.checked_for(name, x.dtype())?, x.dtype()))
    };
    let otherwise = values.get(n).copied().unwrap_or(Scalar::Int(0));
    let mut result = cuprum_core::broadcast_to(&constant(otherwise)?, x.shape())?;
    for (condition, &value) in conditions.iter().zip(values) {
        if condition.shape() != x.shape() {
            return Err(Error::shape(name, "a condition has another shape than the array", &[condition.shape(), x.shape()]));
        }
        result = where_(condition.astype(DType::Bool)?, constant(value)?, &result)?;
    }
    Ok(result)
}

fn choose_by_name(args: &Args) -> Result<Value> {
    let mode = Bounds::from_args(args, "mode")?;
    choose(&args.indices("a")?, &args.arrays("choices")?, mode).map(Value::Array)
}

/// Returns for each element the element of the array that `a` selects among `choices` (`numpy.choose`). All arrays broadcast together.
///
/// Passes over memory: one to join the choices and one gather.
///
/// # Errors
/// No choices, shapes that do not broadcast, or indices that are not integers or are out of bounds with [`Bounds::Raise`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// use cuprum_numpy::{Bounds, choose};
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (NdArray::from_slice(&[1, 2, 3])?, NdArray::from_slice(&[10, 20, 30])?);
/// let chosen = choose(&NdArray::from_slice(&[0, 1, 0])?, &[a, b], Bounds::Raise)?;
/// assert_eq!(chosen.to_vec::<i32>()?, [1, 20, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("choose(a, choices, out=None, mode='raise')", call = choose_by_name)]
pub fn choose(a: &NdArray, choices: &[NdArray], mode: Bounds) -> Result<NdArray> {
    let name = "choose";
    if a.dtype().is_inexact() {
        return Err(Error::dtype(name, "the indices must be integers", &[a.dtype()]));
    }
    if choices.is_empty() {
        return Err(Error::value(name, "needs at least one choice"));
    }
    let (count, indices) = (choices.len(), a.astype(DType::I64)?);
    let indices = match mode {
        // Negative indices do not count from the end.
        Bounds::Raise => where_(less(&indices, 0)?, count, &indices)?,
        Bounds::Wrap => remainder(&indices, count)?,
        Bounds::Clip => clip(&indices, Some(0.into()), Some((count - 1).into()))?,
    };
    let all = broadcast_arrays(&[&[indices], choices].concat())?;
    let joined = stack(&all[1..], 0)?;
    let chosen = take_along_axis(&joined, &all[0].expand_dims(0)?, 0).map_err(|error| match error {
        Error::Index { index, axis, size, .. } => Error::Index { op: name, index, axis, size },
        error => error.with_function_name(name),
    })?;
    chosen.index(0)
}
