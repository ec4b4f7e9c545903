//! Array creation: constants, ranges and identity matrices.

use crate::arguments::IntoShape;
use crate::array::NdArray;
use crate::call::{Fill, OutputSpec, Work};
use crate::device::{Device, with_device};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::expr::Operand;
use crate::function::FromArgs;
use crate::layout::broadcast_shapes;
use crate::op::{ArgumentType, Op, result_type};
use crate::ops::creation_options::create_with_device_and_order;
use crate::ops::python_value::{Args, Value};
use crate::scalar::Scalar;
use cuprum_macros::numpy;

/// Returns the argument `dtype` in `args`, or `default` if it is missing.
fn dtype_argument_or_default(args: &Args, default: DType) -> Result<DType> {
    Ok(args.dtype("dtype")?.unwrap_or(default))
}

/// Calls `make` with the shape and dtype of the array argument `name`, on the device of that array. The arguments `shape`, `dtype` and
/// `device` override the properties of the array.
fn create_like_from_args(args: &Args, name: &str, make: impl FnOnce(&[usize], DType) -> Result<NdArray>) -> Result<Value> {
    let a = args.array(name)?;
    let dtype = args.dtype("dtype")?.unwrap_or(a.dtype());
    let shape = if args.get("shape").is_some() { args.shape("shape")? } else { a.shape().to_vec() };
    // If the argument `device` is given, `create_with_device_and_order` makes it the current device while `make` runs.
    let is_requested = args.get("device").is_some();
    create_with_device_and_order(args, || if is_requested { make(&shape, dtype) } else { with_device(a.device(), || make(&shape, dtype)) })
}

/// Returns an error if the argument `order` is `'K'` or `'A'`, the order of an operand: a new array has no operand.
fn reject_orders_k_and_a(args: &Args) -> Result<()> {
    match args.get("order") {
        Some(Value::Str(order)) if order == "K" || order == "A" => Err(Error::value(args.op(), "only 'C' or 'F' order is permitted")),
        _ => Ok(()),
    }
}

/// Calls `make` with the arguments `shape` and `dtype`. The default dtype is float64.
fn create_with_shape_from_args(args: &Args, make: impl FnOnce(Vec<usize>, DType) -> Result<NdArray>) -> Result<Value> {
    reject_orders_k_and_a(args)?;
    let (shape, dtype) = (args.shape("shape")?, dtype_argument_or_default(args, DType::F64)?);
    create_with_device_and_order(args, || make(shape, dtype))
}

fn full_from_args(args: &Args) -> Result<Value> {
    reject_orders_k_and_a(args)?;
    let value = args.operand("fill_value")?;
    let dtype = dtype_argument_or_default(args, result_type(&[value.argument_type()]))?;
    let shape = args.shape("shape")?;
    create_with_device_and_order(args, || full(shape, value, dtype))
}

fn full_like_from_args(args: &Args) -> Result<Value> {
    let value = args.operand("fill_value")?;
    create_like_from_args(args, "a", |shape, dtype| full(shape, value, dtype))
}

/// Computes `arange` with Python-like arguments: `arange(stop)` or `arange(start, stop, step)`.
fn arange_from_args(args: &Args) -> Result<Value> {
    let (start, stop) = match args.get("stop") {
        None => (Scalar::Int(0), args.scalar("start")?),
        Some(_) => (args.scalar("start")?, args.scalar("stop")?),
    };
    let (step, dtype) = (args.get("step").map_or(Ok(1.into()), |_| args.scalar("step"))?, args.dtype("dtype")?);
    // Returns the dtype of the argument `name` if the argument is an array, and `None` for a Python number.
    let array_dtype = |name: &str| match args.get(name) {
        Some(Value::Array(a)) => Some(a.dtype()),
        _ => None,
    };
    let dtypes = match args.get("stop") {
        None => [None, array_dtype("start"), array_dtype("step")],
        Some(_) => ["start", "stop", "step"].map(array_dtype),
    };
    create_with_device_and_order(args, || {
        let numbers = [start, stop, step];
        let (result_dtype, natural) = arange_dtypes(numbers, dtype)?;
        if natural.is_inexact() && dtypes.iter().flatten().any(|dtype| dtype.is_inexact() && *dtype != DType::F64) {
            let (count, second) = arange_count_in_dtypes(numbers, dtypes)?;
            return fill_arange(start, second, count, result_dtype);
        }
        arange_of_scalars(start, stop, step, dtype)
    })
}

