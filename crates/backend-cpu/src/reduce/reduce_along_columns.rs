//! Reductions whose innermost axis is kept (`[reduced.. kept..]`): input rows are merged element by element into a row of accumulators.

use cuprum_core::{Element, Result};
use cuprum_cpu_base::threads;
use smallvec::SmallVec;

use super::reducer_loops::ReducerLoops;
use crate::program_evaluation::{CompiledProgram, Evaluator};
use crate::reducers::pairwise_tree::PairwiseTree;

/// Maximum number of columns per task for inputs that are read in place. The accumulators of this number of columns (eight bytes each) fit
/// the first-level cache, and each row is read in long contiguous parts.
const MAX_COLUMNS_PER_TASK: usize = 4096;

/// The input rows of one leaf of the pairwise summation tree.
type LeafRows<'a, T> = SmallVec<[&'a [T]; 16]>;

/// The range of columns and rows that one task reduces.
struct ColumnBlock {
    columns: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
}

/// Reduces `rows` rows of `out.len()` elements each into `out`, one result per column.
pub(super) fn reduce_all_columns<I: Element, A: Copy + Send + Sync, O: Element>(
    compiled: &CompiledProgram,
    rows: usize,
    out: &mut [O],
    loops: &ReducerLoops<I, A, O>,
) -> Result<()> {
    let columns = out.len();
    let cost = rows.saturating_mul(columns).saturating_mul(compiled.cost_per_element());
    let width = columns.min(if compiled.is_contiguous_identity() { MAX_COLUMNS_PER_TASK } else { compiled.tile_len() });
    let split_into_column_blocks = columns.div_ceil(width);
    // A row block has a power-of-two number of leaves, so that its result is one partial result of the pairwise reduction tree.
    let wanted =
        if threads::threads_for_cost(cost) == 1 { 1 } else { (threads::threads_for_cost(cost) * 4).div_ceil(split_into_column_blocks) };
    let block_rows = loops.leaf_rows * rows.div_ceil(loops.leaf_rows * wanted).next_power_of_two();
    let row_blocks = rows.div_ceil(block_rows);
    let block = |task: usize| {
        let (c, r) = (task / row_blocks * width, task % row_blocks * block_rows);
        ColumnBlock { columns: c..columns.min(c + width), rows: r..rows.min(r + block_rows) }
    };
    if row_blocks == 1 {
        threads::for_each(
            out.chunks_mut(width).enumerate(),
            cost,
            || Evaluator::new_for_row_bands(compiled),
            |evaluator, (task, results)| {
                let acc = reduce_column_block(evaluator, compiled.tile_len(), columns, block(task), false, loops);
                (loops.accumulators_to_results)(results, &acc);
            },
        );
        recompute_columns_in_order(compiled, rows, width, out, loops);
        return Ok(());
    }
    let partial = threads::map(
        0..split_into_column_blocks * row_blocks,
        cost,
        || Evaluator::new_for_row_bands(compiled),
        |evaluator, task| reduce_column_block(evaluator, compiled.tile_len(), columns, block(task), false, loops),
    )?;
    let mut partial = partial.into_iter();
    let merge = |a, b| merge_accumulators(a, b, loops);
    for results in out.chunks_mut(width) {
        let mut tree = PairwiseTree::new();
        partial.by_ref().take(row_blocks).for_each(|acc| tree.push_leaf(acc, merge));
        (loops.accumulators_to_results)(results, &tree.take_result(merge).unwrap_or_default());
    }
    recompute_columns_in_order(compiled, rows, width, out, loops);
    Ok(())
}

