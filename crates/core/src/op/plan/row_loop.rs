//! Plans of row loops: expressions that contain reductions over the last axes.

use std::ops::Range;

use smallvec::SmallVec;

use crate::layout::{Dims, Layout, Strides};
use crate::plan::elementwise::merge_loop_axes;

/// Maximum length of a row whose reductions are fused into an expression. Kernels keep a whole row in registers, shared memory or cache.
pub const MAX_FUSED_ROW_LENGTH: usize = 32768;

/// A loop over rows. Operands are the inputs, then the outputs. An operand with one value per row has stride 0 along the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLoopPlan {
    /// Number of elements in each row.
    pub length: usize,
    /// Number of rows.
    pub rows: usize,
    /// Extents of the axes outside the rows, outermost first, merged where possible.
    pub outer: Dims,
    /// Strides of each operand along the axes outside the rows.
    pub outer_strides: SmallVec<[Strides; 4]>,
    /// Stride of each operand along the row.
    pub row_strides: SmallVec<[isize; 6]>,
}

impl RowLoopPlan {
    /// Plans a loop over `operands` of one shape whose rows are the axes from `split` on.
    ///
    /// Returns `None` unless those axes merge into one axis in every operand.
    pub fn new(shape: &[usize], split: usize, operands: &[&Layout]) -> Option<RowLoopPlan> {
        let merged =
            |axes: Range<usize>| merge_loop_axes(operands.len(), axes.map(|a| (shape[a], move |k: usize| operands[k].strides()[a])));
        let ((row, row_strides), (outer, outer_strides)) = (merged(split..shape.len()), merged(0..split));
        if row.len() > 1 {
            return None;
        }
        Some(RowLoopPlan {
            length: row.first().copied().unwrap_or(1),
            rows: shape[..split].iter().product(),
            row_strides: row_strides.iter().map(|s| s.first().copied().unwrap_or(0)).collect(),
            outer,
            outer_strides,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_one_axis() {
        let shape = [4, 5, 2, 3];
        let x = Layout::contiguous(&shape).unwrap();
        let of_row = Layout::contiguous(&[4, 5, 1, 1]).unwrap().broadcast_to(&shape).unwrap();
        let repeated = Layout::contiguous(&[2, 3]).unwrap().broadcast_to(&shape).unwrap();
        let plan = RowLoopPlan::new(&shape, 2, &[&x, &repeated, &of_row]).unwrap();
        assert_eq!((plan.length, plan.rows, &plan.outer[..]), (6, 20, &[20][..]));
        assert_eq!(&plan.row_strides[..], &[1, 1, 0]);
        assert_eq!(plan.outer_strides.iter().map(|s| s[0]).collect::<Vec<_>>(), [6, 0, 1]);
        let by_channel = Layout::contiguous(&[2, 1]).unwrap().broadcast_to(&shape).unwrap();
        assert_eq!(RowLoopPlan::new(&shape, 2, &[&x, &by_channel]), None, "one element for each half of a row");
        assert_eq!(RowLoopPlan::new(&shape, 3, &[&x, &by_channel]).map(|p| p.rows), Some(40));
    }

    #[test]
    fn outer_axes_keep_their_strides() {
        let x = Layout::contiguous(&[5, 4, 7]).unwrap().permute(&[1, 0, 2]).unwrap();
        let out = Layout::contiguous(&[4, 5, 7]).unwrap();
        let plan = RowLoopPlan::new(&[4, 5, 7], 2, &[&x, &out]).unwrap();
        assert_eq!((&plan.outer[..], &plan.outer_strides[0][..], &plan.outer_strides[1][..]), (&[4, 5][..], &[7, 28][..], &[35, 7][..]));
        let one = Layout::contiguous(&[7]).unwrap();
        assert_eq!(RowLoopPlan::new(&[7], 0, &[&one, &one]).map(|p| (p.rows, p.length, p.outer.len())), Some((1, 7, 0)));
    }
}
