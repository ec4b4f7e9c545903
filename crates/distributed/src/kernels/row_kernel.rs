//! Kernel family `Rows`, expressions that contain reductions along rows: each rank computes whole rows. If ranks hold only parts of rows,
//! the call is declined. `cuprum-core` then runs each reduction of the expression as a separate operation.

use cuprum_core::plan::row_loop::RowLoopPlan;
use cuprum_core::{Call, Layout, Outcome, OutputSpec, Result, StoredArray, Work, call, decline};
use smallvec::SmallVec;

use crate::placement::{region_extents, region_of_rank};
use crate::rank_calls::{
    decline_with_reason, divided_axes_of_largest_input, local_output_spec, mesh_of_call, run_on_local_ranks, run_on_rank, sharded_outcome,
};
use crate::sharded_views::fetch_local_parts;

/// Runs an expression that contains reductions along rows.
pub(super) fn run_row_program(call: &Call) -> Result<Outcome> {
    let Work::Rows(call::RowProgram { program, plan }) = &call.work else { decline!("not a loop over rows") };
    let Some(first) = call.inputs.first() else { decline!("a loop without inputs") };
    let mesh = mesh_of_call(call)?;
    let shape = first.shape();
    // The last axes, from axis `split` on, form a row. The product of their extents is the row length.
    let mut split = shape.len();
    let mut length = 1;
    while length < plan.length && split > 0 {
        split -= 1;
        length *= shape[split];
    }
    if length != plan.length {
        decline!("the axes of a row are not known");
    }
    let cuts = divided_axes_of_largest_input(mesh, call.inputs);
    if cuts.iter().any(|cut| cut.is_some_and(|axis| axis >= split)) {
        decline!("rows are divided among ranks");
    }
    let inputs = call.inputs.iter().map(|input| fetch_local_parts(mesh, input, &cuts)).collect::<Result<Vec<_>>>()?;
    let parts = run_on_local_ranks(mesh, call.outputs.len(), cuts.iter().all(Option::is_none), |local, rank| {
        let inputs: SmallVec<[StoredArray; 4]> = inputs.iter().map(|parts| parts[local].clone()).collect();
        let outputs =
            call.outputs.iter().map(|o| local_output_spec(mesh, o, &cuts, rank)).collect::<Result<SmallVec<[OutputSpec; 2]>>>()?;
        let local_shape = region_extents(&region_of_rank(mesh, shape, &cuts, rank));
        let in_loop = outputs.iter().map(|o| o.layout.broadcast_to(&local_shape)).collect::<Result<SmallVec<[Layout; 2]>>>()?;
        let operands: SmallVec<[&Layout; 8]> = inputs.iter().map(|a| a.layout()).chain(&in_loop).collect();
        match RowLoopPlan::new(&local_shape, split, &operands) {
            Some(plan) => run_on_rank(mesh, local, call, &inputs, &outputs, Work::Rows(call::RowProgram { program, plan: &plan })),
            None => Ok(Err("the axes of a row do not merge".into())),
        }
    })?;
    match parts {
        Ok(parts) => sharded_outcome(mesh, call, &cuts, parts),
        Err(reason) => decline_with_reason(reason),
    }
}
