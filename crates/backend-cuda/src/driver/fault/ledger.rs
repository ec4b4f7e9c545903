//! The launches of each thread that may have faulted, and the reports of their faults.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use super::cell::{Cells, Fault, FaultCell, FreeWords, allocate_words, lock};
use crate::driver::Context;
use crate::driver::memory::DeviceBuffer;
use crate::driver::per_device::PerDevice;
use crate::error::Result;

/// Maximum number of launches that a thread leaves unchecked. With more, it waits for them.
const MAX_OPEN: usize = 256;

/// A ledger: the launches of one thread that may have faulted, until their faults are reported to the thread.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<LedgerState>);

#[derive(Debug, Default)]
struct LedgerState {
    /// Unchecked launches, each with the number of its stream.
    open: Vec<(u32, Arc<FaultCell>)>,
    /// The first fault that was found and not reported.
    untold: Option<Fault>,
}

impl Ledger {
    /// Adds a launch.
    pub(super) fn add(&self, stream: u32, cell: &Arc<FaultCell>) {
        let mut state = lock(&self.0);
        state.open.retain(|(_, other)| !Arc::ptr_eq(other, cell));
        state.open.push((stream, cell.clone()));
    }

    /// Returns the number of launches that have not been checked.
    fn open(&self) -> usize {
        lock(&self.0).open.len()
    }

    /// Records a fault whose launch is no longer open.
    fn record(&self, fault: Fault) {
        lock(&self.0).untold.get_or_insert(fault);
    }

    /// Checks the launches on every stream for which `has_run` returns true.
    pub(super) fn settle(&self, has_run: impl Fn(u32) -> bool) {
        let state = &mut *lock(&self.0);
        let untold = &mut state.untold;
        state.open.retain(|(stream, cell)| {
            if !has_run(*stream) {
                return !cell.is_sound();
            }
            if let Some(fault) = cell.find_untold() {
                untold.get_or_insert(fault);
            }
            false
        });
    }

    /// Returns the fault that was found and not reported, as an error.
    pub(super) fn report(&self) -> Result<()> {
        lock(&self.0).untold.take().map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// Removes a launch whose fault another error reports to the thread.
    pub(super) fn strike(&self, cell: &Arc<FaultCell>) {
        let mut state = lock(&self.0);
        let before = state.open.len();
        state.open.retain(|(_, other)| !Arc::ptr_eq(other, cell));
        if state.open.len() < before {
            lock(&cell.state).is_told = true;
        }
    }

    fn is_empty(&self) -> bool {
        let state = lock(&self.0);
        state.open.is_empty() && state.untold.is_none()
    }
}

/// Error words and ledgers of one context.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) free: Arc<FreeWords>,
    /// Ledgers of the threads that queued launches that may fault. The ledger of an ended thread has no other reference.
    pub(super) ledgers: Mutex<Vec<Arc<Ledger>>>,
}

impl Faults {
    /// Creates the ledger of a thread.
    pub(super) fn register(&self) -> Arc<Ledger> {
        let made = Arc::new(Ledger::default());
        let mut ledgers = lock(&self.ledgers);
        ledgers.retain(|ledger| Arc::strong_count(ledger) > 1 || !ledger.is_empty());
        ledgers.push(made.clone());
        made
    }

    /// Returns the ledgers of threads that have ended. All of their launches are queued.
    pub(super) fn abandoned(&self) -> Vec<Arc<Ledger>> {
        let ledgers = lock(&self.ledgers);
        ledgers.iter().filter(|ledger| Arc::strong_count(ledger) == 1).cloned().collect()
    }
}

/// The launch that a thread is preparing: the context's number, the stream, and the error word.
pub(super) type Prepared = (usize, u32, Arc<FaultCell>);

thread_local! {
    /// This thread's ledgers, each with the number of its context.
    static LEDGERS: RefCell<Vec<(usize, Arc<Ledger>)>> = const { RefCell::new(Vec::new()) };
    /// The launch that this thread is preparing, until its outputs are recorded as dependent on it.
    pub(super) static PREPARED: RefCell<Option<Prepared>> = const { RefCell::new(None) };
}

