//! Work on rows on the host: softmax and the like in one pass, to the bits of their reductions run one by one.

use cuprum_backend_cpu::with_threads;
use cuprum_core::random::Generator;
use cuprum_core::{DType, Family, NdArray, Over, Result, axis, exp, explain, s, with_fusion};

fn rows() -> Over {
    axis(-1).keepdims()
}

fn numbers(shape: &[usize], dtype: DType) -> NdArray {
    Generator::new(1).normal(1.0, 2.0, shape, dtype).unwrap()
}

fn softmax(x: &NdArray) -> Result<NdArray> {
    let e = exp(x - x.max(rows())?)?;
    let sum = e.sum(rows())?;
    Ok(e / sum)
}

/// The bytes of an expression, which one call on rows computes; they are those without fusion.
fn in_one_pass(f: impl Fn() -> Result<NdArray>) -> Vec<u8> {
    let (value, records) = explain(|| f().and_then(|a| a.eval().cloned()).unwrap());
    let [record] = &records[..] else { panic!("one call, not {records:#?}") };
    assert_eq!((record.family, record.served_by), (Family::Rows, Some("cpu")));
    let bytes = value.to_bytes().unwrap();
    assert!(bytes == with_fusion(false, || f().unwrap().to_bytes().unwrap()), "{:?}", value.shape());
    bytes
}

#[test]
fn rows_of_any_length() {
    for dtype in [DType::F32, DType::F64] {
        for shape in [[1, 2], [700, 3], [5, 511], [5, 512], [3, 513], [9, 2048], [2, 2049], [4, 32768]] {
            let x = numbers(&shape, dtype);
            in_one_pass(|| softmax(&x));
        }
        let x = numbers(&[3, 4, 5, 6], dtype);
        in_one_pass(|| Ok((&x - x.min(axis([2, 3]).keepdims())?) / x.max(axis([3, 2]).keepdims())?));
    }
}

#[test]
fn inputs_of_any_layout() {
    let x = numbers(&[6, 40], DType::F64);
    for x in [x.index(s![..;-1, ..;2]).unwrap(), x.index(s![1..;2, 3..]).unwrap(), x.index(s![.., ..;-1]).unwrap()] {
        let y = x.copy().unwrap();
        assert_eq!(in_one_pass(|| softmax(&y)), in_one_pass(|| Ok(softmax(&x)? * 1)));
    }
    let (per_row, per_column) = (numbers(&[6, 1], DType::F64), numbers(&[40], DType::F64));
    in_one_pass(|| Ok((&x * &per_column - x.sum(rows())?) / (x.max(rows())? + &per_row)));
}

#[test]
fn numbers_of_rows_come_along() {
    let x = numbers(&[50, 33], DType::F32);
    let (max, sum) = (x.max(rows()).unwrap(), x.sum(rows()).unwrap());
    let (value, records) = explain(|| ((&x - &max) / &sum).eval().unwrap().clone());
    assert_eq!((records.len(), records[0].family), (1, Family::Rows));
    assert!(!max.is_deferred() && !sum.is_deferred());
    let plain = with_fusion(false, || [x.max(rows()), x.sum(rows())].map(|a| a.unwrap().to_bytes().unwrap()));
    assert_eq!([max, sum].map(|a| a.to_bytes().unwrap()), plain);
    assert_eq!(value.shape(), [50, 33]);
    in_one_pass(|| Ok(x.max(rows())? - x.min(rows())?));
}

#[test]
fn integers_and_truth_values() {
    let x = Generator::new(2).integers(-9, 9, [20, 30], DType::I32).unwrap();
    in_one_pass(|| Ok((&x - x.min(rows())?) * x.sum(rows())?));
    let positive = x.greater(0).unwrap().eval().unwrap().clone();
    in_one_pass(|| positive.any(rows())?.bitwise_xor(positive.all(rows())?));
}

#[test]
fn threads_and_large_results_change_nothing() {
    let x = numbers(&[3000, 1500], DType::F32); // 18 MB: written past the caches
    let alone = with_threads(1, || softmax(&x).unwrap().to_bytes().unwrap()).unwrap();
    assert!(alone == with_threads(3, || in_one_pass(|| softmax(&x))).unwrap());
}

#[test]
fn variances_are_two_passes() {
    let x = numbers(&[8, 777], DType::F64) + 1e6;
    let normal = || Ok::<_, cuprum_core::Error>((&x - x.mean(rows())?) / x.std(rows())?);
    let [fused, plain] = [true, false].map(|on| with_fusion(on, || normal().unwrap().to_vec::<f64>().unwrap()));
    assert!(fused.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-9));
}
