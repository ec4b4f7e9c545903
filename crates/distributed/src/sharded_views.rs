//! Views of sharded arrays: finds the elements of a view that each rank needs, and describes them as a layout over the rank's memory.

use std::ops::Range;

use cuprum_core::layout::{Dims, Strides};
use cuprum_core::{Array, Layout, NdArray, Result, StoredArray};
use smallvec::SmallVec;

use crate::mesh::Mesh;
use crate::placement::{DividedAxes, Region, region_extents, region_of_rank};
use crate::redistribute::{fetch_region_parts, fetch_regions, gather_on_leaders, resolve_pending_reductions};
use crate::sharded_buffer::ShardedBuffer;

/// A map from the axes of a layout, such as that of a view, to the axes of the stored array.
#[derive(Debug)]
pub(crate) struct ViewAxisMap {
    /// Index of the layout's first element along each stored axis.
    start: Strides,
    /// `steps[axis][stored_axis]` is the change of the index along `stored_axis` if the index along `axis` of the layout increases by one.
    steps: Vec<Strides>,
}

impl ViewAxisMap {
    /// Returns the map from the axes of `layout` to the axes of a C-contiguous array of `shape`. Returns `None` if an axis of the layout
    /// runs past the end of a stored axis, as after a reshape that merges axes.
    pub fn new(layout: &Layout, shape: &[usize]) -> Option<ViewAxisMap> {
        let stored = Layout::contiguous(shape).ok()?;
        let mut start = Strides::new();
        let mut rest = layout.offset();
        for (&stride, &extent) in stored.strides().iter().zip(shape) {
            let stride = stride.unsigned_abs().max(1);
            let index = if extent > 1 { rest / stride } else { 0 };
            rest -= index * stride;
            start.push(isize::try_from(index).ok()?);
        }
        if rest != 0 {
            return None;
        }
        let mut steps = Vec::with_capacity(layout.ndim());
        for (&extent, &stride) in layout.shape().iter().zip(layout.strides()) {
            let mut step: Strides = SmallVec::from_elem(0, shape.len());
            let mut rest = if extent > 1 { stride.unsigned_abs() } else { 0 };
            for (axis, (&of_axis, &n)) in stored.strides().iter().zip(shape).enumerate() {
                let of_axis = of_axis.unsigned_abs().max(1);
                if n > 1 {
                    step[axis] = (rest / of_axis) as isize * stride.signum();
                    rest %= of_axis;
                }
            }
            if rest != 0 {
                return None;
            }
            steps.push(step);
        }
        let map = ViewAxisMap { start, steps };
        let whole: Region = layout.shape().iter().map(|&n| 0..n).collect();
        let is_inside = |axis: usize| {
            let (low, high) = map.stored_range(axis, &whole);
            low >= 0 && high <= shape[axis] as isize
        };
        (0..shape.len()).all(is_inside).then_some(map)
    }

    /// Returns the lowest index and the highest index plus one along a stored axis, for a region of the layout.
    fn stored_range(&self, stored_axis: usize, region: &Region) -> (isize, isize) {
        let (mut low, mut high) = (self.start[stored_axis], self.start[stored_axis]);
        for (step, range) in self.steps.iter().zip(region) {
            let step = step[stored_axis];
            let (first, last) = (step.saturating_mul(range.start as isize), step.saturating_mul(range.end as isize - 1));
            low = low.saturating_add(first.min(last));
            high = high.saturating_add(first.max(last));
        }
        (low, high.saturating_add(1))
    }

    /// Returns the region of the stored array that contains a region of the layout.
    pub fn stored_region(&self, region: &Region) -> Region {
        (0..self.start.len())
            .map(|axis| if region.iter().any(|r| r.is_empty()) { (0, 0) } else { self.stored_range(axis, region) })
            .map(|(low, high)| low.max(0) as usize..high.max(0) as usize)
            .collect()
    }

    /// Returns the axis of the layout that runs along a stored axis; the longest such axis if there are several.
    pub fn view_axis_along(&self, stored_axis: usize, shape: &[usize]) -> Option<usize> {
        let runs = |axis: &usize| self.steps[*axis][stored_axis] != 0 && shape[*axis] > 1;
        (0..self.steps.len()).filter(runs).max_by_key(|&axis| (shape[axis], std::cmp::Reverse(axis)))
    }

