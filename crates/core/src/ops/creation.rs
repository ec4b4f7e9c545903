//! Arrays made from nothing: zeros, ranges, identity matrices.

use crate::array::{IntoShape, NdArray};
use crate::call::{Fill, OutputSpec, Work};
use crate::device::Device;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::op::Op;
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
    let value = args.scalar("fill_value")?;
    NdArray::full(args.shape("shape")?, value, dtype_or(args, value.default_dtype())?).map(Value::Array)
}

fn full_like_by_name(args: &Args) -> Result<Value> {
    let value = args.scalar("fill_value")?;
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
    let (start, stop) = (args.scalar("start")?, args.scalar("stop")?);
    linspace_scalar(start, stop, num, args.bool_or("endpoint", true)?, args.dtype("dtype")?).map(Value::Array)
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

fn arange_scalar(start: Scalar, stop: Scalar, step: Scalar, dtype: Option<DType>) -> Result<NdArray> {
    let op = ARANGE.name();
    let natural = [start, stop, step].iter().map(|s| s.default_dtype()).reduce(DType::promote).unwrap_or(DType::I64);
    let natural = if natural == DType::Bool { DType::I64 } else { natural };
    if natural.is_complex() {
        return Err(Error::value(op, "start, stop and step must be real"));
    }
    let dtype = dtype.unwrap_or(natural);
    let count = match (start.as_int(), stop.as_int(), step.as_int()) {
        (_, _, Some(0)) => return Err(Error::value(op, "step must not be 0")),
        (Some(a), Some(b), Some(s)) if natural.is_int() => {
            let span = if s > 0 { b.saturating_sub(a) } else { a.saturating_sub(b) };
            if span <= 0 { 0 } else { (span as u128).div_ceil(s.unsigned_abs()) }
        }
        _ => {
            let n = ((stop.as_f64() - start.as_f64()) / step.as_f64()).ceil();
            if n.is_nan() || n > 1e30 {
                return Err(Error::value(op, "maximum allowed size exceeded"));
            }
            n.max(0.0) as u128
        }
    };
    let count = usize::try_from(count).map_err(|_| Error::value(op, "maximum allowed size exceeded"))?;
    if dtype == DType::Bool && count > 2 {
        return Err(Error::value(op, "no fill of more than two values for bool"));
    }
    let (start, step) = first_and_step(start, step, dtype);
    fill(ARANGE, Device::current()?, &[count], dtype, Fill::Arange { start, step })
}

/// Start and step as NumPy sees them: the first two elements, rounded to the dtype, and their difference.
fn first_and_step(start: Scalar, step: Scalar, dtype: DType) -> (Scalar, Scalar) {
    if dtype.is_int() || dtype == DType::Bool {
        return match (start.as_int(), step.as_int()) {
            (Some(_), Some(_)) => (start, step),
            _ => {
                let (first, second) = (start.as_f64() as i128, (start.as_f64() + step.as_f64()) as i128);
                (Scalar::Int(first), Scalar::Int(second.saturating_sub(first)))
            }
        };
    }
    let rounded = |v: f64| Scalar::from_bytes(dtype.real(), &Scalar::Float(v).to_bytes(dtype.real())).as_f64();
    let (first, second) = (rounded(start.as_f64()), rounded(start.as_f64() + step.as_f64()));
    let difference = second - first;
    let step = if matches!(dtype, DType::F64 | DType::C128) { difference } else { difference as f32 as f64 };
    (Scalar::Float(first), Scalar::Float(step))
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

    /// One value everywhere, on the current device (`numpy.full`). Errors: an int that the dtype cannot hold.
    #[numpy("full(shape, fill_value, dtype=None)", call = full_by_name)]
    pub fn full(shape: impl IntoShape, value: impl Into<Scalar>, dtype: DType) -> Result<NdArray> {
        full_on(Device::current()?, &shape.into_shape(), value.into(), dtype)
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

    /// One value with this array's shape, dtype and device (`numpy.full_like`).
    #[numpy("full_like(a, fill_value, dtype=None)", call = full_like_by_name)]
    pub fn full_like(&self, value: impl Into<Scalar>) -> Result<NdArray> {
        full_on(self.device(), self.shape(), value.into(), self.dtype())
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
