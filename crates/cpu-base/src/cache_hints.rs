//! Prefetching and non-temporal stores.
#![allow(unsafe_code)]

use std::cell::Cell;

/// Size of a cache line, in bytes.
pub const CACHE_LINE_BYTES: usize = 64;

/// One cache line: the unit of scratch memory and of write-combining buffers.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct CacheLine(#[allow(dead_code)] [u8; CACHE_LINE_BYTES]); // read and written through pointers

impl CacheLine {
    /// A cache line with all bits 0.
    pub const ZERO: CacheLine = CacheLine([0; CACHE_LINE_BYTES]);
}

/// Minimum output size, in bytes, for non-temporal stores. Ordinary stores to such a large output would evict the inputs from the caches.
pub const MIN_NON_TEMPORAL_BYTES: usize = if cfg!(miri) { 8 << 10 } else { 16 << 20 };

/// Prefetches the cache line of `address`, which need not be valid. Does nothing on processors other than x86-64.
#[inline(always)]
pub fn prefetch_cache_line<T>(address: *const T) {
    // SAFETY: a prefetch never faults, whatever the address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Prefetches every cache line of `part`.
#[inline(always)]
pub fn prefetch_all_lines<T>(part: &[T]) {
    prefetch_at_distance(part, 0);
}

/// Prefetches as many bytes as `part` has, from the address `lines` cache lines after the start of `part`. The prefetch helps loops that
/// read several arrays at once, for which the hardware prefetcher starts late.
///
/// Loops that only read in order test [`benefits_from_prefetch`] before the loop. Loops with random accesses between the reads prefetch on
/// every processor (`docs/notes/cpu-prefetching.md`). A test inside the loop would make the compiler spill the loop's accumulators to
/// the stack, even on processors for which the test is false.
#[inline(always)]
pub fn prefetch_at_distance<T>(part: &[T], lines: usize) {
    let start = part.as_ptr().cast::<u8>().wrapping_add(lines * CACHE_LINE_BYTES);
    (0..size_of_val(part)).step_by(CACHE_LINE_BYTES).for_each(|at| prefetch_cache_line(start.wrapping_add(at)));
}

/// State of software prefetching for a loop over contiguous memory.
///
/// Cache lines of the next block of `PrefetchState::PAGES_PER_PREFETCH_BLOCK` pages are prefetched in an order that alternates between the
/// pages of the block. On an Intel Xeon one thread sums 256 MiB in 31 ms this way, against 48 ms with lines in order. The presumed cause is
/// that the Xeon's hardware prefetcher stops at page boundaries. An AMD Zen 4 reads 64 MiB in 2.1 ms without software prefetching, and in
/// 3.5 ms with this order.
#[derive(Clone, Copy)]
pub struct PrefetchState {
    /// Address of the next element that the loop reads.
    at: *const u8,
    /// Distance in bytes from the next element to the memory that is prefetched. The value 0 selects the page-alternating order.
    distance: usize,
}

/// Returns whether software prefetching is faster than the hardware prefetcher alone, which holds for Intel processors.
#[inline]
pub fn benefits_from_prefetch() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        static IS_INTEL: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
            // SAFETY: every x86-64 processor has the instruction. Newer compilers declare the function as safe.
            #[allow(unused_unsafe)]
            let std::arch::x86_64::CpuidResult { ebx, ecx, edx, .. } = unsafe { std::arch::x86_64::__cpuid(0) };
            [ebx, edx, ecx].map(u32::to_le_bytes).concat() == b"GenuineIntel"
        });
        *IS_INTEL
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}

impl PrefetchState {
    const PAGE_BYTES: usize = 4096;
    /// Pages per block of memory that is prefetched together. Two blocks fit the first-level cache.
    const PAGES_PER_PREFETCH_BLOCK: usize = 4;
    const PREFETCH_BLOCK_BYTES: usize = PrefetchState::PAGES_PER_PREFETCH_BLOCK * PrefetchState::PAGE_BYTES;
    /// Cache lines prefetched in one step, each from a different page of the block.
    const LINES_PER_PREFETCH_STEP: usize = 2;

    /// Returns the prefetching state for a loop that starts at `address`. Returns `None` unless the processor [`benefits_from_prefetch`].
    #[inline]
    pub fn at(address: *const u8) -> Option<PrefetchState> {
        benefits_from_prefetch().then_some(PrefetchState { at: address, distance: 0 })
    }

    /// Returns the prefetching state for a loop over the `bytes` bytes at `address` that precedes a second loop. The second loop reads the
    /// next `bytes` bytes of memory. On processors that [benefit from prefetching](benefits_from_prefetch), the first loop prefetches its
    /// own memory one block ahead, cache lines of different pages in turn. On other processors the first loop prefetches the memory of the second loop, because the pause between the
    /// loops stops the hardware prefetcher.
    #[inline]
    pub fn new_for_first_of_two_loops(address: *const u8, bytes: usize) -> PrefetchState {
        PrefetchState { at: address, distance: if benefits_from_prefetch() { 0 } else { bytes } }
    }

    /// Returns the prefetching state after the loop has read `count` elements of `T`.
    #[inline(always)]
    pub fn advance<T>(self, count: usize) -> PrefetchState {
        PrefetchState { at: self.at.wrapping_add(count * size_of::<T>()), ..self }
    }

