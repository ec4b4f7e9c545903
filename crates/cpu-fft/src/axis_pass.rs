//! A pass over an array: transforms of all lines (1-D slices) along one axis.
//!
//! Lines along the last axis are rows of the output. Lines along another axis are gathered in panels: as many neighbouring lines as fit the
//! cache, each contiguous, so that every cache line is read and written once per pass.

use std::sync::Mutex;

use cuprum_core::layout::Layout;
use cuprum_core::{Error, Result};
use cuprum_cpu_base::cache_hints::prefetch_all_lines;
use cuprum_cpu_base::strided::{ColumnsMut, StridedCopy2d, copy_strided, copy_strided_2d, split_into_column_blocks};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::HostVec;
use num_complex::Complex;
use smallvec::SmallVec;

use crate::line_transform::{ComplexToComplex, LineTransform};
use crate::plan_cache::TransformFloat;

/// Maximum size in bytes of a panel: neighbouring lines (1-D slices) that are gathered and transformed together. Two panels and the
/// transform's scratch fit the second-level cache.
const MAX_PANEL_BYTES: usize = 128 << 10;
/// Minimum size in bytes of one row of a panel (neighbouring lines that are transformed together) if its lines are columns of the output:
/// two cache lines.
const MIN_PANEL_ROW_BYTES: usize = 128;
/// Maximum number of lines (1-D slices) that are gathered and transformed together as a panel.
const MAX_PANEL_LINES: usize = 64;
/// Number of rows by which prefetches precede the stores to a row of a panel's columns. Stores are committed in order, so a store to a line
/// outside the cache would delay all later stores.
const PREFETCH_DISTANCE_IN_ROWS: usize = 16;
/// Maximum size in bytes of a row that is prefetched. The hardware prefetcher loads longer rows.
const MAX_PREFETCHED_ROW_BYTES: usize = 256;
/// Approximate cost of transforming one element, in elementary operations, per factor of two in the length of the transform.
const COST_PER_ELEMENT_AND_LOG2_LEN: usize = 2;
/// Number of tasks per thread. Several tasks per thread balance the load.
const TASKS_PER_THREAD: usize = 4;

/// The input of a pass over an array: elements of a buffer at the indices of a layout.
pub(crate) struct StridedSource<'a, T> {
    /// The whole buffer.
    pub buffer: &'a [T],
    /// Layout of the values in the buffer.
    pub layout: &'a Layout,
}

/// Transforms all lines (1-D slices) of `source` along `axis` into `out`, which is in C order, and multiplies the results by `factor`.
pub(crate) fn transform_lines<T: TransformFloat, L: LineTransform<T>>(
    transform: &L,
    source: StridedSource<L::In>,
    axis: usize,
    out: &mut [L::Out],
    factor: T,
) -> Result<()> {
    transform_lines_and_finish_each(transform, source, axis, out, factor, |_, _| {})
}

/// Like [`transform_lines`], but also calls `finish` for each transformed line (1-D slice) that is a column of the output, with the line's
/// number and elements, before the multiplication by `factor`.
pub(crate) fn transform_lines_and_finish_each<T: TransformFloat, L: LineTransform<T>>(
    transform: &L,
    source: StridedSource<L::In>,
    axis: usize,
    out: &mut [L::Out],
    factor: T,
    finish: impl Fn(usize, &mut [L::Out]) + Sync,
) -> Result<()> {
    let shape = source.layout.shape();
    let inner: usize = shape[axis + 1..].iter().product();
    let reader = StridedLineReader::along_axis(transform, source, axis);
    let columns = |workspace: &mut PanelWorkspace<T, L>, matrix: usize, first: usize, columns: &mut ColumnsMut<L::Out>| {
        let count = columns.row(0).len();
        reader.gather_panel(matrix * inner + first, count, workspace.input.as_mut_slice());
        workspace.transform_panel(transform, count)?;
        let lines = workspace.output.as_mut_slice().chunks_exact_mut(transform.output_len()).take(count);
        lines.enumerate().for_each(|(i, line)| finish(matrix * inner + first + i, line));
        workspace.scatter_panel(transform, columns, factor);
        Ok(())
    };
    if inner > 1 {
        return for_each_panel(transform, inner, out, columns);
    }
    let rows_per_panel = lines_per_panel::<T, L>(transform, 1);
    for_each_row_block(transform, out, |workspace: &mut PanelWorkspace<T, L>, first, rows| {
        for (i, panel) in rows.chunks_mut(rows_per_panel * transform.output_len()).enumerate() {
            let first = first + i * rows_per_panel;
            let count = panel.len() / transform.output_len();
            if !reader.try_transform_without_gathering(transform, first, panel, workspace.scratch.as_mut_slice()) {
                reader.gather_panel(first, count, workspace.input.as_mut_slice());
                let inputs = workspace.input.as_mut_slice().chunks_exact_mut(transform.input_len());
                for (input, row) in inputs.zip(panel.chunks_exact_mut(transform.output_len())) {
                    transform.transform_line(input, row, workspace.scratch.as_mut_slice())?;
                }
            }
            if factor != T::one() {
                panel.iter_mut().for_each(|value| L::scale_output(value, factor));
            }
        }
        Ok(())
    })
}

