//! Faults of kernels: bad values, such as an index out of bounds, that a kernel reports while it goes on.
//!
//! Each launch that may fault has an error word of its own: 32 bytes of pinned host memory ([`Context::fault_pointer`]). A kernel writes
//! its first fault there, and must then carry on without touching memory out of bounds (skip the element). The host reads the word
//! after a wait that covers the launch, so a check costs one load and no copy.
//!
//! # Contract
//! - A fault is reported to the thread that queued the launch, at its next wait or read that covers the launch. One report covers all
//!   faults that were found by then; it carries the first.
//! - A fault is reported to every reader of an array that depends on the faulting launch, on whatever thread and however often it is
//!   read. Each buffer lists the launches that its values depend on; operations, copies and graphs pass the list on.
//! - A fault is never reported to another thread for data that does not depend on it.
//! - Waiting for the whole device also reports faults of threads that have ended, so that none is lost.
//! - The launches of a graph share one word, since its kernels hold the address. A launch makes the arrays of the graph sound again;
//!   a fault of the previous launch that was not reported yet is then reported to the launching thread.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;
use std::slice::from_ref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use cuprum_core::Stream;

use super::memory::DeviceBuffer;
use super::{Context, check, sys};
use crate::error::{CudaError, Result};

/// An index out of bounds.
pub const INDEX_OUT_OF_BOUNDS: u64 = 1;

/// Set by a kernel while it writes the other fields.
const BUSY: u64 = u64::MAX;

/// Error words of one pinned block: a page.
const WORDS_PER_BLOCK: usize = 128;

/// Maximum number of launches that a thread leaves unchecked. With more, it waits for them.
const MAX_OPEN: usize = 256;

/// CUDA source of the device's side; prepend it to kernels that can fault. They take a `CuprumFault*` parameter,
/// filled with [`super::Context::fault_pointer`], and call `cuprum_fault(word, code, op, value, length)`.
pub const DEVICE_SOURCE: &str = r#"
struct CuprumFault { unsigned long long code, op; long long value; unsigned long long length; };
__device__ __noinline__ void cuprum_fault(CuprumFault* word, unsigned long long code, unsigned long long op,
                                          long long value, unsigned long long length) {
    if (atomicCAS(&word->code, 0ull, ~0ull) == 0ull) {
        volatile CuprumFault* out = word;
        out->op = op;
        out->value = value;
        out->length = length;
        __threadfence_system();
        out->code = code;
    }
}
"#;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A fault as a kernel reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fault {
    code: u64,
    op: u64,
    value: i64,
    length: u64,
}

impl From<Fault> for CudaError {
    fn from(Fault { code, op, value, length }: Fault) -> CudaError {
        CudaError::DeviceFault { code, op, value, length }
    }
}

/// An error word that the device can write.
#[derive(Debug, Clone, Copy)]
struct Word {
    host: *mut [u64; 4],
    device: u64,
}

// SAFETY: the memory lives until the process ends and is accessed by volatile reads and writes only.
unsafe impl Send for Word {}
// SAFETY: the memory lives until the process ends and is accessed by volatile reads and writes only.
unsafe impl Sync for Word {}

impl Word {
    fn clear(self) {
        // SAFETY: valid and aligned for the life of the process; the device may write at the same time, hence volatile.
        unsafe { self.host.cast::<u64>().write_volatile(0) };
    }

    /// Reads the fault and clears the word.
    fn take(self) -> Option<Fault> {
        // SAFETY: valid and aligned for the life of the process; volatile, because the device may write at the same time.
        let code = unsafe { self.host.cast::<u64>().read_volatile() };
        if code == 0 || code == BUSY {
            return None;
        }
        // SAFETY: valid and aligned for the life of the process; a kernel sets a final code only after the other fields.
        let [_, op, value, length] = unsafe { self.host.read_volatile() };
        self.clear();
        Some(Fault { code, op, value: value.cast_signed(), length })
    }
}

/// Words that no launch uses.
#[derive(Debug, Default)]
struct FreeWords(Mutex<Vec<Word>>);

impl FreeWords {
    /// A cleared word; `allocate` makes a block of them if there is none.
    fn take(&self, allocate: impl FnOnce() -> Result<Vec<Word>>) -> Result<Word> {
        if let Some(word) = lock(&self.0).pop() {
            return Ok(word);
        }
        let mut made = allocate()?;
        let word = made.pop().ok_or_else(|| CudaError::Invalid("a block has no error word".into()))?;
        lock(&self.0).append(&mut made);
        Ok(word)
    }
}

