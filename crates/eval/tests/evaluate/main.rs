//! Tests of evaluation on the CPU backend.
#![allow(clippy::unwrap_used)]

use cuprum_backend_cpu as _;

mod calls;
mod declared_functions;
mod edge_cases;
mod errors;
mod index;
mod keywords;
mod nested_lists;
mod python_values;
mod random_programs;
mod scripts;

use cuprum_core::NdArray;
use cuprum_core::ops::python_value::Value;
use cuprum_eval::{EvalError, Session};

/// Returns a session with the variables that the tests use.
fn session() -> Session {
    let mut session = Session::new();
    let values: Vec<f64> = (0..12).map(f64::from).collect();
    session.set("a", NdArray::from_vec(values, [3, 4]).unwrap());
    session.set("i", NdArray::from_slice(&[2i64, 0, -1]).unwrap());
    session.set("f", NdArray::from_slice(&[1.0f32, 4.0, 9.0]).unwrap());
    session.set("b", NdArray::from_slice(&[true, false, true]).unwrap());
    session.set("z", NdArray::from_slice(&[cuprum_core::Complex::new(3.0f64, 4.0), cuprum_core::Complex::new(0.0, -1.0)]).unwrap());
    session
}

fn value(source: &str) -> Result<Value, EvalError> {
    session().run(source).map(|value| value.unwrap_or(Value::None))
}

/// Returns Python's `repr` of the value of `source`.
fn repr_of(source: &str) -> String {
    match value(source) {
        Ok(value) => cuprum_eval::repr(&value).unwrap_or_else(|e| panic!("{source}: {e}")),
        Err(e) => panic!("{}", e.render()),
    }
}

/// Compares the value of each source in `rows` with its expected `repr`, and reports all differences.
fn check(rows: &[(&str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|(source, want)| (source, want, repr_of(source)))
        .filter(|(_, want, got)| got != *want)
        .map(|(source, want, got)| format!("{source}\n  want {want}\n  got  {got}"))
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
