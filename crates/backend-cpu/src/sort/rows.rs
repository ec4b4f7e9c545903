//! Rows of real elements, of one length or of many: short ones side by side, long ones by all threads.

use std::sync::OnceLock;

use cuprum_core::{Error, Result};

use super::count;
use super::key::{Real, Unsigned};
use super::network::{Columns, LANES};
use super::partition::Source;
use super::radix::{self, BLOCK, Blocks, Sink};
use super::record::{Pair, Record};
use super::vector::{self, MOST};
use crate::raw::Room;
use crate::simd::{Loop, dispatch};
use crate::threads;

/// Cheap operations that an element costs, about.
const COST: usize = 16;

/// Records of rows that are sorted in one go: they stay in the first-level cache.
const CACHED: usize = 1 << 11;

/// Longest row that one thread sorts where there are enough rows for all threads.
const ALONE: usize = 1 << 18;

/// How elements are cut into rows.
#[derive(Clone, Copy)]
pub(super) enum Rows<'a> {
    /// All of this length.
    Of(usize),
    /// From each of these offsets to the next, from 0 to the number of elements; all elements of each are asked for.
    Between(&'a [i64]),
}

/// What is asked for of each row: the first `keep` sorted values, their places counted from `base`, or both; if `nth`, only that one needs
/// to be in its place, among all.
pub(super) struct Results<'a, T> {
    pub keep: usize,
    pub base: i64,
    pub nth: Option<usize>,
    pub values: Option<&'a mut [T]>,
    pub places: Option<&'a mut [i64]>,
}

impl<'a, T> Results<'a, T> {
    /// Number of results.
    pub fn len(&self) -> usize {
        self.values.as_ref().map_or_else(|| self.places.as_ref().map_or(0, |p| p.len()), |v| v.len())
    }

    /// The first `mid` results, and the others.
    pub fn split_at(self, mid: usize) -> (Results<'a, T>, Results<'a, T>) {
        let (values, more_values) = self.values.map(|v| v.split_at_mut(mid)).unzip();
        let (places, more_places) = self.places.map(|p| p.split_at_mut(mid)).unzip();
        let Results { keep, base, nth, .. } = self;
        (Results { keep, base, nth, values, places }, Results { keep, base, nth, values: more_values, places: more_places })
    }

    /// The results of `rows` rows at a time.
    pub fn chunks(mut self, rows: usize) -> Vec<Results<'a, T>> {
        let chunk = rows * self.keep;
        let mut parts = Vec::with_capacity(self.len().div_ceil(chunk));
        while self.len() > chunk {
            let (part, rest) = self.split_at(chunk);
            parts.push(part);
            self = rest;
        }
        parts.push(self);
        parts
    }
}

/// Sorts each row.
pub(super) fn sort<T: Real>(from: &[T], rows: Rows, descending: bool, results: Results<T>) -> Result<()> {
    let block = longest_block(rows, &results);
    let is_long = |len: usize| len > ALONE.max(block) || (len > block && from.len() / len < 2 * threads::count());
    let alone = |row: &[T], results: Results<T>| long(row, descending, results);
    apart(from, rows, results, is_long, alone, |from, rows, results| together(from, rows, descending, results))
}

/// Longest row that one thread sorts, even if the others wait. To cut a row by all threads takes about three times as long, all
/// together, as to sort it in registers.
fn longest_block<T: Real>(rows: Rows, results: &Results<T>) -> usize {
    let is_whole = match rows {
        Rows::Of(len) => results.keep == len && results.nth.is_none(),
        Rows::Between(_) => true,
    };
    // What is narrower is counted, what is wider has no registers.
    let is_fit = size_of::<T>() == 4 || (size_of::<T>() == 8 && results.places.is_none());
    if !is_whole || !is_fit || vector::capacity::<u64>(BLOCK + 1).is_none() {
        return BLOCK;
    }
    match threads::count() {
        1 => PLACE as usize, // a place has 32 bits beside its key
        2 | 3 => BLOCK << 7,
        _ => BLOCK << 1,
    }
}

