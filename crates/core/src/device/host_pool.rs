//! The allocator of host memory. Freed blocks are cached, because new memory causes page faults. Handling the page faults takes as long as
//! an elementwise operation on the block.
//!
//! Blocks up to [`MAX_SMALL_BLOCK_BYTES`] bytes are cached per thread, larger blocks in one pool of the process, both by size class. Blocks
//! of 2 MiB and more use huge pages. The limit (`CUPRUM_CPU_MEMORY_LIMIT`, [`Device::set_memory_limit`]) covers arrays,
//! [`MemoryReservation`]s and cached blocks; cached blocks are released before a request fails.
//!
//! All blocks are aligned to [`HOST_ALIGNMENT`] and initialised: they contain zeros from the system, or data of an earlier buffer.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use smallvec::SmallVec;

use super::device_memory::{HOST_ALIGNMENT, MemoryStats, pool_block_size};
use crate::error::{Error, Result};
use crate::fault_injection::{FailurePoint, should_fail};
use crate::settings;
use crate::types::device::Device;

/// Maximum size of a block in the per-thread caches.
const MAX_SMALL_BLOCK_BYTES: usize = 32 << 10;
/// Maximum number of blocks that a thread caches per size class.
const MAX_CACHED_SMALL_BLOCKS_PER_CLASS: usize = 8;
/// Size of a huge page in bytes. A block of at least this size has its own memory mapping.
const HUGE_PAGE_SIZE: usize = 2 << 20;

/// Number of bytes in use: the requested sizes of the live host buffers, and memory of other allocators ([`MemoryReservation`],
/// [`add_external_used_bytes`]).
static USED_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Maximum value of [`USED_BYTES`] so far.
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);
static LARGE_BLOCK_CACHE: Mutex<LargeBlockCache> =
    Mutex::new(LargeBlockCache { classes: BTreeMap::new(), clock: 0, reserved: 0, cached: 0, hits: 0, misses: 0 });

/// The cache of free large blocks, by block size.
struct LargeBlockCache {
    classes: BTreeMap<usize, Vec<FreeBlock>>,
    /// Number of blocks added to the cache so far. Serves as the time stamp that orders free blocks by age.
    clock: u64,
    /// Total size in bytes of the large blocks that the pool holds, whether in use or free.
    reserved: usize,
    /// Total size in bytes of the free blocks in this cache.
    cached: usize,
    hits: u64,
    misses: u64,
}

/// A free block.
struct FreeBlock {
    block: NonNull<u8>,
    since: u64,
}

// SAFETY: the pool has the only pointer to a free block's memory, so any thread may use or free it.
unsafe impl Send for FreeBlock {}

/// Free blocks that are removed from the cache and returned to the system, with their sizes.
type EvictedBlocks = SmallVec<[(FreeBlock, usize); 4]>;

fn lock_large_block_cache() -> MutexGuard<'static, LargeBlockCache> {
    LARGE_BLOCK_CACHE.lock().unwrap_or_else(|e| e.into_inner())
}

/// Allocates at least `nbytes` initialised bytes: zeros if `zero`, else unspecified.
pub(crate) fn allocate_block(nbytes: usize, zero: bool) -> Result<NonNull<u8>> {
    let limit = settings::checked_cpu_memory_limit()?;
    let out_of_memory = |used| Error::OutOfMemory { op: "allocate", device: Device::CPU, requested: nbytes, used, limit };
    let used = try_add_used_bytes(nbytes, limit).map_err(out_of_memory)?;
    let block = if nbytes <= MAX_SMALL_BLOCK_BYTES {
        allocate_small_block(nbytes, zero)
    } else {
        allocate_large_block(pool_block_size(nbytes, HOST_ALIGNMENT), zero, limit.map_or(usize::MAX, |l| l - used))
    };
    match block {
        Some(block) => {
            raise_peak_bytes(used + nbytes);
            Ok(block)
        }
        None => {
            subtract_external_used_bytes(nbytes);
            Err(out_of_memory(used))
        }
    }
}

