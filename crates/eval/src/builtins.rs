//! Python's built-in functions that array programs use, such as `len`, `int`, `round` and `min`, and NumPy's `dtype`.
//!
//! All other NumPy functions are declared at their Rust definitions (`cuprum_core::function`).

use cuprum_core::ops::python_value::Value;
use cuprum_core::{DType, Scalar};

use crate::operators::{BinaryOp, CompareOp};
use crate::scalar_operations::round_number;
use crate::unlocated_error::{Unlocated, UnlocatedError};

/// The implementation of a function in [`BUILTINS`]. It receives the evaluated positional arguments.
pub(crate) type Builtin = fn(&[Value]) -> Unlocated<Value>;

/// Built-in functions whose names are neither declared functions nor dtypes. [`try_call_python_builtin`] implements built-ins such as `abs`
/// and `int`, which share their name with a declared function or a dtype.
pub(crate) static BUILTINS: [(&str, Builtin); 2] = [("len", python_len), ("dtype", call_numpy_dtype)];

/// Python's `len(x)`: the length of an array's first axis, or the number of items of a sequence or string.
fn python_len(args: &[Value]) -> Unlocated<Value> {
    let [value] = args else { return Err(argument_count_error("len", args)) };
    match value {
        Value::Array(a) => match a.shape().first() {
            Some(n) => Ok((*n).into()),
            None => Err(UnlocatedError::type_error("an array of 0 dimensions has no length")),
        },
        Value::Tuple(items) | Value::List(items) => Ok(items.len().into()),
        Value::Str(s) => Ok(s.chars().count().into()),
        other => Err(UnlocatedError::type_error(format!("'{}' has no length", other.type_name()))),
    }
}

/// NumPy's `dtype('f4')`: the dtype with the given name. A dtype is returned unchanged, and `None` gives float64.
fn call_numpy_dtype(args: &[Value]) -> Unlocated<Value> {
    match args {
        [Value::DType(d)] => Ok(Value::DType(*d)),
        [Value::Str(name)] => Ok(Value::DType(DType::parse(name).map_err(|e| e.with_function_name("dtype"))?)),
        [Value::None] => Ok(Value::DType(DType::F64)),
        [other] => Err(UnlocatedError::type_error(format!("'{}' is not a dtype or its name", other.type_name()))),
        _ => Err(argument_count_error("dtype", args)),
    }
}

fn argument_count_error(name: &str, args: &[Value]) -> UnlocatedError {
    UnlocatedError::type_error(format!("{name}() takes one argument, {} given", args.len()))
}

/// Returns the number that a scalar or a 0-d array holds, and `None` for any other value. As in NumPy 2.4, arrays with axes are no numbers.
fn scalar_or_0d_number(value: &Value) -> Unlocated<Option<Scalar>> {
    match value {
        Value::Scalar(s) => Ok(Some(*s)),
        Value::Array(a) if a.ndim() == 0 => Ok(Some(a.item()?)),
        _ => Ok(None),
    }
}

