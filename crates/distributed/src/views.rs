//! Views of sharded arrays: the elements of a layout that each rank needs, as a layout over the rank's own memory.

use cuprum_core::layout::{Dims, Strides};
use cuprum_core::{Array, Layout, Result, StoredArray};
use smallvec::SmallVec;

use crate::buffer::ShardedBuffer;
use crate::mesh::Mesh;
use crate::placement::{Cuts, Region, extents, region_of_rank};
use crate::redistribute::{fetch, gather, resolve};

/// The axes of a layout in terms of the axes of the stored array.
#[derive(Debug)]
pub(crate) struct ViewMap {
    /// Index of the layout's first element along each stored axis.
    start: Strides,
    /// For each axis of the layout, its step along each stored axis.
    steps: Vec<Strides>,
}

impl ViewMap {
    /// Returns the map of a layout over a C-contiguous array of `shape`, or `None` if an axis of the layout crosses rows.
    pub fn new(layout: &Layout, shape: &[usize]) -> Option<ViewMap> {
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
        let map = ViewMap { start, steps };
        let whole: Region = layout.shape().iter().map(|&n| 0..n).collect();
        let is_inside = |axis: usize| {
            let (low, high) = map.range(axis, &whole);
            low >= 0 && high <= shape[axis] as isize
        };
        (0..shape.len()).all(is_inside).then_some(map)
    }

    /// Returns the lowest index and the highest index plus one along a stored axis, for a region of the layout.
    fn range(&self, stored_axis: usize, region: &Region) -> (isize, isize) {
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
            .map(|axis| if region.iter().any(|r| r.is_empty()) { (0, 0) } else { self.range(axis, region) })
            .map(|(low, high)| low.max(0) as usize..high.max(0) as usize)
            .collect()
    }

    /// Returns the axis of the layout that runs along a stored axis; the longest one if there are several.
    pub fn axis_along(&self, stored_axis: usize, shape: &[usize]) -> Option<usize> {
        let runs = |axis: &usize| self.steps[*axis][stored_axis] != 0 && shape[*axis] > 1;
        (0..self.steps.len()).filter(runs).max_by_key(|&axis| (shape[axis], std::cmp::Reverse(axis)))
    }

    /// Returns the only stored axis along which an axis of the layout runs, with its step.
    pub fn single_step(&self, axis: usize) -> Option<(usize, isize)> {
        let mut found = self.steps[axis].iter().enumerate().filter(|(_, step)| **step != 0);
        let (stored_axis, step) = found.next()?;
        found.next().is_none().then_some((stored_axis, *step))
    }

    /// Returns the index of the layout's first element along a stored axis.
    pub fn start(&self, stored_axis: usize) -> isize {
        self.start[stored_axis]
    }

    /// Returns the layout of a region of the view within `part`, an array that holds `held`, a region of the stored array.
    fn local_layout(&self, region: &Region, part: &Layout, held: &Region) -> Result<Layout> {
        let along = |step: &Strides| step.iter().zip(part.strides()).map(|(step, stride)| step * stride).sum::<isize>();
        let strides: Strides = self.steps.iter().map(along).collect();
        let first = |(axis, held): (usize, &std::ops::Range<usize>)| {
            let of_region: isize = self.steps.iter().zip(region).map(|(step, range)| step[axis] * range.start as isize).sum();
            (self.start[axis] + of_region - held.start as isize) * part.strides()[axis]
        };
        let offset = part.offset() as isize + held.iter().enumerate().map(first).sum::<isize>();
        Layout::strided(&extents(region), &strides, usize::try_from(offset).unwrap_or(usize::MAX))
    }
}