static FAULTS: PerDevice<Faults> = PerDevice::new();

impl Context {
    /// Returns the error words and ledgers of this device.
    pub(super) fn faults(&self) -> &'static Faults {
        FAULTS.get(self)
    }

    /// Returns an error word for a launch on a stream, and adds it to this thread's ledger.
    pub(super) fn open_fault_cell(&'static self, stream: u32) -> Result<Arc<FaultCell>> {
        let cell = self.new_fault_cell(false)?;
        let ledger = self.ledger()?;
        if ledger.open() >= MAX_OPEN {
            self.wait()?;
            ledger.settle(|_| true);
        }
        ledger.add(stream, &cell);
        Ok(cell)
    }

    /// Returns an error word for the kernels of a graph, or of one launch.
    pub(in crate::driver) fn new_fault_cell(&'static self, is_graph: bool) -> Result<Arc<FaultCell>> {
        let free = &self.faults().free;
        let word = free.take(|| {
            self.bind()?;
            allocate_words()
        })?;
        Ok(FaultCell::new(word, free.clone(), is_graph))
    }

    fn ledger(&'static self) -> Result<Arc<Ledger>> {
        let ordinal = self.info().ordinal;
        if let Some(known) = self.known_ledger() {
            return Ok(known);
        }
        // The launches of threads that have ended are checked here at the latest, so that their number is bounded.
        let abandoned = self.faults().abandoned();
        if abandoned.iter().map(|ledger| ledger.open()).sum::<usize>() > MAX_OPEN {
            self.wait()?;
            abandoned.iter().for_each(|ledger| ledger.settle(|_| true));
        }
        drop(abandoned);
        let made = self.faults().register();
        let _ = LEDGERS.try_with(|ledgers| ledgers.borrow_mut().push((ordinal, made.clone())));
        Ok(made)
    }

    /// Returns this thread's ledger, if it has one.
    pub(super) fn known_ledger(&self) -> Option<Arc<Ledger>> {
        let ordinal = self.info().ordinal;
        let find = |ledgers: &RefCell<Vec<(usize, Arc<Ledger>)>>| {
            ledgers.borrow().iter().find(|(of, _)| *of == ordinal).map(|(_, ledger)| ledger.clone())
        };
        LEDGERS.try_with(find).ok().flatten()
    }

    /// Reports faults of launches that this thread queued on streams whose work has run.
    pub(in crate::driver) fn report_faults(&self, has_run: impl Fn(u32) -> bool) -> Result<()> {
        let Some(ledger) = self.known_ledger() else { return Ok(()) };
        let ordinal = self.info().ordinal;
        let _ = PREPARED.try_with(|prepared| {
            let is_checked = |p: &mut Prepared| p.0 == ordinal && has_run(p.1);
            drop(prepared.borrow_mut().take_if(is_checked));
        });
        ledger.settle(has_run);
        ledger.report()
    }

    /// Waits for all streams, then reports faults of this thread and of threads that had ended before.
    pub(in crate::driver) fn wait_and_report(&self) -> Result<()> {
        // A thread that ends meanwhile may have queued a launch behind the wait.
        let abandoned = self.faults().abandoned();
        self.wait()?;
        self.report_faults(|_| true)?;
        abandoned.iter().for_each(|ledger| ledger.settle(|_| true));
        abandoned.iter().try_for_each(|ledger| ledger.report())
    }

    /// Records the launch of a graph, which reads and writes these buffers.
    pub(in crate::driver) fn launch_fault_cell<'a>(
        &'static self,
        stream: u32,
        cell: &Arc<FaultCell>,
        buffers: impl Iterator<Item = &'a DeviceBuffer>,
    ) -> Result<()> {
        let mut inputs = Cells::new();
        buffers.for_each(|buffer| buffer.taint().add_to(&mut inputs));
        let ledger = self.ledger()?;
        if let Some(fault) = cell.launch_again(inputs) {
            ledger.record(fault);
        }
        ledger.add(stream, cell);
        Ok(())
    }
}