/// Returns the number of elements of `arange` and its second element, computed in the dtypes of NumPy scalars as NumPy does. A number whose
/// dtype is `None` is a weak scalar.
fn arange_count_in_dtypes([start, stop, step]: [Scalar; 3], dtypes: [Option<DType>; 3]) -> Result<(usize, Scalar)> {
    if step.as_f64() == 0.0 {
        return Err(Error::value(ARANGE.name(), "step must not be 0"));
    }
    let (start, stop, step) = ((start, dtypes[0]), (stop, dtypes[1]), (step, dtypes[2]));
    let difference = |a: Scalar, b: Scalar| match (as_python_int(a), as_python_int(b)) {
        (Some(a), Some(b)) => Scalar::Int(a.saturating_sub(b)),
        _ => Scalar::Float(a.as_f64() - b.as_f64()),
    };
    let span = combine_in_promoted_dtype(stop, start, difference);
    let (quotient, _) = combine_in_promoted_dtype(span, step, |a, b| Scalar::Float(a.as_f64() / b.as_f64()));
    let count = arange_count_of_quotient(span.0.as_f64(), quotient.as_f64())?;
    let count = usize::try_from(count.max(0)).map_err(|_| Error::value(ARANGE.name(), "maximum allowed size exceeded"))?;
    Ok((count, combine_in_promoted_dtype(start, step, add_python_numbers).0))
}

/// Returns `f(a, b)` in the dtype to which both numbers promote, together with that dtype. Floats are rounded to the dtype before and after
/// `f`, which is exact or computes in float64. A number without a dtype is a weak scalar.
fn combine_in_promoted_dtype(
    (a, a_dtype): (Scalar, Option<DType>),
    (b, b_dtype): (Scalar, Option<DType>),
    f: impl Fn(Scalar, Scalar) -> Scalar,
) -> (Scalar, Option<DType>) {
    let argument_type = |number, dtype: Option<DType>| dtype.map_or(ArgumentType::Weak(number), ArgumentType::Array);
    let dtype = a_dtype.or(b_dtype).map(|_| result_type(&[argument_type(a, a_dtype), argument_type(b, b_dtype)]));
    let round = |number: Scalar| match dtype {
        Some(dtype) if dtype.is_inexact() => Scalar::from_bytes(dtype, &Scalar::Float(number.as_f64()).to_bytes(dtype)),
        _ => number,
    };
    (round(f(round(a), round(b))), dtype)
}

fn eye_from_args(args: &Args) -> Result<Value> {
    reject_orders_k_and_a(args)?;
    let extent = |n: isize| usize::try_from(n).map_err(|_| Error::value(EYE.name(), "negative dimensions are not allowed"));
    let rows = FromArgs::from_args(args, "N")?;
    let (columns, k) = (extent(args.int_or("M", rows)?)?, args.int_or("k", 0)? as i64);
    let (rows, dtype) = (extent(rows)?, dtype_argument_or_default(args, DType::F64)?);
    create_with_device_and_order(args, || eye(rows, columns, k, dtype))
}

super::ops! { Fill after contract:
    EMPTY "empty" 0;
    ZEROS "zeros" 0;
    ONES "ones" 0;
    FULL "full" 0;
    EMPTY_LIKE "empty_like" 1;
    ZEROS_LIKE "zeros_like" 1;
    ONES_LIKE "ones_like" 1;
    FULL_LIKE "full_like" 1;
    ARANGE "arange" 0;
    LINSPACE "linspace" 0;
    EYE "eye" 0;
}

/// Creates a C-contiguous array on `device` by dispatching `fill`, a call of the kernel family `Fill`.
fn dispatch_fill(op: Op, device: Device, shape: &[usize], dtype: DType, fill: Fill) -> Result<NdArray> {
    super::dispatch_single_output(op, device, &[], OutputSpec::contiguous(dtype, shape)?, Work::Fill(fill))
}

/// Returns an array on `device` filled with `value`.
pub(crate) fn full_on_device(device: Device, shape: &[usize], value: Scalar, dtype: DType) -> Result<NdArray> {
    dispatch_fill(FULL, device, shape, dtype, Fill::Constant(value.check_fits_dtype(FULL.name(), dtype)?))
}

