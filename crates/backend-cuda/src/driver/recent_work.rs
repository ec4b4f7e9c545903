//! The work that each thread queued last. The error of a lost device names it, since it may be the cause.

use std::cell::RefCell;
use std::sync::Arc;

use cuprum_core::Op;

/// An operation or kernel that was queued.
enum Queued {
    Operation(Op),
    /// A user-written kernel, by name.
    Kernel(Arc<str>),
}

/// A ring buffer of the work that a thread queued last.
struct Ring {
    entries: [Option<Queued>; 4],
    /// Index of the latest entry.
    at: usize,
}

thread_local! {
    static RECENT: RefCell<Ring> = const { RefCell::new(Ring { entries: [const { None }; 4], at: 0 }) };
}

fn record(latest: Queued) {
    // A thread that is ending has no ring buffer.
    let _ = RECENT.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            last.at = (last.at + 1) % last.entries.len();
            let at = last.at;
            last.entries[at] = Some(latest);
        }
    });
}

/// Records that an operation was queued.
pub(crate) fn record_operation(op: Op) {
    record(Queued::Operation(op));
}

/// Records that a user-written kernel was queued.
pub(crate) fn record_kernel(name: &Arc<str>) {
    record(Queued::Kernel(name.clone()));
}

/// Returns the names of the work that this thread queued last, latest first.
pub(crate) fn describe() -> String {
    let name = |queued: &Queued| match queued {
        Queued::Operation(op) => op.name().to_owned(),
        Queued::Kernel(name) => format!("the kernel `{name}`"),
    };
    let names = RECENT.try_with(|last| {
        let Ring { entries, at } = &*last.borrow();
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