/// Reduces those columns a second time, with rows merged in order, whose results depend on the order
/// ([`Reducer::depends_on_order`](crate::reducers::Reducer::depends_on_order)). Blocks of columns have `width` columns.
fn recompute_columns_in_order<I: Element, A: Copy + Send + Sync, O: Element>(
    compiled: &CompiledProgram,
    rows: usize,
    width: usize,
    out: &mut [O],
    loops: &ReducerLoops<I, A, O>,
) {
    let depends_on_order = |results: &[O]| rows > loops.leaf_rows && results.iter().any(|result| (loops.depends_on_order)(*result));
    let columns = out.len();
    let blocks: Vec<_> = out.chunks_mut(width).enumerate().filter(|(_, results)| depends_on_order(results)).collect();
    let cost = (blocks.len() * width).saturating_mul(rows).saturating_mul(compiled.cost_per_element());
    let evaluator = || Evaluator::new_for_row_bands(compiled);
    threads::for_each(blocks.into_iter(), cost, evaluator, |evaluator, (n, results)| {
        let block = ColumnBlock { columns: n * width..n * width + results.len(), rows: 0..rows };
        let acc = reduce_column_block(evaluator, compiled.tile_len(), columns, block, true, loops);
        let mut in_order = results.to_vec();
        (loops.accumulators_to_results)(&mut in_order, &acc);
        for (result, new) in results.iter_mut().zip(in_order).filter(|(result, _)| (loops.depends_on_order)(**result)) {
            *result = new;
        }
    });
}

fn merge_accumulators<I, A, O>(mut a: Vec<A>, b: Vec<A>, loops: &ReducerLoops<I, A, O>) -> Vec<A> {
    (loops.merge_accumulator_slices)(&mut a, &b);
    a
}

/// Reduces the rows of `block` and returns one accumulator per column of `block`. `columns` is the number of columns of the whole input.
/// `in_order` is whether the rows are merged one after another, instead of pairwise.
fn reduce_column_block<I: Element, A: Copy, O>(
    evaluator: &mut Evaluator,
    tile: usize,
    columns: usize,
    block: ColumnBlock,
    in_order: bool,
    loops: &ReducerLoops<I, A, O>,
) -> Vec<A> {
    let width = block.columns.len();
    // If a block spans whole rows, as many rows as fit a tile are evaluated at once.
    let together = if width == columns { (tile / width).clamp(1, loops.leaf_rows) } else { 1 };
    let together = together.next_power_of_two() >> (!together.is_power_of_two()) as u32; // rounded down to a divisor of `leaf_rows`
    let mut spare: Vec<Vec<A>> = Vec::new();
    let mut tree: PairwiseTree<Vec<A>> = PairwiseTree::new();
    for leaf in block.rows.clone().step_by(loops.leaf_rows) {
        let earlier = if in_order { tree.take_result(|_, later| later) } else { None };
        let begin = earlier.is_none();
        let mut acc = earlier.or_else(|| spare.pop()).unwrap_or_default();
        let rows = leaf..block.rows.end.min(leaf + loops.leaf_rows);
        let at = |row: usize| row * columns + block.columns.start;
        let in_place: Option<LeafRows<I>> = match width == columns {
            true => evaluator
                .borrow_contiguous_values(at(leaf), rows.len() * width)
                .map(|(values, _)| values.typed_slice().chunks_exact(width).collect()),
            false => rows.clone().map(|row| Some(evaluator.borrow_contiguous_values(at(row), width)?.0.typed_slice())).collect(),
        };
        match in_place {
            Some(rows) => (loops.columns)(&mut acc, &rows, leaf, begin),
            None => {
                for row in rows.clone().step_by(together) {
                    let values = evaluator.evaluate(at(row), together.min(rows.end - row) * width);
                    let rows: LeafRows<I> = values.typed_slice().chunks_exact(width).collect();
                    (loops.columns)(&mut acc, &rows, row, begin && row == leaf);
                }
            }
        }
        tree.push_leaf(acc, |mut a, b| {
            (loops.merge_accumulator_slices)(&mut a, &b);
            spare.push(b);
            a
        });
    }
    tree.take_result(|a, b| merge_accumulators(a, b, loops)).unwrap_or_default()
}