    /// Returns the stored axis along which an axis of the layout runs, and the step along it. Returns `None` unless there is exactly one
    /// such stored axis.
    pub fn stored_axis_and_step(&self, axis: usize) -> Option<(usize, isize)> {
        let mut found = self.steps[axis].iter().enumerate().filter(|(_, step)| **step != 0);
        let (stored_axis, step) = found.next()?;
        found.next().is_none().then_some((stored_axis, *step))
    }

    /// Returns the longest range of indices along an axis of `region` at which all elements of the view are in `held`, a region of the
    /// stored array. The other axes keep their ranges. Returns `None` if the range depends on the indices along other axes.
    fn held_range_along_axis(&self, held: &Region, region: &Region, axis: usize) -> Option<Range<usize>> {
        let needed = self.stored_region(region);
        let Range { mut start, mut end } = region[axis].clone();
        for (stored_axis, (needed, held)) in needed.iter().zip(held).enumerate() {
            if needed.start >= held.start && needed.end <= held.end {
                continue;
            }
            let runs_alone = |(n, step): (usize, &Strides)| n == axis || step[stored_axis] == 0 || region[n].len() == 1;
            let step = self.steps[axis][stored_axis];
            if step == 0 || !self.steps.iter().enumerate().all(runs_alone) {
                return None;
            }
            let others = self.steps.iter().zip(region).enumerate().filter(|(n, _)| *n != axis);
            let first = self.start[stored_axis] + others.map(|(_, (step, range))| step[stored_axis] * range.start as isize).sum::<isize>();
            let inside = indices_in_range(first, step, held);
            start = start.max(inside.start);
            end = end.min(inside.end);
        }
        Some(start..end.max(start))
    }

    /// Returns the region of a view whose elements lie in `held`, a region of the stored array. The view has the shape `shape`.
    ///
    /// Returns `None` if these elements may not form a region. This is the case if several axes of the view run along one stored axis. It
    /// is also the case if `held` lacks the only element of a 0-d view, because a 0-d view has no empty region.
    fn held_view_region(&self, held: &Region, shape: &[usize]) -> Option<Region> {
        let whole: Region = shape.iter().map(|&n| 0..n).collect();
        let mut region = whole.clone();
        for (stored_axis, held) in held.iter().enumerate() {
            let (low, high) = self.stored_range(stored_axis, &whole);
            if held.start as isize <= low && high <= held.end as isize {
                continue;
            }
            let mut along = (0..self.steps.len()).filter(|&axis| self.steps[axis][stored_axis] != 0);
            match (along.next(), along.next()) {
                (Some(axis), None) => {
                    let inside = indices_in_range(self.start[stored_axis], self.steps[axis][stored_axis], held);
                    region[axis] = intersect_ranges(&region[axis], &inside);
                }
                (None, _) if !shape.is_empty() => return Some(shape.iter().map(|_| 0..0).collect()),
                _ => return None,
            }
        }
        Some(region)
    }

    /// Returns the index of the layout's first element along a stored axis.
    pub fn start_index(&self, stored_axis: usize) -> isize {
        self.start[stored_axis]
    }

    /// Returns the layout that addresses a region of the view in the memory of one rank. `part` is the layout of the rank's memory, which
    /// holds the region `held` of the stored array.
    fn local_layout(&self, region: &Region, part: &Layout, held: &Region) -> Result<Layout> {
        let along = |step: &Strides| step.iter().zip(part.strides()).map(|(step, stride)| step * stride).sum::<isize>();
        let strides: Strides = self.steps.iter().map(along).collect();
        let first = |(axis, held): (usize, &Range<usize>)| {
            let of_region: isize = self.steps.iter().zip(region).map(|(step, range)| step[axis] * range.start as isize).sum();
            (self.start[axis] + of_region - held.start as isize) * part.strides()[axis]
        };
        let offset = part.offset() as isize + held.iter().enumerate().map(first).sum::<isize>();
        Layout::strided(&region_extents(region), &strides, usize::try_from(offset).unwrap_or(usize::MAX))
    }
}

