//! Strided copies, and the division of a matrix into column blocks for several threads. Indices are checked before unchecked accesses.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use crate::transpose::{ContiguousRowLayout, try_transpose, try_transpose_non_temporal};

/// Copies `out.len()` elements of `source` that are `stride` apart, starting at index `start`.
pub fn copy_strided<T: Copy>(source: &[T], start: isize, stride: isize, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    let last = last_strided_index(start, stride, out.len());
    let inside = |index: isize| usize::try_from(index).is_ok_and(|index| index < source.len());
    assert!(inside(start) && last.is_some_and(inside), "{} elements from {start} on by {stride} in {}", out.len(), source.len());
    match stride {
        1 => out.copy_from_slice(&source[start as usize..start as usize + out.len()]),
        0 => out.fill(source[start as usize]),
        _ => {
            let mut at = start;
            for value in out {
                // SAFETY: `at` runs from `start` to `last`, which the assertion above has checked to be inside `source`.
                *value = unsafe { *source.get_unchecked(at as usize) };
                at = at.wrapping_add(stride); // wraps after the last element at most
            }
        }
    }
}

/// Returns the index of the last of `count` elements that are `stride` apart, from index `start` on. Returns `None` on overflow.
fn last_strided_index(start: isize, stride: isize, count: usize) -> Option<isize> {
    isize::try_from(count).ok()?.checked_sub(1)?.checked_mul(stride)?.checked_add(start)
}

/// An exclusive view of some columns of a C-contiguous matrix. Other threads may own other columns of the same matrix.
pub struct ColumnsMut<'a, T> {
    ptr: *mut T,
    rows: usize,
    row_stride: usize,
    width: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: like `&mut [T]`, a `ColumnsMut` has exclusive access to its elements. No two `ColumnsMut` share an element of the matrix.
unsafe impl<T: Send> Send for ColumnsMut<'_, T> {}

impl<T> ColumnsMut<'_, T> {
    /// Returns the elements of row `row` that are in the columns of this view.
    pub fn row(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        // SAFETY: `row` is below `rows`, so the slice is inside the matrix. By construction no other `ColumnsMut` has these columns.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(row * self.row_stride), self.width) }
    }
}

/// Splits a C-contiguous matrix with rows of `row_len` elements into blocks of `width` columns. The last block may be narrower.
pub fn split_into_column_blocks<T>(matrix: &mut [T], row_len: usize, width: usize) -> Vec<ColumnsMut<'_, T>> {
    if matrix.is_empty() {
        return Vec::new();
    }
    assert!(row_len > 0 && matrix.len().is_multiple_of(row_len), "{} in rows of {row_len}", matrix.len());
    let (rows, width) = (matrix.len() / row_len, width.clamp(1, row_len));
    let ptr = matrix.as_mut_ptr();
    (0..row_len)
        .step_by(width)
        // SAFETY: `c` is below `row_len`, so the pointer stays inside the first row of the matrix.
        .map(|c| ColumnsMut { ptr: unsafe { ptr.add(c) }, rows, row_stride: row_len, width: width.min(row_len - c), life: PhantomData })
        .collect()
}

/// Extents and strides of a two-dimensional strided copy from `source` to `target`.
pub struct StridedCopy2d {
    /// Number of rows.
    pub height: usize,
    /// Number of columns.
    pub width: usize,
    /// Source strides, in elements: from row to row, and from column to column.
    pub source: [isize; 2],
    /// Target strides, in elements: from row to row, and from column to column.
    pub target: [isize; 2],
    /// Whether a transposing copy writes the target with non-temporal stores. Callers decide by the size of the whole copy, of which this
    /// grid may be one two-dimensional part.
    pub streamed: bool,
}

impl StridedCopy2d {
    /// Returns the lowest and highest index that a copy touches in an array that starts at index `start` and has the strides `steps`.
    /// Returns `None` if an index overflows.
    fn touched_index_range(&self, start: isize, steps: [isize; 2]) -> Option<(isize, isize)> {
        let (mut low, mut high) = (start, start);
        for (step, count) in steps.into_iter().zip([self.height, self.width]) {
            let span = last_strided_index(0, step, count)?;
            (low, high) = (low.checked_add(span.min(0))?, high.checked_add(span.max(0))?);
        }
        Some((low, high))
    }
}

/// Copies the elements of `grid`, from index `from` of `source` to index `to` of `target`. Rows that are contiguous in `source` and in
/// `target` are copied whole. A single row that is contiguous in `source` is read in order. If `source` and `target` are contiguous along
/// different axes, the copy transposes blocks. Other layouts are copied in blocks whose cache lines stay in L1.
pub fn copy_strided_2d<T: Copy>(source: &[T], from: isize, target: &mut [T], to: isize, grid: &StridedCopy2d) {
    const COPY_BLOCK_SIDE: usize = 32;
    if grid.height == 0 || grid.width == 0 {
        return;
    }
    for (start, steps, len) in [(from, grid.source, source.len()), (to, grid.target, target.len())] {
        let range = grid.touched_index_range(start, steps);
        assert!(range.is_some_and(|(low, high)| low >= 0 && (high as usize) < len), "{range:?} of {len}");
    }
    let (s, t) = (source.as_ptr().wrapping_offset(from), target.as_mut_ptr().wrapping_offset(to));
    if grid.source[1] == 1 && grid.target[1] == 1 {
        for row in 0..grid.height as isize {
            // SAFETY: `touched_index_range` has checked that every row is inside `source` and `target`, which do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(s.offset(row * grid.source[0]), t.offset(row * grid.target[0]), grid.width) };
        }
        return;
    }
    if grid.height == 1 && grid.source[1] == 1 {
        for column in 0..grid.width as isize {
            // SAFETY: `touched_index_range` has checked that every index is inside `source` and `target`, which do not overlap.
            unsafe { *t.offset(column * grid.target[1]) = *s.offset(column) };
        }
        return;
    }
    let rows = |start: isize, stride| ContiguousRowLayout { start: start as usize, stride };
    let transpose_rows = if grid.streamed { try_transpose_non_temporal } else { try_transpose };
    if grid.source[0] == 1
        && grid.target[1] == 1
        && transpose_rows(source, rows(from, grid.source[1]), target, rows(to, grid.target[0]), grid.height, grid.width)
    {
        return;
    }
    for top in (0..grid.height).step_by(COPY_BLOCK_SIDE) {
        for left in (0..grid.width).step_by(COPY_BLOCK_SIDE) {
            for row in top as isize..grid.height.min(top + COPY_BLOCK_SIDE) as isize {
                for column in left as isize..grid.width.min(left + COPY_BLOCK_SIDE) as isize {
                    // SAFETY: `touched_index_range` has checked that every index is inside `source` and `target`, which do not overlap.
                    unsafe {
                        *t.offset(row * grid.target[0] + column * grid.target[1]) =
                            *s.offset(row * grid.source[0] + column * grid.source[1])
                    };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic = "3 elements from 0 on by -9223372036854775808 in 1"]
    fn copy_strided_checks_strides_whose_products_overflow() {
        copy_strided(&[7u8], 0, isize::MIN, &mut [0u8; 3]);
    }

    #[test]
    #[should_panic = "None of 1"]
    fn copy_grid_checks_strides_whose_products_overflow() {
        let grid = StridedCopy2d { height: 3, width: 1, source: [isize::MIN, 1], target: [1, 1], streamed: false };
        copy_strided_2d(&[7u8], 0, &mut [0u8; 3], 0, &grid);
    }
}
