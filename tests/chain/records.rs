//! Results of dispatch: records of `explain`, reasons for declining, errors.

use cuprum::core::Family;
use cuprum::{DType, Device, Error, NdArray, axis, broadcast_to, explain, with_accelerators, with_device};

use crate::test_accelerators::{run_under, set_up, u16_ones};

#[test]
fn explain_lists_the_serving_accelerator_and_all_reasons() {
    let (value, records) = run_under("alpha,beta,filtered,liar", &[20, 3]);
    assert_eq!(value.unwrap(), 1);
    let [record] = &records[..] else { panic!("one call, not {records:?}") };
    assert_eq!((record.op, record.family, record.served_by), ("cumprod", Family::Scan, Some("cpu")));
    assert_eq!((&record.dtypes[..], &record.shapes[0][..]), (&[DType::U16][..], &[20, 3][..]));
    let told: Vec<(&str, &str)> = record.declined.iter().map(|(name, why)| (*name, why.as_str())).collect();
    assert_eq!(
        told,
        [
            ("alpha", "60 elements are more than 8"),
            ("beta", "its first kernel takes nothing"),
            ("beta", "more than one axis"),
            ("filtered", "does not take the dtype uint16"),
            ("filtered", "does not take the operation cumprod"),
            ("liar", "its library is not there after all"),
        ]
    );
    let text = record.to_string();
    assert!(text.starts_with("cumprod [Scan] uint16 (20, 3) -> uint64 (20, 3), axis=0 on cpu: cpu"), "{text}");
    assert!(text.contains("\n    alpha declined: 60 elements are more than 8"), "{text}");
}

#[test]
fn shared_nodes_count_once_towards_the_size_of_an_expression() {
    let a = with_device(Device::CPU, || NdArray::from_slice(&[1.0, 0.5])).unwrap();
    let (value, records) = explain(|| {
        let mut x = &a * 1.0;
        for _ in 0..20 {
            x = &x * &x; // 2^20 uses of the first product
        }
        x.to_vec::<f64>()
    });
    assert_eq!((value.unwrap(), records.len()), (vec![1.0, 0.0], 1), "{records:?}");
}

#[test]
fn records_distinguish_calls_of_one_operation() {
    let describe = |f: &dyn Fn(&NdArray) -> cuprum::Result<NdArray>| {
        let a = with_device(Device::CPU, || NdArray::from_vec([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])).unwrap();
        let (result, records) = explain(|| f(&a).and_then(|result| result.eval().cloned()));
        result.unwrap();
        records[0].to_string().split(" on ").next().unwrap().to_owned()
    };
    let wide = axis([0, 1]).dtype(DType::F64).keepdims();
    assert_eq!(describe(&|a| a.sum(0)), "sum [Reduce] float32 (2, 3) -> float32 (3,), axis=0");
    assert_eq!(describe(&|a| a.max(axis(0).keepdims())), "max [Reduce] float32 (2, 3) -> float32 (1, 3), axis=0, keepdims");
    assert_eq!(describe(&|a| a.sum(wide.clone())), "sum [Reduce] float32 (2, 3) -> float64 (1, 1), axis=None, keepdims");
    assert_eq!(describe(&|a| a.cumsum(1)), "cumsum [Scan] float32 (2, 3) -> float32 (2, 3), axis=1");
    assert_eq!(describe(&|a| a.argsort(axis(1).descending())), "argsort [Sort] float32 (2, 3) -> int64 (2, 3), axis=-1, descending");
    assert_eq!(describe(&|a| a.matmul(&a.t()?)), "matmul [Contract] float32,float32 (2, 3),(3, 2) -> float32 (2, 2), 'ac,cb->ab'");
    assert_eq!(describe(&|_| with_device(Device::CPU, || cuprum::ones([2], DType::I8))), "ones [Fill] int8 (2,)");
}

