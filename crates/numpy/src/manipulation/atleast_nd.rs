//! Arrays with a minimum number of dimensions: `atleast_1d`, `atleast_2d`, `atleast_3d`.

use cuprum_core::function::IntoValue;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{NdArray, Result, expand_dims, numpy};

use crate::operand_and_slice_helpers::{variadic_args_as_arrays, with_at_least_ndim};

/// Calls `f` with each positional argument. Returns one array for one argument, and a tuple for several.
fn map_positional_args(args: &Args, f: impl Fn(&NdArray) -> Result<NdArray>) -> Result<Value> {
    let arrays = variadic_args_as_arrays(args)?.iter().map(f).collect::<Result<Vec<_>>>()?;
    match <[NdArray; 1]>::try_from(arrays) {
        Ok([array]) => Ok(Value::Array(array)),
        Err(arrays) => Ok(arrays.into_value()),
    }
}

/// Returns the array with at least one axis: a view (`numpy.atleast_1d`).
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{NdArray, array, atleast_1d};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(atleast_1d(&NdArray::scalar(3.0)?)?, array![3.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("atleast_1d(*arys)", call = |args| map_positional_args(args, atleast_1d))]
pub fn atleast_1d(ary: &NdArray) -> Result<NdArray> {
    with_at_least_ndim(ary, 1)
}

/// Returns the array with at least two axes: a view (`numpy.atleast_2d`). A 1-D array becomes one row.
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, atleast_2d};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(atleast_2d(&array![1, 2])?, array![[1, 2]]);
/// # Ok(())
/// # }
/// ```
#[numpy("atleast_2d(*arys)", call = |args| map_positional_args(args, atleast_2d))]
pub fn atleast_2d(ary: &NdArray) -> Result<NdArray> {
    with_at_least_ndim(ary, 2)
}

/// Returns the array with at least three axes: a view (`numpy.atleast_3d`). Shape `(n,)` becomes `(1, n, 1)`, `(m, n)` becomes `(m, n, 1)`.
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, atleast_3d};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(atleast_3d(&array![1, 2])?.shape(), [1, 2, 1]);
/// # Ok(())
/// # }
/// ```
#[numpy("atleast_3d(*arys)", call = |args| map_positional_args(args, atleast_3d))]
pub fn atleast_3d(ary: &NdArray) -> Result<NdArray> {
    match ary.ndim() {
        0 => with_at_least_ndim(ary, 3),
        1 => expand_dims(ary, [0, 2]),
        2 => expand_dims(ary, [2]),
        _ => Ok(ary.clone()),
    }
}
