//! Search: where values would go in a sorted array.
//!
//! Several values are looked for side by side: as all take the same number of steps, their reads overlap.

use cuprum_core::call;
use cuprum_core::{Call, Outcome, Result, Work, decline, with_dtype};

use crate::raw::{Elements, Output};
use crate::sort::Ordered;
use crate::threads;

/// Values per task.
const CHUNK: usize = 1 << 13;
/// Values looked for side by side.
const SIDE_BY_SIDE: usize = 16;

/// The Search kernel.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let (Work::Search(call::Search { after_equal }), [sorted, values]) = (&call.work, call.inputs) else {
        decline!("not a search in an array")
    };
    let (sorted, values) = (Elements::contiguous(sorted)?, Elements::contiguous(values)?);
    let mut output = Output::allocate(call, 0)?;
    let out = output.elements()?.typed::<i64>();
    with_dtype!(sorted.dtype(), T => search::<T>(sorted.typed(), values.typed(), *after_equal, out));
    call.done([output.finish()])
}

fn search<T: Ordered>(sorted: &[T], values: &[T], after_equal: bool, out: &mut [i64]) {
    let steps = usize::BITS as usize - sorted.len().leading_zeros() as usize;
    threads::for_each(
        values.chunks(CHUNK).zip(out.chunks_mut(CHUNK)),
        values.len().saturating_mul(2 * steps),
        || (),
        |_, (values, out)| match after_equal {
            true => places(sorted, values, |v, key| v.key() <= key, |v| v.key(), out),
            false => places(sorted, values, |v, key| v.key() < key, |v| v.key(), out),
        },
    );
}

/// How many elements of a sorted array come before each value, by a test of elements against the values' keys.
pub(crate) fn places<T: Copy, V: Copy, K: Copy + Default>(
    sorted: &[T],
    values: &[V],
    before: impl Fn(T, K) -> bool,
    key: impl Fn(V) -> K,
    out: &mut [i64],
) {
    for (values, out) in values.chunks(SIDE_BY_SIDE).zip(out.chunks_mut(SIDE_BY_SIDE)) {
        let mut keys = [K::default(); SIDE_BY_SIDE];
        keys.iter_mut().zip(values).for_each(|(k, &v)| *k = key(v));
        let mut at = [0; SIDE_BY_SIDE];
        // Each place is among the `left` from `at` on, or behind them; both halves take the same next step.
        let mut left = sorted.len();
        while left > 0 {
            let half = left.div_ceil(2);
            for (at, &key) in at.iter_mut().zip(&keys) {
                let middle = *at + half;
                let is_before = sorted.get(middle - 1).is_some_and(|&v| before(v, key));
                *at = if is_before { middle } else { *at };
            }
            left -= half;
        }
        out.iter_mut().zip(at).for_each(|(out, at)| *out = at as i64);
    }
}
