//! Sorts of real elements in rows of one length or in segments. One thread sorts each short row; all threads share a long row.

use std::sync::OnceLock;

use cuprum_core::{Error, Result};
use cuprum_cpu_base::simd::{SimdLoop, dispatch_simd};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::HostVec;

use crate::counting_sort;
use crate::key_coding::{ClosureDecoder, DecodeRecord, INDEX_MASK, KeyCoder, KeyOrder, restore_zero_or_nan_bits};
use crate::radix_partition::RecordSource;
use crate::radix_sort::{self, BlockSorter, MAX_SERIAL_RECORDS, SortSink};
use crate::register_sort::{self, MAX_LANES};
use crate::sort_key::{RealElement, UnsignedKey};
use crate::sort_record::{KeyIndexPair, SortRecord};
use crate::sorting_network::{ROWS_PER_NETWORK, SortColumnsLoop};

/// Approximate cost of sorting one element, in elementary operations.
const COST_PER_ELEMENT: usize = 16;

/// Target number of records in a batch of short rows. A batch of this size fits the first-level cache.
const RECORDS_PER_ROW_BATCH: usize = 1 << 11;

/// Maximum length of a row that one thread sorts if there are enough rows for all threads, unless [`max_serial_row_len`] allows longer
/// rows.
const MAX_SERIAL_ROW_LEN: usize = 1 << 18;

/// Division of the elements into rows that are sorted separately.
#[derive(Clone, Copy)]
pub(super) enum RowDivision<'a> {
    /// Rows of equal length. The value is the number of elements per row.
    Uniform(usize),
    /// Segments between consecutive offsets, which start at 0 and end with the number of elements. All sorted elements are written;
    /// [`SortOutputs::keep`] does not apply.
    Offsets(&'a [i64]),
}

/// Outputs of a sort: the first `keep` sorted values of each row, their indices plus `base`, or both. With `nth`, only the element with the
/// sorted index `nth` must be at its sorted position, as in `numpy.partition`.
pub(super) struct SortOutputs<'a, T> {
    pub keep: usize,
    pub base: i64,
    pub nth: Option<usize>,
    pub values: Option<&'a mut [T]>,
    pub indices: Option<&'a mut [i64]>,
}

impl<'a, T> SortOutputs<'a, T> {
    /// Returns the number of elements that the outputs hold.
    pub fn len(&self) -> usize {
        self.values.as_ref().map_or_else(|| self.indices.as_ref().map_or(0, |p| p.len()), |v| v.len())
    }

    /// Splits the outputs into the first `mid` elements and the rest.
    pub fn split_at(self, mid: usize) -> (SortOutputs<'a, T>, SortOutputs<'a, T>) {
        let (values, more_values) = self.values.map(|v| v.split_at_mut(mid)).unzip();
        let (indices, more_indices) = self.indices.map(|p| p.split_at_mut(mid)).unzip();
        let SortOutputs { keep, base, nth, .. } = self;
        (SortOutputs { keep, base, nth, values, indices }, SortOutputs { keep, base, nth, values: more_values, indices: more_indices })
    }

