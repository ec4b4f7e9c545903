//! Python's operators, comparisons and truth tests on values: arrays, numbers, strings, tuples and lists.

use cuprum_core::function::Function;
use cuprum_core::ops::python_value::{SequenceItems, Value};
use cuprum_core::{DType, Scalar};

use crate::operators::{BinaryOp, CompareOp};
use crate::scalar_operations;
use crate::unlocated_error::{Unlocated, UnlocatedError};

/// Maximum length of a tuple or list made by `+` or `*`. Programs use these operators to build shapes, so the limit is small.
const MAX_COMPUTED_SEQUENCE_LEN: usize = 1 << 16;

/// Calls the declared function with the path `path`, such as `linalg.norm`.
pub(crate) fn call_function_by_path(path: &str, positional: Vec<Value>) -> Unlocated<Value> {
    match Function::find(path) {
        Some(function) => Ok(function.call(positional, Vec::new())?),
        None => Err(UnlocatedError::name_error(format!("no function `{path}`"))),
    }
}

/// Returns the value of `left op right`.
pub(crate) fn apply_binary_value_operator(op: BinaryOp, left: Value, right: Value) -> Unlocated<Value> {
    let error = |left: &Value, right: &Value| {
        let message = format!("unsupported operand types for {}: '{}' and '{}'", op.symbol(), left.type_name(), right.type_name());
        let error = UnlocatedError::type_error(message);
        let lists = matches!(left, Value::List(_)) || matches!(right, Value::List(_));
        if lists { error.with_help("make the list an array: `array([...])`") } else { error }
    };
    if let Some(result) = try_apply_object_operator(op.function(), &left, &right) {
        return result;
    }
    match (left, right) {
        (Value::Scalar(a), Value::Scalar(b)) => scalar_operations::apply_binary_scalar_operator(op, a, b).map(Value::from),
        // As in NumPy, `**` has fast paths for some exponents that the function `power` does not have.
        (Value::Array(base), Value::Scalar(exponent)) if op == BinaryOp::Pow => Ok(base.power(exponent)?.into()),
        (left @ Value::Array(_), right) | (left, right @ Value::Array(_)) => call_function_by_path(op.function(), vec![left, right]),
        (Value::Tuple(a), Value::Tuple(b)) if op == BinaryOp::Add => concatenate_sequences(a, b).map(Value::Tuple),
        (Value::List(a), Value::List(b)) if op == BinaryOp::Add => concatenate_sequences(a, b).map(Value::List),
        (Value::Tuple(a), Value::Scalar(n)) | (Value::Scalar(n), Value::Tuple(a)) if op == BinaryOp::Mul && !is_inexact_scalar(n) => {
            repeat_sequence(&a, n).map(Value::Tuple)
        }
        (Value::List(a), Value::Scalar(n)) | (Value::Scalar(n), Value::List(a)) if op == BinaryOp::Mul && !is_inexact_scalar(n) => {
            repeat_sequence(&a, n).map(Value::List)
        }
        (left, right) => Err(error(&left, &right)),
    }
}

/// Returns the result of an operator if one of its operands is an object that implements the operator. The left operand takes precedence.
fn try_apply_object_operator(function: &str, left: &Value, right: &Value) -> Option<Unlocated<Value>> {
    let own = if let Value::Object(object) = left { object.binary_operator(function, right, false) } else { None };
    let result = match (own, right) {
        (None, Value::Object(object)) => object.binary_operator(function, left, true),
        (own, _) => own,
    };
    result.map(|value| Ok(value?))
}

fn is_inexact_scalar(s: Scalar) -> bool {
    matches!(s, Scalar::Float(_) | Scalar::Complex(_))
}

fn concatenate_sequences(a: SequenceItems, b: SequenceItems) -> Unlocated<SequenceItems> {
    if a.len() + b.len() > MAX_COMPUTED_SEQUENCE_LEN {
        return Err(UnlocatedError::value_error("this sequence is too long").with_help("data belongs in an array: `concat((a, b))`"));
    }
    Ok(SequenceItems::new("add", [&a[..], &b[..]].concat())?)
}

