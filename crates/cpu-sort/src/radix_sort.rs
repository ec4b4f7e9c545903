//! Radix sort of records. All threads split long rows into buckets by the most significant key bits. One thread sorts each bucket that fits
//! a cache: in SIMD registers where possible, otherwise by radix passes from the least significant digit on.
//!
//! The radix passes are stable, and all other sorts compare key and index. An insertion sort follows passes over records that were
//! permuted. Therefore the result does not depend on the number of threads.

use std::mem::swap;

use cuprum_core::Result;
use cuprum_cpu_base::simd::{SimdLoop, dispatch_simd, simd_level};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::HostVec;

use crate::radix_partition::{DigitCounts, RadixBuckets, RadixDigit, RecordSource, partition_into_buckets};
use crate::register_sort::{self, SelectNthLoop, SortRowsLoop};
use crate::sort_record::SortRecord;

/// Maximum number of records in one task. [`sort_records`] sorts up to this many records on one thread, without splitting them into
/// buckets.
pub(super) const MAX_SERIAL_RECORDS: usize = if cfg!(miri) { 1 << 8 } else { 1 << 15 };
/// Minimum number of records per bucket. Smaller buckets would leave many cache lines half full.
const MIN_RECORDS_PER_BUCKET: usize = if cfg!(miri) { 1 << 5 } else { 1 << 11 };
/// Base-2 logarithm of the desired number of buckets. Grouping of digit values may double that number. The write-combining buffers, one
/// cache line per bucket, fit the second-level cache.
const LOG2_BUCKET_COUNT: u32 = 10;
/// Number of bits by which a digit is longer than a bucket number. A bucket then takes several consecutive digit values, so that buckets
/// have similar sizes even if the keys are not uniformly distributed.
const EXTRA_DIGIT_BITS: u32 = 6;
/// Maximum size in bytes of a bucket that one thread sorts. Larger buckets exceed the second-level cache.
const MAX_SERIAL_BUCKET_BYTES: usize = 2 << 20;
/// Minimum number of records for which radix passes are faster than a comparison sort.
const MIN_RADIX_LEN: usize = 192;
/// Maximum number of bits of a digit in a radix pass of one thread. The counters and offsets of a digit fit the first-level cache.
const MAX_DIGIT_BITS: u32 = 11;
/// Number of key bits, in addition to log2 of the number of records, that the radix passes sort. The insertion sort that follows then moves
/// few records.
const EXTRA_SORTED_BITS: u32 = 7;
/// Approximate cost of sorting one record, in elementary operations.
const COST_PER_RECORD: usize = 16;

/// Destination of sorted records, such as outputs to which the records are decoded.
pub(super) trait SortSink<R>: Send + Sized {
    /// Returns the number of records that the destination takes: the first ones in sorted order. The order of the other records does not
    /// matter.
    fn output_len(&self) -> usize;
    /// For a partition (`numpy.partition`), returns the one index at which the output must equal the sorted output. Returns `None` for a
    /// full sort.
    fn selected_index(&self) -> Option<usize> {
        None
    }
    /// Splits the destination into the first `mid` records and the rest.
    fn split_at(self, mid: usize) -> (Self, Self);
    /// Writes the first [`output_len`](SortSink::output_len) records of `records` to the destination.
    fn write_records(self, records: &[R]);
}

/// Sorts the records of `source` by their keys and writes them to `sink`. `ends` are a record with the least key and a record with the
/// greatest key.
///
/// `index_bits` is the number of low bits of each record that hold the element's index; the bits above them are the key.
pub(super) fn sort_record_source<T, R, F, S>(source: &RecordSource<T, F>, index_bits: u32, ends: (R, R), sink: S) -> Result<()>
where
    T: Copy + Sync,
    R: SortRecord,
    F: Fn(T, usize) -> R + Copy + Sync,
    S: SortSink<R>,
{
    let len = source.values.len();
    let base = ends.0.clear_index_bits(index_bits);
    let bits = ends.1.key_distance_bits(base, index_bits).max(1);
    // If the keys have enough bits, the digit has more bits than bucket numbers need. Each bucket then takes several consecutive digit
    // values, so that buckets have similar sizes.
    let full = (len >> LOG2_BUCKET_COUNT).max(MIN_RECORDS_PER_BUCKET);
    let is_short = bits <= LOG2_BUCKET_COUNT;
    let width = if is_short { bits } else { bits.min((len / full).max(1).ilog2() + EXTRA_DIGIT_BITS) };
    let digit = RadixDigit { base, shift: index_bits + bits - width, bits: width };
    let counts = DigitCounts::count_digits(source, digit)?;
    let totals = counts.digit_totals();
    let wanted = prefix_len_with_sum(&totals, sink.output_len());
    let kept: usize = totals[..wanted].iter().sum();
    if kept <= len / 2 {
        let mut scratch = HostVec::allocate(kept)?;
        counts.copy_records_with_lower_digit(source, digit, wanted, scratch.as_mut_slice());
        return sort_records(scratch.as_mut_slice(), index_bits, sink);
    }
    let groups = RadixBuckets::from_digit_totals(&totals, if is_short { 0 } else { full });
    let mut scratch = HostVec::allocate(len)?;
    partition_into_buckets(source, digit, &counts, &groups, scratch.as_mut_slice());
    if is_short {
        write_sorted_records(scratch.as_mut_slice(), sink);
        return Ok(());
    }
    if let Some(nth) = sink.selected_index() {
        select_nth_in_buckets(scratch.as_mut_slice(), &groups.totals, nth);
        write_sorted_records(scratch.as_mut_slice(), sink);
        return Ok(());
    }
    sort_buckets(scratch.as_mut_slice(), &groups.totals, index_bits, sink)
}

