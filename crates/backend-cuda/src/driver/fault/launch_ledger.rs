//! Ledgers: per thread, the launches that may have faulted, and the reports of their faults.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use super::error_word::{FreeErrorWords, LaunchErrorWord, LaunchErrorWords, ReportedFault, allocate_error_words, lock};
use crate::driver::Context;
use crate::driver::memory::DeviceBuffer;
use crate::driver::per_device::PerDevice;
use crate::error::Result;

/// Maximum number of launches per thread whose error words are unchecked. A thread that exceeds it waits for its launches and checks them.
const MAX_UNCHECKED_LAUNCHES: usize = 256;

/// The launches of one thread that may have faulted. Each stays in the ledger until its error word is checked.
#[derive(Debug, Default)]
pub(super) struct LaunchLedger(Mutex<LedgerState>);

#[derive(Debug, Default)]
struct LedgerState {
    /// Error words that are unchecked, each with the number of the launch's stream.
    open: Vec<(u32, Arc<LaunchErrorWord>)>,
    /// The first fault that was found in an error word and not yet reported to the thread.
    unreported: Option<ReportedFault>,
}

impl LaunchLedger {
    /// Adds a launch on `stream`, by its error word.
    pub(super) fn add_launch(&self, stream: u32, error_word: &Arc<LaunchErrorWord>) {
        let mut state = lock(&self.0);
        state.open.retain(|(_, other)| !Arc::ptr_eq(other, error_word));
        state.open.push((stream, error_word.clone()));
    }

    /// Returns the number of launches whose error words are unchecked.
    fn unchecked_count(&self) -> usize {
        lock(&self.0).open.len()
    }

    /// Stores `fault` for the next report, unless an earlier fault is stored.
    fn record_fault(&self, fault: ReportedFault) {
        lock(&self.0).unreported.get_or_insert(fault);
    }

    /// Checks and removes the launches on every stream for which `has_run` returns true.
    pub(super) fn check_launches(&self, has_run: impl Fn(u32) -> bool) {
        let state = &mut *lock(&self.0);
        let unreported = &mut state.unreported;
        state.open.retain(|(stream, error_word)| {
            if !has_run(*stream) {
                return !error_word.ran_without_fault();
            }
            if let Some(fault) = error_word.take_unreported_fault() {
                unreported.get_or_insert(fault);
            }
            false
        });
    }

    /// Returns, as an error, a fault that was found and not reported yet. Returns `Ok` if there is none.
    pub(super) fn report_fault(&self) -> Result<()> {
        lock(&self.0).unreported.take().map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// Removes the launch that has this error word, because another error reports its fault to the thread.
    pub(super) fn remove_reported(&self, error_word: &Arc<LaunchErrorWord>) {
        let mut state = lock(&self.0);
        let before = state.open.len();
        state.open.retain(|(_, other)| !Arc::ptr_eq(other, error_word));
        if state.open.len() < before {
            lock(&error_word.state).is_reported = true;
        }
    }

    fn is_empty(&self) -> bool {
        let state = lock(&self.0);
        state.open.is_empty() && state.unreported.is_none()
    }
}

/// The fault reports of one context: error words that no kernel uses, and per thread the list of launches that may have faulted
/// ([`LaunchLedger`]).
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) free: Arc<FreeErrorWords>,
    /// The ledgers (lists of unchecked error words) of all threads that have queued launches which may fault. The ledger of an ended thread
    /// has no other reference.
    pub(super) ledgers: Mutex<Vec<Arc<LaunchLedger>>>,
}

impl Faults {
    /// Creates and registers the calling thread's list of launches that may have faulted.
    pub(super) fn register_ledger(&self) -> Arc<LaunchLedger> {
        let made = Arc::new(LaunchLedger::default());
        let mut ledgers = lock(&self.ledgers);
        ledgers.retain(|ledger| Arc::strong_count(ledger) > 1 || !ledger.is_empty());
        ledgers.push(made.clone());
        made
    }

    /// Returns the ledgers of threads that have ended. These threads queue no more launches.
    pub(super) fn of_ended_threads(&self) -> Vec<Arc<LaunchLedger>> {
        let ledgers = lock(&self.ledgers);
        ledgers.iter().filter(|ledger| Arc::strong_count(ledger) == 1).cloned().collect()
    }
}

/// A launch that a thread is preparing: the device index of its context, its stream, and its error word.
pub(super) type PreparedLaunch = (usize, u32, Arc<LaunchErrorWord>);

thread_local! {
    /// This thread's ledgers, each with the device index of its context.
    static LEDGERS: RefCell<Vec<(usize, Arc<LaunchLedger>)>> = const { RefCell::new(Vec::new()) };
    /// The launch that this thread is preparing. It is set until the launch's outputs are recorded as dependent on it.
    pub(super) static PREPARED_LAUNCH: RefCell<Option<PreparedLaunch>> = const { RefCell::new(None) };
}

