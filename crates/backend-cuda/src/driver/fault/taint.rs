//! The launches that the values of a buffer depend on, so that a reader learns of their faults.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::cell::{Cells, FaultCell, ReportedFault, lock, merge_cells};

/// The error words of launches that the values of a buffer depend on and that may have faulted.
#[derive(Debug, Default)]
pub(in crate::driver) struct Taint {
    /// Whether the list has entries, readable without the lock.
    any: AtomicBool,
    cells: Mutex<Cells>,
}

impl Taint {
    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    pub(super) fn add_to(&self, list: &mut Cells) {
        if !self.is_empty() {
            merge_cells(list, &lock(&self.cells));
        }
    }

    /// Adds the error words `more`, and removes those of launches that ended without a fault.
    pub(super) fn add(&self, more: &[Arc<FaultCell>]) {
        if more.is_empty() {
            return;
        }
        let mut cells = lock(&self.cells);
        cells.retain(|cell| !cell.is_sound());
        merge_cells(&mut cells, more);
        self.any.store(!cells.is_empty(), Ordering::Release);
    }

    /// Replaces the list by `cells`, because all values of the buffer were overwritten.
    pub(super) fn set(&self, cells: Cells) {
        let any = !cells.is_empty();
        let before = std::mem::replace(&mut *lock(&self.cells), cells);
        self.any.store(any, Ordering::Release);
        drop(before);
    }

    /// Returns the first fault that the values depend on, with its error word. The work that computed the values must have ended.
    pub(super) fn find(&self) -> Option<(Arc<FaultCell>, ReportedFault)> {
        if self.is_empty() {
            return None;
        }
        let mut all = lock(&self.cells).clone();
        for cell in all.clone().iter().filter(|cell| cell.is_graph) {
            merge_cells(&mut all, &lock(&cell.state).inputs);
        }
        let found = all.iter().find_map(|cell| cell.find().map(|fault| (cell.clone(), fault)));
        if found.is_none() {
            let mut cells = lock(&self.cells);
            cells.retain(|cell| !cell.is_sound());
            self.any.store(!cells.is_empty(), Ordering::Release);
        }
        found
    }

    /// Records that all values of the buffer (`is_whole`), or some, are now copies of those of `source`. They then depend on the
    /// launches that those of `source` depend on.
    pub(in crate::driver) fn record_copy_from(&self, source: &Taint, is_whole: bool) {
        let mut cells = Cells::new();
        source.add_to(&mut cells);
        if is_whole { self.set(cells) } else { self.add(&cells) }
    }
}
