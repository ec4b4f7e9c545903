//! Resources of a real device: memory, streams, graphs, libraries, and reports of faults. The tests of this program run one at a time,
//! because they measure memory and time.

mod devices;
mod faults;
mod gpu;
mod graph;
mod interop;
mod streams;

use std::sync::{Mutex, MutexGuard, PoisonError};

use cuprum_backend_cuda::testing;
use cuprum_core::{Device, Result, with_device};

/// Waits until no other test of this program runs.
fn exclusive() -> MutexGuard<'static, ()> {
    static EXCLUSIVE: Mutex<()> = Mutex::new(());
    EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `test` with a CUDA device as the default.
fn on_device(test: impl FnOnce(Device) -> Result<()>) {
    let _guard = exclusive();
    if let Some(device) = testing::device() {
        with_device(device, || test(device)).unwrap();
    }
}
