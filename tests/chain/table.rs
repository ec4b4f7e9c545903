//! Every row of core's table is served on every base device: by a row of its backend, a kernel of its family, or a
//! composite body.

use cuprum::core::ops::reduce::{MEAN, STD, VAR};
use cuprum::{Args, DType, Device, Family, Op, Value, explain, registry};

use crate::made_up::{ones, set_up};

/// Rows that core writes over others before it comes to a call. No kernel sees them, but for the variance's: those that name it.
const COMPOSED: [Op; 3] = [MEAN, VAR, STD];

/// Rows of the table that the base of a device has nothing for.
fn unserved(base: &str, has_row: fn(Op) -> bool) -> Vec<&'static str> {
    let base = registry::all().into_iter().find(|a| a.name == base).unwrap();
    let kernel = |op: Op| base.kernels.iter().any(|k| k.family == op.family() && k.ops.takes(op));
    let served = |op: Op| op.0.composite.is_some() || if op.family() == Family::Map { has_row(op) } else { kernel(op) };
    Op::all().filter(|op| !COMPOSED.contains(op) && !served(*op)).map(Op::name).collect()
}

#[test]
fn cpu() {
    assert_eq!(unserved("cpu", cuprum::backend_cpu::has_row), [""; 0]);
}

#[test]
#[cfg(feature = "cuda")]
fn cuda() {
    assert_eq!(unserved("cuda", cuprum::backend_cuda::codegen::has_row), [""; 0]);
}

#[test]
fn composed_rows_reach_no_kernel() {
    set_up();
    let a = ones(&[4, 3]).astype(DType::F32).unwrap();
    for op in COMPOSED {
        let call = op.0.call.unwrap();
        let args = || Args::bind(op.name(), op.0.signature, vec![Value::Array(a.clone())], vec![]);
        let (value, records) = explain(|| call(args()?)?.array(op.name())?.item());
        assert_eq!(value.unwrap().as_f64(), if op == MEAN { 1.0 } else { 0.0 });
        let seen = records.iter().any(|r| r.op == op.name());
        assert!(!records.is_empty() && seen == (op == VAR && a.device() == Device::CPU), "{op:?}: {records:?}");
    }
}

#[test]
fn names_and_aliases_are_unique() {
    let mut seen = std::collections::HashMap::new();
    for op in Op::all() {
        for name in [op.name()].iter().chain(op.0.aliases) {
            assert_eq!(seen.insert(*name, op.name()), None, "'{name}' is there twice");
        }
        assert_eq!(Op::by_name(op.name()), Some(op));
    }
}

#[test]
fn places_are_unique() {
    let mut places: Vec<usize> = Op::all().map(Op::index).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), Op::all().count());
}

#[test]
fn rows_are_described() {
    for op in Op::all() {
        assert!(op.0.doc.ends_with('.'), "{op:?}: {}", op.0.doc);
        assert_eq!(op.0.rule.is_some(), op.family() == Family::Map, "{op:?}");
        assert!(op.0.call.is_some(), "{op:?} cannot be called by name");
    }
}
