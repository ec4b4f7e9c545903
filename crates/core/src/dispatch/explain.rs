//! [`explain`], and records of launches that bypassed dispatch.

use std::cell::RefCell;

use super::record::CallRecord;
use super::trace;
use crate::call::{ModeGuard, wants_reasons};
use crate::device::Stream;
use crate::error::Result;

thread_local! {
    static EXPLAIN_RECORDS: RefCell<Option<Vec<CallRecord>>> = const { RefCell::new(None) };
}

/// Runs `f` and returns its result with the record of every call that this thread dispatched, in order.
///
/// Deferred arrays that `f` builds but does not evaluate are not included: call [`NdArray::eval`](crate::NdArray::eval) inside `f`.
pub fn explain<R>(f: impl FnOnce() -> R) -> (R, Vec<CallRecord>) {
    struct RestoreRecords(Option<Vec<CallRecord>>);
    impl Drop for RestoreRecords {
        fn drop(&mut self) {
            EXPLAIN_RECORDS.replace(self.0.take());
        }
    }
    let (_guard, _restore) = (ModeGuard::formatting_reasons(), RestoreRecords(EXPLAIN_RECORDS.replace(Some(Vec::new()))));
    let result = f();
    let records = EXPLAIN_RECORDS.take().unwrap_or_default();
    (result, records)
}

/// Runs `work`, a launch that bypasses dispatch, and records it for [`explain`] and `CUPRUM_TRACE`. For backends.
///
/// Returns the result of `work`. `describe` is called only if the record is needed.
pub fn record_launch<R>(stream: Stream, describe: impl FnOnce() -> CallRecord, work: impl FnOnce() -> Result<R>) -> Result<R> {
    let explaining = wants_reasons();
    if !explaining && !trace::is_tracing() {
        return work();
    }
    let mut record = describe();
    let watch = trace::begin_call(stream);
    let result = work();
    if result.is_err() {
        record.served_by = None;
    }
    trace::end_call(watch, Some(&record), result.as_ref().err());
    if explaining {
        push_explain_record(Some(record));
    }
    result
}

/// Appends `record` to the records of this thread's innermost [`explain`], if there is one.
pub(super) fn push_explain_record(record: Option<CallRecord>) {
    EXPLAIN_RECORDS.with_borrow_mut(|records| {
        if let Some(list) = records {
            list.extend(record);
        }
    });
}
