//! Allocation of device memory blocks, from the pool of free blocks or from the driver.

use crate::driver::Context;
use crate::driver::free_blocks::{MemoryBlock, PoolResponse};
use crate::driver::primary_context::check_result;
use crate::driver::sys;
use crate::error::Result;

/// Minimum size, in bytes, of an allocation that first calls [`Context::return_excess_free_blocks`].
const MIN_BYTES_FOR_FREE_MEMORY_CHECK: usize = 1 << 20;

impl Context {
    /// Allocates a block of at least `bytes` bytes that belongs to stream `home`.
    pub(super) fn alloc_block(&'static self, home: u32, bytes: usize) -> Result<MemoryBlock> {
        if bytes >= MIN_BYTES_FOR_FREE_MEMORY_CHECK {
            self.return_excess_free_blocks()?;
        }
        let taken = self.memory.lock_pool().take_block(home, bytes as u64);
        match taken {
            PoolResponse::Reused(block) => Ok(block),
            PoolResponse::MustAllocate(size) => self.alloc_from_driver(home, bytes as u64, size),
            PoolResponse::Refused => Err(self.out_of_memory_error(bytes as u64)),
        }
    }

    /// Allocates a block of `size` bytes from the driver, for a request of `bytes` bytes that the statistics of the pool already include.
    #[cold]
    fn alloc_from_driver(&'static self, home: u32, bytes: u64, size: u64) -> Result<MemoryBlock> {
        self.in_flight_owners().drop_unused_owners(); // frees memory of other libraries that is not used any more
        let allocate = || {
            self.make_current()?;
            let beyond_limit = {
                let pool = self.memory.lock_pool();
                pool.total_bytes > pool.limit && pool.free_bytes > 0
            };
            if beyond_limit {
                self.trim()?; // because free blocks in the pool count towards the limit
            }
            self.retry_in_current_context(|| self.alloc_driver_block(home, size))
        };
        let allocated = allocate();
        let mut pool = self.memory.lock_pool();
        match allocated {
            Ok(pointer) => {
                pool.record_peak();
                Ok(MemoryBlock { pointer, size })
            }
            Err(error) => {
                pool.remove_failed_request(bytes, size);
                drop(pool); // because the error's message contains statistics of the pool
                Err(if error.is_out_of_memory() { self.out_of_memory_error(bytes) } else { error })
            }
        }
    }

    /// Allocates at least `bytes` bytes from the driver in the order of stream `home`. The context must be current.
    ///
    /// The size is a multiple of 4 bytes, because atomics on elements of 8 and 16 bits access the 32-bit word that contains the element.
    fn alloc_driver_block(&self, home: u32, bytes: u64) -> Result<u64> {
        let words = bytes.checked_next_multiple_of(4).and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = words.ok_or_else(|| self.out_of_memory_error(bytes))?;
        let mut pointer = 0;
        let pool = self.memory.driver_pool;
        // SAFETY: the context is current, and the out-pointer `pointer` is a local. The pool and the stream belong to the context.
        let code = unsafe {
            if pool.is_null() {
                sys::cuMemAlloc_v2(&mut pointer, bytes)
            } else {
                sys::cuMemAllocFromPoolAsync(&mut pointer, bytes, pool, self.raw_stream(home))
            }
        };
        check_result("cuMemAllocFromPoolAsync", code).map(|()| pointer)
    }
}
