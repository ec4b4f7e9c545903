//! Kernel family `Map`: each rank computes its part of the result. The operands are divided like the largest divided operand.
//!
//! Operands that are shifted against each other, such as the slices of a stencil, need elements of neighbouring ranks at the borders of
//! each part. A rank computes the interior from its own memory, and then the borders from copies. No operand is copied as a whole.

use std::ops::Range;

use cuprum_core::dispatch::any_kernel_has_capability;
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{
    Call, Capability, Device, Error, Family, Layout, NdArray, Outcome, OutputSpec, Result, StoredArray, Work, call, decline, empty,
};
use smallvec::SmallVec;

use crate::mesh::Mesh;
use crate::placement::{DividedAxes, Region, region_extents, region_of_rank};
use crate::rank_calls::{
    decline_with_reason, divided_axes_of_largest_input, has_sharded_input, local_output_spec, mesh_of_call, run_on_local_ranks,
    run_on_rank, sharded_outcome,
};
use crate::sharded_buffer::axes_in_memory_order;
use crate::sharded_views::{fetch_local_parts, fetch_local_regions, layout_of_region, range_held_by_rank};

/// Runs an elementwise loop.
pub(super) fn run_map(call: &Call) -> Result<Outcome> {
    let Work::Map(call::Map { program, .. }) = &call.work else { decline!("not an elementwise loop") };
    if !has_sharded_input(call.inputs) {
        decline!("every rank holds the inputs");
    }
    let mesh = mesh_of_call(call)?;
    let cuts = divided_axes_of_largest_input(mesh, call.inputs);
    if let Some(interiors) = RankInteriors::of(mesh, call, &cuts) {
        return run_interiors_then_borders(mesh, call, &cuts, &interiors);
    }
    let inputs = call.inputs.iter().map(|input| fetch_local_parts(mesh, input, &cuts)).collect::<Result<Vec<_>>>()?;
    let parts = run_on_local_ranks(mesh, call.outputs.len(), cuts.iter().all(Option::is_none), |local, rank| {
        let inputs: SmallVec<[StoredArray; 4]> = inputs.iter().map(|parts| parts[local].clone()).collect();
        let outputs =
            call.outputs.iter().map(|o| local_output_spec(mesh, o, &cuts, rank)).collect::<Result<SmallVec<[OutputSpec; 2]>>>()?;
        let operands: SmallVec<[&Layout; 8]> = inputs.iter().map(|a| a.layout()).chain(outputs.iter().map(|o| &o.layout)).collect();
        let plan = LoopPlan::new(&operands);
        run_on_rank(mesh, local, call, &inputs, &outputs, Work::Map(call::Map { program, plan: &plan }))
    })?;
    match parts {
        Ok(parts) => sharded_outcome(mesh, call, &cuts, parts),
        Err(reason) => decline_with_reason(reason),
    }
}

/// The interior of each rank's part of a loop: the indices at which the rank holds the elements of all operands. The other indices of the
/// part are its borders.
struct RankInteriors {
    /// The divided axis of the loop.
    axis: usize,
    /// For each rank of the mesh: the rank's part of the loop, and the index range of the interior along `axis`.
    ranks: Vec<(Region, Range<usize>)>,
}

impl RankInteriors {
    /// Returns the interiors of all ranks' parts. Returns `None` if no part has borders, or if the interior of a part is unknown or
    /// smaller than three quarters of the part. Also returns `None` if a part is not a contiguous range of the output's memory, or if a
    /// device cannot write such ranges.
    fn of(mesh: Mesh, call: &Call, cuts: &DividedAxes) -> Option<RankInteriors> {
        let [output] = call.outputs else { return None };
        let mut divided = cuts.iter().flatten();
        let (&axis, None) = (divided.next()?, divided.next()) else { return None };
        let (shape, order) = (output.layout.shape(), axes_in_memory_order(&output.layout));
        let is_outermost = order.iter().find(|n| shape[**n] > 1) == Some(&axis);
        if !is_outermost || output.target_buffer().is_some() || call.inputs.iter().any(|input| input.shape() != shape) {
            return None;
        }
        // Kernels that write a range of an output require a start aligned to 16 bytes. The interior and the borders therefore consist of
        // multiples of `rows` rows.
        let row_bytes = shape.iter().enumerate().filter(|(n, _)| *n != axis).map(|(_, n)| n).product::<usize>() * output.dtype.itemsize();
        let rows = (1..=16).find(|rows| (rows * row_bytes).is_multiple_of(16))?;
        let of_rank = |rank: usize| {
            let region = region_of_rank(mesh, shape, cuts, rank);
            let whole = region[axis].clone();
            let mut interior = whole.clone();
            if !region_extents(&region).contains(&0) {
                for input in call.inputs {
                    let held = range_held_by_rank(mesh, input, &region, axis, rank)?;
                    interior = interior.start.max(held.start)..interior.end.min(held.end);
                }
            }
            interior.start = whole.start + (interior.start - whole.start).next_multiple_of(rows);
            if interior.end < whole.end {
                interior.end -= interior.end.saturating_sub(whole.start) % rows;
            }
            let is_large = interior.len() >= whole.len() - whole.len() / 4;
            is_large.then_some((region, interior))
        };
        let ranks = (0..mesh.size()).map(of_rank).collect::<Option<Vec<_>>>()?;
        let has_borders = ranks.iter().any(|(region, interior)| *interior != region[axis]);
        let writes_ranges = |member: &Device| any_kernel_has_capability(Capability::OutputRanges, Family::Map, *member).unwrap_or(false);
        (has_borders && mesh.local_devices().iter().all(writes_ranges)).then_some(RankInteriors { axis, ranks })
    }

