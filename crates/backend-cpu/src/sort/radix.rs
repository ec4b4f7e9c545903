//! Radix sort of records: long rows are cut into buckets by their most significant bits, by all threads; what fits in a
//! cache is sorted there from the least significant digit on.
//!
//! Both keep the order of equal keys, so how the work is cut does not show in the result.

use std::mem::swap;

use cuprum_core::Result;

use super::partition::{Buckets, Counts, Digit, Source, partition};
use super::record::Record;
use super::vector::{self, Select, SortRows};
use crate::raw::Room;
use crate::simd::{Loop, dispatch, level};
use crate::threads;

/// Records up to which a row is sorted by one thread, and a bucket is not cut further.
pub(super) const BLOCK: usize = if cfg!(miri) { 1 << 8 } else { 1 << 15 };
/// Records that a bucket has room for at least: fewer would leave many of its cache lines half full.
const BUCKET: usize = if cfg!(miri) { 1 << 5 } else { 1 << 11 };
/// Bits that number the buckets, or half of them: their lines stay in the second-level cache.
const BUCKETS: u32 = 10;
/// Bits that the digit has beyond those that number the buckets, where keys are not spread evenly.
const FINER: u32 = 6;
/// Bytes above which a bucket is cut further: what the second-level cache holds twice.
const LARGE: usize = 2 << 20;
/// Records from which sorting by digits is faster than by comparison.
const BY_DIGITS: usize = 192;
/// Bits of a digit at most: counters and places of as many buckets stay in the first-level cache.
const DIGIT: u32 = 11;
/// Bits that are sorted by beyond those that number the records; few records are then still out of order.
const SPARE: u32 = 7;
/// Cheap operations that a record costs, about.
const COST: usize = 16;

/// Where sorted records go.
pub(super) trait Sink<R>: Send + Sized {
    /// How many records are asked for; others are not sorted.
    fn len(&self) -> usize;
    /// If only this one of them needs to be in its place, between those that come before and behind it.
    fn nth(&self) -> Option<usize> {
        None
    }
    /// The first `mid` places, and the others.
    fn split_at(self, mid: usize) -> (Self, Self);
    /// Takes the first of these records.
    fn take(self, records: &[R]);
}

/// Sorts the records of a source by their keys above bit `low`. Their least and greatest are `ends`.
pub(super) fn sort<T, R, F, S>(source: &Source<T, F>, low: u32, ends: (R, R), sink: S) -> Result<()>
where
    T: Copy + Sync,
    R: Record,
    F: Fn(T, usize) -> R + Copy + Sync,
    S: Sink<R>,
{
    let len = source.values.len();
    let base = ends.0.at_place_0(low);
    let bits = ends.1.bits_from(base, low).max(1);
    // Buckets of even size are put together from the values of a longer digit, unless a short one is all there is.
    let full = (len >> BUCKETS).max(BUCKET);
    let is_short = bits <= BUCKETS;
    let width = if is_short { bits } else { bits.min((len / full).max(1).ilog2() + FINER) };
    let digit = Digit { base, shift: low + bits - width, bits: width };
    let counts = Counts::new(source, digit)?;
    let totals = counts.totals();
    let wanted = reach(&totals, sink.len());
    let kept: usize = totals[..wanted].iter().sum();
    if kept <= len / 2 {
        let mut room = Room::new(kept)?;
        counts.choose(source, digit, wanted, room.records());
        return sort_again(room.records(), low, sink);
    }
    let groups = Buckets::new(&totals, if is_short { 0 } else { full });
    let mut room = Room::new(len)?;
    partition(source, digit, &counts, &groups, room.records());
    if is_short {
        take_all(room.records(), sink);
        return Ok(());
    }
    if let Some(nth) = sink.nth() {
        around(room.records(), &groups.totals, nth);
        take_all(room.records(), sink);
        return Ok(());
    }
    buckets(room.records(), &groups.totals, low, sink)
}

/// How many of the first totals hold `len` records.
fn reach(totals: &[usize], len: usize) -> usize {
    let mut held = 0;
    let short = |total: &&usize| {
        let before = held;
        held += **total;
        before < len
    };
    totals.iter().take_while(short).count()
}

/// Sorts records that another step has left together.
pub(super) fn sort_again<R: Record, S: Sink<R>>(records: &mut [R], low: u32, sink: S) -> Result<()> {
    if records.len() <= BLOCK {
        let mut blocks = Blocks::new(records.len());
        sink.take(blocks.sort(records, low));
        return Ok(());
    }
    let ends = threads::map(records.chunks(BLOCK), records.len(), || (), |_, part| dispatch(Extremes(part)))?;
    let ends = ends.into_iter().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default();
    if ends.1.bits_from(ends.0.at_place_0(low), low) == 0 {
        take_all(records, sink);
        return Ok(());
    }
    sort(&Source { values: records, record: |record: R, _| record }, low, ends, sink)
}

/// Hands on records that are sorted already.
fn take_all<R: Record, S: Sink<R>>(records: &[R], mut sink: S) {
    let records = &records[..sink.len()];
    let mut tasks = Vec::with_capacity(records.len().div_ceil(BLOCK));
    for part in records.chunks(BLOCK) {
        let (here, rest) = sink.split_at(part.len());
        tasks.push((part, here));
        sink = rest;
    }
    threads::for_each(tasks.into_iter(), records.len(), || (), |_, (part, sink)| sink.take(part));
}

