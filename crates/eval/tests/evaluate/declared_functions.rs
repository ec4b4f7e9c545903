//! Tests that every declared function is callable by its path and aliases, with and without `np.`.

use cuprum_eval::{EvalErrorKind, Function};

#[test]
fn every_function_is_reachable() {
    for function in cuprum_eval::functions() {
        let aliases = function.aliases.iter().map(|a| (*a).to_owned());
        for path in std::iter::once(function.path()).chain(aliases) {
            for prefix in ["", "np."] {
                // The function itself must reject the keyword, which shows that the path was found.
                let source = format!("{prefix}{path}(no_such_keyword=1)");
                let error = cuprum_eval::eval(&source, []).expect_err(&source);
                assert_eq!(error.kind(), EvalErrorKind::Array, "{source}: {error}");
                assert!(error.message().contains("unexpected keyword argument 'no_such_keyword'"), "{source}: {error}");
            }
        }
    }
}

#[test]
fn every_function_is_listed_once() {
    let functions = cuprum_eval::functions();
    let mut paths: Vec<String> = functions.iter().map(|f| f.path()).collect();
    let count = paths.len();
    paths.dedup();
    assert_eq!(paths.len(), count, "two functions have the same path");
    assert!(count > 150, "{count}");
}

/// Checks that every function is a Rust function that is declared outside `eval`.
#[test]
fn every_function_is_defined_in_rust() {
    for function in Function::all() {
        assert!(!function.rust.starts_with("cuprum_eval::"), "{}: {}", function.path(), function.rust);
        assert!(!function.doc.is_empty(), "{}", function.path());
    }
}
