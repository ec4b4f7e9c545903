//! Every row of core's table is served on every base device: by a row of its backend, a kernel of its family, or a
//! composite body.

use cuprum::{Family, Op, OpFilter, registry};

/// Rows of the table that the base of a device has nothing for.
fn unserved(base: &str, has_row: fn(Op) -> bool) -> Vec<&'static str> {
    let base = registry::all().into_iter().find(|a| a.name == base).unwrap();
    let kernel = |op: Op| {
        base.kernels.iter().any(|k| {
            k.family == op.family()
                && match k.ops {
                    OpFilter::All => true,
                    OpFilter::Only(ops) => ops.contains(&op),
                }
        })
    };
    let served = |op: Op| op.0.composite.is_some() || if op.family() == Family::Map { has_row(op) } else { kernel(op) };
    Op::all().filter(|op| !served(*op)).map(Op::name).collect()
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