#[test]
fn products_with_an_inverse_matrix_have_a_hint() {
    set_up();
    let a = with_device(Device::CPU, || NdArray::from_vec([2.0, 1.0, 1.0, 3.0], [2, 2])).unwrap();
    let hints = |f: &dyn Fn() -> cuprum::Result<NdArray>| {
        let (result, records) = explain(|| f().and_then(|x| x.eval().cloned()));
        result.unwrap();
        records.iter().filter_map(|record| record.hint.map(|hint| format!("{} {hint}", record.op))).collect::<Vec<_>>()
    };
    let advice = ["matmul solve(a, b) is faster and more accurate than inv(a) @ b"];
    assert_eq!(hints(&|| cuprum::linalg::inv(&a)?.matmul(&a)), advice);
    assert_eq!(hints(&|| a.matmul(&cuprum::linalg::inv(&a)?.t()?)), advice);
    assert!(hints(&|| cuprum::linalg::solve(&a, &a)?.matmul(&a)).is_empty());
    // The inverse of another scope is an array like any other.
    let inverse = cuprum::linalg::inv(&a).unwrap();
    assert!(hints(&|| inverse.matmul(&a)).is_empty());
    let (_, records) = explain(|| cuprum::linalg::inv(&a).and_then(|x| x.matmul(&a)));
    assert!(records.last().unwrap().to_string().ends_with("\n    hint: solve(a, b) is faster and more accurate than inv(a) @ b"));
}

#[test]
fn explain_records_calls_of_its_own_scope_and_thread() {
    set_up();
    let a = u16_ones(&[4]);
    let ((inner, outer), records) = with_accelerators("beta", || {
        explain(|| {
            let (_, inner) = explain(|| a.cumprod(0).unwrap());
            std::thread::scope(|s| s.spawn(|| a.cumprod(0).map(drop).unwrap()).join().unwrap());
            (inner, a.cumprod(0).unwrap())
        })
    })
    .unwrap();
    drop(outer);
    assert_eq!((inner.len(), records.len()), (1, 1));
    let (_, none) = explain(|| ());
    assert!(none.is_empty());
}

#[test]
fn a_failure_is_returned_without_trying_later_accelerators() {
    let (value, records) = run_under("alpha,broken,gamma", &[13]);
    let error = value.unwrap_err();
    assert_eq!(error.to_string(), "[cumprod] broken failed: thirteen");
    assert!(matches!(error, Error::Backend { accelerator: "broken", .. }));
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].served_by, None);
    let reasons: Vec<_> = records[0].declined.iter().map(|(name, why)| (*name, &why[..])).collect();
    assert!(matches!(reasons[..], [("alpha", _), ("broken", "failed: [cumprod] broken failed: thirteen")]), "{reasons:?}");
    assert_eq!(run_under("broken,gamma", &[12]).0.unwrap(), 13, "what it declines goes on");
}

#[test]
fn fused_expressions_reach_the_chain_as_prologues() {
    set_up();
    let doubled = || u16_ones(&[4]).multiply(2).unwrap().cumprod(0).unwrap();
    let (values, records) = with_accelerators("gamma", || explain(|| doubled().to_vec::<u64>().unwrap())).unwrap();
    assert_eq!(values, [2, 4, 8, 16]);
    let record = records.last().unwrap();
    assert_eq!(record.declined, [("gamma", "a fused expression".to_string())]);
    assert!(record.expression.as_ref().unwrap().contains("multiply"), "{record}");
    let (values, records) =
        cuprum::with_fusion(false, || with_accelerators("gamma", || explain(|| doubled().to_vec::<u64>().unwrap()))).unwrap();
    assert_eq!(values, [13; 4], "without fusion there is no prologue to decline");
    assert_eq!(records.len(), 3, "ones, multiply, cumprod: {records:?}");
}

#[test]
fn empty_results_need_no_kernel() {
    let (value, records) = with_device(Device::CPU, || {
        let a = u16_ones(&[0, 3]);
        with_accelerators("broken", || explain(|| a.cumprod(0))).unwrap()
    });
    assert_eq!(value.unwrap().shape(), &[0, 3]);
    assert!(records.is_empty(), "{records:?}");
}

#[test]
fn a_failed_array_keeps_its_error() {
    set_up();
    // 2^60 bytes: planning succeeds, and allocation fails.
    let huge = with_device(Device::CPU, || NdArray::scalar(1.0).and_then(|a| broadcast_to(&a, [1 << 40, 1 << 17]))).unwrap();
    let sum = cuprum::add(&huge, 1).unwrap();
    let (first, second) = (sum.eval().err().map(|e| e.to_string()), sum.to_bytes().err().map(|e| e.to_string()));
    assert!(first.as_ref().is_some_and(|text| text.contains("out of memory")), "{first:?}");
    assert_eq!(first, second);
}