/// Gives long rows one by one to `alone`, and those between them to `others`.
pub(super) fn apart<T>(
    from: &[T],
    rows: Rows,
    mut results: Results<T>,
    is_long: impl Fn(usize) -> bool,
    alone: impl Fn(&[T], Results<T>) -> Result<()>,
    others: impl Fn(&[T], Rows, Results<T>) -> Result<()>,
) -> Result<()> {
    match rows {
        Rows::Of(len) if is_long(len) => from.chunks_exact(len).zip(results.chunks(1)).try_for_each(|(row, results)| alone(row, results)),
        Rows::Of(_) => others(from, rows, results),
        Rows::Between(offsets) => {
            let mut first = 0;
            let length = |segment: usize| (offsets[segment + 1] - offsets[segment]) as usize;
            for segment in (0..offsets.len() - 1).filter(|&s| is_long(length(s))) {
                let (begin, before) = (offsets[segment] as usize, (offsets[segment] - offsets[first]) as usize);
                let (between, rest) = results.split_at(before);
                let (mine, rest) = rest.split_at(length(segment));
                others(from, Rows::Between(&offsets[first..=segment]), between)?;
                alone(&from[begin..begin + length(segment)], Results { base: begin as i64, ..mine })?;
                (first, results) = (segment + 1, rest);
            }
            others(from, Rows::Between(&offsets[first..]), results)
        }
    }
}

/// Sorts rows that a thread each takes.
fn together<T: Real>(from: &[T], rows: Rows, descending: bool, results: Results<T>) -> Result<()> {
    let coder = Coder::new(descending, 0);
    let of_key = move |key: u64| coder.element::<T>(key);
    match (results.places.is_some(), size_of::<T>()) {
        (false, 8) => short(
            from,
            rows,
            0,
            move |v: T, _| coder.key(v.bits_key()),
            &Decoder { value: move |r, _: &[T]| of_key(r), place: |_| 0 },
            results,
        ),
        (false, _) => {
            let decoder = Decoder { value: move |r: u32, _: &[T]| of_key(r as u64), place: |_| 0 };
            short(from, rows, 0, move |v: T, _| coder.key(v.bits_key()) as u32, &decoder, results)
        }
        (true, 8) => {
            let decoder = Decoder { value: move |r: Pair, row: &[T]| original(of_key(r.key), row, r.place), place: |r: Pair| r.place };
            short(from, rows, 0, move |v: T, i| Pair { key: coder.key(v.key()), place: i as u64 }, &decoder, results)
        }
        (true, _) => {
            let decoder = Decoder { value: move |r: u64, row: &[T]| original(of_key(r >> 32), row, r & PLACE), place: |r| r & PLACE };
            short(from, rows, 32, move |v: T, i| coder.key(v.key()) << 32 | i as u64, &decoder, results)
        }
    }
}

/// The place in a record of 64 bits with a key of 32.
const PLACE: u64 = u32::MAX as u64;

/// How keys are counted: from the least one that occurs, downwards if the order is descending.
#[derive(Clone, Copy)]
struct Coder {
    flip: u64,
    least: u64,
}

impl Coder {
    fn new(descending: bool, least: u64) -> Coder {
        Coder { flip: if descending { u64::MAX } else { 0 }, least }
    }

    #[inline(always)]
    fn key<K: Unsigned>(self, key: K) -> u64 {
        (key.wide() ^ (self.flip & K::MAX.wide())).wrapping_sub(self.least)
    }

    #[inline(always)]
    fn element<T: Real>(self, key: u64) -> T {
        T::of_key(Unsigned::narrow(key.wrapping_add(self.least) ^ self.flip))
    }
}

/// The element of a key that says all but which of several equal ones it was: zeros and NaN are fetched from their place.
#[inline(always)]
fn original<T: Real>(value: T, row: &[T], place: u64) -> T {
    #[allow(clippy::eq_op)] // NaN
    if value == T::default() || value != value { row[place as usize] } else { value }
}

/// How records become values of the row they came from, and places in it.
trait Decode<T, R>: Copy + Sync {
    fn value(&self, record: R, row: &[T]) -> T;
    fn place(&self, record: R) -> u64;
}

/// Both as functions.
#[derive(Clone, Copy)]
struct Decoder<V, P> {
    value: V,
    place: P,
}

impl<T, R, V, P> Decode<T, R> for Decoder<V, P>
where
    V: Fn(R, &[T]) -> T + Copy + Sync,
    P: Fn(R) -> u64 + Copy + Sync,
{
    #[inline(always)]
    fn value(&self, record: R, row: &[T]) -> T {
        (self.value)(record, row)
    }
    #[inline(always)]
    fn place(&self, record: R) -> u64 {
        (self.place)(record)
    }
}

