//! Python-like values and argument binding: how `eval` and other callers by name reach the operations.

use crate::array::NdArray;
use crate::buffer::{HostBuffer, try_collect};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Operand;
pub use crate::ops::items::{Items, MOST_ITEMS};
use crate::scalar::Scalar;

/// A value as an expression in text can hold it.
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
    /// A dtype, such as the name `float32`.
    DType(DType),
    /// A tuple.
    Tuple(Items),
    /// A list.
    List(Items),
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
    /// A tuple of values.
    pub fn tuple(items: impl IntoIterator<Item = Value>) -> Value {
        Value::Tuple(items.into_iter().collect())
    }

    /// The value of a literal in a signature: `None`, `True`, `1e-05`, `'left'`. `None` for other text.
    fn literal(text: &str) -> Option<Value> {
        let quoted = |quote: char| text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
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

    /// As a list of arrays: the items of a tuple or list, or the slices of an array along its first axis.
    pub(crate) fn arrays(&self, op: &'static str) -> Result<Vec<NdArray>> {
        match self {
            Value::Tuple(items) | Value::List(items) => items.iter().map(|v| v.array(op)).collect(),
            Value::Array(a) if a.ndim() > 0 && a.shape()[0] > MOST_ARRAYS => Err(Error::value(
                op,
                format!("an array of {} rows is too long for a sequence of arrays (at most {MOST_ARRAYS}); use reshape", a.shape()[0]),
            )),
            Value::Array(a) if a.ndim() > 0 => {
                try_collect(op, (0..a.shape()[0] as isize).map(|i| a.index(&[crate::index::Item::At(i)])))?.into_iter().collect()
            }
            other => Err(Error::value(op, format!("expected a sequence of arrays, not {}", other.type_name()))),
        }
    }

    /// Python's name for the type of this value, for messages.
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
        }
    }

    /// The items of a tuple or list.
    pub fn items(&self) -> Option<&[Value]> {
        self.sequence().map(|items| &items[..])
    }

    pub(crate) fn sequence(&self) -> Option<&Items> {
        match self {
            Value::Tuple(v) | Value::List(v) => Some(v),
            _ => None,
        }
    }

    /// As an argument of an elementwise operation; a (nested) list of numbers becomes an array, as in NumPy.
    pub fn operand(&self, op: &'static str) -> Result<Operand> {
        match self {
            Value::Array(a) => Ok(Operand::Array(a.clone())),
            Value::Scalar(s) => Ok(Operand::Scalar(*s)),
            Value::Tuple(_) | Value::List(_) => Ok(Operand::Array(self.array(op)?)),
            other => Err(Error::value(op, format!("expected an array or a number, not {}", other.type_name()))),
        }
    }

    /// As an array (`numpy.asarray`): scalars become 0-d, nested lists are stacked.
    pub fn array(&self, op: &'static str) -> Result<NdArray> {
        self.array_as(op, None)
    }

    /// As an array of a given dtype (`numpy.asarray(a, dtype)`); an int that the dtype cannot hold is an error.
    pub fn array_as(&self, op: &'static str, dtype: Option<DType>) -> Result<NdArray> {
        match self {
            Value::Array(a) => dtype.map_or(Ok(a.clone()), |d| a.astype(d)),
            Value::Scalar(s) => {
                let dtype = dtype.unwrap_or(s.default_dtype());
                NdArray::scalar_as(s.checked_for(op, dtype)?, dtype)
            }
            Value::Tuple(items) | Value::List(items) => nested(op, items, dtype),
            other => Err(Error::value(op, format!("expected an array, not {}", other.type_name()))),
        }
    }

    /// As an int.
    pub fn int(&self, op: &'static str) -> Result<i128> {
        match self {
            Value::Scalar(s @ (Scalar::Int(_) | Scalar::Bool(_))) => s.as_int().ok_or_else(|| Error::value(op, "expected an integer")),
            Value::Array(a) if a.size() == 1 && (a.dtype().is_int() || a.dtype() == DType::Bool) => {
                a.item()?.as_int().ok_or_else(|| Error::value(op, "expected an integer"))
            }
            other => Err(Error::value(op, format!("expected an integer, not {}", other.type_name()))),
        }
    }

    /// As an `isize`.
    pub fn index(&self, op: &'static str) -> Result<isize> {
        let v = self.int(op)?;
        isize::try_from(v).map_err(|_| Error::value(op, format!("integer {v} is too large")))
    }
}

/// Calls `leaf` with each number of nested lists, in order, and finds their shape. Recurses once an axis.
struct Leaves<'a> {
    op: &'static str,
    shape: Vec<usize>,
    count: usize,
    leaf: &'a mut dyn FnMut(Scalar, DType) -> Result<()>,
}

