//! Python's built-in functions, as far as array programs use them: `len`, `dtype`, `int`, `round`, `min` and others.
//!
//! NumPy's functions are not here: they are declared at their Rust definitions (`cuprum_core::function`).

use cuprum_core::ops::value::Value;
use cuprum_core::{DType, Scalar};

use crate::fault::{Checked, Fault};

/// A built-in with no function of NumPy under its name.
pub(crate) type Builtin = fn(&[Value]) -> Checked<Value>;

/// The built-ins that take any value.
pub(crate) static BUILTINS: [(&str, Builtin); 2] = [("len", length), ("dtype", dtype)];

/// `len(x)`: extent of the first axis, or number of items.
fn length(args: &[Value]) -> Checked<Value> {
    let [value] = args else { return Err(one_argument("len", args)) };
    match value {
        Value::Array(a) => match a.shape().first() {
            Some(n) => Ok((*n).into()),
            None => Err(Fault::typed("an array of 0 dimensions has no length")),
        },
        Value::Tuple(items) | Value::List(items) => Ok(items.len().into()),
        Value::Str(s) => Ok(s.chars().count().into()),
        other => Err(Fault::typed(format!("'{}' has no length", other.type_name()))),
    }
}

/// `dtype('f4')`: a dtype by its name.
fn dtype(args: &[Value]) -> Checked<Value> {
    match args {
        [Value::DType(d)] => Ok(Value::DType(*d)),
        [Value::Str(name)] => Ok(Value::DType(DType::parse(name)?)),
        [Value::None] => Ok(Value::DType(DType::F64)),
        [other] => Err(Fault::typed(format!("'{}' is not a dtype or its name", other.type_name()))),
        _ => Err(one_argument("dtype", args)),
    }
}

fn one_argument(name: &str, args: &[Value]) -> Fault {
    Fault::typed(format!("{name}() takes one argument, {} given", args.len()))
}

/// A 0-d or one-element array as a number; numbers as they are.
pub(crate) fn single(value: &Value) -> Checked<Option<Scalar>> {
    match value {
        Value::Scalar(s) => Ok(Some(*s)),
        Value::Array(a) if a.size() == 1 => Ok(Some(a.item()?)),
        _ => Ok(None),
    }
}

/// Python's own functions under their bare names. `None`: it is NumPy's function of this name that is meant.
pub(crate) fn python(name: &str, args: &[Value]) -> Checked<Option<Value>> {
    if let ("int" | "float", [Value::Str(text)]) = (name, args) {
        return parsed(name, text).map(|s| Some(s.into()));
    }
    let convert = |as_array: &str| match args {
        [value] => single(value)?.ok_or_else(|| match value {
            Value::Array(_) | Value::List(_) => {
                Fault::typed(format!("only a single number can be made {as_array}")).help(format!("use `.astype({name})` on arrays"))
            }
            other => Fault::typed(format!("'{}' cannot be made {as_array}", other.type_name())),
        }),
        _ => Err(one_argument(name, args)),
    };
    let numbers: Option<Vec<Scalar>> = args.iter().map(|v| if let Value::Scalar(s) = v { Some(*s) } else { None }).collect();
    let value: Scalar = match (name, numbers.as_deref()) {
        ("bool", _) => match args {
            [value] => crate::evaluate::truth(value)?.into(),
            _ => convert("a bool")?,
        },
        ("int", _) => match convert("an int")? {
            Scalar::Complex(_) => return Err(Fault::typed("a complex number cannot be made an int")),
            Scalar::Float(v) => {
                Scalar::Float(v.trunc()).as_int().ok_or_else(|| Fault::value(format!("{v:e} cannot be made an int")))?.into()
            }
            s => s.as_int().unwrap_or(0).into(),
        },
        ("float", _) => match convert("a float")? {
            Scalar::Complex(_) => return Err(Fault::typed("a complex number cannot be made a float")),
            s => s.as_f64().into(),
        },
        // By parts: in `re + im * 1j` an infinity would make NaN.
        ("complex", Some([re, im])) => {
            let (re, im) = (re.as_complex(), im.as_complex());
            cuprum_core::Complex::new(re.re - im.im, re.im + im.re).into()
        }
        ("complex", _) => convert("a complex number")?.as_complex().into(),
        ("abs", Some([Scalar::Complex(c)])) => c.norm().into(),
        ("abs", Some([Scalar::Float(v)])) => v.abs().into(),
        ("abs", Some([s])) => s.as_int().and_then(i128::checked_abs).ok_or_else(|| Fault::value("the result is too large"))?.into(),
        ("round", Some([Scalar::Float(v)])) => {
            Scalar::Float(v.round_ties_even()).as_int().ok_or_else(|| Fault::value(format!("{v:e} cannot be made an int")))?.into()
        }
        ("round", Some([s @ (Scalar::Int(_) | Scalar::Bool(_))])) => s.as_int().unwrap_or(0).into(),
        ("pow", Some([a, b])) => crate::scalar::binary(crate::ops::BinaryOp::Pow, *a, *b)?,
        ("min", Some([first, rest @ ..])) if !rest.is_empty() => extreme(crate::ops::CompareOp::Lt, *first, rest)?,
        ("max", Some([first, rest @ ..])) if !rest.is_empty() => extreme(crate::ops::CompareOp::Gt, *first, rest)?,
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}

/// `int('12')`, `float('-inf')`.
fn parsed(name: &str, text: &str) -> Checked<Scalar> {
    let plain = text.trim();
    let number = match name {
        "int" => plain.parse::<i128>().ok().map(Scalar::from),
        _ => plain.parse::<f64>().ok().map(Scalar::from),
    };
    number.ok_or_else(|| Fault::value(format!("'{text}' is no number that {name}() can read")))
}

/// The first of the numbers that no later one is beyond.
fn extreme(beyond: crate::ops::CompareOp, first: Scalar, rest: &[Scalar]) -> Checked<Scalar> {
    rest.iter().try_fold(first, |best, &s| Ok(if crate::scalar::compare(beyond, s, best)? { s } else { best }))
}