/// Results that records are decoded to.
struct Decoded<'a, T, D> {
    row: &'a [T],
    results: Results<'a, T>,
    decoder: &'a D,
}

impl<T: Real, R: Record, D: Decode<T, R>> Sink<R> for Decoded<'_, T, D> {
    fn len(&self) -> usize {
        self.results.len()
    }

    fn nth(&self) -> Option<usize> {
        self.results.nth
    }

    fn split_at(self, mid: usize) -> (Self, Self) {
        let (first, rest) = self.results.split_at(mid);
        (Decoded { results: first, ..self }, Decoded { row: self.row, decoder: self.decoder, results: rest })
    }

    fn take(self, records: &[R]) {
        if let Some(values) = self.results.values {
            values.iter_mut().zip(records).for_each(|(value, &record)| *value = self.decoder.value(record, self.row));
        }
        if let Some(places) = self.results.places {
            places.iter_mut().zip(records).for_each(|(place, &record)| *place = self.results.base + self.decoder.place(record) as i64);
        }
    }
}

/// Gives each row and its results to threads that each have a state.
pub(super) fn for_each_row<T: Send + Sync, S>(
    from: &[T],
    rows: Rows,
    cost: usize,
    results: Results<T>,
    init: impl Fn() -> S + Sync,
    body: impl Fn(&mut S, &[T], Results<T>) + Sync,
) {
    match rows {
        Rows::Of(len) => for_each_rows((from, len), (BLOCK / len).max(1), cost, results, init, |state, from, results| {
            from.chunks_exact(len).zip(results.chunks(1)).for_each(|(row, results)| body(state, row, results));
        }),
        Rows::Between(offsets) => for_each_segment(from, offsets, cost, results, init, body),
    }
}

/// Gives the segments of elements, about a block together, and their results to threads that each have a state.
fn for_each_segment<T: Send + Sync, S>(
    from: &[T],
    offsets: &[i64],
    cost: usize,
    mut results: Results<T>,
    init: impl Fn() -> S + Sync,
    body: impl Fn(&mut S, &[T], Results<T>) + Sync,
) {
    let mut tasks = Vec::new();
    let mut left = offsets;
    while let [begin, _, ..] = *left {
        let count = left[1..].partition_point(|&end| end - begin <= BLOCK as i64).max(1);
        let (mine, rest) = results.split_at((left[count] - begin) as usize);
        tasks.push((&left[..=count], mine));
        (left, results) = (&left[count..], rest);
    }
    let cost = tasks.len().saturating_mul(BLOCK).saturating_mul(cost);
    threads::for_each(tasks.into_iter(), cost, init, |state, (offsets, mut results)| {
        for ends in offsets.windows(2).filter(|ends| ends[0] < ends[1]) {
            let row = &from[ends[0] as usize..ends[1] as usize];
            let (mine, rest) = results.split_at(row.len());
            body(state, row, Results { base: ends[0], ..mine });
            results = rest;
        }
    });
}

/// Gives the rows of `len` elements and their results, `rows` at a time, to threads that each have a state.
fn for_each_rows<T: Send + Sync, S>(
    (from, len): (&[T], usize),
    rows: usize,
    cost: usize,
    results: Results<T>,
    init: impl Fn() -> S + Sync,
    body: impl Fn(&mut S, &[T], Results<T>) + Sync,
) {
    let tasks: Vec<_> = from.chunks(rows * len).zip(results.chunks(rows)).collect();
    threads::for_each(tasks.into_iter(), from.len().saturating_mul(cost), init, |state, (from, results)| body(state, from, results));
}

/// Room for a thread's records; none, and the reason kept, where there is no memory for it.
fn room_for<R: Record>(len: usize, failed: &OnceLock<Error>) -> Room<R> {
    Room::new(len).unwrap_or_else(|error| {
        let _ = failed.set(error); // of several threads the first tells
        Room::default()
    })
}

