//! Loops of a reducer over the elements that an evaluator computes, and a table of function pointers to these loops.

use cuprum_core::Element;
use cuprum_cpu_base::cache_hints::{PrefetchState, benefits_from_prefetch};
use cuprum_cpu_base::typed_views::Elements;

use crate::program_evaluation::{CompiledProgram, Evaluator};
use crate::reducers::Reducer;
use crate::reducers::leaf_reduction::{INTERLEAVED_LEAVES, LANES, LEAF_LEN};
use crate::reducers::pairwise_tree::PairwiseTree;
use crate::reducers::reduction_loops::{
    accumulators_to_results, merge_accumulator_slices, merge_rows_into_accumulators, push_leaves, reduce_four_leaves, reduce_rows,
};

/// Minimum number of elements per task when one reduction is split among threads: 128 leaves, a power of two.
pub(super) const MIN_ELEMENTS_PER_TASK: usize = 128 * LEAF_LEN;

/// Function pointers to the loops of a reducer. Code that calls them is compiled once for all reducers with the same types of elements,
/// accumulators and results.
pub(crate) struct ReducerLoops<I, A, O> {
    /// Reduces a range of elements ([`reduce_range`]).
    pub run: fn(&mut Evaluator, usize, usize, usize, usize) -> Option<A>,
    /// Returns the result of a whole range of elements from their accumulator ([`finish_or_recompute_in_order`]).
    pub finish_or_recompute_in_order: fn(&CompiledProgram, usize, usize, A) -> O,
    /// Reduces contiguous rows without evaluation ([`try_reduce_contiguous_rows`]).
    pub in_place: fn(&Evaluator, usize, usize, &mut [O]) -> bool,
    /// Reduces rows of evaluated elements ([`reduce_rows`]).
    pub rows: fn(&[I], usize, Option<PrefetchState>, &mut [O]),
    /// Merges rows into one accumulator per column ([`merge_rows_into_accumulators`]).
    pub columns: fn(&mut Vec<A>, &[&[I]], usize, bool),
    /// Merges two slices of accumulators by index ([`merge_accumulator_slices`]).
    pub merge_accumulator_slices: fn(&mut [A], &[A]),
    /// Converts a slice of accumulators to results ([`accumulators_to_results`]).
    pub accumulators_to_results: fn(&mut [O], &[A]),
    /// Number of rows that column reductions merge sequentially ([`Reducer::ROWS_PER_LEAF`]).
    pub leaf_rows: usize,
    /// Merges two accumulators ([`Reducer::merge`]).
    pub merge: fn(A, A) -> A,
    /// Returns whether the order of merges decides a result ([`Reducer::depends_on_order`]).
    pub depends_on_order: fn(O) -> bool,
}

impl<I: Element, A: Copy + Send + Sync, O: Element> ReducerLoops<I, A, O> {
    /// Returns the loops of the reducer `R`.
    pub fn for_reducer<R: Reducer<In = I, Acc = A, Out = O>>() -> ReducerLoops<I, A, O> {
        ReducerLoops {
            run: reduce_range::<R>,
            finish_or_recompute_in_order: finish_or_recompute_in_order::<R>,
            in_place: try_reduce_contiguous_rows::<R>,
            rows: reduce_rows::<R>,
            columns: merge_rows_into_accumulators::<R>,
            merge_accumulator_slices: merge_accumulator_slices::<R>,
            accumulators_to_results: accumulators_to_results::<R>,
            leaf_rows: R::ROWS_PER_LEAF,
            merge: R::merge,
            depends_on_order: R::depends_on_order,
        }
    }
}

/// Reduces the values `start..start + len` of the evaluator's program. Value `start` is the first value of a leaf of the pairwise reduction
/// tree and has index `first` in its reduction. Returns `None` if `len` is 0.
pub(super) fn reduce_range<R: Reducer>(evaluator: &mut Evaluator, tile: usize, start: usize, len: usize, first: usize) -> Option<R::Acc> {
    let tree = &mut PairwiseTree::new();
    if let Some(product_sum) = R::SUM_PRODUCTS_FUNCTION
        && let Some((factors, prefetch)) = evaluator.borrow_product_factors(start, len)
    {
        product_sum(tree, factors.map(Elements::typed_slice), len, prefetch, &mut []);
        return tree.take_result(R::merge);
    }
    match evaluator.borrow_contiguous_values(start, len) {
        Some((values, prefetch)) => {
            let values = values.typed_slice::<R::In>();
            let whole = if const { R::LEAVES_MAY_INTERLEAVE } { push_prefetched_blocks::<R>(tree, values) } else { 0 };
            push_leaves::<R>(tree, &values[whole..], prefetch.map(|from| from.advance::<R::In>(whole)), first + whole);
        }
        None => {
            for at in (0..len).step_by(tile) {
                let (values, prefetch) = evaluator.evaluate_and_get_prefetch(start + at, tile.min(len - at));
                push_leaves::<R>(tree, values.typed_slice::<R::In>(), prefetch, first + at);
            }
        }
    }
    tree.take_result(R::merge)
}

