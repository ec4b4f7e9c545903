//! Blocks of memory on a device, their sizes, and the counters of allocators.

use std::any::Any;

use crate::types::device::Device;

/// Memory use of a device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Memory in live arrays. Includes vectors that were moved into arrays and, on the host, lists of
    /// [`Value`](crate::ops::python_value::Value). Excludes mapped files and memory of other libraries.
    pub used: usize,
    /// Maximum of `used` since the process started, or since [`Device::reset_peak_memory`].
    pub peak: usize,
    /// Memory held by the pool: the blocks of live arrays, with their rounded-up sizes, and free blocks. Excludes host blocks up to 32 KiB.
    pub reserved: usize,
    /// Memory in free blocks of the pool.
    pub cached: usize,
    /// The memory limit of the device; `None` if there is none.
    pub limit: Option<usize>,
    /// Number of allocations served from free blocks.
    pub hits: u64,
    /// Number of allocations that needed new memory.
    pub misses: u64,
}

/// A block of memory on a device. Backends downcast [`Buffer::as_any`] to their own type.
pub trait Buffer: Any + Send + Sync {
    /// Returns the device of the memory.
    fn device(&self) -> Device;
    /// Returns the size in bytes.
    fn nbytes(&self) -> usize;
    /// Returns `self` for downcasting.
    fn as_any(&self) -> &dyn Any;
    /// Returns whether a call may write to the memory once no other array uses it
    /// ([`OutputSpec::target_buffer`](crate::OutputSpec::target_buffer)).
    fn is_writable(&self) -> bool {
        true
    }
    /// Returns whether another library allocated the memory and may use it too. Such memory is never unique
    /// ([`NdArray::is_unique`](crate::NdArray::is_unique)).
    fn is_foreign(&self) -> bool {
        false
    }
}

/// Alignment of host memory from the pool in bytes: the size of a cache line and of the widest SIMD register.
pub const HOST_ALIGNMENT: usize = 64;

/// Returns the block size that a pooling allocator uses for `nbytes`.
///
/// There are eight block sizes per power of two, all multiples of `granule` (a power of two), so that requests of similar size share
/// blocks. At most an eighth of a block, or one granule, is unused.
#[inline]
pub fn pool_block_size(nbytes: usize, granule: usize) -> usize {
    let step = nbytes.checked_next_power_of_two().map_or(granule, |power| (power / 16).max(granule));
    nbytes.max(1).checked_next_multiple_of(step).unwrap_or(usize::MAX)
}
