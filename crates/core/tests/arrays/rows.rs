//! Row programs on the CPU: softmax and similar expressions in one pass, bit-identical to separate reductions.

use cuprum_backend_cpu::with_threads;
use cuprum_core::random::Generator;
use cuprum_core::{AxisOptions, DType, Family, NdArray, Result, axis, exp, explain, s, with_fusion};

fn rows() -> AxisOptions {
    axis(-1).keepdims()
}

fn normal_numbers(shape: &[usize], dtype: DType) -> NdArray {
    Generator::new(1).normal(1.0, 2.0, shape, dtype).unwrap()
}

fn softmax(x: &NdArray) -> Result<NdArray> {
    let e = exp(x - x.max(rows())?)?;
    let sum = e.sum(rows())?;
    Ok(e / sum)
}

/// Returns the bytes of an expression, after checking that one Rows call computes it and fusion does not change it.
fn bytes_in_one_pass(f: impl Fn() -> Result<NdArray>) -> Vec<u8> {
    let (value, records) = explain(|| f().and_then(|a| a.eval().cloned()).unwrap());
    let [record] = &records[..] else { panic!("expected one call, got {records:#?}") };
    assert_eq!((record.family, record.served_by), (Family::Rows, Some("cpu")));
    let bytes = value.to_bytes().unwrap();
    assert!(bytes == with_fusion(false, || f().unwrap().to_bytes().unwrap()), "{:?}", value.shape());
    bytes
}

#[test]
fn rows_of_any_length() {
    for dtype in [DType::F32, DType::F64] {
        for shape in [[1, 2], [700, 3], [5, 511], [5, 512], [3, 513], [9, 2048], [2, 2049], [4, 32768]] {
            let x = normal_numbers(&shape, dtype);
            bytes_in_one_pass(|| softmax(&x));
        }
        let x = normal_numbers(&[3, 4, 5, 6], dtype);
        bytes_in_one_pass(|| Ok((&x - x.min(axis([2, 3]).keepdims())?) / x.max(axis([3, 2]).keepdims())?));
    }
}

#[test]
fn inputs_of_any_layout() {
    let x = normal_numbers(&[6, 40], DType::F64);
    for x in [x.index(s![..;-1, ..;2]).unwrap(), x.index(s![1..;2, 3..]).unwrap(), x.index(s![.., ..;-1]).unwrap()] {
        let y = x.copy().unwrap();
        assert_eq!(bytes_in_one_pass(|| softmax(&y)), bytes_in_one_pass(|| Ok(softmax(&x)? * 1)));
    }
    let (per_row, per_column) = (normal_numbers(&[6, 1], DType::F64), normal_numbers(&[40], DType::F64));
    bytes_in_one_pass(|| Ok((&x * &per_column - x.sum(rows())?) / (x.max(rows())? + &per_row)));
}

#[test]
fn reductions_per_row_become_outputs() {
    let x = normal_numbers(&[50, 33], DType::F32);
    let (max, sum) = (x.max(rows()).unwrap(), x.sum(rows()).unwrap());
    let (value, records) = explain(|| ((&x - &max) / &sum).eval().unwrap().clone());
    assert_eq!((records.len(), records[0].family), (1, Family::Rows));
    assert!(!max.is_deferred() && !sum.is_deferred());
    let plain = with_fusion(false, || [x.max(rows()), x.sum(rows())].map(|a| a.unwrap().to_bytes().unwrap()));
    assert_eq!([max, sum].map(|a| a.to_bytes().unwrap()), plain);
    assert_eq!(value.shape(), [50, 33]);
    bytes_in_one_pass(|| Ok(x.max(rows())? - x.min(rows())?));
}

#[test]
fn shared_nodes_are_searched_once() {
    let mut x = normal_numbers(&[4, 5], DType::F64).mean(rows()).unwrap();
    for _ in 0..40 {
        x = &x * &x; // 2^40 paths from the last product to the mean
    }
    let y = x + NdArray::from_vec(vec![0.0; 60], [3, 4, 5]).unwrap();
    assert_eq!(y.eval().unwrap().shape(), [3, 4, 5]);
}

#[test]
fn integers_and_bool() {
    let x = Generator::new(2).integers(-9, 9, [20, 30], DType::I32).unwrap();
    bytes_in_one_pass(|| Ok((&x - x.min(rows())?) * x.sum(rows())?));
    let positive = x.greater(0).unwrap().eval().unwrap().clone();
    bytes_in_one_pass(|| positive.any(rows())?.bitwise_xor(positive.all(rows())?));
}

#[test]
fn results_do_not_depend_on_threads() {
    let x = normal_numbers(&[3000, 1500], DType::F32); // 18 MB: uses non-temporal stores
    let alone = with_threads(1, || softmax(&x).unwrap().to_bytes().unwrap()).unwrap();
    assert!(alone == with_threads(3, || bytes_in_one_pass(|| softmax(&x))).unwrap());
}

#[test]
fn fused_variances_are_accurate_for_large_means() {
    let x = normal_numbers(&[8, 777], DType::F64) + 1e6;
    let normal = || Ok::<_, cuprum_core::Error>((&x - x.mean(rows())?) / x.std(rows())?);
    let [fused, plain] = [true, false].map(|on| with_fusion(on, || normal().unwrap().to_vec::<f64>().unwrap()));
    assert!(fused.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-9));
}
