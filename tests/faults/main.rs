//! Fault injection: each operation of a kind fails in turn. Every failure is a typed error, nothing leaks, and the same program succeeds
//! afterwards. `cuprum::core::fault_injection` has the kinds.
//!
//! `cargo test --features fault-injection --test faults`
#![allow(clippy::unwrap_used)]

mod allocator;
mod files;
mod memory;
mod processes;

use std::sync::{Mutex, MutexGuard, PoisonError};

use cuprum::core::fault_injection::{FailurePoint, with_failure};
use cuprum::{Device, Error, Result};

/// Maximum number of operations of one kind in a program. More would mean that a failure is retried without end.
const MAX_OPERATIONS: usize = 2000;

/// Excludes other tests of this process, because the counters of operations and of memory belong to the process.
fn exclusive() -> MutexGuard<'static, ()> {
    static EXCLUSIVE: Mutex<()> = Mutex::new(());
    EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn used_bytes() -> usize {
    Device::CPU.memory_stats().unwrap().used
}

/// Runs `program` once for each of its operations of kind `point` while that operation fails, and without a failure after each. Returns the
/// number of operations.
///
/// A failure must be an error that `is_expected` accepts, unless `may_succeed`: a program that works without the operation has the result
/// that `check` accepts. `check` also looks for leftovers.
fn fail_each<R>(
    name: &str,
    point: FailurePoint,
    may_succeed: bool,
    program: impl Fn() -> Result<R>,
    is_expected: impl Fn(&Error) -> bool,
    check: impl Fn(&Result<R>, &str),
) -> usize {
    // The first run fills caches and starts threads.
    check(&program(), &format!("{name}, first run"));
    let before = used_bytes();
    for n in 0..MAX_OPERATIONS {
        let context = format!("{name}, {point:?} {n}");
        let (result, failed) = with_failure(point, n, &program);
        match &result {
            Err(error) => assert!(failed && is_expected(error), "{context}: {error}"),
            Ok(_) => assert!(!failed || may_succeed, "{context}: the failure has no effect"),
        }
        check(&result, &context);
        drop(result);
        assert_eq!(used_bytes(), before, "{context}: memory leaks");
        if !failed {
            return n;
        }
        let again = program();
        assert!(again.is_ok(), "{context}: the program fails without a failure: {}", again.err().unwrap());
        check(&again, &format!("{context}, again"));
        drop(again);
        assert_eq!(used_bytes(), before, "{context}, again: memory leaks");
    }
    panic!("{name}: more than {MAX_OPERATIONS} operations of kind {point:?}");
}
