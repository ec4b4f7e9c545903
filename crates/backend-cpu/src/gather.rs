//! Kernels of the family `Gather`: elements at given indices along an axis (`take` and `take_along_axis`). Indices are checked during the
//! gather. An error names the first invalid index.

mod index_per_element;

use cuprum_core::call::{self, GatherIndices};
use cuprum_cpu_base::cache_hints::{prefetch_all_lines, prefetch_cache_line};
use cuprum_cpu_base::simd::{SimdLoop, dispatch_simd};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, ElementsMut, HostVec, Output, add_op_to_out_of_memory_error};
use cuprum_cpu_base::with_bits;
use std::sync::atomic::{AtomicBool, Ordering};

use cuprum_core::host_buffer::element_offsets;
use cuprum_core::{Array, Call, DType, Element, Error, Layout, Outcome, Result, StoredArray, Work, decline};
use smallvec::SmallVec;

/// Approximate number of output elements per task.
const ELEMENTS_PER_TASK: usize = 1 << 15;
/// Software prefetch distance, in indices.
const PREFETCH_DISTANCE_IN_INDICES: usize = 64;
/// Maximum size, in bytes, of a source range that one task reads without prefetching. A range of this size stays in the cache.
const MAX_BYTES_WITHOUT_PREFETCH: usize = 4 << 20;
/// Approximate cost of reading one element at a random index, in elementary operations.
const COST_PER_INDEX: usize = 4;

/// The source axis along which elements are gathered: buffer offset of its first element, stride and extent. All are numbers of elements.
#[derive(Clone, Copy)]
struct GatherAxis {
    start: isize,
    stride: isize,
    extent: usize,
}

impl GatherAxis {
    /// Returns whether `index` is within the axis. Negative indices count from the end.
    fn contains_index(self, index: i64) -> bool {
        let extent = self.extent as i64;
        (-extent..extent).contains(&index)
    }

    /// Returns the buffer offset of the element at `index`, which must be valid.
    fn at(self, index: i64) -> isize {
        let from_end = if index < 0 { self.extent as i64 } else { 0 };
        self.start.wrapping_add((index.wrapping_add(from_end) as isize).wrapping_mul(self.stride))
    }
}

/// Integer types of gather indices.
trait GatherIndex: Element + Into<i64> {}
impl GatherIndex for i32 {}
impl GatherIndex for i64 {}

/// The elements that one index copies: all elements along the source axes after the indexed axis.
enum ElementsPerIndex<'a> {
    /// This number of contiguous elements.
    Run(usize),
    /// The elements at these offsets from the first element.
    Offsets(&'a [isize]),
}

/// The source axes before the indexed axis as (extent, stride). Axes of length 1 are left out, and contiguous neighbours are merged.
struct OuterAxes(SmallVec<[(usize, isize); 4]>);

impl OuterAxes {
    fn from_shape_and_strides(shape: &[usize], strides: &[isize]) -> OuterAxes {
        let mut axes = SmallVec::<[(usize, isize); 4]>::new();
        for (&extent, &stride) in shape.iter().zip(strides).filter(|(n, _)| **n != 1) {
            match axes.last_mut() {
                Some(last) if last.1 == stride.saturating_mul(extent as isize) => *last = (last.0 * extent, stride),
                _ => axes.push((extent, stride)),
            }
        }
        OuterAxes(axes)
    }

    /// Returns the offset of the element that has the C-order index `n` over the outer axes.
    #[inline]
    fn element_offset(&self, mut n: usize) -> isize {
        let Some((&(_, first), rest)) = self.0.split_first() else { return 0 };
        let mut offset = 0;
        for &(extent, stride) in rest.iter().rev() {
            offset += (n % extent) as isize * stride;
            n /= extent;
        }
        offset + n as isize * first
    }
}

