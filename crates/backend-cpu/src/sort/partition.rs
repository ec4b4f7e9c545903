//! Moving records to their buckets, many threads into one block of memory.
//!
//! Each bucket has a cache line beside the memory; full lines are written past the caches. That makes the move three times as
//! fast as writing each record to its place, which fetches every line first.
#![allow(unsafe_code)]

use cuprum_core::Result;

use super::record::Record;
use crate::cache::{LINE, Line, NonTemporal};
use crate::threads;

/// Fewest records of a task.
const CHUNK: usize = if cfg!(miri) { 1 << 8 } else { 1 << 16 };
/// Cheap operations that a record costs in each step, about.
const COST: usize = 4;

/// Some bits of the keys.
#[derive(Clone, Copy)]
pub(super) struct Digit<R> {
    /// A record without place, with a key that is not above any other.
    pub base: R,
    /// Bits below the digit.
    pub shift: u32,
    /// Bits of the digit; there are none above it.
    pub bits: u32,
}

impl<R: Record> Digit<R> {
    #[inline(always)]
    pub fn of(&self, record: R) -> usize {
        record.digit(self.base, self.shift) & (self.values() - 1)
    }

    /// How many values it has.
    #[inline(always)]
    pub fn values(&self) -> usize {
        1 << self.bits
    }
}

/// Values, and how they become records: from a value and its place.
pub(super) struct Source<'a, T, F> {
    pub values: &'a [T],
    pub record: F,
}

impl<T: Copy, F> Source<'_, T, F> {
    /// Records of `len` values from `start` on.
    #[inline(always)]
    pub fn records<R>(&self, start: usize, len: usize) -> impl Iterator<Item = R>
    where
        F: Fn(T, usize) -> R + Copy,
    {
        // What `record` holds is the iterator's own: the compiler knows that nothing written meanwhile overlaps it.
        let record = self.record;
        self.values[start..start + len].iter().enumerate().map(move |(i, &v)| record(v, start + i))
    }
}

/// How many records of each chunk of a source have each value of a digit.
pub(super) struct Counts {
    chunk: usize,
    by_chunk: Vec<Vec<u32>>,
}

impl Counts {
    /// Counts all records.
    pub fn new<T, R, F>(source: &Source<T, F>, digit: Digit<R>) -> Result<Counts>
    where
        T: Copy + Sync,
        R: Record,
        F: Fn(T, usize) -> R + Copy + Sync,
    {
        let len = source.values.len();
        let cost = len.saturating_mul(COST);
        let chunk = len.div_ceil(2 * threads::worth(cost)).clamp(CHUNK, u32::MAX as usize);
        let by_chunk = threads::map(
            (0..len).step_by(chunk),
            cost,
            || (),
            |_, start| {
                // Two counters, as an increment waits for the one before of the same counter.
                let mut counts = vec![[0u32; 2]; digit.values()];
                for (i, record) in source.records(start, chunk.min(len - start)).enumerate() {
                    if let Some(count) = counts.get_mut(digit.of(record)) {
                        count[i % 2] += 1;
                    }
                }
                counts.iter().map(|[a, b]| a + b).collect()
            },
        )?;
        Ok(Counts { chunk, by_chunk })
    }

    /// Copies the records with the first `wanted` values, in the order they had, to `out`, which is as long as they are many.
    pub fn choose<T, R, F>(&self, source: &Source<T, F>, digit: Digit<R>, wanted: usize, mut out: &mut [R])
    where
        T: Copy + Sync,
        R: Record,
        F: Fn(T, usize) -> R + Copy + Sync,
    {
        let len = source.values.len();
        let mut tasks = Vec::with_capacity(self.by_chunk.len());
        for (start, counts) in (0..len).step_by(self.chunk).zip(&self.by_chunk) {
            let (part, rest) = std::mem::take(&mut out).split_at_mut(counts[..wanted].iter().map(|&n| n as usize).sum());
            tasks.push((start, part));
            out = rest;
        }
        threads::for_each(
            tasks.into_iter(),
            len.saturating_mul(COST),
            || (),
            |_, (start, part)| {
                let records = source.records(start, self.chunk.min(len - start)).filter(|&record| digit.of(record) < wanted);
                part.iter_mut().zip(records).for_each(|(place, record)| *place = record);
            },
        );
    }

    /// Records of each value.
    pub fn totals(&self) -> Vec<usize> {
        let mut totals = vec![0; self.by_chunk.first().map_or(0, Vec::len)];
        self.by_chunk.iter().for_each(|counts| totals.iter_mut().zip(counts).for_each(|(total, &count)| *total += count as usize));
        totals
    }
}

/// Buckets, each for some neighbouring values of a digit.
pub(super) struct Buckets {
    /// The bucket of each value.
    of_value: Vec<u16>,
    /// Records of each bucket.
    pub totals: Vec<usize>,
}

