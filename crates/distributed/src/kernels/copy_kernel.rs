//! Kernel family `Copy`: copies, joins, and assignments to slices. Each rank writes the elements of its part of the result.

use cuprum_core::layout::Strides;
use cuprum_core::{Array, Call, Layout, NdArray, Outcome, OutputSpec, Result, StoredArray, Work, call, decline};

use crate::mesh::Mesh;
use crate::placement::{DividedAxes, Region, region_extents, region_of_rank};
use crate::rank_calls::{
    decline_with_reason, divided_axes_of_largest_input, has_sharded_input, local_output_spec, mesh_of_call, run_on_local_ranks,
    run_on_rank, sharded_output_from_parts,
};
use crate::redistribute::resolve_pending_reductions;
use crate::sharded_buffer::{ShardedBuffer, axes_in_memory_order};
use crate::sharded_views::{ViewAxisMap, fetch_local_region_parts, has_same_itemsize, permute_shape};

/// Runs a copy of one array or a join of several.
pub(super) fn run_copy(call: &Call) -> Result<Outcome> {
    let Work::Copy(call::Copy { regions }) = &call.work else { decline!("not a copy") };
    let mesh = mesh_of_call(call)?;
    let output = &call.outputs[0];
    let order = axes_in_memory_order(&output.layout);
    let stored_shape = permute_shape(output.layout.shape(), &order);
    let target = match output.target_buffer() {
        None if !has_sharded_input(call.inputs) => decline!("every rank holds the inputs"),
        None => None,
        Some(target) => {
            let target = StoredArray::new(output.dtype, output.layout.clone(), target.clone())?;
            let Some(buffer) = ShardedBuffer::of(&target) else { decline!("the target is not on a mesh") };
            let has_shape = buffer.distribution.shape == stored_shape && has_same_itemsize(&target, buffer);
            if buffer.is_replicated() || !has_shape || output.layout.offset() != 0 {
                decline!("the target is not a divided array of the output's layout");
            }
            Some(match resolve_pending_reductions(buffer)? {
                Some(resolved) => StoredArray::new(output.dtype, output.layout.clone(), resolved.buffer().clone())?,
                None => target,
            })
        }
    };
    // Each input is copied to one [`OutputRegion`]. Two axes of an input never map to the same axis of the output.
    let mut maps = Vec::new();
    for region in *regions {
        match OutputRegion::of(region, &stored_shape) {
            Some(map) => maps.push(map),
            None => decline!("a region crosses rows of the output"),
        }
    }
    // The divided axes (`cuts`) are numbered in the memory order of the output.
    let cuts: DividedAxes = match &target {
        Some(target) => match ShardedBuffer::of(target) {
            Some(buffer) => (0..mesh.shape().len()).map(|m| buffer.distribution.sharded_axis(m)).collect(),
            None => decline!("the target is not on a mesh"),
        },
        None => divided_axes_of_output(mesh, call, &maps),
    };
    let rank_region = |rank: usize| region_of_rank(mesh, &stored_shape, &cuts, rank);
    let mut inputs = Vec::new();
    for (input, map) in call.inputs.iter().zip(&maps) {
        inputs.push(fetch_local_region_parts(mesh, input, &|rank| map.input_region_copied_to(&rank_region(rank)))?);
    }
    let output_cuts: DividedAxes = cuts.iter().map(|cut| cut.map(|axis| order[axis])).collect();
    let parts = run_on_local_ranks(mesh, 1, false, |local, rank| {
        let held = rank_region(rank);
        let specification = local_output_spec(mesh, output, &output_cuts, rank)?;
        let stored = Layout::contiguous(&region_extents(&held))?;
        let mut sources = Vec::new();
        let mut targets = Vec::new();
        for (parts, map) in inputs.iter().zip(&maps) {
            for (part, region) in parts[local].iter().filter(|(part, _)| part.layout().size() > 0 && map.may_overlap(&held)) {
                targets.push(map.local_target_layout(region, &held, &stored)?);
                sources.push(part.clone());
            }
        }
        let work = Work::Copy(call::Copy { regions: &targets });
        let Some(target) = target.as_ref().and_then(ShardedBuffer::of) else {
            return run_on_rank(mesh, local, call, &sources, &[specification], work);
        };
        let part = &target.parts[local];
        if sources.is_empty() {
            return Ok(Ok([part.clone()].into_iter().collect()));
        }
        let flat = StoredArray::new(output.dtype, Layout::contiguous(&[part.layout().size()])?, part.buffer().clone())?;
        let mut updated = NdArray::from(flat);
        mesh.with_rank_device(local, || updated.update_by_call(call.op, &sources, specification.layout.clone(), work))?;
        Ok(Ok([updated.stored()?].into_iter().collect()))
    })?;
    match parts {
        Ok(mut parts) => {
            let specification = OutputSpec::new(output.dtype, output.layout.clone());
            Ok(Outcome::Done([sharded_output_from_parts(mesh, &specification, &output_cuts, parts.remove(0))?].into_iter().collect()))
        }
        Err(reason) => decline_with_reason(reason),
    }
}

