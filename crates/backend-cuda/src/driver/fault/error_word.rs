//! Error words, in which kernels report faults: their memory, and the faults that the host has read from them.

use std::ffi::c_void;
use std::ptr;
use std::slice::from_ref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use crate::driver::mutex_lock::lock_ignoring_poison;
use crate::driver::primary_context::check_result;
use crate::driver::sys;
use crate::error::{CudaError, Result};

/// Placeholder for the fault code, which a kernel sets in an error word while it writes the other fields.
const BEING_WRITTEN_CODE: u64 = u64::MAX;

/// Number of error words in one allocation of pinned memory, which is one page.
const ERROR_WORDS_PER_PAGE: usize = 128;

/// A fault that a kernel reported: its code, operation, bad value and allowed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReportedFault {
    code: u64,
    op: u64,
    pub(super) value: i64,
    length: u64,
}

impl From<ReportedFault> for CudaError {
    fn from(ReportedFault { code, op, value, length }: ReportedFault) -> CudaError {
        CudaError::DeviceFault { code, op, value, length }
    }
}

/// The host address and the device address of an error word: 32 bytes of mapped host memory in which a kernel reports a fault.
#[derive(Debug, Clone, Copy)]
pub(super) struct ErrorWord {
    pub(super) host: *mut [u64; 4],
    pub(super) device: u64,
}

// SAFETY: `host` points to memory that is never freed and is accessed only by volatile reads and writes.
unsafe impl Send for ErrorWord {}
// SAFETY: `host` points to memory that is never freed and is accessed only by volatile reads and writes.
unsafe impl Sync for ErrorWord {}

impl ErrorWord {
    fn clear_error_word(self) {
        // SAFETY: `host` points to four aligned u64 that are never freed. The write is volatile, because the device may write too.
        unsafe { self.host.cast::<u64>().write_volatile(0) };
    }

    /// Returns the fault in the error word and clears the word. Returns `None` if the word has no fault, or if a kernel is still writing
    /// one.
    fn take_fault(self) -> Option<ReportedFault> {
        // SAFETY: `host` points to four aligned u64 that are never freed. The read is volatile, because the device may write.
        let code = unsafe { self.host.cast::<u64>().read_volatile() };
        if code == 0 || code == BEING_WRITTEN_CODE {
            return None;
        }
        // SAFETY: `host` points to four aligned u64 that are never freed. A kernel sets a final code only after it has written the other
        // fields, so all fields are complete.
        let [_, op, value, length] = unsafe { self.host.read_volatile() };
        self.clear_error_word();
        Some(ReportedFault { code, op, value: value.cast_signed(), length })
    }
}

/// Unused error words, which hold no fault. The kernels of later launches report faults in them.
#[derive(Debug, Default)]
pub(super) struct FreeErrorWords(pub(super) Mutex<Vec<ErrorWord>>);

impl FreeErrorWords {
    /// Returns an unused error word. If none is left, takes new ones from `allocate`.
    pub(super) fn take_free_error_word(&self, allocate: impl FnOnce() -> Result<Vec<ErrorWord>>) -> Result<ErrorWord> {
        if let Some(word) = lock_ignoring_poison(&self.0).pop() {
            return Ok(word);
        }
        let mut made = allocate()?;
        let word = made.pop().ok_or_else(|| CudaError::Invalid("a block has no error word".into()))?;
        lock_ignoring_poison(&self.0).append(&mut made);
        Ok(word)
    }
}

/// The error word of one launch, or of all launches of one graph, and the fault that the host has read from this error word.
#[derive(Debug)]
pub(in crate::driver) struct LaunchErrorWord {
    pub(super) word: ErrorWord,
    free: Arc<FreeErrorWords>,
    /// True if the error word belongs to a graph. All launches of the graph then report faults in this error word.
    pub(super) is_graph: bool,
    /// True once the launch has run and reported no fault, so that the error word need not be read again. Stays false for a graph, whose
    /// next launch may fault.
    has_run_without_fault: AtomicBool,
    pub(super) state: Mutex<FaultState>,
}

#[derive(Debug, Default)]
pub(super) struct FaultState {
    found: Option<ReportedFault>,
    /// Whether the fault was already reported to the thread that queued the launch, or stored in the ledger of this thread for a report.
    pub(super) is_reported: bool,
    /// The error words of the launches on which the inputs of a graph's last launch depend. Empty if this error word does not belong to a
    /// graph.
    pub(super) inputs: LaunchErrorWords,
}

/// The error words of the launches that the values of a buffer depend on.
pub(super) type LaunchErrorWords = SmallVec<[Arc<LaunchErrorWord>; 1]>;

impl LaunchErrorWord {
    pub(super) fn new(word: ErrorWord, free: Arc<FreeErrorWords>, is_graph: bool) -> Arc<LaunchErrorWord> {
        Arc::new(LaunchErrorWord { word, free, is_graph, has_run_without_fault: AtomicBool::new(false), state: Mutex::default() })
    }