/// The error word of one launch, or of all launches of one graph, and what was found in it.
#[derive(Debug)]
pub(super) struct FaultCell {
    word: Word,
    free: Arc<FreeWords>,
    /// The kernels are a graph's and run at each of its launches.
    is_graph: bool,
    /// The launch has run without a fault.
    is_sound: AtomicBool,
    state: Mutex<CellState>,
}

#[derive(Debug, Default)]
struct CellState {
    found: Option<Fault>,
    /// The thread that queued the launch has the fault in its report.
    is_told: bool,
    /// The launches that the inputs of a graph's last launch depend on.
    inputs: Cells,
}

/// Launches that values depend on.
type Cells = SmallVec<[Arc<FaultCell>; 1]>;

impl FaultCell {
    fn new(word: Word, free: Arc<FreeWords>, is_graph: bool) -> Arc<FaultCell> {
        Arc::new(FaultCell { word, free, is_graph, is_sound: AtomicBool::new(false), state: Mutex::default() })
    }

    fn is_sound(&self) -> bool {
        self.is_sound.load(Ordering::Acquire)
    }

    /// The fault of the launch, which must have run.
    fn find(&self) -> Option<Fault> {
        if self.is_sound() { None } else { self.found_in(&mut lock(&self.state)) }
    }

    fn found_in(&self, state: &mut CellState) -> Option<Fault> {
        if state.found.is_none() {
            state.found = self.word.take();
        }
        if state.found.is_none() && !self.is_graph {
            self.is_sound.store(true, Ordering::Release);
        }
        state.found
    }

    /// The fault of the launch, which must have run, if it is in no report yet. It is in the caller's from now on.
    fn find_untold(&self) -> Option<Fault> {
        let mut state = lock(&self.state);
        let found = self.found_in(&mut state)?;
        (!std::mem::replace(&mut state.is_told, true)).then_some(found)
    }

    /// Prepares the launch of a graph, whose inputs depend on the launches `inputs`. Returns a fault of the previous launch that has not been
    /// reported yet.
    fn launch_again(self: &Arc<Self>, inputs: Cells) -> Option<Fault> {
        // Lists are flat, so that graphs that read each other's outputs make no cycle of checks.
        let mut flat = Cells::new();
        for cell in inputs.iter().filter(|cell| !Arc::ptr_eq(cell, self)) {
            merge(&mut flat, from_ref(cell));
            let of_graph = lock(&cell.state).inputs.clone();
            of_graph.iter().filter(|c| !Arc::ptr_eq(c, self)).for_each(|c| merge(&mut flat, from_ref(c)));
        }
        let mut state = lock(&self.state);
        let found = self.found_in(&mut state).filter(|_| !state.is_told);
        let before = std::mem::replace(&mut *state, CellState { inputs: flat, ..CellState::default() });
        drop(state);
        drop(before); // its launches may be dropped, outside the lock
        found
    }
}

impl Drop for FaultCell {
    fn drop(&mut self) {
        // The launch has run: until then, the thread's ledger or the graph holds the cell.
        self.word.clear();
        lock(&self.free.0).push(self.word);
    }
}

/// Adds launches that are not in the list yet and may have faulted.
fn merge(list: &mut Cells, more: &[Arc<FaultCell>]) {
    for cell in more.iter().filter(|cell| !cell.is_sound()) {
        if !list.iter().any(|other| Arc::ptr_eq(other, cell)) {
            list.push(cell.clone());
        }
    }
}

/// The launches that the values of a buffer depend on and that may have faulted.
#[derive(Debug, Default)]
pub(super) struct Taint {
    /// Whether the list has entries.
    any: AtomicBool,
    cells: Mutex<Cells>,
}

impl Taint {
    fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    fn add_to(&self, list: &mut Cells) {
        if !self.is_empty() {
            merge(list, &lock(&self.cells));
        }
    }

    /// Adds launches; forgets those that have run without a fault.
    fn add(&self, more: &[Arc<FaultCell>]) {
        if more.is_empty() {
            return;
        }
        let mut cells = lock(&self.cells);
        cells.retain(|cell| !cell.is_sound());
        merge(&mut cells, more);
        self.any.store(!cells.is_empty(), Ordering::Release);
    }

