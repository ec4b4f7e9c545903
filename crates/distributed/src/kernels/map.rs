//! Map: each rank computes its part of the result. The operands are aligned to the largest divided one.

use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Call, Layout, Outcome, OutputSpec, Result, StoredArray, Work, call, decline};
use smallvec::SmallVec;

use crate::ranks::{cuts_of_largest, declined, done_sharded, has_sharded_input, local_output, mesh_of, run_on_rank, run_ranks};
use crate::views::local_parts;

/// Runs an elementwise loop.
pub(super) fn run(call: &Call) -> Result<Outcome> {
    let Work::Map(call::Map { program, .. }) = &call.work else { decline!("not an elementwise loop") };
    if !has_sharded_input(call.inputs) {
        decline!("every rank holds the inputs");
    }
    let mesh = mesh_of(call)?;
    let cuts = cuts_of_largest(mesh, call.inputs);
    let inputs = call.inputs.iter().map(|input| local_parts(mesh, input, &cuts)).collect::<Result<Vec<_>>>()?;
    let parts = run_ranks(mesh, call.outputs.len(), cuts.iter().all(Option::is_none), |local, rank| {
        let inputs: SmallVec<[StoredArray; 4]> = inputs.iter().map(|parts| parts[local].clone()).collect();
        let outputs = call.outputs.iter().map(|o| local_output(mesh, o, &cuts, rank)).collect::<Result<SmallVec<[OutputSpec; 2]>>>()?;
        let operands: SmallVec<[&Layout; 8]> = inputs.iter().map(|a| a.layout()).chain(outputs.iter().map(|o| &o.layout)).collect();
        let plan = LoopPlan::new(&operands);
        run_on_rank(mesh, local, call, &inputs, &outputs, Work::Map(call::Map { program, plan: &plan }))
    })?;
    match parts {
        Ok(parts) => done_sharded(mesh, call, &cuts, parts),
        Err(reason) => declined(reason),
    }
}
