//! Parallel radix partition: moves records into buckets, which are consecutive ranges of one output block.
//!
//! Each thread keeps one write-combining cache line per bucket and writes full lines with non-temporal stores. Full-line writes are three
//! times as fast as writes of single records, which read each output line first.
#![allow(unsafe_code)]

use cuprum_core::Result;
use cuprum_cpu_base::cache_hints::{CACHE_LINE_BYTES, CacheLine, NonTemporalStores};
use cuprum_cpu_base::threads;

use crate::sort_record::SortRecord;

/// Minimum number of records per task.
const MIN_RECORDS_PER_TASK: usize = if cfg!(miri) { 1 << 8 } else { 1 << 16 };
/// Approximate cost per record of one partition pass, in elementary operations.
const COST_PER_RECORD: usize = 4;

/// A radix digit of a record: a range of bits of the distance from the record `base` to that record (see [`SortRecord::shifted_distance`]).
#[derive(Clone, Copy)]
pub(super) struct RadixDigit<R> {
    /// A record with index 0 whose key is at most the key of every sorted record. Digits are taken from the distance between this record
    /// and a sorted record.
    pub base: R,
    /// Number of bits below the digit in the distance from `base` to a record. In records that hold key and index in one integer, these
    /// bits include the bits of the index.
    pub shift: u32,
    /// Number of bits of the digit.
    pub bits: u32,
}

impl<R: SortRecord> RadixDigit<R> {
    #[inline(always)]
    pub fn of(&self, record: R) -> usize {
        record.shifted_distance(self.base, self.shift) & (self.value_count() - 1)
    }

    /// Returns the number of possible values of the digit.
    #[inline(always)]
    pub fn value_count(&self) -> usize {
        1 << self.bits
    }
}

/// A source of sort records ([`SortRecord`]): values, and a closure that makes a record from a value and the value's index.
pub(super) struct RecordSource<'a, T, F> {
    pub values: &'a [T],
    pub record: F,
}

impl<T: Copy, F> RecordSource<'_, T, F> {
    /// Returns an iterator over the records made from the values `start..start + len`.
    #[inline(always)]
    pub fn records_in_range<R>(&self, start: usize, len: usize) -> impl Iterator<Item = R>
    where
        F: Fn(T, usize) -> R + Copy,
    {
        // The returned iterator owns a copy of the closure `record`. The compiler then knows that no store overlaps the closure's captures.
        let record = self.record;
        self.values[start..start + len].iter().enumerate().map(move |(i, &v)| record(v, start + i))
    }
}

/// Histogram of a digit: the number of sort records with each digit value, for each chunk of a [`RecordSource`].
pub(super) struct DigitCounts {
    chunk: usize,
    by_chunk: Vec<Vec<u32>>,
}

impl DigitCounts {
    /// Counts the digit values of all records of `source`, chunk by chunk on several threads.
    pub fn count_digits<T, R, F>(source: &RecordSource<T, F>, digit: RadixDigit<R>) -> Result<DigitCounts>
    where
        T: Copy + Sync,
        R: SortRecord,
        F: Fn(T, usize) -> R + Copy + Sync,
    {
        let len = source.values.len();
        let cost = len.saturating_mul(COST_PER_RECORD);
        let chunk = len.div_ceil(2 * threads::threads_for_cost(cost)).clamp(MIN_RECORDS_PER_TASK, u32::MAX as usize);
        let by_chunk = threads::map(
            (0..len).step_by(chunk),
            cost,
            || (),
            |_, start| {
                // Two counters per value shorten the dependency chain between increments of one counter.
                let mut counts = vec![[0u32; 2]; digit.value_count()];
                for (i, record) in source.records_in_range(start, chunk.min(len - start)).enumerate() {
                    if let Some(count) = counts.get_mut(digit.of(record)) {
                        count[i % 2] += 1;
                    }
                }
                counts.iter().map(|[a, b]| a + b).collect()
            },
        )?;
        Ok(DigitCounts { chunk, by_chunk })
    }

