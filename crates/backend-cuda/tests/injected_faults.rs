//! Fault injection on a GPU: each call of the driver and of the libraries fails in turn. Every failure is a typed error, no device memory
//! leaks, and the same program succeeds afterwards.
//!
//! `CUPRUM_REQUIRE_GPU=1 cargo test -p cuprum-backend-cuda --features fault-injection --test injected_faults`
#![allow(clippy::unwrap_used)]

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuprum_backend_cpu as _;
use cuprum_backend_cuda::testing;
use cuprum_core::fault_injection::{FailurePoint, with_failure, with_failures};
use cuprum_core::ops::fft::{Norm, rfft};
use cuprum_core::{Device, Error, NdArray, Result, copy, matmul, s, with_device};

/// Maximum number of operations of one kind. More would mean that a failure is retried without end.
const MAX_OPERATIONS: usize = 500;
/// The variable by which a test starts its own executable again: the number of the operation that fails.
const FAILING: &str = "CUPRUM_TEST_FAILING";

/// Excludes other tests of this process, because the counters belong to the process.
fn exclusive() -> MutexGuard<'static, ()> {
    static EXCLUSIVE: Mutex<()> = Mutex::new(());
    EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program with a call of most families, with cuBLAS and cuFFT where they are found.
fn program(device: Device) -> Result<Vec<Vec<u8>>> {
    with_device(device, || {
        let x = NdArray::from_vec((0..40_000).map(|i| ((i * 7919) % 40_009) as f32).collect::<Vec<_>>(), [200, 200])?;
        let y = (&x * 2.0 + 1.0).eval()?.clone();
        let results = [
            y.sum(-1)?,
            y.cumsum(0)?,
            matmul(&x, &y)?,
            x.sort(-1)?,
            copy(&y.index(s![..;3, 5..])?)?,
            x.reshape([40_000])?.take(&NdArray::from_slice(&[3i64, 99, 39_999])?, 0)?,
            x.greater(100.0)?.nonzero()?.swap_remove(0),
            rfft(&x, None, -1, Norm::Backward)?.real()?,
        ];
        results.iter().map(|array| array.to_bytes()).collect()
    })
}

fn used_bytes(device: Device) -> usize {
    device.synchronize().unwrap();
    device.memory_stats().unwrap().used
}

fn is_typed(error: &Error) -> bool {
    matches!(error, Error::Backend { .. } | Error::OutOfMemory { .. } | Error::Unsupported { .. })
}

#[test]
fn each_driver_and_library_call_may_fail() {
    let Some(device) = testing::device() else { return };
    let _exclusive = exclusive();
    let expected = program(device).unwrap();
    let before = used_bytes(device);
    // An allocation is retried once after the pool is trimmed, so two in turn must fail.
    for (point, length) in [
        (FailurePoint::DeviceMemory, 1),
        (FailurePoint::DeviceMemory, 2),
        (FailurePoint::Launch, 1),
        (FailurePoint::DeviceCopy, 1),
        (FailurePoint::Driver, 1),
        (FailurePoint::Library, 1),
        (FailurePoint::HostMemory, 1),
    ] {
        let mut errors = 0;
        for n in 0.. {
            assert!(n < MAX_OPERATIONS, "{point:?}: more than {MAX_OPERATIONS} operations");
            // Without cached blocks, the program allocates device memory.
            device.free_all().unwrap();
            let (result, failed) = with_failures(point, n, length, || program(device));
            match result {
                Ok(got) => assert!(got == expected, "{point:?} {n}: other values"),
                Err(error) => {
                    errors += 1;
                    assert!(failed && is_typed(&error), "{point:?} {n}: {error}");
                }
            }
            let again = program(device).unwrap_or_else(|e| panic!("after {point:?} {n}: {e}"));
            assert!(again == expected, "after {point:?} {n}: other values");
            assert_eq!(used_bytes(device), before, "{point:?} {n}: device memory leaks");
            if !failed {
                println!("{point:?}, {length} in turn: {n} operations, {errors} errors");
                break;
            }
        }
        // Events that fail are replaced by waits, and allocations are retried. A library may be missing.
        let may_recover = matches!((point, length), (FailurePoint::Driver | FailurePoint::Library, _) | (FailurePoint::DeviceMemory, 1));
        assert!(errors > 0 || may_recover, "{point:?}: no error");
    }
}

/// The process that [`each_compilation_and_module_may_fail`] starts: its caches are empty, so that the program compiles and loads.
#[test]
fn process_with_a_failing_compilation() {
    let Ok(text) = std::env::var(FAILING) else { return };
    let Some(device) = testing::device() else { return };
    let (point, n) = match text.split_once(':').unwrap() {
        ("compile", n) => (FailurePoint::Compile, n),
        (_, n) => (FailurePoint::ModuleLoad, n),
    };
    let (result, failed) = with_failure(point, n.parse().unwrap(), || program(device));
    assert!(result.as_ref().map_or_else(|e| failed && is_typed(e), |_| true), "{text}: {:?}", result.err());
    let again = program(device).unwrap_or_else(|e| panic!("after {text}: {e}"));
    assert!(result.is_err() || result.unwrap() == again, "{text}: other values");
    println!("reached: {failed}");
}

#[test]
fn each_compilation_and_module_may_fail() {
    if testing::device().is_none() {
        return;
    }
    let _exclusive = exclusive();
    for point in ["compile", "module"] {
        for n in 0.. {
            assert!(n < MAX_OPERATIONS, "{point}: more than {MAX_OPERATIONS} operations");
            let cache = tempfile::tempdir().unwrap();
            let mut process = Command::new(std::env::current_exe().unwrap());
            process.args(["--exact", "process_with_a_failing_compilation", "--nocapture"]);
            let output = process.env(FAILING, format!("{point}:{n}")).env("CUPRUM_CACHE_DIR", cache.path()).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{point} {n}: {text}");
            if text.contains("reached: false") {
                assert!(n > 0, "{point}: no operation failed");
                break;
            }
        }
    }
}

/// The GPU tests would pass if the program itself were an error.
#[test]
fn the_program_runs_on_the_host() {
    let values = program(Device::CPU).unwrap();
    assert_eq!(values.len(), 8);
    let taken = [3, 99, 39_999].map(|i| ((i * 7919) % 40_009) as f32);
    assert_eq!(values[5], taken.map(f32::to_le_bytes).concat());
}
