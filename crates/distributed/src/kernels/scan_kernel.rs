//! Kernel family `Scan`: along a divided axis, each block is scanned on its own, then combined with the exclusive scan of the blocks'
//! totals. The result does not depend on the number of ranks.

use cuprum_core::layout::{Dims, Strides};
use cuprum_core::op::AccumulatorDType;
use cuprum_core::ops::elementwise::ADD;
use cuprum_core::plan::scan::ScanPlan;
use cuprum_core::{
    Array, Call, Complex, DType, Item, Kind, Layout, NdArray, Outcome, OutputSpec, Outputs, Result, Scalar, StepKind, StoredArray, Work,
    arange, call, concat, decline, full, where_,
};
use smallvec::SmallVec;

use crate::axis_blocks::AxisBlocks;
use crate::mesh::Mesh;
use crate::placement::{ArrayDistribution, DividedAxes, Placement, part_index_and_count, region_extents};
use crate::rank_calls::{
    decline_with_reason, divided_axes_of_largest_input, has_sharded_input, local_output_spec, mesh_of_call, run_on_local_ranks,
    run_on_rank, sharded_outcome, sharded_output_from_parts,
};
use crate::redistribute::{fetch_regions, to_c_contiguous};
use crate::sharded_buffer::{ShardedBuffer, sharded_array_from_parts, zero_size_array};
use crate::sharded_views::fetch_local_parts;

/// Runs a scan.
pub(super) fn run_scan(call: &Call) -> Result<Outcome> {
    let Work::Scan(request) = &call.work else { decline!("not a scan") };
    if !has_sharded_input(call.inputs) {
        decline!("every rank holds the inputs");
    }
    let mesh = mesh_of_call(call)?;
    let cuts = divided_axes_of_largest_input(mesh, call.inputs);
    if cuts.contains(&Some(request.axis)) {
        return scan_by_blocks(mesh, call, request, &cuts);
    }
    let call::Scan { program, reduction, axis, .. } = *request;
    let inputs = call.inputs.iter().map(|input| fetch_local_parts(mesh, input, &cuts)).collect::<Result<Vec<_>>>()?;
    let parts = run_on_local_ranks(mesh, 1, cuts.iter().all(Option::is_none), |local, rank| {
        let inputs: SmallVec<[StoredArray; 4]> = inputs.iter().map(|parts| parts[local].clone()).collect();
        let layouts: SmallVec<[&Layout; 4]> = inputs.iter().map(|a| a.layout()).collect();
        let output = local_output_spec(mesh, &call.outputs[0], &cuts, rank)?;
        let plan = ScanPlan::new(output.layout.shape(), &layouts, axis);
        run_on_rank(mesh, local, call, &inputs, &[output], Work::Scan(call::Scan { program, reduction, axis, plan: &plan }))
    })?;
    match parts {
        Ok(parts) => sharded_outcome(mesh, call, &cuts, parts),
        Err(reason) => decline_with_reason(reason),
    }
}

