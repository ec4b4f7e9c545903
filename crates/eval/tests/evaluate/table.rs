//! Every declared function is reachable by its paths, with and without `np.`, and nothing else is callable but Python's built-ins.

use cuprum_eval::{EvalErrorKind, Function};

#[test]
fn every_function_is_reachable() {
    for function in cuprum_eval::functions() {
        let aliases = function.aliases.iter().map(|a| (*a).to_owned());
        for path in std::iter::once(function.path()).chain(aliases) {
            for prefix in ["", "np."] {
                // The message is of the function's own parameters, so the path was found.
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
    assert_eq!(paths.len(), count, "two functions of one path");
    assert!(count > 150, "{count}");
}

/// Each function is a Rust function of this library: none exists in `eval` alone.
#[test]
fn every_function_is_defined_in_rust() {
    for function in Function::all() {
        assert!(!function.rust.starts_with("cuprum_eval::"), "{}: {}", function.path(), function.rust);
        assert!(!function.doc.is_empty(), "{}", function.path());
    }
}