/// Returns the range of indices `i >= 0` for which `first + step * i` is in `held`. `step` is not 0.
fn indices_in_range(first: isize, step: isize, held: &Range<usize>) -> Range<usize> {
    let (low, high) = (held.start as isize - first, held.end as isize - 1 - first);
    let (low, high) = if step > 0 { (low, high) } else { (-high, -low) };
    let length = step.abs();
    let start = usize::try_from((low + length - 1).div_euclid(length)).unwrap_or(0);
    start..usize::try_from(high.div_euclid(length) + 1).unwrap_or(0)
}

/// Returns the common indices of two ranges.
fn intersect_ranges(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

/// A view of a sharded array, of which each rank holds a region.
pub(crate) struct ShardedView<'a> {
    pub array: &'a StoredArray,
    pub buffer: &'a ShardedBuffer,
    map: ViewAxisMap,
    /// The regions of the view that the ranks hold, by rank.
    pub held: Vec<Region>,
}

impl<'a> ShardedView<'a> {
    /// Returns the view, or `None` if partial results of the ranks are not combined yet, or if the elements of some rank may not be a
    /// rectangular region of the view.
    pub fn of(array: &'a StoredArray) -> Option<ShardedView<'a>> {
        let buffer =
            ShardedBuffer::of(array).filter(|buffer| !buffer.distribution.has_pending_reduction() && has_same_itemsize(array, buffer))?;
        let map = ViewAxisMap::new(array.layout(), &buffer.distribution.shape)?;
        let held = |rank: usize| map.held_view_region(&buffer.distribution.rank_region(buffer.mesh, rank), array.shape());
        let held = (0..buffer.mesh.size()).map(held).collect::<Option<Vec<_>>>()?;
        Some(ShardedView { array, buffer, map, held })
    }

    /// Returns a region of the view that rank number `local` of this process holds, as a view of the rank's part.
    pub fn local_region_view(&self, local: usize, region: &Region) -> Result<NdArray> {
        let (mesh, part) = (self.buffer.mesh, &self.buffer.parts[local]);
        let held = self.buffer.distribution.rank_region(mesh, mesh.local_ranks().start + local);
        let layout = self.map.local_layout(region, part.layout(), &held)?;
        Ok(NdArray::from(StoredArray::new(self.array.dtype(), layout, part.buffer().clone())?))
    }
}

/// Returns the axis of the view that each mesh axis divides, or `None` for a mesh axis that divides no axis of the view.
///
/// If no [`ViewAxisMap`] describes the view, mesh axes that divide the stored array get the view's axis with the largest stride.
pub(crate) fn divided_axes_of_view(mesh: Mesh, array: &StoredArray) -> DividedAxes {
    let none = SmallVec::from_elem(None, mesh.shape().len());
    let Some(buffer) = ShardedBuffer::of(array) else { return none };
    let map = ViewAxisMap::new(array.layout(), &buffer.distribution.shape).filter(|_| has_same_itemsize(array, buffer));
    let cut = |m: usize| {
        let stored_axis = buffer.distribution.sharded_axis(m)?;
        match &map {
            Some(map) => map.view_axis_along(stored_axis, array.shape()),
            None => largest_stride_axis(array.layout()),
        }
    };
    (0..mesh.shape().len()).map(cut).collect()
}

/// Returns the axis with the largest stride among the axes of several elements, or `None` if all strides are 0.
fn largest_stride_axis(layout: &Layout) -> Option<usize> {
    let axes = (0..layout.ndim()).filter(|&axis| layout.shape()[axis] > 1 && layout.strides()[axis] != 0);
    axes.max_by_key(|&axis| (layout.strides()[axis].unsigned_abs(), std::cmp::Reverse(axis)))
}

/// Returns the range of indices along `axis` of a region at which `rank` holds all elements of a view. Returns `None` if no such range is
/// known, or if a reduction is pending.
pub(crate) fn range_held_by_rank(mesh: Mesh, array: &StoredArray, region: &Region, axis: usize, rank: usize) -> Option<Range<usize>> {
    let buffer = ShardedBuffer::of(array)?;
    if buffer.is_replicated() {
        return Some(region[axis].clone());
    }
    if buffer.distribution.has_pending_reduction() || !has_same_itemsize(array, buffer) {
        return None;
    }
    let map = ViewAxisMap::new(array.layout(), &buffer.distribution.shape)?;
    map.held_range_along_axis(&buffer.distribution.rank_region(mesh, rank), region, axis)
}

/// Returns whether the elements of `array` have as many bytes as those of its buffer. A view of another dtype may have elements of another
/// size.
pub(crate) fn has_same_itemsize(array: &StoredArray, buffer: &ShardedBuffer) -> bool {
    array.dtype().itemsize() == buffer.dtype.itemsize()
}

/// Returns, for each rank of this process, its part of `array` on the rank's device.
///
/// The part is the region of the array's shape that `cuts` assign to the rank. Elements that the rank does not hold are received from other
/// ranks.
pub(crate) fn fetch_local_parts(mesh: Mesh, array: &StoredArray, cuts: &DividedAxes) -> Result<Vec<StoredArray>> {
    fetch_local_regions(mesh, array, &|rank| region_of_rank(mesh, array.shape(), cuts, rank))
}

/// Returns, for each rank of this process, the region `region(rank)` of `array` on the rank's device.
pub(crate) fn fetch_local_regions(mesh: Mesh, array: &StoredArray, region: &dyn Fn(usize) -> Region) -> Result<Vec<StoredArray>> {
    let Some(buffer) = ShardedBuffer::of(array) else {
        return Err(cuprum_core::Error::Device { op: "mesh", message: format!("an array on {} is not on a mesh", array.device()) });
    };
    if let Some(resolved) = resolve_pending_reductions(buffer)? {
        return fetch_local_regions(mesh, &StoredArray::new(array.dtype(), array.layout().clone(), resolved.buffer().clone())?, region);
    }
    let ranks = || mesh.local_ranks().enumerate();
    if buffer.is_replicated() {
        return ranks().map(|(local, rank)| view_region_of_whole(array, &buffer.parts[local], &region(rank))).collect();
    }
    if has_same_itemsize(array, buffer) {
        if let Some(map) = ViewAxisMap::new(array.layout(), &buffer.distribution.shape) {
            let held = |rank: usize| map.stored_region(&region(rank));
            let parts = fetch_regions(buffer, &held)?;
            let view = |((local, rank), part): ((usize, usize), &StoredArray)| {
                let region = region(rank);
                if region.iter().any(|range| range.is_empty()) {
                    return crate::sharded_buffer::zero_size_array(mesh.local_devices()[local], array.dtype(), &region_extents(&region));
                }
                StoredArray::new(array.dtype(), map.local_layout(&region, part.layout(), &held(rank))?, part.buffer().clone())
            };
            return ranks().zip(&parts).map(view).collect();
        }
        if let Some(rows) = StoredRows::of(buffer) {
            return rows.fetch_local_regions(mesh, array, buffer, region);
        }
    }
    let whole = gather_on_leaders(buffer)?;
    let view = |(local, rank): (usize, usize)| {
        let whole = whole.get(mesh.device_leader_of(local)).and_then(Option::as_ref);
        let whole = whole.ok_or_else(|| cuprum_core::Error::value("mesh", "no rank holds the whole array"))?;
        view_region_of_whole(array, whole, &region(rank))
    };
    ranks().map(view).collect()
}

/// Returns, for each rank of this process, the region `region(rank)` of `array` as one or more parts on the rank's device. Each part has
/// its own region of `array`. Parts that come from different ranks remain separate arrays if they divide the region along one axis.
pub(crate) fn fetch_local_region_parts(
    mesh: Mesh,
    array: &StoredArray,
    region: &dyn Fn(usize) -> Region,
) -> Result<Vec<Vec<(StoredArray, Region)>>> {
    if let Some((buffer, map, axis)) = find_divided_axis(mesh, array) {
        let part = |rank: usize, (part, held): (NdArray, Region)| {
            let mut region = region(rank);
            let Some(range) = map.held_range_along_axis(&held, &region, axis).filter(|range| !range.is_empty()) else { return Ok(None) };
            region[axis] = range;
            let part = part.stored()?;
            let layout = map.local_layout(&region, part.layout(), &held)?;
            Ok(Some((StoredArray::new(array.dtype(), layout, part.buffer().clone())?, region)))
        };
        let parts_of_rank = |(parts, rank): (Vec<(NdArray, Region)>, usize)| {
            parts.into_iter().filter_map(|held| part(rank, held).transpose()).collect::<Result<Vec<_>>>()
        };
        let parts = fetch_region_parts(buffer, &|rank| map.stored_region(&region(rank)))?;
        return parts.into_iter().zip(mesh.local_ranks()).map(parts_of_rank).collect();
    }
    let whole = |(part, rank)| vec![(part, region(rank))];
    Ok(fetch_local_regions(mesh, array, region)?.into_iter().zip(mesh.local_ranks()).map(whole).collect())
}

/// Returns the sharded buffer of a view, the [`ViewAxisMap`] of the view, and the view's axis that runs along the divided axis of the
/// stored array. Returns `None` unless the stored array is divided along exactly one axis, and exactly one axis of the view runs along that
/// axis.
fn find_divided_axis(mesh: Mesh, array: &StoredArray) -> Option<(&ShardedBuffer, ViewAxisMap, usize)> {
    let buffer =
        ShardedBuffer::of(array).filter(|buffer| !buffer.distribution.has_pending_reduction() && has_same_itemsize(array, buffer))?;
    let mut divided = (0..mesh.shape().len()).filter_map(|m| buffer.distribution.sharded_axis(m));
    let (stored_axis, None) = (divided.next()?, divided.next()) else { return None };
    let map = ViewAxisMap::new(array.layout(), &buffer.distribution.shape)?;
    let axis = map.view_axis_along(stored_axis, array.shape())?;
    let runs_alone = |n: usize| n == axis || map.steps[n][stored_axis] == 0 || array.shape()[n] == 1;
    (0..map.steps.len()).all(runs_alone).then_some((buffer, map, axis))
}

/// Restricts `layout` to the elements of `region`.
pub(crate) fn layout_of_region(layout: &Layout, region: &Region) -> Result<Layout> {
    let shift: isize = layout.strides().iter().zip(region).map(|(stride, range)| stride * range.start as isize).sum();
    let shape = region_extents(region);
    let offset = if shape.contains(&0) { 0 } else { layout.offset() as isize + shift };
    Layout::strided(&shape, layout.strides(), usize::try_from(offset).unwrap_or(usize::MAX))
}

/// Returns the region `region` of `array` as a view of `whole`, a copy on one device of the array's complete buffer.
fn view_region_of_whole(array: &StoredArray, whole: &StoredArray, region: &Region) -> Result<StoredArray> {
    StoredArray::new(array.dtype(), layout_of_region(array.layout(), region)?, whole.buffer().clone())
}

/// The rows of a stored array that is divided along its outermost axis only. Axes of extent 1 do not count.
///
/// Any range of rows is contiguous in memory. A layout over the whole array is therefore also a layout over the rows that its elements
/// span.
struct StoredRows {
    axis: usize,
    /// Number of elements per row.
    length: usize,
}

impl StoredRows {
    fn of(buffer: &ShardedBuffer) -> Option<StoredRows> {
        let shape = &buffer.distribution.shape;
        let axis = shape.iter().position(|&n| n > 1)?;
        let is_only = |m: usize| buffer.distribution.sharded_axis(m).is_none_or(|sharded| sharded == axis || shape[sharded] == 1);
        if !(0..buffer.mesh.shape().len()).all(is_only) {
            return None;
        }
        // An axis of extent 1 that a mesh axis divides leaves some ranks without elements. Such ranks hold no rows.
        Some(StoredRows { axis, length: shape[axis + 1..].iter().product::<usize>().max(1) })
    }