/// Rows that one thread sorts, a few at a time.
fn short<T: Real, R: Record, D: Decode<T, R>>(
    from: &[T],
    rows: Rows,
    low: u32,
    record: impl Fn(T, usize) -> R + Copy + Sync,
    decoder: &D,
    results: Results<T>,
) -> Result<()> {
    let longest = match rows {
        Rows::Of(len) if results.nth.is_none() && results.keep > len / 4 && vector::capacity::<R>(len).is_some() => {
            return in_registers(from, len, record, decoder, results);
        }
        Rows::Of(len) if (2..=R::NETWORK).contains(&len) && results.keep > len / 4 => {
            shortest(from, len, record, decoder, results);
            return Ok(());
        }
        Rows::Of(len) => len,
        Rows::Between(offsets) => offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0),
    };
    let failed = OnceLock::new();
    let state = || (Blocks::new(longest), room_for(longest, &failed));
    for_each_row(from, rows, COST, results, state, |(blocks, room), row, results| {
        let Some(records) = room.records().get_mut(..row.len()) else { return };
        for (i, (to, &v)) in records.iter_mut().zip(row).enumerate() {
            *to = record(v, i);
        }
        if let Some(nth) = results.nth {
            blocks.select(records, nth);
            return Decoded { row, results, decoder }.take(records);
        }
        let keep = results.len();
        let sorted = if keep <= row.len() / 4 {
            // Only the first few are sorted.
            blocks.select(records, keep);
            blocks.sort(&mut records[..keep], low)
        } else {
            blocks.sort(records, low)
        };
        Decoded { row, results, decoder }.take(sorted);
    });
    failed.into_inner().map_or(Ok(()), Err)
}

/// Rows that are sorted one after the other in registers.
fn in_registers<T: Real, R: Record, D: Decode<T, R>>(
    from: &[T],
    len: usize,
    record: impl Fn(T, usize) -> R + Copy + Sync,
    decoder: &D,
    results: Results<T>,
) -> Result<()> {
    let rows = (CACHED / len).min(from.len() / len).max(1);
    // Rows whose places nobody asks for are one run of elements to those who make records of them and elements of records.
    let is_run = results.places.is_none() && results.keep == len;
    let failed = OnceLock::new();
    let state = || (Blocks::new(if len < MOST { rows * len } else { len }), room_for(rows * len, &failed));
    for_each_rows((from, len), (BLOCK / len).max(1), COST, results, state, |(blocks, room), from, results| {
        for (from, results) in from.chunks(rows * len).zip(results.chunks(rows)) {
            let Some(records) = room.records().get_mut(..from.len()) else { return };
            let (len, run, keep) = if is_run { (len, from.len(), from.len()) } else { (len, len, results.keep) };
            dispatch(Encode { from, run, record, records: &mut *records });
            blocks.sort_rows(records, len);
            dispatch(DecodeRuns { records, from, run, results: Results { keep, ..results }, decoder: *decoder });
        }
    });
    failed.into_inner().map_or(Ok(()), Err)
}

/// Makes records of runs of elements. What `record` holds is its own: the compiler knows that no record overlaps it.
struct Encode<'a, T, R, F> {
    from: &'a [T],
    run: usize,
    record: F,
    records: &'a mut [R],
}

impl<T: Copy, R, F: Fn(T, usize) -> R> Loop for Encode<'_, T, R, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Encode { from, run, record, records } = self;
        let mut start = 0;
        while start < from.len().min(records.len()) {
            let (from, records) = (&from[start..start + run], &mut records[start..start + run]);
            for i in 0..run {
                records[i] = record(from[i], i);
            }
            start += run;
        }
    }
}

/// Makes results of the first records of each run, as [`Encode`] makes records.
struct DecodeRuns<'a, T, R, D> {
    records: &'a [R],
    from: &'a [T],
    run: usize,
    results: Results<'a, T>,
    decoder: D,
}

impl<T: Real, R: Record, D: Decode<T, R>> Loop for DecodeRuns<'_, T, R, D> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let DecodeRuns { records, from, run, results: Results { keep, base, mut values, mut places, .. }, decoder } = self;
        let (mut start, mut to) = (0, 0);
        while start < from.len().min(records.len()) {
            let (from, records) = (&from[start..start + run], &records[start..start + keep]);
            if let Some(values) = &mut values {
                let values = &mut values[to..to + keep];
                for i in 0..keep {
                    values[i] = decoder.value(records[i], from);
                }
            }
            if let Some(places) = &mut places {
                let places = &mut places[to..to + keep];
                for i in 0..keep {
                    places[i] = base + decoder.place(records[i]) as i64;
                }
            }
            (start, to) = (start + run, to + keep);
        }
    }
}