    /// Replaces the list: all values were overwritten.
    fn set(&self, cells: Cells) {
        let any = !cells.is_empty();
        let before = std::mem::replace(&mut *lock(&self.cells), cells);
        self.any.store(any, Ordering::Release);
        drop(before);
    }

    /// The first fault that the values depend on, and its launch. The work that computed them must have run.
    fn find(&self) -> Option<(Arc<FaultCell>, Fault)> {
        if self.is_empty() {
            return None;
        }
        let mut all = lock(&self.cells).clone();
        for cell in all.clone().iter().filter(|cell| cell.is_graph) {
            merge(&mut all, &lock(&cell.state).inputs);
        }
        let found = all.iter().find_map(|cell| cell.find().map(|fault| (cell.clone(), fault)));
        if found.is_none() {
            let mut cells = lock(&self.cells);
            cells.retain(|cell| !cell.is_sound());
            self.any.store(!cells.is_empty(), Ordering::Release);
        }
        found
    }
}

/// Launches of one thread that may have faulted, until the thread has been told.
#[derive(Debug, Default)]
struct Ledger(Mutex<LedgerState>);

#[derive(Debug, Default)]
struct LedgerState {
    /// With the number of the stream that the launch was queued on.
    open: Vec<(u32, Arc<FaultCell>)>,
    /// The first fault that was found and not reported.
    untold: Option<Fault>,
}

impl Ledger {
    /// Adds a launch.
    fn add(&self, stream: u32, cell: &Arc<FaultCell>) {
        let mut state = lock(&self.0);
        state.open.retain(|(_, other)| !Arc::ptr_eq(other, cell));
        state.open.push((stream, cell.clone()));
    }

    /// Number of launches that have not been checked.
    fn open(&self) -> usize {
        lock(&self.0).open.len()
    }

    /// Takes note of a fault that has no open launch any more.
    fn note(&self, fault: Fault) {
        lock(&self.0).untold.get_or_insert(fault);
    }