/// Transforms all lines (1-D slices) along `axis` of the C-ordered array `data` of extents `shape` in place, and multiplies the results by
/// `factor`.
pub(crate) fn transform_in_place<T: TransformFloat>(
    transform: &ComplexToComplex<T>,
    shape: &[usize],
    axis: usize,
    data: &mut [Complex<T>],
    factor: T,
) -> Result<()> {
    let inner: usize = shape[axis + 1..].iter().product();
    if inner > 1 {
        return for_each_panel(transform, inner, data, |workspace: &mut PanelWorkspace<T, ComplexToComplex<T>>, _, _, columns| {
            let (n, count) = (transform.input_len(), columns.row(0).len());
            let panel = workspace.input.as_mut_slice();
            for r in 0..n {
                columns.row(r).iter().enumerate().for_each(|(w, value)| panel[w * n + r] = *value);
            }
            workspace.transform_panel(transform, count)?;
            workspace.scatter_panel(transform, columns, factor);
            Ok(())
        });
    }
    for_each_row_block(transform, data, |workspace: &mut PanelWorkspace<T, ComplexToComplex<T>>, _, rows| {
        for row in rows.chunks_exact_mut(transform.input_len()) {
            transform.transform_lines_in_place(row, workspace.scratch.as_mut_slice());
            if factor != T::one() {
                row.iter_mut().for_each(|value| *value = value.scale(factor));
            }
        }
        Ok(())
    })
}

/// Returns the number of lines (1-D slices) that are transformed together as a panel. It is the number that fits the cache, but at least
/// enough to fill cache lines and at most [`MAX_PANEL_LINES`]. `inner` is the number of neighbouring lines, or 1 for rows.
fn lines_per_panel<T, L: LineTransform<T>>(transform: &L, inner: usize) -> usize {
    let line_bytes = (transform.input_len() * size_of::<L::In>()).max(transform.output_len() * size_of::<L::Out>());
    let least = if inner > 1 { MIN_PANEL_ROW_BYTES / size_of::<L::Out>() } else { 1 };
    (MAX_PANEL_BYTES / line_bytes.max(1)).clamp(least, MAX_PANEL_LINES)
}

/// Returns the cost of transforming `count` lines (1-D slices), in elementary operations.
fn axis_pass_cost<T, L: LineTransform<T>>(transform: &L, count: usize) -> usize {
    let n = transform.input_len().max(transform.output_len());
    count.saturating_mul(n).saturating_mul(COST_PER_ELEMENT_AND_LOG2_LEN * (usize::BITS - n.leading_zeros()) as usize)
}

/// The memory of a thread for its panels (groups of lines) and its transforms.
struct PanelWorkspace<T: TransformFloat, L: LineTransform<T>> {
    input: HostVec<L::In>,
    output: HostVec<L::Out>,
    scratch: HostVec<Complex<T>>,
}

impl<T: TransformFloat, L: LineTransform<T>> PanelWorkspace<T, L> {
    /// Allocates panels of `count` lines (1-D slices along the transformed axis). If `is_rows` is true, results are written directly to
    /// rows of the output, and no output panel is needed.
    fn allocate(transform: &L, count: usize, is_rows: bool) -> Result<PanelWorkspace<T, L>> {
        Ok(PanelWorkspace {
            input: HostVec::allocate(count * transform.input_len())?,
            output: HostVec::allocate(if is_rows { 0 } else { count * transform.output_len() })?,
            scratch: HostVec::allocate(transform.scratch_len())?,
        })
    }

