//! Kernel families `Fill` and `Random`: each rank computes its part of a new array.

use cuprum_core::layout::Dims;
use cuprum_core::{Call, Fill, Kind, Layout, Outcome, OutputSpec, Random, Result, Scalar, StoredArray, Work, decline};

use crate::mesh::Mesh;
use crate::placement::{DividedAxes, region_of_rank};
use crate::rank_calls::{decline_with_reason, local_output_spec, mesh_of_call, run_on_local_ranks, run_on_rank, sharded_outcome};

/// Returns the axis along which a new array is divided: the longest axis, or the first of several longest axes. Returns `None` if this axis
/// has fewer elements than the mesh has ranks. Every rank then holds the whole array.
fn divided_axis_of_new_array(mesh: Mesh, shape: &[usize]) -> Option<usize> {
    let axis = (0..shape.len()).max_by_key(|&axis| (shape[axis], std::cmp::Reverse(axis)))?;
    (shape[axis] >= mesh.size()).then_some(axis)
}

/// Creates an array without inputs, such as the result of `arange` or `eye`.
pub(super) fn run_fill(call: &Call) -> Result<Outcome> {
    let Work::Fill(fill) = &call.work else { decline!("not a fill") };
    let (mesh, output) = (mesh_of_call(call)?, &call.outputs[0]);
    let Some(axis) = divided_axis_of_new_array(mesh, output.layout.shape()) else { decline!("every rank holds a short array") };
    let is_integer = matches!(output.dtype.kind(), Kind::Signed | Kind::Unsigned);
    let cuts: DividedAxes = mesh.shape().iter().map(|_| Some(axis)).collect();
    if matches!(fill, Fill::Linspace { .. }) || matches!(fill, Fill::Arange { .. } if !is_integer) {
        decline!("rounding depends on the index of the element");
    }
    let parts = run_on_local_ranks(mesh, 1, false, |local, rank| {
        let start = region_of_rank(mesh, output.layout.shape(), &cuts, rank)[axis].start;
        let work = match *fill {
            Fill::Arange { start: Scalar::Int(first), step: Scalar::Int(step), .. } => {
                let first = first.wrapping_add(step.wrapping_mul(start as i128));
                // Integers wrap around in the output's dtype, so only the low bits of the numbers matter.
                let [start, second] = [first, first.wrapping_add(step)].map(|n| Scalar::Int(wrap_to_output_dtype(n, output)));
                Fill::Arange { start, second, step: Scalar::Int(step) }
            }
            Fill::Arange { .. } => return Ok(Err("a range of integers with a step that is not an integer".into())),
            Fill::Eye { k } => Fill::Eye { k: if axis == 0 { k.saturating_add(start as i64) } else { k.saturating_sub(start as i64) } },
            fill => fill,
        };
        run_on_rank(mesh, local, call, &[], &[local_output_spec(mesh, output, &cuts, rank)?], Work::Fill(work))
    })?;
    match parts {
        Ok(parts) => sharded_outcome(mesh, call, &cuts, parts),
        Err(reason) => decline_with_reason(reason),
    }
}

/// Wraps `value` to the output's integer dtype, which keeps the low bits.
fn wrap_to_output_dtype(value: i128, output: &OutputSpec) -> i128 {
    let bits = 8 * output.dtype.itemsize() as u32;
    let shifted = value << (128 - bits);
    if output.dtype.kind() == Kind::Signed { shifted >> (128 - bits) } else { ((shifted as u128) >> (128 - bits)) as i128 }
}

/// Draws random numbers without array parameters. Each rank starts at the Philox block that contains its first element.
pub(super) fn run_random(call: &Call) -> Result<Outcome> {
    let Work::Random(random) = &call.work else { decline!("not a draw") };
    let (mesh, output) = (mesh_of_call(call)?, &call.outputs[0]);
    let shape: Dims = output.layout.shape().into();
    if divided_axis_of_new_array(mesh, &shape) != Some(0) || !call.inputs.is_empty() || !output.layout.is_c_contiguous() {
        decline!("only arrays without parameter arrays are divided, along the first axis");
    }
    let cuts: DividedAxes = mesh.shape().iter().map(|_| Some(0)).collect();
    let row: usize = shape[1..].iter().product();
    let per_block = random.distribution.elements_per_philox_block(output.dtype);
    let parts = run_on_local_ranks(mesh, 1, false, |local, rank| {
        let rows = region_of_rank(mesh, &shape, &cuts, rank)[0].clone();
        let (first, count) = (rows.start * row, rows.len() * row);
        let skipped = first % per_block;
        let first_block = random.first_block.wrapping_add((first / per_block) as u64);
        let specification = OutputSpec::contiguous(output.dtype, &[skipped + count])?;
        let work = Work::Random(Random { first_block, ..*random });
        let done = run_on_rank(mesh, local, call, &[], &[specification], work)?;
        done.map(|outputs| {
            let layout = Layout::contiguous(&[count])?.with_offset(skipped);
            let of_rank = |drawn: StoredArray| crate::redistribute::to_c_contiguous(&drawn.with_layout(layout.clone())?);
            outputs.into_iter().map(of_rank).collect::<Result<_>>()
        })
        .map_or_else(|reason| Ok(Err(reason)), |outputs| outputs.map(Ok))
    })?;
    match parts {
        Ok(parts) => sharded_outcome(mesh, call, &cuts, parts),
        Err(reason) => decline_with_reason(reason),
    }
}
