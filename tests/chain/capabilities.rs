//! Capabilities: a kernel with default filters receives only elementwise operations of core and plain reductions. The accelerator
//! `plain` is such a third-party accelerator before the CPU; `indexer` declares fused `take` for Map alone.

use std::cell::RefCell;
use std::sync::Once;

use cuprum::core::ops::elementwise::{ADD, EXP};
use cuprum::core::ops::reduce::{SUM, VAR};
use cuprum::core::ops::take::FUSED_TAKE;
use cuprum::core::{Accelerator, Availability, Call, Capability, Family, Kernel, Outcome, StepKind, decline, register};
use cuprum::{CallRecord, DType, Device, NdArray, Result, axis, explain, full, linspace, with_accelerators, with_device};

cuprum::kernel! {
    /// Half of the argument.
    pub fn halved<T: Float>(x: T) -> T { x * 0.5 }

    /// The larger value of each.
    #[reduction(identity = MIN)]
    pub fn greatest<T: Number>(a: T, b: T) -> T { if a < b { b } else { a } }
}

thread_local! {
    /// Family of each call that `plain` or `adder` received, and whether the call contains only elementwise operations of core.
    static RECEIVED: RefCell<Vec<(Family, bool)>> = const { RefCell::new(Vec::new()) };
}

/// Records the call and declines it.
fn receive(call: &Call) -> Result<Outcome> {
    let is_plain = |kind: StepKind| match kind {
        StepKind::Input(_) | StepKind::Param(_) | StepKind::Cast => true,
        StepKind::Apply(op) => op != FUSED_TAKE && op.0.body.is_none(),
        StepKind::Fold(_) => false,
    };
    let steps_are_plain = call.program().is_none_or(|p| p.steps.iter().all(|s| is_plain(s.kind)));
    RECEIVED.with_borrow_mut(|list| list.push((call.family(), steps_are_plain && call.op != VAR && call.op.0.body.is_none())));
    decline!("it only records")
}

static PLAIN: Accelerator = Accelerator {
    name: "plain",
    device: "cpu",
    rank: 900,
    summary: "default filters",
    probe: || Availability::Ready(String::new()),
    kernels: &[
        Kernel::new(Family::Map, receive),
        Kernel::new(Family::Reduce, receive),
        Kernel::new(Family::Rows, receive),
        Kernel::new(Family::Scan, receive),
    ],
    base: None,
};

/// Takes programs with a fused `take` and returns ones; declines others.
fn ones(call: &Call) -> Result<Outcome> {
    if call.program().is_none_or(|p| p.ops().all(|op| op != FUSED_TAKE)) {
        decline!("the host does this");
    }
    let ones = full(call.outputs[0].layout.shape(), 1, call.outputs[0].dtype)?.stored()?;
    call.outcome_from_buffers([ones.buffer().clone()])
}

static INDEXER: Accelerator = Accelerator {
    name: "indexer",
    device: "cpu",
    rank: 950,
    summary: "fused take in Map alone",
    probe: || Availability::Ready(String::new()),
    kernels: &[Kernel::new(Family::Map, ones).only_ops(&[ADD, EXP]).with_capabilities(&[Capability::FusedTake])],
    base: None,
};

/// Declares two operations, and records the calls that it receives.
static ADDER: Accelerator = Accelerator {
    name: "adder",
    device: "cpu",
    rank: 960,
    summary: "additions and sums",
    probe: || Availability::Ready(String::new()),
    kernels: &[
        Kernel::new(Family::Map, receive).only_ops(&[ADD]).with_capabilities(&[Capability::UserDefined]),
        Kernel::new(Family::Rows, receive).only_ops(&[ADD, SUM]).with_capabilities(&[Capability::RowPrograms]),
    ],
    base: None,
};

/// Runs `f` under an order of accelerators. Returns its calls other than fills, and the calls that the kernels received.
fn run(order: &str, f: impl FnOnce() -> Result<NdArray>) -> (NdArray, Vec<CallRecord>, Vec<(Family, bool)>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| [&PLAIN, &INDEXER, &ADDER].into_iter().for_each(|a| register(a).expect(a.name)));
    RECEIVED.take();
    let evaluate = || explain(|| f().and_then(|a| a.eval().cloned()));
    let (value, records) = with_device(Device::CPU, || with_accelerators(order, evaluate)).expect("a valid order");
    (value.expect("no error"), records.into_iter().filter(|r| r.family != Family::Fill).collect(), RECEIVED.take())
}

fn table() -> (NdArray, NdArray) {
    with_device(Device::CPU, || (linspace(0, 9, 10).unwrap(), NdArray::from_slice(&[3i64, 0, -1, 9]).unwrap()))
}

