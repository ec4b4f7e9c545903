//! Kernel family `Reduce`: reductions over axes that are not divided stay local. Over a divided axis, each block is reduced on its own, and
//! the block results are reduced in one fixed order. The result thus does not depend on the number of ranks.

use cuprum_core::device::driver;
use cuprum_core::layout::{Dims, Strides};
use cuprum_core::op::{AccumulatorDType, Combine};
use cuprum_core::ops::reduce::{COUNT_NONZERO, PROD, SUM};
use cuprum_core::plan::reduce::ReducePlan;
use cuprum_core::{
    Array, Call, DType, Layout, NdArray, Op, Outcome, OutputSpec, Outputs, Program, Result, StepKind, StoredArray, Work, call, concat,
    decline, isnan,
};
use smallvec::SmallVec;

use crate::axis_blocks::AxisBlocks;
use crate::mesh::Mesh;
use crate::placement::{ArrayDistribution, DividedAxes, Placement, part_index_and_count, region_extents};
use crate::rank_calls::{
    decline_with_reason, divided_axes_of_largest_input, has_sharded_input, local_output_spec, mesh_of_call, run_on_local_ranks,
    run_on_rank, sharded_outcome, sharded_output_from_parts,
};
use crate::redistribute::{fetch_regions, reduce_one_axis};
use crate::sharded_buffer::{ShardedBuffer, zero_size_array};
use crate::sharded_views::fetch_local_parts;

/// Runs a reduction over axes.
pub(super) fn run_reduction(call: &Call) -> Result<Outcome> {
    let Work::Reduce(request) = &call.work else { decline!("not a reduction over axes") };
    if !has_sharded_input(call.inputs) {
        decline!("every rank holds the inputs");
    }
    let mesh = mesh_of_call(call)?;
    let mut cuts = divided_axes_of_largest_input(mesh, call.inputs);
    // Only one divided axis is reduced by blocks. Other reduced axes are gathered, so that no mesh axis divides them.
    let divided = cuts.iter().flatten().copied().find(|axis| request.axes.contains(axis));
    for cut in &mut cuts {
        if cut.is_some_and(|axis| request.axes.contains(&axis) && Some(axis) != divided) {
            *cut = None;
        }
    }
    match divided {
        None => reduce_undivided_axes(mesh, call, request, &cuts),
        Some(_) if request.reduction.returns_index => decline!("an index of an element along a divided axis"),
        Some(_) if request.reduction.combine == Combine::Moments => decline!("a variance along a divided axis"),
        Some(axis) => reduce_by_blocks(mesh, call, request, &cuts, axis),
    }
}

/// Returns the axis of the output that corresponds to `axis`, an axis of the loop that is not reduced.
fn output_axis_of_loop_axis(call: &Call, request: &call::Reduce, ndim: usize, axis: usize) -> usize {
    let keeps_axes = call.outputs.first().is_some_and(|output| output.layout.ndim() == ndim);
    if keeps_axes { axis } else { axis - request.axes.iter().filter(|reduced| **reduced < axis).count() }
}

/// Runs a reduction over axes that no mesh axis divides.
fn reduce_undivided_axes(mesh: Mesh, call: &Call, request: &call::Reduce, cuts: &DividedAxes) -> Result<Outcome> {
    let call::Reduce { program, reduction, axes, acc, .. } = *request;
    let ndim = call.inputs[0].shape().len();
    let output_cuts: DividedAxes = cuts.iter().map(|cut| cut.map(|axis| output_axis_of_loop_axis(call, request, ndim, axis))).collect();
    let inputs = call.inputs.iter().map(|input| fetch_local_parts(mesh, input, cuts)).collect::<Result<Vec<_>>>()?;
    let parts = run_on_local_ranks(mesh, 1, cuts.iter().all(Option::is_none), |local, rank| {
        let inputs: SmallVec<[StoredArray; 4]> = inputs.iter().map(|parts| parts[local].clone()).collect();
        let layouts: SmallVec<[&Layout; 4]> = inputs.iter().map(|a| a.layout()).collect();
        let plan = ReducePlan::new(inputs[0].shape(), &layouts, axes, reduction.returns_index);
        let output = local_output_spec(mesh, &call.outputs[0], &output_cuts, rank)?;
        let work = Work::Reduce(call::Reduce { program, reduction, axes, plan: &plan, acc });
        run_on_rank(mesh, local, call, &inputs, &[output], work)
    })?;
    match parts {
        Ok(parts) => sharded_outcome(mesh, call, &output_cuts, parts),
        Err(reason) => decline_with_reason(reason),
    }
}

