//! Phases without jumps: `unwrap`.

use std::f64::consts::TAU;

use cuprum_core::layout::normalize_axis;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    DType, NdArray, Operand, Result, Scalar, add, axis as over_axis, concat, equal, greater, less, logical_and, numpy, remainder, subtract,
    where_, with_device,
};

use crate::mathematics::diff::diff;
use crate::operand_and_slice_helpers::{result_dtype, slice_axis};

fn unwrap_from_args(args: &Args) -> Result<Value> {
    let discont = args.get("discont").map(|_| args.scalar("discont")).transpose()?;
    let period = match args.get("period") {
        Some(Value::Array(period)) => Operand::from(period),
        _ => args.scalar_or("period", TAU)?.into(),
    };
    unwrap(&args.array("p")?, discont, args.int_or("axis", -1)?, period).map(Value::Array)
}

/// Removes jumps between neighbours along an axis by adding multiples of the period (`numpy.unwrap`).
///
/// Only differences of at least `discont`, by default half the period, are changed. Integers with an integer period stay integers. A
/// period that is a number is a weak scalar; one that is a 0-d array takes part in the promotion.
///
/// Passes over memory: a scan of the corrections, and a join with the first elements.
///
/// # Errors
/// A 0-d array, an axis out of bounds, complex numbers, or a period of more than one element.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// let p = cuprum::NdArray::from_slice(&[0, 1, 2, -1, 0])?;
/// assert_eq!(cuprum::unwrap(&p, None, -1, 4)?.to_vec::<i32>()?, [0, 1, 2, 3, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("unwrap(p, discont=None, axis=-1, *, period=6.283185307179586)", call = unwrap_from_args)]
pub fn unwrap(p: &NdArray, discont: Option<Scalar>, axis: isize, period: impl Into<Operand>) -> Result<NdArray> {
    let name = "unwrap";
    let period = period.into();
    let steps = diff(p, 1, axis, None, None)?;
    let along = normalize_axis(name, axis, p.ndim())?;
    let (period_value, period_dtype) = match &period {
        Operand::Scalar(value) => (*value, None),
        Operand::Array(period) => (period.item()?, Some(period.dtype())),
    };
    let to_operand = |value: Scalar, dtype: Option<DType>| match dtype {
        None => Ok(Operand::Scalar(value)),
        Some(dtype) => with_device(p.device(), || NdArray::scalar_as(value, dtype)).map(Operand::Array),
    };
    let period = to_operand(period_value, period_dtype)?;
    let dtype = result_dtype(&[Operand::from(&steps), period.clone()]);
    let (high, is_ambiguous) = match (dtype.is_int(), period_value.as_int()) {
        (true, Some(period)) => (Scalar::Int(period.div_euclid(2)), period.rem_euclid(2) == 0),
        _ => (Scalar::Float(period_value.as_f64() / 2.0), true),
    };
    let low = match high {
        Scalar::Int(high) => Scalar::Int(-high),
        high => Scalar::Float(-high.as_f64()),
    };
    // As in NumPy, if the period is an array, half of it has the dtype of the quotient `period / 2`.
    let half = |value: Scalar| {
        let is_converted = matches!(value, Scalar::Float(_));
        to_operand(value, period_dtype.map(|dtype| if is_converted && !dtype.is_inexact() { DType::F64 } else { dtype }))
    };
    let (high, low) = (half(high)?, half(low)?);
    let discont = discont.map_or_else(|| half(Scalar::Float(period_value.as_f64() / 2.0)), |discont| Ok(Operand::Scalar(discont)))?;
    let mut wrapped = add(remainder(subtract(&steps, &low)?, period)?, &low)?;
    if is_ambiguous {
        wrapped = where_(logical_and(equal(&wrapped, &low)?, greater(&steps, 0)?)?, &high, &wrapped)?;
    }
    let correction = where_(less(steps.abs()?, discont)?, 0, subtract(&wrapped, &steps)?)?;
    let first = slice_axis(p, along, 0, 1, 1)?.astype(dtype)?;
    let rest = add(slice_axis(p, along, 1, None, 1)?, correction.cumsum(over_axis(along as isize))?)?.astype(dtype)?;
    concat(&[first, rest], along as isize)
}