/// Returns an array filled with `value`.
///
/// If `value` is an array, it is broadcast to the shape. As in `numpy.copyto`, it may have extra leading axes of extent 1.
fn full_from_operand(op: Op, device: Device, shape: &[usize], value: Operand, dtype: DType) -> Result<NdArray> {
    let array = match value {
        Operand::Array(array) => array,
        Operand::Scalar(value) => {
            return dispatch_fill(op, device, shape, dtype, Fill::Constant(value.check_fits_dtype(op.name(), dtype)?));
        }
    };
    if array.device() != device {
        let message = format!("the fill array is on {}, the result on {device}; use to_device", array.device());
        return Err(Error::Device { op: op.name(), message });
    }
    let refuse = || Error::shape(op.name(), "the fill array cannot be broadcast to this shape", &[array.shape(), shape]);
    let (leading, own) = array.shape().split_at(array.ndim().saturating_sub(shape.len()));
    if leading.iter().any(|&n| n != 1) || broadcast_shapes(op.name(), &[own, shape]).map_err(|_| refuse())?[..] != *shape {
        return Err(refuse());
    }
    array.astype(dtype)?.squeeze(0..leading.len())?.broadcast_to(shape)?.copy()
}

/// Returns [`arange`] in `dtype`; for `None`, in the dtype that NumPy chooses for the three numbers.
fn arange_of_scalars(start: Scalar, stop: Scalar, step: Scalar, dtype: Option<DType>) -> Result<NdArray> {
    let (dtype, _) = arange_dtypes([start, stop, step], dtype)?;
    fill_arange(start, add_python_numbers(start, step), arange_element_count(start, stop, step)?, dtype)
}

/// Returns two dtypes: that of the result of `arange`, and the promoted dtype of start, stop and step.
///
/// The dtype of the result is `dtype` if it is given, else the promoted dtype, or int64 if the promoted dtype is bool.
fn arange_dtypes(numbers: [Scalar; 3], dtype: Option<DType>) -> Result<(DType, DType)> {
    let op = ARANGE.name();
    let natural = numbers.iter().map(|s| s.default_dtype()).reduce(DType::promote).unwrap_or(DType::I64);
    if natural.is_complex() {
        return Err(Error::value(op, "start, stop and step must be real"));
    }
    let dtype = match dtype {
        Some(dtype) => dtype,
        None if natural == DType::Bool => DType::I64,
        None => {
            for scalar in numbers {
                scalar.check_fits_dtype(op, scalar.default_dtype())?; // NumPy returns an object array for an int that fits no dtype
            }
            natural
        }
    };
    Ok((dtype, natural))
}

/// Returns an `arange` of `count` elements of `dtype` whose first two elements are `start` and `second`.
fn fill_arange(start: Scalar, second: Scalar, count: usize, dtype: DType) -> Result<NdArray> {
    let device = Device::current()?;
    if dtype == DType::Bool && count > 2 {
        return Err(Error::value(ARANGE.name(), "arange() is only supported for booleans when the result has at most length 2"));
    }
    if count == 0 {
        return full_on_device(device, &[0], Scalar::Int(0), dtype);
    }
    // As in NumPy, the dtype must hold the first two elements; later ones wrap.
    let first = python_number_to_element(start, dtype)?;
    let second = if count > 1 { python_number_to_element(second, dtype)? } else { first };
    let step = match (first, second) {
        (Scalar::Int(first), Scalar::Int(second)) => Scalar::Int(second - first),
        _ => {
            let difference = second.as_f64() - first.as_f64();
            Scalar::Float(if matches!(dtype, DType::F64 | DType::C128) { difference } else { difference as f32 as f64 })
        }
    };
    dispatch_fill(ARANGE, device, &[count], dtype, Fill::Arange { start: first, second, step })
}