/// Runs a reduction over one or more axes, of which only `axis` is divided.
fn reduce_by_blocks(mesh: Mesh, call: &Call, request: &call::Reduce, cuts: &DividedAxes, axis: usize) -> Result<Outcome> {
    let shape: Dims = call.inputs[0].shape().into();
    let blocks = AxisBlocks::of(shape[axis]);
    let (program, dtype) = program_of_block_reduction(call, request);
    let inputs = call.inputs.iter().map(|input| fetch_local_parts(mesh, input, cuts)).collect::<Result<Vec<_>>>()?;
    let kept: Vec<usize> = (0..shape.len()).filter(|a| !request.axes.contains(a)).collect();
    // The results of the blocks form a sharded array. The first axis of this array is the block index, and the kept axes follow.
    let partial_shape: Dims = std::iter::once(blocks.count).chain(kept.iter().map(|&a| shape[a])).collect();
    let place = |cut: &Option<usize>| match cut {
        Some(a) if *a == axis => Placement::Shard(0),
        Some(a) => kept.iter().position(|k| k == a).map_or(Placement::Replicate, |at| Placement::Shard(at as isize + 1)),
        None => Placement::Replicate,
    };
    let mut distribution = ArrayDistribution { shape: partial_shape, placements: cuts.iter().map(place).collect() };
    let parts = run_on_local_ranks(mesh, 1, false, |local, rank| {
        let inputs: SmallVec<[StoredArray; 4]> = inputs.iter().map(|parts| parts[local].clone()).collect();
        let (index, count) = part_index_and_count(mesh, cuts, axis, rank);
        let owned_blocks = blocks.owned_blocks(index, count).len();
        let elements = blocks.owned_elements(index, count).len();
        let partial_shape = region_extents(&distribution.rank_region(mesh, rank));
        if partial_shape.contains(&0) {
            return Ok(Ok([zero_size_array(mesh.local_devices()[local], dtype, &partial_shape)?].into_iter().collect()));
        }
        let full = if elements == owned_blocks * blocks.length { owned_blocks } else { owned_blocks - 1 };
        let rest = elements - full * blocks.length;
        let reducer = LocalBlockReducer { mesh, local, call, request, program: &program, dtype, axis };
        let mut results = Vec::new();
        for (first, count, length) in [(0, full, blocks.length), (full * blocks.length, usize::from(rest > 0), rest)] {
            if count > 0 {
                match reducer.reduce_blocks(&inputs, first, count, length, &partial_shape[1..])? {
                    Ok(result) => results.push(NdArray::from(result)),
                    Err(reason) => return Ok(Err(reason)),
                }
            }
        }
        let joined = if results.len() == 1 { results.remove(0) } else { mesh.with_rank_device(local, || concat(&results, 0))? };
        Ok(Ok([joined.stored()?].into_iter().collect::<Outputs>()))
    })?;
    let parts = match parts {
        Ok(mut parts) => parts.remove(0),
        Err(reason) => return decline_with_reason(reason),
    };
    let combine: Op = if call.op == COUNT_NONZERO { SUM } else { call.op };
    let groups = BlockGroups::of(mesh, call, cuts, axis, &distribution);
    let combine_groups = |values: StoredArray| match &groups {
        Some(groups) => groups.combine_blocks(combine, &values, dtype),
        None => Ok(values),
    };
    let own_whole_groups = groups.as_ref().is_some_and(|groups| groups.ranks_own_whole_groups);
    let parts = if own_whole_groups { parts.into_iter().map(combine_groups).collect::<Result<Vec<_>>>()? } else { parts };
    if let Some(groups) = groups.as_ref().filter(|groups| groups.ranks_own_whole_groups) {
        distribution.shape[0] = groups.count;
    }
    let layout = Layout::contiguous(&distribution.shape)?;
    let partials = crate::sharded_buffer::sharded_array_from_parts(mesh, dtype, layout, distribution.clone(), parts)?;
    for placement in &mut distribution.placements {
        if *placement == Placement::Shard(0) {
            *placement = Placement::Replicate;
        }
    }
    let Some(buffer) = ShardedBuffer::of(&partials) else { decline!("the results of the blocks are not on the mesh") };
    let all_blocks = fetch_regions(buffer, &|rank| distribution.rank_region(mesh, rank))?;
    let all_blocks = if own_whole_groups { all_blocks } else { all_blocks.into_iter().map(combine_groups).collect::<Result<Vec<_>>>()? };
    let output = &call.outputs[0];
    let mut combined: Vec<StoredArray> = Vec::new();
    for (local, values) in all_blocks.iter().enumerate() {
        let leader = mesh.device_leader_of(local);
        let is_shared = leader != local && distribution.is_replicated();
        combined.push(match values {
            _ if is_shared => combined[leader].clone(),
            values if values.layout().size() == 0 => zero_size_array(mesh.local_devices()[local], output.dtype, &values.shape()[1..])?,
            values => reduce_one_axis(combine, values, 0, output.dtype)?,
        });
    }
    if call.op == PROD && output.dtype.is_inexact() {
        let is_new_nan = all_blocks.iter().zip(&combined).map(|(values, result)| has_nan_of_finite_blocks(values, result));
        let is_valid = !is_new_nan.collect::<Result<Vec<_>>>()?.contains(&true);
        if !driver(call.device)?.is_true_in_all_processes(is_valid)? {
            decline!("a product of blocks whose products are zero and infinite");
        }
    }
    let output_cuts: DividedAxes =
        cuts.iter().map(|cut| cut.filter(|a| *a != axis).map(|a| output_axis_of_loop_axis(call, request, shape.len(), a))).collect();
    Ok(Outcome::Done([sharded_output_from_parts(mesh, output, &output_cuts, combined)?].into_iter().collect()))
}

