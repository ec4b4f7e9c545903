//! Reductions whose elements follow each other in the loop (`[kept.. reduced..]`): all, rows, and what has to be gathered.

use cuprum_core::Result;

use super::lanes::{LEAF, TOGETHER};
use super::loops::{leaves, push_leaves, reduce_rows};
use super::ops::Reducer;
use super::tree::Tree;
use crate::cache::gains_by_asking;
use crate::raw::Elements;
use crate::threads;
use crate::tile::{Compiled, Evaluator};

/// Elements of a reduction that is split between threads that one task takes: a power of two leaves.
pub(super) const BLOCK: usize = 128 * LEAF;

/// The most elements that one task takes where there are others: two threads of an EPYC read 64 MiB a MiB at a time by turns in 1.27 ms, in
/// 1.34 a quarter at a time, and in 1.34 eight at a time, at the end of which one waits for the other.
const LONGEST_BLOCK: usize = 4 * BLOCK;

/// Reduces points `start..start + len` of the program; the first of them is the `first`th of its reduction and begins a leaf.
pub(super) fn reduce_run<R: Reducer>(evaluator: &mut Evaluator, tile: usize, start: usize, len: usize, first: usize) -> Option<R::Acc> {
    let tree = &mut Tree::new();
    if let Some(of_products) = R::OF_PRODUCTS
        && let Some((factors, ahead)) = evaluator.factors(start, len)
    {
        of_products(tree, factors.map(Elements::typed), len, ahead, &mut []);
        return tree.take(R::merge);
    }
    match evaluator.in_place(start, len) {
        Some((values, ahead)) => {
            let values = values.typed::<R::In>();
            let whole = if R::PLAIN && gains_by_asking() { len / BLOCK * BLOCK } else { 0 };
            for acc in values[..whole].chunks_exact(BLOCK).filter_map(in_quarters::<R>) {
                tree.push_run((BLOCK / LEAF).ilog2(), acc, R::merge);
            }
            push_leaves::<R>(tree, &values[whole..], ahead.map(|from| from.after::<R::In>(whole)), first + whole);
        }
        None => {
            for at in (0..len).step_by(tile) {
                let (values, ahead) = evaluator.read_with_ahead(start + at, tile.min(len - at));
                push_leaves::<R>(tree, values.typed::<R::In>(), ahead, first + at);
            }
        }
    }
    tree.take(R::merge)
}

/// Reduces rows of `len` points each from `start` on to the bits of [`reduce_run`], if all of them are found where they lie, one after the
/// other.
fn reduce_in_place<R: Reducer>(evaluator: &Evaluator, start: usize, len: usize, results: &mut [R::Out]) -> bool {
    let count = results.len() * len;
    if let Some(of_products) = R::OF_PRODUCTS
        && let Some((factors, ahead)) = evaluator.factors(start, count)
    {
        of_products(&mut Tree::new(), factors.map(Elements::typed), len, ahead, results);
        return true;
    }
    let found = evaluator.in_place(start, count);
    found.map(|(values, ahead)| reduce_rows::<R>(values.typed(), len, ahead, results)).is_some()
}

/// Reduces a row that lies in memory: to the bits of [`reduce`].
pub(super) fn reduce_values<R: Reducer>(row: &[R::In]) -> Option<R::Acc> {
    let tree = &mut Tree::new();
    push_leaves::<R>(tree, row, None, 0);
    tree.take(R::merge)
}

/// Reduces a block whose quarters are gone through side by side. Each is a power of two leaves, so that the tree is that of the block.
fn in_quarters<R: Reducer>(block: &[R::In]) -> Option<R::Acc> {
    let quarter = block.len() / TOGETHER;
    let mut trees = [(); TOGETHER].map(|_| Tree::new());
    for at in (0..quarter).step_by(LEAF) {
        let leaf = |n: usize| &block[n * quarter + at..][..LEAF];
        let sums = leaves::<R>([leaf(0), leaf(1), leaf(2), leaf(3)]);
        (0..TOGETHER).for_each(|n| trees[n].push(sums[n], R::merge));
    }
    let mut tree = Tree::new();
    trees.into_iter().filter_map(|mut quarter| quarter.take(R::merge)).for_each(|acc| tree.push(acc, R::merge));
    tree.take(R::merge)
}

/// Reduces rows of `len` points each into `out`, one result per row.
pub(super) fn reduce<R: Reducer>(compiled: &Compiled, len: usize, out: &mut [R::Out]) -> Result<()> {
    let (tile, rows) = (compiled.tile(), out.len());
    let cost = rows.saturating_mul(len).saturating_mul(compiled.cost());
    let threads = threads::worth(cost);
    if threads > 1 && rows < 4 * threads && len > BLOCK {
        return split_rows::<R>(compiled, len, cost, out);
    }
    let chunk = if threads == 1 { rows } else { rows.div_ceil(4 * threads).min(LONGEST_BLOCK / len.max(1)) }.max(1);
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
            // Several short rows per tile, each one leaf.
            let rows_per_tile = tile / len;
            for (t, results) in results.chunks_mut(rows_per_tile).enumerate() {
                let start = (first_row + t * rows_per_tile) * len;
                let (values, ahead) = evaluator.read_with_ahead(start, results.len() * len);
                reduce_rows::<R>(values.typed(), len, ahead, results);
            }
        },
    );
    Ok(())
}

/// Elements that a task takes of a reduction of `len`: a power of two of [`BLOCK`], so that each thread has sixteen.
fn block(len: usize, cost: usize) -> usize {
    let blocks = len / (16 * threads::worth(cost)) / BLOCK;
    (BLOCK << blocks.max(1).ilog2()).min(LONGEST_BLOCK)
}

/// Few long rows: blocks of each by different threads, then the rest of each row's tree.
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
        if let Some(acc) = finished::<R>(blocks) {
            *result = R::finish(acc);
        }
    }
    Ok(())
}

/// [`reduce_run`] of a whole reduction whose blocks different threads take.
pub(super) fn reduce_blocks<R: Reducer>(compiled: &Compiled, start: usize, len: usize) -> Result<Option<R::Acc>> {
    let cost = len.saturating_mul(compiled.cost());
    let block = block(len, cost);
    let run = |evaluator: &mut Evaluator, n: usize| {
        let at = n * block;
        reduce_run::<R>(evaluator, compiled.tile(), start + at, block.min(len - at), at)
    };
    let partial = threads::map(0..len.div_ceil(block), cost, || Evaluator::new(compiled), run)?;
    Ok(finished::<R>(&partial))
}

/// The result of a reduction's blocks, in their order.
fn finished<R: Reducer>(blocks: &[Option<R::Acc>]) -> Option<R::Acc> {
    let mut tree = Tree::new();
    blocks.iter().flatten().for_each(|&acc| tree.push(acc, R::merge));
    tree.take(R::merge)
}

#[cfg(test)]
mod tests {
    use super::super::ops::{Max, Sum};
    use super::*;

    /// Whatever this machine's processor gains by.
    #[test]
    fn quarters_are_reduced_to_the_bits_of_leaves_in_order() {
        let block: Vec<f32> = (0..BLOCK).map(|i| ((i * 7919) % 10_007) as f32 / 97.0 - 51.0).collect();
        let bits = |acc: Option<f32>| acc.map(f32::to_bits);
        assert_eq!(bits(in_quarters::<Sum<f32>>(&block)), bits(reduce_values::<Sum<f32>>(&block)));
        assert_eq!(bits(in_quarters::<Max<f32>>(&block)), bits(reduce_values::<Max<f32>>(&block)));
    }
}