/// Computes the output of `call`, which gathers elements by indices along an axis, as `take` and `take_along_axis` do.
pub(crate) fn compute_gather(call: &Call) -> Result<Outcome> {
    let (Work::Gather(call::Gather { axis, indices: relation }), [source, indices]) = (&call.work, call.inputs) else {
        decline!("not a take of an array by indices")
    };
    if !matches!(indices.dtype(), DType::I32 | DType::I64) {
        decline!("indices that are not int32 or int64");
    }
    let layout = source.layout();
    let axis_range = GatherAxis { start: layout.offset() as isize, stride: layout.strides()[*axis], extent: layout.shape()[*axis] };
    let mut output = Output::allocate(call, 0)?;
    let elements = output.elements_mut()?;
    let outside = match relation {
        GatherIndices::ReplaceAxis => take(call, source, *axis, axis_range, indices, elements)?,
        GatherIndices::PerElement => index_per_element::take_along_axis(source, *axis, axis_range, indices, elements)?,
    };
    match outside {
        Some(index) => Err(Error::Index { op: call.op.name(), index, axis: *axis, size: axis_range.extent }),
        None => call.outcome_from_buffers([output.into_buffer()]),
    }
}

/// Gathers elements of `source` by `indices`, whose axes replace `axis`. Returns the first invalid index, if there is one.
fn take(
    call: &Call,
    source: &StoredArray,
    axis: usize,
    axis_range: GatherAxis,
    indices: &StoredArray,
    elements: ElementsMut,
) -> Result<Option<i64>> {
    let layout = source.layout();
    let indices = Elements::from_contiguous_array(indices)?;
    // Returns the source's shape and strides for a range of axes.
    let part = |axes: std::ops::Range<usize>| (&layout.shape()[axes.clone()], &layout.strides()[axes]);
    let ((shape, strides), (inner_shape, inner_strides)) = (part(0..axis), part(axis + 1..layout.ndim()));
    let outer = OuterAxes::from_shape_and_strides(shape, strides);
    let inner_layout = Layout::strided(inner_shape, inner_strides, 0)?;
    let mut inner_offsets;
    let inner = match inner_layout.is_c_contiguous() {
        true => ElementsPerIndex::Run(inner_layout.size()),
        false => {
            inner_offsets =
                HostVec::<isize>::allocate(inner_layout.size()).map_err(|e| add_op_to_out_of_memory_error(call.op.name(), e))?;
            inner_offsets.as_mut_slice().iter_mut().zip(element_offsets(&inner_layout)).for_each(|(to, offset)| *to = offset);
            ElementsPerIndex::Offsets(inner_offsets.as_mut_slice())
        }
    };
    let buffer = Elements::from_whole_buffer(source)?;
    Ok(match indices.dtype() {
        DType::I32 => gather::<i32>(buffer, axis_range, &outer, &inner, indices.typed_slice(), elements),
        _ => gather::<i64>(buffer, axis_range, &outer, &inner, indices.typed_slice(), elements),
    })
}

/// Gathers elements of `source` by `indices`. Returns the first invalid index, if there is one.
fn gather<I: GatherIndex>(
    source: Elements,
    axis_range: GatherAxis,
    outer: &OuterAxes,
    inner: &ElementsPerIndex,
    indices: &[I],
    out: ElementsMut,
) -> Option<i64> {
    let good = with_bits!(source.dtype(), T => match inner {
        ElementsPerIndex::Run(1) if outer.0.is_empty() => gather_elements(source.typed_slice::<T>(), axis_range, indices, out),
        _ => gather_rows(source.typed_slice::<T>(), axis_range, outer, inner, indices, out),
    });
    if good { None } else { indices.iter().map(|&i| i.into()).find(|&i| !axis_range.contains_index(i)) }
}

/// Gathers one element per index. Returns whether all indices are valid.
fn gather_elements<T: Element, I: GatherIndex>(values: &[T], axis: GatherAxis, indices: &[I], out: ElementsMut) -> bool {
    let good = AtomicBool::new(true);
    let tasks = out.chunks(ELEMENTS_PER_TASK).zip(indices.chunks(ELEMENTS_PER_TASK));
    threads::for_each(
        tasks,
        indices.len().saturating_mul(COST_PER_INDEX),
        || (),
        |_, (run, indices)| {
            if !gather_on_thread(values, axis, indices, run.typed_slice::<T>()) {
                good.store(false, Ordering::Relaxed);
            }
        },
    );
    good.into_inner()
}

