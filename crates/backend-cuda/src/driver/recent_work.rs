//! The operations that each thread queued last. The error for a lost device names these operations, because one of them may be the cause.

use std::cell::RefCell;
use std::sync::Arc;

use cuprum_core::Op;

/// An operation or a user-defined kernel that was queued.
enum QueuedWork {
    Operation(Op),
    /// A user-defined kernel, by name.
    Kernel(Arc<str>),
}

/// A ring buffer of the operations and kernels that a thread queued last.
struct RecentWork {
    entries: [Option<QueuedWork>; 4],
    /// Index in the ring buffer `entries` of the operation that was queued last.
    at: usize,
}

thread_local! {
    static RECENT_WORK: RefCell<RecentWork> = const { RefCell::new(RecentWork { entries: [const { None }; 4], at: 0 }) };
}

fn record_queued_work(latest: QueuedWork) {
    // An error of `try_with` is ignored, because a thread that is ending has no ring buffer any more.
    let _ = RECENT_WORK.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            last.at = (last.at + 1) % last.entries.len();
            let at = last.at;
            last.entries[at] = Some(latest);
        }
    });
}

/// Records that this thread queued the operation `op`.
pub(crate) fn record_operation(op: Op) {
    record_queued_work(QueuedWork::Operation(op));
}

/// Records that this thread queued the user-defined kernel `name`.
pub(crate) fn record_user_kernel(name: &Arc<str>) {
    record_queued_work(QueuedWork::Kernel(name.clone()));
}

/// Returns a clause for an error message: the names of the operations that this thread queued last, latest first.
pub(crate) fn describe_recent_work() -> String {
    let name = |queued: &QueuedWork| match queued {
        QueuedWork::Operation(op) => op.name().to_owned(),
        QueuedWork::Kernel(name) => format!("the kernel `{name}`"),
    };
    let names = RECENT_WORK.try_with(|last| {
        let RecentWork { entries, at } = &*last.borrow();
        (0..entries.len())
            .filter_map(|before| entries[(at + entries.len() - before) % entries.len()].as_ref())
            .map(name)
            .collect::<Vec<_>>()
    });
    match names.unwrap_or_default().join(", ") {
        names if names.is_empty() => "this thread had queued nothing".into(),
        names => format!("this thread had queued, the latest first: {names}"),
    }
}
