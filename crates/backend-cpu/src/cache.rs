//! Traffic between memory and the caches: lines asked for before they are read, results written past the caches.
#![allow(unsafe_code)]

use std::cell::Cell;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// A cache line of memory, as the unit of scratch and of what is gathered before it is written.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line(#[allow(dead_code)] [u8; LINE]); // read and written through pointers

impl Line {
    /// All bits 0.
    pub const ZERO: Line = Line([0; LINE]);
}

/// Bytes of a result from which it is written past the caches: it would not stay there, and would drive out its inputs.
pub(crate) const STREAMED: usize = if cfg!(miri) { 8 << 10 } else { 16 << 20 };

/// Asks for the cache line of an address, which may be anything.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    // SAFETY: a prefetch touches nothing, whatever the address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Asks for what lies some lines behind a part of a run, where several runs are read side by side: the processor finds these
/// by itself, but late. Only for one that [`gains_by_asking`], which a loop finds out before it begins: a call within it, even one
/// that is never made, puts its accumulators on the stack.
#[inline(always)]
pub(crate) fn prefetch_behind<T>(part: &[T], lines: usize) {
    let start = part.as_ptr().cast::<u8>().wrapping_add(lines * LINE);
    (0..size_of_val(part)).step_by(LINE).for_each(|at| prefetch(start.wrapping_add(at)));
}

/// Where a loop over contiguous memory is, so that it can ask for what it reads later.
///
/// The lines of the next block of pages are asked for across its pages: one thread of an Intel Xeon summed 256 MiB in 31 ms so, in 48 with
/// lines asked for in order. Presumably because the processor's own prefetching ends with a page, and then goes on in all of them. One of
/// an AMD EPYC (Zen 4) read 64 MiB in 2.1 ms when left alone and in 3.5 so: there nothing is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Ahead {
    at: *const u8,
    /// Bytes from what is read to what is asked for, in order; 0 if the next block of pages is.
    distance: usize,
}

/// Whether the processor reads faster if it is asked for memory, and in several places at once.
pub(crate) fn gains_by_asking() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        static IS_INTEL: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
            let std::arch::x86_64::CpuidResult { ebx, ecx, edx, .. } = std::arch::x86_64::__cpuid(0);
            [ebx, edx, ecx].map(u32::to_le_bytes).concat() == b"GenuineIntel"
        });
        *IS_INTEL
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}

impl Ahead {
    const PAGE: usize = 4096;
    /// Pages that are begun together: two blocks fit the first-level cache.
    const PAGES: usize = 4;
    const BLOCK: usize = Ahead::PAGES * Ahead::PAGE;
    /// Lines that are asked for at a time: neighbours that go to different pages.
    const LINES: usize = 2;

    /// At an address, where the processor [`gains_by_asking`].
    pub fn at(address: *const u8) -> Option<Ahead> {
        gains_by_asking().then_some(Ahead { at: address, distance: 0 })
    }

    /// At an address from which `bytes` were read a moment ago, by a loop that this one follows; as many are read next. The
    /// processor does not fetch them by itself meanwhile.
    pub fn behind(address: *const u8, bytes: usize) -> Ahead {
        Ahead { at: address, distance: if gains_by_asking() { 0 } else { bytes } }
    }

    /// `count` elements further on.
    #[inline(always)]
    pub fn after<T>(self, count: usize) -> Ahead {
        Ahead { at: self.at.wrapping_add(count * size_of::<T>()), ..self }
    }

