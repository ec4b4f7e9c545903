//! Gathers with an index for each output element (`take_along_axis`).

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use cuprum_core::layout::{Dims, Strides};
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{DType, Element, Layout, Result, StoredArray};
use cuprum_cpu_base::cache_hints::prefetch_cache_line;
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, ElementsMut};
use cuprum_cpu_base::with_bits;

use super::{COST_PER_INDEX, ELEMENTS_PER_TASK, GatherAxis, GatherIndex, PREFETCH_DISTANCE_IN_INDICES, gather_on_thread};

/// Minimum distance, in bytes, between the first and the last element along an axis at which elements are prefetched. Elements of a shorter
/// axis stay in the cache.
const MIN_PREFETCHED_BYTES: usize = 1 << 20;

/// The loop over the output elements. Strides are numbers of elements.
struct OutputLoop {
    dims: Dims,
    /// Strides of the source, which are 0 along the indexed axis.
    source_strides: Strides,
    index_strides: Strides,
    /// Offset of the first index in the index buffer.
    first_index: isize,
}

/// Consecutive output elements along the innermost axis of the loop.
#[derive(Clone, Copy)]
struct OutputLine {
    /// Offset in the source that index 0 gives for the line's first output element.
    source: isize,
    source_step: isize,
    /// Offset of the line's first index in the index buffer.
    index: isize,
    index_step: isize,
}

impl OutputLoop {
    fn new(source: &Layout, axis: usize, indices: &Layout) -> Result<OutputLoop> {
        let mut strides: Strides = source.strides().into();
        strides[axis] = 0;
        let source = Layout::strided(indices.shape(), &strides, 0)?;
        let LoopPlan { dims, mut strides, .. } = LoopPlan::new(&[&source, indices, &Layout::contiguous(indices.shape())?]);
        let [source_strides, index_strides] = [0, 1].map(|operand| std::mem::take(&mut strides[operand]));
        Ok(OutputLoop { dims, source_strides, index_strides, first_index: indices.offset() as isize })
    }

    /// Calls `body` for each line of the output elements `range`. A line is a series of consecutive elements along the innermost axis. The
    /// arguments are the positions of the line's elements in `range`, and the line.
    fn for_each_line(&self, range: Range<usize>, mut body: impl FnMut(Range<usize>, OutputLine)) {
        let (extent, outer) = self.dims.split_last().map_or((1, &[][..]), |(n, outer)| (*n, outer));
        let [source_step, index_step] = [&self.source_strides, &self.index_strides].map(|s| s.last().copied().unwrap_or(0));
        let mut at = range.start;
        while at < range.end {
            let (mut row, column) = (at / extent, at % extent);
            let mut line = OutputLine {
                source: column as isize * source_step,
                source_step,
                index: self.first_index + column as isize * index_step,
                index_step,
            };
            for (axis, &extent) in outer.iter().enumerate().rev() {
                let position = (row % extent) as isize;
                row /= extent;
                line.source += position * self.source_strides[axis];
                line.index += position * self.index_strides[axis];
            }
            let end = range.end.min(at - column + extent);
            body(at - range.start..end - range.start, line);
            at = end;
        }
    }
}

/// Writes to each element of `out` the element of `source` that its index in `indices` selects. Returns the first invalid index, if there
/// is one.
pub(super) fn take_along_axis(
    source: &StoredArray,
    axis: usize,
    axis_range: GatherAxis,
    indices: &StoredArray,
    out: ElementsMut,
) -> Result<Option<i64>> {
    let output_loop = OutputLoop::new(source.layout(), axis, indices.layout())?;
    let (source, indices) = (Elements::from_whole_buffer(source)?, Elements::from_whole_buffer(indices)?);
    Ok(with_bits!(source.dtype(), T => match indices.dtype() {
        DType::I32 => gather::<T, i32>(source.typed_slice(), axis_range, &output_loop, indices.typed_slice(), out),
        _ => gather::<T, i64>(source.typed_slice(), axis_range, &output_loop, indices.typed_slice(), out),
    }))
}

fn gather<T: Element, I: GatherIndex>(
    values: &[T],
    axis: GatherAxis,
    output_loop: &OutputLoop,
    indices: &[I],
    out: ElementsMut,
) -> Option<i64> {
    let (good, size) = (AtomicBool::new(true), out.len());
    threads::for_each(
        out.chunks(ELEMENTS_PER_TASK).enumerate(),
        size.saturating_mul(COST_PER_INDEX),
        || (),
        |_, (task, run)| {
            let (run, start) = (run.typed_slice::<T>(), task * ELEMENTS_PER_TASK);
            output_loop.for_each_line(start..start + run.len(), |at, line| {
                let gathered = match line {
                    OutputLine { source_step: 0, index_step: 1, .. } => gather_from_one_row(values, axis, indices, line, &mut run[at]),
                    _ => gather_line(values, axis, indices, line, &mut run[at]),
                };
                if !gathered {
                    good.store(false, Ordering::Relaxed);
                }
            });
        },
    );
    if good.into_inner() {
        return None;
    }
    let mut outside = None;
    output_loop.for_each_line(0..size, |at, line| {
        outside = outside.or_else(|| (0..at.len()).map(|n| line.index_for_element(n, indices)).find(|&index| !axis.contains_index(index)));
    });
    outside
}

impl OutputLine {
    /// Returns the gather index for element `n` of this line of output elements.
    #[inline]
    fn index_for_element<I: GatherIndex>(&self, n: usize, indices: &[I]) -> i64 {
        indices[(self.index + n as isize * self.index_step) as usize].into()
    }
}

/// Gathers the output elements of `line`, whose indices are contiguous in memory and select elements of one source row. Returns whether all
/// indices are valid.
fn gather_from_one_row<T: Element, I: GatherIndex>(values: &[T], axis: GatherAxis, indices: &[I], line: OutputLine, out: &mut [T]) -> bool {
    let axis = GatherAxis { start: axis.start + line.source, ..axis };
    gather_on_thread(values, axis, &indices[line.index as usize..][..out.len()], out)
}

/// Gathers the output elements of `line`, consecutive elements along the innermost axis. Returns whether all indices are valid.
fn gather_line<T: Element, I: GatherIndex>(values: &[T], axis: GatherAxis, indices: &[I], line: OutputLine, out: &mut [T]) -> bool {
    let axis_bytes = axis.extent.saturating_mul(axis.stride.unsigned_abs()).saturating_mul(size_of::<T>());
    let offset = |n: usize, index: i64| axis.at(index).wrapping_add(line.source).wrapping_add((n as isize).wrapping_mul(line.source_step));
    let last = out.len() - 1;
    let mut good = true;
    for (n, out) in out.iter_mut().enumerate() {
        if axis_bytes >= MIN_PREFETCHED_BYTES {
            let later = last.min(n + PREFETCH_DISTANCE_IN_INDICES);
            prefetch_cache_line(values.as_ptr().wrapping_offset(offset(later, line.index_for_element(later, indices))));
        }
        let index = line.index_for_element(n, indices);
        match axis.contains_index(index) {
            true => *out = values[offset(n, index) as usize],
            false => good = false,
        }
    }
    good
}