/// Number of blocks that are combined before an exchange if each rank owns all blocks of the group.
const BLOCKS_PER_GROUP: usize = 8;
/// Minimum number of results per block at which groups pay off. With fewer results, the exchange of all blocks takes less time than a
/// further reduction.
const MIN_RESULTS_PER_GROUPED_BLOCK: usize = 4096;

/// Groups of [`BLOCKS_PER_GROUP`] blocks whose results are combined first, so that fewer results travel between ranks. Whether a reduction
/// has groups depends only on the shape of its input, because the order of combination must not depend on the number of ranks.
struct BlockGroups {
    /// Number of groups.
    count: usize,
    /// Whether no group is divided between ranks.
    ranks_own_whole_groups: bool,
}

impl BlockGroups {
    /// Returns the groups of a reduction, or `None` if its blocks are combined in one step. `axis` is the divided axis, and `distribution`
    /// is that of the results of the blocks.
    fn of(mesh: Mesh, call: &Call, cuts: &DividedAxes, axis: usize, distribution: &ArrayDistribution) -> Option<BlockGroups> {
        let blocks = distribution.shape[0];
        let results: usize = distribution.shape[1..].iter().product();
        // A product of floats may become NaN if its factors are combined in another order, which is checked for one step only.
        let is_checked = call.op == PROD && call.outputs[0].dtype.is_inexact();
        if is_checked || !blocks.is_multiple_of(BLOCKS_PER_GROUP) || results < MIN_RESULTS_PER_GROUPED_BLOCK {
            return None;
        }
        let ranks = part_index_and_count(mesh, cuts, axis, 0).1;
        let ranks_own_whole_groups = (0..ranks).all(|rank| (rank * blocks / ranks).is_multiple_of(BLOCKS_PER_GROUP));
        Some(BlockGroups { count: blocks / BLOCKS_PER_GROUP, ranks_own_whole_groups })
    }

