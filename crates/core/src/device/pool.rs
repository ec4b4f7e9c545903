//! The allocator of host memory: blocks are kept when they are freed and handed out again, because the first touch of
//! fresh pages costs as much as the work on them.
//!
//! Up to [`SMALL`] bytes a block goes back to its thread's own list; larger ones to one pool of the process, by size class,
//! at least 2 MiB of them on huge pages. The limit (`CUPRUM_CPU_MEMORY_LIMIT`, [`Device::set_memory_limit`]) covers arrays,
//! reservations and free blocks; free blocks are given back before a request fails. All blocks are aligned to [`ALIGNMENT`] and initialised:
//! zeros from the system, later what their owners left, who write values without padding.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use smallvec::SmallVec;

use crate::buffer::{ALIGNMENT, block_size};
use crate::device::{Device, MemoryStats};
use crate::error::{Error, Result};
use crate::settings;

/// Largest block of the threads' own lists.
const SMALL: usize = 32 << 10;
/// Blocks of one class that a thread keeps.
const KEPT_BY_THREAD: usize = 8;
/// Smallest block that is mapped by itself, on huge pages.
const HUGE: usize = 2 << 20;

/// Bytes of live buffers, as asked for.
static USED: AtomicUsize = AtomicUsize::new(0);
/// The most that [`USED`] has been.
static PEAK: AtomicUsize = AtomicUsize::new(0);
static POOL: Mutex<Pool> = Mutex::new(Pool { classes: BTreeMap::new(), clock: 0, held: 0, cached: 0, hits: 0, misses: 0 });

/// Blocks that are free, by their size.
struct Pool {
    classes: BTreeMap<usize, Vec<Free>>,
    /// Counts frees, to find the block that has been free for longest.
    clock: u64,
    /// Bytes had from the system, in use and free.
    held: usize,
    /// Bytes of free blocks.
    cached: usize,
    hits: u64,
    misses: u64,
}

/// A free block.
struct Free {
    block: NonNull<u8>,
    since: u64,
}

// SAFETY: a free block is memory that nobody else knows.
unsafe impl Send for Free {}

/// Free blocks on their way back to the system.
type Evicted = SmallVec<[(Free, usize); 4]>;

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(|e| e.into_inner())
}

/// A block of at least `nbytes`, initialised: zeros if `zero`, else these or what its last owner left.
pub(crate) fn allocate(nbytes: usize, zero: bool) -> Result<NonNull<u8>> {
    let limit = settings::cpu_memory_limit();
    let used = USED.fetch_add(nbytes, Ordering::Relaxed);
    let now = used.saturating_add(nbytes);
    let within = nbytes <= isize::MAX as usize / 2 && limit.is_none_or(|l| now <= l);
    let block = if !within {
        None
    } else if nbytes <= SMALL {
        small(nbytes, zero)
    } else {
        large(block_size(nbytes, ALIGNMENT), zero, limit.map_or(usize::MAX, |l| l - used))
    };
    if PEAK.load(Ordering::Relaxed) < now && block.is_some() {
        PEAK.fetch_max(now, Ordering::Relaxed);
    }
    block.ok_or_else(|| {
        USED.fetch_sub(nbytes, Ordering::Relaxed);
        Error::OutOfMemory { op: "allocate", device: Device::CPU, requested: nbytes, used, limit }
    })
}

/// Checks `nbytes` of temporary memory from elsewhere against the limit.
pub(crate) fn check(op: &'static str, nbytes: usize) -> Result<()> {
    let (used, limit) = (used(), settings::cpu_memory_limit());
    match limit {
        Some(most) if used.saturating_add(nbytes) > most => {
            Err(Error::OutOfMemory { op, device: Device::CPU, requested: nbytes, used, limit })
        }
        _ => Ok(()),
    }
}

/// Host memory from elsewhere that counts towards the limit until it is dropped.
pub(crate) struct Reservation(usize);