/// Returns the mesh axes that divide a view, each with the axis of the view. `None` for mesh axes along which it is repeated.
pub(crate) fn natural_cuts(mesh: Mesh, array: &StoredArray) -> Cuts {
    let none = SmallVec::from_elem(None, mesh.shape().len());
    let Some(buffer) = ShardedBuffer::of(array) else { return none };
    let map = ViewMap::new(array.layout(), &buffer.distribution.shape).filter(|_| has_same_items(array, buffer));
    let cut = |m: usize| {
        let stored_axis = buffer.distribution.sharded_axis(m)?;
        match &map {
            Some(map) => map.axis_along(stored_axis, array.shape()),
            None => longest_stride_axis(array.layout()),
        }
    };
    (0..mesh.shape().len()).map(cut).collect()
}

/// Returns the axis of the largest stride among those with several elements.
fn longest_stride_axis(layout: &Layout) -> Option<usize> {
    let axes = (0..layout.ndim()).filter(|&axis| layout.shape()[axis] > 1 && layout.strides()[axis] != 0);
    axes.max_by_key(|&axis| (layout.strides()[axis].unsigned_abs(), std::cmp::Reverse(axis)))
}

fn has_same_items(array: &StoredArray, buffer: &ShardedBuffer) -> bool {
    array.dtype().itemsize() == buffer.dtype.itemsize()
}

/// Returns for each rank of this process the part of `array` that `cuts` assign to it, on the rank's device.
///
/// The part of a rank is its region of the array's shape. Elements of other ranks are received from them, and no others.
pub(crate) fn local_parts(mesh: Mesh, array: &StoredArray, cuts: &Cuts) -> Result<Vec<StoredArray>> {
    local_regions(mesh, array, &|rank| region_of_rank(mesh, array.shape(), cuts, rank))
}

/// Returns for each rank of this process a region of `array`, on the rank's device. `region` is a function of the rank.
pub(crate) fn local_regions(mesh: Mesh, array: &StoredArray, region: &dyn Fn(usize) -> Region) -> Result<Vec<StoredArray>> {
    let Some(buffer) = ShardedBuffer::of(array) else {
        return Err(cuprum_core::Error::Device { op: "mesh", message: format!("an array on {} is not on a mesh", array.device()) });
    };
    if let Some(resolved) = resolve(buffer)? {
        return local_regions(mesh, &StoredArray::new(array.dtype(), array.layout().clone(), resolved.buffer().clone())?, region);
    }
    let ranks = || mesh.local_ranks().enumerate();
    if buffer.is_replicated() {
        return ranks().map(|(local, rank)| view_of_whole(array, &buffer.parts[local], &region(rank))).collect();
    }
    if has_same_items(array, buffer) {
        if let Some(map) = ViewMap::new(array.layout(), &buffer.distribution.shape) {
            let held = |rank: usize| map.stored_region(&region(rank));
            let parts = fetch(buffer, &held)?;
            let view = |((local, rank), part): ((usize, usize), &StoredArray)| {
                let region = region(rank);
                if region.iter().any(|range| range.is_empty()) {
                    return crate::buffer::empty_part(mesh.members()[local], array.dtype(), &extents(&region));
                }
                StoredArray::new(array.dtype(), map.local_layout(&region, part.layout(), &held(rank))?, part.buffer().clone())
            };
            return ranks().zip(&parts).map(view).collect();
        }
        if let Some(rows) = Rows::of(buffer) {
            return rows.local_regions(mesh, array, buffer, region);
        }
    }
    let whole = gather(buffer)?;
    let view = |(local, rank): (usize, usize)| {
        let whole = whole.get(mesh.leader_of(local)).and_then(Option::as_ref);
        let whole = whole.ok_or_else(|| cuprum_core::Error::value("mesh", "no rank holds the whole array"))?;
        view_of_whole(array, whole, &region(rank))
    };
    ranks().map(view).collect()
}

/// Returns the layout of a region of a layout.
fn sub_layout(layout: &Layout, region: &Region) -> Result<Layout> {
    let shift: isize = layout.strides().iter().zip(region).map(|(stride, range)| stride * range.start as isize).sum();
    let shape = extents(region);
    let offset = if shape.contains(&0) { 0 } else { layout.offset() as isize + shift };
    Layout::strided(&shape, layout.strides(), usize::try_from(offset).unwrap_or(usize::MAX))
}

