//! Copies and joins of arrays.

use crate::call;
use smallvec::SmallVec;

use crate::arguments::{Axes, IntegerArgument};
use crate::array::{NdArray, StoredArray};
use crate::call::{OutputSpec, Work};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Operand;
use crate::layout::{Dims, Layout, normalize_axis};
use crate::op::{Op, result_type};
use crate::ops::creation_options::create_with_device_and_order;
use crate::ops::python_value::{Args, Value};
use cuprum_macros::{free_functions, numpy};

super::ops! { Copy after creation:
    COPY "copy" 1;
    CONCAT "concat" 0;
    STACK "stack" 0;
}

/// # Copies
///
/// [`concat()`] and [`stack()`], which join arrays, are free functions, not methods.
#[free_functions]
impl NdArray {
    /// Returns the array in C order without gaps. Copies the elements unless the array is C-contiguous already.
    ///
    /// This is `numpy.ascontiguousarray`, except that 0-d arrays stay 0-d.
    ///
    /// # Errors
    /// Errors of evaluation, or too little memory.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1, 2, 3, 4], [2, 2])?.t()?;
    /// assert_eq!(a.contiguous()?.strides()?, [2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn contiguous(&self) -> Result<NdArray> {
        let stored = self.stored()?;
        if stored.layout().is_c_contiguous() { Ok(self.clone()) } else { self.copy() }
    }

    /// Returns a copy in C order (`numpy.copy`).
    ///
    /// # Errors
    /// Errors of evaluation, or too little memory.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1, 2, 3, 4], [2, 2])?.t()?;
    /// assert_eq!(a.copy()?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("copy(a, order='K')", call = copy_from_args)]
    #[numpy("ndarray.copy(a, order='C')", call = copy_from_args)]
    pub fn copy(&self) -> Result<NdArray> {
        let stored = self.stored()?;
        let out = OutputSpec::contiguous(self.dtype(), self.shape())?;
        let whole = out.layout.clone();
        super::dispatch_single_output(COPY, self.device(), &[stored], out, Work::Copy(call::Copy { regions: &[whole] }))
    }
}

fn copy_from_args(args: &Args) -> Result<Value> {
    create_with_device_and_order(args, || args.array("a")?.copy())
}

/// Returns the argument `arrays`, converted to the argument `dtype` by the rule in the argument `casting`.
fn read_arrays_argument(args: &Args) -> Result<Vec<NdArray>> {
    cast_to_dtype_argument(args, args.arrays("arrays")?)
}

/// Converts `arrays` to the dtype of the argument `dtype`. If this argument is missing, returns the arrays as they are.
///
/// # Errors
/// An array that the rule in the argument `casting` does not convert to the dtype of the result.
fn cast_to_dtype_argument(args: &Args, arrays: Vec<NdArray>) -> Result<Vec<NdArray>> {
    let rule = match args.value("casting") {
        Some(Value::Str(rule)) => rule.as_str(),
        _ => args.str("casting")?,
    };
    let requested = args.dtype("dtype")?;
    if requested.is_some() && args.get("out").is_some() {
        return Err(Error::dtype(args.op(), "takes `out` or `dtype`, not both", &[]));
    }
    let Some(dtype) = requested.or_else(|| DType::promote_all(arrays.iter().map(NdArray::dtype))) else { return Ok(arrays) };
    let convert = |a: NdArray| {
        if !a.dtype().can_cast_by_rule(dtype, args.op(), rule)? {
            let message = format!("cannot convert {} to {dtype} by the rule '{rule}'", a.dtype());
            return Err(Error::dtype(args.op(), message, &[a.dtype(), dtype]));
        }
        if requested.is_some() { a.astype(dtype) } else { Ok(a) }
    };
    arrays.into_iter().map(convert).collect()
}

/// Returns operands as arrays. A number is a weak scalar: it gets the dtype to which all operands promote.
///
/// # Errors
/// A number that the promoted dtype cannot hold.
pub fn operands_to_arrays(op: &'static str, operands: Vec<Operand>) -> Result<Vec<NdArray>> {
    let dtype = result_type(&operands.iter().map(Operand::argument_type).collect::<Vec<_>>());
    let to_array = |operand: Operand| match operand {
        Operand::Array(a) => Ok(a),
        Operand::Scalar(s) => NdArray::scalar_as(s.to_checked_element(op, dtype)?, dtype),
    };
    operands.into_iter().map(to_array).collect()
}

fn concat_from_args(args: &Args) -> Result<Value> {
    if !args.is_none("axis") {
        return concat(read_arrays_argument(args)?, Axes::One(args.int_or("axis", 0)?)).map(Value::Array);
    }
    let arrays = match args.value("arrays").and_then(Value::items) {
        // As in NumPy, numbers in the list are weak scalars.
        Some(items) if args.dtype("dtype")?.is_none() => {
            let operands = items.iter().map(|item| item.operand(args.op())).collect::<Result<_>>()?;
            cast_to_dtype_argument(args, operands_to_arrays(args.op(), operands)?)?
        }
        _ => read_arrays_argument(args)?,
    };
    concat(arrays, Axes::All).map(Value::Array)
}

