//! The launches that the values of a buffer depend on. A read of the buffer reports the faults of these launches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::error_word::{LaunchErrorWord, LaunchErrorWords, ReportedFault, merge_error_words};
use crate::driver::mutex_lock::lock_ignoring_poison;

/// The error words of launches that the values of a buffer depend on and that may have faulted.
#[derive(Debug, Default)]
pub(in crate::driver) struct BufferErrorWords {
    /// Whether `error_words` has entries. Can be read without locking `error_words`.
    has_entries: AtomicBool,
    error_words: Mutex<LaunchErrorWords>,
}

impl BufferErrorWords {
    pub(super) fn is_empty(&self) -> bool {
        !self.has_entries.load(Ordering::Acquire)
    }

    /// Adds the error words of the launches on which the buffer depends to `list`.
    pub(super) fn merge_error_words_into(&self, list: &mut LaunchErrorWords) {
        if !self.is_empty() {
            merge_error_words(list, &lock_ignoring_poison(&self.error_words));
        }
    }

    /// Adds the error words `more`. Removes error words of launches that ended without a fault.
    pub(super) fn add_error_words(&self, more: &[Arc<LaunchErrorWord>]) {
        if more.is_empty() {
            return;
        }
        let mut error_words = lock_ignoring_poison(&self.error_words);
        error_words.retain(|error_word| !error_word.has_run_without_fault());
        merge_error_words(&mut error_words, more);
        self.has_entries.store(!error_words.is_empty(), Ordering::Release);
    }

    /// Replaces the error words of the buffer with `error_words`, after a write that overwrites all values of the buffer.
    pub(super) fn replace_error_words(&self, error_words: LaunchErrorWords) {
        let any = !error_words.is_empty();
        let before = std::mem::replace(&mut *lock_ignoring_poison(&self.error_words), error_words);
        self.has_entries.store(any, Ordering::Release);
        drop(before);
    }

    /// Returns the first fault among the launches that the buffer's values depend on, with the error word of the faulting launch. Returns
    /// `None` if no launch has faulted. The work that computed the values must have ended.
    pub(super) fn find_fault(&self) -> Option<(Arc<LaunchErrorWord>, ReportedFault)> {
        if self.is_empty() {
            return None;
        }
        let mut all = lock_ignoring_poison(&self.error_words).clone();
        for error_word in all.clone().iter().filter(|error_word| error_word.is_graph) {
            merge_error_words(&mut all, &lock_ignoring_poison(&error_word.state).inputs);
        }
        let found = all.iter().find_map(|error_word| error_word.find_fault().map(|fault| (error_word.clone(), fault)));
        if found.is_none() {
            let mut error_words = lock_ignoring_poison(&self.error_words);
            error_words.retain(|error_word| !error_word.has_run_without_fault());
            self.has_entries.store(!error_words.is_empty(), Ordering::Release);
        }
        found
    }

    /// Records that the buffer contains copied values, which depend on the launches in `source`. `is_whole` states that the copy overwrites
    /// all values of the buffer.
    pub(in crate::driver) fn record_copy_from(&self, source: &BufferErrorWords, is_whole: bool) {
        let mut error_words = LaunchErrorWords::new();
        source.merge_error_words_into(&mut error_words);
        if is_whole { self.replace_error_words(error_words) } else { self.add_error_words(&error_words) }
    }
}
