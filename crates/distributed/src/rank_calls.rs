//! Helpers for the kernels of the accelerator `mesh`: choose the divided axes, run one call per rank, and assemble the output from the
//! ranks' parts.

use cuprum_core::{Array, Call, Error, Layout, Outcome, OutputSpec, Outputs, Result, StoredArray, Stream, Work, decline, dispatch};

use crate::mesh::Mesh;
use crate::placement::{ArrayDistribution, DividedAxes, Placement, region_extents, region_of_rank};
use crate::sharded_buffer::{ShardedBuffer, axes_in_memory_order, sharded_array_from_parts};
use crate::sharded_views::{divided_axes_of_view, permute_shape};

/// Runs an operation on the device of rank number `local` of this process. If the device declines the operation, the inner result is `Err`
/// with the reason.
pub(crate) fn run_on_rank(
    mesh: Mesh,
    local: usize,
    call: &Call,
    inputs: &[StoredArray],
    outputs: &[OutputSpec],
    work: Work,
) -> Result<std::result::Result<Outputs, String>> {
    let device = mesh.local_devices()[local];
    let local_call = Call { op: call.op, device, stream: Stream::current(device), inputs, outputs, work };
    match mesh.with_rank_device(local, || dispatch::run_call(&local_call)) {
        Ok(outputs) => Ok(Ok(outputs)),
        Err(error @ Error::Unsupported { .. }) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Returns the mesh on which a call runs.
pub(crate) fn mesh_of_call(call: &Call) -> Result<Mesh> {
    Mesh::of_device(call.device)
}

/// Returns whether any input of the call is divided or has a pending reduction.
pub(crate) fn has_sharded_input(inputs: &[StoredArray]) -> bool {
    inputs.iter().any(|input| ShardedBuffer::of(input).is_some_and(|buffer| !buffer.is_replicated()))
}

/// Returns the axis that each mesh axis divides in a loop over `inputs`, which have equal shapes. The loop is divided like the largest
/// divided input. Broadcast axes (stride 0) do not count toward the size of an input.
pub(crate) fn divided_axes_of_largest_input(mesh: Mesh, inputs: &[StoredArray]) -> DividedAxes {
    let distinct = |input: &StoredArray| -> usize {
        let axes = input.layout().shape().iter().zip(input.layout().strides());
        axes.filter(|(_, stride)| **stride != 0).map(|(n, _)| *n).product::<usize>().saturating_mul(input.dtype().itemsize())
    };
    let candidates = inputs.iter().map(|input| (distinct(input), divided_axes_of_view(mesh, input)));
    let divided = candidates.filter(|(_, cuts)| cuts.iter().any(Option::is_some));
    // The loop is divided like the largest divided input, or like the first of several equally large ones.
    let best = divided.fold(None, |best: Option<(usize, DividedAxes)>, next| match &best {
        Some((size, _)) if *size >= next.0 => best,
        _ => Some(next),
    });
    best.map_or_else(|| DividedAxes::from_elem(None, mesh.shape().len()), |(_, cuts)| cuts)
}

/// Returns the specification of a rank's part of an output: the extents of the rank's region, with the memory order of the whole output.
pub(crate) fn local_output_spec(mesh: Mesh, output: &OutputSpec, cuts: &DividedAxes, rank: usize) -> Result<OutputSpec> {
    let shape = region_extents(&region_of_rank(mesh, output.layout.shape(), cuts, rank));
    Ok(OutputSpec::new(output.dtype, Layout::contiguous_in_order(&shape, &axes_in_memory_order(&output.layout))?))
}

/// Returns the output array that consists of `parts`, one part for each rank of this process.
pub(crate) fn sharded_output_from_parts(
    mesh: Mesh,
    output: &OutputSpec,
    cuts: &DividedAxes,
    parts: Vec<StoredArray>,
) -> Result<StoredArray> {
    let order = axes_in_memory_order(&output.layout);
    let place = |cut: &Option<usize>| match cut.and_then(|axis| order.iter().position(|a| *a == axis)) {
        Some(position) => Placement::Shard(position as isize),
        None => Placement::Replicate,
    };
    let distribution =
        ArrayDistribution { shape: permute_shape(output.layout.shape(), &order), placements: cuts.iter().map(place).collect() };
    sharded_array_from_parts(mesh, output.dtype, output.layout.clone(), distribution, parts)
}

/// Returns the results of the calls on this process's ranks as [`Outcome::Done`]. `parts` has, for each output, one part per rank of this
/// process.
pub(crate) fn sharded_outcome(mesh: Mesh, call: &Call, cuts: &DividedAxes, parts: Vec<Vec<StoredArray>>) -> Result<Outcome> {
    let arrays = call.outputs.iter().zip(parts).map(|(output, parts)| sharded_output_from_parts(mesh, output, cuts, parts));
    Ok(Outcome::Done(arrays.collect::<Result<Outputs>>()?))
}

/// Runs `call_rank` for each rank of this process, and collects, for each output, one part per rank. If `is_replicated` is true, ranks on
/// one device share the outputs of the first of them.
///
/// If a device declines the operation, the inner result is `Err` with the reason.
pub(crate) fn run_on_local_ranks(
    mesh: Mesh,
    outputs: usize,
    is_replicated: bool,
    mut call_rank: impl FnMut(usize, usize) -> Result<std::result::Result<Outputs, String>>,
) -> Result<std::result::Result<Vec<Vec<StoredArray>>, String>> {
    let mut parts: Vec<Vec<StoredArray>> = vec![Vec::new(); outputs];
    for (local, rank) in mesh.local_ranks().enumerate() {
        let leader = mesh.device_leader_of(local);
        if is_replicated && leader != local {
            parts.iter_mut().for_each(|of_output| of_output.push(of_output[leader].clone()));
            continue;
        }
        match call_rank(local, rank)? {
            Ok(results) if results.len() == outputs => parts.iter_mut().zip(results).for_each(|(of_output, part)| of_output.push(part)),
            Ok(results) => return Err(Error::value("mesh", format!("a kernel returned {} outputs, not {outputs}", results.len()))),
            Err(reason) => return Ok(Err(reason)),
        }
    }
    Ok(Ok(parts))
}

/// Returns [`Outcome::Declined`] with the reason of a rank's device.
pub(crate) fn decline_with_reason(reason: String) -> Result<Outcome> {
    decline!("the devices of the ranks decline: {reason}")
}