/// Adds `nbytes` to the used memory if the sum is within `limit`, and returns the number of bytes used before. If not, adds nothing and
/// returns that number as the error, so that other threads never count a refused request.
fn try_add_used_bytes(nbytes: usize, limit: Option<usize>) -> Result<usize, usize> {
    let within = |now: &usize| nbytes <= isize::MAX as usize / 2 && limit.is_none_or(|max_bytes| *now <= max_bytes);
    let add = |used: usize| used.checked_add(nbytes).filter(within);
    let used = USED_BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)?;
    if should_fail(FailurePoint::HostMemory) {
        subtract_external_used_bytes(nbytes);
        return Err(used);
    }
    Ok(used)
}

/// Raises the peak memory use ([`PEAK_BYTES`]) to `now`, the number of bytes in use, unless the peak is higher already.
fn raise_peak_bytes(now: usize) {
    if PEAK_BYTES.load(Ordering::Relaxed) < now {
        PEAK_BYTES.fetch_max(now, Ordering::Relaxed);
    }
}

/// Returns an error if `nbytes` of temporary memory from another allocator would exceed the host memory limit.
pub(crate) fn check_memory_limit(op: &'static str, nbytes: usize) -> Result<()> {
    let (used, limit) = (used_bytes(), settings::checked_cpu_memory_limit()?);
    match limit {
        Some(max_bytes) if used.saturating_add(nbytes) > max_bytes => {
            Err(Error::OutOfMemory { op, device: Device::CPU, requested: nbytes, used, limit })
        }
        _ if should_fail(FailurePoint::HostMemory) => Err(Error::OutOfMemory { op, device: Device::CPU, requested: nbytes, used, limit }),
        _ => Ok(()),
    }
}

/// Adds `nbytes` from another allocator to the used memory, even beyond the limit, because the memory is allocated already.
pub(crate) fn add_external_used_bytes(nbytes: usize) {
    raise_peak_bytes(USED_BYTES.fetch_add(nbytes, Ordering::Relaxed).saturating_add(nbytes));
}

/// Subtracts from the used memory `nbytes` that [`add_external_used_bytes`] has added.
pub(crate) fn subtract_external_used_bytes(nbytes: usize) {
    USED_BYTES.fetch_sub(nbytes, Ordering::Relaxed);
}

/// Memory of another allocator that counts towards the host memory limit until the value is dropped.
pub(crate) struct MemoryReservation(usize);