/// Returns the result of the values `start..start + len` of the program `compiled`, whose accumulator is `acc`. Merges the values again in
/// order if the result depends on the order ([`Reducer::depends_on_order`]).
fn finish_or_recompute_in_order<R: Reducer>(compiled: &CompiledProgram, start: usize, len: usize, acc: R::Acc) -> R::Out {
    let result = R::finish(acc);
    if len <= LANES || !R::depends_on_order(result) {
        return result; // up to `LANES` elements are merged in order
    }
    let (mut evaluator, mut merged) = (Evaluator::new(compiled), None);
    for at in (0..len).step_by(compiled.tile_len()) {
        let values = evaluator.evaluate(start + at, compiled.tile_len().min(len - at));
        if R::merge_in_order_until_final(&mut merged, values.typed_slice(), result) {
            break;
        }
    }
    merged.map_or(result, R::finish)
}

/// Reduces rows of `len` elements in place, from element `start` of the program on, with the same bits as [`reduce_range`]. Returns `false`
/// without reducing unless the values, or the factors of a product, are contiguous in memory.
pub(super) fn try_reduce_contiguous_rows<R: Reducer>(evaluator: &Evaluator, start: usize, len: usize, results: &mut [R::Out]) -> bool {
    let count = results.len() * len;
    if let Some(product_sum) = R::SUM_PRODUCTS_FUNCTION
        && let Some((factors, prefetch)) = evaluator.borrow_product_factors(start, count)
    {
        product_sum(&mut PairwiseTree::new(), factors.map(Elements::typed_slice), len, prefetch, results);
        return true;
    }
    let found = evaluator.borrow_contiguous_values(start, count);
    found.map(|(values, prefetch)| reduce_rows::<R>(values.typed_slice(), len, prefetch, results)).is_some()
}

/// Adds the blocks of [`MIN_ELEMENTS_PER_TASK`] elements at the start of `values` to `tree`, and returns the number of elements in these
/// blocks. Adds nothing on processors that do not [benefit from prefetching](benefits_from_prefetch).
fn push_prefetched_blocks<R: Reducer>(tree: &mut PairwiseTree<R::Acc>, values: &[R::In]) -> usize {
    if !benefits_from_prefetch() {
        return 0;
    }
    let blocks = values.chunks_exact(MIN_ELEMENTS_PER_TASK);
    let whole = values.len() - blocks.remainder().len();
    for acc in blocks.filter_map(reduce_interleaved_quarters::<R>) {
        tree.push_subtree((MIN_ELEMENTS_PER_TASK / LEAF_LEN).ilog2(), acc, R::merge);
    }
    whole
}

/// Reduces `block` with its four quarters interleaved. The number of leaves in a quarter is a power of two, so the result has the same bits
/// as a pairwise reduction of the whole block. Returns `None` if the block is empty.
fn reduce_interleaved_quarters<R: Reducer>(block: &[R::In]) -> Option<R::Acc> {
    let quarter = block.len() / INTERLEAVED_LEAVES;
    let mut trees = [(); INTERLEAVED_LEAVES].map(|_| PairwiseTree::new());
    for at in (0..quarter).step_by(LEAF_LEN) {
        let leaf = |n: usize| &block[n * quarter + at..][..LEAF_LEN];
        let sums = reduce_four_leaves::<R>([leaf(0), leaf(1), leaf(2), leaf(3)]);
        (0..INTERLEAVED_LEAVES).for_each(|n| trees[n].push_leaf(sums[n], R::merge));
    }
    let mut tree = PairwiseTree::new();
    trees.into_iter().filter_map(|mut quarter| quarter.take_result(R::merge)).for_each(|acc| tree.push_leaf(acc, R::merge));
    tree.take_result(R::merge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reducers::reduction_operations::{Max, Sum};
    use crate::reducers::row_reductions::reduce_contiguous;

    /// Runs on every processor, also on processors that do not benefit from prefetching.
    #[test]
    fn quarters_are_reduced_to_the_bits_of_leaves_in_order() {
        let block: Vec<f32> = (0..MIN_ELEMENTS_PER_TASK).map(|i| ((i * 7919) % 10_007) as f32 / 97.0 - 51.0).collect();
        let bits = |acc: Option<f32>| acc.map(f32::to_bits);
        assert_eq!(bits(reduce_interleaved_quarters::<Sum<f32>>(&block)), bits(reduce_contiguous::<Sum<f32>>(&block)));
        assert_eq!(bits(reduce_interleaved_quarters::<Max<f32>>(&block)), bits(reduce_contiguous::<Max<f32>>(&block)));
    }
}
