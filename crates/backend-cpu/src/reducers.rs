//! Reduction operations (sum, minimum and others) and their loops over values in memory.

pub(crate) mod arithmetic;
pub(crate) mod dtype_selection;
pub(crate) mod leaf_reduction;
pub(crate) mod ordered_products;
pub(crate) mod pairwise_tree;
pub(crate) mod reduction_loops;
pub(crate) mod reduction_operations;
pub(crate) mod row_reductions;

use cuprum_core::Element;
use cuprum_cpu_base::cache_hints::PrefetchState;

use self::leaf_reduction::{INTERLEAVED_LEAVES, merge_leaf_group, reduce_leaf_of_group, reduce_values_in_lanes};
use self::pairwise_tree::PairwiseTree;

/// A reduction operation. Each element is converted to an accumulator, accumulators are merged pairwise, and the final accumulator is
/// converted to the result.
pub(crate) trait Reducer: Sized + 'static {
    /// Type of the reduced elements.
    type In: Element;
    /// Type of the accumulators.
    type Acc: Copy + Send + Sync;
    /// Type of the result.
    type Out: Element;

    /// Whether the loops are also compiled for AVX-512. If false, processors with AVX-512 run the version for AVX2, which suffices for
    /// rarely used dtypes.
    const HAS_AVX512_VERSION: bool = true;

    /// Whether the result for a leaf (a block of consecutive elements) equals the merge of the accumulators of its elements. Several leaves
    /// may then be reduced interleaved.
    const LEAVES_MAY_INTERLEAVE: bool = false;

    /// Whether [`ReduceRowsLoop`](reduction_loops::ReduceRowsLoop) reduces whole groups of [`INTERLEAVED_LEAVES`] leaves in a second loop,
    /// whose length is known at compile time. Reductions of complex numbers gain nothing from it.
    const HAS_LEAF_GROUP_LOOP: bool = true;

    /// Number of consecutive rows that column reductions merge sequentially into one leaf of the pairwise reduction tree. A power of two.
    const ROWS_PER_LEAF: usize = 16;

    /// A function that sums products without storing them in memory, with the same bits as a sum over stored products. `None` if the
    /// reduction has no such function.
    const SUM_PRODUCTS_FUNCTION: Option<SumProductsFunction<Self>> = None;

    /// Returns the accumulator of the element `value`, which has index `index` in its reduction.
    fn to_accumulator(value: Self::In, index: usize) -> Self::Acc;
    /// Merges two accumulators; the elements that `a` covers precede those of `b`.
    fn merge(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// Returns the result of a reduction from its last accumulator.
    fn finish(acc: Self::Acc) -> Self::Out;

    /// Returns whether a reduction with the result `_result` depends on the order of the merges, such as a product whose partial products
    /// overflow. The elements are then merged again in order ([`Reducer::merge_in_order_until_final`]).
    #[inline(always)]
    fn depends_on_order(_result: Self::Out) -> bool {
        false
    }

    /// Merges `values` in order into `acc`, the accumulator of the earlier elements. `_result` is the result of the whole reduction, merged
    /// in pairwise order. Returns `true` if later elements cannot change the accumulator.
    fn merge_in_order_until_final(acc: &mut Option<Self::Acc>, values: &[Self::In], _result: Self::Out) -> bool {
        *acc = values.iter().map(|v| Self::to_accumulator(*v, 0)).fold(*acc, |acc, v| Some(acc.map_or(v, |acc| Self::merge(acc, v))));
        false
    }

    /// Reduces a leaf of 1 to [`LEAF_LEN`](leaf_reduction::LEAF_LEN) elements. The first element has index `_first` in its reduction.
    ///
    /// `_earlier` is the accumulator of earlier elements of the same reduction. An implementation may use it to skip work that cannot
    /// change the result. `prefetch` is the state of software prefetching for `values`, or `None` without such prefetching.
    #[inline(always)]
    fn reduce_leaf(_earlier: Option<Self::Acc>, values: &[Self::In], prefetch: Option<PrefetchState>, _first: usize) -> Self::Acc {
        reduce_values_in_lanes::<Self>(values, prefetch)
    }

    /// Reduces [`INTERLEAVED_LEAVES`] consecutive leaves and merges their accumulators in pairwise order. `_earlier` and `prefetch` are as
    /// in [`Reducer::reduce_leaf`].
    #[inline(always)]
    fn reduce_leaf_group(_earlier: Option<Self::Acc>, values: &[Self::In], prefetch: Option<PrefetchState>, first: usize) -> Self::Acc {
        let mut parts = [Self::to_accumulator(values[0], first); INTERLEAVED_LEAVES];
        for (n, part) in parts.iter_mut().enumerate() {
            *part = reduce_leaf_of_group::<Self>(values, n, prefetch, first);
        }
        merge_leaf_group::<Self>(parts)
    }

    /// Merges `rows` into one accumulator per column, by a loop that is faster than one merge per element. The first row has index `_first`
    /// in the reductions. `_begin` is whether the first row starts new reductions. Returns `false` without merging if the reducer has no
    /// such loop.
    #[inline(always)]
    fn try_merge_rows(_acc: &mut [Self::Acc], _rows: &[&[Self::In]], _first: usize, _begin: bool) -> bool {
        false
    }
}

/// Function type of [`sum_products`](reduction_loops::sum_products). Its arguments are the pairwise reduction tree, both factors, the row
/// length, the prefetching state and the results.
pub(crate) type SumProductsFunction<R> =
    fn(&mut PairwiseTree<<R as Reducer>::Acc>, [&[<R as Reducer>::In]; 2], usize, Option<PrefetchState>, &mut [<R as Reducer>::Out]);