impl MemoryReservation {
    /// Counts `nbytes` towards the host memory limit.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the limit is exceeded.
    pub fn reserve_host_memory(op: &'static str, nbytes: usize) -> Result<MemoryReservation> {
        let limit = settings::checked_cpu_memory_limit()?;
        let used = try_add_used_bytes(nbytes, limit).map_err(|used| Error::OutOfMemory {
            op,
            device: Device::CPU,
            requested: nbytes,
            used,
            limit,
        })?;
        raise_peak_bytes(used + nbytes);
        Ok(MemoryReservation(nbytes))
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        USED_BYTES.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Frees `block`: caches it for reuse, or returns it to the system if the cache is full.
///
/// # Safety
/// The block comes from [`allocate_block`] with the same `nbytes`, and no reference to it remains.
pub(crate) unsafe fn free_or_cache_block(block: NonNull<u8>, nbytes: usize) {
    USED_BYTES.fetch_sub(nbytes, Ordering::Relaxed);
    if nbytes > MAX_SMALL_BLOCK_BYTES {
        let evicted =
            lock_large_block_cache().cache_free_block(block, pool_block_size(nbytes, HOST_ALIGNMENT), max_large_block_cache_bytes());
        release_evicted_blocks(evicted);
        return;
    }
    let (index, size) = small_size_class(nbytes);
    let kept = THREAD_BLOCK_CACHE.try_with(|lists| {
        let list = &mut lists.borrow_mut().0[index];
        list.len() < MAX_CACHED_SMALL_BLOCKS_PER_CLASS && (list.push(block), true).1
    });
    if kept != Ok(true) {
        system_memory::release_to_system(block, size);
    }
}

/// Maximum size of the cache of free large blocks, in bytes: a quarter of physical memory, or 1 GiB if the size of physical memory is
/// unknown. A memory limit may reduce the size to the limit minus the memory in use.
fn max_large_block_cache_bytes() -> usize {
    static QUARTER_OF_PHYSICAL_MEMORY: OnceLock<usize> = OnceLock::new();
    let quarter = *QUARTER_OF_PHYSICAL_MEMORY.get_or_init(|| match settings::physical_memory() / 4 {
        0 => 1 << 30,
        quarter => quarter,
    });
    settings::cpu_memory_limit().map_or(quarter, |l| quarter.min(l.saturating_sub(USED_BYTES.load(Ordering::Relaxed))))
}

// ---- small blocks ----

/// Number of size classes of small blocks: four per power of two, starting at a cache line.
const SMALL_SIZE_CLASS_COUNT: usize = 40;

/// The free small blocks of a thread, by size class.
struct ThreadBlockCache([Vec<NonNull<u8>>; SMALL_SIZE_CLASS_COUNT]);

impl ThreadBlockCache {
    const EMPTY_CACHE: ThreadBlockCache = ThreadBlockCache([const { Vec::new() }; SMALL_SIZE_CLASS_COUNT]);
}

impl Drop for ThreadBlockCache {
    fn drop(&mut self) {
        for (index, list) in self.0.iter_mut().enumerate() {
            list.drain(..).for_each(|block| system_memory::release_to_system(block, small_block_size(index)));
        }
    }
}

thread_local! {
    static THREAD_BLOCK_CACHE: RefCell<ThreadBlockCache> = const { RefCell::new(ThreadBlockCache::EMPTY_CACHE) };
}

/// Returns the index and the block size of the smallest size class that holds `nbytes`.
fn small_size_class(nbytes: usize) -> (usize, usize) {
    let lines = nbytes.div_ceil(HOST_ALIGNMENT).max(1);
    let index = match lines {
        1..=4 => lines - 1,
        _ => {
            let octave = (lines - 1).ilog2() as usize; // 2^octave < lines <= 2^(octave + 1)
            let step = 1 << (octave - 2);
            4 * (octave - 1) + (lines - (1 << octave)).div_ceil(step) - 1
        }
    };
    (index, small_block_size(index))
}

/// Returns the block size of the size class `index` of small blocks, in bytes.
fn small_block_size(index: usize) -> usize {
    let lines = if index < 4 { index + 1 } else { (index % 4 + 5) << (index / 4 - 1) };
    lines * HOST_ALIGNMENT
}

fn allocate_small_block(nbytes: usize, zero: bool) -> Option<NonNull<u8>> {
    let (index, size) = small_size_class(nbytes);
    let kept = THREAD_BLOCK_CACHE.try_with(|lists| lists.borrow_mut().0[index].pop()).ok().flatten();
    if let (Some(block), true) = (kept, zero) {
        // SAFETY: `block` has `size >= nbytes` bytes, and the cache of this thread had the only pointer to it.
        unsafe { block.write_bytes(0, nbytes) };
    }
    kept.or_else(|| system_memory::allocate_zeroed_from_system(size))
}

// ---- large blocks ----

/// Allocates a block of `size` bytes, filled with zeros if `zero`. `available` is the number of bytes that the memory limit leaves for the
/// block and all cached blocks. Returns `None` if the memory does not suffice.
fn allocate_large_block(size: usize, zero: bool, available: usize) -> Option<NonNull<u8>> {
    let evicted = {
        let mut pool = lock_large_block_cache();
        if let Some(free) = pool.take_cached_block(size) {
            drop(pool);
            if zero {
                // SAFETY: `free.block` has `size` bytes. This function has the only pointer to it, since `take_cached_block` removed it
                // from the cache.
                unsafe { free.block.write_bytes(0, size) };
            }
            return Some(free.block);
        }
        pool.misses += 1;
        pool.reserved += size;
        pool.evict_oldest_blocks(available.saturating_sub(size))
    };
    release_evicted_blocks(evicted);
    let block = system_memory::allocate_zeroed_from_system(size).or_else(|| {
        free_cached_blocks();
        system_memory::allocate_zeroed_from_system(size)
    });
    if block.is_none() {
        lock_large_block_cache().reserved -= size;
    }
    block
}

impl LargeBlockCache {
    fn take_cached_block(&mut self, size: usize) -> Option<FreeBlock> {
        let free = self.classes.get_mut(&size)?.pop()?;
        self.cached -= size;
        self.hits += 1;
        Some(free)
    }

    /// Caches the free `block`. Returns the blocks that are evicted so that at most `max_bytes` stay cached.
    fn cache_free_block(&mut self, block: NonNull<u8>, size: usize, max_bytes: usize) -> EvictedBlocks {
        self.clock += 1;
        self.classes.entry(size).or_default().push(FreeBlock { block, since: self.clock });
        self.cached += size;
        self.evict_oldest_blocks(max_bytes)
    }

    /// Removes the blocks that have been free longest until at most `max_bytes` are cached, and returns them.
    fn evict_oldest_blocks(&mut self, max_bytes: usize) -> EvictedBlocks {
        let mut evicted = EvictedBlocks::new();
        while self.cached > max_bytes {
            // Blocks are appended to the list of their size when they are freed, so the first block of each list has been free longest.
            let oldest = self.classes.iter().filter_map(|(&size, list)| list.first().map(|f| (f.since, size))).min();
            let Some((list, size)) = oldest.and_then(|(_, size)| Some((self.classes.get_mut(&size)?, size))) else { break };
            evicted.push((list.remove(0), size));
            self.cached -= size;
            self.reserved -= size;
        }
        evicted
    }
}

fn release_evicted_blocks(evicted: EvictedBlocks) {
    evicted.into_iter().for_each(|(free, size)| system_memory::release_to_system(free.block, size));
}

/// Returns all cached large blocks and the cached small blocks of this thread to the system.
pub(crate) fn free_cached_blocks() {
    let evicted = lock_large_block_cache().evict_oldest_blocks(0);
    release_evicted_blocks(evicted);
    let lists = THREAD_BLOCK_CACHE.try_with(|lists| lists.replace(ThreadBlockCache::EMPTY_CACHE));
    drop(lists);
}

/// Sets or removes the host memory limit. Live arrays stay even if they exceed it; cached blocks beyond it are released.
pub(crate) fn set_host_memory_limit(limit: Option<usize>) {
    settings::set_cpu_memory_limit(limit);
    let evicted = lock_large_block_cache().evict_oldest_blocks(max_large_block_cache_bytes());
    release_evicted_blocks(evicted);
}

/// Returns the counters of the host allocator.
pub(crate) fn host_memory_stats() -> MemoryStats {
    let pool = lock_large_block_cache();
    MemoryStats {
        used: USED_BYTES.load(Ordering::Relaxed),
        peak: PEAK_BYTES.load(Ordering::Relaxed),
        reserved: pool.reserved,
        cached: pool.cached,
        limit: settings::cpu_memory_limit(),
        hits: pool.hits,
        misses: pool.misses,
    }
}

/// Sets the peak memory use ([`PEAK_BYTES`]) to the memory in use now.
pub(crate) fn reset_peak_bytes() {
    PEAK_BYTES.store(USED_BYTES.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Returns the number of bytes of host memory in use ([`USED_BYTES`]).
pub(crate) fn used_bytes() -> usize {
    USED_BYTES.load(Ordering::Relaxed)
}

/// Functions that obtain memory from the operating system and release it.
mod system_memory {
    use super::*;

    /// Allocates `size` zeroed bytes, where `size` is a positive multiple of [`HOST_ALIGNMENT`]. Returns `None` if the system has too
    /// little memory.
    pub(super) fn allocate_zeroed_from_system(size: usize) -> Option<NonNull<u8>> {
        if uses_own_mapping(size) {
            return map_huge_pages(size);
        }
        let layout = Layout::from_size_align(size, HOST_ALIGNMENT).ok()?;
        // SAFETY: `layout` has a positive size, as `alloc_zeroed` requires.
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }

    /// Frees a block that [`allocate_zeroed_from_system`] returned for the same `size`.
    pub(super) fn release_to_system(block: NonNull<u8>, size: usize) {
        if uses_own_mapping(size) {
            return unmap_huge_pages(block, size);
        }
        if let Ok(layout) = Layout::from_size_align(size, HOST_ALIGNMENT) {
            // SAFETY: `block` was allocated in `allocate_zeroed_from_system` with this layout, and the pool has the only pointer to it.
            unsafe { dealloc(block.as_ptr(), layout) };
        }
    }

    /// Returns whether a block of `size` bytes has its own memory mapping.
    fn uses_own_mapping(size: usize) -> bool {
        cfg!(all(target_os = "linux", not(miri))) && size >= HUGE_PAGE_SIZE
    }

    /// Maps `size` zeroed bytes aligned to huge pages, and requests huge pages from the operating system. Returns `None` if the mapping
    /// fails.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn map_huge_pages(size: usize) -> Option<NonNull<u8>> {
        let size = size.next_multiple_of(4096);
        let total = size.checked_add(HUGE_PAGE_SIZE)?;
        // SAFETY: the operating system chooses the address of the new private mapping, so it overlaps no memory in use.
        let start = unsafe {
            let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), total, access, kind, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let before = start.align_offset(HUGE_PAGE_SIZE);
        let block = start.wrapping_byte_add(before);
        // SAFETY: the ranges before, in and after `block` are within the new mapping of `total` bytes, at page boundaries.
        // The unmapped ranges are outside `block`, and a failing `madvise` has no effect.
        unsafe {
            if before > 0 {
                libc::munmap(start, before);
            }
            libc::munmap(block.byte_add(size), total - before - size);
            libc::madvise(block, size, libc::MADV_HUGEPAGE);
        }
        NonNull::new(block.cast())
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    fn unmap_huge_pages(block: NonNull<u8>, size: usize) {
        // SAFETY: `map_huge_pages` mapped `block` with `size`, rounded up to pages, and the pool has the only pointer to it.
        unsafe { libc::munmap(block.as_ptr().cast(), size.next_multiple_of(4096)) };
    }

    #[cfg(not(all(target_os = "linux", not(miri))))]
    fn map_huge_pages(_size: usize) -> Option<NonNull<u8>> {
        None
    }

    #[cfg(not(all(target_os = "linux", not(miri))))]
    fn unmap_huge_pages(_block: NonNull<u8>, _size: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_fit_their_requests() {
        for n in (0..=MAX_SMALL_BLOCK_BYTES).step_by(7).chain([1, 64, 65, 255, 256, 257, 320, 321, MAX_SMALL_BLOCK_BYTES]) {
            let (index, size) = small_size_class(n);
            assert!(
                index < SMALL_SIZE_CLASS_COUNT && size >= n && size <= (n + n / 4).next_multiple_of(HOST_ALIGNMENT).max(HOST_ALIGNMENT),
                "{n}: {index}, {size}"
            );
            assert!(index == 0 || small_block_size(index - 1) < n, "{n} also fits class {index} - 1");
        }
    }
}
