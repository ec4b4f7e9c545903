//! Plans of sorts along the last axis.

use crate::layout::Layout;

/// A planned [`Sort`](crate::call::Sort).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SortPlan {
    /// Number of rows to sort: the product of all extents except the last. 0 if the rows have no elements.
    pub rows: usize,
    /// Length of a row.
    pub columns: usize,
    /// Number of leading elements of each sorted row that the output contains.
    pub kept: usize,
}

impl SortPlan {
    /// Plans a sort of `input` into outputs of layout `output`. Returns `None` for 0-d arrays.
    pub fn new(input: &Layout, output: &Layout) -> Option<SortPlan> {
        let (&columns, &kept) = (input.shape().last()?, output.shape().last()?);
        Some(SortPlan { rows: input.size().checked_div(columns).unwrap_or(0), columns, kept: kept.min(columns) })
    }

    /// Returns whether the output has no elements.
    pub fn is_empty(&self) -> bool {
        self.rows == 0 || self.kept == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_rows_columns_and_kept_elements() {
        let plan = |input: &[usize], output: &[usize]| {
            SortPlan::new(&Layout::contiguous(input).unwrap(), &Layout::contiguous(output).unwrap()).map(|p| (p.rows, p.columns, p.kept))
        };
        assert_eq!(plan(&[2, 3, 5], &[2, 3, 4]), Some((6, 5, 4)));
        assert_eq!(plan(&[5], &[9]), Some((1, 5, 5)));
        assert_eq!(plan(&[4, 0], &[4, 0]), Some((0, 0, 0)));
        assert_eq!(plan(&[], &[]), None);
    }

    #[test]
    fn a_plan_without_rows_or_columns_is_empty() {
        let is_empty = |rows, kept| SortPlan { rows, columns: 5, kept }.is_empty();
        assert_eq!([is_empty(2, 3), is_empty(0, 3), is_empty(2, 0), is_empty(0, 0)], [false, true, true, true]);
    }
}
