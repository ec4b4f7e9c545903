//! Kernel family `Fft`: each rank transforms along axes that are not divided. If every axis that could be divided is transformed, the
//! operation takes two steps with an exchange between the steps.

use cuprum_core::call::{Fft, FftKind};
use cuprum_core::layout::Dims;
use cuprum_core::{Call, Outcome, OutputSpec, Program, Result, StoredArray, Work, decline};
use smallvec::SmallVec;

use crate::mesh::Mesh;
use crate::placement::{DividedAxes, region_extents, region_of_rank};
use crate::rank_calls::{
    decline_with_reason, divided_axes_of_largest_input, has_sharded_input, local_output_spec, mesh_of_call, run_on_local_ranks,
    run_on_rank, sharded_outcome, sharded_output_from_parts,
};
use crate::sharded_buffer::zero_size_array;
use crate::sharded_views::fetch_local_parts;

/// Runs a discrete Fourier transform.
pub(super) fn run_fft(call: &Call) -> Result<Outcome> {
    let Work::Fft(request) = &call.work else { decline!("not a Fourier transform") };
    if !has_sharded_input(call.inputs) {
        decline!("every rank holds the inputs");
    }
    let mesh = mesh_of_call(call)?;
    let mut cuts = divided_axes_of_largest_input(mesh, call.inputs);
    let mut transformed = (0..cuts.len()).filter(|m| cuts[*m].is_some_and(|axis| request.axes.contains(&axis)));
    let (first, second) = (transformed.next(), transformed.next());
    let Some(mesh_axis) = first else { return run_in_one_step(mesh, call, request, &cuts) };
    if second.is_some() {
        decline!("several mesh axes divide transformed axes");
    }
    let ranks = mesh.shape()[mesh_axis];
    let is_free = |axis: &usize| !request.axes.contains(axis) && !cuts.contains(&Some(*axis)) && request.shape[*axis] >= ranks;
    if let Some(axis) = longest_axis(request.shape, (0..request.shape.len()).filter(is_free)) {
        cuts[mesh_axis] = Some(axis);
        return run_in_one_step(mesh, call, request, &cuts);
    }
    if request.axes.len() == 1 {
        decline!("a transform along the only divided axis");
    }
    run_in_two_steps(mesh, call, request, cuts, mesh_axis)
}

/// Returns the axis of `axes` with the largest extent in `shape`. Among equal extents, returns the axis with the lowest number.
fn longest_axis(shape: &[usize], axes: impl Iterator<Item = usize>) -> Option<usize> {
    axes.max_by_key(|&axis| (shape[axis], std::cmp::Reverse(axis)))
}

/// Runs a transform along axes that no mesh axis divides. `cuts` has the axis that each mesh axis divides.
fn run_in_one_step(mesh: Mesh, call: &Call, request: &Fft, cuts: &DividedAxes) -> Result<Outcome> {
    match transform_local_parts(mesh, call, request, call.inputs, &call.outputs[0], cuts)? {
        Ok(parts) => sharded_outcome(mesh, call, cuts, parts),
        Err(reason) => decline_with_reason(reason),
    }
}

/// Runs a transform along all axes that mesh axis `mesh_axis` could divide, in two steps. The first step transforms all axes except one,
/// which is divided. The second step transforms this axis while another axis is divided.
fn run_in_two_steps(mesh: Mesh, call: &Call, request: &Fft, mut cuts: DividedAxes, mesh_axis: usize) -> Result<Outcome> {
    let last = request.axes[request.axes.len() - 1];
    let others = |axis: usize| request.axes.iter().copied().filter(move |other| *other != axis);
    // Only the transform of the last axis has real inputs (`rfftn`) or real results (`irfftn`). The first step must therefore transform the
    // last axis for real inputs, and the second step for real results.
    let divided = match (request.kind, cuts[mesh_axis]) {
        (FftKind::ComplexToReal, _) => Some(last),
        (FftKind::RealToComplex, Some(axis)) if axis == last => longest_axis(request.shape, others(last)),
        (_, cut) => cut,
    };
    let Some(divided) = divided else { decline!("no axis to divide") };
    let (mut axes, mut lengths) = (Dims::new(), Dims::new());
    let mut shape: Dims = request.shape.into();
    let mut length = 0;
    for (&axis, &n) in request.axes.iter().zip(request.lengths) {
        if axis == divided {
            length = n;
            continue;
        }
        axes.push(axis);
        lengths.push(n);
        shape[axis] = if request.kind == FftKind::RealToComplex && axis == last { n / 2 + 1 } else { n };
    }
    let (output, dtype) = (
        &call.outputs[0],
        match request.kind {
            FftKind::ComplexToReal => request.program.output_dtype(0),
            _ => call.outputs[0].dtype,
        },
    );
    let kinds = match request.kind {
        FftKind::Complex => [FftKind::Complex, FftKind::Complex],
        FftKind::RealToComplex => [FftKind::RealToComplex, FftKind::Complex],
        FftKind::ComplexToReal => [FftKind::Complex, FftKind::ComplexToReal],
    };
    cuts[mesh_axis] = Some(divided);
    let first = Fft { kind: kinds[0], axes: &axes, lengths: &lengths, scale: 1.0, ..*request };
    let middle = OutputSpec::contiguous(dtype, &shape)?;
    let parts = match transform_local_parts(mesh, call, &first, call.inputs, &middle, &cuts)? {
        Ok(parts) => parts.into_iter().next().unwrap_or_default(),
        Err(reason) => return decline_with_reason(reason),
    };
    let middle = sharded_output_from_parts(mesh, &middle, &cuts, parts)?;
    cuts[mesh_axis] = longest_axis(&shape, axes.iter().copied());
    let program = Program::identity(dtype);
    let second = Fft { program: &program, kind: kinds[1], shape: &shape, axes: &[divided], lengths: &[length], ..*request };
    match transform_local_parts(mesh, call, &second, &[middle], output, &cuts)? {
        Ok(parts) => sharded_outcome(mesh, call, &cuts, parts),
        Err(reason) => decline_with_reason(reason),
    }
}

/// Transforms the part of each rank along axes that no mesh axis divides. `cuts` has the axis that each mesh axis divides. Returns the
/// parts of the output, one for each rank of this process, or the reason why a device declines the operation.
fn transform_local_parts(
    mesh: Mesh,
    call: &Call,
    request: &Fft,
    inputs: &[StoredArray],
    output: &OutputSpec,
    cuts: &DividedAxes,
) -> Result<std::result::Result<Vec<Vec<StoredArray>>, String>> {
    let inputs = inputs.iter().map(|input| fetch_local_parts(mesh, input, cuts)).collect::<Result<Vec<_>>>()?;
    run_on_local_ranks(mesh, 1, cuts.iter().all(Option::is_none), |local, rank| {
        let inputs: SmallVec<[StoredArray; 4]> = inputs.iter().map(|parts| parts[local].clone()).collect();
        let output = local_output_spec(mesh, output, cuts, rank)?;
        let shape = region_extents(&region_of_rank(mesh, request.shape, cuts, rank));
        if shape.contains(&0) {
            return Ok(Ok([zero_size_array(mesh.local_devices()[local], output.dtype, output.layout.shape())?].into_iter().collect()));
        }
        run_on_rank(mesh, local, call, &inputs, &[output], Work::Fft(Fft { shape: &shape, ..*request }))
    })
}