static FAULTS: PerDevice<Faults> = PerDevice::new();

impl Context {
    /// Returns the unused error words and the ledgers of this context.
    pub(super) fn faults(&self) -> &'static Faults {
        FAULTS.get(self)
    }

    /// Returns an error word for a launch on `stream`, and adds the launch to this thread's ledger.
    pub(super) fn error_word_for_launch(&'static self, stream: u32) -> Result<Arc<LaunchErrorWord>> {
        let error_word = self.new_error_word(false)?;
        let ledger = self.ledger()?;
        if ledger.unchecked_count() >= MAX_UNCHECKED_LAUNCHES {
            self.wait_for_all()?;
            ledger.check_launches(|_| true);
        }
        ledger.add_launch(stream, &error_word);
        Ok(error_word)
    }

    /// Returns an unused error word for one launch, or for all launches of a graph if `is_graph`.
    pub(in crate::driver) fn new_error_word(&'static self, is_graph: bool) -> Result<Arc<LaunchErrorWord>> {
        let free = &self.faults().free;
        let word = free.take_word(|| {
            self.bind()?;
            allocate_error_words()
        })?;
        Ok(LaunchErrorWord::new(word, free.clone(), is_graph))
    }

    fn ledger(&'static self) -> Result<Arc<LaunchLedger>> {
        let ordinal = self.info().ordinal;
        if let Some(known) = self.existing_ledger() {
            return Ok(known);
        }
        // Checks the launches of ended threads here, because otherwise their number would have no bound.
        let abandoned = self.faults().of_ended_threads();
        if abandoned.iter().map(|ledger| ledger.unchecked_count()).sum::<usize>() > MAX_UNCHECKED_LAUNCHES {
            self.wait_for_all()?;
            abandoned.iter().for_each(|ledger| ledger.check_launches(|_| true));
        }
        drop(abandoned);
        let made = self.faults().register_ledger();
        let _ = LEDGERS.try_with(|ledgers| ledgers.borrow_mut().push((ordinal, made.clone())));
        Ok(made)
    }

    /// Returns this thread's ledger for this context, or `None` if the thread has queued no launch that may fault.
    pub(super) fn existing_ledger(&self) -> Option<Arc<LaunchLedger>> {
        let ordinal = self.info().ordinal;
        let find = |ledgers: &RefCell<Vec<(usize, Arc<LaunchLedger>)>>| {
            ledgers.borrow().iter().find(|(of, _)| *of == ordinal).map(|(_, ledger)| ledger.clone())
        };
        LEDGERS.try_with(find).ok().flatten()
    }

    /// Returns the faults, as an error, of launches that this thread queued on streams for which `has_run` returns true.
    pub(in crate::driver) fn report_faults(&self, has_run: impl Fn(u32) -> bool) -> Result<()> {
        let Some(ledger) = self.existing_ledger() else { return Ok(()) };
        let ordinal = self.info().ordinal;
        let _ = PREPARED_LAUNCH.try_with(|prepared| {
            let is_checked = |p: &mut PreparedLaunch| p.0 == ordinal && has_run(p.1);
            drop(prepared.borrow_mut().take_if(is_checked));
        });
        ledger.check_launches(has_run);
        ledger.report_fault()
    }

    /// Waits for all streams, then reports faults of this thread's launches and of those of threads that had ended before the wait.
    pub(in crate::driver) fn wait_and_report(&self) -> Result<()> {
        // The ledgers are collected before the wait, because a thread that ends during the wait may have queued a launch that the wait misses.
        let abandoned = self.faults().of_ended_threads();
        self.wait_for_all()?;
        self.report_faults(|_| true)?;
        abandoned.iter().for_each(|ledger| ledger.check_launches(|_| true));
        abandoned.iter().try_for_each(|ledger| ledger.report_fault())
    }

    /// Records a launch on `stream` of the graph that has this error word and that reads and writes `buffers`.
    pub(in crate::driver) fn record_graph_launch<'a>(
        &'static self,
        stream: u32,
        error_word: &Arc<LaunchErrorWord>,
        buffers: impl Iterator<Item = &'a DeviceBuffer>,
    ) -> Result<()> {
        let mut inputs = LaunchErrorWords::new();
        buffers.for_each(|buffer| buffer.launch_dependencies().merge_into(&mut inputs));
        let ledger = self.ledger()?;
        if let Some(fault) = error_word.prepare_relaunch(inputs) {
            ledger.record_fault(fault);
        }
        ledger.add_launch(stream, error_word);
        Ok(())
    }
}
