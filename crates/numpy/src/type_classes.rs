//! NumPy's hierarchy of types, and its one-letter codes.

use cuprum_core::function::FromArgs;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Error, Kind, Result, numpy};

/// A dtype, or one of NumPy's abstract types, which comprise several dtypes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeClass {
    /// All dtypes (`numpy.generic`).
    Generic,
    /// All dtypes but bool (`numpy.number`).
    Number,
    /// Integers (`numpy.integer`).
    Integer,
    /// Integers with a sign (`numpy.signedinteger`).
    SignedInteger,
    /// Integers without a sign (`numpy.unsignedinteger`).
    UnsignedInteger,
    /// Floats and complex numbers (`numpy.inexact`).
    Inexact,
    /// Floats (`numpy.floating`).
    Floating,
    /// Complex numbers (`numpy.complexfloating`).
    ComplexFloating,
    /// One dtype.
    DType(DType),
}

impl From<DType> for TypeClass {
    fn from(dtype: DType) -> TypeClass {
        TypeClass::DType(dtype)
    }
}

impl TypeClass {
    /// The abstract types with their names.
    const ABSTRACT_TYPES: [(&'static str, TypeClass); 8] = [
        ("generic", TypeClass::Generic),
        ("number", TypeClass::Number),
        ("integer", TypeClass::Integer),
        ("signedinteger", TypeClass::SignedInteger),
        ("unsignedinteger", TypeClass::UnsignedInteger),
        ("inexact", TypeClass::Inexact),
        ("floating", TypeClass::Floating),
        ("complexfloating", TypeClass::ComplexFloating),
    ];

    /// Returns the names of the abstract types.
    pub fn abstract_type_names() -> impl Iterator<Item = &'static str> {
        TypeClass::ABSTRACT_TYPES.iter().map(|(name, _)| *name)
    }

    /// Returns the type that contains this one, or `None` for [`TypeClass::Generic`].
    fn parent_class(self) -> Option<TypeClass> {
        Some(match self {
            TypeClass::Generic => return None,
            TypeClass::Number => TypeClass::Generic,
            TypeClass::Integer | TypeClass::Inexact => TypeClass::Number,
            TypeClass::SignedInteger | TypeClass::UnsignedInteger => TypeClass::Integer,
            TypeClass::Floating | TypeClass::ComplexFloating => TypeClass::Inexact,
            TypeClass::DType(dtype) => match dtype.kind() {
                Kind::Bool => TypeClass::Generic,
                Kind::Signed => TypeClass::SignedInteger,
                Kind::Unsigned => TypeClass::UnsignedInteger,
                Kind::Float => TypeClass::Floating,
                Kind::Complex => TypeClass::ComplexFloating,
            },
        })
    }
}

impl FromArgs for TypeClass {
    fn from_args(args: &Args, name: &str) -> Result<TypeClass> {
        if let Some(Value::Str(text)) = args.value(name)
            && let Some((_, class)) = TypeClass::ABSTRACT_TYPES.iter().find(|(known, _)| known == text)
        {
            return Ok(*class);
        }
        DType::from_args(args, name).map(TypeClass::DType)
    }
}

/// Returns whether the first type is the second, or one of its subtypes (`numpy.issubdtype`).
///
/// # Errors
/// None.
///
/// # Examples
/// ```
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, TypeClass, issubdtype};
/// assert!(issubdtype(DType::F32, TypeClass::Floating)?);
/// assert!(!issubdtype(DType::F32, DType::F64)?);
/// assert!(!issubdtype(DType::Bool, TypeClass::Number)?);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("issubdtype(arg1, arg2)")]
pub fn issubdtype(arg1: impl Into<TypeClass>, arg2: impl Into<TypeClass>) -> Result<bool> {
    let wanted = arg2.into();
    let mut class = Some(arg1.into());
    while let Some(found) = class {
        if found == wanted {
            return Ok(true);
        }
        class = found.parent_class();
    }
    Ok(false)
}

