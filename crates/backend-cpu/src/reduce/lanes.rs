//! A leaf's arithmetic: accumulators side by side, and how they become one.

use std::hint::black_box;

use super::ops::{Reducer, Value};
use crate::cache::Ahead;

/// Elements reduced in one go, before the tree begins. A power of two; tiles are multiples of it.
pub(crate) const LEAF: usize = 512;

/// Accumulators side by side within a leaf: enough for SIMD registers to work at their full rate. Fixed, whatever the
/// processor, so that every one computes the same sum.
pub(super) const LANES: usize = 32;

/// A leaf in [`LANES`] accumulators, for operations that do not look at the index.
#[inline(always)]
pub(super) fn lanes<R: Reducer>(values: &[R::In], ahead: Option<Ahead>) -> R::Acc {
    fold(values, ahead, |v| R::start(v, 0), R::merge)
}

/// `start` of every value, merged in [`LANES`] accumulators; asks for as much memory `ahead` as it reads.
#[inline(always)]
pub(super) fn fold<T: Copy, A: Copy>(values: &[T], ahead: Option<Ahead>, start: impl Fn(T) -> A, merge: impl Fn(A, A) -> A) -> A {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let Some((head, chunks)) = chunks.split_first() else {
        let mut acc = start(values[0]);
        for &v in &values[1..] {
            acc = merge(acc, start(v));
        }
        return acc;
    };
    // Loops over whole arrays by index: the accumulators stay in registers. Those of the rest are another array, as its
    // changing length would put them on the stack.
    let ask = |chunk: usize| ahead.iter().for_each(|from| from.after::<T>(chunk * LANES).ask::<T>(LANES));
    let mut acc = [start(head[0]); LANES];
    ask(0);
    for i in 0..LANES {
        acc[i] = start(head[i]);
    }
    for (n, chunk) in chunks.iter().enumerate() {
        ask(n + 1);
        for i in 0..LANES {
            acc[i] = merge(acc[i], start(chunk[i]));
        }
    }
    if !rest.is_empty() {
        acc = with_rest(acc, rest, start, &merge);
    }
    across(acc, merge)
}

/// The accumulators with fewer values than there are lanes.
#[inline(never)]
fn with_rest<T: Copy, A: Copy>(mut acc: [A; LANES], rest: &[T], start: impl Fn(T) -> A, merge: impl Fn(A, A) -> A) -> [A; LANES] {
    for (acc, &v) in acc.iter_mut().zip(rest) {
        *acc = merge(*acc, start(v));
    }
    acc
}

/// Accumulators where whole registers are stored at once.
#[repr(align(64))]
struct Aligned<A>([A; LANES]);

/// All lanes merged: each half with the other.
///
/// The lanes come from memory, as far as the compiler knows. Else it makes pairs of them, from the last merge backwards, and keeps pairs
/// in the whole loop before: groups of leaves took twice as long.
#[inline(always)]
pub(super) fn across<A: Copy>(acc: [A; LANES], merge: impl Fn(A, A) -> A) -> A {
    let Aligned(acc) = black_box(Aligned(acc));
    macro_rules! halve {
        ($acc:ident, $n:literal) => {{
            let mut half = [$acc[0]; $n];
            for i in 0..$n {
                half[i] = merge($acc[i], $acc[i + $n]);
            }
            half
        }};
    }
    let acc = halve!(acc, 16);
    let acc = halve!(acc, 8);
    let acc = halve!(acc, 4);
    let acc = halve!(acc, 2);
    merge(acc[0], acc[1])
}

/// [`fold`] of the products of as many values of both, at least one; asks for memory `ahead` in the first.
#[inline(always)]
pub(super) fn fold_products<T: Value>(a: &[T], b: &[T], ahead: Option<Ahead>) -> T {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    if a.is_empty() {
        return a_rest.iter().zip(b_rest).fold(T::NOTHING, |sum, (a, b)| sum.plus(a.times(*b)));
    }
    let ask = |chunk: usize| ahead.iter().for_each(|from| from.after::<T>(chunk * LANES).ask::<T>(LANES));
    let mut acc = [T::NOTHING; LANES];
    for c in 0..a.len().min(b.len()) {
        ask(c);
        add_products(&mut acc, &a[c], &b[c]);
    }
    if !a_rest.is_empty() {
        acc = with_products(acc, a_rest, b_rest);
    }
    across(acc, T::plus)
}

/// The accumulators with fewer products than there are lanes, apart as [`with_rest`] is.
#[inline(never)]
fn with_products<T: Value>(mut acc: [T; LANES], a: &[T], b: &[T]) -> [T; LANES] {
    for (acc, (a, b)) in acc.iter_mut().zip(a.iter().zip(b)) {
        *acc = acc.plus(a.times(*b));
    }
    acc
}

/// Adds a product to each accumulator. They are copied out and in, so that the compiler sees that no operand overlaps them.
#[inline(always)]
pub(super) fn add_products<T: Value>(acc: &mut [T; LANES], line: &[T; LANES], v: &[T; LANES]) {
    let mut sums = *acc;
    for i in 0..LANES {
        sums[i] = sums[i].plus(line[i].times(v[i]));
    }
    *acc = sums;
}

/// Leaves that are gone through side by side.
pub(super) const TOGETHER: usize = 4;

/// Their elements.
pub(super) const GROUP: usize = TOGETHER * LEAF;

/// As the tree merges leaves that follow each other, the first of which has a multiple of [`TOGETHER`] before it.
#[inline(always)]
pub(super) fn merge_group<R: Reducer>([a, b, c, d]: [R::Acc; TOGETHER]) -> R::Acc {
    R::merge(R::merge(a, b), R::merge(c, d))
}

/// The `n`th leaf of a group. A function, as a closure would not be compiled for the level of the loop that it stands in.
#[inline(always)]
pub(super) fn leaf_of<R: Reducer>(values: &[R::In], n: usize, ahead: Option<Ahead>, first: usize) -> R::Acc {
    let (at, ahead) = (n * LEAF, ahead.map(|from| from.after::<R::In>(n * LEAF)));
    R::leaf(&values[at..at + LEAF], ahead, first + at)
}
