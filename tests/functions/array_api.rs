//! Every name of the Python array API standard (2025.12) is in `eval` and in Rust. `scripts/array_api_names.py` writes the list.

use std::collections::BTreeSet;

use cuprum::core::ops::python_value::Value;
use cuprum::expressions::Session;
use cuprum::function::Function;
use cuprum::{DType, Device, NdArray, NewAxis, Result, array, s};

const NAMES: &str = include_str!("array_api.txt");

/// Returns the names of a kind.
fn names(kind: &str) -> Vec<&'static str> {
    NAMES.lines().filter_map(|line| line.split_once(' ').filter(|(k, _)| *k == kind)).map(|(_, name)| name).collect()
}

/// Returns the parameters of a signature that can be passed by keyword.
fn keywords(signature: &str) -> impl Iterator<Item = &str> {
    let after = signature.rsplit_once("/, ").or(signature.strip_suffix('/').map(|_| ("", ""))).map_or(signature, |(_, rest)| rest);
    let names = after.split(',').map(|p| p.trim().split('=').next().unwrap_or_default());
    names.filter(|name| !name.is_empty() && !name.starts_with('*') && !name.contains(['\'', ')', '(']))
}

#[test]
fn functions_are_declared_with_the_keywords_of_the_standard() {
    let rust: BTreeSet<String> = super::PATHS.iter().map(|path| path.replace(' ', "")).collect();
    let functions = names("function");
    assert_eq!(functions.len(), 174);
    let mut missing = Vec::new();
    for signature in functions {
        let (path, parameters) = signature.trim_end_matches(')').split_once('(').unwrap();
        let Some(function) = Function::find(path) else {
            missing.push(path.to_owned());
            continue;
        };
        if !rust.contains(&super::rust_path(function)) {
            missing.push(format!("{path} in Rust"));
        }
        let declared: BTreeSet<&str> =
            function.parameters.text.split(',').map(|p| p.trim().split('=').next().unwrap_or_default()).collect();
        missing.extend(keywords(parameters).filter(|name| !declared.contains(name)).map(|name| format!("{path}({name}=)")));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Returns a script that uses an operator of the array object on `a` and `i`, arrays of floats and of integers.
fn script(operator: &str) -> Option<&'static str> {
    Some(match operator {
        "__abs__" => "abs(a)",
        "__add__" => "a + a",
        "__and__" => "i & i",
        "__array_namespace__" => "np.sum(a)",
        "__bool__" => "bool(i[1] > 0)",
        "__complex__" => "complex(a[0])",
        "__dlpack__" => "np.from_dlpack(a)",
        "__dlpack_device__" => "np.from_dlpack(a, device=a.device)",
        "__eq__" => "a == a",
        "__float__" => "float(a[0])",
        "__floordiv__" => "a // 2",
        "__ge__" => "a >= a",
        "__getitem__" => "a[0:1]",
        "__gt__" => "a > a",
        "__index__" => "[10, 20, 30][i[1]]",
        "__int__" => "int(i[1])",
        "__invert__" => "~i",
        "__le__" => "a <= a",
        "__lshift__" => "i << 1",
        "__lt__" => "a < a",
        "__matmul__" => "a @ a",
        "__mod__" => "a % 2",
        "__mul__" => "a * a",
        "__ne__" => "a != a",
        "__neg__" => "-a",
        "__or__" => "i | i",
        "__pos__" => "+a",
        "__pow__" => "a ** 2",
        "__rshift__" => "i >> 1",
        "__setitem__" => "a[0] = 5; a",
        "__sub__" => "a - a",
        "__truediv__" => "a / 2",
        "__xor__" => "i ^ i",
        _ => return None,
    })
}

/// Uses the Rust form of an operator. Returns `None` for an unknown one.
#[allow(clippy::eq_op)] // an operator needs two operands, and one array is enough
fn rust_operator(operator: &str, a: &NdArray, i: &NdArray) -> Result<Option<NdArray>> {
    let number = || i.index(1)?.item();
    Ok(Some(match operator {
        "__abs__" => a.abs()?,
        "__add__" => a + a,
        "__and__" => i & i,
        "__array_namespace__" => cuprum::sum(a, ())?,
        "__bool__" => NdArray::scalar(number()?.as_bool())?,
        "__complex__" => NdArray::scalar(number()?.as_complex())?,
        "__dlpack__" => {
            let exported = cuprum_dlpack::export(a).map_err(|e| cuprum::Error::value("export", e.to_string()))?;
            drop(exported);
            a.clone()
        }
        "__dlpack_device__" => {
            let device = cuprum_dlpack::device_of(a).map_err(|e| cuprum::Error::value("device_of", e.to_string()))?;
            NdArray::scalar(device.device_id)?
        }
        "__eq__" => a.equal(a)?,
        "__float__" => NdArray::scalar(number()?.as_f64())?,
        "__floordiv__" => a.floor_divide(2)?,
        "__ge__" => a.greater_equal(a)?,
        "__getitem__" => a.index(s![0..1])?,
        "__gt__" => a.greater(a)?,
        "__index__" | "__int__" => NdArray::scalar(number()?.as_int().unwrap_or(0) as i64)?,
        "__invert__" => !i,
        "__le__" => a.less_equal(a)?,
        "__lshift__" => i << 1,
        "__lt__" => a.less(a)?,
        "__matmul__" => a.matmul(a)?,
        "__mod__" => a % 2,
        "__mul__" => a * a,
        "__ne__" => a.not_equal(a)?,
        "__neg__" => -a,
        "__or__" => i | i,
        "__pos__" => cuprum::positive(a)?,
        "__pow__" => a.power(2)?,
        "__rshift__" => i >> 1,
        "__setitem__" => {
            let mut changed = a.clone();
            changed.assign(0, 5)?;
            changed
        }
        "__sub__" => a - a,
        "__truediv__" => a / 2,
        "__xor__" => i ^ i,
        _ => return Ok(None),
    }))
}

fn session() -> Session {
    let mut session = Session::new();
    session.run("import numpy as np\na = np.array([1.5, -2.0]); m = np.ones((2, 3)); i = np.array([3, 1])").unwrap();
    session
}

#[test]
fn the_array_object_has_every_operator() {
    let (a, i) = (array![1.5, -2.0], array![3i64, 1]);
    let operators = names("operator");
    assert!(operators.len() > 30, "{}", operators.len());
    for operator in operators {
        let source = script(operator).unwrap_or_else(|| panic!("{operator} has no expression"));
        let mut session = session();
        if let Err(error) = session.run(source) {
            panic!("{operator}: {error}");
        }
        assert!(rust_operator(operator, &a, &i).unwrap().is_some(), "{operator} has no form in Rust");
    }
}

#[test]
fn the_array_object_has_every_attribute_and_method() {
    let m = cuprum::ones([2, 3], DType::F64).unwrap();
    for attribute in names("attribute") {
        let found = session().run(&format!("m.{attribute}")).unwrap_or_else(|error| panic!("{attribute}: {error}"));
        // Each arm is the Rust form.
        let rust = match attribute {
            "T" => m.t().unwrap().shape() == [3, 2],
            "mT" => m.mt().unwrap().shape() == [3, 2],
            "device" => m.device() == Device::CPU,
            "dtype" => m.dtype() == DType::F64,
            "ndim" => m.ndim() == 2,
            "shape" => m.shape() == [2, 3],
            "size" => m.size() == 6,
            _ => false,
        };
        assert!(rust && !matches!(found, Some(Value::None) | None), "{attribute}");
    }
    for method in names("method") {
        assert_eq!(method, "to_device");
        session().run("m.to_device('cpu')").unwrap();
        assert_eq!(m.to_device(Device::CPU).unwrap(), m);
    }
}

#[test]
fn constants_and_dtypes_have_their_names() {
    for constant in names("constant") {
        session().run(&format!("np.{constant}")).unwrap_or_else(|error| panic!("{constant}: {error}"));
        let rust: Option<f64> = match constant {
            "e" => Some(std::f64::consts::E),
            "inf" => Some(f64::INFINITY),
            "nan" => Some(f64::NAN),
            "pi" => Some(std::f64::consts::PI),
            "newaxis" => array![1.0].index(s![NewAxis]).ok().map(|a| a.ndim() as f64),
            _ => None,
        };
        assert!(rust.is_some(), "{constant}");
    }
    for dtype in names("dtype") {
        let found = session().run(&format!("np.{dtype}")).unwrap();
        assert!(matches!(found, Some(Value::DType(d)) if d == DType::parse(dtype).unwrap() && d.name() == dtype), "{dtype}");
    }
}
