//! Attributes and methods of arrays, numbers and dtypes.

use cuprum_core::function::Function;
use cuprum_core::host_buffer::{check_memory_available, try_collect, try_reserve};
use cuprum_core::ops::python_value::{MAX_SEQUENCE_VALUES, Object, SequenceItems, Value};
use cuprum_core::{Device, Error, Item, Kind, NdArray, Result, Scalar};

use crate::library_names::nearest_name;
use crate::unlocated_error::{Unlocated, UnlocatedError};

/// Names of methods that this module implements instead of a declared function.
const BUILTIN_METHODS: [&str; 4] = ["item", "tolist", "get", "to_device"];

const ARRAY_ATTRIBUTES: [&str; 14] =
    ["T", "mT", "real", "imag", "shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides", "device", "flat", "flags"];

/// Returns the value of the attribute `object.name`.
pub(crate) fn get_attribute(object: &Value, name: &str) -> Unlocated<Value> {
    match object {
        Value::Array(a) => Ok(match name {
            "T" => a.t()?.into(),
            "mT" => a.mt()?.into(),
            "real" => a.real()?.into(),
            "imag" => a.imag()?.into(),
            "shape" => Value::tuple(a.shape().iter().map(|&n| n.into())),
            "dtype" => Value::DType(a.dtype()),
            "ndim" => a.ndim().into(),
            "size" => a.size().into(),
            "itemsize" => a.dtype().itemsize().into(),
            "nbytes" => a.nbytes().into(),
            "strides" => {
                let item = a.dtype().itemsize() as isize;
                Value::Tuple(a.strides()?.iter().map(|s| (s * item).into()).collect())
            }
            "device" => Value::Str(a.device().to_string()),
            "flat" => a.ravel()?.into(),
            "flags" => {
                let stored = a.stored()?;
                let (c, f) = (stored.layout().is_c_contiguous(), stored.layout().is_f_contiguous());
                // The attributes `aligned` and `writeable` are true, because every array is aligned for its dtype and its elements can be
                // assigned.
                let field_names = &["c_contiguous", "f_contiguous", "contiguous", "fortran", "aligned", "writeable"];
                Value::named_tuple(field_names, [c, f, c, f && !c, true, true].map(Value::from))
            }
            _ => return Err(unknown_member_error(object, name)),
        }),
        Value::Scalar(s) => match (name, s) {
            ("real", Scalar::Complex(c)) => Ok(c.re.into()),
            ("imag", Scalar::Complex(c)) => Ok(c.im.into()),
            ("real", Scalar::Bool(b)) => Ok(i32::from(*b).into()),
            ("real", s) => Ok((*s).into()),
            ("imag", Scalar::Float(_)) => Ok(0.0.into()),
            ("imag", _) => Ok(0.into()),
            _ => Err(unknown_member_error(object, name)),
        },
        Value::DType(d) => match name {
            "name" => Ok(Value::Str(d.name().into())),
            "itemsize" => Ok(d.itemsize().into()),
            "kind" => Ok(Value::Str(
                match d.kind() {
                    Kind::Bool => "b",
                    Kind::Unsigned => "u",
                    Kind::Signed => "i",
                    Kind::Float => "f",
                    Kind::Complex => "c",
                }
                .into(),
            )),
            _ => Err(unknown_member_error(object, name)),
        },
        Value::Object(o) => get_object_attribute(&**o, name).unwrap_or_else(|| Err(unknown_member_error(object, name))),
        Value::Tuple(items) => items.named_field(name).cloned().ok_or_else(|| unknown_member_error(object, name)),
        _ => Err(unknown_member_error(object, name)),
    }
}

/// Returns the attribute `name` of an object, or `None` if it has no such attribute.
fn get_object_attribute(object: &dyn Object, name: &str) -> Option<Unlocated<Value>> {
    if let Some(array) = object.as_array() {
        let value = match name {
            "shape" => Some(Value::tuple(array.shape().iter().map(|&n| n.into()))),
            "dtype" => Some(Value::DType(array.dtype())),
            "ndim" => Some(array.ndim().into()),
            "size" => Some(array.size().into()),
            "nbytes" => Some(array.nbytes().into()),
            "device" => Some(Value::Str(array.device().to_string())),
            _ => None,
        };
        if value.is_some() {
            return value.map(Ok);
        }
    }
    object.attribute(name).map(|value| Ok(value?))
}