fn stack_from_args(args: &Args) -> Result<Value> {
    stack(read_arrays_argument(args)?, args.int_or("axis", 0)?).map(Value::Array)
}

/// Maximum number of arrays in a list argument.
const MAX_LIST_ARRAYS: usize = 1 << 20;

/// Calls `f` with references to the arrays of a list argument, such as `&[&a, &b]`, `[a, b]`, `&vec` or `vec.iter()`.
///
/// # Errors
/// The errors of `f`, and a list of more than 2^20 arrays.
pub fn with_array_refs<R>(
    op: &'static str,
    arrays: impl IntoIterator<Item: AsRef<NdArray>>,
    f: impl FnOnce(&[&NdArray]) -> Result<R>,
) -> Result<R> {
    let mut items = SmallVec::<[_; 4]>::new();
    for array in arrays {
        if items.len() == MAX_LIST_ARRAYS {
            return Err(Error::value(op, format!("takes at most {MAX_LIST_ARRAYS} arrays")));
        }
        items.push(array);
    }
    f(&items.iter().map(AsRef::as_ref).collect::<SmallVec<[&NdArray; 4]>>())
}

/// Copies arrays one after another along `axis` of a new array of `shape`.
fn join_along_axis(op: Op, arrays: &[&NdArray], axis: usize, shape: &[usize]) -> Result<NdArray> {
    let device = arrays[0].device();
    for other in arrays {
        super::common_device(op, arrays[0], other)?;
    }
    let dtype = DType::promote_all(arrays.iter().map(|a| a.dtype())).unwrap_or(DType::F64);
    let out = OutputSpec::contiguous(dtype, shape)?;
    let (mut parts, mut regions) = (SmallVec::<[StoredArray; 4]>::new(), SmallVec::<[Layout; 4]>::new());
    let mut start = 0;
    for a in arrays {
        let extent = a.shape()[axis];
        if a.size() > 0 {
            parts.push(a.astype(dtype)?.stored()?);
            regions.push(out.layout.slice_axis(axis, start, 1, extent));
        }
        start += extent;
    }
    // If `parts` is empty, the result has no elements, so dispatch runs no kernel.
    super::dispatch_single_output(op, device, &parts, out, Work::Copy(call::Copy { regions: &regions }))
}

/// Returns a new array of `shape` that consists of `parts`, written in one pass.
///
/// Each part is an array and the index of its first element in the result. The parts do not overlap, and together they cover the result.
/// The result has the promoted dtype. Parts may be views, so functions such as `pad`, `roll` and `block` need only one call of a kernel.
///
/// # Errors
/// No parts, a part that reaches outside the result, parts that overlap or leave gaps, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, assemble_from_parts, s};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1, 2, 3])?;
/// let rotated = assemble_from_parts(&[3], &[(a.index(s![2..])?, vec![0]), (a.index(s![..2])?, vec![1])])?;
/// assert_eq!(rotated.to_vec::<i32>()?, [3, 1, 2]);
/// # Ok(())
/// # }
/// ```
pub fn assemble_from_parts(shape: &[usize], parts: &[(NdArray, Vec<usize>)]) -> Result<NdArray> {
    let name = CONCAT.name();
    let Some((first, _)) = parts.first() else { return Err(Error::value(name, "need at least one array")) };
    let dtype = DType::promote_all(parts.iter().map(|(a, _)| a.dtype())).unwrap_or(DType::F64);
    let out = OutputSpec::contiguous(dtype, shape)?;
    let mut filled = 0;
    for (n, (part, start)) in parts.iter().enumerate() {
        super::common_device(CONCAT, first, part)?;
        let fits = part.ndim() == shape.len() && start.len() == shape.len();
        let ends = || part.shape().iter().zip(start).map(|(&n, &at)| n.saturating_add(at));
        if !fits || ends().zip(shape).any(|(end, &n)| end > n) {
            return Err(Error::shape(name, "a part reaches outside the result", &[part.shape(), shape]));
        }
        let meets = |(other, at): &&(NdArray, Vec<usize>)| {
            let overlaps = |axis: usize| start[axis] < at[axis] + other.shape()[axis] && at[axis] < start[axis] + part.shape()[axis];
            other.size() > 0 && part.size() > 0 && (0..shape.len()).all(overlaps)
        };
        if let Some((other, _)) = parts[..n].iter().find(meets) {
            return Err(Error::shape(name, "two parts overlap", &[part.shape(), other.shape()]));
        }
        filled += part.size();
    }
    if filled != out.layout.size() {
        return Err(Error::shape(name, format!("the parts cover {filled} elements of the result"), &[shape]));
    }
    let (mut inputs, mut regions) = (Vec::new(), Vec::new());
    for (part, start) in parts.iter().filter(|(part, _)| part.size() > 0) {
        inputs.push(part.astype(dtype)?.stored()?);
        let region = (0..shape.len()).fold(out.layout.clone(), |region, axis| region.slice_axis(axis, start[axis], 1, part.shape()[axis]));
        regions.push(region);
    }
    super::dispatch_single_output(CONCAT, first.device(), &inputs, out, Work::Copy(call::Copy { regions: &regions }))
}

