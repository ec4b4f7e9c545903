//! The shape of a sort: rows along the last axis.

use crate::layout::Layout;

/// A planned [`Sort`](crate::call::Sort).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SortPlan {
    /// Number of rows; 0 if they are empty.
    pub rows: usize,
    /// Their length.
    pub columns: usize,
    /// How many first elements of each sorted row are asked for.
    pub kept: usize,
}

impl SortPlan {
    /// Plans a sort of `input` into outputs of this layout; `None` if there is no axis to sort along.
    pub fn new(input: &Layout, output: &Layout) -> Option<SortPlan> {
        let (&columns, &kept) = (input.shape().last()?, output.shape().last()?);
        Some(SortPlan { rows: input.size().checked_div(columns).unwrap_or(0), columns, kept: kept.min(columns) })
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.rows == 0 || self.kept == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_columns_and_what_is_kept() {
        let plan = |input: &[usize], output: &[usize]| {
            SortPlan::new(&Layout::contiguous(input).unwrap(), &Layout::contiguous(output).unwrap()).map(|p| (p.rows, p.columns, p.kept))
        };
        assert_eq!(plan(&[2, 3, 5], &[2, 3, 4]), Some((6, 5, 4)));
        assert_eq!(plan(&[5], &[9]), Some((1, 5, 5)));
        assert_eq!(plan(&[4, 0], &[4, 0]), Some((0, 0, 0)));
        assert_eq!(plan(&[], &[]), None);
    }
}