/// Returns the number of elements of `arange`, exactly for ints.
///
/// As in NumPy, there is one element if the quotient `(stop - start) / step` underflows to zero, such as for an infinite step.
fn arange_element_count(start: Scalar, stop: Scalar, step: Scalar) -> Result<usize> {
    let bad = |why: &str| Error::value(ARANGE.name(), why);
    let too_many = || bad("maximum allowed size exceeded");
    if step.as_f64() == 0.0 {
        return Err(bad("step must not be 0"));
    }
    let ints = match (as_python_int(start), as_python_int(stop)) {
        (Some(a), Some(b)) => Some(b.checked_sub(a).ok_or_else(too_many)?),
        _ => None,
    };
    let count = match (ints, as_python_int(step)) {
        (Some(span), Some(step)) => {
            let whole = span.checked_div(step).ok_or_else(too_many)?;
            let is_cut = span % step != 0 && (span < 0) == (step < 0);
            i64::try_from(whole + i128::from(is_cut)).map_err(|_| too_many())?
        }
        _ => {
            let span = ints.map_or(stop.as_f64() - start.as_f64(), |span| span as f64);
            let quotient = span / step.as_f64();
            arange_count_of_quotient(span, quotient)?
        }
    };
    usize::try_from(count.max(0)).map_err(|_| too_many())
}

/// Returns the number of elements of `arange` for `span = stop - start` and `quotient = span / step`.
fn arange_count_of_quotient(span: f64, quotient: f64) -> Result<i64> {
    let count = if quotient == 0.0 && span != 0.0 && quotient.is_sign_positive() { 1.0 } else { quotient.ceil() };
    if count.is_nan() {
        return Err(Error::value(ARANGE.name(), "cannot compute length"));
    }
    if count.abs() >= i64::MAX as f64 {
        return Err(Error::value(ARANGE.name(), "maximum allowed size exceeded"));
    }
    Ok(count as i64)
}

/// Returns a Python int or bool as an integer, and `None` for other numbers.
fn as_python_int(scalar: Scalar) -> Option<i128> {
    match scalar {
        Scalar::Bool(_) | Scalar::Int(_) => scalar.as_int(),
        _ => None,
    }
}

/// Returns `a + b` for real Python numbers.
fn add_python_numbers(a: Scalar, b: Scalar) -> Scalar {
    match (as_python_int(a), as_python_int(b)) {
        (Some(a), Some(b)) => Scalar::Int(a.saturating_add(b)),
        _ => Scalar::Float(a.as_f64() + b.as_f64()),
    }
}

/// Converts a real Python number to an element of `dtype`.
///
/// Floats are truncated to integer dtypes; any number becomes 0 or 1 in bool.
///
/// # Errors
/// A number that an integer dtype cannot hold.
fn python_number_to_element(value: Scalar, dtype: DType) -> Result<Scalar> {
    if dtype == DType::Bool {
        return Ok(Scalar::Int(value.as_bool().into()));
    }
    if !dtype.is_int() {
        return Ok(Scalar::Float(Scalar::from_bytes(dtype.real(), &Scalar::Float(value.as_f64()).to_bytes(dtype.real())).as_f64()));
    }
    match as_python_int(value) {
        Some(_) => value.check_fits_dtype(ARANGE.name(), dtype),
        None if value.as_f64().is_finite() => Scalar::Int(value.as_f64() as i128).check_fits_dtype(ARANGE.name(), dtype),
        None => Err(Error::value(ARANGE.name(), format!("{} cannot be converted to {dtype}", value.as_f64()))),
    }
}

