//! Owners of memory that unfinished work of a device still uses: pinned sources of copies, and device memory of other libraries.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use super::Context;
use super::free_blocks::StreamFence;
use super::per_device::PerDevice;
use super::stream_mark::StreamMark;
use crate::error::Result;

static IN_FLIGHT_OWNERS: PerDevice<InFlightOwners> = PerDevice::new();

/// Events that were recorded after the work that uses some memory, one per stream.
pub(super) type Marks = SmallVec<[Arc<StreamMark>; 2]>;

/// Events that were recorded after the last work that uses some memory, and the owner of that memory.
type InUse = (Marks, Arc<dyn Any + Send + Sync>);

/// The owners of memory that unfinished work of a device may still use.
#[derive(Default)]
pub(super) struct InFlightOwners(Mutex<Vec<InUse>>);

impl InFlightOwners {
    fn lock_owners(&self) -> MutexGuard<'_, Vec<InUse>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps `owner` alive until the device has passed the events `marks`.
    pub fn keep_alive_until_marks_passed(&self, marks: Marks, owner: Arc<dyn Any + Send + Sync>) {
        self.drop_unused_owners();
        self.lock_owners().push((marks, owner));
    }

    /// Drops the owners of memory that no work uses any more.
    pub fn drop_unused_owners(&self) {
        let is_completed = |(marks, _): &InUse| marks.iter().all(|mark| mark.is_passed());
        let (completed, running): (Vec<InUse>, _) = self.lock_owners().drain(..).partition(is_completed);
        self.lock_owners().extend::<Vec<InUse>>(running);
        drop(completed); // dropped after the lock is released, because an owner may run any code and take long
    }
}

impl Context {
    /// Returns the owners of memory that unfinished work of this device uses.
    pub(super) fn in_flight_owners(&self) -> &'static InFlightOwners {
        IN_FLIGHT_OWNERS.get_or_create(self)
    }

    /// Keeps `owner` alive until the work that is queued on this thread's stream has ended.
    pub(crate) fn keep_alive_until_stream_done(&'static self, owner: Arc<dyn Any + Send + Sync>) -> Result<()> {
        let stream = self.current_stream_number();
        match self.record_stream_mark(stream) {
            Ok(mark) => {
                self.in_flight_owners().keep_alive_until_marks_passed([mark].into_iter().collect(), owner);
                Ok(())
            }
            // If no event can be recorded, waits for the whole stream, so that `owner` may be dropped.
            Err(error) => self.wait_for_stream(stream).and(Err(error)),
        }
    }
}
