//! Pinned host memory that unfinished copies to the device read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuprum_core::device::Buffer;

use super::Context;
use super::mark::Mark;
use super::per_device::PerDevice;
use super::pool::Fence;

static IN_FLIGHT: PerDevice<InFlight> = PerDevice::new();

/// An event after a copy to the device, and the host buffer that the copy reads.
type CopySource = (Arc<Mark>, Arc<dyn Buffer>);

/// Host buffers that unfinished copies to a device may still read.
#[derive(Default)]
pub(super) struct InFlight(Mutex<Vec<CopySource>>);

impl InFlight {
    fn list(&self) -> MutexGuard<'_, Vec<CopySource>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the host buffer `source` alive until the copy before the event `mark` has ended.
    pub fn keep(&self, mark: Arc<Mark>, source: Arc<dyn Buffer>) {
        self.drop_completed();
        self.list().push((mark, source));
    }

    /// Drops the host buffers whose copies have ended.
    pub fn drop_completed(&self) {
        let (completed, running): (Vec<CopySource>, _) = self.list().drain(..).partition(|(mark, _)| mark.is_passed());
        self.list().extend::<Vec<CopySource>>(running);
        drop(completed); // dropped after the lock is released, because freeing pinned memory takes long
    }
}

impl Context {
    /// Returns the host buffers that unfinished copies to this device read.
    pub(super) fn in_flight(&self) -> &'static InFlight {
        IN_FLIGHT.get(self)
    }
}
