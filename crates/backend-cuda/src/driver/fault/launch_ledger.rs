//! Per-thread ledgers of launches that may have faulted. A launch stays in the ledger of the thread that queued the launch until the host
//! has checked the error word of the launch. Faults are reported to that thread.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use super::error_word::{FreeErrorWords, LaunchErrorWord, LaunchErrorWords, ReportedFault, allocate_error_words};
use crate::driver::Context;
use crate::driver::memory::DeviceBuffer;
use crate::driver::mutex_lock::lock_ignoring_poison;
use crate::driver::per_device::PerDevice;
use crate::error::Result;

/// Maximum number of launches per thread whose error words are unchecked. Before a thread adds a launch beyond this number, the thread
/// waits for all streams and checks its launches.
const MAX_UNCHECKED_LAUNCHES: usize = 256;

/// The launches of one thread that may have faulted. A launch stays in the ledger until its error word is checked.
#[derive(Debug, Default)]
pub(super) struct LaunchLedger(Mutex<LedgerState>);

#[derive(Debug, Default)]
struct LedgerState {
    /// The error words that the host has not checked for faults yet, each with the stream number of its launch.
    unchecked: Vec<(u32, Arc<LaunchErrorWord>)>,
    /// The first fault that was found in an error word but not yet reported to the thread that queued the launch.
    unreported: Option<ReportedFault>,
}

impl LaunchLedger {
    /// Adds a launch on `stream` whose kernels report faults in `error_word`. Replaces an earlier launch with the same error word, which is
    /// a launch of the same graph.
    pub(super) fn add_launch(&self, stream: u32, error_word: &Arc<LaunchErrorWord>) {
        let mut state = lock_ignoring_poison(&self.0);
        state.unchecked.retain(|(_, other)| !Arc::ptr_eq(other, error_word));
        state.unchecked.push((stream, error_word.clone()));
    }

    /// Returns the number of launches whose error words are unchecked.
    fn unchecked_count(&self) -> usize {
        lock_ignoring_poison(&self.0).unchecked.len()
    }

    /// Keeps `fault` until [`LaunchLedger::report_fault`] reports it, unless an earlier fault is still unreported.
    fn record_fault(&self, fault: ReportedFault) {
        lock_ignoring_poison(&self.0).unreported.get_or_insert(fault);
    }

    /// Checks the launches on every stream for which `has_run` returns true, and removes them from the ledger. `has_run` takes a stream
    /// number and returns whether the work of the stream has ended. Keeps the first fault that it finds for [`LaunchLedger::report_fault`].
    pub(super) fn check_ended_launches(&self, has_run: impl Fn(u32) -> bool) {
        let state = &mut *lock_ignoring_poison(&self.0);
        let unreported = &mut state.unreported;
        state.unchecked.retain(|(stream, error_word)| {
            if !has_run(*stream) {
                return !error_word.has_run_without_fault();
            }
            if let Some(fault) = error_word.take_unreported_fault() {
                unreported.get_or_insert(fault);
            }
            false
        });
    }

    /// Returns the fault that was found but not yet reported, as an error, and removes it from the ledger. Returns `Ok` if there is none.
    pub(super) fn report_fault(&self) -> Result<()> {
        lock_ignoring_poison(&self.0).unreported.take().map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// Removes the launch with this error word, if the ledger contains it, and marks its fault as reported. Called when an error with this
    /// fault goes to the user, so that the ledger does not report the fault again.
    pub(super) fn remove_reported_launch(&self, error_word: &Arc<LaunchErrorWord>) {
        let mut state = lock_ignoring_poison(&self.0);
        let before = state.unchecked.len();
        state.unchecked.retain(|(_, other)| !Arc::ptr_eq(other, error_word));
        if state.unchecked.len() < before {
            lock_ignoring_poison(&error_word.state).is_reported = true;
        }
    }

    fn is_empty(&self) -> bool {
        let state = lock_ignoring_poison(&self.0);
        state.unchecked.is_empty() && state.unreported.is_none()
    }
}

/// The words in which kernels of one context report errors, and a ledger per thread: a list of launches not yet checked for errors.
#[derive(Debug, Default)]
pub(super) struct FaultTracker {
    /// Error words that no launch uses, for later launches.
    pub(super) free: Arc<FreeErrorWords>,
    /// The ledgers of all threads that have queued launches which may fault. This list holds the only reference to the ledger of a thread
    /// that has ended.
    pub(super) ledgers: Mutex<Vec<Arc<LaunchLedger>>>,
}

impl FaultTracker {
    /// Creates and registers a ledger for the calling thread. Removes empty ledgers of threads that have ended.
    pub(super) fn register_ledger(&self) -> Arc<LaunchLedger> {
        let made = Arc::new(LaunchLedger::default());
        let mut ledgers = lock_ignoring_poison(&self.ledgers);
        ledgers.retain(|ledger| Arc::strong_count(ledger) > 1 || !ledger.is_empty());
        ledgers.push(made.clone());
        made
    }