impl Reservation {
    /// Counts `nbytes`. Errors: the limit.
    pub fn new(op: &'static str, nbytes: usize) -> Result<Reservation> {
        let limit = settings::cpu_memory_limit();
        let used = USED.fetch_add(nbytes, Ordering::Relaxed);
        let reservation = Reservation(nbytes);
        let now = used.saturating_add(nbytes);
        if limit.is_some_and(|most| now > most) {
            return Err(Error::OutOfMemory { op, device: Device::CPU, requested: nbytes, used, limit });
        }
        PEAK.fetch_max(now, Ordering::Relaxed);
        Ok(reservation)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        USED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Takes back a block.
///
/// # Safety
/// It came from [`allocate`] for `nbytes`, and nobody uses it any more.
pub(crate) unsafe fn free(block: NonNull<u8>, nbytes: usize) {
    USED.fetch_sub(nbytes, Ordering::Relaxed);
    if nbytes > SMALL {
        let evicted = pool().keep(block, block_size(nbytes, ALIGNMENT), cache_limit());
        release_all(evicted);
        return;
    }
    let (index, size) = small_class(nbytes);
    let kept = LISTS.try_with(|lists| {
        let list = &mut lists.borrow_mut().0[index];
        list.len() < KEPT_BY_THREAD && (list.push(block), true).1
    });
    if kept != Ok(true) {
        system::release(block, size);
    }
}

/// The most that is kept free: a quarter of the machine's memory, and no more than the limit leaves.
fn cache_limit() -> usize {
    static QUARTER: OnceLock<usize> = OnceLock::new();
    let quarter = *QUARTER.get_or_init(|| match settings::physical_memory() / 4 {
        0 => 1 << 30,
        quarter => quarter,
    });
    settings::cpu_memory_limit().map_or(quarter, |l| quarter.min(l.saturating_sub(USED.load(Ordering::Relaxed))))
}

// ---- small blocks ----

/// Classes of small blocks: four to each power of two, from a cache line up.
const CLASSES: usize = 40;

/// A thread's free small blocks, by class.
struct Lists([Vec<NonNull<u8>>; CLASSES]);

impl Lists {
    const EMPTY: Lists = Lists([const { Vec::new() }; CLASSES]);
}

impl Drop for Lists {
    fn drop(&mut self) {
        for (index, list) in self.0.iter_mut().enumerate() {
            list.drain(..).for_each(|block| system::release(block, small_size(index)));
        }
    }
}

thread_local! {
    static LISTS: RefCell<Lists> = const { RefCell::new(Lists::EMPTY) };
}

/// Class and size of a small block.
fn small_class(nbytes: usize) -> (usize, usize) {
    let lines = nbytes.div_ceil(ALIGNMENT).max(1);
    let index = match lines {
        1..=4 => lines - 1,
        _ => {
            let octave = (lines - 1).ilog2() as usize; // 2^octave < lines <= 2^(octave + 1)
            let step = 1 << (octave - 2);
            4 * (octave - 1) + (lines - (1 << octave)).div_ceil(step) - 1
        }
    };
    (index, small_size(index))
}

/// Size of a class of small blocks.
fn small_size(index: usize) -> usize {
    let lines = if index < 4 { index + 1 } else { (index % 4 + 5) << (index / 4 - 1) };
    lines * ALIGNMENT
}

fn small(nbytes: usize, zero: bool) -> Option<NonNull<u8>> {
    let (index, size) = small_class(nbytes);
    let kept = LISTS.try_with(|lists| lists.borrow_mut().0[index].pop()).ok().flatten();
    if let (Some(block), true) = (kept, zero) {
        // SAFETY: the block has `size` bytes, and at least `nbytes`.
        unsafe { block.write_bytes(0, nbytes) };
    }
    kept.or_else(|| system::obtain(size))
}

// ---- large blocks ----

/// A block of a class; `room` is how many bytes the limit leaves for it and what is kept.
fn large(size: usize, zero: bool, room: usize) -> Option<NonNull<u8>> {
    let evicted = {
        let mut pool = pool();
        if let Some(free) = pool.take(size) {
            drop(pool);
            if zero {
                // SAFETY: the block has `size` bytes and nobody else knows it.
                unsafe { free.block.write_bytes(0, size) };
            }
            return Some(free.block);
        }
        pool.misses += 1;
        pool.held += size;
        pool.evict(room.saturating_sub(size))
    };
    release_all(evicted);
    let block = system::obtain(size).or_else(|| {
        free_all();
        system::obtain(size)
    });
    if block.is_none() {
        pool().held -= size;
    }
    block
}

impl Pool {
    fn take(&mut self, size: usize) -> Option<Free> {
        let free = self.classes.get_mut(&size)?.pop()?;
        self.cached -= size;
        self.hits += 1;
        Some(free)
    }

    /// Keeps a block; returns those that then exceed `most` bytes.
    fn keep(&mut self, block: NonNull<u8>, size: usize, most: usize) -> Evicted {
        self.clock += 1;
        self.classes.entry(size).or_default().push(Free { block, since: self.clock });
        self.cached += size;
        self.evict(most)
    }

    /// Takes out the blocks that have been free for longest, until at most `most` bytes are kept.
    fn evict(&mut self, most: usize) -> Evicted {
        let mut evicted = Evicted::new();
        while self.cached > most {
            // Lists grow at their ends, so the first of each has been free for longest.
            let oldest = self.classes.iter().filter_map(|(&size, list)| list.first().map(|f| (f.since, size))).min();
            let Some((list, size)) = oldest.and_then(|(_, size)| Some((self.classes.get_mut(&size)?, size))) else { break };
            evicted.push((list.remove(0), size));
            self.cached -= size;
            self.held -= size;
        }
        evicted
    }
}

fn release_all(evicted: Evicted) {
    evicted.into_iter().for_each(|(free, size)| system::release(free.block, size));
}

/// Gives every free large block back to the system, and the free small ones of this thread.
pub(crate) fn free_all() {
    let evicted = pool().evict(0);
    release_all(evicted);
    let lists = LISTS.try_with(|lists| lists.replace(Lists::EMPTY));
    drop(lists);
}

/// Sets or removes the limit. Arrays alive stay, even if they exceed it; what is kept beyond it is given back.
pub(crate) fn set_limit(limit: Option<usize>) {
    settings::set_cpu_memory_limit(limit);
    let evicted = pool().evict(cache_limit());
    release_all(evicted);
}

/// The counts at this moment.
pub(crate) fn stats() -> MemoryStats {
    let pool = pool();
    MemoryStats {
        used: USED.load(Ordering::Relaxed),
        peak: PEAK.load(Ordering::Relaxed),
        reserved: pool.held,
        cached: pool.cached,
        limit: settings::cpu_memory_limit(),
        hits: pool.hits,
        misses: pool.misses,
    }
}

/// Bytes of live buffers.
pub(crate) fn used() -> usize {
    USED.load(Ordering::Relaxed)
}

/// Where blocks come from.
mod system {
    use super::*;

    /// A block of `size` zeros, a positive multiple of [`ALIGNMENT`].
    pub(super) fn obtain(size: usize) -> Option<NonNull<u8>> {
        if is_mapped(size) {
            return map(size);
        }
        let layout = Layout::from_size_align(size, ALIGNMENT).ok()?;
        // SAFETY: the layout has a positive size.
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }

    /// Gives back a block that `obtain` gave for `size`, and that nobody uses.
    pub(super) fn release(block: NonNull<u8>, size: usize) {
        if is_mapped(size) {
            return unmap(block, size);
        }
        if let Ok(layout) = Layout::from_size_align(size, ALIGNMENT) {
            // SAFETY: allocated in `obtain` with this layout.
            unsafe { dealloc(block.as_ptr(), layout) };
        }
    }

    /// Whether a block gets pages of its own.
    fn is_mapped(size: usize) -> bool {
        cfg!(all(target_os = "linux", not(miri))) && size >= HUGE
    }

    /// Pages of their own, aligned so that huge ones fit, which the kernel is asked for.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn map(size: usize) -> Option<NonNull<u8>> {
        let size = size.next_multiple_of(4096);
        let total = size.checked_add(HUGE)?;
        // SAFETY: a new private mapping, no address asked for.
        let start = unsafe {
            let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), total, access, kind, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let before = start.align_offset(HUGE);
        let block = start.wrapping_byte_add(before);
        // SAFETY: all three ranges lie in the mapping, at page borders; those unmapped are not part of the block. Advice
        // that the kernel does not take changes nothing.
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
    fn unmap(block: NonNull<u8>, size: usize) {
        // SAFETY: mapped in `map` with this size.
        unsafe { libc::munmap(block.as_ptr().cast(), size.next_multiple_of(4096)) };
    }

    #[cfg(not(all(target_os = "linux", not(miri))))]
    fn map(_size: usize) -> Option<NonNull<u8>> {
        None
    }

    #[cfg(not(all(target_os = "linux", not(miri))))]
    fn unmap(_block: NonNull<u8>, _size: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_is_asked_for() {
        for n in (0..=SMALL).step_by(7).chain([1, 64, 65, 255, 256, 257, 320, 321, SMALL]) {
            let (index, size) = small_class(n);
            assert!(index < CLASSES && size >= n && size <= (n + n / 4).next_multiple_of(ALIGNMENT).max(ALIGNMENT), "{n}: {index}, {size}");
            assert!(index == 0 || small_size(index - 1) < n, "{n} fits the class before {index}");
        }
    }
}
