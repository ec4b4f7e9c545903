//! What stands behind a dot: attributes and methods of arrays, numbers and dtypes.

use cuprum_core::ops::value::{Args, Value};
use cuprum_core::{Device, Kind, Scalar, clip};

use crate::fault::{Checked, Fault};
use crate::functions::{matrix_transpose, shape};
use crate::library::{self, Member, call_op, nearest};

/// Methods of `numpy.ndarray` that are the function of the same name with the array as its first argument.
const METHODS: [&str; 36] = [
    "all",
    "any",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "astype",
    "clip",
    "conj",
    "conjugate",
    "copy",
    "cumprod",
    "cumsum",
    "diagonal",
    "dot",
    "flatten",
    "max",
    "mean",
    "min",
    "nonzero",
    "partition",
    "prod",
    "ravel",
    "repeat",
    "reshape",
    "round",
    "searchsorted",
    "sort",
    "squeeze",
    "std",
    "sum",
    "swapaxes",
    "take",
    "trace",
    "transpose",
    "var",
];

/// Methods with bodies of their own.
const OWN_METHODS: [&str; 4] = ["item", "tolist", "get", "to_device"];

const ATTRIBUTES: [&str; 12] = ["T", "mT", "real", "imag", "shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides", "device"];

/// `object.name`
pub(crate) fn attribute(object: &Value, name: &str) -> Checked<Value> {
    match object {
        Value::Array(a) => Ok(match name {
            "T" => a.t()?.into(),
            "mT" => matrix_transpose(a)?.into(),
            "real" => a.real()?.into(),
            "imag" => a.imag()?.into(),
            "shape" => shape(a),
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
            _ => return Err(missing(object, name)),
        }),
        Value::Scalar(s) => match (name, s) {
            ("real", Scalar::Complex(c)) => Ok(c.re.into()),
            ("imag", Scalar::Complex(c)) => Ok(c.im.into()),
            ("real", Scalar::Bool(b)) => Ok(i32::from(*b).into()),
            ("real", s) => Ok((*s).into()),
            ("imag", Scalar::Float(_)) => Ok(0.0.into()),
            ("imag", _) => Ok(0.into()),
            _ => Err(missing(object, name)),
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
            _ => Err(missing(object, name)),
        },
        _ => Err(missing(object, name)),
    }
}

/// Whether arrays have a method of this name.
fn is_method(name: &str) -> bool {
    OWN_METHODS.contains(&name) || METHODS.contains(&name) && library::lookup(name).is_some()
}

/// What to say of an attribute or method that is not there.
fn missing(object: &Value, name: &str) -> Fault {
    if !matches!(object, Value::Array(_)) {
        return Fault::typed(format!("'{}' has no attribute `{name}`", object.type_name()));
    }
    if is_method(name) {
        return Fault::typed(format!("`{name}` is a method")).help(format!("call it: `.{name}()`"));
    }
    let fault = Fault::typed(format!("arrays have no attribute or method `{name}`"));
    let known = ATTRIBUTES.into_iter().chain(OWN_METHODS).chain(METHODS);
    match (library::lookup(name), nearest(name, known)) {
        (Some(Member::Op(_) | Member::Function(_)), _) => fault.help(format!("it is a function: `{name}(a)`")),
        (_, Some(near)) => fault.help(format!("did you mean `{near}`?")),
        _ => fault,
    }
}

/// `object.name(...)`
pub(crate) fn call_method(object: Value, name: &str, positional: Vec<Value>, keyword: Vec<(String, Value)>) -> Checked<Value> {
    let array = match &object {
        Value::Array(a) => a.clone(),
        Value::Scalar(s) if matches!(name, "conjugate" | "conj") => {
            return Ok(match s {
                Scalar::Complex(c) => c.conj().into(),
                s => (*s).into(),
            });
        }
        Value::Scalar(_) if name == "item" => return Ok(object),
        _ => return Err(missing(&object, name)),
    };
    let no_keywords = |keyword: &[(String, Value)]| match keyword.first() {
        Some((unexpected, _)) => Err(Fault::typed(format!("`{name}` has no keyword argument '{unexpected}'"))),
        None => Ok(()),
    };
    match name {
        "item" => {
            no_keywords(&keyword)?;
            let at = positional.iter().map(|v| v.index("item")).collect::<Result<Vec<_>, _>>()?;
            let one = match &at[..] {
                [] => array,
                [i] => array.ravel()?.index(&[(*i).into()])?,
                at => array.index(&at.iter().map(|&i| i.into()).collect::<Vec<_>>())?,
            };
            Ok(one.item()?.into())
        }
        "tolist" => {
            no_keywords(&keyword)?;
            let items = array.to_bytes()?;
            let mut items = items.chunks_exact(array.dtype().itemsize()).map(|b| Scalar::from_bytes(array.dtype(), b));
            Ok(nested(array.shape(), &mut items))
        }
        "get" => {
            no_keywords(&keyword)?;
            Ok(array.to_device(Device::CPU)?.into())
        }
        "to_device" => match &positional[..] {
            [Value::Str(device)] => Ok(array.to_device(Device::parse(device)?)?.into()),
            _ => Err(Fault::typed("to_device takes the name of a device, such as 'cpu' or 'cuda:0'")),
        },
        // NumPy's methods leave real numbers and bool unchanged, its functions make bool int8.
        "conj" | "conjugate" if positional.is_empty() => {
            no_keywords(&keyword)?;
            Ok(array.conj()?.into())
        }
        "clip" => {
            let args = Args::bind("clip", "min=None, max=None", positional, keyword)?;
            Ok(clip(array, args.operand_or_none("min")?, args.operand_or_none("max")?)?.into())
        }
        // `a.reshape(2, -1)` and `a.transpose(1, 0)`: the extents or axes are arguments of their own.
        "reshape" | "transpose" if positional.len() > 1 => with_array(object, name, vec![Value::Tuple(positional)], keyword),
        _ if is_method(name) => with_array(object, name, positional, keyword),
        _ => match attribute(&object, name) {
            Ok(_) => {
                Err(Fault::typed(format!("`{name}` is an attribute, not a method")).help(format!("write `.{name}` without parentheses")))
            }
            Err(missing) => Err(missing),
        },
    }
}

/// Elements in C order as nested lists; without axes, the element.
fn nested(shape: &[usize], items: &mut impl Iterator<Item = Scalar>) -> Value {
    match shape {
        [] => items.next().unwrap_or(Scalar::Int(0)).into(),
        [n, inner @ ..] => Value::List((0..*n).map(|_| nested(inner, items)).collect()),
    }
}

fn with_array(array: Value, name: &str, positional: Vec<Value>, keyword: Vec<(String, Value)>) -> Checked<Value> {
    match library::lookup(name) {
        Some(Member::Op(op)) => call_op(op, [vec![array], positional].concat(), keyword),
        _ => Err(missing(&array, name)),
    }
}
