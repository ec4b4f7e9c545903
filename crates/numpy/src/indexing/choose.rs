//! Selection of elements from several arrays by an array of indices: `choose`.

use cuprum_core::function::FromArgs;
use cuprum_core::ops::manipulation::operands_to_arrays;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Error, NdArray, Result, clip, less, numpy, remainder, stack, take_along_axis, where_};

use crate::indexing::index_bounds::Bounds;
use crate::manipulation::broadcast_arrays;
use crate::operand_and_slice_helpers::check_indices_cast_safely;

fn choose_from_args(args: &Args) -> Result<Value> {
    let mode = Bounds::from_args(args, "mode")?;
    // As in NumPy, numbers in a list of choices are weak scalars.
    let choices = match args.value("choices") {
        Some(Value::List(items) | Value::Tuple(items)) => {
            operands_to_arrays(args.op(), items.iter().map(|item| item.operand(args.op())).collect::<Result<_>>()?)?
        }
        _ => args.arrays("choices")?,
    };
    choose(&args.array("a")?, choices, mode).map(Value::Array)
}

/// Returns, for each index in `a`, the element at the same position of the array `choices[index]` (`numpy.choose`). All arrays broadcast
/// together.
///
/// Passes over memory: one to join the choices and one gather.
///
/// # Errors
/// No choices, shapes that do not broadcast, or indices that are uint64 or not integers, or are out of bounds with [`Bounds::Raise`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{Bounds, NdArray, choose};
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (NdArray::from_slice(&[1, 2, 3])?, NdArray::from_slice(&[10, 20, 30])?);
/// let chosen = choose(&NdArray::from_slice(&[0, 1, 0])?, [&a, &b], Bounds::Raise)?;
/// assert_eq!(chosen.to_vec::<i32>()?, [1, 20, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("choose(a, choices, out=None, mode='raise')", method, call = choose_from_args)]
pub fn choose(a: &NdArray, choices: impl IntoIterator<Item: AsRef<NdArray>>, mode: Bounds) -> Result<NdArray> {
    let name = "choose";
    let choices: Vec<NdArray> = choices.into_iter().map(|choice| choice.as_ref().clone()).collect();
    if a.dtype().is_inexact() {
        return Err(Error::dtype(name, "the indices must be integers", &[a.dtype()]));
    }
    check_indices_cast_safely(name, a)?;
    if choices.is_empty() {
        return Err(Error::value(name, "needs at least one choice"));
    }
    let (count, indices) = (choices.len(), a.astype(DType::I64)?);
    let indices = match mode {
        // As in NumPy's `choose`, negative indices do not count from the end. They are replaced by the number of choices, which is out of
        // bounds.
        Bounds::Raise => where_(less(&indices, 0)?, count, &indices)?,
        Bounds::Wrap => remainder(&indices, count)?,
        Bounds::Clip => clip(&indices, Some(0.into()), Some((count - 1).into()))?,
    };
    let all = broadcast_arrays(std::iter::once(indices).chain(choices))?;
    let joined = stack(&all[1..], 0)?;
    let chosen = take_along_axis(&joined, &all[0].expand_dims(0)?, 0).map_err(|error| match error {
        Error::Index { index, axis, size, .. } => Error::Index { op: name, index, axis, size },
        error => error.with_function_name(name),
    })?;
    chosen.index(0)
}