/// Returns the declared function that implements the method `name`: `ndarray.name`, or the function `name` if it is also a method.
pub(crate) fn find_method_function(name: &str) -> Option<&'static Function> {
    Function::find(&format!("ndarray.{name}")).or_else(|| Function::find(name).filter(|f| f.is_method))
}

/// Returns the names of all array methods that declared functions implement (see [`find_method_function`]).
fn declared_method_names() -> impl Iterator<Item = &'static str> {
    Function::paths().filter_map(|path| match path.strip_prefix("ndarray.") {
        Some(name) => Some(name),
        None => find_method_function(path).map(|_| path),
    })
}

/// Returns the error for an unknown attribute or method.
fn unknown_member_error(object: &Value, name: &str) -> UnlocatedError {
    if !matches!(object, Value::Array(_)) {
        return UnlocatedError::type_error(format!("'{}' has no attribute `{name}`", object.type_name()));
    }
    if BUILTIN_METHODS.contains(&name) || find_method_function(name).is_some() {
        return UnlocatedError::type_error(format!("`{name}` is a method")).with_help(format!("call it: `.{name}()`"));
    }
    let error = UnlocatedError::type_error(format!("arrays have no attribute or method `{name}`"));
    let known = ARRAY_ATTRIBUTES.into_iter().chain(BUILTIN_METHODS).chain(declared_method_names());
    match (Function::find(name), nearest_name(name, known)) {
        (Some(_), _) => error.with_help(format!("it is a function: `{name}(a)`")),
        (_, Some(near)) => error.with_help(format!("did you mean `{near}`?")),
        _ => error,
    }
}

/// Calls the method `object.name(...)`.
pub(crate) fn call_method(object: Value, name: &str, positional: Vec<Value>, keyword: Vec<(String, Value)>) -> Unlocated<Value> {
    let array = match &object {
        Value::Array(a) => a.clone(),
        Value::Scalar(s) if matches!(name, "conjugate" | "conj") => {
            return Ok(match s {
                Scalar::Complex(c) => c.conj().into(),
                s => (*s).into(),
            });
        }
        Value::Scalar(_) if name == "item" => return Ok(object),
        Value::Object(_) => return call_object_method(object, name, positional, keyword),
        _ => return Err(unknown_member_error(&object, name)),
    };
    let no_keywords = |keyword: &[(String, Value)]| match keyword.first() {
        Some((unexpected, _)) => Err(UnlocatedError::type_error(format!("`{name}` has no keyword argument '{unexpected}'"))),
        None => Ok(()),
    };
    match name {
        "item" => {
            no_keywords(&keyword)?;
            let at = positional.iter().map(|v| v.to_isize("item")).collect::<Result<Vec<_>, _>>()?;
            let one = match &at[..] {
                [] => array,
                [i] => array.ravel()?.index(*i)?,
                at => array.index(&at.iter().map(|&i| Item::At(i)).collect::<Vec<_>>())?,
            };
            Ok(one.item()?.into())
        }
        "tolist" => {
            no_keywords(&keyword)?;
            Ok(array_to_nested_lists(&array)?)
        }
        "get" => {
            no_keywords(&keyword)?;
            Ok(array.to_device(Device::CPU)?.into())
        }
        "to_device" => match &positional[..] {
            [Value::Str(device)] => {
                let device = Device::parse(device).map_err(|e| e.with_function_name("to_device"))?;
                Ok(array.to_device(device)?.into())
            }
            _ => Err(UnlocatedError::type_error("to_device takes the name of a device, such as 'cpu' or 'cuda:0'")),
        },
        // For `a.reshape(2, -1)` and `a.transpose(1, 0)`, the arguments are collected into one tuple of the shape or axes.
        "reshape" | "transpose" if positional.len() > 1 => call_declared_method(object, name, vec![Value::tuple(positional)], keyword),
        _ if find_method_function(name).is_some() => call_declared_method(object, name, positional, keyword),
        _ => match get_attribute(&object, name) {
            Ok(_) => Err(UnlocatedError::type_error(format!("`{name}` is an attribute, not a method"))
                .with_help(format!("write `.{name}` without parentheses"))),
            Err(unknown) => Err(unknown),
        },
    }
}

