//! A pool of free blocks of device memory. A driver allocation takes more than a microsecond, about as long as all other work of a small
//! operation. The pool avoids most driver allocations.
//!
//! A block belongs to the stream on which it was allocated. Work of that stream runs in order, so the next owner on the same stream needs
//! no event and no wait. A block that other streams have used becomes free once these streams have passed recorded events. The pool checks
//! the events if no free block fits, before a request goes to the driver. This module does not use the driver.

use std::collections::BTreeMap;
use std::sync::Arc;

use cuprum_core::host_buffer::pool_block_size;
use smallvec::SmallVec;

use super::stream_order::{StreamSet, stream_bit};

/// Smallest block size, in bytes: the driver's allocation granularity, and the minimum alignment of arrays.
const MIN_BLOCK_BYTES: u64 = 512;
/// Largest size, in bytes, that is rounded up to a size class (eight classes per power of two). Larger sizes are rounded up to
/// multiples of [`LARGE_SIZE_STEP_BYTES`].
const MAX_SIZE_CLASS_BYTES: u64 = 32 << 20;
/// Page size of the driver's device memory, in bytes. Sizes above [`MAX_SIZE_CLASS_BYTES`] are rounded up to multiples of this page size.
const LARGE_SIZE_STEP_BYTES: u64 = 2 << 20;
/// Number of size classes from [`MIN_BLOCK_BYTES`] to [`MAX_SIZE_CLASS_BYTES`]: eight for each of sixteen powers of two, and one for the
/// smallest size.
const SIZE_CLASS_COUNT: usize = 8 * 16 + 1;

/// Returns the size of the block for a request of `bytes` bytes. The block is larger than the request by at most an eighth of `bytes` or
/// [`MIN_BLOCK_BYTES`], whichever is more.
fn block_size_for_request(bytes: u64) -> u64 {
    match bytes {
        0..=MAX_SIZE_CLASS_BYTES => pool_block_size(bytes as usize, MIN_BLOCK_BYTES as usize) as u64,
        _ => bytes.checked_next_multiple_of(LARGE_SIZE_STEP_BYTES).unwrap_or(u64::MAX),
    }
}

/// Returns the index of the size class of a block of `size` bytes. `size` is at most [`MAX_SIZE_CLASS_BYTES`].
fn size_class_index(size: u64) -> usize {
    let octave = (size - 1).checked_ilog2().map_or(0, |n| n.saturating_sub(8)); // 0 up to 512 bytes, 1 up to 1024 bytes, ...
    if octave == 0 {
        return 0;
    }
    let below = MIN_BLOCK_BYTES << (octave - 1);
    8 * (octave as usize - 1) + (size - below).div_ceil(below / 8) as usize
}

/// An event in a stream that tells whether the device has passed it.
pub(super) trait StreamFence {
    fn stream_number(&self) -> u32;
    fn is_passed(&self) -> bool;
}

impl StreamFence for Arc<dyn StreamFence + Send + Sync> {
    fn stream_number(&self) -> u32 {
        (**self).stream_number()
    }

    fn is_passed(&self) -> bool {
        (**self).is_passed()
    }
}

/// The free blocks and memory statistics of one context.
#[derive(Debug)]
pub(super) struct FreeBlockPool<F> {
    /// Sum of the requested sizes of live buffers, in bytes.
    pub used: u64,
    /// Maximum number of bytes in use so far.
    pub peak: u64,
    /// Memory limit: the maximum number of bytes that live buffers may occupy.
    pub limit: u64,
    /// Total size of all blocks from the driver, in use and free, in bytes.
    pub total_bytes: u64,
    /// Total size of the free blocks, in bytes.
    pub free_bytes: u64,
    /// Number of allocation requests served by a free block.
    pub hits: u64,
    /// Number of allocation requests served by the driver.
    pub misses: u64,
    /// Maximum total size of the free blocks that the pool keeps, in bytes.
    max_free_bytes: u64,
    /// Free blocks by stream number.
    free_blocks: Vec<StreamFreeBlocks>,
    /// Free blocks that other streams may still use, in the order in which the blocks were returned to the pool.
    waiting: Vec<FencedBlock<F>>,
}

/// The free blocks of one stream, by size.
#[derive(Debug)]
struct StreamFreeBlocks {
    /// Addresses of the free blocks of at most [`MAX_SIZE_CLASS_BYTES`] bytes, by size class.
    classes: Vec<Vec<u64>>,
    /// Addresses of the free blocks of more than [`MAX_SIZE_CLASS_BYTES`] bytes, by size.
    large: BTreeMap<u64, Vec<u64>>,
}

impl StreamFreeBlocks {
    fn new() -> StreamFreeBlocks {
        StreamFreeBlocks { classes: vec![Vec::new(); SIZE_CLASS_COUNT], large: BTreeMap::new() }
    }

