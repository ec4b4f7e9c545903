//! The device-side error word: 32 bytes of pinned host memory that kernels write to when they meet a bad value.
//!
//! The host reads it after it has waited anyway, so checking costs one load and no copy. The first fault wins until
//! it is read; kernels must then carry on without touching memory out of bounds (skip the element).

use std::ffi::c_void;
use std::ptr;

use super::{check, sys};
use crate::error::{CudaError, Result};

/// An index out of bounds.
pub const INDEX_OUT_OF_BOUNDS: u64 = 1;

/// Set by a kernel while it writes the other fields.
const BUSY: u64 = u64::MAX;

/// CUDA source of the device's side; prepend it to kernels that can fault. They take a `CuprumFault*` parameter,
/// filled with [`super::Context::fault_pointer`], and call `cuprum_fault(word, code, op, value, length)`.
pub const DEVICE_SOURCE: &str = r#"
struct CuprumFault { unsigned long long code, op; long long value; unsigned long long length; };
__device__ __noinline__ void cuprum_fault(CuprumFault* word, unsigned long long code, unsigned long long op,
                                          long long value, unsigned long long length) {
    if (atomicCAS(&word->code, 0ull, ~0ull) == 0ull) {
        volatile CuprumFault* out = word;
        out->op = op;
        out->value = value;
        out->length = length;
        __threadfence_system();
        out->code = code;
    }
}
"#;

/// The block, mapped for the device. Lives as long as its context: until the process ends.
pub(super) struct FaultBlock {
    host: *mut [u64; 4],
    device: u64,
}

// SAFETY: accessed by volatile reads and writes only; a race between readers at worst reports a fault twice.
unsafe impl Send for FaultBlock {}
// SAFETY: as above.
unsafe impl Sync for FaultBlock {}

impl FaultBlock {
    /// The context must be current.
    pub(super) fn new() -> Result<FaultBlock> {
        let mut host: *mut c_void = ptr::null_mut();
        let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: the out-pointer is valid; the block is never freed.
        check("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&mut host, size_of::<[u64; 4]>(), flags) })?;
        let mut device = 0;
        // SAFETY: `host` was just allocated with DEVICEMAP.
        check("cuMemHostGetDevicePointer", unsafe { sys::cuMemHostGetDevicePointer_v2(&mut device, host, 0) })?;
        let host = host.cast::<[u64; 4]>();
        // SAFETY: page-aligned, 32 bytes long, and no kernel knows of it yet.
        unsafe { host.write_volatile([0; 4]) };
        Ok(FaultBlock { host, device })
    }

    pub(super) fn device_pointer(&self) -> u64 {
        self.device
    }

    #[inline]
    pub(super) fn take(&self) -> Result<()> {
        // SAFETY: `host` is valid and aligned for the life of the process; the device may write at the same time,
        // hence volatile.
        let code = unsafe { self.host.cast::<u64>().read_volatile() };
        if code == 0 || code == BUSY {
            return Ok(());
        }
        // SAFETY: as above; a kernel sets a final code only after the other fields.
        let [_, op, value, length] = unsafe { self.host.read_volatile() };
        // SAFETY: as above; clearing the code re-arms the word.
        unsafe { self.host.cast::<u64>().write_volatile(0) };
        Err(CudaError::DeviceFault { code, op, value: value.cast_signed(), length })
    }
}
