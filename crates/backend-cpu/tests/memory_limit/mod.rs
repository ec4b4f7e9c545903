//! Calls under a limit of host memory. The limit and the peak belong to the process, so a program has one test that uses them.

use cuprum_backend_cpu::with_threads;
use cuprum_core::{DType, Device, Error, NdArray, Result, broadcast_to, with_device};

pub const MIB: usize = 1 << 20;

/// Returns the field `name` of `/proc/self/status` in bytes; `None` if the system does not report it.
fn status(name: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|l| l.starts_with(name))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? * 1024)
}

/// Runs `f` with a limit of `limit` bytes above the memory in use. Returns the result of `f` and the rise of the resident memory.
fn limited<T>(limit: usize, f: impl FnOnce() -> Result<T>) -> (Result<T>, usize) {
    Device::CPU.free_all().unwrap();
    let used = Device::CPU.memory_stats().unwrap().used;
    // Writing "5" resets the peak of the resident memory.
    let reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
    let before = status("VmRSS:").unwrap_or(0);
    Device::CPU.set_memory_limit(Some(used + limit)).unwrap();
    let result = with_threads(2, || with_device(Device::CPU, f)).unwrap();
    Device::CPU.set_memory_limit(None).unwrap();
    let rise = if reset { status("VmHWM:").unwrap_or(before).saturating_sub(before) } else { 0 };
    (result, rise)
}

/// Runs `f` under a limit. It has to succeed, and the resident memory to rise by no more than the limit.
pub fn succeeds<T>(what: &str, limit: usize, f: impl FnOnce() -> Result<T>) -> T {
    let (result, rise) = limited(limit, f);
    // Allows for stacks, thread caches and fragmentation of the system's allocator.
    assert!(rise <= limit + 12 * MIB, "{what}: the peak rose by {} MiB under {} MiB", rise / MIB, limit / MIB);
    result.unwrap_or_else(|e| panic!("{what}: {e}"))
}

/// Runs `f` under a limit. It has to fail with [`Error::OutOfMemory`], without a rise above the limit.
pub fn runs_out<T>(what: &str, limit: usize, f: impl FnOnce() -> Result<T>) {
    let (result, rise) = limited(limit, f);
    assert!(rise <= limit + 12 * MIB, "{what}: the peak rose by {} MiB under {} MiB", rise / MIB, limit / MIB);
    match result {
        Err(Error::OutOfMemory { requested, limit, .. }) => assert!(requested > 0 && limit.is_some(), "{what}"),
        Err(e) => panic!("{what}: {e}"),
        Ok(_) => panic!("{what}: more memory than the limit"),
    }
}

/// Returns an array of ones that takes the memory of one element.
pub fn ones(shape: &[usize], dtype: DType) -> NdArray {
    with_device(Device::CPU, || broadcast_to(&NdArray::scalar_as(1, dtype)?, shape)).unwrap()
}
