//! Kernel family `Sort`: each rank sorts whole rows. If several rows are divided among ranks, an exchange first gives each rank whole rows.
//! A single divided row is sorted by `merge_sort`.

use cuprum_core::{Call, Outcome, OutputSpec, Result, Work, decline};
use smallvec::SmallVec;

use super::merge_sort;
use crate::rank_calls::{
    decline_with_reason, divided_axes_of_largest_input, has_sharded_input, local_output_spec, mesh_of_call, run_on_local_ranks,
    run_on_rank, sharded_outcome,
};
use crate::redistribute::to_c_contiguous;
use crate::sharded_buffer::zero_size_array;
use crate::sharded_views::fetch_local_parts;

/// Runs a sort of rows.
pub(super) fn run_sort(call: &Call) -> Result<Outcome> {
    let Work::Sort(request) = &call.work else { decline!("not a sort of rows") };
    if !has_sharded_input(call.inputs) {
        decline!("every rank holds the input");
    }
    let mesh = mesh_of_call(call)?;
    let shape = call.inputs[0].shape();
    let row_axis = shape.len() - 1;
    if row_axis == 0 {
        return merge_sort::sort_divided_row(mesh, call, request);
    }
    let mut cuts = divided_axes_of_largest_input(mesh, call.inputs);
    for (mesh_axis, ranks) in mesh.shape().iter().enumerate() {
        if cuts[mesh_axis] == Some(row_axis) {
            let is_free = |axis: &usize| !cuts.contains(&Some(*axis)) && shape[*axis] >= *ranks;
            let free = (0..row_axis).filter(is_free).max_by_key(|&axis| (shape[axis], std::cmp::Reverse(axis)));
            let Some(axis) = free else { decline!("rows are divided among ranks") };
            cuts[mesh_axis] = Some(axis);
        }
    }
    let parts = fetch_local_parts(mesh, &call.inputs[0], &cuts)?;
    let parts = run_on_local_ranks(mesh, call.outputs.len(), cuts.iter().all(Option::is_none), |local, rank| {
        let outputs =
            call.outputs.iter().map(|o| local_output_spec(mesh, o, &cuts, rank)).collect::<Result<SmallVec<[OutputSpec; 2]>>>()?;
        let input = &parts[local];
        if input.shape().contains(&0) {
            let empty = |output: &OutputSpec| zero_size_array(mesh.local_devices()[local], output.dtype, output.layout.shape());
            return Ok(Ok(outputs.iter().map(empty).collect::<Result<_>>()?));
        }
        run_on_rank(mesh, local, call, &[to_c_contiguous(input)?], &outputs, Work::Sort(*request))
    })?;
    match parts {
        Ok(parts) => sharded_outcome(mesh, call, &cuts, parts),
        Err(reason) => decline_with_reason(reason),
    }
}