    /// Prefetches as many cache lines as the next `count` elements fill. The loop reads these lines one block (or `distance` bytes) later.
    #[inline(always)]
    pub fn prefetch_next<T>(self, count: usize) {
        if self.distance > 0 {
            let start = self.at.wrapping_add(self.distance);
            return (0..count * size_of::<T>()).step_by(CACHE_LINE_BYTES).for_each(|at| prefetch_cache_line(start.wrapping_add(at)));
        }
        for at in (0..count * size_of::<T>()).step_by(PrefetchState::LINES_PER_PREFETCH_STEP * CACHE_LINE_BYTES) {
            let place = (self.at.addr() + at) % PrefetchState::PREFETCH_BLOCK_BYTES;
            let (turn, page) = (
                place / (PrefetchState::PAGES_PER_PREFETCH_BLOCK * CACHE_LINE_BYTES),
                place / (PrefetchState::LINES_PER_PREFETCH_STEP * CACHE_LINE_BYTES)
                    % (PrefetchState::PAGES_PER_PREFETCH_BLOCK / PrefetchState::LINES_PER_PREFETCH_STEP),
            );
            let to = PrefetchState::PREFETCH_BLOCK_BYTES
                + page * PrefetchState::LINES_PER_PREFETCH_STEP * PrefetchState::PAGE_BYTES
                + turn * CACHE_LINE_BYTES;
            let line = self.at.wrapping_add(at + to - place);
            (0..PrefetchState::LINES_PER_PREFETCH_STEP).for_each(|i| prefetch_cache_line(line.wrapping_add(i * PrefetchState::PAGE_BYTES)));
        }
    }
}

/// Non-temporal (streaming) stores, which bypass the caches. A fully written cache line is not read from memory first, which saves a
/// quarter of the memory traffic of `a + b`. Dropping the value makes the stores visible to other threads.
#[derive(Default)]
pub struct NonTemporalStores {
    used: Cell<bool>,
}

impl NonTemporalStores {
    /// Copies `count` bytes from `from` to `to` with non-temporal stores.
    ///
    /// # Safety
    /// `from` points to `count` initialised bytes and `to` is valid for `count` written bytes. The two ranges do not overlap. No thread
    /// reads `to` before this value is dropped.
    pub unsafe fn copy_bytes(&self, from: *const u8, to: *mut u8, count: usize) {
        let head = to.align_offset(CACHE_LINE_BYTES).min(count);
        let body = (count - head) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
        // SAFETY: the three copies cover consecutive parts of the two ranges of `count` bytes that the caller guarantees. The middle
        // part of `to` starts at a cache line boundary and has whole cache lines.
        unsafe {
            std::ptr::copy_nonoverlapping(from, to, head);
            self.copy_cache_lines(from.add(head), to.add(head), body);
            std::ptr::copy_nonoverlapping(from.add(head + body), to.add(head + body), count - head - body);
        }
    }

    /// Copies `count` bytes, a whole number of cache lines, from `from` to `to` with non-temporal stores.
    ///
    /// # Safety
    /// The caller must fulfil the contract of [`NonTemporalStores::copy_bytes`]. In addition, `to` is aligned to a cache line, and `count`
    /// is a multiple of [`CACHE_LINE_BYTES`].
    #[inline(always)]
    pub unsafe fn copy_cache_lines(&self, from: *const u8, to: *mut u8, count: usize) {
        self.used.set(true);
        // SAFETY: `non_temporal_instructions::copy_cache_lines` has the same safety contract as this method, and the caller guarantees it.
        unsafe { non_temporal_instructions::copy_cache_lines(from, to, count) };
    }
}

impl Drop for NonTemporalStores {
    fn drop(&mut self) {
        if self.used.get() {
            non_temporal_instructions::store_fence();
        }
    }
}

/// Non-temporal store instructions for [`NonTemporalStores`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod non_temporal_instructions {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    /// # Safety
    /// The caller must fulfil the contract of [`super::NonTemporalStores::copy_cache_lines`].
    #[inline(always)]
    pub(super) unsafe fn copy_cache_lines(from: *const u8, to: *mut u8, count: usize) {
        for at in (0..count).step_by(size_of::<__m128i>()) {
            // SAFETY: `at + 16 <= count`, so both accesses stay inside the caller's ranges; `to` and `at` are multiples of 16 bytes.
            unsafe { _mm_stream_si128(to.add(at).cast(), _mm_loadu_si128(from.add(at).cast())) };
        }
    }

    pub(super) fn store_fence() {
        // SAFETY: every x86-64 processor has SSE.
        unsafe { _mm_sfence() };
    }
}

/// Plain copies in place of streaming stores, for processors other than x86-64, and for miri, which does not support streaming stores.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod non_temporal_instructions {
    /// # Safety
    /// The caller must fulfil the contract of [`super::NonTemporalStores::copy_cache_lines`].
    pub(super) unsafe fn copy_cache_lines(from: *const u8, to: *mut u8, count: usize) {
        // SAFETY: the caller guarantees that `from` and `to` are valid for `count` bytes and do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, to, count) };
    }

    pub(super) fn store_fence() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_any_range() {
        let source: Vec<u8> = (0..1000).map(|i| i as u8).collect();
        for (from, to, count) in [(0, 0, 0), (0, 1, 63), (3, 0, 64), (1, 2, 128), (5, 63, 700), (0, 64, 936), (7, 9, 1)] {
            let mut target = vec![0xEEu8; 1000];
            let stores = NonTemporalStores::default();
            // SAFETY: `from + count` and `to + count` are inside the two vectors.
            unsafe { stores.copy_bytes(source.as_ptr().add(from), target.as_mut_ptr().add(to), count) };
            drop(stores);
            assert_eq!(target[to..to + count], source[from..from + count]);
            assert!(target[..to].iter().chain(&target[to + count..]).all(|&b| b == 0xEE));
        }
    }
}