/// Rows that are sorted side by side.
fn shortest<T: Real, R: Record, D: Decode<T, R>>(
    from: &[T],
    len: usize,
    record: impl Fn(T, usize) -> R + Copy + Sync,
    decoder: &D,
    results: Results<T>,
) {
    let rows = (BLOCK / len).next_multiple_of(LANES);
    let state = || (vec![[R::default(); LANES]; len], vec![R::default(); len]);
    for_each_rows((from, len), rows, COST, results, state, |(columns, records), from, results| {
        for (from, results) in from.chunks(LANES * len).zip(results.chunks(LANES)) {
            for (lane, row) in from.chunks_exact(len).enumerate() {
                for ((i, &v), column) in row.iter().enumerate().zip(columns.iter_mut()) {
                    column[lane] = record(v, i);
                }
            }
            dispatch(Columns(columns));
            for (lane, (row, results)) in from.chunks_exact(len).zip(results.chunks(1)).enumerate() {
                records.iter_mut().zip(columns.iter()).for_each(|(record, column)| *record = column[lane]);
                Decoded { row, results, decoder }.take(records);
            }
        }
    });
}

/// The least and the greatest key.
struct Extremes<'a, T, K>(&'a [T], K);

impl<T: Copy, U: Unsigned, K: Fn(T) -> U> Loop for Extremes<'_, T, K> {
    type Output = (U, U);
    #[inline(always)]
    fn run(self) -> (U, U) {
        self.0.iter().fold((U::MAX, U::default()), |(least, greatest), &v| {
            let key = (self.1)(v);
            (least.min(key), greatest.max(key))
        })
    }
}

/// One row by all threads.
fn long<T: Real>(row: &[T], descending: bool, results: Results<T>) -> Result<()> {
    let with_places = results.places.is_some();
    let key = move |v: T| if with_places { v.key() } else { v.bits_key() };
    let ends = threads::map(row.chunks(BLOCK), row.len(), || (), |_, part| dispatch(Extremes(part, key)))?;
    let (least, greatest) = ends.into_iter().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default();
    let range = greatest.wide() - least.wide();
    let whole = Coder::new(descending, 0);
    let coder = Coder::new(descending, whole.key(if descending { greatest } else { least }));
    let place_bits = usize::BITS - (row.len() - 1).leading_zeros();
    if !with_places && range < count::RANGE {
        let of_key = |key: usize| coder.element::<T>(key as u64);
        count::sort(row, range as usize + 1, |v| coder.key(v.bits_key()) as usize, of_key, results.values.unwrap_or_default())?;
        return Ok(());
    }
    match (with_places, range) {
        (false, ..=PLACE) => {
            let source = Source { values: row, record: move |v: T, _| coder.key(v.bits_key()) as u32 };
            let decoder = Decoder { value: move |r: u32, _: &[T]| coder.element(r as u64), place: |_| 0 };
            radix::sort(&source, 0, (0, range as u32), Decoded { row, results, decoder: &decoder })
        }
        (false, _) => {
            let source = Source { values: row, record: move |v: T, _| coder.key(v.bits_key()) };
            let decoder = Decoder { value: move |r: u64, _: &[T]| coder.element(r), place: |_| 0 };
            radix::sort(&source, 0, (0, range), Decoded { row, results, decoder: &decoder })
        }
        (true, _) if range.leading_zeros() >= place_bits => {
            let source = Source { values: row, record: move |v: T, i| coder.key(v.key()) << place_bits | i as u64 };
            let place = move |r: u64| r & ((1 << place_bits) - 1);
            let decoder = Decoder { value: move |r: u64, row: &[T]| original(coder.element(r >> place_bits), row, place(r)), place };
            radix::sort(&source, place_bits, (0, range << place_bits), Decoded { row, results, decoder: &decoder })
        }
        (true, _) => {
            let source = Source { values: row, record: move |v: T, i| Pair { key: coder.key(v.key()), place: i as u64 } };
            let decoder =
                Decoder { value: move |r: Pair, row: &[T]| original(coder.element(r.key), row, r.place), place: |r: Pair| r.place };
            let ends = (Pair::default(), Pair { key: range, place: 0 });
            radix::sort(&source, 0, ends, Decoded { row, results, decoder: &decoder })
        }
    }
}
