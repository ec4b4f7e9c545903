//! Completeness of the op table: every base accelerator runs every op by a table entry, a kernel of its family, or a composite.

use cuprum::core::ops::reduce::{MEAN, STD, VAR};
use cuprum::core::{Family, registry};
use cuprum::function::Function;
use cuprum::{DType, Device, Op, Value, explain};

use crate::test_accelerators::{set_up, u16_ones};

/// Ops that core expands to other operations before dispatch. Only kernels that declare the variance receive it.
const COMPOSED: [Op; 3] = [MEAN, VAR, STD];

/// Returns the names of the ops that the accelerator `base` cannot run. `has_kernel` tells whether its table has an elementwise op.
fn unserved(base: &str, has_kernel: fn(Op) -> bool) -> Vec<&'static str> {
    let base = registry::all_accelerators().into_iter().find(|a| a.name == base).unwrap();
    let kernel = |op: Op| base.kernels.iter().any(|k| k.family == op.family() && k.ops.accepts(op));
    let served = |op: Op| op.0.composite.is_some() || if op.family() == Family::Map { has_kernel(op) } else { kernel(op) };
    Op::all().filter(|op| !COMPOSED.contains(op) && !served(*op)).map(Op::name).collect()
}

#[test]
fn the_cpu_runs_every_op() {
    assert_eq!(unserved("cpu", cuprum::backend_cpu::has_kernel), [""; 0]);
}

#[test]
#[cfg(feature = "cuda")]
fn cuda_runs_every_op() {
    assert_eq!(unserved("cuda", cuprum::backend_cuda::codegen::has_cpp_expression), [""; 0]);
}

#[test]
fn composed_ops_reach_no_kernel() {
    set_up();
    let a = u16_ones(&[4, 3]).astype(DType::F32).unwrap();
    for op in COMPOSED {
        let function = Function::find(op.name()).unwrap();
        let (value, records) = explain(|| function.call(vec![Value::Array(a.clone())], vec![])?.array(op.name())?.item());
        assert_eq!(value.unwrap().as_f64(), if op == MEAN { 1.0 } else { 0.0 });
        let seen = records.iter().any(|r| r.op == op.name());
        assert!(!records.is_empty() && seen == (op == VAR && a.device() == Device::CPU), "{op:?}: {records:?}");
    }
}

#[test]
fn paths_of_functions_are_unique() {
    let mut seen = std::collections::HashMap::new();
    // Other crates of this program may declare their own functions under a path of NumPy.
    for function in Function::all().filter(|f| f.rust.starts_with("cuprum_")) {
        for path in std::iter::once(function.path()).chain(function.aliases.iter().map(|a| (*a).to_owned())) {
            assert_eq!(seen.insert(path.clone(), function.rust), None, "'{path}' is declared twice");
        }
    }
    assert!(seen.len() > 200, "{}", seen.len());
}

#[test]
fn indices_of_operations_are_unique() {
    let mut indices: Vec<usize> = Op::all().map(Op::index).collect();
    indices.sort_unstable();
    indices.dedup();
    assert_eq!(indices.len(), Op::all().count());
}

#[test]
fn functions_are_described() {
    for function in Function::all() {
        assert!(function.doc.ends_with('.') || !function.rust.starts_with("cuprum_"), "{}: {}", function.path(), function.doc);
    }
    for op in Op::all() {
        assert_eq!(op.0.rule.is_some(), op.family() == Family::Map, "{op:?}");
    }
}
