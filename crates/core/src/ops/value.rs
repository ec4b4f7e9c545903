//! Python-like values, and binding of arguments to parameters, for callers such as `eval`.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::arguments::Axes;
use crate::array::{Array, NdArray};
use crate::buffer::try_collect;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Operand;
use crate::index::Item;
use crate::ops::parameters::{Parameters, ParsedParameters};
pub use crate::ops::sequence_items::{Items, MAX_ITEMS};
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
    Tuple(Items),
    /// A list.
    List(Items),
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
    /// Returns Python's name of the type.
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
    /// Returns the result of a unary operator, by the name of its function, such as `negative`.
    fn unary(&self, _function: &str) -> Option<Result<Value>> {
        None
    }
    /// Returns the result of a binary operator or comparison, by the name of its function, such as `add`. If `is_reflected`, the object is
    /// the right operand.
    fn binary(&self, _function: &str, _other: &Value, _is_reflected: bool) -> Option<Result<Value>> {
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
        Value::Tuple(Items::named_tuple(names, items.into_iter().collect()))
    }

    /// Parses `text`, the default of a parameter in a signature, such as `None`, `True`, `1e-05`, `'left'` or `(0, 1)`. Returns
    /// Rust's `None` for other text.
    pub(super) fn parse_literal(text: &str) -> Option<Value> {
        let quoted = |quote: char| text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
        if let Some(items) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
            return Some(Value::Tuple(split_at_commas(items).map(Value::parse_literal).collect::<Option<_>>()?));
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
    pub(crate) fn arrays(&self, op: &'static str) -> Result<Vec<NdArray>> {
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

    /// Returns Python's name for the type of this value, for messages.
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
        self.sequence().map(|items| &items[..])
    }

    /// Returns the shared items of a tuple or list; `None` for other values.
    pub(crate) fn sequence(&self) -> Option<&Items> {
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
    pub fn index(&self, op: &'static str) -> Result<isize> {
        to_isize(op, self.int(op)?)
    }

    /// Converts an int, a sequence of ints or a 1-D integer array to ints.
    pub(crate) fn ints(&self, op: &'static str) -> Result<Vec<isize>> {
        match self {
            Value::Tuple(items) | Value::List(items) => items.iter().map(|v| v.index(op)).collect(),
            Value::Array(a) if a.ndim() == 1 && a.dtype() == DType::U64 => {
                a.to_vec::<u64>()?.into_iter().map(|n| to_isize(op, n)).collect()
            }
            Value::Array(a) if a.ndim() == 1 && a.dtype().is_int() => {
                a.astype(DType::I64)?.to_vec::<i64>()?.into_iter().map(|n| to_isize(op, n)).collect()
            }
            value => Ok(vec![value.index(op)?]),
        }
    }

    /// Converts an int, a sequence of ints or a 1-D integer array to axes.
    pub(crate) fn axes(&self, op: &'static str) -> Result<Axes> {
        match self {
            Value::Tuple(_) | Value::List(_) => Ok(Axes::Several(self.ints(op)?.into())),
            Value::Array(a) if a.ndim() == 1 => Ok(Axes::Several(self.ints(op)?.into())),
            axis => Ok(Axes::One(axis.index(op)?)),
        }
    }
}

/// Converts an integer to an `isize`, or returns an error of `op` if it is out of range.
fn to_isize(op: &'static str, n: impl Into<i128>) -> Result<isize> {
    let n = n.into();
    isize::try_from(n).map_err(|_| Error::value(op, format!("integer {n} is too large")))
}

/// Maximum extent of the first axis of an array that is passed for a sequence of arrays, which then are its slices.
const MAX_SEQUENCE_ARRAYS: usize = 1 << 20;

/// Arguments bound to the parameters of a function.
pub struct Args {
    op: &'static str,
    parameters: &'static ParsedParameters,
    /// Positional arguments, including those that a trailing `*name` collects.
    positional: Vec<Value>,
    /// Keyword arguments, each with the index of its parameter.
    keyword: Vec<(usize, Value)>,
}

impl Args {
    /// Binds arguments to parameters as Python does.
    ///
    /// # Errors
    /// Missing, repeated, unexpected or too many arguments.
    pub fn bind(op: &'static str, parameters: &'static Parameters, positional: Vec<Value>, keyword: Vec<(String, Value)>) -> Result<Args> {
        let ParsedParameters { list, positional_only, positional_max: max, takes_rest } = parameters.parsed();
        let given = positional.len();
        if given > *max && !takes_rest {
            return Err(Error::value(
                op,
                format!("takes at most {max} positional arguments, {given} given; its parameters are ({parameters})"),
            ));
        }
        let mut bound = Vec::with_capacity(keyword.len());
        for (name, value) in keyword {
            let Some(index) = list.iter().position(|p| p.name == name) else {
                return Err(Error::value(op, format!("unexpected keyword argument '{name}'; its parameters are ({parameters})")));
            };
            if index < *positional_only {
                return Err(Error::value(op, format!("argument '{name}' is positional only; the parameters are ({parameters})")));
            }
            if index < given.min(*max) || bound.iter().any(|(other, _)| *other == index) {
                return Err(Error::value(op, format!("argument '{name}' is given twice")));
            }
            bound.push((index, value));
        }
        let args = Args { op, parameters: parameters.parsed(), positional, keyword: bound };
        if let Some((_, p)) =
            list.iter().enumerate().skip(given.min(*max)).find(|(i, p)| p.is_required && args.passed_argument(*i).is_none())
        {
            return Err(Error::value(op, format!("argument '{}' is missing; its parameters are ({parameters})", p.name)));
        }
        Ok(args)
    }

    /// Replaces the value of the parameter `name`.
    pub(crate) fn replace(&mut self, name: &str, value: Value) {
        let Some(index) = self.parameter_index(name) else { return };
        match self.positional.get_mut(index) {
            Some(slot) if index < self.parameters.positional_max => *slot = value,
            _ => match self.keyword.iter_mut().find(|(at, _)| *at == index) {
                Some((_, slot)) => *slot = value,
                None => self.keyword.push((index, value)),
            },
        }
    }

    /// Returns the operation's name, for messages.
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// Returns the positional arguments collected by a trailing `*name`.
    pub fn rest(&self) -> &[Value] {
        self.positional.get(self.parameters.positional_max..).unwrap_or_default()
    }

    /// Returns the argument for the parameter of index `index`, if it was passed.
    fn passed_argument(&self, index: usize) -> Option<&Value> {
        match self.positional.get(index) {
            Some(value) if index < self.parameters.positional_max => Some(value),
            _ => self.keyword.iter().find(|(at, _)| *at == index).map(|(_, value)| value),
        }
    }

    /// Returns the index of the parameter `name`; `None` if the function has no such parameter.
    fn parameter_index(&self, name: &str) -> Option<usize> {
        self.parameters.list.iter().position(|p| p.name == name)
    }

    /// Returns the value of the parameter `name`, if it was passed and is not `None`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.passed_argument(self.parameter_index(name)?).filter(|v| !matches!(v, Value::None))
    }

    /// Returns the value of the parameter `name` as passed, or its default from the signature; `None` if it has neither.
    pub fn value(&self, name: &str) -> Option<&Value> {
        let index = self.parameter_index(name)?;
        self.passed_argument(index).or(self.parameters.list[index].default.as_ref())
    }

    /// Returns whether the parameter `name` was passed explicitly as `None`.
    pub fn is_none(&self, name: &str) -> bool {
        self.parameter_index(name).and_then(|index| self.passed_argument(index)).is_some_and(|v| matches!(v, Value::None))
    }

    /// Returns the value of the parameter `name`, or an error if it is missing or `None`.
    fn required(&self, name: &str) -> Result<&Value> {
        self.get(name).ok_or_else(|| Error::value(self.op, format!("argument '{name}' is missing")))
    }

    /// Returns the argument `name`, an array.
    ///
    /// # Errors
    /// A missing argument, or one of another type.
    pub fn array(&self, name: &str) -> Result<NdArray> {
        self.required(name)?.array(self.op)
    }

    /// Returns the argument `name`, an array of indices. As in NumPy's conversion to integers, an empty list gives int64, not float64.
    ///
    /// # Errors
    /// A missing argument, or one of another type.
    pub fn indices(&self, name: &str) -> Result<NdArray> {
        let value = self.required(name)?;
        let array = value.array(self.op)?;
        if value.items().is_some() && array.size() == 0 { array.astype(DType::I64) } else { Ok(array) }
    }

    /// Returns the argument `name`, an array or a weak scalar.
    ///
    /// # Errors
    /// A missing argument, or one of another type.
    pub fn operand(&self, name: &str) -> Result<Operand> {
        self.required(name)?.operand(self.op)
    }

    /// Returns the optional argument `name`, an array or a weak scalar.
    ///
    /// # Errors
    /// An argument of another type.
    pub fn operand_or_none(&self, name: &str) -> Result<Option<Operand>> {
        self.get(name).map(|v| v.operand(self.op)).transpose()
    }

    /// Returns the argument `name`, a sequence of arrays.
    ///
    /// # Errors
    /// A missing argument, or one of another type.
    pub fn arrays(&self, name: &str) -> Result<Vec<NdArray>> {
        self.required(name)?.arrays(self.op)
    }

    /// Returns the argument `name`, a number or an array of one element, as a number.
    ///
    /// # Errors
    /// A missing argument, or one of another type.
    pub fn scalar(&self, name: &str) -> Result<Scalar> {
        match self.required(name)? {
            Value::Scalar(s) => Ok(*s),
            Value::Array(a) if a.size() == 1 => a.item(),
            other => Err(Error::value(self.op, format!("'{name}' must be a number, not {}", other.type_name()))),
        }
    }

    /// Returns an error if the parameter `name` was passed as `None`, although its default in the signature is another value.
    pub(crate) fn reject_none(&self, name: &str) -> Result<()> {
        let default = self.parameter_index(name).and_then(|index| self.parameters.list[index].default.as_ref());
        match default {
            None | Some(Value::None) => Ok(()),
            Some(_) if self.is_none(name) => Err(Error::value(self.op, format!("'{name}' must not be None"))),
            Some(_) => Ok(()),
        }
    }

    /// Returns the argument `name`, a number, or `default` if it is missing.
    ///
    /// # Errors
    /// An argument of another type, or `None` unless `None` is the default in the signature.
    pub fn scalar_or(&self, name: &str, default: impl Into<Scalar>) -> Result<Scalar> {
        self.reject_none(name)?;
        if self.get(name).is_some() { self.scalar(name) } else { Ok(default.into()) }
    }

    /// Returns the argument `name`, an int, or `default` if it is missing.
    ///
    /// # Errors
    /// An argument of another type, or `None` unless `None` is the default in the signature.
    pub fn int_or(&self, name: &str, default: isize) -> Result<isize> {
        self.reject_none(name)?;
        self.get(name).map_or(Ok(default), |v| v.index(self.op))
    }

    /// Returns the argument `name`, a truth value, or `default` if it is missing. `None` is false, unless `None` is the default in the
    /// signature.
    ///
    /// # Errors
    /// An argument of another type.
    pub fn bool_or(&self, name: &str, default: bool) -> Result<bool> {
        match self.get(name) {
            None if self.reject_none(name).is_err() => Ok(false),
            None => Ok(default),
            Some(Value::Scalar(s)) => Ok(s.as_bool()),
            Some(Value::Array(a)) if a.ndim() == 0 => Ok(a.item()?.as_bool()),
            Some(other) => Err(Error::value(self.op, format!("'{name}' must be True or False, not {}", other.type_name()))),
        }
    }

    /// Returns the optional argument `name`, a dtype or the name of one.
    ///
    /// # Errors
    /// An argument of another type.
    pub fn dtype(&self, name: &str) -> Result<Option<DType>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::DType(d)) => Ok(Some(*d)),
            Some(Value::Str(s)) => DType::parse(s).map(Some).map_err(|e| e.with_function_name(self.op)),
            Some(other) => Err(Error::value(self.op, format!("'{name}' must be a dtype, not {}", other.type_name()))),
        }
    }

    /// Returns the argument `name`, a string.
    ///
    /// # Errors
    /// A missing argument, or one of another type.
    pub fn str(&self, name: &str) -> Result<&str> {
        match self.required(name)? {
            Value::Str(s) => Ok(s),
            other => Err(Error::value(self.op, format!("'{name}' must be a string, not {}", other.type_name()))),
        }
    }

    /// Returns the optional argument `name`, an int, a sequence of ints or a 1-D integer array (`axis`, `shift`).
    ///
    /// # Errors
    /// An argument of another type.
    pub fn ints(&self, name: &str) -> Result<Option<Vec<isize>>> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => value.ints(self.op).map(Some),
        }
    }

    /// Returns the argument `name`, an int, a sequence of non-negative ints or a 1-D integer array, as a shape.
    ///
    /// # Errors
    /// A missing argument, or one of another type.
    pub fn shape(&self, name: &str) -> Result<Vec<usize>> {
        self.required(name)?;
        let to_extent = |n: isize| usize::try_from(n).map_err(|_| Error::value(self.op, format!("negative dimension {n} in '{name}'")));
        self.ints(name)?.unwrap_or_default().into_iter().map(to_extent).collect()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_may_contain_commas() {
        static SIGNATURE: Parameters = Parameters::new("m, k=1, axes=(0, 1), *, parts=((0, -1), (2,)), sep=', '");
        let bound = Args::bind("f", &SIGNATURE, vec![2.into()], Vec::new()).unwrap();
        let Some(Value::Tuple(axes)) = bound.value("axes") else { panic!("{:?}", bound.value("axes")) };
        assert!(axes.iter().map(|v| v.index("f").unwrap()).eq([0, 1]));
        assert!(matches!(bound.value("sep"), Some(Value::Str(sep)) if sep == ", "));
        let Some(Value::Tuple(parts)) = bound.value("parts") else { panic!("{:?}", bound.value("parts")) };
        assert_eq!(parts.len(), 2);
        // Positional and keyword arguments replace the defaults.
        let three = Args::bind("f", &SIGNATURE, vec![2.into(), 3.into(), Value::tuple([1.into(), 2.into()])], Vec::new()).unwrap();
        assert_eq!(three.ints("axes").unwrap(), Some(vec![1, 2]));
        let named = Args::bind("f", &SIGNATURE, vec![2.into()], vec![("axes".into(), Value::tuple([3.into(), 4.into()]))]).unwrap();
        assert_eq!(named.ints("axes").unwrap(), Some(vec![3, 4]));
        let error = Args::bind("f", &SIGNATURE, (0..4).map(Value::from).collect(), Vec::new()).err().unwrap();
        assert!(error.to_string().contains("at most 3 positional arguments, 4 given"), "{error}");
    }

    #[test]
    fn arguments_bind_as_in_python() {
        static PARAMETERS: Parameters = Parameters::new("a, /, b=2, *, c=None");
        let bind = |positional: &[i32], keyword: &[(&str, i32)]| {
            let keyword = keyword.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
            Args::bind("f", &PARAMETERS, positional.iter().map(|v| (*v).into()).collect(), keyword)
        };
        let int = |value: Option<&Value>| value.map(|v| v.index("f").unwrap());
        let bound = bind(&[1], &[("c", 5)]).unwrap();
        assert_eq!((int(bound.value("a")), int(bound.value("b")), int(bound.value("c"))), (Some(1), Some(2), Some(5)));
        assert!(bound.get("b").is_none() && bound.get("d").is_none() && bound.rest().is_empty());
        assert!(matches!(bind(&[1], &[]).unwrap().value("c"), Some(Value::None)));
        let message = |positional: &[i32], keyword: &[(&str, i32)]| bind(positional, keyword).err().unwrap().to_string();
        assert!(message(&[], &[]).contains("'a' is missing"));
        assert!(message(&[], &[("a", 1)]).contains("'a' is positional only"));
        assert!(message(&[1, 2], &[("b", 3)]).contains("'b' is given twice"));
        assert!(message(&[1], &[("c", 3), ("c", 4)]).contains("'c' is given twice"));
        assert!(message(&[1], &[("d", 3)]).contains("unexpected keyword argument 'd'"));
        assert!(message(&[1, 2, 3], &[]).contains("at most 2 positional arguments, 3 given"));
    }

    #[test]
    fn a_last_parameter_with_a_star_collects_arguments() {
        static PARAMETERS: Parameters = Parameters::new("a, *others");
        let bound = Args::bind("f", &PARAMETERS, vec![1.into(), 2.into(), 3.into()], Vec::new()).unwrap();
        assert_eq!(bound.rest().iter().map(|v| v.index("f").unwrap()).collect::<Vec<_>>(), [2, 3]);
        let one = Args::bind("f", &PARAMETERS, vec![1.into()], Vec::new()).unwrap();
        assert!(one.rest().is_empty());
    }
}
