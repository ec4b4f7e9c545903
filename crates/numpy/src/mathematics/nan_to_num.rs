//! Replacement of NaN and infinities by numbers: `nan_to_num`.

use cuprum_core::array::StoredArray;
use cuprum_core::function::FromArgs;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Error, Layout, NdArray, Operand, Result, equal, isnan, numpy, where_};

use crate::operand_and_slice_helpers::result_dtype;

fn nan_to_num_from_args(args: &Args) -> Result<Value> {
    if !args.bool_or("copy", true)? && !matches!(args.get("x"), Some(Value::Array(_))) {
        return Err(Error::value(args.op(), "Unable to avoid copy while creating an array as requested."));
    }
    nan_to_num(&args.array("x")?, Operand::from_args(args, "nan")?, args.operand_or_none("posinf")?, args.operand_or_none("neginf")?)
        .map(Value::Array)
}

/// Returns the array with NaN and infinities replaced by numbers (`numpy.nan_to_num`).
///
/// Infinities become the largest and smallest finite number of the dtype, unless numbers are given. Complex parts are replaced
/// separately, each by the same real number. Integers and bool are unchanged. Results for real dtypes are deferred.
///
/// Passes over memory: one.
///
/// # Errors
/// Replacements that are complex or do not broadcast to the array.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::NdArray::from_slice(&[f64::NAN, f64::INFINITY, 1.0])?;
/// assert_eq!(cuprum::nan_to_num(&a, 0, Some(9.0.into()), None)?.to_vec::<f64>()?, [0.0, 9.0, 1.0]);
/// # Ok(())
/// # }
/// ```
// `eval` assigns the result to the variable `x` if `copy` is false.
#[numpy("nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None)", call = nan_to_num_from_args)]
pub fn nan_to_num(x: &NdArray, nan: impl Into<Operand>, posinf: Option<Operand>, neginf: Option<Operand>) -> Result<NdArray> {
    let largest = match x.dtype().real() {
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(f32::from_bits(0x7f7f_0000)),
        DType::F32 => f64::from(f32::MAX),
        DType::F64 => f64::MAX,
        _ => return Ok(x.clone()),
    };
    let (posinf, neginf) = (posinf.unwrap_or(largest.into()), neginf.unwrap_or((-largest).into()));
    let nan = nan.into();
    if result_dtype([&nan, &posinf, &neginf]).is_complex() {
        return Err(Error::dtype("nan_to_num", "the replacements must be real", &[x.dtype()]));
    }
    if !x.dtype().is_complex() {
        return replace_non_finite(x, &nan, &posinf, &neginf);
    }
    // In a contiguous complex array, real and imaginary parts alternate in memory. The same memory is a real array with an additional last
    // axis of extent 2.
    let stored = x.contiguous()?.stored()?;
    let mut shape = x.shape().to_vec();
    shape.push(2);
    let parts = Layout::contiguous(&shape)?.with_offset(2 * stored.layout().offset());
    let parts = NdArray::from(StoredArray::new(x.dtype().real(), parts, stored.buffer().clone())?);
    // The real and the imaginary part of an element are replaced by the same element of an array of replacements.
    let for_parts = |value: Operand| match value {
        Operand::Array(a) => a.expand_dims(-1).map(Operand::from),
        scalar => Ok(scalar),
    };
    let replaced = replace_non_finite(&parts, &for_parts(nan)?, &for_parts(posinf)?, &for_parts(neginf)?)?.contiguous()?.stored()?;
    let layout = Layout::contiguous(x.shape())?.with_offset(replaced.layout().offset() / 2);
    StoredArray::new(x.dtype(), layout, replaced.buffer().clone()).map(NdArray::from)
}

fn replace_non_finite(x: &NdArray, nan: &Operand, posinf: &Operand, neginf: &Operand) -> Result<NdArray> {
    let fit = |value: &Operand| match value {
        Operand::Array(a) => a.astype(x.dtype()).map(Operand::from),
        Operand::Scalar(s) => Ok(Operand::Scalar(*s)),
    };
    let finite = where_(equal(x, f64::NEG_INFINITY)?, fit(neginf)?, x)?;
    let finite = where_(equal(x, f64::INFINITY)?, fit(posinf)?, finite)?;
    let finite = where_(isnan(x)?, fit(nan)?, finite)?;
    if finite.shape() != x.shape() {
        return Err(Error::shape("nan_to_num", "a replacement cannot be broadcast to the array", &[x.shape()]));
    }
    Ok(finite)
}
