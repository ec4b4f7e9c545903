//! Kernel of the family `Search`: insertion indices of values in a sorted array (`searchsorted`). Also finds whether the sorted array has
//! an element equal to each value.
//!
//! Several binary searches run interleaved. All searches take the same number of steps, so their loads overlap.

use std::hint::select_unpredictable;

use cuprum_core::call::{self, SearchResultKind};
use cuprum_core::{Call, Outcome, Result, Work, decline, with_dtype};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, Output};

use crate::Ordered;

/// Number of values to search for per task.
const VALUES_PER_TASK: usize = 1 << 13;
/// Number of binary searches that run interleaved.
const INTERLEAVED_SEARCHES: usize = 16;

/// Computes the output of `call`, a search for values in a sorted array.
pub fn compute_search(call: &Call) -> Result<Outcome> {
    let (&Work::Search(call::Search { result }), [sorted, values]) = (&call.work, call.inputs) else {
        decline!("not a search in an array")
    };
    let (sorted, values) = (Elements::from_contiguous_array(sorted)?, Elements::from_contiguous_array(values)?);
    let mut output = Output::allocate(call, 0)?;
    let out = output.elements_mut()?;
    with_dtype!(sorted.dtype(), T => match result {
        SearchResultKind::BeforeEqual => search_sorted::<T>(sorted.typed_slice(), values.typed_slice(), false, out.typed_slice()),
        SearchResultKind::AfterEqual => search_sorted::<T>(sorted.typed_slice(), values.typed_slice(), true, out.typed_slice()),
        SearchResultKind::IsFound => write_membership::<T>(sorted.typed_slice(), values.typed_slice(), true, out.typed_slice()),
        SearchResultKind::IsMissing => write_membership::<T>(sorted.typed_slice(), values.typed_slice(), false, out.typed_slice()),
    });
    call.outcome_from_buffers([output.into_buffer()])
}

fn search_sorted<T: Ordered>(sorted: &[T], values: &[T], after_equal: bool, out: &mut [i64]) {
    for_each_task(sorted, values, out, |values, out| match after_equal {
        true => insertion_indices(sorted, values, |v, key| v.sort_key() <= key, |v| v.sort_key(), out),
        false => insertion_indices(sorted, values, |v, key| v.sort_key() < key, |v| v.sort_key(), out),
    });
}

/// Writes to `out`, for each of `values`, `found` if `sorted` has an equal element, and the opposite of `found` if not.
fn write_membership<T: Ordered>(sorted: &[T], values: &[T], found: bool, out: &mut [bool]) {
    for_each_task(sorted, values, out, |values, out| {
        let mut indices = [0; INTERLEAVED_SEARCHES];
        for (values, out) in values.chunks(INTERLEAVED_SEARCHES).zip(out.chunks_mut(INTERLEAVED_SEARCHES)) {
            insertion_indices(sorted, values, |v, key| v.sort_key() < key, |v: T| v.sort_key(), &mut indices[..values.len()]);
            for ((out, &value), &index) in out.iter_mut().zip(values).zip(&indices) {
                *out = sorted.get(index as usize).is_some_and(|&element| element == value) == found;
            }
        }
    });
}

/// Calls `task` for blocks of `values` and `out`, on several threads if that is faster. The length of `sorted` gives the cost of a search.
fn for_each_task<T: Sync, R: Send>(sorted: &[T], values: &[T], out: &mut [R], task: impl Fn(&[T], &mut [R]) + Sync) {
    let steps = usize::BITS as usize - sorted.len().leading_zeros() as usize;
    threads::for_each(
        values.chunks(VALUES_PER_TASK).zip(out.chunks_mut(VALUES_PER_TASK)),
        values.len().saturating_mul(2 * steps),
        || (),
        |_, (values, out)| task(values, out),
    );
}

/// Writes to `out`, for each of `values`, the number of elements of `sorted` that precede the value. `key` returns the key of a value.
/// `before` returns whether an element of `sorted` precedes the value with the given key.
pub fn insertion_indices<T: Copy, V: Copy, K: Copy + Default>(
    sorted: &[T],
    values: &[V],
    before: impl Fn(T, K) -> bool,
    key: impl Fn(V) -> K,
    out: &mut [i64],
) {
    let Some(last) = sorted.len().checked_sub(1) else { return out.fill(0) };
    for (values, out) in values.chunks(INTERLEAVED_SEARCHES).zip(out.chunks_mut(INTERLEAVED_SEARCHES)) {
        let mut keys = [K::default(); INTERLEAVED_SEARCHES];
        keys.iter_mut().zip(values).for_each(|(k, &v)| *k = key(v));
        let mut at = [0; INTERLEAVED_SEARCHES];
        // The insertion index of search `k` is in `at[k]..=at[k] + left`. All searches have the same `left`, which about halves in each
        // step.
        let mut left = sorted.len();
        while left > 0 {
            let half = left.div_ceil(2);
            for (at, &key) in at.iter_mut().zip(&keys) {
                let middle = *at + half;
                // `min` replaces a bounds check. `select_unpredictable` avoids a branch that would be mispredicted half of the time.
                let is_before = before(sorted[(middle - 1).min(last)], key);
                *at = select_unpredictable(is_before, middle, *at);
            }
            left -= half;
        }
        out.iter_mut().zip(at).for_each(|(out, at)| *out = at as i64);
    }
}
