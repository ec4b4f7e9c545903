//! Evenly spaced samples between two numbers or arrays: `linspace`.

use crate::array::NdArray;
use crate::device::{Device, with_device};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::expr::Operand;
use crate::op::{ArgumentType, result_type};
use crate::ops::creation::{LINSPACE, arange, linspace_of_scalars, linspace_step};
use crate::ops::creation_options::create_with_device_and_order;
use crate::ops::elementwise::{add, divide, equal, less, multiply, subtract, where_};
use crate::ops::python_value::{Args, Value};
use crate::scalar::Scalar;
use cuprum_macros::numpy;

/// Returns `count` evenly spaced values from `start` to `stop`, both included (`numpy.linspace`).
///
/// The ends are numbers, or arrays that broadcast; the values are along a new first axis. The dtype is float64, or complex128 if an end is
/// complex. Arrays keep their float or complex dtype.
///
/// # Errors
/// Too little memory, shapes that do not broadcast, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::linspace;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(linspace(0, 1, 5)?.to_vec::<f64>()?, [0.0, 0.25, 0.5, 0.75, 1.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None)", call = linspace_from_args)]
pub fn linspace(start: impl Into<Operand>, stop: impl Into<Operand>, count: usize) -> Result<NdArray> {
    linspace_of_operands(start.into(), stop.into(), count, true, None)
}

fn linspace_from_args(args: &Args) -> Result<Value> {
    let num = args.int_or("num", 50)?;
    let num = usize::try_from(num).map_err(|_| Error::value(LINSPACE.name(), format!("number of samples, {num}, must be non-negative")))?;
    let (start, stop, axis) = (args.operand("start")?, args.operand("stop")?, args.int_or("axis", 0)?);
    let (endpoint, dtype) = (args.bool_or("endpoint", true)?, args.dtype("dtype")?);
    let samples = create_with_device_and_order(args, || {
        let samples = linspace_of_operands(start.clone(), stop.clone(), num, endpoint, dtype)?;
        samples.moveaxis([0], [axis])
    })?;
    if !args.bool_or("retstep", false)? {
        return Ok(samples);
    }
    let parts = if endpoint { num.saturating_sub(1) } else { num };
    let step = match linspace_dtype_if_array(&start, &stop) {
        _ if parts == 0 => Scalar::Float(f64::NAN).into(),
        None => linspace_step(args.scalar("start")?, args.scalar("stop")?, parts as f64).into(),
        // As in NumPy, the distance and the step are rounded to the dtype of the ends.
        Some(dtype) => {
            let [start, stop] = linspace_ends_as_arrays(&start, &stop, dtype)?;
            stop.subtract(start)?.divide(parts)?.into()
        }
    };
    Ok(Value::tuple([samples, step]))
}

/// Returns the dtype in which `linspace` computes if `start` or `stop` is an array; `None` for two numbers.
fn linspace_dtype_if_array(start: &Operand, stop: &Operand) -> Option<DType> {
    let is_array = matches!((start, stop), (Operand::Array(_), _) | (_, Operand::Array(_)));
    is_array.then(|| result_type(&[start.argument_type(), stop.argument_type(), ArgumentType::Weak(Scalar::Float(0.0))]))
}

/// Returns both ends of `linspace` as arrays of `dtype`. An end that is a number becomes an array on the device of the other end.
fn linspace_ends_as_arrays(start: &Operand, stop: &Operand, dtype: DType) -> Result<[NdArray; 2]> {
    let device = match (start, stop) {
        (Operand::Array(a), _) | (_, Operand::Array(a)) => a.device(),
        _ => Device::current()?,
    };
    let to_array = |end: &Operand| match end {
        Operand::Array(a) => a.astype(dtype),
        Operand::Scalar(s) => with_device(device, || NdArray::scalar_as(*s, dtype)),
    };
    Ok([to_array(start)?, to_array(stop)?])
}

/// Returns `num` evenly spaced samples between two arrays, along a new first axis, as `numpy.linspace` computes them. With `endpoint`, the
/// last sample is `stop`.
///
/// # Errors
/// Shapes that do not broadcast, too many axes, or arrays on different devices.
pub fn linspace_of_arrays(start: &NdArray, stop: &NdArray, num: usize, endpoint: bool) -> Result<NdArray> {
    let dtype = result_type(&[ArgumentType::Array(start.dtype()), ArgumentType::Array(stop.dtype()), ArgumentType::Weak(0.0.into())]);
    let (start, stop) = (&start.astype(dtype)?, &stop.astype(dtype)?);
    let delta = subtract(stop, start)?;
    let mut shape = vec![1; delta.ndim() + 1];
    shape[0] = num;
    let index = with_device(start.device(), || arange(0, num, 1))?.reshape(shape)?;
    let number = index.astype(dtype)?;
    let parts = if endpoint { num.saturating_sub(1) } else { num };
    let scaled = if parts > 0 {
        let step = divide(&delta, parts)?;
        // If any step underflows to zero, NumPy computes each sample as `i / parts * (stop - start)` instead of `i * step`.
        let underflows = equal(&step, 0)?.any(())?;
        where_(underflows, multiply(divide(&number, parts)?, &delta)?, multiply(&number, &step)?)?
    } else {
        multiply(&number, &delta)?
    };
    let values = add(scaled, start)?;
    if endpoint && num > 1 { where_(less(index, num - 1)?, values, stop) } else { Ok(values) }
}

/// Returns `count` evenly spaced values between two numbers or arrays, along a new first axis. `stop` is excluded unless `endpoint`.
fn linspace_of_operands(start: Operand, stop: Operand, count: usize, endpoint: bool, dtype: Option<DType>) -> Result<NdArray> {
    let natural = linspace_dtype_if_array(&start, &stop);
    let as_number = |end: &Operand| match end {
        Operand::Scalar(s) => Ok(Some(*s)),
        Operand::Array(a) if a.ndim() == 0 => a.item().map(Some),
        Operand::Array(_) => Ok(None),
    };
    // As in NumPy, arrays of a dtype narrower than float64, including 0-d arrays, are computed in that dtype.
    if natural.is_none_or(|dtype| matches!(dtype, DType::F64 | DType::C128))
        && let (Some(start), Some(stop)) = (as_number(&start)?, as_number(&stop)?)
    {
        return linspace_of_scalars(start, stop, count, endpoint, dtype.or(natural));
    }
    let natural = natural.unwrap_or(DType::F64);
    let [start, stop] = linspace_ends_as_arrays(&start, &stop, natural)?;
    let dtype = dtype.unwrap_or(natural);
    let samples = linspace_of_arrays(&start, &stop, count, endpoint)?;
    // As in NumPy, the values are rounded down before the conversion to an integer dtype.
    if matches!(dtype.kind(), Kind::Signed | Kind::Unsigned) { samples.floor()?.astype(dtype) } else { samples.astype(dtype) }
}