    fn find_free_block(&mut self, size: u64) -> Option<MemoryBlock> {
        if size <= MAX_SIZE_CLASS_BYTES {
            return self.classes.get_mut(size_class_index(size))?.pop().map(|pointer| MemoryBlock { pointer, size });
        }
        // Takes the smallest block that is large enough, if it is at most an eighth larger than the request.
        let (&size, list) = self.large.range_mut(size..=size.saturating_add(size / 8)).next()?;
        let pointer = list.pop()?;
        if list.is_empty() {
            self.large.remove(&size);
        }
        Some(MemoryBlock { pointer, size })
    }

    fn push_free_block(&mut self, block: MemoryBlock) {
        match self.classes.get_mut(size_class_index(block.size)).filter(|_| block.size <= MAX_SIZE_CLASS_BYTES) {
            Some(list) => list.push(block.pointer),
            None => self.large.entry(block.size).or_default().push(block.pointer),
        }
    }

    fn drain_free_blocks(&mut self) -> impl Iterator<Item = u64> {
        let large = std::mem::take(&mut self.large);
        self.classes.iter_mut().flat_map(std::mem::take).chain(large.into_values().flatten())
    }
}

/// A free block, and the events that other streams must pass before the block is reused.
#[derive(Debug)]
struct FencedBlock<F> {
    /// Number of the block's home stream, in whose order the block is reused.
    home: u32,
    block: MemoryBlock,
    fences: SmallVec<[F; 2]>,
}

/// A block of device memory: address and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryBlock {
    pub pointer: u64,
    pub size: u64,
}

/// The result of a request for memory from the pool.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PoolResponse {
    /// A free block serves the request.
    Reused(MemoryBlock),
    /// The driver must allocate this many bytes. Then call [`FreeBlockPool::record_peak`], or [`FreeBlockPool::remove_failed_request`] if
    /// the driver fails.
    MustAllocate(u64),
    /// The request exceeds the memory limit or the address space, and is not counted in the statistics.
    Refused,
}

impl<F: StreamFence> FreeBlockPool<F> {
    /// Returns an empty pool that keeps at most `max_free_bytes` bytes of free blocks. If `max_free_bytes` is 0, every request goes to the
    /// driver with its exact size.
    pub fn new(limit: u64, max_free_bytes: u64) -> FreeBlockPool<F> {
        let free_blocks = vec![StreamFreeBlocks::new()];
        FreeBlockPool {
            used: 0,
            peak: 0,
            limit,
            total_bytes: 0,
            free_bytes: 0,
            hits: 0,
            misses: 0,
            max_free_bytes,
            free_blocks,
            waiting: Vec::new(),
        }
    }

    /// Returns whether the pool keeps freed blocks.
    pub fn keeps_freed_blocks(&self) -> bool {
        self.max_free_bytes > 0
    }

    /// Serves a request of `bytes` bytes for `stream` from a free block if one fits. Adds the request to the statistics unless the memory
    /// limit refuses it.
    pub fn take_block(&mut self, stream: u32, bytes: u64) -> PoolResponse {
        let Some(used) = self.used.checked_add(bytes).filter(|&used| used <= self.limit && bytes <= isize::MAX as u64) else {
            return PoolResponse::Refused;
        };
        let size = if self.max_free_bytes == 0 { bytes } else { block_size_for_request(bytes) };
        let mut found = self.find_free_block(stream, size);
        if found.is_none() && !self.waiting.is_empty() {
            self.reclaim_passed_blocks();
            found = self.find_free_block(stream, size);
        }
        match found {
            Some(block) => {
                self.used = used;
                self.record_peak();
                self.free_bytes -= block.size;
                self.hits += 1;
                PoolResponse::Reused(block)
            }
            None => {
                let Some(total_bytes) = self.total_bytes.checked_add(size) else { return PoolResponse::Refused };
                (self.used, self.total_bytes) = (used, total_bytes);
                self.misses += 1;
                PoolResponse::MustAllocate(size)
            }
        }
    }

    fn find_free_block(&mut self, stream: u32, size: u64) -> Option<MemoryBlock> {
        self.free_blocks.get_mut(stream as usize)?.find_free_block(size)
    }

    fn free_blocks_of_stream(&mut self, stream: u32) -> &mut StreamFreeBlocks {
        let at = stream as usize;
        if at >= self.free_blocks.len() {
            self.free_blocks.resize_with(at + 1, StreamFreeBlocks::new);
        }
        &mut self.free_blocks[at]
    }

    /// Raises the peak memory statistic to the number of bytes in use, if that number is larger.
    pub fn record_peak(&mut self) {
        self.peak = self.peak.max(self.used);
    }