/// Returns the length of one of the `parts` equal intervals that divide the range from `start` to `stop`.
pub(super) fn linspace_step(start: Scalar, stop: Scalar, parts: f64) -> Scalar {
    match (start, stop) {
        (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => Scalar::Complex((stop.as_complex() - start.as_complex()) / parts),
        _ => Scalar::Float((stop.as_f64() - start.as_f64()) / parts),
    }
}

/// Returns `count` evenly spaced values from `start` to `stop`, which is excluded unless `endpoint`. The default dtype is float64 or
/// complex128.
pub(super) fn linspace_of_scalars(start: Scalar, stop: Scalar, count: usize, endpoint: bool, dtype: Option<DType>) -> Result<NdArray> {
    let complex = matches!((start, stop), (Scalar::Complex(_), _) | (_, Scalar::Complex(_)));
    let natural = if complex { DType::C128 } else { DType::F64 };
    let dtype = dtype.unwrap_or(natural);
    // As in NumPy, the values are rounded down before the conversion to an integer dtype. `floor` is an error for complex values.
    if matches!(dtype.kind(), Kind::Signed | Kind::Unsigned) {
        return linspace_of_scalars(start, stop, count, endpoint, Some(natural))?.floor()?.astype(dtype);
    }
    let parts = if endpoint { count.saturating_sub(1) } else { count }.max(1) as f64;
    let step = linspace_step(start, stop, parts);
    if step == Scalar::Float(0.0) && start.as_f64() != stop.as_f64() {
        // The step underflows to zero. As in NumPy, sample i is then `i / parts * (stop - start)` above `start`.
        let fractions = arange_of_scalars(0.into(), count.into(), 1.into(), Some(DType::F64))?.divide(parts)?;
        return fractions.multiply(stop.as_f64() - start.as_f64())?.add(start.as_f64())?.astype(dtype);
    }
    let endpoint = endpoint && count > 1;
    dispatch_fill(LINSPACE, Device::current()?, &[count], dtype, Fill::Linspace { start, stop, step, count, endpoint })
}

/// Returns a new array on the current device with undefined contents (`numpy.empty`).
///
/// # Errors
/// A shape whose size overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, empty, s};
/// # fn main() -> cuprum::Result<()> {
/// let mut a = empty((2, 3), DType::F32)?;
/// a.assign(s![..], 1.5)?;
/// assert_eq!(a.sum(())?.item()?, 9.0);
/// # Ok(())
/// # }
/// ```
#[numpy("empty(shape, dtype=None, order='C', *, device=None)", call = |args| create_with_shape_from_args(args, empty))]
pub fn empty(shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
    dispatch_fill(EMPTY, Device::current()?, &shape.into_shape(), dtype, Fill::Undefined)
}

/// Returns an array of zeros on the current device (`numpy.zeros`).
///
/// # Errors
/// A shape whose size overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, NdArray, zeros};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(zeros([2, 3], DType::I32)?.to_vec::<i32>()?, [0; 6]);
/// # Ok(())
/// # }
/// ```
#[numpy("zeros(shape, dtype=None, order='C', *, device=None)", call = |args| create_with_shape_from_args(args, zeros))]
pub fn zeros(shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
    full_from_operand(ZEROS, Device::current()?, &shape.into_shape(), 0.into(), dtype)
}

/// Returns an array of ones on the current device (`numpy.ones`).
///
/// # Errors
/// A shape whose size overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, ones};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(ones(3, DType::F32)?.to_vec::<f32>()?, [1.0; 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("ones(shape, dtype=None, order='C', *, device=None)", call = |args| create_with_shape_from_args(args, ones))]
pub fn ones(shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
    full_from_operand(ONES, Device::current()?, &shape.into_shape(), 1.into(), dtype)
}

/// Returns an array filled with a number, or with an array broadcast to the shape, on the current device (`numpy.full`).
///
/// # Errors
/// An int that the dtype cannot hold, or a fill array that is on another device or does not broadcast to the shape.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, NdArray, full};
/// # fn main() -> cuprum::Result<()> {
/// let row = NdArray::from_slice(&[1i32, 2])?;
/// assert_eq!(full([2, 2], &row, row.dtype())?.to_vec::<i32>()?, [1, 2, 1, 2]);
/// assert_eq!(full(3, 7, DType::I32)?.to_vec::<i32>()?, [7; 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("full(shape, fill_value, dtype=None, order='C', *, device=None)", call = full_from_args)]
pub fn full(shape: impl IntoShape, value: impl Into<Operand>, dtype: DType) -> Result<NdArray> {
    full_from_operand(FULL, Device::current()?, &shape.into_shape(), value.into(), dtype)
}

/// Returns an array with the shape, dtype and device of `a` and undefined contents (`numpy.empty_like`).
///
/// # Errors
/// Too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, empty_like};
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1u8, 2], [3, 4]];
/// let b = empty_like(&a)?;
/// assert_eq!((b.shape(), b.dtype()), (a.shape(), a.dtype()));
/// # Ok(())
/// # }
/// ```
#[numpy(
    "empty_like(prototype, /, dtype=None, order='K', *, shape=None, device=None)",
    call = |args| create_like_from_args(args, "prototype", |shape, dtype| empty(shape, dtype))
)]
pub fn empty_like(a: &NdArray) -> Result<NdArray> {
    dispatch_fill(EMPTY_LIKE, a.device(), a.shape(), a.dtype(), Fill::Undefined)
}

