//! Reduction of one leaf (a block of consecutive elements) of the tree of pairwise sums, in parallel accumulators.

use std::hint::black_box;

use cuprum_cpu_base::cache_hints::PrefetchState;

use super::Reducer;
use super::arithmetic::Arithmetic;

/// Number of elements in a leaf (a block of consecutive elements) of the pairwise reduction tree: a power of two that divides every tile
/// length.
pub(crate) const LEAF_LEN: usize = 512;

/// Number of accumulators of a leaf of the summation tree, enough to saturate the SIMD units. The number is the same on every processor, so
/// that sums have the same bits.
pub(crate) const LANES: usize = 32;

/// Reduces `values`, a leaf of the pairwise reduction tree, in [`LANES`] accumulators, for an operation that ignores the indices of
/// elements.
#[inline(always)]
pub(crate) fn reduce_values_in_lanes<R: Reducer>(values: &[R::In], prefetch: Option<PrefetchState>) -> R::Acc {
    fold_values_in_lanes(values, prefetch, |v| R::to_accumulator(v, 0), R::merge)
}

/// Converts each value to an accumulator by `start`, merges the accumulators into [`LANES`] parallel ones, and merges these into one.
#[inline(always)]
pub(crate) fn fold_values_in_lanes<T: Copy, A: Copy>(
    values: &[T],
    prefetch: Option<PrefetchState>,
    start: impl Fn(T) -> A,
    merge: impl Fn(A, A) -> A,
) -> A {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let Some((head, chunks)) = chunks.split_first() else {
        let mut acc = start(values[0]);
        for &v in &values[1..] {
            acc = merge(acc, start(v));
        }
        return acc;
    };
    // Loops by index over whole arrays keep the accumulators in registers. The remainder uses a separate array, because its variable
    // length would spill the accumulators to the stack.
    let issue = |chunk: usize| prefetch.iter().for_each(|from| from.advance::<T>(chunk * LANES).prefetch_next::<T>(LANES));
    let mut acc = [start(head[0]); LANES];
    issue(0);
    for i in 0..LANES {
        acc[i] = start(head[i]);
    }
    for (n, chunk) in chunks.iter().enumerate() {
        issue(n + 1);
        for i in 0..LANES {
            acc[i] = merge(acc[i], start(chunk[i]));
        }
    }
    if !rest.is_empty() {
        acc = merge_remainder_into_lanes(acc, rest, start, &merge);
    }
    merge_lanes(acc, merge)
}

/// Merges the values that remain after whole groups of [`LANES`] values into the first accumulators.
#[inline(never)]
fn merge_remainder_into_lanes<T: Copy, A: Copy>(
    mut acc: [A; LANES],
    rest: &[T],
    start: impl Fn(T) -> A,
    merge: impl Fn(A, A) -> A,
) -> [A; LANES] {
    for (acc, &v) in acc.iter_mut().zip(rest) {
        *acc = merge(*acc, start(v));
    }
    acc
}

/// [`LANES`] accumulators, aligned so that whole registers are stored.
#[repr(align(64))]
struct AlignedLanes<A>([A; LANES]);

/// Merges the [`LANES`] accumulators into one, halving their number in each step.
///
/// `black_box` hides the values from the compiler. Without `black_box`, the compiler vectorises the last merges in pairs and uses that
/// layout in the preceding loop too. The reduction of a group of leaves then takes twice as long.
#[inline(always)]
pub(crate) fn merge_lanes<A: Copy>(acc: [A; LANES], merge: impl Fn(A, A) -> A) -> A {
    let AlignedLanes(acc) = black_box(AlignedLanes(acc));
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

/// Returns the sum of the products `a[i] * b[i]`, computed in [`LANES`] accumulators. The slices have at least one element. `prefetch`
/// applies to `a`.
#[inline(always)]
pub(crate) fn sum_products_in_lanes<T: Arithmetic>(a: &[T], b: &[T], prefetch: Option<PrefetchState>) -> T {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    if a.is_empty() {
        return a_rest.iter().zip(b_rest).fold(T::SUM_IDENTITY, |sum, (a, b)| sum.plus(a.times(*b)));
    }
    let issue = |chunk: usize| prefetch.iter().for_each(|from| from.advance::<T>(chunk * LANES).prefetch_next::<T>(LANES));
    let mut acc = [T::SUM_IDENTITY; LANES];
    for c in 0..a.len().min(b.len()) {
        issue(c);
        add_products_to_lanes(&mut acc, &a[c], &b[c]);
    }
    if !a_rest.is_empty() {
        acc = add_remainder_products_to_lanes(acc, a_rest, b_rest);
    }
    merge_lanes(acc, T::plus)
}

/// Adds the last products, fewer than [`LANES`], to the first accumulators. Not inlined, because a loop of variable length would make the
/// compiler spill the accumulators to the stack.
#[inline(never)]
fn add_remainder_products_to_lanes<T: Arithmetic>(mut acc: [T; LANES], a: &[T], b: &[T]) -> [T; LANES] {
    for (acc, (a, b)) in acc.iter_mut().zip(a.iter().zip(b)) {
        *acc = acc.plus(a.times(*b));
    }
    acc
}

/// Adds `line[i] * v[i]` to accumulator `i`. The accumulators are copied, so the compiler knows that no operand overlaps them.
#[inline(always)]
pub(crate) fn add_products_to_lanes<T: Arithmetic>(acc: &mut [T; LANES], line: &[T; LANES], v: &[T; LANES]) {
    let mut sums = *acc;
    for i in 0..LANES {
        sums[i] = sums[i].plus(line[i].times(v[i]));
    }
    *acc = sums;
}

/// Number of leaves (blocks of [`LEAF_LEN`] elements) of the pairwise reduction tree whose reductions are interleaved.
pub(crate) const INTERLEAVED_LEAVES: usize = 4;

/// Number of elements in a group, which is [`INTERLEAVED_LEAVES`] consecutive leaves.
pub(crate) const INTERLEAVED_LEAVES_LEN: usize = INTERLEAVED_LEAVES * LEAF_LEN;

/// Merges the accumulators of four consecutive leaves in pairwise order. The number of earlier leaves in the reduction must be a multiple
/// of [`INTERLEAVED_LEAVES`].
#[inline(always)]
pub(crate) fn merge_leaf_group<R: Reducer>([a, b, c, d]: [R::Acc; INTERLEAVED_LEAVES]) -> R::Acc {
    R::merge(R::merge(a, b), R::merge(c, d))
}

/// Reduces leaf number `n` (a block of [`LEAF_LEN`] elements) of the group of leaves `values`. This is a function, because a closure would
/// not be compiled for the caller's SIMD level.
#[inline(always)]
pub(crate) fn reduce_leaf_of_group<R: Reducer>(values: &[R::In], n: usize, prefetch: Option<PrefetchState>, first: usize) -> R::Acc {
    let (at, prefetch) = (n * LEAF_LEN, prefetch.map(|from| from.advance::<R::In>(n * LEAF_LEN)));
    R::reduce_leaf(None, &values[at..at + LEAF_LEN], prefetch, first + at)
}
