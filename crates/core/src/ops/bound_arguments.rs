//! Arguments of a function, bound to its parameters as Python does, for callers such as `eval`.

use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Operand;
use crate::ops::parameter_lists::{Parameters, ParsedParameters};
use crate::ops::python_value::Value;
use crate::scalar::Scalar;

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
        let ParsedParameters { list, positional_only, positional_max: max, takes_rest } = parameters.parsed_parameters();
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
        let args = Args { op, parameters: parameters.parsed_parameters(), positional, keyword: bound };
        if let Some((_, p)) =
            list.iter().enumerate().skip(given.min(*max)).find(|(i, p)| p.is_required && args.passed_argument(*i).is_none())
        {
            return Err(Error::value(op, format!("argument '{}' is missing; its parameters are ({parameters})", p.name)));
        }
        Ok(args)
    }

    /// Replaces the value of the parameter `name`.
    pub(crate) fn replace_argument(&mut self, name: &str, value: Value) {
        let Some(index) = self.parameter_index(name) else { return };
        match self.positional.get_mut(index) {
            Some(slot) if index < self.parameters.positional_max => *slot = value,
            _ => match self.keyword.iter_mut().find(|(at, _)| *at == index) {
                Some((_, slot)) => *slot = value,
                None => self.keyword.push((index, value)),
            },
        }
    }

    /// Returns the operation's name, for error messages.
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
    fn required_argument(&self, name: &str) -> Result<&Value> {
        self.get(name).ok_or_else(|| Error::value(self.op, format!("argument '{name}' is missing")))
    }

    /// Returns the argument `name`, an array.
    ///
    /// # Errors
    /// A missing argument, or one of another type.
    pub fn array(&self, name: &str) -> Result<NdArray> {
        self.required_argument(name)?.array(self.op)
    }

    /// Returns the argument `name`, an array of indices. As in NumPy's conversion to integers, an empty list gives int64, not float64.
    ///
    /// # Errors
    /// A missing argument, or one of another type.
    pub fn indices(&self, name: &str) -> Result<NdArray> {
        let value = self.required_argument(name)?;
        let array = value.array(self.op)?;
        if value.items().is_some() && array.size() == 0 { array.astype(DType::I64) } else { Ok(array) }
    }

    /// Returns the argument `name`, an array or a weak scalar.
    ///
    /// # Errors
    /// A missing argument, or one of another type.
    pub fn operand(&self, name: &str) -> Result<Operand> {
        self.required_argument(name)?.operand(self.op)
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
        self.required_argument(name)?.to_arrays(self.op)
    }

    /// Returns the argument `name`, a number or an array of one element, as a number.
    ///
    /// # Errors
    /// A missing argument, or one of another type.
    pub fn scalar(&self, name: &str) -> Result<Scalar> {
        match self.required_argument(name)? {
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
        self.get(name).map_or(Ok(default), |v| v.to_isize(self.op))
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
            Some(other) => {
                // `ones(2, 3)` for `ones((2, 3))`.
                let is_shape = matches!((self.op, other), ("empty" | "ones" | "zeros", Value::Scalar(_)));
                let advice = if is_shape { "; a shape is one argument, such as (2, 3)" } else { "" };
                Err(Error::value(self.op, format!("'{name}' must be a dtype, not {}{advice}", other.type_name())))
            }
        }
    }

    /// Returns the argument `name`, a string.
    ///
    /// # Errors
    /// A missing argument, or one of another type.
    pub fn str(&self, name: &str) -> Result<&str> {
        match self.required_argument(name)? {
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
            Some(value) => value.to_isizes(self.op).map(Some),
        }
    }

    /// Returns the argument `name`, an int, a sequence of non-negative ints or a 1-D integer array, as a shape.
    ///
    /// # Errors
    /// A missing argument, or one of another type.
    pub fn shape(&self, name: &str) -> Result<Vec<usize>> {
        self.required_argument(name)?;
        let to_extent = |n: isize| usize::try_from(n).map_err(|_| Error::value(self.op, format!("negative dimension {n} in '{name}'")));
        self.ints(name)?.unwrap_or_default().into_iter().map(to_extent).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_may_contain_commas() {
        static SIGNATURE: Parameters = Parameters::new("m, k=1, axes=(0, 1), *, parts=((0, -1), (2,)), sep=', '");
        let bound = Args::bind("f", &SIGNATURE, vec![2.into()], Vec::new()).unwrap();
        let Some(Value::Tuple(axes)) = bound.value("axes") else { panic!("{:?}", bound.value("axes")) };
        assert!(axes.iter().map(|v| v.to_isize("f").unwrap()).eq([0, 1]));
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
        let int = |value: Option<&Value>| value.map(|v| v.to_isize("f").unwrap());
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
        assert_eq!(bound.rest().iter().map(|v| v.to_isize("f").unwrap()).collect::<Vec<_>>(), [2, 3]);
        let one = Args::bind("f", &PARAMETERS, vec![1.into()], Vec::new()).unwrap();
        assert!(one.rest().is_empty());
    }
}