impl Leaves<'_> {
    fn walk(&mut self, items: &[Value], depth: usize) -> Result<()> {
        let op = self.op;
        let ragged = || Error::value(op, "nested lists must all have the same lengths");
        if self.shape.len() <= depth {
            if self.count > 0 {
                return Err(ragged());
            }
            self.shape.push(items.len());
        } else if self.shape[depth] != items.len() {
            return Err(ragged());
        }
        for item in items {
            let (number, dtype) = match item {
                Value::Tuple(inner) | Value::List(inner) => {
                    self.walk(inner, depth + 1)?;
                    continue;
                }
                _ if self.shape.len() > depth + 1 => return Err(ragged()),
                Value::Scalar(s) => (*s, s.default_dtype()),
                Value::Array(a) if a.ndim() == 0 => (a.item()?, a.dtype()),
                other => return Err(Error::value(op, format!("expected numbers in a list, not {}", other.type_name()))),
            };
            self.count += 1;
            (self.leaf)(number, dtype)?;
        }
        Ok(())
    }
}

/// An array of nested lists of numbers (and arrays of one shape).
fn nested(op: &'static str, items: &Items, dtype: Option<DType>) -> Result<NdArray> {
    items.check_depth(op)?;
    if items.iter().any(|i| matches!(i, Value::Array(a) if a.ndim() > 0)) {
        let arrays: Result<Vec<NdArray>> = items.iter().map(|i| i.array_as(op, dtype)).collect();
        return crate::ops::manipulation::stack(&arrays?, 0);
    }
    let mut natural: Option<DType> = None;
    let mut promote = |_, dtype| {
        natural = Some(natural.map_or(dtype, |d| d.promote(dtype)));
        Ok(())
    };
    let mut leaves = Leaves { op, shape: Vec::new(), count: 0, leaf: &mut promote };
    leaves.walk(items, 0)?;
    let (shape, count) = (leaves.shape, leaves.count);
    let dtype = dtype.or(natural).unwrap_or(DType::F64);
    let item = dtype.itemsize();
    let mut host = HostBuffer::uninit(count * item)?;
    let mut places = host.as_mut_bytes().chunks_exact_mut(item);
    let mut store = |number: Scalar, _| {
        if let Some(place) = places.next() {
            place.copy_from_slice(&number.checked_for(op, dtype)?.to_bytes(dtype)[..item]);
        }
        Ok(())
    };
    Leaves { op, shape: Vec::new(), count: 0, leaf: &mut store }.walk(items, 0)?;
    NdArray::from_host(dtype, &shape, host)
}

/// Maximum number of arrays that a sequence argument is split into along its first axis.
const MOST_ARRAYS: usize = 1 << 20;

