//! The launches that the values of a buffer depend on, so that a reader learns of their faults.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::error_word::{FaultCell, FaultCells, ReportedFault, lock, merge_cells};

/// The error words of launches that the values of a buffer depend on and that may have faulted.
#[derive(Debug, Default)]
pub(in crate::driver) struct LaunchDependencies {
    /// Whether `cells` has entries. Can be read without locking `cells`.
    any: AtomicBool,
    cells: Mutex<FaultCells>,
}

impl LaunchDependencies {
    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    pub(super) fn merge_into(&self, list: &mut FaultCells) {
        if !self.is_empty() {
            merge_cells(list, &lock(&self.cells));
        }
    }

    /// Adds the error words `more`, and removes those of launches that ended without a fault.
    pub(super) fn add_cells(&self, more: &[Arc<FaultCell>]) {
        if more.is_empty() {
            return;
        }
        let mut cells = lock(&self.cells);
        cells.retain(|cell| !cell.ran_without_fault());
        merge_cells(&mut cells, more);
        self.any.store(!cells.is_empty(), Ordering::Release);
    }

    /// Replaces the buffer's list of error words by `cells`. Called for a write that overwrites all values of the buffer.
    pub(super) fn replace_cells(&self, cells: FaultCells) {
        let any = !cells.is_empty();
        let before = std::mem::replace(&mut *lock(&self.cells), cells);
        self.any.store(any, Ordering::Release);
        drop(before);
    }

    /// Returns the first fault among the launches that the buffer's values depend on, with its error word, or `None` if no launch has
    /// faulted. The work that computed the values must have ended.
    pub(super) fn find_fault(&self) -> Option<(Arc<FaultCell>, ReportedFault)> {
        if self.is_empty() {
            return None;
        }
        let mut all = lock(&self.cells).clone();
        for cell in all.clone().iter().filter(|cell| cell.is_graph) {
            merge_cells(&mut all, &lock(&cell.state).inputs);
        }
        let found = all.iter().find_map(|cell| cell.find_fault().map(|fault| (cell.clone(), fault)));
        if found.is_none() {
            let mut cells = lock(&self.cells);
            cells.retain(|cell| !cell.ran_without_fault());
            self.any.store(!cells.is_empty(), Ordering::Release);
        }
        found
    }

    /// Records that values of this buffer, all of them if `is_whole`, are now copies of values of the buffer with the dependencies `source`.
    pub(in crate::driver) fn record_copy_from(&self, source: &LaunchDependencies, is_whole: bool) {
        let mut cells = FaultCells::new();
        source.merge_into(&mut cells);
        if is_whole { self.replace_cells(cells) } else { self.add_cells(&cells) }
    }
}