#[test]
fn a_fused_take_reaches_only_kernels_that_declare_it() {
    let (table, at) = table();
    let (value, records, received) = run("plain,indexer", || Ok(table.take(&at, 0)? + 1));
    assert_eq!(value.to_vec::<f64>().unwrap(), [1.0; 4], "`indexer` returns ones");
    assert_eq!(records[0].expression.as_deref(), Some("add(take(a0, a1), 1)"));
    assert_eq!((records[0].served_by, &received[..]), (Some("indexer"), &[][..]));
    assert_eq!(records[0].declined, [("plain", "does not declare fused take".to_owned())]);
    // Its filter applies to the other operations of the program.
    let (value, _, received) = run("plain,indexer", || Ok(table.take(&at, 0)?.exp()? + 1));
    assert_eq!((value.to_vec::<f64>().unwrap(), received.is_empty()), (vec![1.0; 4], true));
}

#[test]
fn families_without_fused_take_receive_its_result() {
    let (table, at) = table();
    for (family, f) in [
        (Family::Reduce, (|t: &NdArray, at: &NdArray| (t.take(at, 0)? * 2).sum(())) as fn(&NdArray, &NdArray) -> Result<NdArray>),
        (Family::Scan, |t, at| t.take(at, 0)?.cumsum(0)),
    ] {
        let (value, records, received) = run("plain,indexer", || f(&table, &at));
        let families: Vec<Family> = records.iter().map(|r| r.family).collect();
        assert_eq!(families, [Family::Gather, family]);
        assert_eq!(received, [(family, true)]);
        let expected = run("", || f(&table, &at)).0;
        assert_eq!(value.to_vec::<f64>().unwrap(), expected.to_vec::<f64>().unwrap());
    }
}

#[test]
fn without_a_declaration_nothing_is_deferred() {
    let (table, at) = table();
    assert!(!run("plain", || table.take(&at, 0)).1.is_empty());
    let (_, records, received) = run("plain", || Ok(table.take(&at, 0)? + 1));
    assert_eq!(records.iter().map(|r| r.family).collect::<Vec<_>>(), [Family::Gather, Family::Map]);
    assert_eq!(received, [(Family::Map, true)]);
}

#[test]
fn default_filters_receive_plain_calls_only() {
    let x = with_device(Device::CPU, || linspace(0, 1, 12).unwrap().reshape([3, 4]).unwrap());
    let expressions: [&dyn Fn() -> Result<NdArray>; 6] = [
        &|| Ok(halved(&x)? + 1),
        &|| halved(&x)?.sum(-1),
        &|| greatest(&x, axis(0)),
        &|| x.var(-1),
        &|| Ok(&x - x.max(axis(-1).keepdims())?),
        &|| (&x + 1).exp()?.cumsum(0),
    ];
    let mut plain_calls = 0;
    for f in expressions {
        let (value, records, received) = run("plain", f);
        assert!(received.iter().all(|(_, is_plain)| *is_plain), "{received:?}: {records:#?}");
        assert!(records.iter().all(|r| r.served_by == Some("cpu")), "{records:#?}");
        plain_calls += received.len();
        assert_eq!(value.to_vec::<f64>().unwrap(), run("", f).0.to_vec::<f64>().unwrap());
    }
    assert!(plain_calls > 0);
}

#[test]
fn a_list_of_operations_applies_to_every_step() {
    let x = with_device(Device::CPU, || linspace(0, 1, 12).unwrap().reshape([3, 4]).unwrap());
    let accepted: [&dyn Fn() -> Result<NdArray>; 3] = [&|| Ok(&x + 1), &|| Ok(halved(&x)? + 1), &|| Ok(&x + x.sum(axis(-1).keepdims())?)];
    for f in accepted {
        let (_, records, received) = run("adder", f);
        assert_eq!((records.len(), received.len()), (1, 1), "{records:#?}");
    }
    let excluded: [(&dyn Fn() -> Result<NdArray>, &str); 4] = [
        (&|| Ok(&x - 1), "subtract"),
        (&|| Ok(x.exp()? + 1), "exp"),
        (&|| x.astype(DType::F32), "astype"),
        (&|| Ok(&x + x.max(axis(-1).keepdims())?), "max"),
    ];
    for (f, op) in excluded {
        let (_, records, received) = run("adder", f);
        assert_eq!(received, [], "{op}");
        assert_eq!(records[0].declined, [("adder", format!("does not take the operation {op}"))]);
    }
    // The list does not apply to an operation that needs a capability.
    assert_eq!(run("adder", || halved(&x)).2.len(), 1);
}
