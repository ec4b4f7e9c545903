//! Logic functions: comparisons within tolerances, and of whole arrays.

use cuprum_core::function::FromArgs;
use cuprum_core::ops::python_value::Args;
use cuprum_core::{
    DType, Error, NdArray, Operand, Result, Scalar, add, equal, imag, isfinite, isnan, less_equal, logical_and, logical_or, multiply,
    not_equal, numpy, subtract,
};

/// Tolerance of a comparison: values are close if `abs(a - b) <= atol + rtol * abs(b)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Relative tolerance; 1e-5 by default.
    pub rtol: f64,
    /// Absolute tolerance; 1e-8 by default.
    pub atol: f64,
    /// Whether NaN is close to NaN; not by default.
    pub equal_nan: bool,
}

impl Default for Tolerance {
    fn default() -> Tolerance {
        Tolerance { rtol: 1e-5, atol: 1e-8, equal_nan: false }
    }
}

impl Tolerance {
    /// Returns this tolerance with `equal_nan` set, so that NaN is close to NaN.
    pub fn equal_nan(self) -> Tolerance {
        Tolerance { equal_nan: true, ..self }
    }
}

impl From<()> for Tolerance {
    fn from(_: ()) -> Tolerance {
        Tolerance::default()
    }
}

/// Converts the pair `(rtol, atol)`; NaN is not close to NaN.
impl From<(f64, f64)> for Tolerance {
    fn from((rtol, atol): (f64, f64)) -> Tolerance {
        Tolerance { rtol, atol, ..Tolerance::default() }
    }
}

impl FromArgs for Tolerance {
    /// Reads the arguments `rtol`, `atol` and `equal_nan`.
    fn from_args(args: &Args, _name: &str) -> Result<Tolerance> {
        let (rtol, atol) = (f64::from_args(args, "rtol")?, f64::from_args(args, "atol")?);
        Ok(Tolerance { rtol, atol, equal_nan: args.bool_or("equal_nan", false)? })
    }
}

/// Tests elementwise whether `abs(a - b) <= atol + rtol * abs(b)` (`numpy.isclose`).
///
/// The result is bool, in the broadcast shape. Numbers are weak. An infinity is close only to itself. NaN is close to nothing,
/// unless [`Tolerance::equal_nan`] is set.
///
/// Passes over memory: none in this call. Evaluating the deferred result takes one.
///
/// # Errors
/// Shapes that do not broadcast, arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{NdArray, isclose};
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (NdArray::from_slice(&[1.0, 2.0])?, NdArray::from_slice(&[1.0 + 1e-9, 2.1])?);
/// assert_eq!(isclose(&a, &b, ())?.to_vec::<bool>()?, [true, false]);
/// assert_eq!(isclose(&a, &b, (0.1, 0.0))?.to_vec::<bool>()?, [true, true]);
/// # Ok(())
/// # }
/// ```
#[numpy("isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False)")]
pub fn isclose(a: impl Into<Operand>, b: impl Into<Operand>, tolerance: impl Into<Tolerance>) -> Result<NdArray> {
    let (a, b, Tolerance { rtol, atol, equal_nan }) = (a.into(), b.into(), tolerance.into());
    // `b` is converted to floating point, as in NumPy, because differences of unsigned integers wrap around.
    let b = match b {
        Operand::Array(b) if !b.dtype().is_inexact() => b.astype(DType::F64)?.into(),
        Operand::Scalar(s @ (Scalar::Bool(_) | Scalar::Int(_))) => s.as_f64().into(),
        b => b,
    };
    let limit: Operand = match &b {
        Operand::Array(b) => add(multiply(b.abs()?, rtol)?, atol)?.into(),
        Operand::Scalar(b) => (b.as_complex().norm() * rtol + atol).into(),
    };
    let near = less_equal(subtract(&a, &b)?.abs()?, limit)?;
    let close = logical_or(logical_and(near, isfinite(&b)?)?, equal(&a, &b)?)?;
    if equal_nan {
        return logical_or(close, logical_and(isnan(a)?, isnan(b)?)?);
    }
    Ok(close)
}

/// Returns whether [`isclose`] holds for every pair of elements (`numpy.allclose`). Waits for the result.
///
/// Passes over memory: one fused reduction, for which the call waits.
///
/// # Errors
/// The errors of [`isclose`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{allclose, array};
/// # fn main() -> cuprum::Result<()> {
/// assert!(allclose(&array![1.0, 2.0], &array![1.0, 2.0 + 1e-9], ())?);
/// assert!(allclose(&array![1.0], &array![1.01], (0.1, 0.0))?);
/// # Ok(())
/// # }
/// ```
#[numpy("allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False)")]
pub fn allclose(a: impl Into<Operand>, b: impl Into<Operand>, tolerance: impl Into<Tolerance>) -> Result<bool> {
    Ok(isclose(a, b, tolerance)?.all(())?.item()?.as_bool())
}

