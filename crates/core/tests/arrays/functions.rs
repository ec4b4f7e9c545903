//! Functions declared by `#[numpy(..)]` outside of the core crate.

use cuprum::function::Function;
use cuprum_backend_cpu as _;

use cuprum::{DType, NdArray, Operand, Result, Scalar, Value, add, multiply, numpy};

/// Sum of two arrays, times a factor.
///
/// `Function::doc` has only the first paragraph, so it does not contain this one.
#[numpy("test.scaled_sum(x1, x2, /, factor=2, *, dtype=None)", aliases("test.scaled"))]
pub fn scaled_sum(x1: impl Into<Operand>, x2: &NdArray, factor: f64, dtype: Option<DType>) -> Result<NdArray> {
    let scaled = multiply(add(x1, x2)?, factor)?;
    dtype.map_or(Ok(scaled.clone()), |d| scaled.astype(d))
}

/// Number of arrays, and whether a label was given, see [`scaled_sum`].
#[numpy("test.count(arrays, label='none', *shape)")]
pub fn count(arrays: &[NdArray], label: &str) -> Result<(usize, bool)> {
    Ok((arrays.len(), label != "none"))
}

/// A number, read by a custom `call`.
#[numpy("test.custom_call(x)", call = |args: &cuprum::Args| Ok(Value::Scalar(args.scalar("x")?)))]
pub fn custom_call(_x: f64) -> Result<f64> {
    Ok(0.0)
}

fn array() -> NdArray {
    NdArray::from_slice(&[1.0f64, 2.0]).unwrap()
}

fn call(path: &str, positional: Vec<Value>, keyword: &[(&str, Value)]) -> Result<Value> {
    let keyword = keyword.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
    Function::find(path).unwrap().call(positional, keyword)
}

fn numbers(value: Value) -> Vec<f64> {
    value.array("test").unwrap().astype(DType::F64).unwrap().to_vec().unwrap()
}

#[test]
fn declarations_have_path_signature_and_summary() {
    let function = Function::find("test.scaled_sum").unwrap();
    assert_eq!((function.namespace, function.name), ("test", "scaled_sum"));
    assert_eq!(function.parameters.text, "x1, x2, /, factor=2, *, dtype=None");
    assert_eq!(function.doc, "Sum of two arrays, times a factor.");
    assert!(function.rust.ends_with("::scaled_sum"), "{}", function.rust);
    assert_eq!(Function::find("test.count").unwrap().doc, "Number of arrays, and whether a label was given, see `scaled_sum`.");
    assert!(std::ptr::eq(Function::find("test.scaled").unwrap(), function));
    assert!(Function::find("scaled_sum").is_none());
}

#[test]
fn arguments_are_read_by_position_keyword_and_default() {
    let (a, one) = (Value::from(array()), Value::from(1));
    assert_eq!(numbers(call("test.scaled_sum", vec![one.clone(), a.clone()], &[]).unwrap()), [4.0, 6.0]);
    assert_eq!(numbers(call("test.scaled_sum", vec![one.clone(), a.clone(), 3.into()], &[]).unwrap()), [6.0, 9.0]);
    let keyword = [("factor", Value::from(0.5)), ("dtype", Value::Str("float32".into()))];
    let result = call("test.scaled_sum", vec![one, a.clone()], &keyword).unwrap().array("test").unwrap();
    assert_eq!((result.dtype(), result.to_vec::<f32>().unwrap()), (DType::F32, vec![1.0, 1.5]));
    let Value::Tuple(items) = call("test.count", vec![Value::tuple([a.clone(), a])], &[]).unwrap() else { panic!() };
    assert!(matches!(items[..], [Value::Scalar(Scalar::Int(2)), Value::Scalar(Scalar::Bool(false))]), "{items:?}");
    assert_eq!(numbers(call("test.custom_call", vec![7.into()], &[]).unwrap()), [7.0]);
}

#[test]
fn wrong_arguments_name_the_parameter() {
    let a = Value::from(array());
    let message = |result: Result<Value>| result.unwrap_err().to_string();
    assert!(message(call("test.scaled_sum", vec![a.clone()], &[])).contains("'x2' is missing"));
    assert!(message(call("test.scaled_sum", vec![a.clone()], &[("x2", a.clone())])).contains("'x2' is positional only"));
    let factor = [("factor", Value::Str("much".into()))];
    assert!(message(call("test.scaled_sum", vec![a.clone(), a.clone()], &factor)).contains("'factor' must be a real number, not str"));
    assert!(message(call("test.scaled_sum", vec![a.clone(), a.clone()], &[("by", 2.into())])).contains("unexpected keyword argument 'by'"));
    assert!(message(call("test.scaled_sum", vec![a.clone(), a.clone(), a.clone(), a], &[])).contains("at most 3 positional"));
}
