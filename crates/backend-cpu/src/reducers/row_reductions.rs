//! Reductions of contiguous rows in memory, for the row reductions inside fused expressions.

use std::slice;

use cuprum_core::ops::elementwise::{ADD, FMAX, FMIN, LOGICAL_AND, LOGICAL_OR, MAXIMUM, MINIMUM, MULTIPLY};
use cuprum_core::{Complex, DType, Element, Op};
use cuprum_cpu_base::typed_views::{Elements, ElementsMut};

use super::Reducer;
use super::dtype_selection::{by_dtype, by_reduction};
use super::ordered_products::recompute_rows_in_order;
use super::pairwise_tree::PairwiseTree;
use super::reduction_loops::push_leaves;
use super::reduction_operations::{Max, MaxNumber, Min, MinNumber, Prod, Sum};

/// Reduces the contiguous elements `row`, with the same bits as the kernel family `Reduce`. Returns `None` if `row` is empty.
pub(crate) fn reduce_contiguous<R: Reducer>(row: &[R::In]) -> Option<R::Acc> {
    let tree = &mut PairwiseTree::new();
    push_leaves::<R>(tree, row, None, 0);
    tree.take_result(R::merge)
}

/// A function that reduces each row of the given length, and writes the result to every element of the output's row.
pub(crate) type RowReduction = fn(Elements, ElementsMut, usize);

fn reduce_each_row<R: Reducer>(values: Elements, out: ElementsMut, row: usize) {
    let out = out.typed_slice::<R::Out>();
    for (values, out) in values.typed_slice::<R::In>().chunks(row).zip(out.chunks_mut(row)) {
        if let Some(acc) = reduce_contiguous::<R>(values) {
            let mut result = R::finish(acc);
            recompute_rows_in_order::<R>(values, values.len(), slice::from_mut(&mut result));
            out.fill(result);
        }
    }
}

/// Returns the function that reduces rows of `dtype` by `op`. `None` if there is none, as for all 16-bit floats.
pub(crate) fn select_row_reduction(op: Op, dtype: DType) -> Option<RowReduction> {
    let reduction = op.reduction()?;
    by_reduction!(reduction, dtype, reduce_each_row)
}
