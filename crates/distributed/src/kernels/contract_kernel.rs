//! Kernel family `Contract`: each rank computes some rows and columns of the result. If a summed axis is divided, each rank computes a
//! product of the result's full extent from its part of that axis. The products are added in the order of the ranks.

use cuprum_core::plan::contract::Mode;
use cuprum_core::{Array, Call, DType, NdArray, Outcome, OutputSpec, Result, StoredArray, Work, call, decline, with_device};

use crate::mesh::Mesh;
use crate::placement::{ArrayDistribution, DividedAxes, PartialOp, Placement};
use crate::rank_calls::{
    decline_with_reason, divided_axes_of_largest_input, has_sharded_input, local_output_spec, mesh_of_call, run_on_local_ranks, run_on_rank,
};
use crate::redistribute::resolve_pending_reductions_along;
use crate::sharded_buffer::{ShardedBuffer, axes_in_memory_order, sharded_array_from_parts};
use crate::sharded_views::{fetch_local_parts, permute_shape};

/// Minimum size in bytes of a sum of products that is divided among the ranks. Smaller sums are replicated, which saves one exchange if
/// later operations combine the sum with replicated arrays.
const MIN_DIVIDED_SUM_BYTES: usize = 1 << 20;

/// Runs a contraction of two arrays.
pub(super) fn run_contraction(call: &Call) -> Result<Outcome> {
    let Work::Contract(call::Contract { plan }) = &call.work else { decline!("not a contraction") };
    let [a, b] = call.inputs else { decline!("not two inputs") };
    if !has_sharded_input(call.inputs) {
        decline!("every rank holds the inputs");
    }
    let mesh = mesh_of_call(call)?;
    let modes = mode_divided_by_each_mesh_axis(mesh, (a, &plan.a), (b, &plan.b), &plan.out);
    let cuts_of = |operand: &[Mode]| -> DividedAxes {
        modes.iter().map(|mode| mode.and_then(|mode| operand.iter().position(|m| *m == mode))).collect()
    };
    let (a_cuts, b_cuts, cuts) = (cuts_of(&plan.a), cuts_of(&plan.b), cuts_of(&plan.out));
    let (a, b) = (fetch_local_parts(mesh, a, &a_cuts)?, fetch_local_parts(mesh, b, &b_cuts)?);
    let output = &call.outputs[0];
    let is_partial = modes.iter().flatten().any(|mode| plan.k.contains(mode));
    if output.dtype == DType::Bool && is_partial {
        decline!("a sum of bools over a divided axis");
    }
    // Partial products of 16-bit floats stay in float32 until they are summed over the ranks.
    let dtype = if is_partial && matches!(output.dtype, DType::F16 | DType::BF16) { DType::F32 } else { output.dtype };
    let product = OutputSpec::new(dtype, output.layout.clone());
    let parts = run_on_local_ranks(mesh, 1, modes.iter().all(Option::is_none), |local, rank| {
        let inputs = [convert_to_dtype(&a[local], dtype)?, convert_to_dtype(&b[local], dtype)?];
        let specification = local_output_spec(mesh, &product, &cuts, rank)?;
        if inputs.iter().any(|input| input.layout().size() == 0) && specification.layout.size() > 0 {
            // A rank that holds no elements along the summed axis contributes zeros.
            let zeros = mesh.with_rank_device(local, || cuprum_core::zeros([specification.layout.size()], dtype)?.stored())?;
            return Ok(Ok([zeros.with_layout(specification.layout)?].into_iter().collect()));
        }
        let mut extents = plan.extents.clone();
        for (input, modes) in inputs.iter().zip([&plan.a, &plan.b]) {
            modes.iter().zip(input.shape()).for_each(|(mode, n)| extents[*mode as usize] = *n);
        }
        let plan = cuprum_core::plan::contract::ContractPlan { extents, ..(*plan).clone() };
        run_on_rank(mesh, local, call, &inputs, &[specification], Work::Contract(call::Contract { plan: &plan }))
    })?;
    let parts = match parts {
        Ok(mut parts) => parts.remove(0),
        Err(reason) => return decline_with_reason(reason),
    };
    let order = axes_in_memory_order(&output.layout);
    let place = |mode: &Option<Mode>| match mode {
        None => Placement::Replicate,
        Some(mode) => match plan.out.iter().position(|m| m == mode).and_then(|axis| order.iter().position(|o| *o == axis)) {
            Some(axis) => Placement::Shard(axis as isize),
            None => Placement::Partial(PartialOp::Sum),
        },
    };
    let distribution =
        ArrayDistribution { shape: permute_shape(output.layout.shape(), &order), placements: modes.iter().map(place).collect() };
    let product = sharded_array_from_parts(mesh, dtype, output.layout.clone(), distribution, parts)?;
    let axis = result_axis_to_divide(&product);
    let Some(sum) = ShardedBuffer::of(&product).map(|buffer| resolve_pending_reductions_along(buffer, axis)).transpose()?.flatten() else {
        return Ok(Outcome::Done([product].into_iter().collect()));
    };
    let Some(sum) = ShardedBuffer::of(&sum) else { decline!("the sum is not on the mesh") };
    let parts = sum.parts.iter().map(|part| convert_to_dtype(part, output.dtype)).collect::<Result<Vec<_>>>()?;
    let sum = sharded_array_from_parts(mesh, output.dtype, output.layout.clone(), sum.distribution.clone(), parts)?;
    Ok(Outcome::Done([sum].into_iter().collect()))
}