/// Puts record `nth` in its place within its bucket.
fn around<R: Record>(records: &mut [R], totals: &[usize], nth: usize) {
    let mut begin = 0;
    for &total in totals {
        if nth < begin + total {
            let records = &mut records[begin..begin + total];
            return Blocks::new(total).select(records, nth - begin);
        }
        begin += total;
    }
}

/// Sorts buckets: large ones by all threads, one after the other, then one a task.
fn buckets<R: Record, S: Sink<R>>(mut records: &mut [R], totals: &[usize], low: u32, mut sink: S) -> Result<()> {
    let mut tasks = Vec::with_capacity(totals.len());
    let (mut longest, mut all) = (0, 0);
    for &total in totals.iter().take(reach(totals, sink.len())) {
        let (part, others) = std::mem::take(&mut records).split_at_mut(total);
        let (here, rest) = {
            let mid = total.min(sink.len());
            sink.split_at(mid)
        };
        (records, sink) = (others, rest);
        if size_of_val(part) > LARGE {
            sort_again(part, low, here)?;
        } else if total > 0 {
            (longest, all) = (longest.max(total), all + total);
            tasks.push((part, here));
        }
    }
    let cost = all.saturating_mul(COST);
    threads::for_each(tasks.into_iter(), cost, || Blocks::new(longest), |blocks, (part, sink)| sink.take(blocks.sort(part, low)));
    Ok(())
}

/// [`Record::extremes`] as a loop.
struct Extremes<'a, R>(&'a [R]);

impl<R: Record> Loop for Extremes<'_, R> {
    type Output = (R, R);
    #[inline(always)]
    fn run(self) -> (R, R) {
        R::extremes(self.0)
    }
}

/// One thread's means to sort blocks.
pub(super) struct Blocks<R> {
    /// As long as the longest block; empty where there was no memory for it.
    room: Room<R>,
    /// Counters, then places, of the buckets of a digit.
    buckets: Option<Box<[u32; 1 << DIGIT]>>,
}

impl<R: Record> Blocks<R> {
    /// For blocks of up to `longest` records.
    pub fn new(longest: usize) -> Blocks<R> {
        let alone = vector::capacity::<R>(longest).unwrap_or(BY_DIGITS - 1);
        let room = if longest <= alone { Room::default() } else { Room::new(longest).unwrap_or_default() };
        Blocks { room, buckets: None }
    }

    /// Sorts each row of `len` records of a block in registers; `false`, and nothing done, where there are none for them.
    pub fn sort_rows(&mut self, block: &mut [R], len: usize) -> bool {
        vector::capacity::<R>(len).is_some() && R::at(level(), SortRows { keys: block, len, room: self.room.records() }).is_some()
    }

    /// Puts record `nth` of a block in its place, between those that come before and behind it.
    pub fn select(&mut self, block: &mut [R], nth: usize) {
        let is_done = vector::capacity::<R>(block.len()).is_some()
            && R::at(level(), Select { keys: &mut *block, nth, room: self.room.records() }).is_some();
        if !is_done {
            block.select_nth_unstable(nth);
        }
    }

    /// Sorts a block by the keys above bit `low`; the result lies in it, or in this thread's room.
    pub fn sort<'r>(&'r mut self, block: &'r mut [R], low: u32) -> &'r [R] {
        let len = block.len();
        if self.sort_rows(block, len) {
            return block;
        }
        if len < BY_DIGITS || len > self.room.len() {
            block.sort_unstable();
            return block;
        }
        let buckets = self.buckets.get_or_insert_with(|| Box::new([0; 1 << DIGIT]));
        let (least, greatest) = dispatch(Extremes(block));
        let base = least.at_place_0(low);
        let bits = greatest.bits_from(base, low);
        let sorted = bits.min(len.ilog2() + SPARE);
        let passes = sorted.div_ceil(DIGIT.min(len.ilog2()));
        let (mut from, mut to) = (block, &mut self.room.records()[..len]);
        for pass in 0..passes {
            // Passes of even width, the first ones of the lower bits.
            let (start, end) = (sorted * pass / passes, sorted * (pass + 1) / passes);
            let digit = Digit { base, shift: low + bits - sorted + start, bits: end - start };
            if scatter(from, to, digit, buckets) {
                swap(&mut from, &mut to);
            }
        }
        if sorted < bits {
            settle(from);
        }
        from
    }
}

/// Moves records to the buckets of a digit, in the order they had. Returns false, and does nothing, if one bucket holds all.
fn scatter<R: Record>(from: &[R], to: &mut [R], digit: Digit<R>, buckets: &mut [u32; 1 << DIGIT]) -> bool {
    let in_use = &mut buckets[..digit.values()];
    in_use.fill(0);
    for &record in from {
        buckets[digit.of(record) % (1 << DIGIT)] += 1;
    }
    let mut place = 0;
    for bucket in &mut buckets[..digit.values()] {
        let count = std::mem::replace(bucket, place);
        if count as usize == from.len() {
            return false;
        }
        place += count;
    }
    for &record in from {
        let place = &mut buckets[digit.of(record) % (1 << DIGIT)];
        to[*place as usize] = record;
        *place += 1;
    }
    true
}

/// Sorts records that few are out of order of: by insertion, unless that takes too many moves.
fn settle<R: Record>(records: &mut [R]) {
    let mut moves = 4 * records.len();
    for i in 1..records.len() {
        let record = records[i];
        let mut place = i;
        while place > 0 && record < records[place - 1] {
            records[place] = records[place - 1];
            place -= 1;
        }
        records[place] = record;
        match moves.checked_sub(i - place) {
            Some(left) => moves = left,
            None => return records.sort_unstable(),
        }
    }
}
