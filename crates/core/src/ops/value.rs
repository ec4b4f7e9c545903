//! Python-like values and argument binding: how `eval` and other callers by name reach the operations.

use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Operand;
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
    Tuple(Vec<Value>),
    /// A list.
    List(Vec<Value>),
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

/// An array of nested lists of numbers (and arrays of one shape).
fn nested(op: &'static str, items: &[Value], dtype: Option<DType>) -> Result<NdArray> {
    fn leaves(op: &'static str, items: &[Value], depth: usize, shape: &mut Vec<usize>, out: &mut Vec<(Scalar, DType)>) -> Result<()> {
        let ragged = || Error::value(op, "nested lists must all have the same lengths");
        if shape.len() <= depth {
            if !out.is_empty() {
                return Err(ragged());
            }
            shape.push(items.len());
        } else if shape[depth] != items.len() {
            return Err(ragged());
        }
        for item in items {
            match item {
                Value::Tuple(inner) | Value::List(inner) => leaves(op, inner, depth + 1, shape, out)?,
                _ if shape.len() > depth + 1 => return Err(ragged()),
                Value::Scalar(s) => out.push((*s, s.default_dtype())),
                Value::Array(a) if a.ndim() == 0 => out.push((a.item()?, a.dtype())),
                other => return Err(Error::value(op, format!("expected numbers in a list, not {}", other.type_name()))),
            }
        }
        Ok(())
    }
    if items.iter().any(|i| matches!(i, Value::Array(a) if a.ndim() > 0)) {
        let arrays: Result<Vec<NdArray>> = items.iter().map(|i| i.array_as(op, dtype)).collect();
        return crate::ops::manipulation::stack(&arrays?, 0);
    }
    let (mut shape, mut values) = (Vec::new(), Vec::new());
    leaves(op, items, 0, &mut shape, &mut values)?;
    let natural = || values.iter().map(|(_, d)| *d).reduce(DType::promote).unwrap_or(DType::F64);
    let dtype = dtype.unwrap_or_else(natural);
    let mut bytes = Vec::with_capacity(values.len() * dtype.itemsize());
    for (v, _) in &values {
        bytes.extend_from_slice(&v.checked_for(op, dtype)?.to_bytes(dtype)[..dtype.itemsize()]);
    }
    NdArray::from_bytes(dtype, shape, &bytes)
}

/// Arguments bound to a signature such as `a, axis=None, *, keepdims=False`.
pub struct Args {
    op: &'static str,
    bound: Vec<(&'static str, Option<Value>)>,
    /// Positional arguments beyond the named ones, where the signature ends in `*name`.
    rest: Vec<Value>,
}

impl Args {
    /// Binds arguments the way Python does; parameters after `*` are by keyword only, a last `*name` takes the rest.
    pub fn bind(op: &'static str, signature: &'static str, positional: Vec<Value>, keyword: Vec<(String, Value)>) -> Result<Args> {
        let mut bound: Vec<(&'static str, Option<Value>)> = Vec::new();
        let mut required = Vec::new();
        let mut positional_max = None;
        let mut takes_rest = false;
        for p in signature.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            if p == "*" {
                positional_max = Some(bound.len());
            } else if p.starts_with('*') {
                takes_rest = true;
                positional_max = Some(bound.len());
            } else {
                let name = p.split('=').next().unwrap_or(p).trim();
                required.push(!p.contains('='));
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
            match bound.iter_mut().find(|(n, _)| *n == name) {
                Some((_, Some(_))) => return Err(Error::value(op, format!("argument '{name}' is given twice"))),
                Some(slot) => slot.1 = Some(value),
                None => return Err(Error::value(op, format!("unexpected keyword argument '{name}'; its parameters are ({signature})"))),
            }
        }
        if let Some(((name, _), _)) = bound.iter().zip(&required).find(|((_, v), required)| v.is_none() && **required) {
            return Err(Error::value(op, format!("argument '{name}' is missing; its parameters are ({signature})")));
        }
        Ok(Args { op, bound, rest })
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
        match self.need(name)? {
            Value::Tuple(items) | Value::List(items) => items.iter().map(|v| v.array(self.op)).collect(),
            Value::Array(a) if a.ndim() > 0 => (0..a.shape()[0] as isize).map(|i| a.index(&[crate::index::Item::At(i)])).collect(),
            other => Err(Error::value(self.op, format!("expected a sequence of arrays, not {}", other.type_name()))),
        }
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
