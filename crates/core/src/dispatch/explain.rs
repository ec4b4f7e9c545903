//! [`explain`], and records of launches that bypassed dispatch.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use super::call_record::CallRecord;
use super::trace;
use crate::array::StoredArray;
use crate::call::{Call, KernelModeGuard, Linalg, Work, wants_decline_reasons};
use crate::device::{Buffer, Stream};
use crate::error::Result;

thread_local! {
    static EXPLAIN_RECORDS: RefCell<Option<Vec<CallRecord>>> = const { RefCell::new(None) };
    /// Buffers of the inverse matrices computed so far inside the innermost [`explain`] of this thread.
    static INVERSE_MATRIX_BUFFERS: RefCell<Vec<Weak<dyn Buffer>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f` and returns its result with the record of every call that this thread dispatched, in order.
///
/// Deferred arrays that `f` builds but does not evaluate are not included: call [`NdArray::eval`](crate::NdArray::eval) inside `f`.
pub fn explain<R>(f: impl FnOnce() -> R) -> (R, Vec<CallRecord>) {
    struct RestoreExplainRecordsOnDrop(Option<Vec<CallRecord>>, Vec<Weak<dyn Buffer>>);
    impl Drop for RestoreExplainRecordsOnDrop {
        fn drop(&mut self) {
            let _ = EXPLAIN_RECORDS.try_with(|records| records.replace(self.0.take()));
            let _ = INVERSE_MATRIX_BUFFERS.try_with(|inverses| inverses.replace(std::mem::take(&mut self.1)));
        }
    }
    let outer = RestoreExplainRecordsOnDrop(EXPLAIN_RECORDS.replace(Some(Vec::new())), INVERSE_MATRIX_BUFFERS.take());
    let (_guard, _restore) = (KernelModeGuard::enable_reason_formatting(), outer);
    let result = f();
    let records = EXPLAIN_RECORDS.take().unwrap_or_default();
    (result, records)
}

/// Runs `work`, a launch that bypasses dispatch, and records the launch for [`explain`] and `CUPRUM_TRACE`. Backends call this function.
///
/// Returns the result of `work`. `describe` is called only if the record is needed.
pub fn record_launch<R>(stream: Stream, describe: impl FnOnce() -> CallRecord, work: impl FnOnce() -> Result<R>) -> Result<R> {
    let explaining = wants_decline_reasons();
    if !explaining && !trace::is_tracing() {
        return work();
    }
    let mut record = describe();
    let watch = trace::begin_traced_call(stream);
    let result = work();
    if result.is_err() {
        record.served_by = None;
    }
    trace::end_traced_call(watch, Some(&record), result.as_ref().err());
    if explaining {
        push_explain_record(Some(record));
    }
    result
}

/// Returns the hint to use `solve` if `call` multiplies by an inverse matrix that was computed inside the same [`explain`]. If `call`
/// computes an inverse, remembers its results `outputs`.
///
/// Inverse matrices are recognised by their buffers, which views share, so `inv(a).T @ b` gets the hint too.
pub(super) fn linear_solve_hint(call: &Call, outputs: &[StoredArray]) -> Option<&'static str> {
    // `try_with`, because destructors may call this function while the thread ends, after the thread-locals are destroyed.
    if EXPLAIN_RECORDS.try_with(|records| records.borrow().is_none()).unwrap_or(true) {
        return None;
    }
    let hint = INVERSE_MATRIX_BUFFERS.try_with(|inverses| match &call.work {
        Work::Linalg(Linalg::Inverse) => {
            inverses.borrow_mut().extend(outputs.iter().map(|output| Arc::downgrade(output.buffer())));
            None
        }
        Work::Contract(_) => {
            let is_inverse =
                |a: &StoredArray| inverses.borrow().iter().any(|known| std::ptr::addr_eq(known.as_ptr(), Arc::as_ptr(a.buffer())));
            call.inputs.iter().any(is_inverse).then_some("solve(a, b) is faster and more accurate than inv(a) @ b")
        }
        _ => None,
    });
    hint.ok().flatten()
}

/// Appends `record` to the records of this thread's innermost [`explain`], if there is one.
pub(super) fn push_explain_record(record: Option<CallRecord>) {
    let _ = EXPLAIN_RECORDS.try_with(|records| {
        if let Some(list) = &mut *records.borrow_mut() {
            list.extend(record);
        }
    });
}