/// Returns zeros in the shape, dtype and device of `a` (`numpy.zeros_like`).
///
/// # Errors
/// Too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, zeros_like};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(zeros_like(&array![1.5, 2.5])?, array![0.0, 0.0]);
/// # Ok(())
/// # }
/// ```
#[numpy(
    "zeros_like(a, dtype=None, order='K', *, shape=None, device=None)",
    call = |args| create_like_from_args(args, "a", |shape, dtype| zeros(shape, dtype))
)]
pub fn zeros_like(a: &NdArray) -> Result<NdArray> {
    full_from_operand(ZEROS_LIKE, a.device(), a.shape(), 0.into(), a.dtype())
}

/// Returns ones in the shape, dtype and device of `a` (`numpy.ones_like`).
///
/// # Errors
/// Too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ones_like};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(ones_like(&array![1.5, 2.5])?, array![1.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[numpy(
    "ones_like(a, dtype=None, order='K', *, shape=None, device=None)",
    call = |args| create_like_from_args(args, "a", |shape, dtype| ones(shape, dtype))
)]
pub fn ones_like(a: &NdArray) -> Result<NdArray> {
    full_from_operand(ONES_LIKE, a.device(), a.shape(), 1.into(), a.dtype())
}

/// Returns an array with the shape, dtype and device of `a`, filled with a number or a broadcast array (`numpy.full_like`).
///
/// # Errors
/// The errors of [`full`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, full_like};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1, 2])?;
/// assert_eq!(full_like(&a, 7)?.to_vec::<i32>()?, [7, 7]);
/// # Ok(())
/// # }
/// ```
#[numpy("full_like(a, fill_value, dtype=None, order='K', *, shape=None, device=None)", call = full_like_from_args)]
pub fn full_like(a: &NdArray, value: impl Into<Operand>) -> Result<NdArray> {
    full_from_operand(FULL_LIKE, a.device(), a.shape(), value.into(), a.dtype())
}

/// Returns `start, start + step, ...` up to but excluding `stop` (`numpy.arange`).
///
/// The dtype is int64 if all three arguments are integers, else float64, as in NumPy. The Rust types of the arguments have no effect.
/// [`arange_as`] takes a dtype.
///
/// # Errors
/// A zero step, complex arguments, or too many elements.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, arange};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(arange(0, 6, 2)?.to_vec::<i64>()?, [0, 2, 4]); // int64, also for arguments of type i32
/// assert_eq!(arange(0, 1, 0.25)?.dtype(), DType::F64);
/// # Ok(())
/// # }
/// ```
#[numpy("arange(start, stop=None, step=1, dtype=None, *, device=None)", call = arange_from_args)]
pub fn arange(start: impl Into<Scalar>, stop: impl Into<Scalar>, step: impl Into<Scalar>) -> Result<NdArray> {
    arange_of_scalars(start.into(), stop.into(), step.into(), None)
}

/// Returns [`arange`] in a given dtype (`numpy.arange(.., dtype=)`).
///
/// # Errors
/// The errors of [`arange`], and a first or second element that the dtype cannot hold. Later elements wrap, as in NumPy.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, arange_as};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(arange_as(0, 3, 1, DType::F32)?.to_vec::<f32>()?, [0.0, 1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
pub fn arange_as(start: impl Into<Scalar>, stop: impl Into<Scalar>, step: impl Into<Scalar>, dtype: DType) -> Result<NdArray> {
    arange_of_scalars(start.into(), stop.into(), step.into(), Some(dtype))
}

/// Returns a `rows` x `columns` array with ones where column = row + `k` and zeros elsewhere (`numpy.eye`).
///
/// # Errors
/// A shape whose size overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, eye};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(eye(2, 2, 0, DType::I32)?.to_vec::<i32>()?, [1, 0, 0, 1]);
/// # Ok(())
/// # }
/// ```
#[numpy("eye(N, M=None, k=0, dtype=None, order='C', *, device=None)", call = eye_from_args)]
pub fn eye(rows: usize, columns: usize, k: i64, dtype: DType) -> Result<NdArray> {
    dispatch_fill(EYE, Device::current()?, &[rows, columns], dtype, Fill::Eye { k })
}