    /// Splits the outputs into parts of `rows` rows each. The last part may have fewer rows.
    pub fn split_into_rows(mut self, rows: usize) -> Vec<SortOutputs<'a, T>> {
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

/// Sorts each row of `from` in the given `order` and writes the requested outputs.
pub(super) fn sort_real_rows<T: RealElement>(from: &[T], rows: RowDivision, order: KeyOrder, results: SortOutputs<T>) -> Result<()> {
    let block = max_serial_row_len(rows, &results);
    let is_long = |len: usize| len > MAX_SERIAL_ROW_LEN.max(block) || (len > block && from.len() / len < 2 * threads::max_threads());
    let sort_long = |row: &[T], results: SortOutputs<T>| sort_long_row(row, order, results);
    sort_long_rows_separately(from, rows, results, is_long, sort_long, |from, rows, results| sort_rows(from, rows, order, results))
}

/// Returns the maximum length of a row that one thread sorts even if other threads are idle. Splitting a row among all threads takes about
/// three times the total processor time of a sort in SIMD registers.
fn max_serial_row_len<T: RealElement>(rows: RowDivision, results: &SortOutputs<T>) -> usize {
    let is_whole = match rows {
        RowDivision::Uniform(len) => results.keep == len && results.nth.is_none(),
        RowDivision::Offsets(_) => true,
    };
    // SIMD registers sort elements of 4 bytes, and elements of 8 bytes without indices. Smaller elements are sorted by counting. A 64-bit
    // key together with its index does not fit a SIMD lane.
    let is_fit = size_of::<T>() == 4 || (size_of::<T>() == 8 && results.indices.is_none());
    if !is_whole || !is_fit || register_sort::max_len_without_scratch::<u64>(MAX_SERIAL_RECORDS + 1).is_none() {
        return MAX_SERIAL_RECORDS;
    }
    match threads::max_threads() {
        1 => INDEX_MASK as usize, // an index has 32 bits next to its key in a record
        2 | 3 => MAX_SERIAL_RECORDS << 7,
        _ => MAX_SERIAL_RECORDS << 1,
    }
}

/// Calls `sort_long` for each row whose length satisfies `is_long`, and `others` for each range of consecutive rows before, between or
/// after the long rows.
pub(super) fn sort_long_rows_separately<T>(
    from: &[T],
    rows: RowDivision,
    mut results: SortOutputs<T>,
    is_long: impl Fn(usize) -> bool,
    sort_long: impl Fn(&[T], SortOutputs<T>) -> Result<()>,
    others: impl Fn(&[T], RowDivision, SortOutputs<T>) -> Result<()>,
) -> Result<()> {
    match rows {
        RowDivision::Uniform(len) if is_long(len) => {
            from.chunks_exact(len).zip(results.split_into_rows(1)).try_for_each(|(row, results)| sort_long(row, results))
        }
        RowDivision::Uniform(_) => others(from, rows, results),
        RowDivision::Offsets(offsets) => {
            let mut first = 0;
            let length = |segment: usize| (offsets[segment + 1] - offsets[segment]) as usize;
            for segment in (0..offsets.len() - 1).filter(|&s| is_long(length(s))) {
                let (begin, before) = (offsets[segment] as usize, (offsets[segment] - offsets[first]) as usize);
                let (between, rest) = results.split_at(before);
                let (mine, rest) = rest.split_at(length(segment));
                others(from, RowDivision::Offsets(&offsets[first..=segment]), between)?;
                sort_long(&from[begin..begin + length(segment)], SortOutputs { base: begin as i64, ..mine })?;
                (first, results) = (segment + 1, rest);
            }
            others(from, RowDivision::Offsets(&offsets[first..]), results)
        }
    }
}

/// Sorts each row on one thread, by the fastest method for its length and type.
fn sort_rows<T: RealElement>(from: &[T], rows: RowDivision, order: KeyOrder, results: SortOutputs<T>) -> Result<()> {
    let coder = KeyCoder::new(order, 0);
    let of_key = move |key: u64| coder.decode::<T>(key);
    // The conditions depend on the type `T` only, so that sorts with record types that `T` does not need are not compiled.
    if const { size_of::<T>() == 8 } {
        if results.indices.is_some() {
            let decoder = ClosureDecoder {
                value: move |r: KeyIndexPair, row: &[T]| restore_zero_or_nan_bits(of_key(r.key), row, r.index),
                index: |r: KeyIndexPair| r.index,
            };
            return sort_short_rows(
                from,
                rows,
                0,
                move |v: T, i| KeyIndexPair { key: coder.encode(v.sort_key()), index: i as u64 },
                &decoder,
                results,
            );
        }
        let decoder = ClosureDecoder { value: move |r, _: &[T]| of_key(r), index: |_| 0 };
        return sort_short_rows(from, rows, 0, move |v: T, _| coder.encode(v.bitwise_key()), &decoder, results);
    }
    if const { size_of::<T>() < 8 } {
        if results.indices.is_some() {
            let decoder = ClosureDecoder {
                value: move |r: u64, row: &[T]| restore_zero_or_nan_bits(of_key(r >> 32), row, r & INDEX_MASK),
                index: |r| r & INDEX_MASK,
            };
            return sort_short_rows(from, rows, 32, move |v: T, i| coder.encode(v.sort_key()) << 32 | i as u64, &decoder, results);
        }
        let decoder = ClosureDecoder { value: move |r: u32, _: &[T]| of_key(r as u64), index: |_| 0 };
        return sort_short_rows(from, rows, 0, move |v: T, _| coder.encode(v.bitwise_key()) as u32, &decoder, results);
    }
    Ok(())
}

/// A destination that decodes sorted records to the values and indices of `results`.
struct DecodingSink<'a, T, D> {
    row: &'a [T],
    results: SortOutputs<'a, T>,
    decoder: &'a D,
}

