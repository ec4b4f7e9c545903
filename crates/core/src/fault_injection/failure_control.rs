//! The counters of operations, and the functions with which tests make an operation fail.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::FailurePoint;

/// The kind of operation that is counted ([`FailurePoint`]), or 0 for none.
static COUNTED_FAILURE_POINT: AtomicUsize = AtomicUsize::new(0);
/// Number of operations of the kind [`COUNTED_FAILURE_POINT`] since the counting started.
static COUNTED_OPERATIONS: AtomicUsize = AtomicUsize::new(0);
/// Index of the first operation that fails, among the counted operations.
static FIRST_FAILING_OPERATION: AtomicUsize = AtomicUsize::new(0);
/// Number of consecutive operations that fail, beginning with number [`FIRST_FAILING_OPERATION`].
static FAILING_OPERATION_COUNT: AtomicUsize = AtomicUsize::new(0);
/// Index of the operation at which the process aborts, among the counted operations; `usize::MAX` for none.
static ABORTING_OPERATION: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Whether only operations of the thread that started the counting are counted ([`CountingScope::Thread`]).
static COUNTS_ONE_THREAD_ONLY: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread called the function that started the counting, such as [`with_failure`].
    static STARTED_COUNTING: Cell<bool> = const { Cell::new(false) };
}

/// The threads whose operations are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CountingScope {
    /// All threads of the process.
    Process,
    /// Only the operations of the calling thread, so that tests that run on other threads do not fail.
    Thread,
}

/// Lock that is held while operations are counted.
static COUNTING_LOCK: Mutex<()> = Mutex::new(());

pub fn should_fail(point: FailurePoint) -> bool {
    if COUNTED_FAILURE_POINT.load(Ordering::Relaxed) != point as usize
        || (COUNTS_ONE_THREAD_ONLY.load(Ordering::Relaxed) && !STARTED_COUNTING.get())
    {
        return false;
    }
    let index = COUNTED_OPERATIONS.fetch_add(1, Ordering::Relaxed);
    if index == ABORTING_OPERATION.load(Ordering::Relaxed) {
        std::process::abort();
    }
    index.wrapping_sub(FIRST_FAILING_OPERATION.load(Ordering::Relaxed)) < FAILING_OPERATION_COUNT.load(Ordering::Relaxed)
}

/// Guard that stops counting when it is dropped, also after a panic of the closure.
struct StopCountingOnDrop;

impl Drop for StopCountingOnDrop {
    fn drop(&mut self) {
        COUNTED_FAILURE_POINT.store(0, Ordering::Relaxed);
        STARTED_COUNTING.set(false);
    }
}

fn run_with_injected_failures<R>(
    scope: CountingScope,
    point: FailurePoint,
    target: usize,
    length: usize,
    abort: usize,
    f: impl FnOnce() -> R,
) -> (R, usize) {
    let _exclusive = COUNTING_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    COUNTED_OPERATIONS.store(0, Ordering::Relaxed);
    FIRST_FAILING_OPERATION.store(target, Ordering::Relaxed);
    FAILING_OPERATION_COUNT.store(length, Ordering::Relaxed);
    ABORTING_OPERATION.store(abort, Ordering::Relaxed);
    COUNTS_ONE_THREAD_ONLY.store(scope == CountingScope::Thread, Ordering::Relaxed);
    STARTED_COUNTING.set(true);
    COUNTED_FAILURE_POINT.store(point as usize, Ordering::Relaxed);
    let guard = StopCountingOnDrop;
    let result = f();
    drop(guard);
    (result, COUNTED_OPERATIONS.load(Ordering::Relaxed))
}

/// Runs `f` while operation number `n` of kind `point` fails, counted from 0 over all threads. Returns the result, and whether `f`
/// reached that operation. Concurrent calls wait for each other, and a nested call deadlocks.
pub fn with_failure<R>(point: FailurePoint, n: usize, f: impl FnOnce() -> R) -> (R, bool) {
    with_failures(point, n, 1, f)
}

/// Runs `f` as [`with_failure`] does, while operations `n..n + length` fail. With two failures in a row, a retry fails too.
pub fn with_failures<R>(point: FailurePoint, n: usize, length: usize, f: impl FnOnce() -> R) -> (R, bool) {
    let (result, counted) = run_with_injected_failures(CountingScope::Process, point, n, length, usize::MAX, f);
    (result, counted > n)
}

/// Runs `f` as [`with_failure`] does, and counts only the operations in `scope`.
pub fn with_failure_in_scope<R>(scope: CountingScope, point: FailurePoint, n: usize, f: impl FnOnce() -> R) -> (R, bool) {
    let (result, counted) = run_with_injected_failures(scope, point, n, 1, usize::MAX, f);
    (result, counted > n)
}

/// Runs `f` and ends the process without cleaning up at operation number `n` of kind `point`, as a crash or a signal would.
pub fn with_process_abort<R>(point: FailurePoint, n: usize, f: impl FnOnce() -> R) -> R {
    run_with_injected_failures(CountingScope::Process, point, 0, 0, n, f).0
}

/// Runs `f` and returns its result with the number of operations of kind `point` in `scope`.
pub fn count_operations<R>(scope: CountingScope, point: FailurePoint, f: impl FnOnce() -> R) -> (R, usize) {
    run_with_injected_failures(scope, point, 0, 0, usize::MAX, f)
}