/// Returns a region of `array` over the memory of `whole`, an array of all elements on one device.
fn view_of_whole(array: &StoredArray, whole: &StoredArray, region: &Region) -> Result<StoredArray> {
    StoredArray::new(array.dtype(), sub_layout(array.layout(), region)?, whole.buffer().clone())
}

/// The rows of a stored array whose outermost axis, apart from axes of extent 1, is the only divided one.
///
/// Each rank then holds a range of the elements, so that any layout is a layout over a range of rows.
struct Rows {
    axis: usize,
    /// Elements of a row.
    length: usize,
}

impl Rows {
    fn of(buffer: &ShardedBuffer) -> Option<Rows> {
        let shape = &buffer.distribution.shape;
        let axis = shape.iter().position(|&n| n > 1)?;
        let is_only = |m: usize| buffer.distribution.sharded_axis(m).is_none_or(|sharded| sharded == axis || shape[sharded] == 1);
        if !(0..buffer.mesh.shape().len()).all(is_only) {
            return None;
        }
        // An axis of extent 1 that a mesh axis divides leaves some ranks without elements. They hold no rows.
        Some(Rows { axis, length: shape[axis + 1..].iter().product::<usize>().max(1) })
    }

    fn local_regions(
        &self,
        mesh: Mesh,
        array: &StoredArray,
        buffer: &ShardedBuffer,
        region: &dyn Fn(usize) -> Region,
    ) -> Result<Vec<StoredArray>> {
        let shape = &buffer.distribution.shape;
        let layouts = (0..mesh.size()).map(|rank| sub_layout(array.layout(), &region(rank))).collect::<Result<Vec<_>>>()?;
        let rows = |rank: usize| {
            let (low, high) = layouts[rank].extent();
            low.max(0) as usize / self.length..(high.max(0) as usize).div_ceil(self.length)
        };
        let held = |rank: usize| -> Region {
            shape.iter().enumerate().map(|(axis, &n)| if axis == self.axis { rows(rank) } else { 0..n }).collect()
        };
        let parts = fetch(buffer, &held)?;
        let view = |((local, rank), part): ((usize, usize), &StoredArray)| {
            let layout = &layouts[rank];
            if layout.size() == 0 {
                return crate::buffer::empty_part(mesh.members()[local], array.dtype(), layout.shape());
            }
            let offset = layout.offset() + part.layout().offset() - rows(rank).start * self.length;
            StoredArray::new(array.dtype(), layout.with_offset(offset), part.buffer().clone())
        };
        mesh.local_ranks().enumerate().zip(&parts).map(view).collect()
    }
}

/// Returns the extents of the elements of a layout in the order in which axes lie in memory.
pub(crate) fn shape_in_order(shape: &[usize], order: &[usize]) -> Dims {
    order.iter().map(|&axis| shape[axis]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_and_transposes_map_to_stored_axes() {
        let layout = Layout::contiguous(&[4, 6]).unwrap();
        let flipped = layout.flip(&[0]).transpose();
        let map = ViewMap::new(&flipped, &[4, 6]).unwrap();
        assert_eq!((map.axis_along(0, flipped.shape()), map.axis_along(1, flipped.shape())), (Some(1), Some(0)));
        assert_eq!((map.single_step(1), map.start(0)), (Some((0, -1)), 3));
        assert_eq!(map.stored_region(&[0..6, 0..1].into_iter().collect())[..], [3..4, 0..6]);
    }

    #[test]
    fn merged_axes_and_diagonals() {
        let layout = Layout::contiguous(&[4, 6]).unwrap();
        assert!(ViewMap::new(&layout.reshape(&[24]).unwrap(), &[4, 6]).is_none());
        let diagonal = layout.diagonal(1, 0, 1).unwrap();
        let map = ViewMap::new(&diagonal, &[4, 6]).unwrap();
        assert_eq!(map.stored_region(&Region::from_iter(std::iter::once(1..3)))[..], [1..3, 2..4]);
    }
}