    /// Combines the blocks of each group. The first axis of `values` numbers blocks, and that of the result groups.
    fn combine_blocks(&self, op: Op, values: &StoredArray, dtype: DType) -> Result<StoredArray> {
        let shape = values.shape();
        let grouped: Dims = [shape[0] / BLOCKS_PER_GROUP, BLOCKS_PER_GROUP].into_iter().chain(shape[1..].iter().copied()).collect();
        if values.layout().size() == 0 {
            return zero_size_array(values.device(), dtype, &[&grouped[..1], &shape[1..]].concat());
        }
        reduce_one_axis(op, &NdArray::from(values.clone()).reshape(&grouped[..])?.stored()?, 1, dtype)
    }
}

/// Returns whether combining the blocks has produced a NaN: an element of `result` is NaN, although none of the block results combined for
/// that element is. The first axis of `values` numbers the blocks.
fn has_nan_of_finite_blocks(values: &StoredArray, result: &StoredArray) -> Result<bool> {
    let has_nan_block = isnan(NdArray::from(values.clone()))?.any(0)?;
    Ok(isnan(NdArray::from(result.clone()))?.greater(&has_nan_block)?.any(())?.item()?.as_bool())
}

/// Returns the program that computes the values of a block, and the dtype of the block's result. For a reduction with wide accumulators,
/// the dtype of the accumulators is used, so that only the final result is rounded.
fn program_of_block_reduction(call: &Call, request: &call::Reduce) -> (Program, DType) {
    let mut program = request.program.clone();
    let value = program.output_dtype(0);
    if request.reduction.accumulator != AccumulatorDType::Wide || request.acc == value {
        return (program, call.outputs[0].dtype);
    }
    let result = program.outputs[0];
    let wide = program.push_step(StepKind::Cast, request.acc, &[result]);
    program.outputs[0] = wide;
    (program, request.acc)
}

/// Reduces the blocks of an axis that a rank of this process holds.
struct LocalBlockReducer<'a> {
    mesh: Mesh,
    local: usize,
    call: &'a Call<'a>,
    request: &'a call::Reduce<'a>,
    program: &'a Program,
    dtype: DType,
    /// The reduced axis, which is divided into blocks.
    axis: usize,
}

impl LocalBlockReducer<'_> {
    /// Reduces `count` blocks of `length` elements each, starting at element `first` of the rank's part. The first axis of the result is
    /// the block index. The extents of the other axes are `kept`.
    fn reduce_blocks(
        &self,
        inputs: &[StoredArray],
        first: usize,
        count: usize,
        length: usize,
        kept: &[usize],
    ) -> Result<std::result::Result<StoredArray, String>> {
        let of_blocks = |input: &StoredArray| {
            let (layout, mut shape) = (input.layout(), Dims::from_slice(input.shape()));
            let stride = layout.strides()[self.axis];
            shape[self.axis] = length;
            let shape: Dims = std::iter::once(count).chain(shape).collect();
            let strides: Strides = std::iter::once(stride * length as isize).chain(layout.strides().iter().copied()).collect();
            let offset = layout.offset() as isize + stride * first as isize;
            StoredArray::new(input.dtype(), Layout::strided(&shape, &strides, offset.max(0) as usize)?, input.buffer().clone())
        };
        let inputs = inputs.iter().map(of_blocks).collect::<Result<SmallVec<[StoredArray; 4]>>>()?;
        let layouts: SmallVec<[&Layout; 4]> = inputs.iter().map(|a| a.layout()).collect();
        let axes: Dims = self.request.axes.iter().map(|axis| axis + 1).collect();
        let (reduction, acc) = (self.request.reduction, self.request.acc);
        let plan = ReducePlan::new(inputs[0].shape(), &layouts, &axes, reduction.returns_index);
        let shape: Dims = std::iter::once(count).chain(kept.iter().copied()).collect();
        let output = OutputSpec::contiguous(self.dtype, &shape)?;
        let work = Work::Reduce(call::Reduce { program: self.program, reduction, axes: &axes, plan: &plan, acc });
        let done = run_on_rank(self.mesh, self.local, self.call, &inputs, &[output], work)?;
        Ok(done.and_then(|outputs| outputs.into_iter().next().ok_or_else(|| "the kernel returned no output".into())))
    }
}