/// Runs a scan along a divided axis.
fn scan_by_blocks(mesh: Mesh, call: &Call, request: &call::Scan, cuts: &DividedAxes) -> Result<Outcome> {
    let axis = request.axis;
    let shape: Dims = call.outputs[0].layout.shape().into();
    let blocks = AxisBlocks::of(shape[axis]);
    let Some(combine) = request.reduction.elementwise_combination() else { decline!("a combination by a user-defined operation") };
    // Scans of 16-bit floats accumulate in float32, and round only the final result.
    let mut program = request.program.clone();
    let value = program.output_dtype(0);
    let acc = request.reduction.accumulator.of(value);
    if request.reduction.accumulator == AccumulatorDType::Wide && acc != value {
        let result = program.outputs[0];
        let wide = program.push_step(StepKind::Cast, acc, &[result]);
        program.outputs[0] = wide;
    }
    let dtype = program.output_dtype(0);
    let inputs = call.inputs.iter().map(|input| fetch_local_parts(mesh, input, cuts)).collect::<Result<Vec<_>>>()?;
    // The block totals form a sharded array: its first axis is the block index, and the remaining axes are those of the input without the
    // scanned axis.
    let others: Vec<usize> = (0..shape.len()).filter(|a| *a != axis).collect();
    let place = |cut: &Option<usize>| match cut {
        Some(a) if *a == axis => Placement::Shard(0),
        Some(a) => others.iter().position(|k| k == a).map_or(Placement::Replicate, |at| Placement::Shard(at as isize + 1)),
        None => Placement::Replicate,
    };
    let totals_shape: Dims = std::iter::once(blocks.count).chain(others.iter().map(|&a| shape[a])).collect();
    let mut distribution = ArrayDistribution { shape: totals_shape, placements: cuts.iter().map(place).collect() };
    let mut scanned: Vec<Vec<NdArray>> = vec![Vec::new(); mesh.local_ranks().len()];
    let parts = run_on_local_ranks(mesh, 1, false, |local, rank| {
        let inputs: SmallVec<[StoredArray; 4]> = inputs.iter().map(|parts| parts[local].clone()).collect();
        let (index, count) = part_index_and_count(mesh, cuts, axis, rank);
        let (owned_blocks, elements) = (blocks.owned_blocks(index, count).len(), blocks.owned_elements(index, count).len());
        let totals_shape = region_extents(&distribution.rank_region(mesh, rank));
        let mut of_rank = Vec::new();
        if totals_shape.contains(&0) {
            scanned[local] = of_rank;
            return Ok(Ok([zero_size_array(mesh.local_devices()[local], dtype, &totals_shape)?].into_iter().collect()));
        }
        let full = if elements == owned_blocks * blocks.length { owned_blocks } else { owned_blocks - 1 };
        let rest = elements - full * blocks.length;
        let mut totals = Vec::new();
        for (first, count, length) in [(0, full, blocks.length), (full * blocks.length, usize::from(rest > 0), rest)] {
            if count == 0 {
                continue;
            }
            let inputs = inputs
                .iter()
                .map(|input| split_axis_into_blocks(input, axis, first, count, length))
                .collect::<Result<SmallVec<[_; 4]>>>()?;
            let layouts: SmallVec<[&Layout; 4]> = inputs.iter().map(|a: &StoredArray| a.layout()).collect();
            let plan = ScanPlan::new(inputs[0].shape(), &layouts, axis + 1);
            let output = OutputSpec::contiguous(dtype, inputs[0].shape())?;
            let work = Work::Scan(call::Scan { program: &program, reduction: request.reduction, axis: axis + 1, plan: &plan });
            match run_on_rank(mesh, local, call, &inputs, &[output], work)? {
                Ok(outputs) => {
                    let result = outputs.into_iter().next().ok_or_else(|| cuprum_core::Error::value(call.op.name(), "no output"))?;
                    let result = NdArray::from(result);
                    let last: Vec<Item> =
                        (0..=axis + 1).map(|a| if a == axis + 1 { Item::At(-1) } else { Item::slice(None, None, 1) }).collect();
                    totals.push(result.index(&last[..])?);
                    of_rank.push(result);
                }
                Err(reason) => return Ok(Err(reason)),
            }
        }
        scanned[local] = of_rank;
        let totals = mesh.with_rank_device(local, || concat(&totals, 0)?.stored())?;
        Ok(Ok([to_c_contiguous(&totals)?].into_iter().collect::<Outputs>()))
    })?;
    let totals = match parts {
        Ok(mut parts) => parts.remove(0),
        Err(reason) => return decline_with_reason(reason),
    };
    let totals = sharded_array_from_parts(mesh, dtype, Layout::contiguous(&distribution.shape)?, distribution.clone(), totals)?;
    for placement in &mut distribution.placements {
        if *placement == Placement::Shard(0) {
            *placement = Placement::Replicate;
        }
    }
    let Some(buffer) = ShardedBuffer::of(&totals) else { decline!("the totals are not on the mesh") };
    let all = fetch_regions(buffer, &|rank| distribution.rank_region(mesh, rank))?;
    let mut parts = Vec::new();
    // The identity element of a sum of floats is -0.0, which keeps signed zeros.
    let identity = match dtype.kind() {
        Kind::Float if combine == ADD => Scalar::Float(-0.0),
        Kind::Complex if combine == ADD => Scalar::Complex(Complex::new(-0.0, -0.0)),
        _ => request.reduction.identity.of(dtype),
    };
    for ((local, rank), totals) in mesh.local_ranks().enumerate().zip(all) {
        let (index, count) = part_index_and_count(mesh, cuts, axis, rank);
        let output = local_output_spec(mesh, &call.outputs[0], cuts, rank)?;
        if output.layout.size() == 0 {
            parts.push(zero_size_array(mesh.local_devices()[local], output.dtype, output.layout.shape())?);
            continue;
        }
        let first_block = blocks.owned_blocks(index, count).start;
        let prefixes = exclusive_scan_of_totals(mesh, local, call, request, NdArray::from(totals), identity, dtype)?;
        let Some(prefixes) = prefixes else { decline!("the devices of the ranks do not scan totals") };
        let joined = mesh.with_rank_device(local, || {
            let mut block = first_block;
            let mut joined = Vec::new();
            for scanned in &scanned[local] {
                let count = scanned.shape()[0];
                let prefix = prefixes.index(&[Item::slice(Some(block as isize), Some((block + count) as isize), 1)][..])?;
                let prefix = prefix.expand_dims(axis as isize + 1)?;
                let mut combined = cuprum_core::expr::elementwise(combine, &[prefix.into(), scanned.clone().into()])?;
                if block == 0 && dtype.is_complex() {
                    // The first block has no earlier blocks to combine with, so its scan is used unchanged. Multiplying a complex number by
                    // the identity element 1+0j would turn infinities into NaN.
                    let mut shape = Dims::from_elem(1, scanned.ndim());
                    shape[0] = count;
                    let has_prefix = arange(0, count as i64, 1)?.not_equal(0)?.reshape(&shape[..])?;
                    combined = where_(has_prefix, combined, scanned)?;
                }
                joined.push(merge_block_axis(&combined.astype(output.dtype)?, axis)?);
                block += count;
            }
            let whole = if joined.len() == 1 { joined.remove(0) } else { concat(&joined, axis as isize)? };
            to_c_contiguous(&whole.stored()?)
        })?;
        parts.push(joined);
    }
    Ok(Outcome::Done([sharded_output_from_parts(mesh, &call.outputs[0], cuts, parts)?].into_iter().collect()))
}