    /// Removes a [`PoolResponse::MustAllocate`] request of `bytes` from the statistics, because the driver failed to allocate `size` bytes.
    pub fn remove_failed_request(&mut self, bytes: u64, size: u64) {
        self.used -= bytes;
        self.total_bytes -= size;
    }

    /// Takes back `block`, which belongs to stream `home` and which no other stream has used. Returns false if the pool is full. The caller
    /// must then free `block`, and should also free the blocks that [`FreeBlockPool::drain_free_blocks`] returns. `bytes` is the size of
    /// the original request.
    #[must_use]
    pub fn return_block(&mut self, home: u32, block: MemoryBlock, bytes: u64) -> bool {
        self.used -= bytes;
        if self.free_bytes.saturating_add(block.size) > self.max_free_bytes {
            self.total_bytes -= block.size;
            return false;
        }
        self.free_bytes += block.size;
        self.free_blocks_of_stream(home).push_free_block(block);
        true
    }

    /// Takes back `block`, which belongs to stream `home` and which other streams have used. The block becomes free once these streams pass
    /// the events `fences`. `bytes` is the size of the original request.
    pub fn return_fenced_block(&mut self, home: u32, block: MemoryBlock, bytes: u64, fences: SmallVec<[F; 2]>) {
        self.used -= bytes;
        self.free_bytes += block.size;
        self.waiting.push(FencedBlock { home, block, fences });
    }

    /// Checks the events of each waiting block. Moves the block to the free blocks if the device has passed all of them.
    pub fn reclaim_passed_blocks(&mut self) {
        // A stream passes its events in order. So after a query finds that a stream has not passed an event, later events of the stream are
        // not queried.
        let mut behind: StreamSet = 0;
        let waiting = std::mem::take(&mut self.waiting);
        for mut one in waiting {
            one.fences.retain(|fence| {
                let stream = stream_bit(fence.stream_number());
                let is_passed = behind & stream == 0 && fence.is_passed();
                behind |= if is_passed { 0 } else { stream };
                !is_passed
            });
            match one.fences.is_empty() {
                true => self.free_blocks_of_stream(one.home).push_free_block(one.block),
                false => self.waiting.push(one),
            }
        }
    }

    /// Removes all free blocks except those that other streams may still use. Returns their stream numbers and addresses.
    pub fn drain_free_blocks(&mut self) -> Vec<(u32, u64)> {
        let waiting: u64 = self.waiting.iter().map(|w| w.block.size).sum();
        self.total_bytes -= self.free_bytes - waiting;
        self.free_bytes = waiting;
        (0..)
            .zip(&mut self.free_blocks)
            .flat_map(|(stream, blocks)| blocks.drain_free_blocks().map(move |pointer| (stream, pointer)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event of stream 1, which counts as passed once the flag is set.
    #[derive(Debug)]
    struct Flag<'a>(&'a std::cell::Cell<bool>);

    impl StreamFence for Flag<'_> {
        fn stream_number(&self) -> u32 {
            1
        }
        fn is_passed(&self) -> bool {
            self.0.get()
        }
    }

    fn pool(limit: u64, keep: u64) -> FreeBlockPool<Flag<'static>> {
        FreeBlockPool::new(limit, keep)
    }

    #[test]
    fn blocks_are_little_larger_than_asked_for() {
        let mut sizes: Vec<u64> = (0..40).flat_map(|n| [(1u64 << n) - 1, 1 << n, (1 << n) + 1, 3 << n, (3 << n) + 7]).collect();
        sizes.extend((1..20_000).map(|n| n * 37));
        sizes.sort_unstable();
        let mut last = (0, 0);
        for bytes in sizes {
            let size = block_size_for_request(bytes);
            assert!(
                size >= bytes && size.is_multiple_of(MIN_BLOCK_BYTES) && size <= bytes + (bytes / 8).max(MIN_BLOCK_BYTES),
                "{bytes}: {size}"
            );
            assert_eq!(block_size_for_request(size), size);
            if size <= MAX_SIZE_CLASS_BYTES {
                let index = size_class_index(size);
                assert!(index < SIZE_CLASS_COUNT);
                assert_eq!(index == last.1, size == last.0 || last.0 == 0, "{size} and {} share a list or not", last.0);
                last = (size, index);
            }
        }
        assert_eq!(block_size_for_request(u64::MAX), u64::MAX);
    }

    fn block(taken: PoolResponse, pointer: u64) -> MemoryBlock {
        match taken {
            PoolResponse::Reused(block) => block,
            PoolResponse::MustAllocate(size) => MemoryBlock { pointer, size },
            PoolResponse::Refused => panic!("refused"),
        }
    }