fn repeat_sequence(items: &[Value], count: Scalar) -> Unlocated<SequenceItems> {
    let count = usize::try_from(count.as_int().unwrap_or(0).max(0)).unwrap_or(usize::MAX);
    match items.len().checked_mul(count) {
        Some(n) if n <= MAX_COMPUTED_SEQUENCE_LEN => Ok(SequenceItems::new("multiply", items.iter().cycle().take(n).cloned().collect())?),
        _ => Err(UnlocatedError::value_error("this sequence is too long").with_help("data belongs in an array: `full(n, value)`")),
    }
}

/// Returns the value of `left op right` for one comparison of a chain.
pub(crate) fn compare_values(op: CompareOp, left: &Value, right: &Value) -> Unlocated<Value> {
    if let Some(result) = try_apply_object_operator(op.function(), left, right) {
        return result;
    }
    match (left, right) {
        (Value::Scalar(a), Value::Scalar(b)) => scalar_operations::compare_scalars(op, *a, *b).map(Value::from),
        (Value::Array(_), Value::None | Value::Str(_) | Value::DType(_))
        | (Value::None | Value::Str(_) | Value::DType(_), Value::Array(_)) => Err(UnlocatedError::type_error(format!(
            "an array cannot be compared with '{}'",
            if let Value::Array(_) = left { right } else { left }.type_name()
        ))),
        (Value::Array(_), _) | (_, Value::Array(_)) => call_function_by_path(op.function(), vec![left.clone(), right.clone()]),
        _ => match op {
            CompareOp::Eq => Ok(python_equal(left, right)?.into()),
            CompareOp::Ne => Ok((!python_equal(left, right)?).into()),
            _ => Err(UnlocatedError::type_error(format!("'{}' and '{}' have no order", left.type_name(), right.type_name()))),
        },
    }
}

/// Returns Python's `left == right` for values other than arrays. Nested sequences are compared without recursion.
fn python_equal(left: &Value, right: &Value) -> Unlocated<bool> {
    let mut open = vec![std::slice::from_ref(left).iter().zip(std::slice::from_ref(right))];
    while let Some(pairs) = open.last_mut() {
        match pairs.next() {
            None => drop(open.pop()),
            Some((Value::Tuple(a), Value::Tuple(b)) | (Value::List(a), Value::List(b))) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                open.push(a.iter().zip(&b[..]));
            }
            Some((x @ Value::Array(_), y) | (x, y @ Value::Array(_)) | (x @ Value::Scalar(_), y @ Value::Scalar(_))) => {
                if !python_truth_value(&compare_values(CompareOp::Eq, x, y)?)? {
                    return Ok(false);
                }
            }
            Some((x, y)) if !non_numeric_values_equal(x, y) => return Ok(false),
            Some(_) => {}
        }
    }
    Ok(true)
}

/// Returns whether two strings, dtypes or `None` are equal. A dtype equals its name.
fn non_numeric_values_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::DType(a), Value::DType(b)) => a == b,
        (Value::DType(d), Value::Str(s)) | (Value::Str(s), Value::DType(d)) => DType::parse(s).is_ok_and(|parsed| parsed == *d),
        (Value::None, Value::None) => true,
        _ => false,
    }
}

/// Returns Python's truth value of `value`.
pub(crate) fn python_truth_value(value: &Value) -> Unlocated<bool> {
    Ok(match value {
        Value::Scalar(s) => s.as_bool(),
        Value::None => false,
        Value::Str(s) => !s.is_empty(),
        Value::DType(_) | Value::Object(_) => true,
        Value::Tuple(items) | Value::List(items) => !items.is_empty(),
        Value::Array(a) if a.size() == 1 => a.item()?.as_bool(),
        Value::Array(a) => {
            let what = if a.size() == 0 { "an empty array" } else { "an array with more than one element" };
            return Err(UnlocatedError::value_error(format!("The truth value of {what} is ambiguous"))
                .with_help("use `&`, `|`, `~` and `where` on arrays, or `.any()` or `.all()`"));
        }
    })
}