    /// Copies the records whose digit is below `wanted` to `out`, in the order of `source`. The length of `out` must be the number of these
    /// records.
    pub fn copy_records_with_lower_digit<T, R, F>(
        &self,
        source: &RecordSource<T, F>,
        digit: RadixDigit<R>,
        wanted: usize,
        mut out: &mut [R],
    ) where
        T: Copy + Sync,
        R: SortRecord,
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
            len.saturating_mul(COST_PER_RECORD),
            || (),
            |_, (start, part)| {
                let records = source.records_in_range(start, self.chunk.min(len - start)).filter(|&record| digit.of(record) < wanted);
                part.iter_mut().zip(records).for_each(|(index, record)| *index = record);
            },
        );
    }

    /// Returns the number of records with each value of the digit.
    pub fn digit_totals(&self) -> Vec<usize> {
        let mut totals = vec![0; self.by_chunk.first().map_or(0, Vec::len)];
        self.by_chunk.iter().for_each(|counts| totals.iter_mut().zip(counts).for_each(|(total, &count)| *total += count as usize));
        totals
    }
}

/// The buckets of a radix partition. Each bucket has the records with several neighbouring values of a digit.
pub(super) struct RadixBuckets {
    /// The bucket number of each digit value.
    bucket_of_value: Vec<u16>,
    /// Number of records in each bucket.
    pub totals: Vec<usize>,
}

impl RadixBuckets {
    /// Groups the values of a digit into buckets of at most `full` records. `totals[v]` is the number of records with digit value v. A
    /// value with more than `full` records gets its own bucket.
    pub fn from_digit_totals(totals: &[usize], full: usize) -> RadixBuckets {
        let mut buckets = RadixBuckets { bucket_of_value: Vec::with_capacity(totals.len()), totals: Vec::new() };
        for &total in totals {
            let numbered = buckets.totals.len() <= u16::MAX as usize;
            match buckets.totals.last_mut() {
                Some(bucket) if *bucket + total <= full || !numbered => *bucket += total,
                _ => buckets.totals.push(total),
            }
            buckets.bucket_of_value.push((buckets.totals.len() - 1) as u16);
        }
        buckets
    }
}

/// Moves the records of `source` to `out`, grouped by bucket. Records of a bucket keep their order. `counts` are the digit counts of the
/// same source, and `out` must be aligned to a cache line.
pub(super) fn partition_into_buckets<T, R, F>(
    source: &RecordSource<T, F>,
    digit: RadixDigit<R>,
    counts: &DigitCounts,
    buckets: &RadixBuckets,
    out: &mut [R],
) where
    T: Copy + Sync,
    R: SortRecord,
    F: Fn(T, usize) -> R + Copy + Sync,
{
    let len = source.values.len();
    let mut end = 0;
    let mut next = Vec::with_capacity(buckets.totals.len());
    for total in &buckets.totals {
        next.push(end);
        end += total;
    }
    let target = SharedRecordPointer(out.as_mut_ptr());
    let tasks: Vec<_> = (0..len)
        .step_by(counts.chunk)
        .zip(&counts.by_chunk)
        .map(|(start, counts)| {
            let first = next.clone();
            counts.iter().zip(&buckets.bucket_of_value).for_each(|(&count, &bucket)| next[bucket as usize] += count as usize);
            (start, BucketRanges { next: first.clone(), first, end: next.clone() })
        })
        .collect();
    assert!(end == len && len == out.len() && buckets.bucket_of_value.len() == digit.value_count(), "{len} records, {} indices", out.len());
    assert!(target.0.cast::<CacheLine>().is_aligned(), "the block does not begin with a cache line");
    threads::for_each(
        tasks.into_iter(),
        len.saturating_mul(COST_PER_RECORD),
        || vec![CacheLine::ZERO; buckets.totals.len()],
        |lines, (start, mut ranges)| {
            // Dropping `stores` at the end of the task makes the non-temporal stores visible to other threads.
            let stores = NonTemporalStores::default();
            for record in source.records_in_range(start, counts.chunk.min(len - start)) {
                // SAFETY: every value of the digit has a bucket, and every bucket has a cache line and an index range. The
                // ranges of all buckets and tasks are disjoint and inside `out`, as the counts add up to the length of `out`.
                unsafe {
                    let bucket = *buckets.bucket_of_value.get_unchecked(digit.of(record));
                    ranges.push_record(bucket as usize, record, lines, &target, &stores);
                }
            }
            for bucket in 0..buckets.totals.len() {
                // SAFETY: `bucket` is below the number of buckets, so it has a cache line and an index range. The ranges are disjoint
                // and inside `out`.
                unsafe { ranges.flush_bucket(bucket, lines, &target) };
            }
        },
    );
}

