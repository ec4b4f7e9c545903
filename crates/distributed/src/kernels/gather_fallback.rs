//! Fallback of all kernel families on a mesh: the inputs are gathered, and each device computes the whole result.

use cuprum_core::{Array, Call, Layout, NdArray, Outcome, OutputSpec, Outputs, Result, StoredArray, decline};

use crate::mesh::Mesh;
use crate::rank_calls::{decline_with_reason, mesh_of_call, run_on_rank};
use crate::redistribute::gather_on_leaders;
use crate::sharded_buffer::{ShardedBuffer, replicated_array_from_leaders};

/// Runs a call on the gathered inputs. The outputs are replicated.
pub(super) fn run_on_gathered_inputs(call: &Call) -> Result<Outcome> {
    let mesh = mesh_of_call(call)?;
    let mut inputs: Vec<Vec<StoredArray>> = vec![Vec::new(); mesh.local_devices().len()];
    for input in call.inputs {
        for (local, part) in gather_input(mesh, input)?.into_iter().enumerate() {
            inputs[local].extend(part);
        }
    }
    let mut results: Vec<Option<Outputs>> = Vec::new();
    let specifications: Vec<OutputSpec> = call.outputs.iter().map(|o| OutputSpec::new(o.dtype, o.layout.clone())).collect();
    let target =
        if call.work.as_request().updates_part_of_target() { call.outputs.iter().find_map(OutputSpec::target_buffer) } else { None };
    let target = match target.map(|target| target.as_any().downcast_ref::<ShardedBuffer>()) {
        None => None,
        Some(Some(buffer)) => Some(gather_on_leaders(buffer)?),
        Some(None) => decline!("the target is not on a mesh"),
    };
    for (local, rank) in mesh.local_ranks().enumerate() {
        if !mesh.is_device_leader(rank) {
            results.push(None);
            continue;
        }
        if let Some(target) = &target {
            let target = target.get(local).cloned().flatten();
            let Some(target) = target else { decline!("the rank does not hold the target") };
            let (dtype, layout) = (specifications[0].dtype, specifications[0].layout.clone());
            // In a view of another dtype, elements may have another size than the elements of the buffer.
            let count = target.layout().size() * target.dtype().itemsize() / dtype.itemsize();
            let target = StoredArray::new(dtype, Layout::contiguous(&[count])?, target.buffer().clone())?;
            let mut updated = NdArray::from(target);
            mesh.with_rank_device(local, || updated.update_by_call(call.op, &inputs[local], layout, call.work))?;
            results.push(Some([updated.stored()?].into_iter().collect()));
            continue;
        }
        match run_on_rank(mesh, local, call, &inputs[local], &specifications, call.work)? {
            Ok(outputs) => results.push(Some(outputs)),
            Err(reason) => return decline_with_reason(reason),
        }
    }
    let count = results.iter().flatten().next().map_or(0, |outputs| outputs.len());
    let output = |n: usize| {
        let leaders: Vec<Option<StoredArray>> =
            results.iter().map(|outputs| outputs.as_ref().and_then(|outputs| outputs.get(n)).cloned()).collect();
        replicated_array_from_leaders(mesh, &leaders)
    };
    Ok(Outcome::Done((0..count).map(output).collect::<Result<Outputs>>()?))
}

/// Returns, for each rank of this process, the whole input with its layout if the rank computes replicated results
/// ([`Mesh::is_device_leader`]), or `None`.
fn gather_input(mesh: Mesh, input: &StoredArray) -> Result<Vec<Option<StoredArray>>> {
    let Some(buffer) = ShardedBuffer::of(input) else {
        return Err(cuprum_core::Error::Device { op: "mesh", message: format!("an input is not on {}", mesh.device()) });
    };
    let over = |whole: Option<StoredArray>| {
        whole.map(|whole| StoredArray::new(input.dtype(), input.layout().clone(), whole.buffer().clone())).transpose()
    };
    let place = |whole: Option<StoredArray>| match &whole {
        // The layout of the input is relative to the start of its buffer, so it applies only if the gathered elements start at offset 0 of
        // their buffer.
        Some(array) if array.layout().offset() != 0 => crate::redistribute::to_c_contiguous(array).map(Some),
        _ => Ok(whole),
    };
    gather_on_leaders(buffer)?.into_iter().map(|whole| over(place(whole)?)).collect()
}
