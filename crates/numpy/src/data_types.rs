//! Data type routines: casting rules, promotion, and limits of dtypes.

use cuprum_core::function::{FromArgs, IntoValue};
use cuprum_core::op::{ArgumentType, result_type as promoted};
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Error, Kind, NdArray, Result, Scalar, numpy};

/// An argument of dtype promotion. An array or a dtype contributes its dtype. A number is weak: it adopts the dtype of the other arguments.
pub enum TypeSource {
    /// A dtype, or the dtype of an array.
    DType(DType),
    /// A number.
    Number(Scalar),
}

impl From<DType> for TypeSource {
    fn from(dtype: DType) -> TypeSource {
        TypeSource::DType(dtype)
    }
}
impl From<&NdArray> for TypeSource {
    fn from(array: &NdArray) -> TypeSource {
        TypeSource::DType(array.dtype())
    }
}

impl TypeSource {
    fn read_type_source(op: &'static str, value: &Value) -> Result<TypeSource> {
        Ok(match value {
            Value::DType(dtype) => TypeSource::DType(*dtype),
            Value::Str(name) => TypeSource::DType(DType::parse(name).map_err(|e| e.with_function_name(op))?),
            Value::Scalar(number) => TypeSource::Number(*number),
            value => TypeSource::DType(value.array(op)?.dtype()),
        })
    }
}

impl FromArgs for TypeSource {
    fn from_args(args: &Args, name: &str) -> Result<TypeSource> {
        match args.value(name) {
            Some(value) => TypeSource::read_type_source(args.op(), value),
            None => Err(Error::value(args.op(), format!("argument '{name}' is missing"))),
        }
    }
}

fn result_type_from_args(args: &Args) -> Result<Value> {
    let sources: Vec<TypeSource> = args.rest().iter().map(|value| TypeSource::read_type_source(args.op(), value)).collect::<Result<_>>()?;
    result_type(&sources).map(Value::DType)
}

/// Returns the dtype of the result of an operation on arrays, dtypes and numbers (`numpy.result_type`). A number is weak: it adopts the
/// dtype of the other arguments, unless its own kind is higher than the kind of that dtype.
///
/// # Errors
/// No arguments.
///
/// # Examples
/// ```
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, TypeSource, result_type};
/// assert_eq!(result_type(&[DType::I32.into(), DType::F32.into()])?, DType::F64);
/// assert_eq!(result_type(&[DType::I8.into(), TypeSource::Number(3.into())])?, DType::I8);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("result_type(*arrays_and_dtypes)", call = result_type_from_args)]
pub fn result_type(sources: &[TypeSource]) -> Result<DType> {
    if sources.is_empty() {
        return Err(Error::value("result_type", "at least one array or dtype is required"));
    }
    let kind = |source: &TypeSource| match source {
        TypeSource::DType(dtype) => ArgumentType::Array(*dtype),
        TypeSource::Number(number) => ArgumentType::Weak(*number),
    };
    Ok(promoted(&sources.iter().map(kind).collect::<Vec<_>>()))
}

/// Returns the smallest dtype to which both dtypes can be cast safely (`numpy.promote_types`).
///
/// # Errors
/// None.
///
/// # Examples
/// ```
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::DType;
/// assert_eq!(cuprum::promote_types(DType::I16, DType::U16)?, DType::I32);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("promote_types(type1, type2, /)")]
pub fn promote_types(type1: DType, type2: DType) -> Result<DType> {
    Ok(promoted(&[ArgumentType::Array(type1), ArgumentType::Array(type2)]))
}

/// NumPy's rules for which dtype conversions are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Casting {
    /// Allows only the same dtype (`no` and `equiv`).
    Equivalent,
    /// Allows only casts that keep every value.
    Safe,
    /// Allows safe casts, and casts within a kind, such as float64 to float32.
    SameKind,
    /// Allows all casts.
    Unsafe,
}

impl FromArgs for Casting {
    fn from_args(args: &Args, name: &str) -> Result<Casting> {
        Ok(match String::from_args(args, name)?.as_str() {
            "no" | "equiv" => Casting::Equivalent,
            "safe" => Casting::Safe,
            "same_kind" => Casting::SameKind,
            "unsafe" => Casting::Unsafe,
            other => {
                let message = format!("casting must be one of 'no', 'equiv', 'safe', 'same_kind', or 'unsafe', not '{other}'");
                return Err(Error::value(args.op(), message));
            }
        })
    }
}

