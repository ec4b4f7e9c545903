//! Helpers for the GPU tests of this crate and of crates that depend on it: they return devices or the compiler, and skip or fail a test if
//! one is missing.
//!
//! A test that lacks its device prints the reason and passes. With `CUPRUM_REQUIRE_GPU=1` it fails instead, so that a run that should use a
//! GPU cannot pass without one. With `CUPRUM_REQUIRE_GPU=2`, tests that need two GPUs fail too if there is only one. In the same way,
//! `CUPRUM_REQUIRE_NVRTC=1` requires the compiler.

use std::fmt::Display;

use cuprum_core::Device;

use crate::nvrtc::Compiler;

/// Reports that a test cannot run here, because it needs `gpus` GPUs or a library for them.
///
/// # Panics
/// If `CUPRUM_REQUIRE_GPU` is at least `gpus`, or is not a number.
pub fn skip(gpus: u32, reason: impl Display) {
    let required = std::env::var("CUPRUM_REQUIRE_GPU").unwrap_or_default();
    let fails = required.parse::<u32>().map_or(!required.is_empty(), |count| count >= gpus);
    assert!(!fails, "CUPRUM_REQUIRE_GPU={required}, but this test cannot run here: {reason}");
    println!("skipped: {reason}");
}

/// Returns the first CUDA device. If there is none, calls [`skip`] and returns `None`.
pub fn device() -> Option<Device> {
    Device::parse("cuda").inspect_err(|reason| skip(1, reason)).ok()
}

/// Returns the first two CUDA devices. If there are fewer, calls [`skip`] and returns `None`.
pub fn two_devices() -> Option<(Device, Device)> {
    let find = |name, gpus| Device::parse(name).inspect_err(|reason| skip(gpus, reason)).ok();
    Some((find("cuda:0", 1)?, find("cuda:1", 2)?))
}

/// Returns the newest NVRTC up to CUDA 13, without asking the driver for its version. If NVRTC is missing, prints the reason and returns
/// `None`.
///
/// # Panics
/// If NVRTC is missing and `CUPRUM_REQUIRE_NVRTC` is 1.
pub fn compiler() -> Option<Compiler> {
    const NEWEST: u32 = 13;
    let report = |missing: &_| {
        assert!(std::env::var("CUPRUM_REQUIRE_NVRTC").as_deref() != Ok("1"), "CUPRUM_REQUIRE_NVRTC=1, but there is no NVRTC: {missing}");
        println!("skipped: no NVRTC: {missing}");
    };
    Compiler::find_preferred_nvrtc(NEWEST).inspect_err(report).ok()
}