    pub(super) fn has_run_without_fault(&self) -> bool {
        self.has_run_without_fault.load(Ordering::Acquire)
    }

    /// Returns the fault of the launch, or `None` if it reported none. The launch must have ended.
    pub(super) fn find_fault(&self) -> Option<ReportedFault> {
        if self.has_run_without_fault() { None } else { self.find_fault_locked(&mut lock_ignoring_poison(&self.state)) }
    }

    /// Returns the fault of the launch like [`LaunchErrorWord::find_fault`], with the locked `state` of this error word.
    fn find_fault_locked(&self, state: &mut FaultState) -> Option<ReportedFault> {
        if state.found.is_none() {
            state.found = self.word.take_fault();
        }
        if state.found.is_none() && !self.is_graph {
            self.has_run_without_fault.store(true, Ordering::Release);
        }
        state.found
    }

    /// Returns the fault of the launch and marks it as reported. Returns `None` if the launch had no fault, or its fault was reported
    /// before. The launch must have ended.
    pub(super) fn take_unreported_fault(&self) -> Option<ReportedFault> {
        let mut state = lock_ignoring_poison(&self.state);
        let found = self.find_fault_locked(&mut state)?;
        (!std::mem::replace(&mut state.is_reported, true)).then_some(found)
    }

    /// Prepares this error word, which belongs to a graph, for the graph's next launch. `inputs` are the error words of the launches on
    /// which the graph's inputs depend. Returns the fault of the graph's previous launch if it was not reported yet, else `None`.
    pub(super) fn prepare_relaunch(self: &Arc<Self>, inputs: LaunchErrorWords) -> Option<ReportedFault> {
        // If an input depends on another graph, adds the error words on which the other graph depends. A check then need not follow
        // references between graphs, which may form a cycle.
        let mut flat = LaunchErrorWords::new();
        for error_word in inputs.iter().filter(|error_word| !Arc::ptr_eq(error_word, self)) {
            merge_error_words(&mut flat, from_ref(error_word));
            let of_graph = lock_ignoring_poison(&error_word.state).inputs.clone();
            of_graph.iter().filter(|c| !Arc::ptr_eq(c, self)).for_each(|c| merge_error_words(&mut flat, from_ref(c)));
        }
        let mut state = lock_ignoring_poison(&self.state);
        let found = self.find_fault_locked(&mut state).filter(|_| !state.is_reported);
        let before = std::mem::replace(&mut *state, FaultState { inputs: flat, ..FaultState::default() });
        drop(state);
        drop(before); // dropped after the lock is released, because `before` may hold the last references to other error words
        found
    }
}

impl Drop for LaunchErrorWord {
    fn drop(&mut self) {
        // A ledger or a graph holds a reference to this error word until the launch has ended. When the last reference is dropped, no
        // kernel uses the error word any more.
        self.word.clear_error_word();
        lock_ignoring_poison(&self.free.0).push(self.word);
    }
}

/// Adds the error words in `more` to `list`, except those that `list` already contains and those of launches that ended without a fault.
pub(super) fn merge_error_words(list: &mut LaunchErrorWords, more: &[Arc<LaunchErrorWord>]) {
    for error_word in more.iter().filter(|error_word| !error_word.has_run_without_fault()) {
        if !list.iter().any(|other| Arc::ptr_eq(other, error_word)) {
            list.push(error_word.clone());
        }
    }
}

/// Allocates a page of cleared error words that the device can access. The page is never freed. Requires a current context.
pub(super) fn allocate_error_words() -> Result<Vec<ErrorWord>> {
    let mut host: *mut c_void = ptr::null_mut();
    let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
    let bytes = ERROR_WORDS_PER_PAGE * size_of::<[u64; 4]>();
    // SAFETY: a context is current, and the out-pointer `host` is a local.
    check_result("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&mut host, bytes, flags) })?;
    let mut device = 0;
    // SAFETY: `host` was just allocated with DEVICEMAP, and the out-pointer `device` is a local.
    check_result("cuMemHostGetDevicePointer", unsafe { sys::cuMemHostGetDevicePointer_v2(&mut device, host, 0) })?;
    let host = host.cast::<[u64; 4]>();
    let word = |n: usize| {
        // SAFETY: `n` is below the number of error words in the allocation that `host` points to.
        let host = unsafe { host.add(n) };
        // SAFETY: `host` points to an aligned error word inside the allocation, whose address no kernel has yet.
        unsafe { host.write_volatile([0; 4]) };
        ErrorWord { host, device: device + (n * size_of::<[u64; 4]>()) as u64 }
    };
    Ok((0..ERROR_WORDS_PER_PAGE).map(word).collect())
}