/// Gathers one element per index on the calling thread. Returns whether all indices are valid.
fn gather_on_thread<T: Element, I: GatherIndex>(values: &[T], axis: GatherAxis, indices: &[I], out: &mut [T]) -> bool {
    let (least, greatest) = dispatch_simd(IndexExtremesLoop(indices));
    if !(axis.contains_index(least) && axis.contains_index(greatest)) {
        return false;
    }
    // If there are negative and non-negative indices, the range is taken to be the whole axis.
    let rows = if (least < 0) == (greatest < 0) { least.abs_diff(greatest) } else { axis.extent as u64 };
    let range_bytes = rows.saturating_mul(axis.stride.unsigned_abs() as u64).saturating_mul(size_of::<T>() as u64);
    if range_bytes <= MAX_BYTES_WITHOUT_PREFETCH as u64 {
        // Prefetches all lines of such a small range. Most of them are read, but in an order that the hardware prefetcher does not predict.
        if range_bytes <= size_of_val(indices) as u64 {
            let (a, b) = (axis.at(least), axis.at(greatest));
            prefetch_all_lines(&values[a.min(b) as usize..a.max(b) as usize]);
        }
        out.iter_mut().zip(indices).for_each(|(out, &i)| *out = values[axis.at(i.into()) as usize]);
        return true;
    }
    for (n, (out, &i)) in out.iter_mut().zip(indices).enumerate() {
        if let Some(&later) = indices.get(n + PREFETCH_DISTANCE_IN_INDICES) {
            prefetch_cache_line(values.as_ptr().wrapping_offset(axis.at(later.into())));
        }
        *out = values[axis.at(i.into()) as usize];
    }
    true
}

/// Computes the least and the greatest index.
struct IndexExtremesLoop<'a, I>(&'a [I]);

impl<I: GatherIndex> SimdLoop for IndexExtremesLoop<'_, I> {
    type Output = (i64, i64);
    #[inline(always)]
    fn run(self) -> (i64, i64) {
        self.0.iter().fold((i64::MAX, i64::MIN), |(a, b), &i| (a.min(i.into()), b.max(i.into())))
    }
}

/// For each multi-index of the axes `outer` and each index, copies the elements at the offsets `inner`. Returns whether all indices are
/// valid.
fn gather_rows<T: Element, I: GatherIndex>(
    values: &[T],
    axis: GatherAxis,
    outer: &OuterAxes,
    inner: &ElementsPerIndex,
    indices: &[I],
    out: ElementsMut,
) -> bool {
    if !indices.iter().fold(true, |good, &i| good & axis.contains_index(i.into())) {
        return false;
    }
    let (len, cost) = match inner {
        ElementsPerIndex::Run(len) => (*len, out.len()),
        ElementsPerIndex::Offsets(offsets) => (offsets.len(), out.len().saturating_mul(COST_PER_INDEX)),
    };
    let rows_per_task = (ELEMENTS_PER_TASK / len).max(1);
    let tasks = out.chunks(rows_per_task * len).enumerate();
    threads::for_each(
        tasks,
        cost,
        || (),
        |_, (task, run)| {
            let (mut point, mut n) = (task * rows_per_task / indices.len(), task * rows_per_task % indices.len());
            let mut start = outer.element_offset(point);
            for out in run.typed_slice::<T>().chunks_exact_mut(len) {
                if n == indices.len() {
                    (point, n) = (point + 1, 0);
                    start = outer.element_offset(point);
                }
                let from = start + axis.at(indices[n].into());
                n += 1;
                match inner {
                    ElementsPerIndex::Run(_) => out.copy_from_slice(&values[from as usize..from as usize + out.len()]),
                    ElementsPerIndex::Offsets(offsets) => {
                        out.iter_mut().zip(*offsets).for_each(|(out, &offset)| *out = values[(from + offset) as usize])
                    }
                }
            }
        },
    );
    true
}