impl Buckets {
    /// Buckets of at most `full` records, but for values that have more.
    pub fn new(totals: &[usize], full: usize) -> Buckets {
        let mut buckets = Buckets { of_value: Vec::with_capacity(totals.len()), totals: Vec::new() };
        for &total in totals {
            let numbered = buckets.totals.len() <= u16::MAX as usize;
            match buckets.totals.last_mut() {
                Some(bucket) if *bucket + total <= full || !numbered => *bucket += total,
                _ => buckets.totals.push(total),
            }
            buckets.of_value.push((buckets.totals.len() - 1) as u16);
        }
        buckets
    }
}

/// Moves the counted records of a source to `out`, bucket by bucket, in the order they had. `out` is aligned to a cache line.
pub(super) fn partition<T, R, F>(source: &Source<T, F>, digit: Digit<R>, counts: &Counts, buckets: &Buckets, out: &mut [R])
where
    T: Copy + Sync,
    R: Record,
    F: Fn(T, usize) -> R + Copy + Sync,
{
    let len = source.values.len();
    let mut end = 0;
    let mut next = Vec::with_capacity(buckets.totals.len());
    for total in &buckets.totals {
        next.push(end);
        end += total;
    }
    let target = Target(out.as_mut_ptr());
    let tasks: Vec<_> = (0..len)
        .step_by(counts.chunk)
        .zip(&counts.by_chunk)
        .map(|(start, counts)| {
            let first = next.clone();
            counts.iter().zip(&buckets.of_value).for_each(|(&count, &bucket)| next[bucket as usize] += count as usize);
            (start, Places { next: first.clone(), first, end: next.clone() })
        })
        .collect();
    assert!(end == len && len == out.len() && buckets.of_value.len() == digit.values(), "{len} records, {} places", out.len());
    assert!(target.0.cast::<Line>().is_aligned(), "the block does not begin with a cache line");
    threads::for_each(
        tasks.into_iter(),
        len.saturating_mul(COST),
        || vec![Line::ZERO; buckets.totals.len()],
        |lines, (start, mut places)| {
            // Stores of a task are visible to other threads when it ends.
            let stores = NonTemporal::default();
            for record in source.records(start, counts.chunk.min(len - start)) {
                // SAFETY: there is a bucket for each value of the digit, and a line and places for each bucket. The places from
                // first to end of every bucket and task lie in `out`, as the counts add up to its length, and do not overlap.
                unsafe {
                    let bucket = *buckets.of_value.get_unchecked(digit.of(record));
                    places.put(bucket as usize, record, lines, &target, &stores);
                }
            }
            for bucket in 0..buckets.totals.len() {
                // SAFETY: as above.
                unsafe { places.flush(bucket, lines, &target) };
            }
        },
    );
}

/// The memory that is filled.
struct Target<R>(*mut R);

// SAFETY: threads write to places of their own.
unsafe impl<R: Send> Sync for Target<R> {}

/// Where a task writes in each bucket: its first place, the next, and the end.
struct Places {
    first: Vec<usize>,
    next: Vec<usize>,
    end: Vec<usize>,
}

impl Places {
    /// Puts a record into its bucket's line, and writes the line when it is full.
    ///
    /// # Safety
    /// There are places and lines for more buckets than `bucket`; from its first place to its end, `target` is this task's. It is
    /// aligned to a line.
    #[inline(always)]
    unsafe fn put<R: Record>(&mut self, bucket: usize, record: R, lines: &mut [Line], target: &Target<R>, stores: &NonTemporal) {
        // SAFETY: the caller says that the bucket is there; a line holds LINE records.
        unsafe {
            let next = self.next.get_unchecked_mut(bucket);
            let line = lines.as_mut_ptr().add(bucket).cast::<R>();
            line.add(*next % R::LINE).write(record);
            *next += 1;
            if next.is_multiple_of(R::LINE) {
                let (first, end) = (*self.first.get_unchecked(bucket), *next);
                if end - R::LINE >= first && end <= *self.end.get_unchecked(bucket) {
                    stores.lines(line.cast(), target.0.add(end - R::LINE).cast(), LINE);
                } else {
                    self.write(bucket, lines, target);
                }
            }
        }
    }

    /// Writes what is left of a line.
    ///
    /// # Safety
    /// As [`Places::put`].
    unsafe fn flush<R: Record>(&self, bucket: usize, lines: &[Line], target: &Target<R>) {
        if !self.next[bucket].is_multiple_of(R::LINE) {
            // SAFETY: as the caller says.
            unsafe { self.write(bucket, lines, target) };
        }
    }

    /// Writes the task's part of the line that has just been written to, record by record. A source that now gives other
    /// records than were counted leaves records unwritten.
    ///
    /// # Safety
    /// As [`Places::put`].
    #[inline(never)]
    unsafe fn write<R: Record>(&self, bucket: usize, lines: &[Line], target: &Target<R>) {
        let next = self.next[bucket];
        let line = lines[bucket..].as_ptr().cast::<R>();
        for place in ((next - 1) / R::LINE * R::LINE).max(self.first[bucket])..next.min(self.end[bucket]) {
            // SAFETY: the place is the task's; its remainder is inside the line.
            unsafe { target.0.add(place).write(line.add(place % R::LINE).read()) };
        }
    }
}
