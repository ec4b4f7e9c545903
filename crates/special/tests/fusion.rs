//! Special functions fuse with other elementwise operations and with reductions.

use cuprum_core::{DType, NdArray, Result, arange_as, explain, with_fusion};
use cuprum_special as special;

fn points() -> NdArray {
    (arange_as(0, 3000, 1, DType::F64).unwrap() * 0.003).astype(DType::F64).unwrap()
}

/// An expression with several special functions and a sum.
fn expression(x: &NdArray) -> Result<NdArray> {
    let inner = (special::erf(x)? * 2.0 + special::gammaln(x + 1.0)?).exp()?;
    special::xlogy(inner, special::expit(x)?)?.sum(())
}

#[test]
fn an_expression_is_one_call() {
    let x = points();
    let (result, calls) = explain(|| expression(&x).and_then(|a| a.item()));
    assert!(result.is_ok(), "{result:?}");
    let lines: Vec<String> = calls.iter().map(ToString::to_string).collect();
    assert_eq!(calls.len(), 1, "{lines:?}");
}

#[test]
fn fused_results_have_the_same_bits() {
    let x = points();
    let value = |on| with_fusion(on, || special::jv(2.5, &special::erfinv(&x / 10.0).unwrap() * 3.0).unwrap().to_vec::<f64>().unwrap());
    assert_eq!(value(true), value(false));
}

#[test]
fn both_results_of_sici_are_deferred() {
    let x = points();
    let (result, calls) = explain(|| special::sici(&x).and_then(|(si, ci)| (si + ci).sum(())?.item()));
    assert!(result.is_ok());
    assert_eq!(calls.len(), 1);
}

#[test]
fn empty_arrays_and_views() {
    let x = points();
    assert_eq!(special::erf(x.index(cuprum_core::s![0..0]).unwrap()).unwrap().shape(), &[0]);
    let every_other = x.index(cuprum_core::s![..;2]).unwrap();
    let whole = special::digamma(&x + 1.0).unwrap().to_vec::<f64>().unwrap();
    let part = special::digamma(every_other + 1.0).unwrap().to_vec::<f64>().unwrap();
    assert_eq!(part, whole.into_iter().step_by(2).collect::<Vec<_>>());
}