    #[test]
    fn a_loop_of_equal_requests_asks_the_driver_once() {
        let mut pool = pool(u64::MAX, u64::MAX);
        for bytes in [1, 4096, 5000, 33 << 20, (100 << 20) + 1] {
            let (hits, misses) = (pool.hits, pool.misses);
            for _ in 0..10 {
                let block = block(pool.take_block(0, bytes), bytes);
                assert_eq!((block.pointer, pool.used), (bytes, bytes));
                assert!(pool.return_block(0, block, bytes));
            }
            assert_eq!((pool.hits - hits, pool.misses - misses), (9, 1), "{bytes}");
        }
        assert_eq!(pool.total_bytes, pool.free_bytes);
        assert_eq!((pool.used, pool.peak), (0, (100 << 20) + 1));
        let mut blocks = pool.drain_free_blocks();
        blocks.sort_unstable();
        assert_eq!(blocks, [1, 4096, 5000, 33 << 20, (100 << 20) + 1].map(|pointer| (0, pointer)));
        assert_eq!((pool.total_bytes, pool.free_bytes), (0, 0));
    }

    #[test]
    fn large_blocks_serve_requests_a_little_smaller() {
        let mut pool = pool(u64::MAX, u64::MAX);
        let mib = 1 << 20;
        let first = block(pool.take_block(0, 80 * mib), 7);
        assert!(pool.return_block(0, first, 80 * mib));
        assert_eq!(pool.take_block(0, 60 * mib), PoolResponse::MustAllocate(60 * mib));
        assert_eq!(pool.take_block(0, 72 * mib), PoolResponse::Reused(first));
        assert!(matches!(pool.take_block(0, 72 * mib), PoolResponse::MustAllocate(_)));
    }

    #[test]
    fn limits_and_what_is_kept() {
        let mut pool = pool(10_000, 4096);
        let (a, b) = (block(pool.take_block(0, 4000), 1), block(pool.take_block(0, 4000), 2));
        pool.record_peak();
        assert_eq!(pool.take_block(0, 2001), PoolResponse::Refused);
        assert_eq!((pool.used, pool.total_bytes), (8000, 8192));
        assert!(pool.return_block(0, a, 4000));
        assert!(!pool.return_block(0, b, 4000), "the second is too much to keep");
        assert_eq!((pool.used, pool.total_bytes, pool.free_bytes), (0, 4096, 4096));
        let PoolResponse::MustAllocate(size) = pool.take_block(0, 9000) else { panic!("nothing of this size is kept") };
        pool.remove_failed_request(9000, size);
        assert_eq!((pool.used, pool.total_bytes, pool.peak), (0, 4096, 8000), "a failed request is not part of the peak");
        pool.limit = u64::MAX;
        assert_eq!([1 << 63, u64::MAX].map(|bytes| pool.take_block(0, bytes)), [PoolResponse::Refused, PoolResponse::Refused]);
        assert_eq!((pool.used, pool.total_bytes, pool.peak), (0, 4096, 8000));
    }

    #[test]
    fn streams_have_blocks_of_their_own() {
        let mut pool = pool(u64::MAX, u64::MAX);
        let one = block(pool.take_block(0, 4096), 1);
        assert!(pool.return_block(3, one, 4096));
        assert_eq!(pool.take_block(0, 4096), PoolResponse::MustAllocate(4096));
        assert_eq!(pool.take_block(3, 4096), PoolResponse::Reused(one));
        assert!(pool.return_block(3, one, 4096));
        assert_eq!(pool.drain_free_blocks(), [(3, 1)]);
    }

    #[test]
    fn blocks_that_others_use_wait_for_them() {
        let flag = std::cell::Cell::new(false);
        let mut pool = FreeBlockPool::new(u64::MAX, u64::MAX);
        let one = block(pool.take_block(0, 4096), 1);
        pool.return_fenced_block(0, one, 4096, [Flag(&flag)].into_iter().collect());
        assert_eq!((pool.used, pool.free_bytes, pool.total_bytes), (0, 4096, 4096));
        assert_eq!(pool.drain_free_blocks(), [], "not yet");
        assert_eq!((pool.free_bytes, pool.total_bytes), (4096, 4096));
        let two = block(pool.take_block(0, 4096), 2);
        assert_eq!(two.pointer, 2, "the first is in use");
        flag.set(true);
        assert_eq!(pool.take_block(0, 4096), PoolResponse::Reused(one));
        assert_eq!((pool.free_bytes, pool.total_bytes, pool.hits), (0, 8192, 1));
        pool.return_fenced_block(0, one, 4096, [Flag(&flag)].into_iter().collect());
        pool.reclaim_passed_blocks();
        assert_eq!(pool.drain_free_blocks(), [(0, 1)]);
        assert_eq!((pool.free_bytes, pool.total_bytes), (0, 4096));
    }
}