/// Returns whether two arrays have the same shape and equal elements (`numpy.array_equal`). Waits for the result.
///
/// With `equal_nan`, NaN equals NaN.
///
/// Passes over memory: one fused reduction, for which the call waits.
///
/// # Errors
/// Arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{NdArray, array_equal};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1.0, f64::NAN])?;
/// assert_eq!((array_equal(&a, &a, false)?, array_equal(&a, &a, true)?), (false, true));
/// # Ok(())
/// # }
/// ```
#[numpy("array_equal(a1, a2, equal_nan=False)")]
pub fn array_equal(a1: &NdArray, a2: &NdArray, equal_nan: bool) -> Result<bool> {
    if a1.shape() != a2.shape() {
        return Ok(false);
    }
    let mut same = equal(a1, a2)?;
    if equal_nan && a1.dtype().is_inexact() && a2.dtype().is_inexact() {
        same = logical_or(same, logical_and(isnan(a1)?, isnan(a2)?)?)?;
    }
    Ok(same.all(())?.item()?.as_bool())
}

/// Returns whether two arrays broadcast together and all pairs of elements are equal (`numpy.array_equiv`). Waits for the result.
///
/// # Errors
/// Arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, array_equiv};
/// # fn main() -> cuprum::Result<()> {
/// assert!(array_equiv(&array![1, 2], &array![[1, 2], [1, 2]])?);
/// # Ok(())
/// # }
/// ```
#[numpy("array_equiv(a1, a2)")]
pub fn array_equiv(a1: &NdArray, a2: &NdArray) -> Result<bool> {
    let broadcasts = cuprum_core::layout::broadcast_shapes("array_equiv", &[a1.shape(), a2.shape()]).is_ok();
    Ok(broadcasts && equal(a1, a2)?.all(())?.item()?.as_bool())
}

/// Returns whether each element is positive infinity (`numpy.isposinf`).
///
/// # Errors
/// Complex numbers.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[f64::INFINITY, f64::NEG_INFINITY, 0.0])?;
/// assert_eq!(cuprum::isposinf(&a)?.to_vec::<bool>()?, [true, false, false]);
/// # Ok(())
/// # }
/// ```
#[numpy("isposinf(x, out=None)")]
pub fn isposinf(x: &NdArray) -> Result<NdArray> {
    equals_signed_infinity("isposinf", x, f64::INFINITY)
}

/// Returns whether each element is negative infinity (`numpy.isneginf`).
///
/// # Errors
/// Complex numbers.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[f64::INFINITY, f64::NEG_INFINITY, 0.0])?;
/// assert_eq!(cuprum::isneginf(&a)?.to_vec::<bool>()?, [false, true, false]);
/// # Ok(())
/// # }
/// ```
#[numpy("isneginf(x, out=None)")]
pub fn isneginf(x: &NdArray) -> Result<NdArray> {
    equals_signed_infinity("isneginf", x, f64::NEG_INFINITY)
}

fn equals_signed_infinity(op: &'static str, x: &NdArray, infinity: f64) -> Result<NdArray> {
    if x.dtype().is_complex() {
        return Err(Error::dtype(op, "complex infinities have no sign; use real or imag first", &[x.dtype()]));
    }
    equal(x, infinity)
}

/// Returns whether each element has an imaginary part other than 0 (`numpy.iscomplex`).
///
/// # Errors
/// Errors of evaluation, if deferral is disabled.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{Complex, NdArray};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[Complex::new(1.0, 2.0), Complex::new(1.0, 0.0)])?;
/// assert_eq!(cuprum::iscomplex(&a)?.to_vec::<bool>()?, [true, false]);
/// # Ok(())
/// # }
/// ```
#[numpy("iscomplex(x)")]
pub fn iscomplex(x: &NdArray) -> Result<NdArray> {
    not_equal(imag(x)?, 0)
}

/// Returns whether each element has the imaginary part 0 (`numpy.isreal`).
///
/// # Errors
/// Errors of evaluation, if deferral is disabled.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{Complex, NdArray};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[Complex::new(1.0, 2.0), Complex::new(1.0, 0.0)])?;
/// assert_eq!(cuprum::isreal(&a)?.to_vec::<bool>()?, [false, true]);
/// # Ok(())
/// # }
/// ```
#[numpy("isreal(x)")]
pub fn isreal(x: &NdArray) -> Result<NdArray> {
    equal(imag(x)?, 0)
}

/// Returns whether the dtype is complex (`numpy.iscomplexobj`).
///
/// # Errors
/// None; the result is a `Result` like that of every declared function.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// assert!(!cuprum::iscomplexobj(&NdArray::from_slice(&[1.0])?)?);
/// # Ok(())
/// # }
/// ```
#[numpy("iscomplexobj(x)")]
pub fn iscomplexobj(x: &NdArray) -> Result<bool> {
    Ok(x.dtype().is_complex())
}

/// Returns whether the dtype is not complex (`numpy.isrealobj`).
///
/// # Errors
/// None; the result is a `Result` like that of every declared function.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// assert!(cuprum::isrealobj(&NdArray::from_slice(&[1.0])?)?);
/// # Ok(())
/// # }
/// ```
#[numpy("isrealobj(x)")]
pub fn isrealobj(x: &NdArray) -> Result<bool> {
    Ok(!x.dtype().is_complex())
}
