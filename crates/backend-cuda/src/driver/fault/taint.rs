//! The launches that the values of a buffer depend on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::cell::{Cells, Fault, FaultCell, lock, merge};

/// The launches that the values of a buffer depend on and that may have faulted.
#[derive(Debug, Default)]
pub(in crate::driver) struct Taint {
    /// Whether the list has entries.
    any: AtomicBool,
    cells: Mutex<Cells>,
}

impl Taint {
    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    pub(super) fn add_to(&self, list: &mut Cells) {
        if !self.is_empty() {
            merge(list, &lock(&self.cells));
        }
    }

    /// Adds launches, and removes those that have run without a fault.
    pub(super) fn add(&self, more: &[Arc<FaultCell>]) {
        if more.is_empty() {
            return;
        }
        let mut cells = lock(&self.cells);
        cells.retain(|cell| !cell.is_sound());
        merge(&mut cells, more);
        self.any.store(!cells.is_empty(), Ordering::Release);
    }

    /// Replaces the list, because all values were overwritten.
    pub(super) fn set(&self, cells: Cells) {
        let any = !cells.is_empty();
        let before = std::mem::replace(&mut *lock(&self.cells), cells);
        self.any.store(any, Ordering::Release);
        drop(before);
    }

    /// Returns the first fault that the values depend on, with its launch. The work that computed the values must have run.
    pub(super) fn find(&self) -> Option<(Arc<FaultCell>, Fault)> {
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

    /// Records that the values (`is_whole`), or some of them, are now copies of the values of `source`, and depend on the same
    /// launches.
    pub(in crate::driver) fn copied_from(&self, source: &Taint, is_whole: bool) {
        let mut cells = Cells::new();
        source.add_to(&mut cells);
        if is_whole { self.set(cells) } else { self.add(&cells) }
    }
}
