//! Every row of core's table that can be called is reachable by its names, with and without `np.`.

use cuprum_core::Op;
use cuprum_eval::EvalErrorKind;

#[test]
fn every_row_is_reachable() {
    for op in Op::all().filter(|op| op.0.call.is_some()) {
        for name in [op.name()].iter().chain(op.0.aliases) {
            for prefix in ["", "np."] {
                // Called with a keyword that nothing has: the message is the row's own, so the name was found.
                let source = format!("{prefix}{name}(no_such_keyword=1)");
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
    let mut names: Vec<&str> = functions.iter().map(|f| f.name).collect();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count, "two functions of one name");
    for op in Op::all().filter(|op| op.0.call.is_some()) {
        assert!(names.contains(&op.name()), "{}", op.name());
    }
    assert!(functions.iter().all(|f| !f.doc.is_empty()));
}
