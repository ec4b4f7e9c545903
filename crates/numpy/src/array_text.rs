//! Text formatting of arrays.

use cuprum_core::fmt::{options_for_array_text, scalar_text};
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{NdArray, PrintOptions, Result, array2string, get_printoptions, numpy};

fn array_repr_from_args(args: &Args) -> Result<Value> {
    args.array("arr")?.repr_with(&options_for_array_text(args)?).map(Value::Str)
}

fn array_str_from_args(args: &Args) -> Result<Value> {
    array_text_with_options(&args.array("a")?, &options_for_array_text(args)?).map(Value::Str)
}

/// Returns the text that `print` writes for an array. As in NumPy, the options do not apply to a 0-d array.
fn array_text_with_options(a: &NdArray, options: &PrintOptions) -> Result<String> {
    if a.ndim() == 0 { Ok(scalar_text(a.item()?, a.dtype())) } else { array2string(a, options) }
}

/// Returns the text of an array as Python code (`numpy.array_repr`): `array([1, 2], dtype=int32)`.
///
/// # Errors
/// Errors of evaluation, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::array_repr(&NdArray::from_slice(&[1i64, 2])?)?, "array([1, 2])");
/// # Ok(())
/// # }
/// ```
#[numpy("array_repr(arr, max_line_width=None, precision=None, suppress_small=None)", call = array_repr_from_args)]
pub fn array_repr(a: &NdArray) -> Result<String> {
    a.repr()
}

/// Returns the text that `print` writes for an array (`numpy.array_str`).
///
/// [`array2string`] takes options.
///
/// # Errors
/// Errors of evaluation, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::array_str(&NdArray::from_slice(&[1i64, 2])?)?, "[1 2]");
/// # Ok(())
/// # }
/// ```
#[numpy("array_str(a, max_line_width=None, precision=None, suppress_small=None)", call = array_str_from_args)]
pub fn array_str(a: &NdArray) -> Result<String> {
    array_text_with_options(a, &get_printoptions())
}