    /// Returns the ledgers of threads that have ended. These threads queue no more launches.
    pub(super) fn ledgers_of_ended_threads(&self) -> Vec<Arc<LaunchLedger>> {
        let ledgers = lock_ignoring_poison(&self.ledgers);
        ledgers.iter().filter(|ledger| Arc::strong_count(ledger) == 1).cloned().collect()
    }
}

/// A launch that a thread is preparing: the device index of its context, its stream number, and its error word.
pub(super) type PreparedLaunch = (usize, u32, Arc<LaunchErrorWord>);

thread_local! {
    /// This thread's ledgers, each with the device index of its context.
    static THREAD_LEDGERS: RefCell<Vec<(usize, Arc<LaunchLedger>)>> = const { RefCell::new(Vec::new()) };
    /// The launch that this thread is preparing. `None` once [`DeviceBuffer::record_dependencies`] has recorded that the outputs depend on
    /// the launch.
    pub(super) static PREPARED_LAUNCH: RefCell<Option<PreparedLaunch>> = const { RefCell::new(None) };
}

static FAULT_TRACKERS: PerDevice<FaultTracker> = PerDevice::new();

impl Context {
    /// Returns the words in which kernels report errors, and the lists of launches per thread that have not been checked for errors.
    pub(super) fn fault_tracker(&self) -> &'static FaultTracker {
        FAULT_TRACKERS.get_or_create(self)
    }

    /// Returns an error word for a launch on `stream`, and adds the launch to this thread's ledger.
    pub(super) fn error_word_for_launch(&'static self, stream: u32) -> Result<Arc<LaunchErrorWord>> {
        let error_word = self.new_error_word(false)?;
        let ledger = self.get_or_create_ledger()?;
        if ledger.unchecked_count() >= MAX_UNCHECKED_LAUNCHES {
            self.wait_for_all_streams()?;
            ledger.check_ended_launches(|_| true);
        }
        ledger.add_launch(stream, &error_word);
        Ok(error_word)
    }

    /// Returns an unused error word, in which the kernels of one launch report faults. If `is_graph`, all launches of one graph share the
    /// error word.
    pub(in crate::driver) fn new_error_word(&'static self, is_graph: bool) -> Result<Arc<LaunchErrorWord>> {
        let free = &self.fault_tracker().free;
        let word = free.take_free_error_word(|| {
            self.set_current()?;
            allocate_error_words()
        })?;
        Ok(LaunchErrorWord::new(word, free.clone(), is_graph))
    }

    /// Returns the ledger of the launches of this thread in this context. The first call creates the ledger.
    fn get_or_create_ledger(&'static self) -> Result<Arc<LaunchLedger>> {
        let ordinal = self.info().ordinal;
        if let Some(known) = self.existing_ledger() {
            return Ok(known);
        }
        // Limits the number of unchecked launches of ended threads, which do not check their launches any more.
        let abandoned = self.fault_tracker().ledgers_of_ended_threads();
        if abandoned.iter().map(|ledger| ledger.unchecked_count()).sum::<usize>() > MAX_UNCHECKED_LAUNCHES {
            self.wait_for_all_streams()?;
            abandoned.iter().for_each(|ledger| ledger.check_ended_launches(|_| true));
        }
        drop(abandoned);
        let made = self.fault_tracker().register_ledger();
        let _ = THREAD_LEDGERS.try_with(|ledgers| ledgers.borrow_mut().push((ordinal, made.clone())));
        Ok(made)
    }

    /// Returns the ledger of the launches of this thread in this context, or `None` if the thread has queued no launch that may fault.
    pub(super) fn existing_ledger(&self) -> Option<Arc<LaunchLedger>> {
        let ordinal = self.info().ordinal;
        let find = |ledgers: &RefCell<Vec<(usize, Arc<LaunchLedger>)>>| {
            ledgers.borrow().iter().find(|(of, _)| *of == ordinal).map(|(_, ledger)| ledger.clone())
        };
        THREAD_LEDGERS.try_with(find).ok().flatten()
    }

    /// Checks the launches that this thread queued on streams for which `has_run` returns true ([`LaunchLedger::check_ended_launches`]).
    /// Returns the first unreported fault as an error.
    pub(in crate::driver) fn report_faults(&self, has_run: impl Fn(u32) -> bool) -> Result<()> {
        let Some(ledger) = self.existing_ledger() else { return Ok(()) };
        let ordinal = self.info().ordinal;
        let _ = PREPARED_LAUNCH.try_with(|prepared| {
            let is_checked = |p: &mut PreparedLaunch| p.0 == ordinal && has_run(p.1);
            drop(prepared.borrow_mut().take_if(is_checked));
        });
        ledger.check_ended_launches(has_run);
        ledger.report_fault()
    }

    /// Waits for all streams. Then reports faults of the launches of this thread, and of threads that had ended before the wait.
    pub(in crate::driver) fn wait_and_report_faults(&self) -> Result<()> {
        // The ledgers are collected before the wait, because a thread that ends during the wait may have queued a launch that the wait
        // misses.
        let abandoned = self.fault_tracker().ledgers_of_ended_threads();
        self.wait_for_all_streams()?;
        self.report_faults(|_| true)?;
        abandoned.iter().for_each(|ledger| ledger.check_ended_launches(|_| true));
        abandoned.iter().try_for_each(|ledger| ledger.report_fault())
    }

    /// Records a launch of a graph on `stream`. `error_word` is the graph's error word. `buffers` are the buffers that the graph uses but
    /// does not own.
    pub(in crate::driver) fn record_graph_launch<'a>(
        &'static self,
        stream: u32,
        error_word: &Arc<LaunchErrorWord>,
        buffers: impl Iterator<Item = &'a DeviceBuffer>,
    ) -> Result<()> {
        let mut inputs = LaunchErrorWords::new();
        buffers.for_each(|buffer| buffer.buffer_error_words().merge_error_words_into(&mut inputs));
        let ledger = self.get_or_create_ledger()?;
        if let Some(fault) = error_word.prepare_relaunch(inputs) {
            ledger.record_fault(fault);
        }
        ledger.add_launch(stream, error_word);
        Ok(())
    }
}