    /// Checks the launches of streams whose work has run.
    fn settle(&self, has_run: impl Fn(u32) -> bool) {
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

    /// An error for what was found and not reported.
    fn report(&self) -> Result<()> {
        lock(&self.0).untold.take().map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// Removes a launch whose fault the thread learns of elsewhere.
    fn strike(&self, cell: &Arc<FaultCell>) {
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
    free: Arc<FreeWords>,
    /// Ledgers of the threads that queued launches that may fault. The ledger of an ended thread has no other reference.
    ledgers: Mutex<Vec<Arc<Ledger>>>,
}

impl Faults {
    /// A ledger for a thread.
    fn register(&self) -> Arc<Ledger> {
        let made = Arc::new(Ledger::default());
        let mut ledgers = lock(&self.ledgers);
        ledgers.retain(|ledger| Arc::strong_count(ledger) > 1 || !ledger.is_empty());
        ledgers.push(made.clone());
        made
    }

    /// The ledgers of threads that have ended. All of their launches are queued.
    fn abandoned(&self) -> Vec<Arc<Ledger>> {
        let ledgers = lock(&self.ledgers);
        ledgers.iter().filter(|ledger| Arc::strong_count(ledger) == 1).cloned().collect()
    }
}

/// The launch that a thread is preparing: the context's number, the stream, and the error word.
type Prepared = (usize, u32, Arc<FaultCell>);

thread_local! {
    /// This thread's ledger of each context that it has one of, by the context's number.
    static LEDGERS: RefCell<Vec<(usize, Arc<Ledger>)>> = const { RefCell::new(Vec::new()) };
    /// Its launch is not yet among those that its outputs depend on.
    static PREPARED: RefCell<Option<Prepared>> = const { RefCell::new(None) };
}

fn take_prepared() -> Option<Arc<FaultCell>> {
    // A thread that is ending has none.
    PREPARED.try_with(|prepared| prepared.borrow_mut().take()).ok().flatten().map(|(.., cell)| cell)
}

impl Context {
    /// The device address of the error word for the operation that this thread queues next on its stream. All kernels of one
    /// operation may share it. It is valid until the thread waits or reads, or until [`crate::device::done`] ends the operation.
    pub fn fault_pointer(&'static self) -> Result<u64> {
        let (ordinal, stream) = (self.info().ordinal, self.stream_number());
        let known = PREPARED.try_with(|prepared| match &*prepared.borrow() {
            Some((of, on, cell)) if (*of, *on) == (ordinal, stream) => Some(cell.word.device),
            _ => None,
        });
        if let Some(known) = known.ok().flatten() {
            return Ok(known);
        }
        let cell = match stream >= Stream::FIRST_CAPTURE {
            true => self.capture_fault_cell(stream)?,
            false => self.open_fault_cell(stream)?,
        };
        let address = cell.word.device;
        let _ = PREPARED.try_with(|prepared| prepared.borrow_mut().replace((ordinal, stream, cell)));
        Ok(address)
    }

    /// An error word for a launch on a stream, which this thread's ledger holds.
    fn open_fault_cell(&'static self, stream: u32) -> Result<Arc<FaultCell>> {
        let cell = self.new_fault_cell(false)?;
        let ledger = self.ledger()?;
        if ledger.open() >= MAX_OPEN {
            self.wait()?;
            ledger.settle(|_| true);
        }
        ledger.add(stream, &cell);
        Ok(cell)
    }

    /// An error word for the kernels of a graph, or of one launch.
    pub(super) fn new_fault_cell(&'static self, is_graph: bool) -> Result<Arc<FaultCell>> {
        let free = &self.faults.free;
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
        let abandoned = self.faults.abandoned();
        if abandoned.iter().map(|ledger| ledger.open()).sum::<usize>() > MAX_OPEN {
            self.wait()?;
            abandoned.iter().for_each(|ledger| ledger.settle(|_| true));
        }
        drop(abandoned);
        let made = self.faults.register();
        let _ = LEDGERS.try_with(|ledgers| ledgers.borrow_mut().push((ordinal, made.clone())));
        Ok(made)
    }

    /// This thread's ledger, if it has one.
    fn known_ledger(&self) -> Option<Arc<Ledger>> {
        let ordinal = self.info().ordinal;
        let find = |ledgers: &RefCell<Vec<(usize, Arc<Ledger>)>>| {
            ledgers.borrow().iter().find(|(of, _)| *of == ordinal).map(|(_, ledger)| ledger.clone())
        };
        LEDGERS.try_with(find).ok().flatten()
    }

    /// Reports faults of launches that this thread queued on streams whose work has run.
    pub(super) fn report_faults(&self, has_run: impl Fn(u32) -> bool) -> Result<()> {
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
    pub(super) fn wait_and_report(&self) -> Result<()> {
        // A thread that ends meanwhile may have queued a launch behind the wait.
        let abandoned = self.faults.abandoned();
        self.wait()?;
        self.report_faults(|_| true)?;
        abandoned.iter().for_each(|ledger| ledger.settle(|_| true));
        abandoned.iter().try_for_each(|ledger| ledger.report())
    }

    /// Notes the launch of a graph, which reads and writes these buffers.
    pub(super) fn launch_fault_cell<'a>(
        &'static self,
        stream: u32,
        cell: &Arc<FaultCell>,
        buffers: impl Iterator<Item = &'a DeviceBuffer>,
    ) -> Result<()> {
        let mut inputs = Cells::new();
        buffers.for_each(|buffer| buffer.taint.add_to(&mut inputs));
        let ledger = self.ledger()?;
        if let Some(fault) = cell.launch_again(inputs) {
            ledger.note(fault);
        }
        ledger.add(stream, cell);
        Ok(())
    }
}

/// A block of cleared words, mapped for the device. It is never freed. The context must be current.
fn allocate_words() -> Result<Vec<Word>> {
    let mut host: *mut c_void = ptr::null_mut();
    let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
    let bytes = WORDS_PER_BLOCK * size_of::<[u64; 4]>();
    // SAFETY: the out-pointer is valid.
    check("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&mut host, bytes, flags) })?;
    let mut device = 0;
    // SAFETY: `host` was just allocated with DEVICEMAP.
    check("cuMemHostGetDevicePointer", unsafe { sys::cuMemHostGetDevicePointer_v2(&mut device, host, 0) })?;
    let host = host.cast::<[u64; 4]>();
    let word = |n: usize| {
        // SAFETY: the block is page-aligned and has WORDS_PER_BLOCK words; no kernel knows of it yet.
        let host = unsafe { host.add(n) };
        // SAFETY: the word is inside the block, and no kernel knows it yet.
        unsafe { host.write_volatile([0; 4]) };
        Word { host, device: device + (n * size_of::<[u64; 4]>()) as u64 }
    };
    Ok((0..WORDS_PER_BLOCK).map(word).collect())
}

impl DeviceBuffer {
    /// Ends an operation, whose work is queued: its outputs depend on the launches that its inputs depend on, and on the launch that this thread prepared
    /// ([`Context::fault_pointer`]).
    #[inline]
    pub fn depends<'a>(outputs: impl Iterator<Item = &'a DeviceBuffer>, inputs: impl Iterator<Item = &'a DeviceBuffer>) {
        let mut cells = Cells::new();
        inputs.for_each(|input| input.taint.add_to(&mut cells));
        cells.extend(take_prepared());
        for output in outputs {
            output.taint.add(&cells);
            if let Some(cell) = output.graph_fault() {
                output.taint.add(from_ref(cell));
            }
        }
    }

    /// All values of the buffer, or some of them, are a copy of `source`'s.
    pub(super) fn copied_from(&self, source: &DeviceBuffer, is_whole: bool) {
        let mut cells = Cells::new();
        source.taint.add_to(&mut cells);
        if is_whole { self.taint.set(cells) } else { self.taint.add(&cells) }
    }

    /// An error if a launch that the values depend on has faulted. The work that computed them must have run.
    pub(super) fn check_faults(&self) -> Result<()> {
        let Some((cell, fault)) = self.taint.find() else { return Ok(()) };
        let faults = &self.context().faults;
        // This thread knows now; a thread that has ended needs no report any more.
        faults.abandoned().into_iter().chain(self.context().known_ledger()).for_each(|ledger| ledger.strike(&cell));
        Err(fault.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words in host memory, in which the test stands for the device.
    fn words() -> Arc<FreeWords> {
        let made = (0..4).map(|n| Word { host: Box::leak(Box::new([0; 4])), device: n }).collect();
        Arc::new(FreeWords(Mutex::new(made)))
    }

    fn cell(free: &Arc<FreeWords>, is_graph: bool) -> Arc<FaultCell> {
        let word = free.take(|| Err(CudaError::Invalid("no word is free".into()))).unwrap();
        FaultCell::new(word, free.clone(), is_graph)
    }

    /// Simulates the error word that a kernel writes.
    fn write(cell: &FaultCell, value: u64) {
        // SAFETY: a leaked box; nothing else accesses it meanwhile.
        unsafe { cell.word.host.write_volatile([INDEX_OUT_OF_BOUNDS, 7, value, 10]) };
    }

    fn told(result: Result<()>) -> Option<i64> {
        match result {
            Ok(()) => None,
            Err(CudaError::DeviceFault { value, .. }) => Some(value),
            Err(other) => panic!("{other}"),
        }
    }

    fn found(taint: &Taint) -> Option<i64> {
        taint.find().map(|(_, fault)| fault.value)
    }

    #[test]
    fn another_thread_neither_sees_nor_clears_a_fault() {
        let free = words();
        let (mine, other) = (Ledger::default(), Ledger::default());
        let (bad, good) = (cell(&free, false), cell(&free, false));
        mine.add(0, &bad);
        other.add(0, &good);
        write(&bad, 99);
        other.settle(|_| true);
        assert_eq!(told(other.report()), None, "its own launch has no fault");
        mine.settle(|_| true);
        assert_eq!(told(mine.report()), Some(99));
        assert_eq!(told(mine.report()), None, "reported once");
    }

    #[test]
    fn every_reader_of_dependent_values_is_told_every_time() {
        let free = words();
        let mine = Ledger::default();
        let (bad, good) = (cell(&free, false), cell(&free, false));
        mine.add(0, &bad);
        mine.add(0, &good);
        let (array, sum, apart) = (Taint::default(), Taint::default(), Taint::default());
        array.add(from_ref(&bad));
        apart.add(from_ref(&good));
        let mut cells = Cells::new();
        [&array, &apart].into_iter().for_each(|taint| taint.add_to(&mut cells));
        sum.add(&cells);
        write(&bad, 5);
        // Before and after the report to the thread that made it.
        assert_eq!((found(&array), found(&sum), found(&apart)), (Some(5), Some(5), None));
        mine.settle(|_| true);
        assert_eq!(told(mine.report()), Some(5));
        assert_eq!((found(&array), found(&sum), found(&apart)), (Some(5), Some(5), None));
        assert!(apart.is_empty() && !sum.is_empty(), "launches that have run soundly are forgotten");
    }

    #[test]
    fn a_wait_for_one_stream_checks_the_launches_of_that_stream() {
        let free = words();
        let mine = Ledger::default();
        let (one, two) = (cell(&free, false), cell(&free, false));
        mine.add(1, &one);
        mine.add(2, &two);
        write(&one, 1);
        mine.settle(|stream| stream == 2);
        assert_eq!(told(mine.report()), None);
        assert!(two.is_sound() && !one.is_sound());
        mine.settle(|stream| stream == 1);
        assert_eq!(told(mine.report()), Some(1));
    }

    #[test]
    fn one_report_covers_the_faults_found_by_then() {
        let free = words();
        let mine = Ledger::default();
        let cells = [cell(&free, false), cell(&free, false)];
        cells.iter().for_each(|cell| mine.add(0, cell));
        write(&cells[0], 1);
        write(&cells[1], 2);
        mine.settle(|_| true);
        assert_eq!((told(mine.report()), told(mine.report())), (Some(1), None));
        // Learnt by reading the array: no second report.
        let third = cell(&free, false);
        mine.add(0, &third);
        write(&third, 3);
        assert!(third.find().is_some());
        mine.strike(&third);
        mine.settle(|_| true);
        assert_eq!(told(mine.report()), None);
    }

    #[test]
    fn faults_of_threads_that_ended_are_kept() {
        let (faults, free) = (Faults::default(), words());
        let (alive, ended) = (faults.register(), faults.register());
        let bad = cell(&free, false);
        ended.add(0, &bad);
        assert!(faults.abandoned().is_empty());
        drop(ended);
        drop(faults.register()); // leaves an empty ledger, which the next one removes
        let _next = faults.register();
        write(&bad, 8);
        drop(bad);
        let abandoned = faults.abandoned();
        abandoned.iter().for_each(|ledger| ledger.settle(|_| true));
        assert_eq!(abandoned.iter().filter_map(|ledger| told(ledger.report())).collect::<Vec<_>>(), [8]);
        assert_eq!(told(alive.report()), None);
        drop(abandoned);
        let _last = faults.register();
        assert_eq!(lock(&faults.ledgers).len(), 3, "those of three threads that go on");
    }

    #[test]
    fn a_graph_is_sound_again_after_its_next_launch() {
        let free = words();
        let (mine, graph, input) = (Ledger::default(), cell(&free, true), cell(&free, false));
        let output = Taint::default();
        output.add(from_ref(&graph));
        assert_eq!(graph.launch_again(Cells::new()), None);
        mine.add(0, &graph);
        assert_eq!(found(&output), None);
        assert!(!output.is_empty(), "the next launch may fault");
        write(&graph, 4);
        assert_eq!(found(&output), Some(4));
        mine.settle(|_| true);
        assert_eq!(told(mine.report()), Some(4));
        assert_eq!(graph.launch_again(Cells::new()), None, "told before");
        assert_eq!(found(&output), None);
        // No wait covers the first launch, so the next launch reports its fault.
        write(&graph, 5);
        assert_eq!(graph.launch_again(Cells::new()).map(|fault| fault.value), Some(5));
        // Inputs that depend on a fault, and a graph that reads its own output.
        write(&input, 6);
        assert_eq!(graph.launch_again([input.clone(), graph.clone()].into_iter().collect()), None);
        assert_eq!(found(&output), Some(6));
        assert_eq!(graph.launch_again(Cells::new()), None);
        assert_eq!(found(&output), None);
    }

    #[test]
    fn copies_replace_what_they_overwrite() {
        let free = words();
        let (bad, good) = (cell(&free, false), cell(&free, false));
        let (from, to) = (Taint::default(), Taint::default());
        from.add(from_ref(&bad));
        write(&bad, 3);
        to.add(&[good]);
        let mut cells = Cells::new();
        from.add_to(&mut cells);
        to.add(&cells);
        assert_eq!(found(&to), Some(3));
        to.set(Cells::new());
        assert_eq!(found(&to), None);
    }

    #[test]
    fn words_come_back_cleared() {
        let free = words();
        let cells: Vec<_> = (0..4).map(|_| cell(&free, false)).collect();
        cells.iter().for_each(|cell| write(cell, 1));
        assert!(free.take(|| Err(CudaError::Invalid("no".into()))).is_err());
        drop(cells);
        let again: Vec<_> = (0..4).map(|_| cell(&free, false)).collect();
        assert!(again.iter().all(|cell| cell.find().is_none()));
    }
}
