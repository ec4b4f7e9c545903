//! Helpers for tests on a device.

use std::sync::{Mutex, PoisonError};

use cuprum_backend_cuda::testing;
use cuprum_core::{Device, Result, with_device};

/// Runs `test` with a CUDA device as the default. Tests run one at a time, because they measure memory and time.
pub fn on_device(test: impl FnOnce(Device) -> Result<()>) {
    static ONE: Mutex<()> = Mutex::new(());
    let _guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = testing::device() {
        with_device(device, || test(device)).unwrap();
    }
}