/// Pointer to the output records, shared by the threads.
struct SharedRecordPointer<R>(*mut R);

// SAFETY: each thread writes only the index ranges of its own task, and the ranges of different tasks are disjoint.
unsafe impl<R: Send> Sync for SharedRecordPointer<R> {}

/// A task's index range in each bucket of the output: first, next and end index.
struct BucketRanges {
    first: Vec<usize>,
    next: Vec<usize>,
    end: Vec<usize>,
}

impl BucketRanges {
    /// Adds `record` to the write-combining cache line of `bucket`, and writes the cache line to `target` once it is full.
    ///
    /// # Safety
    /// `bucket` is less than the number of ranges and of `lines`. The range of `target` from the bucket's first to its end index belongs
    /// to this task. `target` is aligned to a cache line.
    #[inline(always)]
    unsafe fn push_record<R: SortRecord>(
        &mut self,
        bucket: usize,
        record: R,
        lines: &mut [CacheLine],
        target: &SharedRecordPointer<R>,
        stores: &NonTemporalStores,
    ) {
        // SAFETY: the caller guarantees that `bucket` has an index range in `self` and a cache line in `lines`. A cache line holds
        // `R::RECORDS_PER_LINE` records.
        unsafe {
            let next = self.next.get_unchecked_mut(bucket);
            let line = lines.as_mut_ptr().add(bucket).cast::<R>();
            line.add(*next % R::RECORDS_PER_LINE).write(record);
            *next += 1;
            if next.is_multiple_of(R::RECORDS_PER_LINE) {
                let (first, end) = (*self.first.get_unchecked(bucket), *next);
                if end - R::RECORDS_PER_LINE >= first && end <= *self.end.get_unchecked(bucket) {
                    stores.copy_cache_lines(line.cast(), target.0.add(end - R::RECORDS_PER_LINE).cast(), CACHE_LINE_BYTES);
                } else {
                    self.write_partial_line(bucket, lines, target);
                }
            }
        }
    }

    /// Writes the partly filled cache line of `bucket` to `target`.
    ///
    /// # Safety
    /// The caller must fulfil the contract of [`BucketRanges::push_record`].
    unsafe fn flush_bucket<R: SortRecord>(&self, bucket: usize, lines: &[CacheLine], target: &SharedRecordPointer<R>) {
        if !self.next[bucket].is_multiple_of(R::RECORDS_PER_LINE) {
            // SAFETY: `write_partial_line` has the safety contract of [`BucketRanges::push_record`], which the caller of `flush_bucket`
            // guarantees.
            unsafe { self.write_partial_line(bucket, lines, target) };
        }
    }

    /// Writes the task's records of the current line of `bucket` one by one. The bounds keep writes inside the task's range even if the
    /// source yields other records than were counted.
    ///
    /// # Safety
    /// The caller must fulfil the contract of [`BucketRanges::push_record`].
    #[inline(never)]
    unsafe fn write_partial_line<R: SortRecord>(&self, bucket: usize, lines: &[CacheLine], target: &SharedRecordPointer<R>) {
        let next = self.next[bucket];
        let line = lines[bucket..].as_ptr().cast::<R>();
        for index in ((next - 1) / R::RECORDS_PER_LINE * R::RECORDS_PER_LINE).max(self.first[bucket])..next.min(self.end[bucket]) {
            // SAFETY: `index` is in the task's range of `target`, and `index % R::RECORDS_PER_LINE` is less than the number of records in a
            // line.
            unsafe { target.0.add(index).write(line.add(index % R::RECORDS_PER_LINE).read()) };
        }
    }
}