    /// Transforms the first `count` lines (1-D slices) of the input panel to the output panel.
    fn transform_panel(&mut self, transform: &L, count: usize) -> Result<()> {
        let inputs = self.input.as_mut_slice().chunks_exact_mut(transform.input_len());
        for (input, output) in inputs.zip(self.output.as_mut_slice().chunks_exact_mut(transform.output_len())).take(count) {
            transform.transform_line(input, output, self.scratch.as_mut_slice())?;
        }
        Ok(())
    }

    /// Copies the lines of the output panel to `columns`, multiplied by `factor`.
    fn scatter_panel(&mut self, transform: &L, columns: &mut ColumnsMut<L::Out>, factor: T) {
        let (m, panel) = (transform.output_len(), self.output.as_mut_slice());
        if factor != T::one() {
            let count = columns.row(0).len();
            panel[..count * m].iter_mut().for_each(|value| L::scale_output(value, factor));
        }
        let prefetches = size_of_val(columns.row(0)) <= MAX_PREFETCHED_ROW_BYTES;
        for r in 0..m {
            if prefetches && r + PREFETCH_DISTANCE_IN_ROWS < m {
                prefetch_all_lines(columns.row(r + PREFETCH_DISTANCE_IN_ROWS));
            }
            columns.row(r).iter_mut().enumerate().for_each(|(w, value)| *value = panel[w * m + r]);
        }
    }
}

/// Keeps the first error of the tasks of a pass.
#[derive(Default)]
struct FirstError(Mutex<Option<Error>>);

impl FirstError {
    fn record_error(&self, done: Result<()>) {
        if let Err(e) = done {
            self.0.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(e);
        }
    }

    fn into_result(self) -> Result<()> {
        self.0.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
    }
}

/// Calls `body` for blocks of rows of `out`, on several threads. The arguments are the thread's workspace, the index of the block's first
/// row, and the block.
fn for_each_row_block<T: TransformFloat, L: LineTransform<T>>(
    transform: &L,
    out: &mut [L::Out],
    body: impl Fn(&mut PanelWorkspace<T, L>, usize, &mut [L::Out]) -> Result<()> + Sync,
) -> Result<()> {
    let (m, panel) = (transform.output_len(), lines_per_panel::<T, L>(transform, 1));
    let rows = out.len() / m;
    let cost = axis_pass_cost::<T, L>(transform, rows);
    let tasks = threads::threads_for_cost(cost) * TASKS_PER_THREAD;
    let rows_per_task = rows.div_ceil(tasks).next_multiple_of(panel.min(rows.div_ceil(tasks)).max(1));
    let errors = FirstError::default();
    threads::for_each(
        out.chunks_mut(rows_per_task * m).enumerate(),
        cost,
        || PanelWorkspace::allocate(transform, panel.min(rows), true),
        |workspace, (i, rows)| {
            errors.record_error(match workspace {
                Ok(workspace) => body(workspace, i * rows_per_task, rows),
                Err(e) => Err(e.clone()),
            });
        },
    );
    errors.into_result()
}

/// Calls `body` for panels (groups of neighbouring columns) of the matrices in `out`, on several threads. The arguments are the thread's
/// workspace, the index of the matrix, the index of the panel's first column, and the columns. Each matrix has rows of `inner` elements.
fn for_each_panel<T: TransformFloat, L: LineTransform<T>>(
    transform: &L,
    inner: usize,
    out: &mut [L::Out],
    body: impl Fn(&mut PanelWorkspace<T, L>, usize, usize, &mut ColumnsMut<L::Out>) -> Result<()> + Sync,
) -> Result<()> {
    let (size, width) = (transform.output_len() * inner, lines_per_panel::<T, L>(transform, inner).min(inner));
    let matrices = out.len() / size;
    let cost = axis_pass_cost::<T, L>(transform, matrices * inner);
    let tasks = threads::threads_for_cost(cost) * TASKS_PER_THREAD;
    let errors = FirstError::default();
    let init = || PanelWorkspace::allocate(transform, width, false);
    let run = |workspace: &mut Result<PanelWorkspace<T, L>>, matrix: usize, number: usize, mut columns: ColumnsMut<L::Out>| {
        errors.record_error(match workspace {
            Ok(workspace) => body(workspace, matrix, number * width, &mut columns),
            Err(e) => Err(e.clone()),
        });
    };
    if matrices >= tasks {
        let per_task = matrices.div_ceil(tasks);
        threads::for_each(out.chunks_mut(per_task * size).enumerate(), cost, init, |workspace, (task, part)| {
            for (i, matrix) in part.chunks_mut(size).enumerate() {
                for (number, columns) in split_into_column_blocks(matrix, inner, width).into_iter().enumerate() {
                    run(workspace, task * per_task + i, number, columns);
                }
            }
        });
    } else {
        for (i, matrix) in out.chunks_mut(size).enumerate() {
            let blocks = split_into_column_blocks(matrix, inner, width).into_iter().enumerate();
            threads::for_each(blocks, cost / matrices, init, |workspace, (number, columns)| run(workspace, i, number, columns));
        }
    }
    errors.into_result()
}