/// Returns how many elements of `totals`, from the first one on, are needed for a sum of at least `len`.
fn prefix_len_with_sum(totals: &[usize], len: usize) -> usize {
    let mut held = 0;
    let short = |total: &&usize| {
        let before = held;
        held += **total;
        before < len
    };
    totals.iter().take_while(short).count()
}

/// Sorts a subset of the records, such as a bucket or a run of equal keys, and writes the result to `sink`. `index_bits` is the number of
/// low bits of a record that hold the element's index.
pub(super) fn sort_records<R: SortRecord, S: SortSink<R>>(records: &mut [R], index_bits: u32, sink: S) -> Result<()> {
    if records.len() <= MAX_SERIAL_RECORDS {
        let mut blocks = BlockSorter::with_capacity(records.len());
        sink.write_records(blocks.sort(records, index_bits, true));
        return Ok(());
    }
    let ends = threads::map(records.chunks(MAX_SERIAL_RECORDS), records.len(), || (), |_, part| dispatch_simd(RecordExtremesLoop(part)))?;
    let ends = ends.into_iter().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default();
    if ends.1.key_distance_bits(ends.0.clear_index_bits(index_bits), index_bits) == 0 {
        write_sorted_records(records, sink);
        return Ok(());
    }
    sort_record_source(&RecordSource { values: records, record: record_unchanged }, index_bits, ends, sink)
}

/// Returns `record` unchanged. A closure in [`sort_records`] would have a different type for each sink, and the radix passes would be
/// compiled for each of these types.
#[inline(always)]
fn record_unchanged<R>(record: R, _index: usize) -> R {
    record
}

/// Writes `records`, which are already sorted, to `sink`.
fn write_sorted_records<R: SortRecord, S: SortSink<R>>(records: &[R], mut sink: S) {
    let records = &records[..sink.output_len()];
    let mut tasks = Vec::with_capacity(records.len().div_ceil(MAX_SERIAL_RECORDS));
    for part in records.chunks(MAX_SERIAL_RECORDS) {
        let (here, rest) = sink.split_at(part.len());
        tasks.push((part, here));
        sink = rest;
    }
    threads::for_each(tasks.into_iter(), records.len(), || (), |_, (part, sink)| sink.write_records(part));
}

/// Moves the record with index `nth` in sorted order to that index. Only the bucket that contains the index is reordered. `totals` are the
/// bucket sizes.
fn select_nth_in_buckets<R: SortRecord>(records: &mut [R], totals: &[usize], nth: usize) {
    let mut begin = 0;
    for &total in totals {
        if nth < begin + total {
            let records = &mut records[begin..begin + total];
            return BlockSorter::with_capacity(total).select_nth(records, nth - begin);
        }
        begin += total;
    }
}

/// Sorts each bucket of `records`: large buckets one by one on all threads, then the other buckets, one per task. `totals` are the bucket
/// sizes. `index_bits` is the number of low bits of a record that hold the element's index.
fn sort_buckets<R: SortRecord, S: SortSink<R>>(mut records: &mut [R], totals: &[usize], index_bits: u32, mut sink: S) -> Result<()> {
    let mut tasks = Vec::with_capacity(totals.len());
    let (mut longest, mut all) = (0, 0);
    for &total in totals.iter().take(prefix_len_with_sum(totals, sink.output_len())) {
        let (part, others) = std::mem::take(&mut records).split_at_mut(total);
        let (here, rest) = {
            let mid = total.min(sink.output_len());
            sink.split_at(mid)
        };
        (records, sink) = (others, rest);
        if size_of_val(part) > MAX_SERIAL_BUCKET_BYTES {
            sort_records(part, index_bits, here)?;
        } else if total > 0 {
            (longest, all) = (longest.max(total), all + total);
            tasks.push((part, here));
        }
    }
    let cost = all.saturating_mul(COST_PER_RECORD);
    threads::for_each(
        tasks.into_iter(),
        cost,
        || BlockSorter::with_capacity(longest),
        |blocks, (part, sink)| sink.write_records(blocks.sort(part, index_bits, true)),
    );
    Ok(())
}

/// Runs [`SortRecord::min_and_max_record`] at the processor's SIMD level.
struct RecordExtremesLoop<'a, R>(&'a [R]);

impl<R: SortRecord> SimdLoop for RecordExtremesLoop<'_, R> {
    type Output = (R, R);
    #[inline(always)]
    fn run(self) -> (R, R) {
        R::min_and_max_record(self.0)
    }
}

