//! The return of the pool's free blocks to the device, and the memory statistics.
//!
//! Free blocks return to the device in four cases:
//!
//! - the driver has no memory for an allocation of this process ([`Context::retry_out_of_memory`]);
//! - an allocation would exceed the memory limit;
//! - the pool keeps more memory than is free for other users of the device ([`keeps_too_much_memory`]);
//! - the user's program calls [`Context::trim`].

use cuprum_core::MemoryStats;

#[cfg(doc)]
use super::context_allocator::FREE_MEMORY_CHECK_MILLIS;
use super::context_allocator::{UNLIMITED_BYTES, limit_to_bytes};
use crate::driver::Context;
use crate::driver::primary_context::check_result;
use crate::driver::sys;
use crate::error::{CudaError, Result};

/// Minimum total size of the pool's free blocks, in bytes, at which their return to the device is worth the cost.
const MIN_RETURNED_BYTES: usize = 64 << 20;

/// Returns whether the pool must return its free blocks to the device, because it keeps more memory than is free for other programs.
/// `free_block_bytes` is the total size of the pool's free blocks. `free` is the number of bytes that are free on the device outside the
/// pool.
fn keeps_too_much_memory(free_block_bytes: usize, free: usize) -> bool {
    free_block_bytes >= MIN_RETURNED_BYTES && free_block_bytes > free
}

/// Returns the result of `attempt`. If `attempt` fails for lack of memory, runs `reclaim` and then `attempt` once more.
#[inline]
fn reclaim_and_retry<T>(mut attempt: impl FnMut() -> Result<T>, reclaim: impl FnOnce() -> Result<()>) -> Result<T> {
    match attempt() {
        Err(error) if error.is_out_of_memory() => {
            reclaim()?;
            attempt()
        }
        done => done,
    }
}

impl Context {
    /// Returns the result of `attempt`. If `attempt` fails for lack of device memory, returns the pool's free blocks to the device and runs
    /// `attempt` once more.
    ///
    /// The context is current when `attempt` runs. An `attempt` that fails must have no effect.
    #[inline]
    pub(crate) fn retry_out_of_memory<T>(&self, attempt: impl FnMut() -> Result<T>) -> Result<T> {
        let mut attempt = attempt;
        reclaim_and_retry(
            || {
                self.make_current()?;
                attempt()
            },
            || self.trim(),
        )
    }

    /// Returns the result of `attempt` as [`Context::retry_out_of_memory`] does, for calls that depend on the driver's current context:
    /// those that create objects, and those of NVIDIA's libraries.
    ///
    /// The driver's current context is set before each attempt, because other code on this thread, such as cudarc, may have changed it.
    pub(crate) fn retry_in_current_context<T>(&self, attempt: impl FnMut() -> Result<T>) -> Result<T> {
        let mut attempt = attempt;
        reclaim_and_retry(
            || {
                self.set_current()?;
                attempt()
            },
            || self.trim(),
        )
    }

    /// Frees `blocks`, each given by its stream number and address, in the order of that stream.
    ///
    /// # Safety
    /// The blocks came from [`Context::alloc_driver_block`], are freed only here, and no other stream uses them.
    pub(super) unsafe fn free_driver_blocks(&self, blocks: impl IntoIterator<Item = (u32, u64)>) {
        if self.make_current().is_err() {
            return;
        }
        for (stream, pointer) in blocks {
            // SAFETY: the caller guarantees that the blocks may be freed. Errors are ignored, because they occur only in a broken context
            // or at exit. `cuMemFree` waits for all queued work.
            unsafe {
                if self.memory.driver_pool.is_null() {
                    sys::cuMemFree_v2(pointer);
                } else {
                    sys::cuMemFreeAsync(pointer, self.raw_stream(stream));
                }
            }
        }
    }

    #[cold]
    pub(super) fn out_of_memory_error(&self, requested: u64) -> CudaError {
        let pool = self.memory.lock_pool();
        CudaError::OutOfMemory { requested, used: pool.used, limit: pool.limit.min(self.info().total_memory) }
    }