/// Reads lines (1-D slices along one axis) of a strided array. Lines are numbered in C order of the remaining axes.
struct StridedLineReader<'a, T> {
    /// The whole buffer that holds the array.
    buffer: &'a [T],
    /// Index of the array's first element in the buffer.
    offset: isize,
    /// Stride along the lines.
    stride: isize,
    /// Number of elements of the array along the axis of a line.
    extent: usize,
    /// Number of elements of a line (1-D slice) that the transform takes. Elements that the array does not have (from index `extent` on)
    /// are zeros.
    len: usize,
    /// Extents and strides of all axes but the transformed axis, the innermost first.
    others: SmallVec<[(usize, isize); 6]>,
}

impl<'a, T: bytemuck::Pod> StridedLineReader<'a, T> {
    fn along_axis<R, L: LineTransform<R, In = T>>(transform: &L, source: StridedSource<'a, T>, axis: usize) -> StridedLineReader<'a, T> {
        let (shape, strides) = (source.layout.shape(), source.layout.strides());
        let others = (0..shape.len()).rev().filter(|a| *a != axis).map(|a| (shape[a], strides[a])).collect();
        let offset = source.layout.offset() as isize;
        StridedLineReader { buffer: source.buffer, offset, stride: strides[axis], extent: shape[axis], len: transform.input_len(), others }
    }

    /// Returns the index of the first element of line number `line`.
    fn line_start(&self, line: usize) -> isize {
        let (mut at, mut rest) = (self.offset, line);
        for &(extent, stride) in &self.others {
            at += (rest % extent) as isize * stride;
            rest /= extent;
        }
        at
    }

    /// Transforms lines (1-D slices) directly from the array to `rows`, starting with line number `first`. Returns `false` if the layout or
    /// the transform requires a copy of the lines.
    fn try_transform_without_gathering<R, L: LineTransform<R, In = T>>(
        &self,
        transform: &L,
        first: usize,
        rows: &mut [L::Out],
        scratch: &mut [Complex<R>],
    ) -> bool {
        if self.stride != 1 || self.extent != self.len {
            return false;
        }
        rows.chunks_exact_mut(transform.output_len()).enumerate().all(|(i, row)| {
            let start = self.line_start(first + i) as usize;
            transform.try_transform_preserving_input(&self.buffer[start..start + self.len], row, scratch)
        })
    }

    /// Copies lines `first..first + count` of the array, which are 1-D slices, to consecutive ranges of `panel`, and fills missing elements
    /// with zeros.
    fn gather_panel(&self, first: usize, count: usize, panel: &mut [T]) {
        let starts: SmallVec<[isize; MAX_PANEL_LINES]> = (first..first + count).map(|line| self.line_start(line)).collect();
        let step = starts.get(1).map_or(0, |next| next - starts[0]);
        if starts.windows(2).all(|pair| pair[1] - pair[0] == step) {
            let grid = StridedCopy2d {
                height: count,
                width: self.extent,
                source: [step, self.stride],
                target: [self.len as isize, 1],
                streamed: false,
            };
            copy_strided_2d(self.buffer, starts[0], panel, 0, &grid);
        } else {
            for (line, &start) in panel.chunks_exact_mut(self.len).zip(&starts) {
                copy_strided(self.buffer, start, self.stride, &mut line[..self.extent]);
            }
        }
        if self.extent < self.len {
            panel.chunks_exact_mut(self.len).take(count).for_each(|line| line[self.extent..].fill(T::zeroed()));
        }
    }
}
