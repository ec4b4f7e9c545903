//! Promotion compared with the table of NumPy 2 and ml_dtypes (`promotion.txt`, written by scripts/goldens.py).

use cuprum_core::op::{ArgumentType, result_type};
use cuprum_core::{Complex, DType, Scalar};

/// Returns the lines of the table: left, right, result.
fn table() -> Vec<(DType, &'static str, DType)> {
    let parse = |name: &str| DType::parse(name).unwrap();
    include_str!("promotion.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let words: Vec<&'static str> = line.split(' ').collect();
            (parse(words[0]), words[1], parse(words[2]))
        })
        .collect()
}

#[test]
fn pairs_promote_as_in_numpy() {
    let pairs: Vec<_> = table().into_iter().filter(|(_, right, _)| !right.starts_with("Python-")).collect();
    assert_eq!(pairs.len(), 15 * 15);
    for (left, right, result) in pairs {
        let right = DType::parse(right).unwrap();
        assert_eq!(left.promote(right), result, "{left} with {right}");
        assert_eq!(result_type(&[ArgumentType::Array(left), ArgumentType::Array(right)]), result, "{left} with {right}");
    }
}

#[test]
fn python_scalars_are_weak() {
    let scalars: Vec<_> = table().into_iter().filter(|(_, right, _)| right.starts_with("Python-")).collect();
    assert_eq!(scalars.len(), 15 * 4);
    for (left, right, result) in scalars {
        let scalar = match right {
            "Python-bool" => Scalar::Bool(true),
            "Python-int" => Scalar::Int(1),
            "Python-float" => Scalar::Float(1.0),
            _ => Scalar::Complex(Complex::new(0.0, 1.0)),
        };
        assert_eq!(result_type(&[ArgumentType::Array(left), ArgumentType::Weak(scalar)]), result, "{left} with {right}");
        assert_eq!(result_type(&[ArgumentType::Weak(scalar), ArgumentType::Array(left)]), result, "{right} with {left}");
    }
}

/// Expected results are from `numpy.result_type` of NumPy 2.4, for every order of the arguments.
#[test]
fn three_dtypes_promote_together() {
    use DType::*;
    let rows = [
        ([I8, U8, F16], F16),
        ([I8, U16, F16], F32),
        ([I8, U16, F32], F32),
        ([I8, U16, C64], C64),
        ([I16, U16, F16], F32),
        ([I16, U16, F32], F32),
        ([I16, U16, C64], C64),
        ([I32, U32, F32], F64),
        ([I8, U8, I16], I16),
        ([Bool, U8, I8], I16),
    ];
    for ([a, b, c], result) in rows {
        for order in [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]] {
            assert_eq!(result_type(&order.map(ArgumentType::Array)), result, "{order:?}");
            assert_eq!(DType::promote_all(order), Some(result), "{order:?}");
        }
    }
    assert_eq!(DType::promote_all([]), None);
}