    /// Waits for all work, then returns the pool's free blocks to the device (`Device::free_all`).
    pub fn trim(&self) -> Result<()> {
        let waited = if self.has_several_streams() { self.wait_for_all_streams() } else { Ok(()) };
        let blocks = {
            let mut pool = self.memory.lock_pool();
            pool.reclaim_passed_blocks();
            pool.drain_free_blocks()
        };
        // SAFETY: `blocks` came from `alloc_driver_block`. No buffer owns them, and the pool has removed them from its lists.
        unsafe { self.free_driver_blocks(blocks) };
        waited.and_then(|()| self.wait_for_all_streams())?;
        self.in_flight_owners().drop_unused_owners();
        self.make_current()?; // the destructor of an owner may have made another device's context current
        if self.memory.driver_pool.is_null() {
            return Ok(());
        }
        // SAFETY: the driver pool belongs to this crate, and trimming does not touch memory in use.
        check_result("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(self.memory.driver_pool, 0) })
    }

    /// Returns the pool's free blocks to the device if the pool keeps more memory than is free for other users of the device
    /// ([`keeps_too_much_memory`]). Checks at most once per [`FREE_MEMORY_CHECK_MILLIS`] milliseconds.
    pub(in crate::driver) fn return_excess_free_blocks(&self) -> Result<()> {
        if !self.memory.free_memory_checks.is_check_due(self.memory.created.elapsed().as_millis() as u64) {
            return Ok(());
        }
        let free_block_bytes = self.memory_stats()?.cached;
        if free_block_bytes >= MIN_RETURNED_BYTES && keeps_too_much_memory(free_block_bytes, self.free_device_bytes()?) {
            tracing::debug!(free_block_bytes, "free blocks are returned to the device: its other users have less memory left");
            self.trim()?;
        }
        Ok(())
    }

    /// Sets or removes the limit of this process's device memory, in bytes. Existing buffers stay even if they exceed the limit.
    pub fn set_memory_limit(&self, limit: Option<usize>) {
        self.memory.lock_pool().limit = limit_to_bytes(limit);
    }

    /// Returns the number of free bytes on the device, which all processes share.
    pub fn free_device_bytes(&self) -> Result<usize> {
        self.set_current()?;
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: the context is current, and both out-pointers are locals.
        check_result("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok(free)
    }

    /// Resets the peak memory statistic to the number of bytes that are in use now.
    pub fn reset_peak_memory(&self) {
        let mut pool = self.memory.lock_pool();
        pool.peak = pool.used;
    }

    /// Returns the current memory statistics. `reserved` and `cached` include unused memory of the driver's pool.
    pub fn memory_stats(&self) -> Result<MemoryStats> {
        let mut reserved = 0u64;
        if !self.memory.driver_pool.is_null() {
            self.make_current()?;
            let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
            let out = (&raw mut reserved).cast();
            // SAFETY: `out` points to a local u64, and the driver writes a cuuint64_t for this attribute.
            check_result("cuMemPoolGetAttribute", unsafe { sys::cuMemPoolGetAttribute(self.memory.driver_pool, attribute, out) })?;
        }
        let pool = self.memory.lock_pool();
        let reserved = reserved.max(pool.total_bytes);
        Ok(MemoryStats {
            used: pool.used as usize,
            peak: pool.peak as usize,
            reserved: reserved as usize,
            cached: (reserved - (pool.total_bytes - pool.free_bytes)) as usize,
            limit: (pool.limit != UNLIMITED_BYTES).then_some(pool.limit as usize),
            hits: pool.hits,
            misses: pool.misses,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::driver::sys::CUresult;

    fn failure(code: u32) -> CudaError {
        CudaError::Driver { call: "cuModuleLoadData", code, name: String::new() }
    }

    #[test]
    fn an_attempt_without_memory_is_made_once_more() {
        let run = |failures: u32, code: u32| {
            let (attempts, trims) = (Cell::new(0), Cell::new(0));
            let attempt = || {
                attempts.set(attempts.get() + 1);
                if attempts.get() <= failures { Err(failure(code)) } else { Ok(attempts.get()) }
            };
            let done = reclaim_and_retry(attempt, || {
                trims.set(trims.get() + 1);
                Ok(())
            });
            (done.ok(), attempts.get(), trims.get())
        };
        let full = CUresult::CUDA_ERROR_OUT_OF_MEMORY.0;
        assert_eq!(run(0, full), (Some(1), 1, 0));
        assert_eq!(run(1, full), (Some(2), 2, 1));
        assert_eq!(run(9, full), (None, 2, 1), "a single retry");
        assert_eq!(run(9, 1), (None, 1, 0), "other errors are not retried");
        let unable = reclaim_and_retry(|| Err::<(), _>(failure(full)), || Err(failure(700)));
        assert!(matches!(unable, Err(CudaError::Driver { code: 700, .. })));
    }

    #[test]
    fn kept_memory_is_no_more_than_others_have_left() {
        let gib = 1 << 30;
        assert!(keeps_too_much_memory(8 * gib, 4 * gib) && keeps_too_much_memory(8 * gib, 0));
        assert!(!keeps_too_much_memory(8 * gib, 8 * gib) && !keeps_too_much_memory(MIN_RETURNED_BYTES - 1, 0));
    }
}
