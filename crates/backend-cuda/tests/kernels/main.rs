//! The kernels of this crate on a real device, against loops on the host or the CPU backend. The tests of this program run at the same
//! time. Tests that measure memory or time are in `resources`.

mod families;
mod fft;
mod linalg;
mod map;
mod order;
mod rows;
mod scatter;
mod sparse;
mod take;
mod user_kernels;

use cuprum_backend_cuda::testing;
use cuprum_core::{Device, Result, with_device};

/// Runs `test` with a CUDA device as the default.
fn on_device(test: impl FnOnce(Device)) {
    if let Some(device) = testing::device() {
        with_device(device, || test(device));
    }
}

/// Like [`on_device`], for tests that return errors.
fn try_on_device(test: impl FnOnce(Device) -> Result<()>) {
    on_device(|device| test(device).unwrap());
}
