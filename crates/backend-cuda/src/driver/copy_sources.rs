//! Host memory that running copies to the device read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuprum_core::device::Buffer;

use super::Context;
use super::mark::Mark;
use super::per_device::PerDevice;
use super::pool::Fence;

static COPY_SOURCES: PerDevice<CopySources> = PerDevice::new();

/// A point after a copy, and its source.
type Source = (Arc<Mark>, Arc<dyn Buffer>);

/// Sources of copies that may still be running.
#[derive(Default)]
pub(super) struct CopySources(Mutex<Vec<Source>>);

impl CopySources {
    fn list(&self) -> MutexGuard<'_, Vec<Source>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a source alive until its copy has ended.
    pub fn keep(&self, mark: Arc<Mark>, source: Arc<dyn Buffer>) {
        self.drop_completed();
        self.list().push((mark, source));
    }

    /// Drops the sources of completed copies.
    pub fn drop_completed(&self) {
        let (completed, running): (Vec<Source>, _) = self.list().drain(..).partition(|(mark, _)| mark.is_passed());
        self.list().extend::<Vec<Source>>(running);
        drop(completed); // dropped outside the lock
    }
}

impl Context {
    /// Returns the sources of copies to this device.
    pub(super) fn copy_sources(&self) -> &'static CopySources {
        COPY_SOURCES.get(self)
    }
}