/// Calls Python's built-in function `name`. Returns `None` if the arguments require NumPy's function of the same name instead.
pub(crate) fn try_call_python_builtin(name: &str, args: &[Value], keywords: &[(String, Value)]) -> Unlocated<Option<Value>> {
    if name == "round" {
        return try_python_round(args, keywords);
    }
    if !keywords.is_empty() {
        return Ok(None);
    }
    match (name, args) {
        ("int" | "float", [Value::Str(text)]) => return parse_number_argument(name, text).map(|s| Some(s.into())),
        ("divmod", [Value::Scalar(a), Value::Scalar(b)]) => {
            let parts = [BinaryOp::FloorDiv, BinaryOp::Rem].map(|op| crate::scalar_operations::apply_binary_scalar_operator(op, *a, *b));
            let [quotient, remainder] = parts;
            return Ok(Some(Value::tuple([quotient?.into(), remainder?.into()])));
        }
        ("pow", [base @ Value::Array(_), exponent]) => {
            return crate::value_operators::apply_binary_value_operator(BinaryOp::Pow, base.clone(), exponent.clone()).map(Some);
        }
        ("abs", [Value::Object(object)]) => return object.unary_operator("abs").transpose().map_err(UnlocatedError::from),
        // Nested lists, which Python does not add, are summed as an array.
        ("sum", [Value::Tuple(items) | Value::List(items)]) if items.iter().all(|item| item.items().is_none()) => {
            return python_sum(items, 0.into()).map(Some);
        }
        ("sum", [Value::Tuple(items) | Value::List(items), start]) => return python_sum(items, start.clone()).map(Some),
        ("min", [_, _, ..]) => return try_python_min_or_max(CompareOp::Lt, args),
        ("max", [_, _, ..]) => return try_python_min_or_max(CompareOp::Gt, args),
        // The real and imaginary parts are computed separately: `re + im * 1j` turns infinities into NaN, and adding a zero loses the sign
        // of -0.0.
        ("complex", [re, im]) => {
            let (Some(re), Some(im)) = (scalar_or_0d_number(re)?, scalar_or_0d_number(im)?) else {
                return Err(UnlocatedError::type_error("complex() takes two numbers"));
            };
            let cross = |part: Scalar| if let Scalar::Complex(c) = part { Some(c.im) } else { None };
            let real = cross(im).map_or(re.as_f64(), |i| re.as_f64() - i);
            let imaginary = cross(re).map_or(im.as_f64(), |i| i + im.as_f64());
            return Ok(Some(cuprum_core::Complex::new(real, imaginary).into()));
        }
        _ => {}
    }
    let convert = |as_array: &str| match args {
        [value] => scalar_or_0d_number(value)?.ok_or_else(|| match value {
            Value::Array(_) | Value::List(_) => UnlocatedError::type_error(format!("only a single number can be made {as_array}"))
                .with_help(format!("use `.astype({name})` on arrays")),
            other => UnlocatedError::type_error(format!("'{}' cannot be made {as_array}", other.type_name())),
        }),
        _ => Err(argument_count_error(name, args)),
    };
    let numbers: Option<Vec<Scalar>> = args.iter().map(|v| if let Value::Scalar(s) = v { Some(*s) } else { None }).collect();
    let value: Scalar = match (name, numbers.as_deref()) {
        ("bool", _) => match args {
            [value] => crate::value_operators::python_truth_value(value)?.into(),
            _ => convert("a bool")?,
        },
        ("int", _) => match convert("an int")? {
            Scalar::Complex(_) => return Err(UnlocatedError::type_error("a complex number cannot be made an int")),
            Scalar::Float(v) => {
                Scalar::Float(v.trunc()).as_int().ok_or_else(|| UnlocatedError::value_error(format!("{v:e} cannot be made an int")))?.into()
            }
            s => s.as_int().unwrap_or(0).into(),
        },
        ("float", _) => match convert("a float")? {
            Scalar::Complex(_) => return Err(UnlocatedError::type_error("a complex number cannot be made a float")),
            s => s.as_f64().into(),
        },
        ("complex", _) => convert("a complex number")?.as_complex().into(),
        ("abs", Some([Scalar::Complex(c)])) => c.norm().into(),
        ("abs", Some([Scalar::Float(v)])) => v.abs().into(),
        ("abs", Some([s])) => {
            s.as_int().and_then(i128::checked_abs).ok_or_else(|| UnlocatedError::value_error("the result is too large"))?.into()
        }
        ("pow", Some([a, b])) => crate::scalar_operations::apply_binary_scalar_operator(BinaryOp::Pow, *a, *b)?,
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}

/// Python's `round(number, ndigits=None)`. Returns `None` if `number` is neither a real scalar nor a real 0-d array without `ndigits`, or
/// if the arguments do not match this signature.
fn try_python_round(args: &[Value], keywords: &[(String, Value)]) -> Unlocated<Option<Value>> {
    let number = match args {
        [Value::Scalar(number @ (Scalar::Bool(_) | Scalar::Int(_) | Scalar::Float(_))), ..] => *number,
        // NumPy's scalars, which are 0-d arrays here, keep their dtype if they are rounded to a number of digits.
        [Value::Array(a), digits @ ..]
            if a.ndim() == 0
                && !a.dtype().is_complex()
                && digits.iter().chain(keywords.iter().map(|(_, value)| value)).all(|value| matches!(value, Value::None)) =>
        {
            a.item()?
        }
        _ => return Ok(None),
    };
    let digits = match (&args[1..], keywords) {
        ([], []) => &Value::None,
        ([digits], []) => digits,
        ([], [(name, digits)]) if name == "ndigits" => digits,
        _ => return Ok(None),
    };
    let digits = match digits {
        Value::None => None,
        digits => Some(digits.int("round")?),
    };
    round_number(number, digits).map(|s| Some(s.into()))
}

/// Python's `sum(items, start)`: adds the items to `start` from left to right.
fn python_sum(items: &[Value], start: Value) -> Unlocated<Value> {
    items.iter().try_fold(start, |sum, item| crate::value_operators::apply_binary_value_operator(BinaryOp::Add, sum, item.clone()))
}

/// Parses the string `text` that the built-in function `name` converts, as in `int('12')` or `float('-inf')`.
fn parse_number_argument(name: &str, text: &str) -> Unlocated<Scalar> {
    let plain = text.trim();
    let number = match name {
        "int" => plain.parse::<i128>().ok().map(Scalar::from),
        _ => plain.parse::<f64>().ok().map(Scalar::from),
    };
    number.ok_or_else(|| UnlocatedError::value_error(format!("{name}() cannot parse '{text}'")))
}

/// Returns Python's `min` (`better` is `<`) or `max` (`better` is `>`) of numbers and 0-d arrays: the first one if several are equal. The
/// result is the argument itself, with its dtype. Returns `None` if another argument is given.
fn try_python_min_or_max(better: CompareOp, args: &[Value]) -> Unlocated<Option<Value>> {
    let mut best: Option<(Scalar, &Value)> = None;
    for value in args {
        let number = match value {
            Value::Scalar(s) => *s,
            Value::Array(a) if a.ndim() == 0 => a.item()?,
            _ => return Ok(None),
        };
        let is_better = best.map_or(Ok(true), |(best, _)| crate::scalar_operations::compare_scalars(better, number, best))?;
        if is_better {
            best = Some((number, value));
        }
    }
    Ok(best.map(|(_, value)| value.clone()))
}
