//! [`RowLoop`]: the loop of an expression that contains reductions along rows.

use std::sync::Arc;

use smallvec::SmallVec;

use super::expression_node::{ArrayState, DeferredReduction, Expression, NdArray, Operand};
use crate::layout::Dims;

/// The loop of a row program: an expression with reductions along rows that is computed in one pass over the rows.
pub(super) struct RowLoop {
    /// Shape of the loop.
    pub shape: Dims,
    /// Shape of an array with one element per row: `shape`, with extent 1 along the axes of a row (`split` and later).
    pub results: Dims,
    /// Index of the first axis of a row. The last axes, from this one on, form the row.
    pub split: usize,
}

impl RowLoop {
    /// Returns the loop that computes `root` in one pass over rows, or `None` if there is no such loop or the loop has no advantage.
    ///
    /// The loop's shape follows from the first deferred reduction whose argument or result has the shape of `root`.
    pub fn find_for_root(root: &NdArray) -> Option<RowLoop> {
        let rows = RowLoop::find_row_loop(root, root, &mut SmallVec::new())?;
        // A single reduction gets no row loop. Dispatched as its own call, it runs on kernels that split long rows over several thread
        // blocks.
        let is_alone = root.0.weight.folds == 1 && root.shape() == &rows.results[..];
        (!is_alone && !root.lacks_fusion_code()).then_some(rows)
    }

    /// Searches the expression of `array` for a reduction whose argument or result has the shape of `root`, and returns the loop over its
    /// rows. Returns `None` if there is no such reduction, or if the search has `visited` the array before: a chain of shared nodes has
    /// exponentially many paths.
    fn find_row_loop(array: &NdArray, root: &NdArray, visited: &mut SmallVec<[*const ArrayState; 12]>) -> Option<RowLoop> {
        let state = Arc::as_ptr(&array.0);
        if visited.contains(&state) {
            return None;
        }
        visited.push(state);
        let mut find_in = |a: &NdArray| match a.is_deferred() && a.0.weight.folds > 0 {
            true => RowLoop::find_row_loop(a, root, visited),
            false => None,
        };
        match array.lock_expression().as_ref()? {
            Expression::Fold(DeferredReduction { argument, axes, .. }) => {
                let is_of_loop = root.shape() == argument.shape() || root.shape() == array.shape();
                let rows = || RowLoop {
                    shape: Dims::from_slice(argument.shape()),
                    results: Dims::from_slice(array.shape()),
                    split: argument.ndim() - axes.len(),
                };
                if is_of_loop { Some(rows()) } else { find_in(argument) }
            }
            Expression::Elementwise { args, then, .. } => {
                args.iter().chain(then.iter().flat_map(|appended| &appended.others)).find_map(|arg| match arg {
                    Operand::Array(a) => find_in(a),
                    Operand::Scalar(_) => None,
                })
            }
        }
    }

    /// Returns whether `array` is a deferred reduction over the rows of this loop.
    pub fn is_reduction_over_rows(&self, array: &NdArray) -> bool {
        let is_over_loop = |e: &Expression| matches!(e, Expression::Fold(fold) if fold.argument.shape() == &self.shape[..]);
        array.shape() == &self.results[..] && array.lock_expression().as_ref().is_some_and(is_over_loop)
    }
}