/// Returns the output axis that each mesh axis divides, numbered in memory order. The output is divided along the axis to which the copy
/// maps the divided axis of the largest divided input.
fn divided_axes_of_output(mesh: Mesh, call: &Call, maps: &[OutputRegion]) -> DividedAxes {
    let largest = call.inputs.iter().zip(maps).filter(|(input, _)| has_sharded_input(std::slice::from_ref(input)));
    let Some((input, map)) = largest.max_by_key(|(input, _)| input.size()) else { return DividedAxes::from_elem(None, mesh.shape().len()) };
    let cuts = divided_axes_of_largest_input(mesh, std::slice::from_ref(input));
    cuts.iter().map(|cut| cut.and_then(|axis| map.axes[axis].map(|(stored_axis, _)| stored_axis))).collect()
}

/// The region of the output to which one input is copied. Axes of the output are numbered in memory order.
struct OutputRegion {
    map: ViewAxisMap,
    /// For each axis of the input, the output axis along which the input axis runs, and the step along the output axis. `None` for an axis
    /// of extent 0 or 1.
    axes: Vec<Option<(usize, usize)>>,
    shape: Vec<usize>,
}

impl OutputRegion {
    /// Returns the output region that the layout `region` addresses. Returns `None` unless each axis of the layout runs along a different
    /// axis of the output, with a positive step.
    fn of(region: &Layout, stored_shape: &[usize]) -> Option<OutputRegion> {
        let map = ViewAxisMap::new(region, stored_shape)?;
        let mut axes = Vec::new();
        for (axis, &extent) in region.shape().iter().enumerate() {
            axes.push(match extent {
                0 | 1 => None,
                _ => {
                    let (stored_axis, step) = map.stored_axis_and_step(axis)?;
                    Some((stored_axis, usize::try_from(step).ok()?))
                }
            });
        }
        let is_repeated = |(n, axis): (usize, &Option<(usize, usize)>)| {
            axis.is_some_and(|(stored, _)| axes[..n].iter().flatten().any(|(earlier, _)| *earlier == stored))
        };
        if axes.iter().enumerate().any(is_repeated) {
            return None;
        }
        Some(OutputRegion { map, axes, shape: region.shape().to_vec() })
    }

    /// Returns whether this output region can overlap the region `held` of a rank. Compares only the output axes along which this region
    /// has a single index, which `held` must then contain.
    fn may_overlap(&self, held: &Region) -> bool {
        let mut fixed = (0..held.len()).filter(|stored| !self.axes.iter().flatten().any(|(axis, _)| axis == stored));
        fixed.all(|stored| held[stored].contains(&(self.map.start_index(stored).max(0) as usize)))
    }

    /// Returns the region of the input that is copied to the region `held` of the output. The region is empty if nothing is copied. The
    /// region of a 0-D input is never empty, so callers must check [`OutputRegion::may_overlap`] too.
    fn input_region_copied_to(&self, held: &Region) -> Region {
        let is_empty = !self.may_overlap(held);
        let range = |(&extent, axis): (&usize, &Option<(usize, usize)>)| match axis {
            _ if is_empty => 0..0,
            None => 0..extent,
            Some((stored, step)) => {
                let start = self.map.start_index(*stored).max(0) as usize;
                let first_from = |edge: usize| edge.saturating_sub(start).div_ceil(*step).min(extent);
                let (first, end) = (first_from(held[*stored].start), first_from(held[*stored].end));
                first..end.max(first)
            }
        };
        self.shape.iter().zip(&self.axes).map(range).collect()
    }

    /// Returns the layout into which the region `region` of the input is copied, within the memory of a rank that holds the region `held`
    /// of the output.
    fn local_target_layout(&self, region: &Region, held: &Region, stored: &Layout) -> Result<Layout> {
        let strides: Strides =
            self.axes.iter().map(|axis| axis.map_or(0, |(stored_axis, step)| step as isize * stored.strides()[stored_axis])).collect();
        let mut first: Vec<isize> = (0..held.len()).map(|axis| self.map.start_index(axis) - held[axis].start as isize).collect();
        for (range, axis) in region.iter().zip(&self.axes) {
            if let Some((stored_axis, step)) = axis {
                first[*stored_axis] += (range.start * step) as isize;
            }
        }
        let offset: isize = first.iter().zip(stored.strides()).map(|(index, stride)| index * stride).sum();
        Layout::strided(&region_extents(region), &strides, usize::try_from(offset).unwrap_or(usize::MAX))
    }
}