impl<T: RealElement, R: SortRecord, D: DecodeRecord<T, R>> SortSink<R> for DecodingSink<'_, T, D> {
    fn output_len(&self) -> usize {
        self.results.len()
    }

    fn selected_index(&self) -> Option<usize> {
        self.results.nth
    }

    fn split_at(self, mid: usize) -> (Self, Self) {
        let (first, rest) = self.results.split_at(mid);
        (DecodingSink { results: first, ..self }, DecodingSink { row: self.row, decoder: self.decoder, results: rest })
    }

    fn write_records(self, records: &[R]) {
        if let Some(values) = self.results.values {
            values.iter_mut().zip(records).for_each(|(value, &record)| *value = self.decoder.decode_element(record, self.row));
        }
        if let Some(indices) = self.results.indices {
            indices
                .iter_mut()
                .zip(records)
                .for_each(|(index, &record)| *index = self.results.base + self.decoder.decode_index(record) as i64);
        }
    }
}

/// Calls `body` for each row and the outputs of that row, on several threads. `init` creates the state of a thread. `cost` is the cost per
/// element.
pub(super) fn for_each_row<T: Send + Sync, S>(
    from: &[T],
    rows: RowDivision,
    cost: usize,
    results: SortOutputs<T>,
    init: impl Fn() -> S + Sync,
    body: impl Fn(&mut S, &[T], SortOutputs<T>) + Sync,
) {
    match rows {
        RowDivision::Uniform(len) => {
            for_each_row_group((from, len), (MAX_SERIAL_RECORDS / len).max(1), cost, results, init, |state, from, results| {
                from.chunks_exact(len).zip(results.split_into_rows(1)).for_each(|(row, results)| body(state, row, results));
            })
        }
        RowDivision::Offsets(offsets) => for_each_segment(from, offsets, cost, results, init, body),
    }
}

/// Calls `body` for each segment and the outputs of that segment, on several threads. A task has segments of about [`MAX_SERIAL_RECORDS`]
/// elements in total. `cost` is the cost per element.
fn for_each_segment<T: Send + Sync, S>(
    from: &[T],
    offsets: &[i64],
    cost: usize,
    mut results: SortOutputs<T>,
    init: impl Fn() -> S + Sync,
    body: impl Fn(&mut S, &[T], SortOutputs<T>) + Sync,
) {
    let mut tasks = Vec::new();
    let mut left = offsets;
    while let [begin, _, ..] = *left {
        let count = left[1..].partition_point(|&end| end - begin <= MAX_SERIAL_RECORDS as i64).max(1);
        let (mine, rest) = results.split_at((left[count] - begin) as usize);
        tasks.push((&left[..=count], mine));
        (left, results) = (&left[count..], rest);
    }
    let cost = tasks.len().saturating_mul(MAX_SERIAL_RECORDS).saturating_mul(cost);
    threads::for_each(tasks.into_iter(), cost, init, |state, (offsets, mut results)| {
        for ends in offsets.windows(2).filter(|ends| ends[0] < ends[1]) {
            let row = &from[ends[0] as usize..ends[1] as usize];
            let (mine, rest) = results.split_at(row.len());
            body(state, row, SortOutputs { base: ends[0], ..mine });
            results = rest;
        }
    });
}

