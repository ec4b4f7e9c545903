//! Every declared function is a Rust function of the facade, under NumPy's path.
//!
//!     CUPRUM_UPDATE=1 cargo test --test functions    # writes tests/functions/paths.rs

mod array_api;
mod messages;
mod rust_only;

use std::collections::BTreeSet;

use cuprum::function::Function;

/// Imports each path, which fails to compile if the facade lacks it, and lists them.
macro_rules! paths {
    ($($($part:ident)::+;)*) => {
        mod exist {
            $(#[allow(unused_imports)] use cuprum::$($part)::+ as _;)*
        }
        const PATHS: &[&str] = &[$(stringify!($($part)::+)),*];
    };
}

include!("paths.rs");

/// Returns the path under `cuprum` that a declaration stands for, such as `linalg::norm`.
///
/// Rust's keywords have an underscore: `where_`.
fn rust_path(function: &Function) -> String {
    let name = function.rust.rsplit("::").next().unwrap_or_default();
    let is_named = name == function.name || name.trim_end_matches('_') == function.name;
    assert!(is_named, "{} is declared as {}", function.rust, function.path());
    function.namespace.split('.').filter(|n| !n.is_empty()).chain([name]).collect::<Vec<_>>().join("::")
}

#[test]
fn every_declared_function_is_in_the_facade() {
    // A method of an array alone has no function.
    let is_method = |f: &Function| matches!(f.namespace, "ndarray" | "sparray");
    let declared = Function::all().filter(|f| f.rust.starts_with("cuprum") && !is_method(f));
    let wanted: BTreeSet<String> = declared.map(rust_path).collect();
    if std::env::var_os("CUPRUM_UPDATE").is_some() {
        let lines: String = wanted.iter().map(|path| format!("    {path};\n")).collect();
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/functions/paths.rs");
        std::fs::write(file, format!("paths! {{\n{lines}}}\n")).unwrap();
        return;
    }
    let listed: BTreeSet<String> = PATHS.iter().map(|path| path.replace(' ', "")).collect();
    assert_eq!(listed, wanted, "out of date: CUPRUM_UPDATE=1 cargo test --test functions");
    assert!(wanted.len() > 150, "{}", wanted.len());
}
