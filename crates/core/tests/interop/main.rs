//! Conversions to and from other crates. The tests cover each row of `docs/interop.md`. Where nothing is copied, they compare pointers.

use cuprum_backend_cpu as _;
use cuprum_core::{Device, Result, with_device};

#[cfg(feature = "approx")]
mod approx_equality;
#[cfg(feature = "faer")]
mod faer_matrices;
#[cfg(feature = "nalgebra")]
mod nalgebra_matrices;
#[cfg(feature = "ndarray")]
mod ndarray_arrays;
#[cfg(feature = "serde")]
mod serde_formats;

/// Runs `f` with the host as the current device.
#[allow(dead_code)] // unused without the features of the conversions
fn on_host(f: impl FnOnce() -> Result<()>) {
    with_device(Device::CPU, f).unwrap();
}
