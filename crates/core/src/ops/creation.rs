//! Arrays made from nothing: zeros, ranges, identity matrices.

use crate::array::{IntoShape, NdArray};
use crate::call::{Fill, OutputSpec, Work};
use crate::device::Device;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::expr::Operand;
use crate::layout::broadcast_shapes;
use crate::op::{ArgType, Op, result_type};
use crate::ops::manipulation::concat;
use crate::ops::value::{Args, Value};
use crate::scalar::Scalar;
use cuprum_macros::numpy;

fn dtype_or(args: &Args, default: DType) -> Result<DType> {
    Ok(args.dtype("dtype")?.unwrap_or(default))
}

/// Calls `make` with `a`, in `dtype` if it is given.
fn like(args: &Args, make: impl FnOnce(&NdArray) -> Result<NdArray>) -> Result<Value> {
    let a = args.array("a")?;
    let model = args.dtype("dtype")?.map_or(Ok(a.clone()), |dtype| a.astype(dtype))?;
    make(&model).map(Value::Array)
}

fn full_by_name(args: &Args) -> Result<Value> {
    let value = args.operand("fill_value")?;
    let dtype = dtype_or(args, result_type(&[value.arg_type()]))?;
    filled(FULL, Device::current()?, &args.shape("shape")?, value, dtype).map(Value::Array)
}

fn full_like_by_name(args: &Args) -> Result<Value> {
    let value = args.operand("fill_value")?;
    like(args, |a| a.full_like(value))
}

/// `arange(stop)` and `arange(start, stop, step)`.
fn arange_by_name(args: &Args) -> Result<Value> {
    let (start, stop) = match args.get("stop") {
        None => (Scalar::Int(0), args.scalar("start")?),
        Some(_) => (args.scalar("start")?, args.scalar("stop")?),
    };
    arange_scalar(start, stop, args.scalar_or("step", 1)?, args.dtype("dtype")?).map(Value::Array)
}

fn linspace_by_name(args: &Args) -> Result<Value> {
    let num = args.int_or("num", 50)?;
    let num = usize::try_from(num).map_err(|_| Error::value("linspace", format!("number of samples, {num}, must be non-negative")))?;
    let dtype = args.dtype("dtype")?.map_or_else(|| dtype_of_ends(args), |d| Ok(Some(d)))?;
    let (start, stop) = (args.scalar("start")?, args.scalar("stop")?);
    linspace_scalar(start, stop, num, args.bool_or("endpoint", true)?, dtype).map(Value::Array)
}

fn eye_by_name(args: &Args) -> Result<Value> {
    let extent = |n: isize| usize::try_from(n).map_err(|_| Error::value("eye", "negative dimensions are not allowed"));
    let rows = args.int_or("N", 0)?;
    let (columns, k) = (extent(args.int_or("M", rows)?)?, args.int_or("k", 0)? as i64);
    NdArray::eye(extent(rows)?, columns, k, dtype_or(args, DType::F64)?).map(Value::Array)
}

