//! Sorts of complex numbers: by the high half of the 128-bit key, then by the low half among numbers with equal high halves.

use cuprum_core::{Complex, Result};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::HostVec;

use crate::Ordered;
use crate::radix_partition::RecordSource;
use crate::radix_sort::{self, MAX_SERIAL_RECORDS, SortSink};
use crate::row_sort::{RowDivision, SortOutputs, for_each_row, sort_long_rows_separately};
use crate::sort_record::KeyIndexPair;

/// Approximate cost of sorting one element, in elementary operations.
const COST_PER_ELEMENT: usize = 32;

/// Complex elements, whose sort key has two halves of 64 bits.
pub(super) trait KeyHalves: Ordered {
    /// Returns the high and low half of the sort key. The low half is 0 if the high half holds the whole key.
    fn key_halves(self) -> [u64; 2];
}
impl KeyHalves for Complex<f32> {
    #[inline(always)]
    fn key_halves(self) -> [u64; 2] {
        [self.sort_key(), 0]
    }
}
impl KeyHalves for Complex<f64> {
    #[inline(always)]
    fn key_halves(self) -> [u64; 2] {
        let key = self.sort_key();
        [(key >> 64) as u64, key as u64]
    }
}

/// Sorts each row of `from`, in descending order if `descending`, and writes the requested values and indices to `results`.
pub(super) fn sort_complex_rows<T: KeyHalves>(from: &[T], rows: RowDivision, descending: bool, results: SortOutputs<T>) -> Result<()> {
    let flip = if descending { u64::MAX } else { 0 };
    let sort_long = |row: &[T], results: SortOutputs<T>| sort_long_row(row, flip, results);
    sort_long_rows_separately(
        from,
        rows,
        results,
        |len| len > MAX_SERIAL_RECORDS,
        sort_long,
        |from, rows, results| {
            for_each_row(from, rows, COST_PER_ELEMENT, results, Vec::new, |keys, row, results| {
                keys.clear();
                keys.extend(row.iter().enumerate().map(|(i, v)| (v.key_halves().map(|half| half ^ flip), i)));
                match results.nth {
                    Some(nth) => drop(keys.select_nth_unstable(nth)),
                    None => keys.sort_unstable(),
                }
                write_results(row, results, |n| keys[n].1);
            });
            Ok(())
        },
    )
}

/// Writes the sorted values and indices of `row` to `results`; `index(n)` is the index in `row` of the `n`th sorted element.
fn write_results<T: Copy>(row: &[T], results: SortOutputs<T>, index: impl Fn(usize) -> usize) {
    if let Some(values) = results.values {
        values.iter_mut().enumerate().for_each(|(n, value)| *value = row[index(n)]);
    }
    if let Some(indices) = results.indices {
        indices.iter_mut().enumerate().for_each(|(n, to)| *to = results.base + index(n) as i64);
    }
}

/// A [`SortSink`] that stores the sorted records themselves.
struct RecordSink<'a>(&'a mut [KeyIndexPair]);

impl SortSink<KeyIndexPair> for RecordSink<'_> {
    fn output_len(&self) -> usize {
        self.0.len()
    }
    fn split_at(self, mid: usize) -> (Self, Self) {
        let (first, rest) = self.0.split_at_mut(mid);
        (RecordSink(first), RecordSink(rest))
    }
    fn write_records(self, records: &[KeyIndexPair]) {
        self.0.copy_from_slice(&records[..self.0.len()]);
    }
}

/// Sorts one row on all threads. `flip` is the mask of key bits to invert for the requested direction.
fn sort_long_row<T: KeyHalves>(row: &[T], flip: u64, results: SortOutputs<T>) -> Result<()> {
    let ends = threads::map(
        row.chunks(MAX_SERIAL_RECORDS),
        row.len().saturating_mul(4),
        || (),
        |_, part| {
            let keys = part.iter().map(|v| v.key_halves()[0] ^ flip);
            keys.fold((u64::MAX, 0), |(least, greatest), key| (key.min(least), key.max(greatest)))
        },
    )?;
    let (least, greatest) = ends.into_iter().fold((u64::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)));
    let end = |key| KeyIndexPair { key, index: 0 };
    let mut sorted = HostVec::allocate(row.len())?;
    let sorted = sorted.as_mut_slice();
    let source = RecordSource { values: row, record: move |v: T, i| KeyIndexPair { key: v.key_halves()[0] ^ flip, index: i as u64 } };
    radix_sort::sort_record_source(&source, 0, (end(least), end(greatest)), RecordSink(&mut *sorted))?;

    for run in sorted.chunk_by_mut(|a, b| a.key == b.key).filter(|run| run.len() > 1) {
        run.iter_mut().for_each(|record| record.key = row[record.index as usize].key_halves()[1] ^ flip);
        if run.len() <= MAX_SERIAL_RECORDS {
            run.sort_unstable();
            continue;
        }
        let mut records = HostVec::allocate(run.len())?;
        records.as_mut_slice().copy_from_slice(run);
        radix_sort::sort_records(records.as_mut_slice(), 0, RecordSink(run))?;
    }
    let tasks: Vec<_> =
        sorted.chunks(MAX_SERIAL_RECORDS).zip(SortOutputs { keep: MAX_SERIAL_RECORDS, ..results }.split_into_rows(1)).collect();
    threads::for_each(
        tasks.into_iter(),
        row.len().saturating_mul(4),
        || (),
        |_, (records, results)| write_results(row, results, |n| records[n].index as usize),
    );
    Ok(())
}
