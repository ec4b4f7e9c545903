//! Fusion of `take` into expressions: when it is deferred, and when it is a separate call. The test accelerator has priority over
//! the CPU, accepts fused `take`, and returns ones.

use std::sync::Once;

use cuprum::core::ops::take::FUSED_TAKE;
use cuprum::core::{Accelerator, Availability, Call, Capability, Family, Kernel, Outcome, decline, register};
use cuprum::{
    CallRecord, DType, Device, Error, NdArray, Result, explain, flip, full, linspace, with_accelerators, with_device, with_fusion,
};

const KERNELS: &[Kernel] = &[
    Kernel::new(Family::Gather, |_| decline!("the host does this")),
    Kernel::new(Family::Map, ones).with_capabilities(&[Capability::FusedTake]),
    Kernel::new(Family::Reduce, ones).with_capabilities(&[Capability::FusedTake]),
];

static READER: Accelerator = Accelerator {
    name: "reader",
    device: "cpu",
    rank: 1000,
    summary: "reads tables within expressions",
    probe: || Availability::Ready(String::new()),
    kernels: KERNELS,
    base: None,
};

/// Returns ones for programs with a fused `take`, and declines others.
fn ones(call: &Call) -> Result<Outcome> {
    if call.program().is_none_or(|p| p.ops().all(|op| op != FUSED_TAKE)) {
        decline!("the host does this");
    }
    let ones = |n: usize| full(call.outputs[n].layout.shape(), 1, call.outputs[n].dtype)?.stored();
    let buffers: Vec<_> = (0..call.outputs.len()).map(|n| Ok(ones(n)?.buffer().clone())).collect::<Result<_>>()?;
    call.outcome_from_buffers(buffers)
}

/// Runs `f` on a table of 10 float64 and 6 int64 indices. Returns the family and expression of each call other than fills.
fn calls(f: impl FnOnce(&NdArray, &NdArray) -> Result<()>) -> Vec<(Family, Option<String>)> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| register(&READER).expect("reader"));
    let run = || {
        let (table, at) = (linspace(0, 9, 10)?, NdArray::from_slice(&[3i64, 0, -1, 9, 5, 5])?);
        table.eval()?;
        let (done, records) = with_accelerators("reader", || explain(|| f(&table, &at)))?;
        done.map(|()| records)
    };
    let records: Vec<CallRecord> = with_device(Device::CPU, run).expect("no error");
    records.into_iter().filter(|r| r.family != Family::Fill).map(|r| (r.family, r.expression)).collect()
}

fn map(expression: &str) -> (Family, Option<String>) {
    (Family::Map, Some(expression.to_owned()))
}

const ALONE: (Family, Option<String>) = (Family::Gather, None);

#[test]
fn a_take_alone_is_a_gather() {
    let read = |t: &NdArray, at: &NdArray| t.take(at, 0)?.to_vec::<f64>().map(|v| assert_eq!(v, [3.0, 0.0, 9.0, 9.0, 5.0, 5.0]));
    assert_eq!(calls(read), [ALONE]);
    assert_eq!(calls(|t, at| t.take(&at.reshape([2, 3])?, None)?.eval().map(drop)), [ALONE]);
    // `take` is a call of its own without fusion, for a table that is not contiguous, and for a table of several axes.
    assert_eq!(calls(|t, at| with_fusion(false, || t.take(at, 0)?.exp()?.eval().map(drop))), [ALONE, map("exp(a0)")]);
    assert_eq!(calls(|t, at| (flip(t, None)?.take(at, 0)? + 1).eval().map(drop)), [ALONE, map("add(a0, 1)")]);
    assert_eq!(calls(|t, at| (t.reshape([5, 2])?.take(&(at % 2), 0)? + 1).eval().map(drop))[1..], [ALONE, map("add(a0, 1)")]);
}

#[test]
fn a_take_within_an_expression_is_fused() {
    assert_eq!(calls(|t, at| (t.take(at, 0)? * 2).eval().map(drop)), [map("multiply(take(a0, a1), 2)")]);
    assert_eq!(calls(|t, at| t.take(&(at - 1), 0)?.eval().map(drop)), [map("take(a0, subtract(a1, 1))")]);
    let narrow = |t: &NdArray, at: &NdArray| (t.take(at.abs()?.astype(DType::U8)?.eval()?, 0)? + 1).eval().map(drop);
    assert_eq!(calls(narrow).last(), Some(&map("add(take(a0, int32(a1)), 1)")));
    let sum = calls(|t, at| (t.take(at, 0)? * t.take(at, 0)?).sum(()).map(drop));
    assert_eq!(sum, [(Family::Reduce, Some("multiply(take(a0, a1), take(a2, a1))".to_owned()))]);
    let nested = calls(|t, at| {
        let sum = t.take(&at.take(at.astype(DType::I32)?.eval()?, 0)?, 0)? + 1; // the inner array is now uniquely owned
        sum.eval().map(drop)
    });
    assert_eq!(nested.last(), Some(&map("add(take(a0, take(a1, a2)), 1)")));
}

#[test]
fn a_shared_take_is_computed_once() {
    let rows = |t: &NdArray, at: &NdArray| (t.reshape([10, 1])? + t.take(at, 0)?).eval().map(drop);
    assert_eq!(calls(rows), [ALONE, map("add(a0, a1)")]);
    let twice = |t: &NdArray, at: &NdArray| {
        let taken = t.take(at, 0)?;
        taken.sum(())?;
        taken.max(())?;
        Ok(())
    };
    let families: Vec<Family> = calls(twice).into_iter().map(|(family, _)| family).collect();
    assert_eq!(families, [Family::Reduce, Family::Gather, Family::Reduce]);
    let beside = |t: &NdArray, at: &NdArray| {
        let taken = t.take(at, 0)?;
        (&taken + 1).eval()?;
        assert!(!taken.is_deferred());
        Ok(())
    };
    assert_eq!(calls(beside), [map("add(take(a0, a1), 1); take(a0, a1)")]);
}

#[test]
fn invalid_takes_are_errors_before_evaluation() {
    calls(|t, at| {
        let none = t.index(cuprum::s![..0])?;
        assert!(matches!(none.take(at, 0), Err(Error::Shape { .. })));
        assert!(matches!(t.take(t, 0), Err(Error::DType { .. })));
        assert!(t.take(at, 1).is_err());
        assert_eq!(t.take(&at.index(cuprum::s![..0])?, 0)?.size(), 0);
        Ok(())
    });
}