/// One thread's buffers for sorting blocks of records.
pub(super) struct BlockSorter<R> {
    /// Scratch records for the longest block; empty if the allocation failed.
    scratch: HostVec<R>,
    /// Per digit value, the number of records during the counting loop. During the scatter loop, the destination index of the next record
    /// with that value.
    buckets: Option<Box<[u32; 1 << MAX_DIGIT_BITS]>>,
}

impl<R: SortRecord> BlockSorter<R> {
    /// Allocates buffers for blocks of up to `longest` records.
    pub fn with_capacity(longest: usize) -> BlockSorter<R> {
        let in_registers = register_sort::max_len_without_scratch::<R>(longest).unwrap_or(MIN_RADIX_LEN - 1);
        let scratch = if longest <= in_registers { HostVec::default() } else { HostVec::allocate(longest).unwrap_or_default() };
        BlockSorter { scratch, buckets: None }
    }

    /// Sorts each row of `len` records of `block` in SIMD registers. Returns `false` without sorting if no registers hold the record type,
    /// or if other sorts are faster for rows of this length.
    pub fn try_sort_rows_in_registers(&mut self, block: &mut [R], len: usize) -> bool {
        register_sort::max_len_without_scratch::<R>(len).is_some()
            && R::try_run_at_level(simd_level(), SortRowsLoop { keys: block, len, scratch: self.scratch.as_mut_slice() }).is_some()
    }

    /// Moves the record with index `nth` in sorted order to that index. No greater record is before it and no lesser record after it.
    pub fn select_nth(&mut self, block: &mut [R], nth: usize) {
        let is_done = register_sort::max_len_without_scratch::<R>(block.len()).is_some()
            && R::try_run_at_level(simd_level(), SelectNthLoop { keys: &mut *block, nth, scratch: self.scratch.as_mut_slice() }).is_some();
        if !is_done {
            block.select_nth_unstable(nth);
        }
    }

    /// Sorts `block` and returns the sorted records, which are in `block` or in this value's scratch. `index_bits` is the number of low
    /// bits of a record that hold the element's index. `has_index_order` is whether records with equal keys are in the order of their
    /// indices, as before [`select_nth`](BlockSorter::select_nth).
    pub fn sort<'r>(&'r mut self, block: &'r mut [R], index_bits: u32, has_index_order: bool) -> &'r [R] {
        let len = block.len();
        if self.try_sort_rows_in_registers(block, len) {
            return block;
        }
        if len < MIN_RADIX_LEN || len > self.scratch.len() {
            block.sort_unstable();
            return block;
        }
        let buckets = self.buckets.get_or_insert_with(|| Box::new([0; 1 << MAX_DIGIT_BITS]));
        let (least, greatest) = dispatch_simd(RecordExtremesLoop(block));
        let base = least.clear_index_bits(index_bits);
        let bits = greatest.key_distance_bits(base, index_bits);
        let sorted = bits.min(len.ilog2() + EXTRA_SORTED_BITS);
        let passes = sorted.div_ceil(MAX_DIGIT_BITS.min(len.ilog2()));
        let (mut from, mut to) = (block, &mut self.scratch.as_mut_slice()[..len]);
        for pass in 0..passes {
            // The passes take digits of about equal width, starting with the lowest bits of the key.
            let (start, end) = (sorted * pass / passes, sorted * (pass + 1) / passes);
            let digit = RadixDigit { base, shift: index_bits + bits - sorted + start, bits: end - start };
            if try_scatter_by_digit(from, to, digit, buckets) {
                swap(&mut from, &mut to);
            }
        }
        if sorted < bits || !has_index_order {
            insertion_sort(from);
        }
        from
    }
}

/// Moves the records of `from` to `to`, sorted stably by `digit`. Returns `false` without moving records if all have the same digit value.
fn try_scatter_by_digit<R: SortRecord>(from: &[R], to: &mut [R], digit: RadixDigit<R>, buckets: &mut [u32; 1 << MAX_DIGIT_BITS]) -> bool {
    let in_use = &mut buckets[..digit.value_count()];
    in_use.fill(0);
    for &record in from {
        buckets[digit.of(record) % (1 << MAX_DIGIT_BITS)] += 1;
    }
    let mut index = 0;
    for bucket in &mut buckets[..digit.value_count()] {
        let count = std::mem::replace(bucket, index);
        if count as usize == from.len() {
            return false;
        }
        index += count;
    }
    for &record in from {
        let index = &mut buckets[digit.of(record) % (1 << MAX_DIGIT_BITS)];
        to[*index as usize] = record;
        *index += 1;
    }
    true
}

/// Insertion sort of almost sorted records. Falls back to the standard library's sort if the insertion sort takes too many moves.
fn insertion_sort<R: SortRecord>(records: &mut [R]) {
    let mut moves = 4 * records.len();
    for i in 1..records.len() {
        let record = records[i];
        let mut index = i;
        while index > 0 && record < records[index - 1] {
            records[index] = records[index - 1];
            index -= 1;
        }
        records[index] = record;
        match moves.checked_sub(i - index) {
            Some(left) => moves = left,
            None => return records.sort_unstable(),
        }
    }
}
