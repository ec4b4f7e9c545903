//! Reductions whose innermost axis is reduced (`[kept.. reduced..]`): each result is the reduction of one row of elements.

use cuprum_core::{Element, Result};
use cuprum_cpu_base::threads;

use super::reducer_loops::{MIN_ELEMENTS_PER_TASK, ReducerLoops};
use crate::program_evaluation::{CompiledProgram, Evaluator};
use crate::reducers::leaf_reduction::LEAF_LEN;
use crate::reducers::pairwise_tree::PairwiseTree;

/// Maximum number of elements per task when one reduction is split. Two threads of an EPYC read 64 MiB in 1.27 ms with tasks of 1 MiB, and
/// in 1.34 ms with tasks of 256 KiB or 8 MiB. Long tasks leave one thread idle at the end.
const MAX_ELEMENTS_PER_TASK: usize = 4 * MIN_ELEMENTS_PER_TASK;

/// Reduces rows of `len` elements each into `out`, one result per row.
pub(super) fn reduce_all_rows<I: Element, A: Copy + Send + Sync, O: Element>(
    compiled: &CompiledProgram,
    len: usize,
    out: &mut [O],
    loops: &ReducerLoops<I, A, O>,
) -> Result<()> {
    let (tile, rows) = (compiled.tile_len(), out.len());
    let cost = rows.saturating_mul(len).saturating_mul(compiled.cost_per_element());
    let threads = threads::threads_for_cost(cost);
    if threads > 1 && rows < 4 * threads && len > MIN_ELEMENTS_PER_TASK {
        return reduce_rows_in_blocks(compiled, len, cost, out, loops);
    }
    let chunk = if threads == 1 { rows } else { rows.div_ceil(4 * threads).min(MAX_ELEMENTS_PER_TASK / len.max(1)) }.max(1);
    threads::for_each(
        out.chunks_mut(chunk).enumerate(),
        cost,
        || Evaluator::new(compiled),
        |evaluator, (i, results)| {
            let first_row = i * chunk;
            if len < MIN_ELEMENTS_PER_TASK && (loops.in_place)(evaluator, first_row * len, len, results) {
                return;
            }
            if len > LEAF_LEN {
                for (row, result) in results.iter_mut().enumerate() {
                    let start = (first_row + row) * len;
                    if let Some(acc) = (loops.run)(evaluator, tile, start, len, 0) {
                        *result = (loops.finish_or_recompute_in_order)(compiled, start, len, acc);
                    }
                }
                return;
            }
            // A tile holds several short rows. Each row is one leaf of the pairwise summation tree.
            let rows_per_tile = tile / len;
            for (t, results) in results.chunks_mut(rows_per_tile).enumerate() {
                let start = (first_row + t * rows_per_tile) * len;
                let (values, prefetch) = evaluator.evaluate_and_get_prefetch(start, results.len() * len);
                (loops.rows)(values.typed_slice(), len, prefetch, results);
            }
        },
    );
    Ok(())
}

/// Returns the number of elements per task for a reduction of `len` elements: [`MIN_ELEMENTS_PER_TASK`] times a power of two, for about
/// sixteen tasks per thread, and at most [`MAX_ELEMENTS_PER_TASK`].
fn choose_elements_per_task(len: usize, cost: usize) -> usize {
    let blocks = len / (16 * threads::threads_for_cost(cost)) / MIN_ELEMENTS_PER_TASK;
    (MIN_ELEMENTS_PER_TASK << blocks.max(1).ilog2()).min(MAX_ELEMENTS_PER_TASK)
}

/// Reduces few long rows of `len` elements each: threads reduce blocks of each row, then the partial results of the blocks are merged.
fn reduce_rows_in_blocks<I, A: Copy + Send + Sync, O>(
    compiled: &CompiledProgram,
    len: usize,
    cost: usize,
    out: &mut [O],
    loops: &ReducerLoops<I, A, O>,
) -> Result<()> {
    let block = choose_elements_per_task(len, cost);
    let blocks = len.div_ceil(block);
    let partial = threads::map(
        0..out.len() * blocks,
        cost,
        || Evaluator::new(compiled),
        |evaluator, task| {
            let (row, at) = (task / blocks, task % blocks * block);
            (loops.run)(evaluator, compiled.tile_len(), row * len + at, block.min(len - at), at)
        },
    )?;
    for (row, (result, blocks)) in out.iter_mut().zip(partial.chunks(blocks)).enumerate() {
        if let Some(acc) = merge_block_results(blocks, loops) {
            *result = (loops.finish_or_recompute_in_order)(compiled, row * len, len, acc);
        }
    }
    Ok(())
}

/// Reduces `len` elements from `start` on in blocks, on several threads, with the same bits as
/// [`reduce_range`](super::reducer_loops::reduce_range). Returns `None` if `len` is 0.
pub(super) fn reduce_range_in_blocks<I, A: Copy + Send + Sync, O>(
    compiled: &CompiledProgram,
    start: usize,
    len: usize,
    loops: &ReducerLoops<I, A, O>,
) -> Result<Option<A>> {
    let cost = len.saturating_mul(compiled.cost_per_element());
    let block = choose_elements_per_task(len, cost);
    let run = |evaluator: &mut Evaluator, n: usize| {
        let at = n * block;
        (loops.run)(evaluator, compiled.tile_len(), start + at, block.min(len - at), at)
    };
    let partial = threads::map(0..len.div_ceil(block), cost, || Evaluator::new(compiled), run)?;
    Ok(merge_block_results(&partial, loops))
}

/// Merges the partial results of a reduction's blocks, in order. `None` if there are no elements.
fn merge_block_results<I, A: Copy, O>(blocks: &[Option<A>], loops: &ReducerLoops<I, A, O>) -> Option<A> {
    let mut tree = PairwiseTree::new();
    blocks.iter().flatten().for_each(|&acc| tree.push_leaf(acc, loops.merge));
    tree.take_result(loops.merge)
}