/// Returns the elements of `array` as nested lists in C order, or the element of a 0-d array. Builds the lists from the last axis up.
fn array_to_nested_lists(array: &NdArray) -> Result<Value> {
    const OP: &str = "tolist";
    let (shape, dtype) = (array.shape(), array.dtype());
    // The number of lists at each nesting level.
    let lists: Vec<usize> = shape.iter().scan(1usize, |count, &n| Some(std::mem::replace(count, count.saturating_mul(n)))).collect();
    let values = lists.iter().copied().fold(array.size(), usize::saturating_add);
    if values > MAX_SEQUENCE_VALUES {
        return Err(Error::value(
            OP,
            format!("{values} values are too many for a list (at most {MAX_SEQUENCE_VALUES}); keep them in the array"),
        ));
    }
    // Memory for a value per element and list, plus a header of 64 bytes per list (reference counts, length and nesting depth).
    let headers = (values - array.size()).saturating_mul(size_of::<[usize; 8]>());
    check_memory_available(OP, values.saturating_mul(size_of::<Value>()).saturating_add(headers))?;
    let bytes = array.to_bytes()?;
    let mut numbers = bytes.chunks_exact(dtype.itemsize()).map(|b| Value::from(Scalar::from_bytes(dtype, b)));
    let mut extents = lists.iter().copied().zip(shape.iter().copied()).rev();
    let Some((count, extent)) = extents.next() else { return Ok(numbers.next().unwrap_or(Value::None)) };
    let mut values = group_into_lists(OP, &mut numbers, count, extent)?;
    for (count, extent) in extents {
        values = group_into_lists(OP, &mut values.into_iter(), count, extent)?;
    }
    Ok(values.pop().unwrap_or(Value::None))
}

/// Groups the next `count * extent` items into `count` lists of `extent` items each.
fn group_into_lists(op: &'static str, items: &mut dyn Iterator<Item = Value>, count: usize, extent: usize) -> Result<Vec<Value>> {
    let mut lists = Vec::new();
    try_reserve(op, &mut lists, count)?;
    for _ in 0..count {
        lists.push(Value::List(SequenceItems::new(op, try_collect(op, items.take(extent))?)?));
    }
    Ok(lists)
}

/// Returns the function of the object's namespace that implements the object's method `name`. Functions that set a seed are not methods.
pub(crate) fn find_object_method(object: &dyn Object, name: &str) -> Option<&'static Function> {
    Function::find(&format!("{}.{name}", object.namespace())).filter(|_| !["seed", "default_rng"].contains(&name))
}

/// Calls the method `object.name(...)`: the function `name` of the object's namespace. The object becomes the first argument, or for random
/// generators the keyword argument `seed`.
fn call_object_method(object: Value, name: &str, mut positional: Vec<Value>, mut keyword: Vec<(String, Value)>) -> Unlocated<Value> {
    let method = if let Value::Object(object) = &object { find_object_method(&**object, name) } else { None };
    let Some(function) = method else {
        return Err(match get_attribute(&object, name) {
            Ok(_) => UnlocatedError::type_error(format!("`{name}` is an attribute, not a method"))
                .with_help(format!("write `.{name}` without parentheses")),
            Err(unknown) => unknown,
        });
    };
    if function.parameters.text.starts_with("self") {
        positional.insert(0, object);
    } else if keyword.iter().any(|(name, _)| name == "seed") {
        return Err(UnlocatedError::type_error(format!("the method `{name}` has no keyword argument 'seed'")));
    } else {
        keyword.push(("seed".into(), object));
    }
    Ok(function.call(positional, keyword)?)
}

fn call_declared_method(array: Value, name: &str, positional: Vec<Value>, keyword: Vec<(String, Value)>) -> Unlocated<Value> {
    match find_method_function(name) {
        Some(function) => Ok(function.call([vec![array], positional].concat(), keyword)?),
        None => Err(unknown_member_error(&array, name)),
    }
}
