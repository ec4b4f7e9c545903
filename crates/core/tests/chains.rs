//! Operation chaining and launch caches change neither values nor `explain` nor the accelerators that serve a call.

use cuprum_core::call;
use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::ops::elementwise::SQUARE;
use cuprum_core::{
    Accelerator, Array, Availability, Call, DType, DTypeSet, Error, Family, Kernel, Layout, NdArray, Outcome, Result, StoredArray, Work,
    add, arange, decline, explain, register, registry, s, where_, with_accelerators, with_fusion,
};

use cuprum_backend_cpu as _;

/// Returns 0, 1, ... as a stored float32 array.
fn iota(n: usize) -> NdArray {
    arange(0, n, 1).unwrap().astype(DType::F32).unwrap().eval().unwrap().clone()
}

fn values(a: &NdArray) -> Vec<f32> {
    a.to_vec().unwrap()
}

/// Returns the bytes of an expression, after checking that fusion does not change them.
fn bytes_with_and_without_fusion(expression: impl Fn() -> Result<NdArray>) -> Vec<u8> {
    let alone = with_fusion(false, || expression().unwrap().to_bytes().unwrap());
    let fused = expression().unwrap().to_bytes().unwrap();
    assert_eq!(fused, alone);
    fused
}

#[test]
fn held_arrays_keep_their_values() {
    let a = iota(5);
    let x = &a + 1;
    let y = &x * 2;
    assert_eq!((values(&y), values(&x)), (vec![2.0, 4.0, 6.0, 8.0, 10.0], vec![1.0, 2.0, 3.0, 4.0, 5.0]));

    let x = &a + 1;
    let other = x.clone();
    let y = x * 2; // `x` is not the last handle
    assert_eq!((values(&other), values(&y)), (vec![1.0, 2.0, 3.0, 4.0, 5.0], vec![2.0, 4.0, 6.0, 8.0, 10.0]));

    let x = &a + 1;
    let held_by_an_expression = &x - 1;
    let y = x * 2; // `held_by_an_expression` refers to `x`
    assert_eq!((values(&y)[4], values(&held_by_an_expression)), (10.0, values(&a)));
}

#[test]
fn chains_keep_dtypes_and_shapes() {
    let a = iota(6);
    let x = (&a + 1).astype(DType::I64).unwrap() * 3;
    assert_eq!((x.dtype(), x.to_vec::<i64>().unwrap()[5]), (DType::I64, 18));
    let x = 1 - (&a - 2) / 4;
    assert_eq!(values(&x), [1.5, 1.25, 1.0, 0.75, 0.5, 0.25]);
    let wide = (&a + 1) + iota(12).reshape([2, 6]).unwrap() * 2;
    assert_eq!((wide.shape(), values(&wide)[11]), (&[2, 6][..], 28.0));
    let stays = iota(12).reshape([2, 6]).unwrap() * 2 + &a;
    assert_eq!((stays.shape(), values(&stays)[11]), (&[2, 6][..], 27.0));
    let above = where_((&a + 1).greater(3).unwrap(), &a * -1, 0.5).unwrap();
    assert_eq!(values(&above), [0.5, 0.5, 0.5, -3.0, -4.0, -5.0]);
    assert!(add((&a + 1).astype(DType::U8).unwrap(), 300).is_err(), "a number that uint8 cannot hold");
}

#[test]
#[allow(clippy::assign_op_pattern)] // `x += 1` does not consume the handle, so it would not be chained
fn long_chains_are_split() {
    let mut x = iota(3) - iota(3);
    for _ in 0..1000 {
        x = x + 1;
    }
    assert_eq!(values(&x), [1000.0; 3]);
    let a = iota(3);
    let (sum, records) = explain(|| {
        let mut x = &a - &a;
        for _ in 0..60 {
            x = x + &a;
        }
        values(&x)
    });
    assert_eq!(sum, [0.0, 60.0, 120.0]);
    assert!((2..10).contains(&records.len()), "twelve inputs per expression: {}", records.len());
}

#[test]
fn fused_inputs_of_reductions_are_recomputed_at_most_once() {
    let a = iota(4);
    let (sums, records) = explain(|| {
        let mut sums = Vec::new();
        let mut x = &a - &a;
        for _ in 0..20 {
            x = x * 2 + 1;
            sums.push(x.sum(()).unwrap().item().unwrap().as_f64());
        }
        sums
    });
    assert_eq!(sums[..3], [4.0, 12.0, 28.0]);
    let longest = records.iter().filter_map(|r| r.expression.as_ref()).map(|e| e.matches("multiply").count()).max();
    assert!(longest.unwrap() <= 3, "expressions do not grow with the loop: {longest:?}");
}

#[test]
fn similar_expressions_do_not_share_cache_entries() {
    let f32s = iota(24);
    let f64s = f32s.astype(DType::F64).unwrap().eval().unwrap().clone();
    let transposed = f32s.reshape([4, 6]).unwrap().t().unwrap();
    let every_other = iota(48).index(s![..;2]).unwrap();
    let backwards = f32s.index(s![..;-1]).unwrap();
    let one = iota(2).index(s![1..]).unwrap();
    let flat = f32s.reshape([6, 4]).unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        for constant in [3.0, -0.0, 0.0, f64::NAN, 3.0] {
            for a in [&f32s, &f64s, &every_other, &backwards, &transposed, &flat] {
                seen.push(bytes_with_and_without_fusion(|| Ok((a * constant + &one) / 7 - a)));
                seen.push(bytes_with_and_without_fusion(|| Ok((a * constant + a) / 7 - &one)));
                seen.push(bytes_with_and_without_fusion(|| Ok(((a * constant + a) / 7).sqrt()? - a)));
            }
        }
    }
    let (first, second) = seen.split_at(seen.len() / 2);
    assert_eq!(first, second);
    assert_ne!(first[0], first[3 * 6], "different constants");
    assert_ne!(first[0], first[3 * 2], "different strides");
}