    /// Returns the interior of a rank's part, then the borders before and after the interior along the divided axis.
    fn interior_and_borders(&self, rank: usize) -> [Region; 3] {
        let (region, interior) = &self.ranks[rank];
        let whole = &region[self.axis];
        [interior.clone(), whole.start..interior.start, interior.end..whole.end].map(|range| {
            let mut segment = region.clone();
            segment[self.axis] = range;
            segment
        })
    }
}

/// Runs a loop with one output: computes the interiors of all ranks, and then the borders. Each rank writes both to one output array. An
/// error makes the mesh unusable on all ranks, because other processes may wait for elements at the borders.
fn run_interiors_then_borders(mesh: Mesh, call: &Call, cuts: &DividedAxes, interiors: &RankInteriors) -> Result<Outcome> {
    compute_interiors_and_borders(mesh, call, cuts, interiors).inspect_err(|error| mesh.engine().fail_mesh(error))
}

fn compute_interiors_and_borders(mesh: Mesh, call: &Call, cuts: &DividedAxes, interiors: &RankInteriors) -> Result<Outcome> {
    let Work::Map(call::Map { program, .. }) = &call.work else { decline!("not an elementwise loop") };
    let output = &call.outputs[0];
    let allocate = |(local, rank): (usize, usize)| {
        let size = region_extents(&interiors.ranks[rank].0).iter().product::<usize>();
        mesh.with_rank_device(local, || empty([size], output.dtype))
    };
    let mut results = mesh.local_ranks().enumerate().map(allocate).collect::<Result<Vec<_>>>()?;
    for n in 0..3 {
        let segment = |rank: usize| interiors.interior_and_borders(rank)[n].clone();
        if (0..mesh.size()).all(|rank| region_extents(&segment(rank)).contains(&0)) {
            continue;
        }
        let inputs = call.inputs.iter().map(|input| fetch_local_regions(mesh, input, &segment)).collect::<Result<Vec<_>>>()?;
        for (local, rank) in mesh.local_ranks().enumerate() {
            let segment = segment(rank);
            if region_extents(&segment).contains(&0) {
                continue;
            }
            let inputs: SmallVec<[StoredArray; 4]> = inputs.iter().map(|parts| parts[local].clone()).collect();
            let part = &interiors.ranks[rank].0;
            let within: Region = segment.iter().zip(part).map(|(range, part)| range.start - part.start..range.end - part.start).collect();
            let layout = layout_of_region(&local_output_spec(mesh, output, cuts, rank)?.layout, &within)?;
            let operands: SmallVec<[&Layout; 8]> = inputs.iter().map(|a| a.layout()).chain([&layout]).collect();
            let plan = LoopPlan::new(&operands);
            let work = Work::Map(call::Map { program, plan: &plan });
            let result = &mut results[local];
            let flat = result.stored()?.layout().clone();
            match mesh.with_rank_device(local, || result.update_by_call(call.op, &inputs, layout.clone(), work)) {
                Err(error @ Error::Unsupported { .. }) => return decline_with_reason(error.to_string()),
                done => done?,
            }
            let written = result.stored()?.with_layout(flat)?;
            *result = NdArray::from(written);
        }
    }
    let parts = results.iter().map(NdArray::stored).collect::<Result<Vec<_>>>()?;
    sharded_outcome(mesh, call, cuts, vec![parts])
}
