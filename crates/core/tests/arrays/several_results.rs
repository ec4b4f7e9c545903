//! Elementwise functions with several results: `divmod`, `modf`, `frexp`.

use cuprum_backend_cpu as _;
use cuprum_core::{CallRecord, DType, Error, NdArray, divmod, explain, frexp, modf, with_fusion, zeros};

use crate::on_cpu;

fn expressions(records: &[CallRecord]) -> Vec<&str> {
    records.iter().filter_map(|r| r.expression.as_deref()).collect()
}

#[test]
fn one_call_computes_both_results() {
    on_cpu(|| {
        let x = NdArray::from_slice(&[5.5f32, -7.0])?;
        let ((quotient, remainder), records) = explain(|| {
            let (quotient, remainder) = divmod(&x * 2.0, 3).unwrap();
            quotient.eval().unwrap();
            assert!(!remainder.is_deferred());
            (quotient, remainder)
        });
        assert_eq!((quotient.to_vec::<f32>()?, remainder.to_vec::<f32>()?), (vec![3.0, -5.0], vec![2.0, 1.0]));
        assert_eq!(expressions(&records), ["floor_divide(multiply(a0, 2), 3); remainder(multiply(a0, 2), 3)"]);
        Ok(())
    });
}

#[test]
fn a_dropped_result_is_not_computed() {
    on_cpu(|| {
        let x = NdArray::from_slice(&[5.5f32, -7.0])?;
        let ((), records) = explain(|| {
            let (_, integral) = modf(&x).unwrap();
            integral.eval().unwrap();
        });
        assert_eq!(expressions(&records), ["trunc(a0)"]);
        Ok(())
    });
}

#[test]
fn results_fuse_into_one_expression() {
    on_cpu(|| {
        let x = NdArray::from_slice(&[6.0, -0.25])?;
        let (mantissa, exponent) = frexp(&x)?;
        assert_eq!((mantissa.dtype(), exponent.dtype()), (DType::F64, DType::I32));
        let (product, records) = explain(|| (&mantissa * &exponent).to_vec::<f64>().unwrap());
        assert_eq!((product, records.len()), (vec![2.25, 0.5], 1));
        let mut chained = mantissa + 1.0;
        assert_eq!((chained.to_vec::<f64>()?, exponent.to_vec::<i32>()?), (vec![1.75, 0.5], vec![3, -1]));
        assert!(chained.is_unique());
        Ok(())
    });
}

#[test]
fn results_without_fusion_are_equal() {
    on_cpu(|| {
        let x = NdArray::from_slice(&[6.75f32, -0.25])?;
        let parts = || modf(&x).and_then(|(a, b)| Ok([a.to_vec::<f32>()?, b.to_vec::<f32>()?]));
        assert_eq!(with_fusion(false, parts)?, with_fusion(true, parts)?);
        Ok(())
    });
}

#[test]
fn errors_name_the_function() {
    on_cpu(|| {
        let complex = zeros(2, DType::C64)?;
        assert!(matches!(modf(&complex), Err(Error::DType { op: "modf", .. })));
        assert!(matches!(divmod(zeros(2, DType::F32)?, zeros(3, DType::F32)?), Err(Error::Shape { op: "divmod", .. })));
        Ok(())
    });
}
