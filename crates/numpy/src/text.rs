//! Text formatting of arrays.

use cuprum_core::{NdArray, PrintOptions, Result, numpy};

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
#[numpy("array_repr(arr)")]
pub fn array_repr(#[name("arr")] a: &NdArray) -> Result<String> {
    a.repr()
}

/// Returns the text of an array that `print` writes (`numpy.array_str`, `numpy.array2string`).
///
/// [`array2string`](cuprum_core::array2string) takes options.
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
#[numpy("array_str(a)", aliases("array2string"))]
pub fn array_str(a: &NdArray) -> Result<String> {
    cuprum_core::array2string(a, &PrintOptions::default())
}