/// Arguments bound to a signature such as `a, axis=None, *, keepdims=False`.
pub struct Args {
    op: &'static str,
    bound: Vec<(&'static str, Option<Value>)>,
    /// Values of the parameters that were left out and have a literal as default.
    defaults: Vec<(&'static str, Value)>,
    /// Positional arguments beyond the named ones, where the signature ends in `*name`.
    rest: Vec<Value>,
}

impl Args {
    /// Binds arguments the way Python does; parameters before `/` are positional only, those after `*` are by keyword only, a
    /// last `*name` takes the rest.
    pub fn bind(op: &'static str, signature: &'static str, positional: Vec<Value>, keyword: Vec<(String, Value)>) -> Result<Args> {
        let mut bound: Vec<(&'static str, Option<Value>)> = Vec::new();
        let mut required = Vec::new();
        let mut defaults = Vec::new();
        let mut positional_max = None;
        let mut positional_only = 0;
        let mut takes_rest = false;
        for p in signature.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            if p == "/" {
                positional_only = bound.len();
            } else if p == "*" {
                positional_max = Some(bound.len());
            } else if p.starts_with('*') {
                takes_rest = true;
                positional_max = Some(bound.len());
            } else {
                let (name, default) = p.split_once('=').map_or((p, None), |(name, text)| (name.trim(), Some(text.trim())));
                required.push(default.is_none());
                defaults.extend(default.and_then(Value::literal).map(|value| (name, value)));
                bound.push((name, None));
            }
        }
        let max = positional_max.unwrap_or(bound.len());
        let given = positional.len();
        let mut values = positional.into_iter();
        for (slot, value) in bound.iter_mut().take(max).zip(values.by_ref()) {
            slot.1 = Some(value);
        }
        let rest: Vec<Value> = values.collect();
        if !rest.is_empty() && !takes_rest {
            return Err(Error::value(
                op,
                format!("takes at most {max} positional arguments, {given} given; its parameters are ({signature})"),
            ));
        }
        for (name, value) in keyword {
            if bound[..positional_only].iter().any(|(n, _)| *n == name) {
                return Err(Error::value(op, format!("argument '{name}' is positional only; the parameters are ({signature})")));
            }
            match bound.iter_mut().find(|(n, _)| *n == name) {
                Some((_, Some(_))) => return Err(Error::value(op, format!("argument '{name}' is given twice"))),
                Some(slot) => slot.1 = Some(value),
                None => return Err(Error::value(op, format!("unexpected keyword argument '{name}'; its parameters are ({signature})"))),
            }
        }
        if let Some(((name, _), _)) = bound.iter().zip(&required).find(|((_, v), required)| v.is_none() && **required) {
            return Err(Error::value(op, format!("argument '{name}' is missing; its parameters are ({signature})")));
        }
        Ok(Args { op, bound, defaults, rest })
    }

    /// The operation, for messages.
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// Positional arguments beyond the named ones.
    pub fn rest(&self) -> &[Value] {
        &self.rest
    }

    /// A parameter's value, if given and not `None`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.bound.iter().find(|(n, _)| *n == name).and_then(|(_, v)| v.as_ref()).filter(|v| !matches!(v, Value::None))
    }

    /// A parameter's value as given, or its default from the signature.
    pub fn value(&self, name: &str) -> Option<&Value> {
        let given = self.bound.iter().find(|(n, _)| *n == name).and_then(|(_, v)| v.as_ref());
        given.or_else(|| self.defaults.iter().find(|(n, _)| *n == name).map(|(_, v)| v))
    }

    /// Whether `None` was written for a parameter, where that differs from leaving it out.
    pub fn is_none(&self, name: &str) -> bool {
        self.bound.iter().any(|(n, v)| *n == name && matches!(v, Some(Value::None)))
    }

    fn need(&self, name: &str) -> Result<&Value> {
        self.get(name).ok_or_else(|| Error::value(self.op, format!("argument '{name}' is missing")))
    }

    /// An array argument.
    pub fn array(&self, name: &str) -> Result<NdArray> {
        self.need(name)?.array(self.op)
    }

    /// An array of indices. A list or tuple without numbers gives int64, not float64, as NumPy's conversion to integers does.
    pub fn indices(&self, name: &str) -> Result<NdArray> {
        let value = self.need(name)?;
        let array = value.array(self.op)?;
        if value.items().is_some() && array.size() == 0 { array.astype(DType::I64) } else { Ok(array) }
    }

    /// An array or weak scalar argument.
    pub fn operand(&self, name: &str) -> Result<Operand> {
        self.need(name)?.operand(self.op)
    }

    /// An optional array or weak scalar argument.
    pub fn operand_or_none(&self, name: &str) -> Result<Option<Operand>> {
        self.get(name).map(|v| v.operand(self.op)).transpose()
    }

    /// A list or tuple of arrays.
    pub fn arrays(&self, name: &str) -> Result<Vec<NdArray>> {
        self.need(name)?.arrays(self.op)
    }

    /// A number.
    pub fn scalar(&self, name: &str) -> Result<Scalar> {
        match self.need(name)? {
            Value::Scalar(s) => Ok(*s),
            Value::Array(a) if a.size() == 1 => a.item(),
            other => Err(Error::value(self.op, format!("'{name}' must be a number, not {}", other.type_name()))),
        }
    }

    /// An optional number.
    pub fn scalar_or(&self, name: &str, default: impl Into<Scalar>) -> Result<Scalar> {
        if self.get(name).is_some() { self.scalar(name) } else { Ok(default.into()) }
    }

    /// An optional int.
    pub fn int_or(&self, name: &str, default: isize) -> Result<isize> {
        self.get(name).map_or(Ok(default), |v| v.index(self.op))
    }

    /// An optional truth value.
    pub fn bool_or(&self, name: &str, default: bool) -> Result<bool> {
        match self.get(name) {
            None => Ok(default),
            Some(Value::Scalar(s)) => Ok(s.as_bool()),
            Some(other) => Err(Error::value(self.op, format!("'{name}' must be True or False, not {}", other.type_name()))),
        }
    }

    /// An optional dtype, given as a dtype or its name.
    pub fn dtype(&self, name: &str) -> Result<Option<DType>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::DType(d)) => Ok(Some(*d)),
            Some(Value::Str(s)) => DType::parse(s).map(Some),
            Some(other) => Err(Error::value(self.op, format!("'{name}' must be a dtype, not {}", other.type_name()))),
        }
    }

    /// A string.
    pub fn str(&self, name: &str) -> Result<&str> {
        match self.need(name)? {
            Value::Str(s) => Ok(s),
            other => Err(Error::value(self.op, format!("'{name}' must be a string, not {}", other.type_name()))),
        }
    }

    /// An optional int or tuple of ints (`axis`, `shift`); `None` when left out.
    pub fn ints(&self, name: &str) -> Result<Option<Vec<isize>>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Tuple(items) | Value::List(items)) => items.iter().map(|v| v.index(self.op)).collect::<Result<_>>().map(Some),
            Some(v) => Ok(Some(vec![v.index(self.op)?])),
        }
    }

    /// A shape: an int or a tuple of non-negative ints.
    pub fn shape(&self, name: &str) -> Result<Vec<usize>> {
        self.need(name)?;
        let to_extent = |n: isize| usize::try_from(n).map_err(|_| Error::value(self.op, format!("negative dimension {n} in '{name}'")));
        self.ints(name)?.unwrap_or_default().into_iter().map(to_extent).collect()
    }
}