    fn fetch_local_regions(
        &self,
        mesh: Mesh,
        array: &StoredArray,
        buffer: &ShardedBuffer,
        region: &dyn Fn(usize) -> Region,
    ) -> Result<Vec<StoredArray>> {
        let shape = &buffer.distribution.shape;
        let layouts = (0..mesh.size()).map(|rank| layout_of_region(array.layout(), &region(rank))).collect::<Result<Vec<_>>>()?;
        let rows = |rank: usize| {
            let (low, high) = layouts[rank].buffer_range();
            low.max(0) as usize / self.length..(high.max(0) as usize).div_ceil(self.length)
        };
        let held = |rank: usize| -> Region {
            shape.iter().enumerate().map(|(axis, &n)| if axis == self.axis { rows(rank) } else { 0..n }).collect()
        };
        let parts = fetch_regions(buffer, &held)?;
        let view = |((local, rank), part): ((usize, usize), &StoredArray)| {
            let layout = &layouts[rank];
            if layout.size() == 0 {
                return crate::sharded_buffer::zero_size_array(mesh.local_devices()[local], array.dtype(), layout.shape());
            }
            let offset = layout.offset() + part.layout().offset() - rows(rank).start * self.length;
            StoredArray::new(array.dtype(), layout.with_offset(offset), part.buffer().clone())
        };
        mesh.local_ranks().enumerate().zip(&parts).map(view).collect()
    }
}

/// Returns the extents `shape` in the order of axes that `order` gives.
pub(crate) fn permute_shape(shape: &[usize], order: &[usize]) -> Dims {
    order.iter().map(|&axis| shape[axis]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_and_transposes_map_to_stored_axes() {
        let layout = Layout::contiguous(&[4, 6]).unwrap();
        let flipped = layout.flip(&[0]).transpose();
        let map = ViewAxisMap::new(&flipped, &[4, 6]).unwrap();
        assert_eq!((map.view_axis_along(0, flipped.shape()), map.view_axis_along(1, flipped.shape())), (Some(1), Some(0)));
        assert_eq!((map.stored_axis_and_step(1), map.start_index(0)), (Some((0, -1)), 3));
        assert_eq!(map.stored_region(&[0..6, 0..1].into_iter().collect())[..], [3..4, 0..6]);
    }

    #[test]
    fn ranges_of_indices_in_the_memory_of_a_rank() {
        let region = |ranges: &[Range<usize>]| Region::from_iter(ranges.iter().cloned());
        let stored = Layout::contiguous(&[10, 3]).unwrap();
        let view = |start: usize, rows: usize, step: isize| {
            let layout = Layout::strided(&[rows, 3], &[3 * step, 1], 3 * start).unwrap();
            ViewAxisMap::new(&layout, &[10, 3]).unwrap()
        };
        // The rank holds rows 4 to 7.
        let held = region(&[4..8, 0..3]);
        for (start, rows, step) in [(0, 10, 1), (2, 8, 1), (1, 5, 2), (0, 4, 3), (9, 10, -1), (8, 4, -2), (9, 3, -3), (5, 2, 1)] {
            let map = view(start, rows, step);
            for (low, high) in [(0, rows), (1, rows), (0, rows - 1)] {
                let inside: Vec<usize> = (low..high).filter(|&i| (4..8).contains(&(start as isize + step * i as isize))).collect();
                let range = map.held_range_along_axis(&held, &region(&[low..high, 0..3]), 0).unwrap();
                assert_eq!(range.clone().collect::<Vec<_>>(), inside, "{start} {rows} {step} {low}..{high}: {range:?}");
            }
        }
        let map = ViewAxisMap::new(&stored.transpose(), &[10, 3]).unwrap();
        assert_eq!(map.held_range_along_axis(&held, &region(&[0..3, 0..10]), 0), None);
        assert_eq!(map.held_range_along_axis(&held, &region(&[0..3, 0..10]), 1), Some(4..8));
    }

    #[test]
    fn merged_axes_and_diagonals() {
        let layout = Layout::contiguous(&[4, 6]).unwrap();
        assert!(ViewAxisMap::new(&layout.reshape(&[24]).unwrap(), &[4, 6]).is_none());
        let diagonal = layout.diagonal(1, 0, 1).unwrap();
        let map = ViewAxisMap::new(&diagonal, &[4, 6]).unwrap();
        assert_eq!(map.stored_region(&Region::from_iter(std::iter::once(1..3)))[..], [1..3, 2..4]);
    }
}