    /// Asks for as many lines of the next block as the next `count` elements take in this one.
    #[inline(always)]
    pub fn ask<T>(self, count: usize) {
        if self.distance > 0 {
            let start = self.at.wrapping_add(self.distance);
            return (0..count * size_of::<T>()).step_by(LINE).for_each(|at| prefetch(start.wrapping_add(at)));
        }
        for at in (0..count * size_of::<T>()).step_by(Ahead::LINES * LINE) {
            let place = (self.at.addr() + at) % Ahead::BLOCK;
            let (turn, page) = (place / (Ahead::PAGES * LINE), place / (Ahead::LINES * LINE) % (Ahead::PAGES / Ahead::LINES));
            let to = Ahead::BLOCK + page * Ahead::LINES * Ahead::PAGE + turn * LINE;
            let line = self.at.wrapping_add(at + to - place);
            (0..Ahead::LINES).for_each(|i| prefetch(line.wrapping_add(i * Ahead::PAGE)));
        }
    }
}

/// Stores that pass by the caches: a line that is written whole need not be read first, which is a third of the traffic of
/// `a + b`. They become visible to other threads when this is dropped, at the end of a thread's share of the work.
#[derive(Default)]
pub(crate) struct NonTemporal {
    used: Cell<bool>,
}

impl NonTemporal {
    /// Copies bytes.
    ///
    /// # Safety
    /// `count` initialised bytes at `from`, room for them at `to`, no overlap; nobody reads them before this value is dropped.
    pub unsafe fn copy(&self, from: *const u8, to: *mut u8, count: usize) {
        let head = to.align_offset(LINE).min(count);
        let body = (count - head) / LINE * LINE;
        // SAFETY: three parts of what the caller answers for; lines of the middle one are aligned.
        unsafe {
            std::ptr::copy_nonoverlapping(from, to, head);
            self.lines(from.add(head), to.add(head), body);
            std::ptr::copy_nonoverlapping(from.add(head + body), to.add(head + body), count - head - body);
        }
    }

    /// Whole lines.
    ///
    /// # Safety
    /// As [`NonTemporal::copy`]; `to` is aligned to a line, `count` a multiple of one.
    #[inline(always)]
    pub unsafe fn lines(&self, from: *const u8, to: *mut u8, count: usize) {
        self.used.set(true);
        // SAFETY: as the caller says.
        unsafe { stores::lines(from, to, count) };
    }
}

impl Drop for NonTemporal {
    fn drop(&mut self) {
        if self.used.get() {
            stores::fence();
        }
    }
}

/// The instructions of [`NonTemporal`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod stores {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    /// # Safety
    /// As [`super::NonTemporal::lines`].
    #[inline(always)]
    pub(super) unsafe fn lines(from: *const u8, to: *mut u8, count: usize) {
        for at in (0..count).step_by(size_of::<__m128i>()) {
            // SAFETY: inside what the caller answers for; aligned to 16 bytes, as `to` is.
            unsafe { _mm_stream_si128(to.add(at).cast(), _mm_loadu_si128(from.add(at).cast())) };
        }
    }

    pub(super) fn fence() {
        // SAFETY: every x86-64 processor has SSE.
        unsafe { _mm_sfence() };
    }
}

/// Elsewhere, and for miri, which knows no such instructions: common ones.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod stores {
    /// # Safety
    /// As [`super::NonTemporal::lines`].
    pub(super) unsafe fn lines(from: *const u8, to: *mut u8, count: usize) {
        // SAFETY: as the caller says.
        unsafe { std::ptr::copy_nonoverlapping(from, to, count) };
    }

    pub(super) fn fence() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_any_range() {
        let source: Vec<u8> = (0..1000).map(|i| i as u8).collect();
        for (from, to, count) in [(0, 0, 0), (0, 1, 63), (3, 0, 64), (1, 2, 128), (5, 63, 700), (0, 64, 936), (7, 9, 1)] {
            let mut target = vec![0xEEu8; 1000];
            let stores = NonTemporal::default();
            // SAFETY: both ranges lie inside their vectors.
            unsafe { stores.copy(source.as_ptr().add(from), target.as_mut_ptr().add(to), count) };
            drop(stores);
            assert_eq!(target[to..to + count], source[from..from + count]);
            assert!(target[..to].iter().chain(&target[to + count..]).all(|&b| b == 0xEE));
        }
    }
}
