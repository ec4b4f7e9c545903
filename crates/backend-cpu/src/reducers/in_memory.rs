//! Reductions of rows in memory, which fused expressions over rows use.

use cuprum_core::ops::reduce::{ALL, ANY, MAX, MIN, PROD, SUM};
use cuprum_core::{Complex, DType, Element, Op};
use cuprum_cpu_base::views::{Elements, ElementsMut};

use super::Reducer;
use super::by_dtype::by_dtype;
use super::loops::push_leaves;
use super::ops::{Max, Min, Prod, Sum};
use super::tree::Tree;

/// Reduces the contiguous elements `row`, with the same bits as [`reduce`].
pub(crate) fn reduce_values<R: Reducer>(row: &[R::In]) -> Option<R::Acc> {
    let tree = &mut Tree::new();
    push_leaves::<R>(tree, row, None, 0);
    tree.take(R::merge)
}

/// A function that reduces each row of the given length, and fills the same row of the output with the result.
pub(crate) type RowReduction = fn(Elements, ElementsMut, usize);

fn reduce_each_row<R: Reducer>(values: Elements, out: ElementsMut, row: usize) {
    let out = out.typed::<R::Out>();
    for (values, out) in values.typed::<R::In>().chunks(row).zip(out.chunks_mut(row)) {
        if let Some(acc) = reduce_values::<R>(values) {
            out.fill(R::finish(acc));
        }
    }
}

/// Returns the function that reduces rows by `op`, for dtypes other than 16-bit floats.
pub(crate) fn row_reduction(op: Op, dtype: DType) -> Option<RowReduction> {
    match op {
        op if op == SUM => by_dtype!(dtype, number, reduce_each_row, Sum),
        op if op == PROD => by_dtype!(dtype, number, reduce_each_row, Prod),
        op if op == MIN => by_dtype!(dtype, any, reduce_each_row, Min, Prod),
        op if op == MAX => by_dtype!(dtype, any, reduce_each_row, Max, Sum),
        op if op == ANY && dtype == DType::Bool => Some(reduce_each_row::<Sum<bool>>),
        op if op == ALL && dtype == DType::Bool => Some(reduce_each_row::<Prod<bool>>),
        _ => None,
    }
}