super::rows! { Fill after contract:
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

fn fill(op: Op, device: Device, shape: &[usize], dtype: DType, fill: Fill) -> Result<NdArray> {
    super::run_one(op, device, &[], OutputSpec::contiguous(dtype, shape)?, Work::Fill(fill))
}

/// One value everywhere, on a given device.
pub(crate) fn full_on(device: Device, shape: &[usize], value: Scalar, dtype: DType) -> Result<NdArray> {
    fill(FULL, device, shape, dtype, Fill::Constant(value.checked_for("full", dtype)?))
}

/// `value` everywhere. An array is broadcast, after leading axes of extent 1 that `shape` lacks (`numpy.copyto`).
fn filled(op: Op, device: Device, shape: &[usize], value: Operand, dtype: DType) -> Result<NdArray> {
    let array = match value {
        Operand::Array(array) => array,
        Operand::Scalar(value) => return fill(op, device, shape, dtype, Fill::Constant(value.checked_for(op.name(), dtype)?)),
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
    let leading: Vec<isize> = (0..leading.len() as isize).collect();
    array.astype(dtype)?.squeeze(Some(&leading))?.broadcast_to(shape)?.copy()
}

/// The dtype that ends of `linspace` have which are 0-d arrays; `None` of two numbers.
fn dtype_of_ends(args: &Args) -> Result<Option<DType>> {
    let ends = [args.operand("start")?, args.operand("stop")?];
    let mut any_array = false;
    for end in &ends {
        let Operand::Array(end) = end else { continue };
        if end.ndim() > 0 {
            return Err(Error::shape(LINSPACE.name(), "start and stop must be numbers or 0-d arrays", &[end.shape()]));
        }
        any_array = true;
    }
    let dtype = result_type(&[ends[0].arg_type(), ends[1].arg_type(), ArgType::Weak(Scalar::Float(0.0))]);
    Ok(any_array.then_some(dtype))
}

fn arange_scalar(start: Scalar, stop: Scalar, step: Scalar, dtype: Option<DType>) -> Result<NdArray> {
    let op = ARANGE.name();
    let device = Device::current()?;
    let natural = [start, stop, step].iter().map(|s| s.default_dtype()).reduce(DType::promote).unwrap_or(DType::I64);
    if natural.is_complex() {
        return Err(Error::value(op, "start, stop and step must be real"));
    }
    let dtype = match dtype {
        Some(dtype) => dtype,
        None if natural == DType::Bool => DType::I64,
        None => {
            for scalar in [start, stop, step] {
                scalar.checked_for(op, scalar.default_dtype())?; // NumPy's result is an array of Python objects
            }
            natural
        }
    };
    let count = arange_count(start, stop, step)?;
    if dtype == DType::Bool && count > 2 {
        return Err(Error::value(op, "arange() is only supported for booleans when the result has at most length 2"));
    }
    if count == 0 {
        return full_on(device, &[0], Scalar::Int(0), dtype);
    }
    // As in NumPy, the dtype must hold the first two elements; what follows wraps.
    let first = element(start, dtype)?;
    let second = if count > 1 { element(sum(start, step), dtype)? } else { first };
    let step = match (first, second) {
        (Scalar::Int(first), Scalar::Int(second)) => Scalar::Int(second - first),
        _ => {
            let difference = second.as_f64() - first.as_f64();
            Scalar::Float(if matches!(dtype, DType::F64 | DType::C128) { difference } else { difference as f32 as f64 })
        }
    };
    if step.as_f64().is_finite() {
        return fill(ARANGE, device, &[count], dtype, Fill::Arange { start: first, step });
    }
    // A step that overflows the dtype: `0 * step` would make the first element NaN. From the third on, all are the same infinity or NaN.
    let rest = Scalar::Float(first.as_f64() + step.as_f64());
    let parts = [(1, first), (1, second), (count - 2, rest)].map(|(n, value)| full_on(device, &[n], value, dtype));
    let [first, second, rest] = parts;
    concat(&[first?, second?, rest?], 0)
}

/// Number of elements of `arange`. Ints are counted exactly. A step that underflows the quotient, such as infinity, gives one element.
fn arange_count(start: Scalar, stop: Scalar, step: Scalar) -> Result<usize> {
    let bad = |why: &str| Error::value(ARANGE.name(), why);
    let too_many = || bad("maximum allowed size exceeded");
    if step.as_f64() == 0.0 {
        return Err(bad("step must not be 0"));
    }
    let ints = match (python_int(start), python_int(stop)) {
        (Some(a), Some(b)) => Some(b.checked_sub(a).ok_or_else(too_many)?),
        _ => None,
    };
    let count = match (ints, python_int(step)) {
        (Some(span), Some(step)) => {
            let whole = span.checked_div(step).ok_or_else(too_many)?;
            let is_cut = span % step != 0 && (span < 0) == (step < 0);
            i64::try_from(whole + i128::from(is_cut)).map_err(|_| too_many())?
        }
        _ => {
            let span = ints.map_or(stop.as_f64() - start.as_f64(), |span| span as f64);
            let quotient = span / step.as_f64();
            let count = if quotient == 0.0 && span != 0.0 && quotient.is_sign_positive() { 1.0 } else { quotient.ceil() };
            if count.is_nan() {
                return Err(bad("cannot compute length"));
            }
            if count.abs() >= i64::MAX as f64 {
                return Err(too_many());
            }
            count as i64
        }
    };
    usize::try_from(count.max(0)).map_err(|_| too_many())
}

/// A Python int or bool as an integer.
fn python_int(scalar: Scalar) -> Option<i128> {
    match scalar {
        Scalar::Bool(_) | Scalar::Int(_) => scalar.as_int(),
        _ => None,
    }
}

/// `a + b` of Python numbers.
fn sum(a: Scalar, b: Scalar) -> Scalar {
    match (python_int(a), python_int(b)) {
        (Some(a), Some(b)) => Scalar::Int(a.saturating_add(b)),
        _ => Scalar::Float(a.as_f64() + b.as_f64()),
    }
}

/// A Python number as an element of an array: an int of the dtype, without its fraction; 0 or 1 of bool; else rounded to the dtype.
/// Errors: an integer dtype that cannot hold it.
fn element(value: Scalar, dtype: DType) -> Result<Scalar> {
    if dtype == DType::Bool {
        return Ok(Scalar::Int(value.as_bool().into()));
    }
    if !dtype.is_int() {
        return Ok(Scalar::Float(Scalar::from_bytes(dtype.real(), &Scalar::Float(value.as_f64()).to_bytes(dtype.real())).as_f64()));
    }
    match python_int(value) {
        Some(_) => value.checked_for(ARANGE.name(), dtype),
        None if value.as_f64().is_finite() => Scalar::Int(value.as_f64() as i128).checked_for(ARANGE.name(), dtype),
        None => Err(Error::value(ARANGE.name(), format!("{} cannot be converted to {dtype}", value.as_f64()))),
    }
}

fn linspace_scalar(start: Scalar, stop: Scalar, count: usize, endpoint: bool, dtype: Option<DType>) -> Result<NdArray> {
    let complex = matches!((start, stop), (Scalar::Complex(_), _) | (_, Scalar::Complex(_)));
    let dtype = dtype.unwrap_or(if complex { DType::C128 } else { DType::F64 });
    // NumPy floors before it converts to an integer dtype.
    if matches!(dtype.kind(), Kind::Signed | Kind::Unsigned) {
        return linspace_scalar(start, stop, count, endpoint, Some(DType::F64))?.floor()?.astype(dtype);
    }
    let parts = if endpoint { count.saturating_sub(1) } else { count }.max(1) as f64;
    let step = if complex {
        Scalar::Complex((stop.as_complex() - start.as_complex()) / parts)
    } else {
        Scalar::Float((stop.as_f64() - start.as_f64()) / parts)
    };
    let endpoint = endpoint && count > 1;
    fill(LINSPACE, Device::current()?, &[count], dtype, Fill::Linspace { start, stop, step, count, endpoint })
}

impl NdArray {
    /// A new array on the current device whose contents mean nothing (`numpy.empty`).
    #[numpy("empty(shape, dtype=None)", call = |a| NdArray::empty(a.shape("shape")?, dtype_or(a, DType::F64)?).map(Value::Array))]
    pub fn empty(shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
        fill(EMPTY, Device::current()?, &shape.into_shape(), dtype, Fill::Undefined)
    }

    /// Zeros on the current device (`numpy.zeros`).
    ///
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(NdArray::zeros([2, 3], DType::I32)?.to_vec::<i32>()?, [0; 6]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("zeros(shape, dtype=None)", call = |a| NdArray::zeros(a.shape("shape")?, dtype_or(a, DType::F64)?).map(Value::Array))]
    pub fn zeros(shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
        Self::full(shape, 0, dtype)
    }

    /// Ones on the current device (`numpy.ones`).
    #[numpy("ones(shape, dtype=None)", call = |a| NdArray::ones(a.shape("shape")?, dtype_or(a, DType::F64)?).map(Value::Array))]
    pub fn ones(shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
        Self::full(shape, 1, dtype)
    }

    /// One value everywhere, or an array broadcast to the shape, on the current device (`numpy.full`).
    ///
    /// Errors: an int that the dtype cannot hold, an array that does not broadcast to the shape or that is on another device.
    ///
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// let row = NdArray::from_slice(&[1i32, 2])?;
    /// assert_eq!(NdArray::full([2, 2], &row, row.dtype())?.to_vec::<i32>()?, [1, 2, 1, 2]);
    /// assert_eq!(NdArray::full(3, 7, DType::I32)?.to_vec::<i32>()?, [7; 3]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("full(shape, fill_value, dtype=None)", call = full_by_name)]
    pub fn full(shape: impl IntoShape, value: impl Into<Operand>, dtype: DType) -> Result<NdArray> {
        filled(FULL, Device::current()?, &shape.into_shape(), value.into(), dtype)
    }

    /// An array with this array's shape, dtype and device, whose contents are undefined (`numpy.empty_like`).
    #[numpy("empty_like(a, dtype=None)", call = |args| like(args, |a| a.empty_like()))]
    pub fn empty_like(&self) -> Result<NdArray> {
        fill(EMPTY_LIKE, self.device(), self.shape(), self.dtype(), Fill::Undefined)
    }

    /// Zeros with this array's shape, dtype and device (`numpy.zeros_like`).
    #[numpy("zeros_like(a, dtype=None)", call = |args| like(args, |a| a.zeros_like()))]
    pub fn zeros_like(&self) -> Result<NdArray> {
        full_on(self.device(), self.shape(), Scalar::Int(0), self.dtype())
    }

    /// Ones with this array's shape, dtype and device (`numpy.ones_like`).
    #[numpy("ones_like(a, dtype=None)", call = |args| like(args, |a| a.ones_like()))]
    pub fn ones_like(&self) -> Result<NdArray> {
        full_on(self.device(), self.shape(), Scalar::Int(1), self.dtype())
    }

    /// One value, or an array broadcast, with this array's shape, dtype and device (`numpy.full_like`). Errors as of [`NdArray::full`].
    #[numpy("full_like(a, fill_value, dtype=None)", call = full_like_by_name)]
    pub fn full_like(&self, value: impl Into<Operand>) -> Result<NdArray> {
        filled(FULL_LIKE, self.device(), self.shape(), value.into(), self.dtype())
    }

    /// `start, start + step, ...` before `stop` (`numpy.arange`); int64 of ints, float64 otherwise.
    #[numpy("arange(start, stop=None, step=1, dtype=None)", call = arange_by_name)]
    pub fn arange(start: impl Into<Scalar>, stop: impl Into<Scalar>, step: impl Into<Scalar>) -> Result<NdArray> {
        arange_scalar(start.into(), stop.into(), step.into(), None)
    }

    /// [`NdArray::arange`] in a given dtype.
    pub fn arange_as(start: impl Into<Scalar>, stop: impl Into<Scalar>, step: impl Into<Scalar>, dtype: DType) -> Result<NdArray> {
        arange_scalar(start.into(), stop.into(), step.into(), Some(dtype))
    }

    /// `count` evenly spaced values from `start` to `stop`, both included, in float64 (`numpy.linspace`).
    #[numpy("linspace(start, stop, num=50, endpoint=True, *, dtype=None)", call = linspace_by_name)]
    pub fn linspace(start: impl Into<Scalar>, stop: impl Into<Scalar>, count: usize) -> Result<NdArray> {
        linspace_scalar(start.into(), stop.into(), count, true, None)
    }

    /// `rows` x `columns` with ones where column = row + k, zeros elsewhere (`numpy.eye`).
    #[numpy("eye(N, M=None, k=0, dtype=None)", aliases("identity"), call = eye_by_name)]
    pub fn eye(rows: usize, columns: usize, k: i64, dtype: DType) -> Result<NdArray> {
        fill(EYE, Device::current()?, &[rows, columns], dtype, Fill::Eye { k })
    }
}
