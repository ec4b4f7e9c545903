//! Compares calls that CUB serves with results computed here.

mod background_compilation;
mod declines;
mod histogram;
mod large_arrays;
mod reduce;
mod scan;
mod segment;
mod select;
mod sort;
mod user_reductions;

use std::sync::{PoisonError, RwLock};

use cuprum_backend_cub::CUB;
use cuprum_backend_cuda::testing;
use cuprum_core::{Availability, Element, NdArray, Result, explain, registry, with_accelerators, with_device};

/// Lets tests run concurrently, except a test that causes device faults: the device has one error word for all threads.
static DEVICE: RwLock<()> = RwLock::new(());

/// Runs a test on the first CUDA device with an accelerator order that names only CUB. The accelerator `cuda` follows it.
fn on_device(test: impl FnOnce() -> Result<()>) {
    let _shared = DEVICE.read().unwrap_or_else(PoisonError::into_inner);
    run(test);
}

/// Like [`on_device`], but no other test runs at the same time.
fn alone_on_device(test: impl FnOnce() -> Result<()>) {
    let _exclusive = DEVICE.write().unwrap_or_else(PoisonError::into_inner);
    run(test);
}

fn run(test: impl FnOnce() -> Result<()>) {
    if let Availability::Missing { why, help } = registry::availability(&CUB) {
        return testing::skip(1, format_args!("{why}; {help}"));
    }
    let Some(device) = testing::device() else { return };
    with_device(device, || with_accelerators("cub", test)).unwrap().unwrap();
}

/// Evaluates the array. CUB must serve the last call.
fn served_array(f: impl Fn() -> Result<NdArray>) -> Result<NdArray> {
    let (array, records) = explain(|| f().and_then(|a| a.eval().cloned()));
    let array = array?;
    let last = records.last().expect("a call");
    assert_eq!(last.served_by, Some("cub"), "{last}");
    Ok(array)
}

/// Evaluates the array three times, which must give the same bits, and returns its elements. CUB must serve the last call.
fn served<T: Element>(f: impl Fn() -> Result<NdArray>) -> Result<Vec<T>> {
    let first = served_array(&f)?;
    for _ in 0..2 {
        assert!(served_array(&f)?.to_bytes()? == first.to_bytes()?, "results differ between runs");
    }
    first.to_vec()
}

/// Pseudo-random numbers in -1..1.
fn numbers(count: usize) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn close(got: &[f64], want: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance, "{what}, element {i}: {g}, not {w}");
    }
}

const SIZES: [usize; 14] = [2, 3, 31, 32, 255, 257, 1023, 4095, 4096, 4097, 16_383, 100_003, 1 << 20, 5_000_001];
