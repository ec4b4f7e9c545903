//! Reductions whose elements follow each other in the loop (`[kept.. reduced..]`): all, rows, and what has to be gathered.

use super::ops::{GROUP, LEAF, Reducer, TOGETHER, group, leaf, leaves};
use super::tree::Tree;
use crate::cache::{Ahead, gains_by_asking};
use crate::raw::Elements;
use crate::threads;
use crate::tile::{Compiled, Evaluator};

/// Elements of a reduction that is split between threads that one task takes: a power of two leaves.
pub(super) const BLOCK: usize = 128 * LEAF;

/// Reduces points `start..start + len` of the program; the first of them is the `first`th of its reduction and begins a leaf.
pub(super) fn reduce_run<R: Reducer>(evaluator: &mut Evaluator, tile: usize, start: usize, len: usize, first: usize) -> Option<R::Acc> {
    if len == 0 {
        return None;
    }
    let mut tree = Tree::new();
    if let Some((group, leaf)) = R::OF_PRODUCTS
        && let Some((factors, ahead)) = evaluator.factors(start, len)
    {
        let [a, b] = factors.map(Elements::typed::<R::In>);
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<GROUP>(), b.as_chunks::<GROUP>());
        let ahead_at = |at: usize| ahead.map(|from| from.after::<R::In>(at));
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            tree.push_run(TOGETHER.ilog2(), group([a, b], ahead_at(i * GROUP)), R::merge);
        }
        let done = a.len() * GROUP;
        for (i, (a, b)) in a_rest.chunks(LEAF).zip(b_rest.chunks(LEAF)).enumerate() {
            tree.push(leaf([a, b], ahead_at(done + i * LEAF)), R::merge);
        }
        return tree.finish(R::merge);
    }
    match evaluator.in_place(start, len) {
        Some((values, ahead)) => {
            let values = values.typed::<R::In>();
            let whole = if R::PLAIN && gains_by_asking() { len / BLOCK * BLOCK } else { 0 };
            for acc in values[..whole].chunks_exact(BLOCK).filter_map(in_quarters::<R>) {
                tree.push_run((BLOCK / LEAF).ilog2(), acc, R::merge);
            }
            push_leaves::<R>(&mut tree, &values[whole..], ahead.map(|from| from.after::<R::In>(whole)), first + whole);
        }
        None => {
            for at in (0..len).step_by(tile) {
                let (values, ahead) = evaluator.read_with_ahead(start + at, tile.min(len - at));
                push_leaves::<R>(&mut tree, values.typed::<R::In>(), ahead, first + at);
            }
        }
    }
    tree.finish(R::merge)
}

/// Reduces a row that lies in memory: to the bits of [`reduce`].
pub(super) fn reduce_values<R: Reducer>(row: &[R::In]) -> Option<R::Acc> {
    let mut tree = Tree::new();
    push_leaves::<R>(&mut tree, row, None, 0);
    tree.finish(R::merge)
}

/// The next leaves of a tree, groups of them together: it holds a multiple of a group, unless these are fewer than one.
#[inline]
fn push_leaves<R: Reducer>(tree: &mut Tree<R::Acc>, values: &[R::In], ahead: Option<Ahead>, first: usize) {
    let (groups, rest) = values.as_chunks::<GROUP>();
    let ahead_at = |at: usize| ahead.map(|from| from.after::<R::In>(at));
    for (i, values) in groups.iter().enumerate() {
        let acc = group::<R>(tree.first().copied(), values, ahead_at(i * GROUP), first + i * GROUP);
        tree.push_run(TOGETHER.ilog2(), acc, R::merge);
    }
    let done = values.len() - rest.len();
    for (i, part) in rest.chunks(LEAF).enumerate() {
        let acc = leaf::<R>(tree.first().copied(), part, ahead_at(done + i * LEAF), first + done + i * LEAF);
        tree.push(acc, R::merge);
    }
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
    trees.into_iter().filter_map(|quarter| quarter.finish(R::merge)).for_each(|acc| tree.push(acc, R::merge));
    tree.finish(R::merge)
}

/// Reduces rows of `len` points each into `out`, one result per row.
pub(super) fn reduce<R: Reducer>(compiled: &Compiled, len: usize, out: &mut [R::Out]) {
    let (tile, rows) = (compiled.tile(), out.len());
    let cost = rows.saturating_mul(len).saturating_mul(compiled.cost());
    let threads = threads::worth(cost);
    if threads > 1 && rows < 4 * threads && len > BLOCK {
        return split_rows::<R>(compiled, len, cost, out);
    }
    let chunk = rows.div_ceil(if threads == 1 { 1 } else { threads * 4 }).max(1);
    threads::for_each(
        out.chunks_mut(chunk).enumerate(),
        cost,
        || Evaluator::new(compiled),
        |evaluator, (i, results)| {
            let first_row = i * chunk;
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
                for (i, (result, row)) in results.iter_mut().zip(values.typed::<R::In>().chunks_exact(len)).enumerate() {
                    *result = R::finish(leaf::<R>(None, row, ahead.map(|from| from.after::<R::In>(i * len)), 0));
                }
            }
        },
    );
}

/// Few long rows: blocks of each by different threads, then the rest of each row's tree.
fn split_rows<R: Reducer>(compiled: &Compiled, len: usize, cost: usize, out: &mut [R::Out]) {
    let blocks = len.div_ceil(BLOCK);
    let partial = threads::map(
        0..out.len() * blocks,
        cost,
        || Evaluator::new(compiled),
        |evaluator, task| {
            let (row, at) = (task / blocks, task % blocks * BLOCK);
            reduce_run::<R>(evaluator, compiled.tile(), row * len + at, BLOCK.min(len - at), at)
        },
    );
    for (result, blocks) in out.iter_mut().zip(partial.chunks(blocks)) {
        if let Some(acc) = finished::<R>(blocks) {
            *result = R::finish(acc);
        }
    }
}

/// [`reduce_run`] of a whole reduction whose blocks different threads take.
pub(super) fn reduce_blocks<R: Reducer>(compiled: &Compiled, start: usize, len: usize) -> Option<R::Acc> {
    let block = |evaluator: &mut Evaluator, n: usize| {
        let at = n * BLOCK;
        reduce_run::<R>(evaluator, compiled.tile(), start + at, BLOCK.min(len - at), at)
    };
    let cost = len.saturating_mul(compiled.cost());
    let partial = threads::map(0..len.div_ceil(BLOCK), cost, || Evaluator::new(compiled), block);
    finished::<R>(&partial)
}

/// The result of a reduction's blocks, in their order.
fn finished<R: Reducer>(blocks: &[Option<R::Acc>]) -> Option<R::Acc> {
    let mut tree = Tree::new();
    blocks.iter().flatten().for_each(|&acc| tree.push(acc, R::merge));
    tree.finish(R::merge)
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