/// NumPy's codes of types, with the descriptions that [`typename`] returns.
const TYPE_CODE_DESCRIPTIONS: [(&str, &str); 22] = [
    ("S1", "character"),
    ("?", "bool"),
    ("B", "unsigned char"),
    ("D", "complex double precision"),
    ("G", "complex long double precision"),
    ("F", "complex single precision"),
    ("I", "unsigned integer"),
    ("H", "unsigned short"),
    ("L", "unsigned long integer"),
    ("O", "object"),
    ("Q", "unsigned long long integer"),
    ("S", "string"),
    ("U", "unicode"),
    ("V", "void"),
    ("b", "signed char"),
    ("d", "double precision"),
    ("g", "long precision"),
    ("f", "single precision"),
    ("i", "integer"),
    ("h", "short"),
    ("l", "long integer"),
    ("q", "long long integer"),
];

/// Returns a description of a one-letter code of a type (`numpy.typename`).
///
/// # Errors
/// An unknown code, or `e`, which NumPy's table lacks.
///
/// # Examples
/// ```
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// assert_eq!(cuprum::typename("f")?, "single precision");
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("typename(char)")]
pub fn typename(#[name("char")] code: &str) -> Result<String> {
    match TYPE_CODE_DESCRIPTIONS.iter().find(|(known, _)| *known == code) {
        Some((_, name)) => Ok((*name).to_owned()),
        None => Err(Error::value("typename", format!("'{code}' is not the code of a type"))),
    }
}

fn mintypecode_from_args(args: &Args) -> Result<Value> {
    let op = args.op();
    let code = |value: &Value| match value {
        Value::Str(text) => Ok(text.clone()),
        Value::Array(a) => Ok(type_code(a.dtype()).to_string()),
        other => Err(Error::value(op, format!("expected codes of types or arrays, not {}", other.type_name()))),
    };
    let codes = match args.value("typechars") {
        Some(items) if items.items().is_some() => items.items().unwrap_or_default().iter().map(code).collect::<Result<String>>()?,
        Some(value) => code(value)?,
        None => String::new(),
    };
    mintypecode(&codes, &String::from_args(args, "typeset")?, &String::from_args(args, "default")?).map(Value::Str)
}

/// Returns NumPy's one-letter code of a dtype. bfloat16, which NumPy lacks, has the code of float32.
fn type_code(dtype: DType) -> char {
    match dtype {
        DType::Bool => '?',
        DType::I8 => 'b',
        DType::U8 => 'B',
        DType::I16 => 'h',
        DType::U16 => 'H',
        DType::I32 => 'i',
        DType::U32 => 'I',
        DType::I64 => 'l',
        DType::U64 => 'L',
        DType::F16 => 'e',
        DType::BF16 | DType::F32 => 'f',
        DType::F64 => 'd',
        DType::C64 => 'F',
        DType::C128 => 'D',
    }
}

/// Returns the code in `typeset` of the smallest type to which all types with the given codes can be cast (`numpy.mintypecode`).
///
/// Codes that are not in `typeset` are ignored. If no code is in `typeset`, the result is `default`.
///
/// # Errors
/// None.
///
/// # Examples
/// ```
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// assert_eq!(cuprum::mintypecode("dfS", "GDFgdf", "d")?, "d");
/// assert_eq!(cuprum::mintypecode("Fd", "GDFgdf", "d")?, "D");
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("mintypecode(typechars, typeset='GDFgdf', default='d')", call = mintypecode_from_args)]
pub fn mintypecode(typechars: &str, typeset: &str, default: &str) -> Result<String> {
    /// The codes of number types, from the most to the least preferred.
    const CODES_BY_PREFERENCE: &str = "GDFgdfQqLlIiHhBb?";
    let found: Vec<char> = typechars.chars().filter(|c| typeset.contains(*c)).collect();
    if found.contains(&'F') && found.contains(&'d') {
        return Ok("D".to_owned());
    }
    let first = CODES_BY_PREFERENCE.chars().find(|c| found.contains(c)).or(found.first().copied());
    Ok(first.map_or_else(|| default.to_owned(), String::from))
}

/// Returns whether a value is an array, a list, a tuple or a string, whose items a loop could visit (`numpy.iterable`).
#[numpy("iterable(y)", call = |args| Ok(args.value("y").is_some_and(iterable).into()))]
pub fn iterable(y: &Value) -> bool {
    match y {
        Value::Array(a) => a.ndim() > 0,
        Value::Str(_) | Value::Tuple(_) | Value::List(_) => true,
        _ => false,
    }
}