/// Calls `body` for groups of `rows` rows of `len` elements and the outputs of each group, on several threads. `cost` is the cost per
/// element.
fn for_each_row_group<T: Send + Sync, S>(
    (from, len): (&[T], usize),
    rows: usize,
    cost: usize,
    results: SortOutputs<T>,
    init: impl Fn() -> S + Sync,
    body: impl Fn(&mut S, &[T], SortOutputs<T>) + Sync,
) {
    let tasks: Vec<_> = from.chunks(rows * len).zip(results.split_into_rows(rows)).collect();
    threads::for_each(tasks.into_iter(), from.len().saturating_mul(cost), init, |state, (from, results)| body(state, from, results));
}

/// Allocates `len` records for one thread. On failure returns an empty vector and stores the error in `failed`.
fn allocate_records<R: SortRecord>(len: usize, failed: &OnceLock<Error>) -> HostVec<R> {
    HostVec::allocate(len).unwrap_or_else(|error| {
        let _ = failed.set(error); // keeps the first error
        HostVec::default()
    })
}

/// Sorts short rows, several rows per task and each row on one thread. `index_bits` is the number of low bits of a record that hold the
/// element's index.
fn sort_short_rows<T: RealElement, R: SortRecord, D: DecodeRecord<T, R>>(
    from: &[T],
    rows: RowDivision,
    index_bits: u32,
    record: impl Fn(T, usize) -> R + Copy + Sync,
    decoder: &D,
    results: SortOutputs<T>,
) -> Result<()> {
    let longest = match rows {
        RowDivision::Uniform(len)
            if results.nth.is_none() && results.keep > len / 4 && register_sort::max_len_without_scratch::<R>(len).is_some() =>
        {
            return sort_short_rows_in_registers(from, len, record, decoder, results);
        }
        RowDivision::Uniform(len) if (2..=R::MAX_NETWORK_LEN).contains(&len) && results.keep > len / 4 => {
            sort_short_rows_by_network(from, len, record, decoder, results);
            return Ok(());
        }
        RowDivision::Uniform(len) => len,
        RowDivision::Offsets(offsets) => offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0),
    };
    let failed = OnceLock::new();
    let state = || (BlockSorter::with_capacity(longest), allocate_records(longest, &failed));
    for_each_row(from, rows, COST_PER_ELEMENT, results, state, |(blocks, scratch), row, results| {
        let Some(records) = scratch.as_mut_slice().get_mut(..row.len()) else { return };
        for (i, (to, &v)) in records.iter_mut().zip(row).enumerate() {
            *to = record(v, i);
        }
        if let Some(nth) = results.nth {
            blocks.select_nth(records, nth);
            return DecodingSink { row, results, decoder }.write_records(records);
        }
        let keep = results.len();
        let sorted = if keep <= row.len() / 4 {
            // Selects the first `keep` records of the row before sorting them, because the others are not written.
            blocks.select_nth(records, keep);
            blocks.sort(&mut records[..keep], index_bits, false)
        } else {
            blocks.sort(records, index_bits, true)
        };
        DecodingSink { row, results, decoder }.write_records(sorted);
    });
    failed.into_inner().map_or(Ok(()), Err)
}

/// Sorts rows of `len` elements in SIMD registers.
fn sort_short_rows_in_registers<T: RealElement, R: SortRecord, D: DecodeRecord<T, R>>(
    from: &[T],
    len: usize,
    record: impl Fn(T, usize) -> R + Copy + Sync,
    decoder: &D,
    results: SortOutputs<T>,
) -> Result<()> {
    let rows = (RECORDS_PER_ROW_BATCH / len).min(from.len() / len).max(1);
    // If only values are sorted, one loop converts consecutive rows to sort keys, and one converts them back.
    let is_run = results.indices.is_none() && results.keep == len;
    let failed = OnceLock::new();
    let state = || (BlockSorter::with_capacity(if len < MAX_LANES { rows * len } else { len }), allocate_records(rows * len, &failed));
    for_each_row_group(
        (from, len),
        (MAX_SERIAL_RECORDS / len).max(1),
        COST_PER_ELEMENT,
        results,
        state,
        |(blocks, scratch), from, results| {
            for (from, results) in from.chunks(rows * len).zip(results.split_into_rows(rows)) {
                let Some(records) = scratch.as_mut_slice().get_mut(..from.len()) else { return };
                let (len, run, keep) = if is_run { (len, from.len(), from.len()) } else { (len, len, results.keep) };
                dispatch_simd(EncodeRecordsLoop { from, run, record, records: &mut *records });
                blocks.try_sort_rows_in_registers(records, len);
                dispatch_simd(DecodeRowsLoop { records, from, run, results: SortOutputs { keep, ..results }, decoder: *decoder });
            }
        },
    );
    failed.into_inner().map_or(Ok(()), Err)
}

