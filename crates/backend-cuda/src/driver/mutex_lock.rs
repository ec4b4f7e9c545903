//! Locks of mutexes whose data stay valid if a thread panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, also if a thread has panicked while it held the lock.
pub(super) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
