//! Reordering of elements along axes: `flipud`, `fliplr`, `rot90`, `roll`.

use cuprum_core::function::FromArgs;
use cuprum_core::layout::normalize_axis;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{Axes, DType, Error, NdArray, Result, assemble_from_parts, flip, numpy};

use crate::operand_and_slice_helpers::slice_axis;

/// Reverses the first axis (`numpy.flipud`). Returns a view.
///
/// # Errors
/// A 0-d array.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, flipud};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(flipud(&array![[1, 2], [3, 4]])?, array![[3, 4], [1, 2]]);
/// # Ok(())
/// # }
/// ```
#[numpy("flipud(m)")]
pub fn flipud(m: &NdArray) -> Result<NdArray> {
    m.flip(0)
}

/// Reverses the second axis (`numpy.fliplr`). Returns a view.
///
/// # Errors
/// An array of fewer than two dimensions.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, fliplr};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(fliplr(&array![[1, 2], [3, 4]])?, array![[2, 1], [4, 3]]);
/// # Ok(())
/// # }
/// ```
#[numpy("fliplr(m)")]
pub fn fliplr(m: &NdArray) -> Result<NdArray> {
    m.flip(1)
}

/// Shifts the elements along axes. Elements shifted beyond the last position reappear at the first (`numpy.roll`).
///
/// A single shift applies to all axes. Several shifts along a single axis add up. Without axes, the flattened array is rolled.
///
/// Passes over memory: one.
///
/// # Errors
/// Different numbers of shifts and axes, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::arange(0, 5, 1)?;
/// assert_eq!(cuprum::roll(&a, &[2], ())?.to_vec::<i64>()?, [3, 4, 0, 1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("roll(a, shift, axis=None)", call = roll_from_args)]
pub fn roll(a: &NdArray, shift: &[isize], #[name("axis")] axes: impl Into<Axes>) -> Result<NdArray> {
    let name = "roll";
    let axes = match axes.into() {
        Axes::All => return roll(&a.ravel()?, shift, 0)?.reshape(a.shape()),
        Axes::One(axis) => vec![axis],
        Axes::Several(axes) => axes.to_vec(),
    };
    let pairs = match (shift.len(), axes.len()) {
        (s, n) if s == n || s == 1 || n == 1 => s.max(n) * usize::from(s > 0 && n > 0),
        (s, n) => return Err(Error::value(name, format!("{s} shifts and {n} axes cannot be broadcast together"))),
    };
    let mut shifts = vec![0isize; a.ndim()];
    for axis in &axes {
        normalize_axis(name, *axis, a.ndim())?;
    }
    for n in 0..pairs {
        let axis = normalize_axis(name, axes[n.min(axes.len() - 1)], a.ndim())?;
        let extent = a.shape()[axis].max(1) as isize;
        shifts[axis] = (shifts[axis] + shift[n.min(shift.len() - 1)].rem_euclid(extent)).rem_euclid(extent);
    }
    let mut parts = vec![(a.clone(), vec![0; a.ndim()])];
    for (axis, &shift) in shifts.iter().enumerate().filter(|(_, shift)| **shift != 0) {
        let cut = a.shape()[axis] as isize - shift;
        let mut cut_parts = Vec::with_capacity(2 * parts.len());
        for (part, start) in parts {
            let mut after = start.clone();
            after[axis] = shift as usize;
            cut_parts.push((slice_axis(&part, axis, cut, None, 1)?, start));
            cut_parts.push((slice_axis(&part, axis, 0, cut, 1)?, after));
        }
        parts = cut_parts;
    }
    assemble_from_parts(a.shape(), &parts)
}

fn roll_from_args(args: &Args) -> Result<Value> {
    let a = args.array("a")?;
    // A roll by the number of elements changes nothing, because this number is a multiple of each extent. Shifts are therefore taken modulo
    // this number, so that every int fits an isize.
    let reduced = |shift: i128| shift.rem_euclid(a.size().max(1) as i128) as isize;
    let int = |value: &Value| value.int(args.op()).map(reduced);
    let shifts = match args.get("shift") {
        Some(Value::Tuple(items) | Value::List(items)) => items.iter().map(int).collect::<Result<Vec<_>>>()?,
        Some(Value::Array(shifts)) if shifts.ndim() == 1 && shifts.dtype() == DType::U64 => {
            shifts.to_vec::<u64>()?.into_iter().map(|shift| reduced(shift.into())).collect()
        }
        Some(Value::Array(shifts)) if shifts.ndim() == 1 => args.ints("shift")?.unwrap_or_default(),
        Some(shift) => vec![int(shift)?],
        None => return Err(Error::value(args.op(), "'shift' must not be None")),
    };
    roll(&a, &shifts, Axes::from_args(args, "axis")?).map(Value::Array)
}

/// Rotates an array by 90 degrees in the plane of two axes, `k` times from the first axis to the second (`numpy.rot90`). Returns a view.
///
/// # Errors
/// Axes that are equal, out of bounds, or not two.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, rot90};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(rot90(&array![[1, 2], [3, 4]], 1, &[0, 1])?, array![[2, 4], [1, 3]]);
/// # Ok(())
/// # }
/// ```
#[numpy("rot90(m, k=1, axes=(0, 1))")]
pub fn rot90(m: &NdArray, k: isize, axes: &[isize]) -> Result<NdArray> {
    let name = "rot90";
    let &[first, second] = axes else { return Err(Error::value(name, "len(axes) must be 2.")) };
    let (a, b) = (normalize_axis(name, first, m.ndim())? as isize, normalize_axis(name, second, m.ndim())? as isize);
    if a == b {
        return Err(Error::value(name, "Axes must be different."));
    }
    match k.rem_euclid(4) {
        0 => Ok(m.clone()),
        1 => flip(m, b)?.swapaxes(a, b),
        2 => flip(m, [a, b]),
        _ => flip(&m.swapaxes(a, b)?, b),
    }
}