/// Encodes the elements of rows of `run` elements as records. The index passed to `record` is the element's index in its row. The loop owns
/// the captures of `record`, so the compiler knows that `records` does not overlap the captures.
struct EncodeRecordsLoop<'a, T, R, F> {
    from: &'a [T],
    run: usize,
    record: F,
    records: &'a mut [R],
}

impl<T: Copy, R, F: Fn(T, usize) -> R> SimdLoop for EncodeRecordsLoop<'_, T, R, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let EncodeRecordsLoop { from, run, record, records } = self;
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

/// Decodes the first `keep` records (see [`SortOutputs`]) of each row of `run` records. The loop owns the decoder, so the compiler knows
/// that the outputs do not overlap the captures of the decoder's closures.
struct DecodeRowsLoop<'a, T, R, D> {
    records: &'a [R],
    from: &'a [T],
    run: usize,
    results: SortOutputs<'a, T>,
    decoder: D,
}

impl<T: RealElement, R: SortRecord, D: DecodeRecord<T, R>> SimdLoop for DecodeRowsLoop<'_, T, R, D> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let DecodeRowsLoop { records, from, run, results: SortOutputs { keep, base, mut values, mut indices, .. }, decoder } = self;
        let (mut start, mut to) = (0, 0);
        while start < from.len().min(records.len()) {
            let (from, records) = (&from[start..start + run], &records[start..start + keep]);
            if let Some(values) = &mut values {
                let values = &mut values[to..to + keep];
                for i in 0..keep {
                    values[i] = decoder.decode_element(records[i], from);
                }
            }
            if let Some(indices) = &mut indices {
                let indices = &mut indices[to..to + keep];
                for i in 0..keep {
                    indices[i] = base + decoder.decode_index(records[i]) as i64;
                }
            }
            (start, to) = (start + run, to + keep);
        }
    }
}

/// Sorts very short rows by a sorting network, one row per SIMD lane.
fn sort_short_rows_by_network<T: RealElement, R: SortRecord, D: DecodeRecord<T, R>>(
    from: &[T],
    len: usize,
    record: impl Fn(T, usize) -> R + Copy + Sync,
    decoder: &D,
    results: SortOutputs<T>,
) {
    let rows = (MAX_SERIAL_RECORDS / len).next_multiple_of(ROWS_PER_NETWORK);
    let state = || (vec![[R::default(); ROWS_PER_NETWORK]; len], vec![R::default(); len]);
    for_each_row_group((from, len), rows, COST_PER_ELEMENT, results, state, |(columns, records), from, results| {
        for (from, results) in from.chunks(ROWS_PER_NETWORK * len).zip(results.split_into_rows(ROWS_PER_NETWORK)) {
            for (lane, row) in from.chunks_exact(len).enumerate() {
                for ((i, &v), column) in row.iter().enumerate().zip(columns.iter_mut()) {
                    column[lane] = record(v, i);
                }
            }
            dispatch_simd(SortColumnsLoop(columns));
            for (lane, (row, results)) in from.chunks_exact(len).zip(results.split_into_rows(1)).enumerate() {
                records.iter_mut().zip(columns.iter()).for_each(|(record, column)| *record = column[lane]);
                DecodingSink { row, results, decoder }.write_records(records);
            }
        }
    });
}

/// Loop that returns the least and the greatest key of the elements. The closure returns the key of an element.
struct KeyExtremesLoop<'a, T, K>(&'a [T], K);

impl<T: Copy, U: UnsignedKey, K: Fn(T) -> U> SimdLoop for KeyExtremesLoop<'_, T, K> {
    type Output = (U, U);
    #[inline(always)]
    fn run(self) -> (U, U) {
        self.0.iter().fold((U::ALL_ONES, U::default()), |(least, greatest), &v| {
            let key = (self.1)(v);
            (least.min(key), greatest.max(key))
        })
    }
}