/// Returns whether a casting rule allows the conversion (`numpy.can_cast`).
///
/// # Errors
/// A number instead of a dtype, as in NumPy.
///
/// # Examples
/// ```
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{Casting, DType, can_cast};
/// assert!(can_cast(DType::I32, DType::F64, Casting::Safe)?);
/// assert!(!can_cast(DType::F64, DType::I32, Casting::SameKind)?);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("can_cast(from_, to, casting='safe')")]
pub fn can_cast(#[name("from_")] from: impl Into<TypeSource>, to: DType, casting: Casting) -> Result<bool> {
    let TypeSource::DType(from) = from.into() else {
        return Err(Error::value("can_cast", "Python ints, floats, and complex are not supported; pass a dtype or an array"));
    };
    Ok(match casting {
        Casting::Equivalent => from == to,
        Casting::Safe => from.can_cast_safe(to),
        Casting::SameKind => from.can_cast_same_kind(to),
        Casting::Unsafe => true,
    })
}

/// Calls [`min_scalar_type`] with Python-like arguments. A 0-d array is a number, as in NumPy.
fn min_scalar_type_from_args(args: &Args) -> Result<Value> {
    let dtype = match args.value("a") {
        Some(Value::Array(a)) if a.ndim() == 0 => {
            let least = min_scalar_type(TypeSource::Number(a.item()?))?;
            if a.dtype().is_inexact() && least.itemsize() > a.dtype().itemsize() { a.dtype() } else { least }
        }
        _ => min_scalar_type(TypeSource::from_args(args, "a")?)?,
    };
    Ok(Value::DType(dtype))
}

/// Returns the smallest dtype that holds a number, or the dtype of an array (`numpy.min_scalar_type`).
///
/// # Errors
/// An int that no dtype holds.
///
/// # Examples
/// ```
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, TypeSource, min_scalar_type};
/// assert_eq!(min_scalar_type(TypeSource::Number((-300).into()))?, DType::I16);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("min_scalar_type(a, /)", call = min_scalar_type_from_args)]
pub fn min_scalar_type(a: impl Into<TypeSource>) -> Result<DType> {
    let float = |v: f64| match v.abs() {
        v if !v.is_finite() || v < 65000.0 => DType::F16,
        v if v < 3.4e38 => DType::F32,
        _ => DType::F64,
    };
    Ok(match a.into() {
        TypeSource::DType(dtype) => dtype,
        TypeSource::Number(Scalar::Bool(_)) => DType::Bool,
        TypeSource::Number(Scalar::Float(v)) => float(v),
        TypeSource::Number(Scalar::Complex(c)) => match [c.re, c.im].map(float) {
            [DType::F64, _] | [_, DType::F64] => DType::C128,
            _ => DType::C64,
        },
        TypeSource::Number(Scalar::Int(v)) => {
            let unsigned = [DType::U8, DType::U16, DType::U32, DType::U64];
            let signed = [DType::I8, DType::I16, DType::I32, DType::I64];
            let bits = if v >= 0 { 128 - v.leading_zeros() } else { 129 - v.leading_ones() };
            let among = if v >= 0 { unsigned } else { signed };
            let fits = among.into_iter().find(|dtype| 8 * dtype.itemsize() as u32 >= bits);
            fits.ok_or_else(|| Error::value("min_scalar_type", format!("no dtype holds {v}")))?
        }
    })
}

fn common_type_from_args(args: &Args) -> Result<Value> {
    let dtypes: Vec<DType> = args.rest().iter().map(|value| Ok(value.array(args.op())?.dtype())).collect::<Result<_>>()?;
    common_type(&dtypes).map(Value::DType)
}

