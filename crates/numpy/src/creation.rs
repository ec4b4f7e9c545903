//! Array creation routines.

use cuprum_core::ops::value::{Args, Value};
use cuprum_core::{DType, Device, Error, NdArray, Operand, Result, numpy};

/// Converts a number or an array to an array, with a dtype if one is given (`numpy.asarray`).
///
/// An array that already has the dtype is returned unchanged. Calls by name accept nested lists of numbers too.
///
/// # Errors
/// An integer that the dtype cannot hold.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::DType;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum_numpy::asarray(3, DType::F32)?;
/// assert_eq!((a.dtype(), a.ndim()), (DType::F32, 0));
/// # Ok(())
/// # }
/// ```
#[numpy("asarray(a, dtype=None, *, copy=None)", aliases("array", "asanyarray"), call = asarray_by_name)]
pub fn asarray(a: impl Into<Operand>, dtype: impl Into<Option<DType>>) -> Result<NdArray> {
    let dtype = dtype.into();
    match a.into() {
        Operand::Array(a) => dtype.map_or(Ok(a.clone()), |dtype| a.astype(dtype)),
        Operand::Scalar(s) => NdArray::scalar_as(s, dtype.unwrap_or(s.default_dtype())),
    }
}

fn asarray_by_name(args: &Args) -> Result<Value> {
    match args.get("a") {
        Some(value) => value.array_as(args.op(), args.dtype("dtype")?).map(Value::Array),
        None => Err(Error::value(args.op(), "None is not an array")),
    }
}

/// Copies the array to host memory (CuPy's `asnumpy`).
///
/// # Errors
/// The error of the evaluation or of the copy.
#[numpy("asnumpy(a)")]
pub fn asnumpy(a: &NdArray) -> Result<NdArray> {
    a.to_device(Device::CPU)
}
