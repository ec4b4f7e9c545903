//! The loops of a reducer over an evaluator's elements, and the table of them that the code around them takes.

use cuprum_core::Element;
use cuprum_cpu_base::cache::{Prefetch, benefits_from_prefetch};
use cuprum_cpu_base::views::Elements;

use crate::reducers::Reducer;
use crate::reducers::lanes::{INTERLEAVE, LEAF};
use crate::reducers::loops::{finish_each, merge_each, push_leaves, reduce_columns, reduce_leaves, reduce_rows};
use crate::reducers::tree::Tree;
use crate::tile::Evaluator;

/// Minimum number of elements per task when one reduction is split among threads. A power of two of leaves.
pub(super) const BLOCK: usize = 128 * LEAF;

/// The loops of a reducer, as functions. The code that calls them is compiled for the types of elements, accumulators and results, and
/// several reducers have the same.
pub(crate) struct Loops<I, A, O> {
    /// [`reduce_run`].
    pub run: fn(&mut Evaluator, usize, usize, usize, usize) -> Option<A>,
    /// [`reduce_in_place`].
    pub in_place: fn(&Evaluator, usize, usize, &mut [O]) -> bool,
    /// [`reduce_rows`].
    pub rows: fn(&[I], usize, Option<Prefetch>, &mut [O]),
    /// [`reduce_columns`].
    pub columns: fn(&mut Vec<A>, &[&[I]], usize, bool),
    /// [`merge_each`].
    pub merge_each: fn(&mut [A], &[A]),
    /// [`finish_each`].
    pub finish_each: fn(&mut [O], &[A]),
    /// [`Reducer::merge`].
    pub merge: fn(A, A) -> A,
    /// [`Reducer::finish`].
    pub finish: fn(A) -> O,
}

impl<I: Element, A: Copy + Send + Sync, O: Element> Loops<I, A, O> {
    /// Returns the loops of a reducer.
    pub fn of<R: Reducer<In = I, Acc = A, Out = O>>() -> Loops<I, A, O> {
        Loops {
            run: reduce_run::<R>,
            in_place: reduce_in_place::<R>,
            rows: reduce_rows::<R>,
            columns: reduce_columns::<R>,
            merge_each: merge_each::<R>,
            finish_each: finish_each::<R>,
            merge: R::merge,
            finish: R::finish,
        }
    }
}

/// Reduces the elements `start..start + len` of the program. Element `start` has index `first` in its reduction and begins a leaf.
pub(super) fn reduce_run<R: Reducer>(evaluator: &mut Evaluator, tile: usize, start: usize, len: usize, first: usize) -> Option<R::Acc> {
    let tree = &mut Tree::new();
    if let Some(product_sum) = R::PRODUCT_SUM
        && let Some((factors, prefetch)) = evaluator.factors(start, len)
    {
        product_sum(tree, factors.map(Elements::typed), len, prefetch, &mut []);
        return tree.take(R::merge);
    }
    match evaluator.in_place(start, len) {
        Some((values, prefetch)) => {
            let values = values.typed::<R::In>();
            let whole = if R::SIMPLE_LEAF && benefits_from_prefetch() { len / BLOCK * BLOCK } else { 0 };
            for acc in values[..whole].chunks_exact(BLOCK).filter_map(reduce_quarters::<R>) {
                tree.push_run((BLOCK / LEAF).ilog2(), acc, R::merge);
            }
            push_leaves::<R>(tree, &values[whole..], prefetch.map(|from| from.advance::<R::In>(whole)), first + whole);
        }
        None => {
            for at in (0..len).step_by(tile) {
                let (values, prefetch) = evaluator.read_with_prefetch(start + at, tile.min(len - at));
                push_leaves::<R>(tree, values.typed::<R::In>(), prefetch, first + at);
            }
        }
    }
    tree.take(R::merge)
}

/// Reduces rows of `len` elements in place, with the same bits as [`reduce_run`]. Returns `false` if the rows are not contiguous in memory.
pub(super) fn reduce_in_place<R: Reducer>(evaluator: &Evaluator, start: usize, len: usize, results: &mut [R::Out]) -> bool {
    let count = results.len() * len;
    if let Some(product_sum) = R::PRODUCT_SUM
        && let Some((factors, prefetch)) = evaluator.factors(start, count)
    {
        product_sum(&mut Tree::new(), factors.map(Elements::typed), len, prefetch, results);
        return true;
    }
    let found = evaluator.in_place(start, count);
    found.map(|(values, prefetch)| reduce_rows::<R>(values.typed(), len, prefetch, results)).is_some()
}

/// Reduces `block` with its four quarters interleaved. A quarter has a power of two of leaves, so the pairwise tree is that of the
/// block.
fn reduce_quarters<R: Reducer>(block: &[R::In]) -> Option<R::Acc> {
    let quarter = block.len() / INTERLEAVE;
    let mut trees = [(); INTERLEAVE].map(|_| Tree::new());
    for at in (0..quarter).step_by(LEAF) {
        let leaf = |n: usize| &block[n * quarter + at..][..LEAF];
        let sums = reduce_leaves::<R>([leaf(0), leaf(1), leaf(2), leaf(3)]);
        (0..INTERLEAVE).for_each(|n| trees[n].push(sums[n], R::merge));
    }
    let mut tree = Tree::new();
    trees.into_iter().filter_map(|mut quarter| quarter.take(R::merge)).for_each(|acc| tree.push(acc, R::merge));
    tree.take(R::merge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reducers::in_memory::reduce_values;
    use crate::reducers::ops::{Max, Sum};

    /// Runs on every processor, also on processors that do not benefit from prefetching.
    #[test]
    fn quarters_are_reduced_to_the_bits_of_leaves_in_order() {
        let block: Vec<f32> = (0..BLOCK).map(|i| ((i * 7919) % 10_007) as f32 / 97.0 - 51.0).collect();
        let bits = |acc: Option<f32>| acc.map(f32::to_bits);
        assert_eq!(bits(reduce_quarters::<Sum<f32>>(&block)), bits(reduce_values::<Sum<f32>>(&block)));
        assert_eq!(bits(reduce_quarters::<Max<f32>>(&block)), bits(reduce_values::<Max<f32>>(&block)));
    }
}