/// Returns the floating-point or complex dtype that can represent arrays of all `dtypes` (`numpy.common_type`). Integers count as
/// float64.
///
/// # Errors
/// bool, which NumPy refuses.
#[numpy("common_type(*arrays)", call = common_type_from_args)]
pub fn common_type(dtypes: &[DType]) -> Result<DType> {
    let float = |dtype: &DType| match dtype.kind() {
        Kind::Bool => Err(Error::dtype("common_type", "can't get common type for non-numeric array", &[*dtype])),
        Kind::Signed | Kind::Unsigned => Ok(DType::F64),
        Kind::Float | Kind::Complex => Ok(*dtype),
    };
    let kinds = dtypes.iter().map(|dtype| float(dtype).map(ArgumentType::Array)).collect::<Result<Vec<_>>>()?;
    Ok(if kinds.is_empty() { DType::F16 } else { promoted(&kinds) })
}

/// Limits of an integer dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerInfo {
    /// Number of bits.
    pub bits: u32,
    /// Smallest value.
    pub min: i128,
    /// Largest value.
    pub max: i128,
    /// The dtype.
    pub dtype: DType,
}

impl IntoValue for IntegerInfo {
    fn into_value(self) -> Value {
        let IntegerInfo { bits, min, max, dtype } = self;
        Value::named_tuple(&["bits", "min", "max", "dtype"], [bits.into(), min.into(), max.into(), Value::DType(dtype)])
    }
}

/// Returns the limits of an integer dtype (`numpy.iinfo`).
///
/// # Errors
/// A dtype that is not an integer.
///
/// # Examples
/// ```
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::DType;
/// assert_eq!(cuprum::iinfo(DType::I8)?.min, -128);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("iinfo(int_type)")]
pub fn iinfo(#[name("int_type")] source: impl Into<TypeSource>) -> Result<IntegerInfo> {
    let dtype = match source.into() {
        TypeSource::DType(dtype) => dtype,
        TypeSource::Number(Scalar::Int(_)) => DType::I64,
        TypeSource::Number(_) => DType::F64,
    };
    let bits = 8 * dtype.itemsize() as u32;
    let (min, max) = match dtype.kind() {
        Kind::Signed => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        Kind::Unsigned => (0, (1i128 << bits) - 1),
        _ => return Err(Error::dtype("iinfo", "takes integers; use finfo", &[dtype])),
    };
    Ok(IntegerInfo { bits, min, max, dtype })
}

/// Limits of a float dtype, or of the parts of a complex one. The values are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatInfo {
    /// Number of bits.
    pub bits: u32,
    /// Difference between 1 and the next larger number.
    pub eps: f64,
    /// Difference between 1 and the next smaller number.
    pub epsneg: f64,
    /// Smallest (most negative) finite number.
    pub min: f64,
    /// Largest finite number.
    pub max: f64,
    /// Smallest positive number with full precision.
    pub smallest_normal: f64,
    /// Smallest positive number.
    pub smallest_subnormal: f64,
    /// Number of decimal digits that every number keeps when it is converted to the dtype and back.
    pub precision: u32,
    /// `10**-precision`.
    pub resolution: f64,
    /// Number of explicit bits of the mantissa.
    pub nmant: u32,
    /// Number of bits of the exponent.
    pub nexp: u32,
    /// The exponent of `smallest_normal`.
    pub minexp: i32,
    /// The exponent of the smallest power of two that overflows.
    pub maxexp: i32,
    /// The dtype.
    pub dtype: DType,
}

impl IntoValue for FloatInfo {
    fn into_value(self) -> Value {
        let names = &[
            "bits",
            "eps",
            "epsneg",
            "min",
            "max",
            "smallest_normal",
            "tiny",
            "smallest_subnormal",
            "precision",
            "resolution",
            "nmant",
            "nexp",
            "minexp",
            "maxexp",
            "dtype",
        ];
        // As in NumPy's `finfo`, the limits are scalars of the dtype; for float64 they are Python floats.
        let number = |value: f64| match self.dtype {
            DType::F64 => value.into(),
            dtype => NdArray::scalar_as(value, dtype).map_or(value.into(), Value::Array),
        };
        let values = [
            self.bits.into(),
            number(self.eps),
            number(self.epsneg),
            number(self.min),
            number(self.max),
            number(self.smallest_normal),
            number(self.smallest_normal),
            number(self.smallest_subnormal),
            self.precision.into(),
            number(self.resolution),
            self.nmant.into(),
            self.nexp.into(),
            self.minexp.into(),
            self.maxexp.into(),
            Value::DType(self.dtype),
        ];
        Value::named_tuple(names, values)
    }
}

