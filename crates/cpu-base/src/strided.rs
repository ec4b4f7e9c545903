//! Strided copies, and blocks of matrix columns for several threads. Indices are checked before unchecked accesses.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use crate::transpose::{Rows, transpose, transpose_streamed};

/// Copies `out.len()` elements of `source` that are `stride` apart, starting at index `start`.
pub fn copy_strided<T: Copy>(source: &[T], start: isize, stride: isize, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    let last = start + stride * (out.len() as isize - 1);
    assert!(start.min(last) >= 0 && (start.max(last) as usize) < source.len(), "{start}..={last} of {}", source.len());
    match stride {
        1 => out.copy_from_slice(&source[start as usize..start as usize + out.len()]),
        0 => out.fill(source[start as usize]),
        _ => {
            let mut at = start;
            for value in out {
                // SAFETY: `at` steps from `start` to `last`, both inside `source`.
                *value = unsafe { *source.get_unchecked(at as usize) };
                at += stride;
            }
        }
    }
}

/// A block of columns of a matrix. Other threads may own other columns of the same matrix.
pub struct ColumnsMut<'a, T> {
    ptr: *mut T,
    rows: usize,
    row_stride: usize,
    width: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: equivalent to an exclusive view of plain values.
unsafe impl<T: Send> Send for ColumnsMut<'_, T> {}

impl<T> ColumnsMut<'_, T> {
    /// Returns the block's part of a row.
    pub fn row(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        // SAFETY: by construction every row of the block is inside the matrix, and no other block has these columns.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(row * self.row_stride), self.width) }
    }
}

/// Splits a C-contiguous matrix with rows of `row_len` elements into blocks of `width` columns.
pub fn column_blocks<T>(matrix: &mut [T], row_len: usize, width: usize) -> Vec<ColumnsMut<'_, T>> {
    if matrix.is_empty() {
        return Vec::new();
    }
    assert!(row_len > 0 && matrix.len().is_multiple_of(row_len), "{} in rows of {row_len}", matrix.len());
    let (rows, width) = (matrix.len() / row_len, width.clamp(1, row_len));
    let ptr = matrix.as_mut_ptr();
    (0..row_len)
        .step_by(width)
        // SAFETY: `c` is a column of the first row.
        .map(|c| ColumnsMut { ptr: unsafe { ptr.add(c) }, rows, row_stride: row_len, width: width.min(row_len - c), life: PhantomData })
        .collect()
}

/// A two-dimensional copy: extents, and strides of source and target along rows and columns.
pub struct Grid {
    /// Number of rows.
    pub height: usize,
    /// Number of columns.
    pub width: usize,
    /// Strides of the source along rows and columns, in elements.
    pub source: [isize; 2],
    /// Strides of the target along rows and columns, in elements.
    pub target: [isize; 2],
    /// Whether the whole copy is large enough for non-temporal stores.
    pub streamed: bool,
}

impl Grid {
    /// Returns the lowest and highest index that a copy from `start` with these strides touches.
    fn reach(&self, start: isize, steps: [isize; 2]) -> (isize, isize) {
        let spans = [steps[0] * (self.height as isize - 1), steps[1] * (self.width as isize - 1)];
        let (low, high): (isize, isize) = (spans.iter().map(|s| s.min(&0)).sum(), spans.iter().map(|s| s.max(&0)).sum());
        (start + low, start + high)
    }
}

/// Copies a grid of elements. Rows contiguous on both sides are copied whole. Sides contiguous along different axes use a
/// transpose. Other layouts are copied in blocks whose lines stay in L1.
pub fn copy_grid<T: Copy>(source: &[T], from: isize, target: &mut [T], to: isize, grid: &Grid) {
    const SIDE: usize = 32;
    if grid.height == 0 || grid.width == 0 {
        return;
    }
    for (start, steps, len) in [(from, grid.source, source.len()), (to, grid.target, target.len())] {
        let (low, high) = grid.reach(start, steps);
        assert!(low >= 0 && (high as usize) < len, "{low}..={high} of {len}");
    }
    let (s, t) = (source.as_ptr().wrapping_offset(from), target.as_mut_ptr().wrapping_offset(to));
    if grid.source[1] == 1 && grid.target[1] == 1 {
        for row in 0..grid.height as isize {
            // SAFETY: `reach` has checked that every row is inside both slices, which are different memory.
            unsafe { std::ptr::copy_nonoverlapping(s.offset(row * grid.source[0]), t.offset(row * grid.target[0]), grid.width) };
        }
        return;
    }
    let rows = |start: isize, stride| Rows { start: start as usize, stride };
    let transpose_rows = if grid.streamed { transpose_streamed } else { transpose };
    if grid.source[0] == 1
        && grid.target[1] == 1
        && transpose_rows(source, rows(from, grid.source[1]), target, rows(to, grid.target[0]), grid.height, grid.width)
    {
        return;
    }
    for top in (0..grid.height).step_by(SIDE) {
        for left in (0..grid.width).step_by(SIDE) {
            for row in top as isize..grid.height.min(top + SIDE) as isize {
                for column in left as isize..grid.width.min(left + SIDE) as isize {
                    // SAFETY: `reach` has checked that every element is inside its slice.
                    unsafe {
                        *t.offset(row * grid.target[0] + column * grid.target[1]) =
                            *s.offset(row * grid.source[0] + column * grid.source[1])
                    };
                }
            }
        }
    }
}
