//! Messages of errors name the function that was called.

use cuprum::core::ops::python_value::Value;
use cuprum::function::Function;
use cuprum::{Bins, DType, Device, Error, NdArray, Side, arange, full, linalg, random, s, zeros};

/// Returns the name in brackets at the start of a message.
fn named(error: &Error) -> String {
    let text = error.to_string();
    text.strip_prefix('[').and_then(|t| t.split_once(']')).map_or_else(|| format!("no name: {text}"), |(name, _)| name.to_owned())
}

/// Returns arguments that are wrong for most functions, and some that are right for others, so that later checks are reached too.
fn arguments() -> Vec<Value> {
    let matrix = NdArray::from_vec([3.0, 1.0, f64::NAN, -1.0, 2.0, 0.5], [2, 3]).unwrap();
    let ints = NdArray::from_slice(&[4i64, 0, -7]).unwrap();
    let numbers = |values: &[i64]| Value::tuple(values.iter().map(|&n| n.into()));
    vec![
        matrix.clone().into(),
        ints.clone().into(),
        NdArray::from_slice(&[1u8, 2]).unwrap().into(),
        NdArray::from_slice(&[true, false, true]).unwrap().into(),
        matrix.astype(DType::C64).unwrap().into(),
        NdArray::scalar(2.5).unwrap().into(),
        zeros([0, 3], DType::F32).unwrap().into(),
        99.into(),
        (-1).into(),
        300.into(),
        2.5.into(),
        cuprum::Complex::new(0.0, 1.0).into(),
        Value::Str("ij,jk".into()),
        Value::DType(DType::U8),
        Value::None,
        numbers(&[0, 0]),
        numbers(&[1 << 40, 1 << 40]),
        numbers(&[]),
        Value::tuple([matrix.into(), ints.into()]),
    ]
}

/// Returns every tuple of `count` values.
fn tuples(values: &[Value], count: usize) -> Vec<Vec<Value>> {
    (0..count).fold(vec![Vec::new()], |shorter, _| {
        shorter.iter().flat_map(|tuple| values.iter().map(move |value| [&tuple[..], std::slice::from_ref(value)].concat())).collect()
    })
}

#[test]
fn errors_name_the_declared_function() {
    let arguments = arguments();
    let keywords: Vec<(String, Value)> = ["axis", "dtype", "size", "out", "keepdims", "ord", "kind", "seed"]
        .into_iter()
        .flat_map(|name| [99.into(), Value::Str("x".into()), arguments[0].clone()].map(|value| (name.to_owned(), value)))
        .collect();
    let mut wrong = Vec::new();
    for function in Function::all() {
        let mut errors = Vec::new();
        let mut call = |positional: Vec<Value>, keyword: Vec<(String, Value)>| errors.extend(function.call(positional, keyword).err());
        for count in 0..=2 {
            for positional in tuples(&arguments, count) {
                if count < 2 {
                    keywords.iter().for_each(|keyword| call(positional.clone(), vec![keyword.clone()]));
                }
                if count == 2 {
                    call([&positional[..], &[99.into()]].concat(), Vec::new());
                }
                call(positional, Vec::new());
            }
        }
        assert!(!errors.is_empty(), "{} has no error", function.path());
        let mut others: Vec<String> = errors.iter().filter(|e| named(e) != function.name).map(ToString::to_string).collect();
        others.sort();
        others.dedup_by_key(|text| text.split(']').next().map(str::to_owned));
        wrong.extend(others.into_iter().map(|text| format!("{} ({}): {text}", function.path(), function.rust)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn errors_name_rust_functions() {
    let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]).unwrap();
    let huge = [1usize << 40, 1 << 40];
    let cases: [(&str, Option<Error>); 24] = [
        ("from_vec", NdArray::from_vec([1, 2], [3]).err()),
        ("from_bytes", NdArray::from_bytes(DType::F32, [3], &[0; 4]).err()),
        ("zeros", zeros(huge, DType::F32).err()),
        ("ones", cuprum::ones(huge, DType::F32).err()),
        ("empty", cuprum::empty(huge, DType::F32).err()),
        ("eye", cuprum::eye(1 << 40, 1 << 40, 0, DType::F32).err()),
        ("full", full([2], 300, DType::U8).err()),
        ("full_like", cuprum::full_like(&a, a.sum(0).unwrap().index(s![..2]).unwrap()).err()),
        ("arange", arange(0, 1, 0).err()),
        ("to_vec", a.to_vec::<f32>().err()),
        ("item", a.item().err()),
        ("index", a.index(s![0, 0, 0]).err()),
        ("mt", a.index(s![0]).unwrap().mt().err()),
        ("matrix_transpose", cuprum::matrix_transpose(&a.index(s![0]).unwrap()).err()),
        ("mean", a.mean(7).err()),
        ("std", a.std(7).err()),
        ("ptp", cuprum::ptp(&a, 7).err()),
        ("nansum", cuprum::nansum(&a, 7).err()),
        ("norm", linalg::norm(&a, (), 7).err()),
        ("vstack", cuprum::vstack(Vec::<NdArray>::new()).err()),
        ("histogram", a.histogram(Bins::Count(0)).err()),
        ("searchsorted", a.searchsorted(&a, Side::Left).err()),
        ("random", random::random([2], DType::I32).err()),
        ("add", cuprum::add(NdArray::from_slice(&[1u8]).unwrap(), 300).err()),
    ];
    for (function, error) in cases {
        let error = error.unwrap_or_else(|| panic!("{function} has no error"));
        assert_eq!(named(&error), function, "{error}");
    }
    let error = Device::parse("abacus").unwrap_err();
    assert!(error.to_string().starts_with("[Device::parse] 'abacus' is not a device; use auto, cpu"), "{error}");
    assert_eq!(named(&DType::parse("float8").unwrap_err()), "DType::parse");
    let error = cuprum::add(NdArray::from_slice(&[1u8]).unwrap(), 300).unwrap_err();
    assert_eq!(error.to_string(), "[add] integer 300 is out of bounds for uint8 (0 to 255)");
}