/// Returns the limits of a float dtype, or of the parts of a complex dtype (`numpy.finfo`).
///
/// # Errors
/// A dtype that is not inexact.
///
/// # Examples
/// ```
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::DType;
/// assert_eq!(cuprum::finfo(DType::F32)?.eps, f64::from(f32::EPSILON));
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("finfo(dtype)")]
pub fn finfo(dtype: impl Into<TypeSource>) -> Result<FloatInfo> {
    let dtype = match dtype.into() {
        TypeSource::DType(dtype) => dtype.real(),
        TypeSource::Number(Scalar::Float(_) | Scalar::Complex(_)) => DType::F64,
        TypeSource::Number(_) => DType::I64,
    };
    let (nmant, nexp) = match dtype {
        DType::F16 => (10, 5),
        DType::BF16 => (7, 8),
        DType::F32 => (23, 8),
        DType::F64 => (52, 11),
        _ => return Err(Error::dtype("finfo", "takes floats and complex numbers; use iinfo", &[dtype])),
    };
    let maxexp = 1i32 << (nexp - 1);
    let minexp = 2 - maxexp;
    let power = |n: i32| 2f64.powi(n);
    // `2**maxexp` may overflow, so the largest number is computed from the next smaller power.
    let max = power(maxexp - 1) * (2.0 - power(-nmant));
    let precision = (f64::from(nmant) * 2f64.log10()).floor() as u32;
    let digits: f64 = format!("1e-{precision}").parse().unwrap_or(0.0);
    Ok(FloatInfo {
        bits: 8 * dtype.itemsize() as u32,
        eps: power(-nmant),
        epsneg: power(-nmant - 1),
        min: -max,
        max,
        smallest_normal: power(minexp),
        smallest_subnormal: power(minexp) * power(-nmant),
        precision,
        resolution: digits,
        nmant: nmant as u32,
        nexp: nexp as u32,
        minexp,
        maxexp,
        dtype,
    })
}

fn isdtype_from_args(args: &Args) -> Result<Value> {
    let dtype = DType::from_args(args, "dtype")?;
    let is_of = |kind: &Value| match kind {
        Value::DType(other) => Ok(dtype == *other),
        Value::Str(kind) => isdtype(dtype, kind),
        other => Err(Error::value(args.op(), format!("'kind' must be a dtype or the name of a kind, not {}", other.type_name()))),
    };
    let kind = args.value("kind").unwrap_or(&Value::None);
    let found = match kind.items() {
        Some(kinds) => kinds.iter().map(is_of).collect::<Result<Vec<_>>>()?.into_iter().any(|found| found),
        None => is_of(kind)?,
    };
    Ok(found.into())
}

/// Returns whether a dtype is of a kind (`numpy.isdtype`): `bool`, `signed integer`, `unsigned integer`, `integral`, `real floating`,
/// `complex floating` or `numeric`.
///
/// # Errors
/// An unknown name of a kind.
///
/// # Examples
/// ```
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::DType;
/// assert!(cuprum::isdtype(DType::F32, "real floating")?);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("isdtype(dtype, kind)", call = isdtype_from_args)]
pub fn isdtype(dtype: DType, kind: &str) -> Result<bool> {
    let of = dtype.kind();
    Ok(match kind {
        "bool" => of == Kind::Bool,
        "signed integer" => of == Kind::Signed,
        "unsigned integer" => of == Kind::Unsigned,
        "integral" => matches!(of, Kind::Signed | Kind::Unsigned),
        "real floating" => of == Kind::Float,
        "complex floating" => of == Kind::Complex,
        "numeric" => of != Kind::Bool,
        other => return Err(Error::value("isdtype", format!("unknown kind '{other}'"))),
    })
}

/// Returns whether a value is a number or a string, not an array or another sequence (`numpy.isscalar`).
#[numpy("isscalar(element)", call = |args| Ok(matches!(args.value("element"), Some(Value::Scalar(_) | Value::Str(_))).into()))]
pub fn isscalar(element: &Value) -> bool {
    matches!(element, Value::Scalar(_) | Value::Str(_))
}
