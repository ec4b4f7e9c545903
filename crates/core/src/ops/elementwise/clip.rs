//! Limiting values to a range: `clip`.

use cuprum_macros::{free_functions, numpy};
use smallvec::SmallVec;

use crate::array::NdArray;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::expr::{Operand, broadcast_shape_of_operands, check_operands};
use crate::op::{ArgumentType, TypeRule};
use crate::ops::creation::full_on_device;
use crate::ops::elementwise::{CLIP, maximum, minimum, positive};
use crate::ops::python_value::{Args, Value};
use crate::scalar::Scalar;

/// Limits `x` to `low..=high`; either bound may be `None` (`numpy.clip`).
///
/// `x` and the bounds broadcast and promote together. Where `low` is greater than `high`, the result is `high`. NaN in `x` or in a bound
/// gives NaN. A Python int as a bound has no effect if every value of the integer dtype satisfies it.
///
/// # Errors
/// Shapes that do not broadcast, arrays on different devices, a Python int that the promoted dtype cannot hold, or bool
/// without bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, clip};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1u8, 20, 200])?;
/// assert_eq!(clip(&a, Some((-5).into()), Some(100.into()))?.to_vec::<u8>()?, [1, 20, 100]);
/// # Ok(())
/// # }
/// ```
#[numpy("clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None)", call = clip_from_args)]
pub fn clip(x: impl Into<Operand>, low: Option<Operand>, high: Option<Operand>) -> Result<NdArray> {
    let name = CLIP.name();
    let x = match x.into() {
        Operand::Array(a) => a,
        // A number as `x` becomes an array: unlike a weak scalar, an array does not adopt the dtype of the bounds.
        Operand::Scalar(s) => {
            let device = [&low, &high].into_iter().flatten().find_map(|b| if let Operand::Array(a) = b { Some(a.device()) } else { None });
            full_on_device(device.map_or_else(Device::current, Ok)?, &[], s, s.default_dtype())?
        }
    };
    let limits = |bound: &Operand, is_low: bool| match (bound, x.dtype().int_range()) {
        (Operand::Scalar(Scalar::Int(v)), Some((least, _))) if is_low => *v > least,
        (Operand::Scalar(Scalar::Int(v)), Some((_, greatest))) => *v < greatest,
        _ => true,
    };
    let (low, high) = (low.filter(|b| limits(b, true)), high.filter(|b| limits(b, false)));
    let args: SmallVec<[Operand; 3]> = [Some(Operand::from(&x)), low.clone(), high.clone()].into_iter().flatten().collect();
    if args.len() == 1 {
        return positive(x);
    }
    let signature =
        TypeRule::Ordered.resolve_dtypes(name, &args.iter().map(Operand::argument_type).collect::<SmallVec<[ArgumentType; 3]>>())?;
    check_operands(name, &args, &signature)?;
    broadcast_shape_of_operands(name, &args)?;
    let promoted = |bound: Operand| match bound {
        Operand::Array(a) => a.astype(signature.result).map(Operand::Array),
        scalar => Ok(scalar),
    };
    let mut result = x.astype(signature.result)?;
    if let Some(low) = low {
        result = maximum(result, promoted(low)?)?;
    }
    if let Some(high) = high {
        result = minimum(result, promoted(high)?)?;
    }
    Ok(result)
}

/// Calls [`clip`] with Python-like arguments: `clip(a, a_min, a_max)` or `clip(a, min=, max=)`.
fn clip_from_args(args: &Args) -> Result<Value> {
    let is_given = |name: &str| args.get(name).is_some() || args.is_none(name);
    let (low, high) = match (is_given("a_min"), is_given("a_max")) {
        (false, false) => ("min", "max"),
        (true, true) if is_given("min") || is_given("max") => {
            return Err(Error::value(CLIP.name(), "give either 'a_min' and 'a_max', or 'min' and 'max'"));
        }
        (true, true) => ("a_min", "a_max"),
        (has_low, _) => {
            let missing = if has_low { "a_max" } else { "a_min" };
            return Err(Error::value(CLIP.name(), format!("argument '{missing}' is missing; it may be None")));
        }
    };
    clip(args.operand("a")?, args.operand_or_none(low)?, args.operand_or_none(high)?).map(Value::Array)
}

/// # Limits
#[free_functions]
impl NdArray {
    /// Returns the array limited to `low..=high` (`numpy.ndarray.clip`). See [`clip`].
    ///
    /// # Errors
    /// The errors of [`clip`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[-3, 1, 9])?;
    /// assert_eq!(a.clip(0, 5)?.to_vec::<i32>()?, [0, 1, 5]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("ndarray.clip(a, min=None, max=None, out=None)", call = |args| clip(args.operand("a")?, args.operand_or_none("min")?, args.operand_or_none("max")?).map(Value::Array))]
    pub fn clip(&self, low: impl Into<Operand>, high: impl Into<Operand>) -> Result<NdArray> {
        clip(self, Some(low.into()), Some(high.into()))
    }
}
