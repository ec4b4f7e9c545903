//! Python-like values, for callers such as `eval`.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::arguments::Axes;
use crate::array::{Array, NdArray};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Operand;
use crate::host_buffer::try_collect;
use crate::index::Item;
pub use crate::ops::bound_arguments::Args;
pub use crate::ops::sequence_items::{MAX_SEQUENCE_VALUES, SequenceItems};
use crate::scalar::Scalar;

/// A Python-like value, as in expressions of `eval`: an array, a number, a string, a tuple or another object.
#[derive(Clone, Debug)]
pub enum Value {
    /// An array.
    Array(NdArray),
    /// A Python `bool`, `int`, `float` or `complex`.
    Scalar(Scalar),
    /// `None`.
    None,
    /// A string.
    Str(String),
    /// A dtype, such as the value of the name `float32` in an expression.
    DType(DType),
    /// A tuple.
    Tuple(SequenceItems),
    /// A list.
    List(SequenceItems),
    /// An object with methods, such as a random number generator. Clones share its state.
    Object(Arc<dyn Object>),
}

/// An evaluated item of an index expression, as in `eval`.
#[derive(Clone)]
pub enum IndexPart {
    /// An int, slice, new axis or ellipsis, which gives a view.
    Basic(Item),
    /// An integer array that indexes one axis, or a boolean mask that covers as many axes as the mask has.
    Array(NdArray),
}

/// An object, such as a random number generator or a sparse array, whose methods are the functions of a namespace. A function receives the
/// object as its argument `self`. Functions of random numbers receive it as their argument `seed`.
///
/// An object may also support attributes, operators and indexing. By default it supports none of them.
pub trait Object: Any + fmt::Debug + Send + Sync {
    /// Returns the name of the object's Python type.
    fn type_name(&self) -> &'static str;
    /// Returns Python's `repr`.
    fn repr(&self) -> String;
    /// Returns the namespace whose functions are the methods of this object, such as `random`.
    fn namespace(&self) -> &'static str;
    /// Returns the object as an array; `None` if it is not one. An array has the attributes `dtype`, `shape`, `ndim`, `size`, `nbytes` and
    /// `device`.
    fn as_array(&self) -> Option<&dyn Array> {
        None
    }
    /// Returns the value of the attribute with this name; `None` if there is none. For an object that is an array, the attributes listed at
    /// [`Object::as_array`] are not looked up here.
    fn attribute(&self, _name: &str) -> Option<Result<Value>> {
        None
    }
    /// Returns the result of a unary operator, selected by the name of its function, such as `negative`. Returns `None` for unsupported
    /// operators.
    fn unary_operator(&self, _function: &str) -> Option<Result<Value>> {
        None
    }
    /// Returns the result of a binary operator or comparison, selected by the name of its function, such as `add`. Returns `None` for
    /// unsupported operators. If `is_reflected`, the object is the right operand.
    fn binary_operator(&self, _function: &str, _other: &Value, _is_reflected: bool) -> Option<Result<Value>> {
        None
    }
    /// Returns the part of the object that an index selects; `None` if the object does not support indexing.
    fn index(&self, _parts: &[IndexPart]) -> Option<Result<Value>> {
        None
    }
}

impl From<NdArray> for Value {
    fn from(a: NdArray) -> Value {
        Value::Array(a)
    }
}
impl From<&NdArray> for Value {
    fn from(a: &NdArray) -> Value {
        Value::Array(a.clone())
    }
}
impl<T: Into<Scalar>> From<T> for Value {
    fn from(s: T) -> Value {
        Value::Scalar(s.into())
    }
}

impl Value {
    /// Returns a tuple of values.
    pub fn tuple(items: impl IntoIterator<Item = Value>) -> Value {
        Value::Tuple(items.into_iter().collect())
    }