/// Joins arrays along an existing axis (`numpy.concat`, `numpy.concatenate`), or the flattened arrays for `()`.
///
/// The arrays are any list of arrays or references: `&[&a, &b]`, `[a, b]`, `&vec`, `vec.iter()`. The other extents must be equal. The
/// result has the promoted dtype.
///
/// # Errors
/// No arrays, 0-d arrays, extents that differ, an axis out of bounds, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, concat};
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (NdArray::from_slice(&[1, 2])?, NdArray::from_slice(&[3])?);
/// assert_eq!(concat([&a, &b], 0)?.to_vec::<i32>()?, [1, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "concatenate")]
#[numpy("concat(arrays, /, axis=0, out=None, *, dtype=None, casting='same_kind')", aliases("concatenate"), call = concat_from_args)]
pub fn concat(arrays: impl IntoIterator<Item: AsRef<NdArray>>, axis: impl Into<Axes>) -> Result<NdArray> {
    let axis = axis.into().at_most_one_axis(CONCAT.name())?;
    with_array_refs(CONCAT.name(), arrays, |arrays| match axis {
        Some(axis) => concat_along_axis(arrays, axis),
        None => {
            let flat = arrays.iter().map(|a| a.ravel()).collect::<Result<Vec<_>>>()?;
            concat_along_axis(&flat.iter().collect::<Vec<_>>(), 0)
        }
    })
}

fn concat_along_axis(arrays: &[&NdArray], axis: isize) -> Result<NdArray> {
    let name = CONCAT.name();
    let Some(head) = arrays.first() else { return Err(Error::value(name, "need at least one array")) };
    if head.ndim() == 0 {
        return Err(Error::value(name, "zero-dimensional arrays cannot be concatenated; use stack"));
    }
    let axis = normalize_axis(name, axis, head.ndim())?;
    let mut shape: Dims = head.shape().into();
    shape[axis] = 0;
    for a in arrays {
        let fits = a.ndim() == head.ndim() && (0..head.ndim()).all(|i| i == axis || a.shape()[i] == head.shape()[i]);
        if !fits {
            let message = format!("all extents except that of axis {axis} must be equal");
            return Err(Error::shape(name, message, &[head.shape(), a.shape()]));
        }
        let too_large = || Error::shape(name, "array is too large", &[head.shape(), a.shape()]);
        shape[axis] = shape[axis].checked_add(a.shape()[axis]).ok_or_else(too_large)?;
    }
    join_along_axis(CONCAT, arrays, axis, &shape)
}

/// Joins arrays of one shape along a new axis (`numpy.stack`). The arrays are a list as for [`concat()`].
///
/// # Errors
/// No arrays, shapes that differ, an axis out of bounds, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, stack};
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (NdArray::from_slice(&[1, 2])?, NdArray::from_slice(&[3, 4])?);
/// assert_eq!(stack([&a, &b], 1)?.to_vec::<i32>()?, [1, 3, 2, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("stack(arrays, axis=0, out=None, *, dtype=None, casting='same_kind')", call = stack_from_args)]
pub fn stack(arrays: impl IntoIterator<Item: AsRef<NdArray>>, #[read(isize)] axis: impl IntegerArgument) -> Result<NdArray> {
    with_array_refs(STACK.name(), arrays, |arrays| stack_along_axis(arrays, axis.saturating_isize()))
}

fn stack_along_axis(arrays: &[&NdArray], axis: isize) -> Result<NdArray> {
    let name = STACK.name();
    let Some(head) = arrays.first() else { return Err(Error::value(name, "need at least one array")) };
    if let Some(other) = arrays.iter().find(|a| a.shape() != head.shape()) {
        return Err(Error::shape(name, "all arrays must have the same shape", &[head.shape(), other.shape()]));
    }
    let axis = normalize_axis(name, axis, head.ndim() + 1)?;
    let widened: SmallVec<[NdArray; 4]> = arrays.iter().map(|a| a.expand_dims(axis)).collect::<Result<_>>()?;
    let mut shape: Dims = head.shape().into();
    shape.insert(axis, arrays.len());
    join_along_axis(STACK, &widened.iter().collect::<SmallVec<[&NdArray; 4]>>(), axis, &shape)
}
