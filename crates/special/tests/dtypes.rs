//! The dtypes of results, by SciPy's rules and by the keyword `dtype`.

use cuprum_core::function::Function;
use cuprum_core::{DType, NdArray, Result, Value, ones};
use cuprum_special as special;

#[test]
fn each_argument_casts_safely_to_float32() -> Result<()> {
    let (i8, i16, u16) = (ones(1, DType::I8)?, ones(1, DType::I16)?, ones(1, DType::U16)?);
    for (a, b) in [(&u16, &i8), (&i16, &u16)] {
        for result in [special::huber(a, b)?, special::jv(a, b)?, special::zeta(a, Some(b))?, special::betainc(1, a, b)?] {
            assert_eq!(result.dtype(), DType::F32);
        }
    }
    assert_eq!(special::huber(&u16, ones(1, DType::I32)?)?.dtype(), DType::F64);
    assert_eq!(special::huber(&i8, 1.0)?.dtype(), DType::F64);
    Ok(())
}

/// Calls a function as `eval` does, with the keywords `dtype` and `casting`.
fn call(path: &str, args: &[&NdArray], dtype: DType, casting: &str) -> Result<NdArray> {
    let function = Function::find(path).unwrap_or_else(|| panic!("{path} is not declared"));
    let args = args.iter().map(|a| Value::Array((*a).clone())).collect();
    let keywords = vec![("dtype".to_owned(), Value::DType(dtype)), ("casting".to_owned(), Value::Str(casting.to_owned()))];
    function.call(args, keywords)?.array("call")
}

#[test]
fn the_keyword_dtype_converts_all_arguments() -> Result<()> {
    let (x, n) = (NdArray::from_slice(&[0.5, 0.25])?, NdArray::from_slice(&[1, 5])?);
    assert_eq!(call("special.gamma", &[&x], DType::F32, "same_kind")?.to_vec::<f32>()?, [1.7724539, 3.6256099]);
    assert_eq!(call("special.gamma", &[&n], DType::F32, "same_kind")?.to_vec::<f32>()?, [1.0, 24.0]);
    assert_eq!(call("special.gamma", &[&x.astype(DType::F32)?], DType::F64, "safe")?.dtype(), DType::F64);
    for path in ["special.xlogy", "special.jv", "special.beta"] {
        assert_eq!(call(path, &[&x, &n], DType::F32, "same_kind")?.dtype(), DType::F32, "{path}");
    }
    assert_eq!(call("special.betainc", &[&x, &x, &x], DType::F32, "same_kind")?.dtype(), DType::F32);
    for (dtype, casting) in [(DType::F32, "safe"), (DType::I32, "same_kind"), (DType::F16, "same_kind")] {
        assert!(call("special.gamma", &[&x], dtype, casting).is_err(), "{dtype} {casting}");
    }
    Ok(())
}

#[test]
fn the_rules_no_and_equiv_allow_no_conversion() -> Result<()> {
    let call = |path: &str, args: Vec<Value>| {
        let function = Function::find(path).unwrap_or_else(|| panic!("{path} is not declared"));
        function.call(args, vec![("casting".to_owned(), Value::Str("no".to_owned()))])
    };
    let of = |dtype| Ok::<Value, cuprum_core::Error>(ones(2, dtype)?.into());
    let (f16, f32, f64) = (of(DType::F16)?, of(DType::F32)?, of(DType::F64)?);
    for path in ["special.erf", "special.expit", "special.cbrt"] {
        for x in [of(DType::I64)?, f16.clone(), 3.into()] {
            let error = call(path, vec![x]).unwrap_err().to_string();
            assert!(error.contains("by the rule 'no'"), "{path}: {error}");
        }
        for x in [f32.clone(), f64.clone(), 1.5.into()] {
            call(path, vec![x])?;
        }
    }
    assert!(call("special.jv", vec![f32.clone(), f64]).is_err());
    call("special.jv", vec![1.into(), f32])?;
    Ok(())
}

#[test]
fn the_dtype_of_logsumexp_is_that_of_the_array_and_its_factor() -> Result<()> {
    let function = Function::find("special.logsumexp").unwrap_or_else(|| panic!("logsumexp is not declared"));
    let dtype_with = |dtype, b: Value| Ok(function.call(vec![ones(3, dtype)?.into()], vec![("b".to_owned(), b)])?.array("call")?.dtype());
    for (dtype, expected) in [(DType::F16, DType::F16), (DType::F32, DType::F32), (DType::I32, DType::F64)] {
        assert_eq!(dtype_with(dtype, 2.0.into())?, expected);
    }
    for (dtype, factor, expected) in [
        (DType::F32, DType::F64, DType::F64),
        (DType::F32, DType::Bool, DType::F32),
        (DType::F32, DType::I16, DType::F32),
        (DType::F32, DType::I32, DType::F64),
        (DType::I8, DType::F32, DType::F32),
        (DType::I8, DType::I8, DType::F64),
    ] {
        assert_eq!(dtype_with(dtype, ones(3, factor)?.into())?, expected, "{dtype} {factor}");
    }
    Ok::<(), cuprum_core::Error>(())
}