/// Sorts one row on all threads and writes the requested outputs.
fn sort_long_row<T: RealElement>(row: &[T], order: KeyOrder, results: SortOutputs<T>) -> Result<()> {
    let with_indices = results.indices.is_some();
    let key = move |v: T| order.to_ascending_key(if with_indices { v.sort_key() } else { v.bitwise_key() });
    let ends = threads::map(row.chunks(MAX_SERIAL_RECORDS), row.len(), || (), |_, part| dispatch_simd(KeyExtremesLoop(part, key)))?;
    let (least, greatest) = ends.into_iter().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default();
    let range = greatest.to_u64() - least.to_u64();
    let first = order.to_ascending_key(if order.descending { greatest } else { least });
    let coder = KeyCoder::new(order, KeyCoder::new(order, 0).encode(first));
    if with_indices {
        return sort_long_row_with_indices(row, coder, range, results);
    }
    if range < counting_sort::MAX_KEY_RANGE {
        let of_key = |key: usize| coder.decode::<T>(key as u64);
        return counting_sort::counting_sort(
            row,
            range as usize + 1,
            |v| coder.encode(v.bitwise_key()) as usize,
            of_key,
            results.values.unwrap_or_default(),
        );
    }
    // The `const` conditions depend on the type only, so that sorts that the type does not need are not compiled. Rows of 16-bit elements
    // never reach this branch, because the counting sort handles them.
    if const { size_of::<T>() >= 4 } && range <= INDEX_MASK {
        let source = RecordSource { values: row, record: move |v: T, _| coder.encode(v.bitwise_key()) as u32 };
        let decoder = ClosureDecoder { value: move |r: u32, _: &[T]| coder.decode(r as u64), index: |_| 0 };
        return radix_sort::sort_record_source(&source, 0, (0, range as u32), DecodingSink { row, results, decoder: &decoder });
    }
    if const { size_of::<T>() == 8 } {
        let source = RecordSource { values: row, record: move |v: T, _| coder.encode(v.bitwise_key()) };
        let decoder = ClosureDecoder { value: move |r: u64, _: &[T]| coder.decode(r), index: |_| 0 };
        return radix_sort::sort_record_source(&source, 0, (0, range), DecodingSink { row, results, decoder: &decoder });
    }
    Ok(())
}

/// Sorts one row on all threads and writes the sorted indices, and the values if requested. Keys encoded by `coder` are at most `range`.
fn sort_long_row_with_indices<T: RealElement>(row: &[T], coder: KeyCoder, range: u64, results: SortOutputs<T>) -> Result<()> {
    let index_bits = usize::BITS - (row.len() - 1).leading_zeros();
    // Keys of 16 bits always fit next to the index in 64 bits, because no memory holds 2^48 elements.
    if const { size_of::<T>() < 4 } || range.leading_zeros() >= index_bits {
        let source = RecordSource { values: row, record: move |v: T, i| coder.encode(v.sort_key()) << index_bits | i as u64 };
        let index = move |r: u64| r & ((1 << index_bits) - 1);
        let decoder = ClosureDecoder {
            value: move |r: u64, row: &[T]| restore_zero_or_nan_bits(coder.decode(r >> index_bits), row, index(r)),
            index,
        };
        return radix_sort::sort_record_source(
            &source,
            index_bits,
            (0, range << index_bits),
            DecodingSink { row, results, decoder: &decoder },
        );
    }
    let source = RecordSource { values: row, record: move |v: T, i| KeyIndexPair { key: coder.encode(v.sort_key()), index: i as u64 } };
    let decoder = ClosureDecoder {
        value: move |r: KeyIndexPair, row: &[T]| restore_zero_or_nan_bits(coder.decode(r.key), row, r.index),
        index: |r: KeyIndexPair| r.index,
    };
    let ends = (KeyIndexPair::default(), KeyIndexPair { key: range, index: 0 });
    radix_sort::sort_record_source(&source, 0, ends, DecodingSink { row, results, decoder: &decoder })
}
