//! Reductions whose kept axis is innermost (`[reduced.. kept..]`): whole rows are added to rows of accumulators.

use super::ops::{Reducer, merge_each, start_each, step_each};
use super::tree::Tree;
use crate::threads;
use crate::tile::{Compiled, Evaluator};

/// Rows added one after the other before the tree begins: a power of two.
const LEAF_ROWS: usize = 16;

/// Columns that are added together where rows are read where they lie: whole rows are read in the order of memory so, and accumulators of
/// eight bytes still fit the first-level cache.
const WIDEST: usize = 4096;

/// A block of columns and rows for one task.
struct Block {
    columns: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
}

/// Reduces `rows` rows of `out.len()` points each into `out`, one result per column.
pub(super) fn reduce<R: Reducer>(compiled: &Compiled, rows: usize, out: &mut [R::Out]) {
    let columns = out.len();
    let cost = rows.saturating_mul(columns).saturating_mul(compiled.cost());
    let width = columns.min(if compiled.is_in_place() { WIDEST } else { compiled.tile() });
    let column_blocks = columns.div_ceil(width);
    // Cut rows at a power of two of leaves, where the tree has one partial result: it comes out the same wherever that is.
    let wanted = if threads::worth(cost) == 1 { 1 } else { (threads::worth(cost) * 4).div_ceil(column_blocks) };
    let block_rows = LEAF_ROWS * rows.div_ceil(LEAF_ROWS * wanted).next_power_of_two();
    let row_blocks = rows.div_ceil(block_rows);
    let block = |task: usize| {
        let (c, r) = (task / row_blocks * width, task % row_blocks * block_rows);
        Block { columns: c..columns.min(c + width), rows: r..rows.min(r + block_rows) }
    };
    let partial = threads::map(
        0..column_blocks * row_blocks,
        cost,
        || Evaluator::in_bands(compiled),
        |evaluator, task| reduce_block::<R>(evaluator, compiled.tile(), columns, block(task)),
    );
    let mut partial = partial.into_iter();
    for results in out.chunks_mut(width) {
        let mut tree = Tree::new();
        partial.by_ref().take(row_blocks).for_each(|acc| tree.push(acc, merge::<R>));
        for (result, acc) in results.iter_mut().zip(tree.finish(merge::<R>).unwrap_or_default()) {
            *result = R::finish(acc);
        }
    }
}

fn merge<R: Reducer>(mut a: Vec<R::Acc>, b: Vec<R::Acc>) -> Vec<R::Acc> {
    merge_each::<R>(&mut a, &b);
    a
}

/// Partial results of the block's columns over its rows. `columns` is the length of a whole row.
fn reduce_block<R: Reducer>(evaluator: &mut Evaluator, tile: usize, columns: usize, block: Block) -> Vec<R::Acc> {
    let width = block.columns.len();
    // Rows that lie whole in the block are evaluated several at a time, as many as a tile holds.
    let together = if width == columns { (tile / width).clamp(1, LEAF_ROWS) } else { 1 };
    let together = together.next_power_of_two() >> (!together.is_power_of_two()) as u32; // divides LEAF_ROWS
    let mut spare: Vec<Vec<R::Acc>> = Vec::new();
    let mut tree: Tree<Vec<R::Acc>> = Tree::new();
    for leaf in block.rows.clone().step_by(LEAF_ROWS) {
        let mut acc = spare.pop().unwrap_or_default();
        acc.clear();
        for row in (leaf..block.rows.end.min(leaf + LEAF_ROWS)).step_by(together) {
            let count = together.min(block.rows.end - row);
            let (start, len) = (row * columns + block.columns.start, count * width);
            let values = match evaluator.in_place(start, len) {
                Some((values, _)) => values,
                None => evaluator.read(start, len),
            };
            let values = values.typed::<R::In>();
            for (i, values) in values.chunks_exact(width).enumerate() {
                if acc.is_empty() {
                    acc.resize(width, R::start(values[0], row));
                    start_each::<R>(&mut acc, values, row + i);
                } else {
                    step_each::<R>(&mut acc, values, row + i);
                }
            }
        }
        tree.push(acc, |mut a, b| {
            merge_each::<R>(&mut a, &b);
            spare.push(b);
            a
        });
    }
    tree.finish(merge::<R>).unwrap_or_default()
}