#[test]
fn constants_reach_every_element() {
    for n in [1, 2, 255, 256, 257, 511, 512, 1000, 1024, 2047, 2048, 2049, 5000] {
        let a = iota(n);
        let expected: Vec<f32> = (0..n).map(|i| if i % 2 == 0 { (1.0 - i as f32) * 2.0 } else { 0.25 }).collect();
        let even = (&a % 2).equal(0).unwrap();
        assert_eq!(values(&where_(even, (1 - &a) * 2, 0.25).unwrap()), expected, "{n}");
        let two = NdArray::from_slice(&[2.0f32]).unwrap();
        assert_eq!(values(&(&two * &a + &two * &two)), (0..n).map(|i| i as f32 * 2.0 + 4.0).collect::<Vec<_>>(), "{n}");
        let halves = bytes_with_and_without_fusion(|| add((&a * 0.5).astype(DType::F16)?.multiply(3)?, &two));
        assert_eq!(halves.len(), 4 * n);
    }
}

/// A wrong accelerator that answers 7 for all squares of uint16.
static SEVENS: Accelerator = Accelerator {
    name: "sevens",
    device: "cpu",
    rank: 200,
    summary: "sevens",
    probe: || Availability::Ready(String::new()),
    kernels: &[Kernel::new(Family::Map, sevens).only_ops(&[SQUARE])],
    base: None,
};

fn sevens(call: &Call) -> Result<Outcome> {
    let Work::Map(call::Map { .. }) = call.work else { decline!("a map") };
    if call.inputs[0].dtype() != DType::U16 {
        decline!("not uint16");
    }
    let values = vec![7u16; call.outputs[0].layout.size()];
    call.outcome_from_buffers([std::sync::Arc::new(HostBuffer::from_slice(&values)?) as _])
}

#[test]
fn cached_expressions_follow_changes_of_order() {
    register(&SEVENS).unwrap();
    let a = iota(10).astype(DType::U16).unwrap().eval().unwrap().clone();
    let squares = || explain(|| a.square().unwrap().to_vec::<u16>().unwrap()[3]);
    for _ in 0..3 {
        for (order, expected, by) in [("", 9, "cpu"), ("sevens", 7, "sevens")] {
            let (value, records) = with_accelerators(order, squares).unwrap();
            let [record] = &records[..] else { panic!("expected one call, got {records:?}") };
            assert_eq!((value, record.served_by), (expected, Some(by)));
            assert_eq!(record.expression.as_deref(), Some("square(a0)"));
        }
    }
    let floats = iota(10);
    let (value, records) = with_accelerators("sevens", || explain(|| values(&floats.square().unwrap())[3])).unwrap();
    assert_eq!((value, records[0].declined.len()), (9.0, 1), "declined, then served by the base");
}

/// An accelerator whose kernel returns outputs of another dtype or shape than the call requests.
static LIAR: Accelerator = Accelerator {
    name: "liar",
    device: "cpu",
    rank: 201,
    summary: "liar",
    probe: || Availability::Ready(String::new()),
    kernels: &[Kernel::new(Family::Map, lie).only_ops(&[SQUARE]).only_dtypes(DTypeSet::of(&[DType::I8, DType::I16]))],
    base: None,
};

fn lie(call: &Call) -> Result<Outcome> {
    let (dtype, n) = if call.inputs[0].dtype() == DType::I8 { (DType::I64, 3) } else { (DType::I16, 2) };
    let zeros = std::sync::Arc::new(HostBuffer::zeroed(64)?);
    Ok(Outcome::Done([StoredArray::new(dtype, Layout::contiguous(&[n])?, zeros)?].into_iter().collect()))
}

#[test]
fn outputs_of_a_wrong_dtype_or_shape_are_errors() {
    register(&LIAR).unwrap();
    for dtype in [DType::I8, DType::I16] {
        let a = iota(3).astype(dtype).unwrap().eval().unwrap().clone();
        let error = with_accelerators("liar", || a.square().unwrap().eval().map(|_| ()).unwrap_err()).unwrap();
        assert!(matches!(error, Error::Backend { .. }) && error.to_string().contains("liar"), "{error}");
    }
}

/// An accelerator whose probe computes a sum.
static SELF_TEST: Accelerator = Accelerator {
    name: "self-test",
    device: "cpu",
    rank: 202,
    summary: "self-test",
    probe: || Availability::Ready(format!("{}", iota(4).sum(()).unwrap().item().unwrap())),
    kernels: &[Kernel::new(Family::Map, sevens).only_ops(&[SQUARE])],
    base: None,
};

#[test]
fn a_probe_may_use_arrays() {
    register(&SELF_TEST).unwrap();
    let a = iota(3).astype(DType::U16).unwrap().eval().unwrap().clone();
    let (value, records) = with_accelerators("self-test", || explain(|| a.square().unwrap().to_vec::<u16>().unwrap()[2])).unwrap();
    assert_eq!((value, records[0].served_by), (7, Some("self-test")));
    assert_eq!(registry::availability(&SELF_TEST), Availability::Ready("6.0".into()));
}
