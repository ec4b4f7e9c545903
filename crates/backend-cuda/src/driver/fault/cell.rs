//! Error words: their memory, and the faults that the host has read from them.

use std::ffi::c_void;
use std::ptr;
use std::slice::from_ref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use crate::driver::primary::check;
use crate::driver::sys;
use crate::error::{CudaError, Result};

/// Fault code that a kernel sets while it writes the other fields.
const BUSY: u64 = u64::MAX;

/// Error words of one pinned block: a page.
const WORDS_PER_BLOCK: usize = 128;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A fault as a kernel reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    code: u64,
    op: u64,
    pub(super) value: i64,
    length: u64,
}

impl From<Fault> for CudaError {
    fn from(Fault { code, op, value, length }: Fault) -> CudaError {
        CudaError::DeviceFault { code, op, value, length }
    }
}

/// An error word: mapped host memory in which a kernel reports a fault. Host and device address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) host: *mut [u64; 4],
    pub(super) device: u64,
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

/// Error words that no launch uses.
#[derive(Debug, Default)]
pub(super) struct FreeWords(pub(super) Mutex<Vec<Word>>);

impl FreeWords {
    /// Takes a cleared error word. If there is none, `allocate` makes a block of them.
    pub(super) fn take(&self, allocate: impl FnOnce() -> Result<Vec<Word>>) -> Result<Word> {
        if let Some(word) = lock(&self.0).pop() {
            return Ok(word);
        }
        let mut made = allocate()?;
        let word = made.pop().ok_or_else(|| CudaError::Invalid("a block has no error word".into()))?;
        lock(&self.0).append(&mut made);
        Ok(word)
    }
}

/// The error word of one launch, or of all launches of one graph, and the fault that the host has read from it.
#[derive(Debug)]
pub(in crate::driver) struct FaultCell {
    pub(super) word: Word,
    free: Arc<FreeWords>,
    /// True for a graph, whose kernels run at each of its launches.
    pub(super) is_graph: bool,
    /// True once the launch has run and reported no fault.
    is_sound: AtomicBool,
    pub(super) state: Mutex<CellState>,
}

#[derive(Debug, Default)]
pub(super) struct CellState {
    found: Option<Fault>,
    /// True once the fault is recorded for a report to the thread that queued the launch.
    pub(super) is_told: bool,
    /// The launches that the inputs of a graph's last launch depend on.
    pub(super) inputs: Cells,
}

/// The launches, by error word, that the values of a buffer depend on.
pub(super) type Cells = SmallVec<[Arc<FaultCell>; 1]>;

impl FaultCell {
    pub(super) fn new(word: Word, free: Arc<FreeWords>, is_graph: bool) -> Arc<FaultCell> {
        Arc::new(FaultCell { word, free, is_graph, is_sound: AtomicBool::new(false), state: Mutex::default() })
    }

    pub(super) fn is_sound(&self) -> bool {
        self.is_sound.load(Ordering::Acquire)
    }

    /// Returns the fault of the launch, if there is one. The launch must have run.
    pub(super) fn find(&self) -> Option<Fault> {
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

    /// Returns the fault of the launch unless it is already recorded for a report, and marks it as recorded. The launch must have
    /// run.
    pub(super) fn find_untold(&self) -> Option<Fault> {
        let mut state = lock(&self.state);
        let found = self.found_in(&mut state)?;
        (!std::mem::replace(&mut state.is_told, true)).then_some(found)
    }

    /// Prepares the launch of a graph, whose inputs depend on the launches `inputs`. Returns a fault of the previous launch that has not been
    /// reported yet.
    pub(super) fn launch_again(self: &Arc<Self>, inputs: Cells) -> Option<Fault> {
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
pub(super) fn merge(list: &mut Cells, more: &[Arc<FaultCell>]) {
    for cell in more.iter().filter(|cell| !cell.is_sound()) {
        if !list.iter().any(|other| Arc::ptr_eq(other, cell)) {
            list.push(cell.clone());
        }
    }
}

/// Allocates a block of cleared error words, mapped for the device. The block is never freed. The context must be current.
pub(super) fn allocate_words() -> Result<Vec<Word>> {
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
