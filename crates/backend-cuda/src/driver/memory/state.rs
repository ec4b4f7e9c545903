//! The memory of one context: the driver's pool, the cache of free blocks, and the settings of both.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cuprum_core::settings::{env, parse_limit, parse_switch};
use smallvec::SmallVec;

use crate::driver::pool::{Fence, Pool};
use crate::driver::primary::check;
use crate::driver::probe::DeviceInfo;
use crate::driver::sys;
use crate::error::{CudaError, Result};

/// Variable for the memory limit: bytes (`8000000000`, `8GiB`) or a percentage (`80%`).
const LIMIT_VARIABLE: &str = "CUPRUM_GPU_MEMORY_LIMIT";

/// Variable for the pool. With `0`, no block is kept and sizes are not rounded, so that a memory checker sees each buffer.
const POOL_VARIABLE: &str = "CUPRUM_GPU_MEMORY_POOL";

/// Value of [`Pool::limit`] for no limit.
pub(super) const UNLIMITED: u64 = u64::MAX;

/// Minimum time between two checks of free memory, in milliseconds. A check costs two driver calls.
pub(super) const LOOK_MILLIS: u64 = 100;

/// Time of the next check of free memory, in milliseconds since the creation of the context.
#[derive(Default)]
pub(super) struct Looks(AtomicU64);

impl Looks {
    /// Returns whether a check is due. If several threads call this at the same time, one receives true.
    pub(super) fn is_due(&self, now: u64) -> bool {
        let next = self.0.load(Ordering::Relaxed);
        now >= next && self.0.compare_exchange(next, now + LOOK_MILLIS, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Converts a limit to the form of [`Pool::limit`].
pub(super) fn limit_bytes(limit: Option<usize>) -> u64 {
    limit.map_or(UNLIMITED, |bytes| bytes as u64)
}

/// A point after which a block may be reused.
pub(super) type AnyFence = Arc<dyn Fence + Send + Sync>;

/// The allocator of one context.
pub(in crate::driver) struct Memory {
    /// The driver's pool. Null if the device has none; then `cuMemAlloc` is used.
    pub(super) driver: sys::CUmemoryPool,
    /// Free blocks and statistics.
    pool: Mutex<Pool<AnyFence>>,
    /// Devices that have access to this memory, or cannot have it ([`Context::allow_peer_access`]).
    pub(super) peers: Mutex<SmallVec<[usize; 8]>>,
    pub(super) created: Instant,
    pub(super) looks: Looks,
}

// SAFETY: any thread may use the handle of a driver pool; all other fields are Send + Sync.
unsafe impl Send for Memory {}
// SAFETY: the driver synchronises calls on a pool.
unsafe impl Sync for Memory {}

impl Memory {
    /// Requires a current context.
    pub(in crate::driver) fn new(info: &DeviceInfo) -> Result<Memory> {
        let invalid = |e: cuprum_core::Error| CudaError::Invalid(e.to_string());
        let limit = env(LIMIT_VARIABLE).map_or(Ok(None), |text| parse_limit(LIMIT_VARIABLE, &text, info.total_memory as usize));
        let driver = if info.memory_pools { create_pool(info)? } else { ptr::null_mut() };
        let pooled = env(POOL_VARIABLE).map_or(Ok(true), |text| parse_switch(POOL_VARIABLE, &text));
        let keep = if pooled.map_err(invalid)? { info.total_memory / 4 } else { 0 };
        Ok(Memory {
            driver,
            pool: Mutex::new(Pool::new(limit_bytes(limit.map_err(invalid)?), keep)),
            peers: Mutex::default(),
            created: Instant::now(),
            looks: Looks::default(),
        })
    }

    pub(super) fn pool(&self) -> MutexGuard<'_, Pool<AnyFence>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a separate driver pool, because other libraries of the process share the default pool.
fn create_pool(info: &DeviceInfo) -> Result<sys::CUmemoryPool> {
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
    // SAFETY: the struct is fully set and the out-pointer valid; the pool is never destroyed.
    check("cuMemPoolCreate", unsafe { sys::cuMemPoolCreate(&mut pool, &props) })?;
    // With the default threshold of 0, every synchronisation returns all unused memory to the system.
    let mut keep = u64::MAX;
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: this attribute takes a cuuint64_t.
    check("cuMemPoolSetAttribute", unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut keep).cast()) })?;
    Ok(pool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_rare_and_by_one_thread() {
        let looks = Looks::default();
        assert!(looks.is_due(0) && !looks.is_due(0) && !looks.is_due(LOOK_MILLIS - 1));
        assert!(looks.is_due(LOOK_MILLIS) && !looks.is_due(LOOK_MILLIS + 1));
        assert!(looks.is_due(100 * LOOK_MILLIS));
    }
}
