//! Sort: rows in NumPy's order, their values, the places they came from, or both.

mod key;

use std::cmp::Reverse;

use cuprum_core::array::Array;
use cuprum_core::{Call, Outcome, Result, Work, decline, with_dtype};

pub(crate) use self::key::Ordered;
use crate::raw::{Elements, Output};
use crate::threads;

/// The Sort kernel.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let (Work::Sort(sort), [input]) = (&call.work, call.inputs) else { decline!("not a sort of an array") };
    let layout = input.layout();
    let len = layout.shape().last().copied().unwrap_or(1);
    let elements = Elements::buffer(input)?.slice(layout.offset(), layout.size());
    let mut outputs = (0..call.outputs.len()).map(|n| Output::allocate(call, n)).collect::<Result<Vec<_>>>()?;
    let keep = call.outputs[0].layout.shape().last().copied().unwrap_or(1);
    if layout.size() > 0 && keep > 0 {
        let (values, places) = match (&mut outputs[..], sort.values) {
            ([values, places], _) => (Some(values.elements()?), Some(places.elements()?)),
            ([values], true) => (Some(values.elements()?), None),
            ([places], false) => (None, Some(places.elements()?)),
            _ => decline!("a sort for nothing"),
        };
        with_dtype!(elements.dtype(), T => {
            let values = values.map(|v| v.typed::<T>());
            let places = places.map(|p| p.typed::<i64>());
            rows::<T>(elements.typed(), len, keep, sort.descending, values, places)
        });
    }
    call.done(outputs.into_iter().map(Output::finish))
}

/// Sorts each row of `len` elements; writes the first `keep` values and places of each.
fn rows<T: Ordered>(from: &[T], len: usize, keep: usize, descending: bool, values: Option<&mut [T]>, places: Option<&mut [i64]>) {
    let rows = from.len() / len;
    let parts = |n: usize| -> Vec<Option<()>> { (0..n).map(|_| None).collect() };
    let values: Vec<Option<&mut [T]>> = match values {
        Some(values) => values.chunks_mut(keep).map(Some).collect(),
        None => parts(rows).into_iter().map(|_| None).collect(),
    };
    let places: Vec<Option<&mut [i64]>> = match places {
        Some(places) => places.chunks_mut(keep).map(Some).collect(),
        None => parts(rows).into_iter().map(|_| None).collect(),
    };
    let tasks: Vec<_> = from.chunks(len).zip(values).zip(places).collect();
    threads::for_each(
        tasks.into_iter(),
        from.len().saturating_mul(32),
        Vec::new,
        |records: &mut Vec<(T::Key, usize)>, ((from, values), places)| {
            records.clear();
            records.extend(from.iter().enumerate().map(|(i, v)| (v.key(), i)));
            match descending {
                true => records.sort_by_key(|&(key, _)| Reverse(key)),
                false => records.sort(),
            }
            if let Some(values) = values {
                values.iter_mut().zip(&*records).for_each(|(value, record)| *value = from[record.1]);
            }
            if let Some(places) = places {
                places.iter_mut().zip(&*records).for_each(|(place, record)| *place = record.1 as i64);
            }
        },
    );
}
