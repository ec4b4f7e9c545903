//! Rows of complex numbers: sorted by the first half of their keys together with their places, then, where that half is equal,
//! by the second.

use cuprum_core::{Complex, Result};

use super::Ordered;
use super::partition::Source;
use super::radix::{self, BLOCK, Sink};
use super::record::Pair;
use super::rows::{Results, Rows, apart, for_each_row};
use crate::raw::Room;
use crate::threads;

/// Cheap operations that an element costs, about.
const COST: usize = 32;

/// A complex element, with the key in two halves.
pub(super) trait Halves: Ordered {
    /// The halves of the key; the second may be 0 where the first says all.
    fn halves(self) -> [u64; 2];
}
impl Halves for Complex<f32> {
    #[inline(always)]
    fn halves(self) -> [u64; 2] {
        [self.key(), 0]
    }
}
impl Halves for Complex<f64> {
    #[inline(always)]
    fn halves(self) -> [u64; 2] {
        let key = self.key();
        [(key >> 64) as u64, key as u64]
    }
}

/// Sorts each row.
pub(super) fn sort<T: Halves>(from: &[T], rows: Rows, descending: bool, results: Results<T>) -> Result<()> {
    let flip = if descending { u64::MAX } else { 0 };
    let alone = |row: &[T], results: Results<T>| long(row, flip, results);
    apart(
        from,
        rows,
        results,
        |len| len > BLOCK,
        alone,
        |from, rows, results| {
            for_each_row(from, rows, COST, results, Vec::new, |keys, row, results| {
                keys.clear();
                keys.extend(row.iter().enumerate().map(|(i, v)| (v.halves().map(|half| half ^ flip), i)));
                match results.nth {
                    Some(nth) => drop(keys.select_nth_unstable(nth)),
                    None => keys.sort_unstable(),
                }
                write(row, results, |n| keys[n].1);
            });
            Ok(())
        },
    )
}

/// Writes results from the places of the sorted elements.
fn write<T: Copy>(row: &[T], results: Results<T>, place: impl Fn(usize) -> usize) {
    if let Some(values) = results.values {
        values.iter_mut().enumerate().for_each(|(n, value)| *value = row[place(n)]);
    }
    if let Some(places) = results.places {
        places.iter_mut().enumerate().for_each(|(n, to)| *to = results.base + place(n) as i64);
    }
}

/// Takes records as they are.
struct Records<'a>(&'a mut [Pair]);

impl Sink<Pair> for Records<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn split_at(self, mid: usize) -> (Self, Self) {
        let (first, rest) = self.0.split_at_mut(mid);
        (Records(first), Records(rest))
    }
    fn take(self, records: &[Pair]) {
        self.0.copy_from_slice(&records[..self.0.len()]);
    }
}

/// One row by all threads.
fn long<T: Halves>(row: &[T], flip: u64, results: Results<T>) -> Result<()> {
    let ends = threads::map(
        row.chunks(BLOCK),
        row.len().saturating_mul(4),
        || (),
        |_, part| {
            let keys = part.iter().map(|v| v.halves()[0] ^ flip);
            keys.fold((u64::MAX, 0), |(least, greatest), key| (key.min(least), key.max(greatest)))
        },
    )?;
    let (least, greatest) = ends.into_iter().fold((u64::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)));
    let end = |key| Pair { key, place: 0 };
    let mut sorted = Room::new(row.len())?;
    let sorted = sorted.records();
    let source = Source { values: row, record: move |v: T, i| Pair { key: v.halves()[0] ^ flip, place: i as u64 } };
    radix::sort(&source, 0, (end(least), end(greatest)), Records(&mut *sorted))?;

    for run in sorted.chunk_by_mut(|a, b| a.key == b.key).filter(|run| run.len() > 1) {
        run.iter_mut().for_each(|record| record.key = row[record.place as usize].halves()[1] ^ flip);
        if run.len() <= BLOCK {
            run.sort_unstable();
            continue;
        }
        let mut again = Room::new(run.len())?;
        again.records().copy_from_slice(run);
        radix::sort_again(again.records(), 0, Records(run))?;
    }
    let tasks: Vec<_> = sorted.chunks(BLOCK).zip(Results { keep: BLOCK, ..results }.chunks(1)).collect();
    threads::for_each(
        tasks.into_iter(),
        row.len().saturating_mul(4),
        || (),
        |_, (records, results)| write(row, results, |n| records[n].place as usize),
    );
    Ok(())
}
