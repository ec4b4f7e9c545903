//! Deeply nested lists and lists with shared items: bounded memory and no recursion.

use cuprum_core::ops::python_value::Value;
use cuprum_eval::{Session, repr};

/// Runs `f` in a thread whose stack overflows at a few thousand recursive calls.
fn on_small_stack(f: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(1 << 20).spawn(f).unwrap().join().unwrap();
}

/// Runs the statement `first`, then runs `statement` `times` times.
fn repeat(session: &mut Session, first: &str, statement: &str, times: usize) {
    session.run(first).unwrap();
    for _ in 0..times {
        session.run(statement).unwrap();
    }
}

#[test]
fn shared_items_count_towards_the_limit() {
    let mut session = Session::new();
    repeat(&mut session, "x = [1]", "x = [x, x]", 24);
    let error = session.run("x = [x, x]").unwrap_err();
    assert!(error.to_string().contains("33554432 values") && error.to_string().contains("at most 16777216"), "{error}");
    // The failed assignment must leave `x` unchanged and usable.
    assert_eq!(repr(&session.run("(len(x), x == x, len(x[0] + x[1]))").unwrap().unwrap()).unwrap(), "(2, True, 4)");
    assert!(session.run("(x,) * 60000").unwrap_err().to_string().contains("too long"));
    repeat(&mut session, "y = ([1, 2],)", "y = (y, y)", 10);
    assert_eq!(repr(&session.run("array(y).sum()").unwrap().unwrap()).unwrap(), "array(3072)");
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    on_small_stack(|| {
        let mut session = Session::new();
        repeat(&mut session, "x = 1", "x = [x]", 20_000);
        session.run("y = x; z = (x, x)").unwrap();
        let text = repr(session.get("x").unwrap()).unwrap();
        assert_eq!((text.len(), text.matches('[').count()), (40_001, 20_000));
        assert_eq!(repr(&session.run("x == y").unwrap().unwrap()).unwrap(), "True");
        for source in ["array(x)", "x + ones(2)", "sum(x)", "float64(x)", "concatenate(x)", "zeros(x)", "ones(3)[x]"] {
            let error = session.run(source).unwrap_err().to_string();
            assert!(error.contains("at most 64 dimensions") || error.contains("expected an integer"), "{source}: {error}");
        }
        cuprum_core::profiler::Evaluate::evaluate(session.get("z").unwrap()).unwrap();
        drop(session);
    });
}

#[test]
fn arrays_of_many_axes_become_lists() {
    on_small_stack(|| {
        let mut session = Session::new();
        let list = |value: Option<Value>| repr(&value.unwrap()).unwrap();
        assert_eq!(list(session.run("zeros((1,) * 60).tolist()").unwrap()), format!("{}0.0{}", "[".repeat(60), "]".repeat(60)));
        // Only the number of axes limits the nesting depth of lists.
        if let Ok(value) = session.run("zeros((1,) * 60000).tolist()") {
            assert_eq!(list(value).len(), 120_003);
        }
        assert_eq!(list(session.run("arange(6).reshape(3, 2).tolist()").unwrap()), "[[0, 1], [2, 3], [4, 5]]");
        assert_eq!(list(session.run("zeros((2, 0)).tolist()").unwrap()), "[[], []]");
        assert_eq!(list(session.run("zeros((0, 2)).tolist()").unwrap()), "[]");
        assert_eq!(list(session.run("array(True).tolist()").unwrap()), "True");
        let error = session.run("broadcast_to(1, (10**6, 10**6)).tolist()").unwrap_err().to_string();
        assert!(error.contains("too many for a list"), "{error}");
        let error = session.run("concatenate(broadcast_to(1, (10**9, 2)))").unwrap_err().to_string();
        assert!(error.contains("too long for a sequence of arrays"), "{error}");
    });
}
