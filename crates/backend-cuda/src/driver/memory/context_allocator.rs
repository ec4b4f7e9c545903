//! The memory allocator of one context: the driver's memory pool, this crate's pool of free blocks, and the settings of both.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cuprum_core::settings::{env, parse_memory_limit, parse_switch};
use smallvec::SmallVec;

use crate::driver::driver_probe::DeviceInfo;
use crate::driver::free_blocks::{FreeBlockPool, StreamFence};
use crate::driver::primary_context::check_result;
use crate::driver::sys;
use crate::error::{CudaError, Result};

/// Environment variable for the device memory limit: bytes (`8000000000`, `8GiB`) or a percentage (`80%`).
const MEMORY_LIMIT_VARIABLE: &str = "CUPRUM_GPU_MEMORY_LIMIT";

/// Environment variable that enables or disables the pool of free blocks. If its value is `0`, freed blocks return to the driver and block
/// sizes are not rounded. Memory checkers such as compute-sanitizer then see each allocation.
const MEMORY_POOL_VARIABLE: &str = "CUPRUM_GPU_MEMORY_POOL";

/// Value of [`FreeBlockPool::limit`] if memory is not limited.
pub(super) const UNLIMITED_BYTES: u64 = u64::MAX;

/// Minimum time between two checks of the device's free memory, in milliseconds. A check costs two driver calls.
pub(super) const FREE_MEMORY_CHECK_MILLIS: u64 = 100;

/// A rate limit for checks of the device's free memory. The field is the time of the next check, in milliseconds since the creation of the
/// context.
#[derive(Default)]
pub(super) struct FreeMemoryCheckTimer(AtomicU64);

impl FreeMemoryCheckTimer {
    /// Returns whether a check is due at the time `now`, in milliseconds since the creation of the context. If several threads call this
    /// method concurrently, one of them receives true.
    pub(super) fn is_check_due(&self, now: u64) -> bool {
        let next = self.0.load(Ordering::Relaxed);
        now >= next && self.0.compare_exchange(next, now + FREE_MEMORY_CHECK_MILLIS, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Returns `limit` as a value of [`FreeBlockPool::limit`]: [`UNLIMITED_BYTES`] for `None`.
pub(super) fn limit_to_bytes(limit: Option<usize>) -> u64 {
    limit.map_or(UNLIMITED_BYTES, |bytes| bytes as u64)
}

/// An event of any type that implements [`StreamFence`], recorded after the last use of a block on another stream. The block is reused once
/// the device has passed the event.
pub(super) type AnyFence = Arc<dyn StreamFence + Send + Sync>;

/// The device memory allocator of one context.
pub(in crate::driver) struct ContextAllocator {
    /// The driver's memory pool. Null if the device does not support pools. Blocks then come from `cuMemAlloc`.
    pub(super) driver_pool: sys::CUmemoryPool,
    /// This crate's free blocks and statistics.
    pool: Mutex<FreeBlockPool<AnyFence>>,
    /// Devices for which `Context::allow_peer_access` has run, whether or not they have access to this memory.
    pub(super) peers: Mutex<SmallVec<[usize; 8]>>,
    /// Time of the creation of the context.
    pub(super) created: Instant,
    pub(super) free_memory_checks: FreeMemoryCheckTimer,
}

// SAFETY: the driver allows a pool handle on any thread. All other fields are Send + Sync.
unsafe impl Send for ContextAllocator {}
// SAFETY: the driver synchronises concurrent calls on a pool.
unsafe impl Sync for ContextAllocator {}

impl ContextAllocator {
    /// Creates the allocator of a device with the properties `info`. Requires a current context.
    pub(in crate::driver) fn new(info: &DeviceInfo) -> Result<ContextAllocator> {
        let invalid = |e: cuprum_core::Error| CudaError::Invalid(e.to_string());
        let limit = env(MEMORY_LIMIT_VARIABLE)
            .map_or(Ok(None), |text| parse_memory_limit(MEMORY_LIMIT_VARIABLE, &text, info.total_memory as usize));
        let driver_pool = if info.memory_pools { create_driver_pool(info)? } else { ptr::null_mut() };
        let pooled = env(MEMORY_POOL_VARIABLE).map_or(Ok(true), |text| parse_switch(MEMORY_POOL_VARIABLE, &text));
        let keep = if pooled.map_err(invalid)? { info.total_memory / 4 } else { 0 };
        Ok(ContextAllocator {
            driver_pool,
            pool: Mutex::new(FreeBlockPool::new(limit_to_bytes(limit.map_err(invalid)?), keep)),
            peers: Mutex::default(),
            created: Instant::now(),
            free_memory_checks: FreeMemoryCheckTimer::default(),
        })
    }

    pub(super) fn lock_pool(&self) -> MutexGuard<'_, FreeBlockPool<AnyFence>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a driver pool for this crate alone, because the device's default pool is shared with other libraries.
fn create_driver_pool(info: &DeviceInfo) -> Result<sys::CUmemoryPool> {
    let props = sys::CUmemPoolProps {
        allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: info.handle },
        win32SecurityAttributes: ptr::null_mut(),
        maxSize: 0,
        usage: 0,
        reserved: [0; 54],
    };
    let mut pool = ptr::null_mut();
    // SAFETY: `props` is fully initialised, and the out-pointer `pool` is a local. The pool is never destroyed.
    check_result("cuMemPoolCreate", unsafe { sys::cuMemPoolCreate(&mut pool, &props) })?;
    // The release threshold of the pool is raised, because with the default of 0 every synchronisation returns all unused memory to the
    // system.
    let mut keep = u64::MAX;
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: `keep` is a local u64, and the driver reads a cuuint64_t for this attribute.
    check_result("cuMemPoolSetAttribute", unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut keep).cast()) })?;
    Ok(pool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_rare_and_by_one_thread() {
        let free_memory_checks = FreeMemoryCheckTimer::default();
        assert!(
            free_memory_checks.is_check_due(0)
                && !free_memory_checks.is_check_due(0)
                && !free_memory_checks.is_check_due(FREE_MEMORY_CHECK_MILLIS - 1)
        );
        assert!(
            free_memory_checks.is_check_due(FREE_MEMORY_CHECK_MILLIS) && !free_memory_checks.is_check_due(FREE_MEMORY_CHECK_MILLIS + 1)
        );
        assert!(free_memory_checks.is_check_due(100 * FREE_MEMORY_CHECK_MILLIS));
    }
}