    /// Returns a tuple whose items have names, as `collections.namedtuple` does.
    pub fn named_tuple(names: &'static [&'static str], items: impl IntoIterator<Item = Value>) -> Value {
        Value::Tuple(SequenceItems::named_tuple(names, items.into_iter().collect()))
    }

    /// Parses `text`, the default of a parameter in a signature, such as `None`, `True`, `1e-05`, `'left'` or `(0, 1)`. Returns
    /// Rust's `None` for other text.
    pub(super) fn parse_parameter_default(text: &str) -> Option<Value> {
        let quoted = |quote: char| text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
        if let Some(items) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
            return Some(Value::Tuple(split_at_commas(items).map(Value::parse_parameter_default).collect::<Option<_>>()?));
        }
        Some(match text {
            "None" => Value::None,
            "True" => Value::Scalar(true.into()),
            "False" => Value::Scalar(false.into()),
            _ => match (quoted('\'').or(quoted('"')), text.parse::<i128>(), text.parse::<f64>()) {
                (Some(inner), ..) => Value::Str(inner.into()),
                (_, Ok(n), _) => Value::Scalar(n.into()),
                (_, _, Ok(x)) => Value::Scalar(x.into()),
                _ => return None,
            },
        })
    }

    /// Returns the items of a tuple or list, or the slices of an array along its first axis, as arrays.
    pub(crate) fn to_arrays(&self, op: &'static str) -> Result<Vec<NdArray>> {
        match self {
            Value::Tuple(items) | Value::List(items) => items.iter().map(|v| v.array(op)).collect(),
            Value::Array(a) if a.ndim() > 0 && a.shape()[0] > MAX_SEQUENCE_ARRAYS => Err(Error::value(
                op,
                format!(
                    "an array of {} rows is too long for a sequence of arrays (at most {MAX_SEQUENCE_ARRAYS}); use reshape",
                    a.shape()[0]
                ),
            )),
            Value::Array(a) if a.ndim() > 0 => {
                try_collect(op, (0..a.shape()[0] as isize).map(|i| a.index(&[crate::index::Item::At(i)])))?.into_iter().collect()
            }
            other => Err(Error::value(op, format!("expected a sequence of arrays, not {}", other.type_name()))),
        }
    }

    /// Returns Python's name for the type of this value, for error messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Array(_) => "array",
            Value::Scalar(Scalar::Bool(_)) => "bool",
            Value::Scalar(Scalar::Int(_)) => "int",
            Value::Scalar(Scalar::Float(_)) => "float",
            Value::Scalar(Scalar::Complex(_)) => "complex",
            Value::None => "None",
            Value::Str(_) => "str",
            Value::DType(_) => "dtype",
            Value::Tuple(_) => "tuple",
            Value::List(_) => "list",
            Value::Object(object) => object.type_name(),
        }
    }

    /// Returns the items of a tuple or list, and `None` for other values.
    pub fn items(&self) -> Option<&[Value]> {
        self.as_sequence().map(|items| &items[..])
    }

    /// Returns the shared items of a tuple or list; `None` for other values.
    pub(crate) fn as_sequence(&self) -> Option<&SequenceItems> {
        match self {
            Value::Tuple(v) | Value::List(v) => Some(v),
            _ => None,
        }
    }

    /// Converts the value to an operand of an elementwise operation. A (nested) list of numbers becomes an array, as in NumPy.
    ///
    /// # Errors
    /// A value that is neither an array nor a number nor a list of numbers.
    pub fn operand(&self, op: &'static str) -> Result<Operand> {
        match self {
            Value::Array(a) => Ok(Operand::Array(a.clone())),
            Value::Scalar(s) => Ok(Operand::Scalar(*s)),
            Value::Tuple(_) | Value::List(_) => Ok(Operand::Array(self.array(op)?)),
            other => Err(Error::value(op, format!("expected an array or a number, not {}", other.type_name()))),
        }
    }

    /// Converts an int, a bool or an integer array of one element to an int.
    ///
    /// # Errors
    /// Values that are not one integer.
    pub fn int(&self, op: &'static str) -> Result<i128> {
        match self {
            Value::Scalar(s @ (Scalar::Int(_) | Scalar::Bool(_))) => s.as_int().ok_or_else(|| Error::value(op, "expected an integer")),
            Value::Array(a) if a.size() == 1 && (a.dtype().is_int() || a.dtype() == DType::Bool) => {
                a.item()?.as_int().ok_or_else(|| Error::value(op, "expected an integer"))
            }
            other => Err(Error::value(op, format!("expected an integer, not {}", other.type_name()))),
        }
    }

    /// Converts the value to an `isize`, as [`Value::int`] does.
    ///
    /// # Errors
    /// A value that is not an integer or is out of range.
    pub fn to_isize(&self, op: &'static str) -> Result<isize> {
        integer_to_isize(op, self.int(op)?)
    }

    /// Converts an int, a sequence of ints or a 1-D integer array to ints.
    pub(crate) fn to_isizes(&self, op: &'static str) -> Result<Vec<isize>> {
        match self {
            Value::Tuple(items) | Value::List(items) => items.iter().map(|v| v.to_isize(op)).collect(),
            Value::Array(a) if a.ndim() == 1 && a.dtype() == DType::U64 => {
                a.to_vec::<u64>()?.into_iter().map(|n| integer_to_isize(op, n)).collect()
            }
            Value::Array(a) if a.ndim() == 1 && a.dtype().is_int() => {
                a.astype(DType::I64)?.to_vec::<i64>()?.into_iter().map(|n| integer_to_isize(op, n)).collect()
            }
            value => Ok(vec![value.to_isize(op)?]),
        }
    }

    /// Converts an int, a sequence of ints or a 1-D integer array to axes.
    pub(crate) fn to_axes(&self, op: &'static str) -> Result<Axes> {
        match self {
            Value::Tuple(_) | Value::List(_) => Ok(Axes::Several(self.to_isizes(op)?.into())),
            Value::Array(a) if a.ndim() == 1 => Ok(Axes::Several(self.to_isizes(op)?.into())),
            axis => Ok(Axes::One(axis.to_isize(op)?)),
        }
    }
}

/// Converts an integer to an `isize`, or returns an error of `op` if it is out of range.
fn integer_to_isize(op: &'static str, n: impl Into<i128>) -> Result<isize> {
    let n = n.into();
    isize::try_from(n).map_err(|_| Error::value(op, format!("integer {n} is too large")))
}

/// Maximum extent of the first axis of an array that is passed for a sequence of arrays, which then are its slices.
const MAX_SEQUENCE_ARRAYS: usize = 1 << 20;

/// Splits `text`, parameters or the items of a tuple, at the commas outside parentheses, brackets and quotes. Empty parts are left out.
pub(super) fn split_at_commas(text: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut quote) = (0usize, None);
    let parts = text.split(move |c: char| {
        match (quote, c) {
            (Some(open), _) => quote = (c != open).then_some(open),
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0 && quote.is_none()
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}