/// Returns the axis along which a sum of partial products over ranks is divided: axis 0 of a large sum, unless a mesh axis already divides
/// axis 0. Returns `None` for a small sum, which every rank computes as a whole.
fn result_axis_to_divide(product: &StoredArray) -> Option<usize> {
    let buffer = ShardedBuffer::of(product)?;
    let is_divided = (0..buffer.mesh.shape().len()).any(|m| buffer.distribution.sharded_axis(m) == Some(0));
    let is_large = product.nbytes() >= MIN_DIVIDED_SUM_BYTES && buffer.distribution.shape.first().is_some_and(|&n| n >= buffer.mesh.size());
    (is_large && !is_divided).then_some(0)
}

/// Returns the array converted to `dtype`, or the array itself if it has this dtype.
fn convert_to_dtype(array: &StoredArray, dtype: DType) -> Result<StoredArray> {
    if array.dtype() == dtype {
        return Ok(array.clone());
    }
    with_device(array.device(), || NdArray::from(array.clone()).astype(dtype)?.stored())
}

/// Returns the mode (axis label, as in `einsum`) that each mesh axis divides. A mesh axis keeps the mode that it divides in the larger
/// operand. If it divides none there, it keeps its mode of the smaller operand. On a grid of several mesh axes, a kept mode of the smaller
/// operand replaces a summed mode of the larger operand.
fn mode_divided_by_each_mesh_axis(mesh: Mesh, a: (&StoredArray, &[Mode]), b: (&StoredArray, &[Mode]), out: &[Mode]) -> Vec<Option<Mode>> {
    let modes = |(array, modes): (&StoredArray, &[Mode])| -> Vec<Option<Mode>> {
        let cuts = divided_axes_of_largest_input(mesh, std::slice::from_ref(array));
        cuts.iter().map(|cut| cut.and_then(|axis| modes.get(axis).copied())).collect()
    };
    let (of_a, of_b) = (modes(a), modes(b));
    let (large, small) = if a.0.nbytes() >= b.0.nbytes() { (of_a, of_b) } else { (of_b, of_a) };
    let is_kept = |mode: &Mode| out.contains(mode);
    // On a grid of several mesh axes, a mode (axis label) of the result is preferred to a summed mode. The grid then divides both the rows
    // and the columns of the result, as in the SUMMA algorithm.
    let choose = |(large, small): (&Option<Mode>, &Option<Mode>)| match (large, small) {
        (Some(mode), _) if is_kept(mode) => Some(*mode),
        (Some(_), Some(mode)) if is_kept(mode) && mesh.shape().len() > 1 => Some(*mode),
        (Some(mode), _) => Some(*mode),
        (None, other) => *other,
    };
    large.iter().zip(&small).map(choose).collect()
}