/// Returns a view that splits `axis` of an array into `count` blocks of `length` elements, starting at element `first`. The block index is
/// a new first axis.
fn split_axis_into_blocks(input: &StoredArray, axis: usize, first: usize, count: usize, length: usize) -> Result<StoredArray> {
    let (layout, mut shape) = (input.layout(), Dims::from_slice(input.shape()));
    let stride = layout.strides()[axis];
    shape[axis] = length;
    let shape: Dims = std::iter::once(count).chain(shape).collect();
    let strides: Strides = std::iter::once(stride * length as isize).chain(layout.strides().iter().copied()).collect();
    let offset = layout.offset() as isize + stride * first as isize;
    StoredArray::new(input.dtype(), Layout::strided(&shape, &strides, offset.max(0) as usize)?, input.buffer().clone())
}

/// Reverses [`split_axis_into_blocks`]: merges the first axis, the block index, into the axis `axis` of the remaining axes.
fn merge_block_axis(array: &NdArray, axis: usize) -> Result<NdArray> {
    let mut order: Vec<isize> = (1..array.ndim() as isize).collect();
    order.insert(axis, 0);
    let mut shape: Dims = array.shape()[1..].into();
    shape[axis] *= array.shape()[0];
    array.transpose(&order[..])?.reshape(&shape[..])
}

/// Returns the exclusive scan of the block totals: for each block, the combination of the totals of all earlier blocks. The block index is
/// the first axis, and the first element is `identity`. Returns `None` if the device declines the scan.
fn exclusive_scan_of_totals(
    mesh: Mesh,
    local: usize,
    call: &Call,
    request: &call::Scan,
    totals: NdArray,
    identity: Scalar,
    dtype: DType,
) -> Result<Option<NdArray>> {
    mesh.with_rank_device(local, || {
        let mut shape = Dims::from_slice(totals.shape());
        let blocks = shape[0] as isize;
        shape[0] = 1;
        let first = full(&shape[..], identity, dtype)?;
        if blocks == 1 {
            return Ok(Some(first));
        }
        let before = totals.index(&[Item::slice(None, Some(blocks - 1), 1)][..])?.contiguous()?.stored()?;
        let program = cuprum_core::Program::identity(dtype);
        let plan = ScanPlan::new(before.shape(), &[before.layout()], 0);
        let output = OutputSpec::contiguous(dtype, before.shape())?;
        let work = Work::Scan(call::Scan { program: &program, reduction: request.reduction, axis: 0, plan: &plan });
        match run_on_rank(mesh, local, call, &[before], &[output], work)? {
            Ok(outputs) => match outputs.into_iter().next() {
                Some(scanned) => concat([&first, &NdArray::from(scanned)], 0).map(Some),
                None => Ok(None),
            },
            Err(_) => Ok(None),
        }
    })
}
