//! Reductions whose innermost axis is reduced (`[kept.. reduced..]`): all elements, rows, or gathered inputs.

use cuprum_core::Result;
use cuprum_cpu_base::cache::benefits_from_prefetch;
use cuprum_cpu_base::threads;
use cuprum_cpu_base::views::Elements;

use crate::reducers::Reducer;
use crate::reducers::lanes::{INTERLEAVE, LEAF};
use crate::reducers::loops::{push_leaves, reduce_leaves, reduce_rows};
use crate::reducers::tree::Tree;
use crate::tile::{Compiled, Evaluator};

/// Minimum number of elements per task when one reduction is split among threads. A power of two of leaves.
pub(super) const BLOCK: usize = 128 * LEAF;

/// Maximum number of elements per task when one reduction is split. Two threads of an EPYC read 64 MiB in 1.27 ms by tasks of 1 MiB, and
/// in 1.34 ms by tasks of 256 KiB or 8 MiB, where the last task runs alone.
const MAX_BLOCK: usize = 4 * BLOCK;

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
fn reduce_in_place<R: Reducer>(evaluator: &Evaluator, start: usize, len: usize, results: &mut [R::Out]) -> bool {
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

/// Reduces rows of `len` elements each into `out`, one result per row.
pub(super) fn reduce<R: Reducer>(compiled: &Compiled, len: usize, out: &mut [R::Out]) -> Result<()> {
    let (tile, rows) = (compiled.tile(), out.len());
    let cost = rows.saturating_mul(len).saturating_mul(compiled.cost());
    let threads = threads::count_for_cost(cost);
    if threads > 1 && rows < 4 * threads && len > BLOCK {
        return split_rows::<R>(compiled, len, cost, out);
    }
    let chunk = if threads == 1 { rows } else { rows.div_ceil(4 * threads).min(MAX_BLOCK / len.max(1)) }.max(1);
    threads::for_each(
        out.chunks_mut(chunk).enumerate(),
        cost,
        || Evaluator::new(compiled),
        |evaluator, (i, results)| {
            let first_row = i * chunk;
            if len < BLOCK && reduce_in_place::<R>(evaluator, first_row * len, len, results) {
                return;
            }
            if len > LEAF {
                for (row, result) in results.iter_mut().enumerate() {
                    if let Some(acc) = reduce_run::<R>(evaluator, tile, (first_row + row) * len, len, 0) {
                        *result = R::finish(acc);
                    }
                }
                return;
            }
            // A tile holds several short rows, each of which is one leaf of the pairwise tree.
            let rows_per_tile = tile / len;
            for (t, results) in results.chunks_mut(rows_per_tile).enumerate() {
                let start = (first_row + t * rows_per_tile) * len;
                let (values, prefetch) = evaluator.read_with_prefetch(start, results.len() * len);
                reduce_rows::<R>(values.typed(), len, prefetch, results);
            }
        },
    );
    Ok(())
}

/// Returns the number of elements per task for a reduction of `len` elements: a power of two of [`BLOCK`], about sixteen tasks per
/// thread.
fn block(len: usize, cost: usize) -> usize {
    let blocks = len / (16 * threads::count_for_cost(cost)) / BLOCK;
    (BLOCK << blocks.max(1).ilog2()).min(MAX_BLOCK)
}

/// Reduces few long rows: threads reduce blocks of each row, then the partial results of the blocks are merged.
fn split_rows<R: Reducer>(compiled: &Compiled, len: usize, cost: usize, out: &mut [R::Out]) -> Result<()> {
    let block = block(len, cost);
    let blocks = len.div_ceil(block);
    let partial = threads::map(
        0..out.len() * blocks,
        cost,
        || Evaluator::new(compiled),
        |evaluator, task| {
            let (row, at) = (task / blocks, task % blocks * block);
            reduce_run::<R>(evaluator, compiled.tile(), row * len + at, block.min(len - at), at)
        },
    )?;
    for (result, blocks) in out.iter_mut().zip(partial.chunks(blocks)) {
        if let Some(acc) = merge_blocks::<R>(blocks) {
            *result = R::finish(acc);
        }
    }
    Ok(())
}

/// Reduces `len` elements from `start` on in blocks that the threads share, with the same bits as [`reduce_run`].
pub(super) fn reduce_blocks<R: Reducer>(compiled: &Compiled, start: usize, len: usize) -> Result<Option<R::Acc>> {
    let cost = len.saturating_mul(compiled.cost());
    let block = block(len, cost);
    let run = |evaluator: &mut Evaluator, n: usize| {
        let at = n * block;
        reduce_run::<R>(evaluator, compiled.tile(), start + at, block.min(len - at), at)
    };
    let partial = threads::map(0..len.div_ceil(block), cost, || Evaluator::new(compiled), run)?;
    Ok(merge_blocks::<R>(&partial))
}

/// Merges the partial results of a reduction's blocks, in order. `None` if there are no elements.
fn merge_blocks<R: Reducer>(blocks: &[Option<R::Acc>]) -> Option<R::Acc> {
    let mut tree = Tree::new();
    blocks.iter().flatten().for_each(|&acc| tree.push(acc, R::merge));
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
