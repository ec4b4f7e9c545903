//! Integrals by the trapezoidal rule: `trapezoid`.

use cuprum_core::function::FromArgs;
use cuprum_core::layout::normalize_axis;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{NdArray, Operand, Result, add, divide, multiply, numpy};

use crate::mathematics::diff::diff;
use crate::operand_and_slice_helpers::slice_axis;

fn trapezoid_from_args(args: &Args) -> Result<Value> {
    let x = args.get("x").map(|x| x.array(args.op())).transpose()?;
    trapezoid(&args.array("y")?, x.as_ref(), Operand::from_args(args, "dx")?, args.int_or("axis", -1)?).map(Value::Array)
}

/// Returns the integral along an axis by the trapezoidal rule (`numpy.trapezoid`).
///
/// `x` has the coordinates of the samples, 1-D or in a shape that broadcasts. Without `x`, the distance between neighbouring samples is
/// `dx`.
///
/// Passes over memory: one fused sum.
///
/// # Errors
/// An axis out of bounds, or shapes that do not broadcast.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, trapezoid};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(trapezoid(&array![1.0, 2.0, 3.0], None, 1.0, -1)?.item()?, 4.0);
/// # Ok(())
/// # }
/// ```
#[numpy("trapezoid(y, x=None, dx=1.0, axis=-1)", call = trapezoid_from_args)]
pub fn trapezoid(y: &NdArray, x: Option<&NdArray>, dx: impl Into<Operand>, axis: isize) -> Result<NdArray> {
    let name = "trapezoid";
    let along = normalize_axis(name, axis, y.ndim())?;
    let distances: Operand = match x {
        None => dx.into(),
        Some(x) if x.ndim() == 1 => {
            let mut shape = vec![1isize; y.ndim()];
            shape[along] = -1;
            diff(x, 1, -1, None, None)?.reshape(shape)?.into()
        }
        Some(x) => diff(x, 1, axis, None, None)?.into(),
    };
    let sums = add(slice_axis(y, along, 1, None, 1)?, slice_axis(y, along, None, -1, 1)?)?;
    let areas = divide(multiply(distances, sums)?, 2.0)?;
    // If `x` has more dimensions than `y`, so has the array of trapezoid areas. As in NumPy, `axis` then counts the axes of that array.
    areas.sum(axis)
}
