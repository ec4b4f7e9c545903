//! Kernel of the family `Map`: evaluates a fused elementwise program for all elements, in tiles on several threads.

use cuprum_core::call;
use cuprum_core::{Call, Outcome, Result, Work, decline};
use cuprum_cpu_base::cache_hints::MIN_NON_TEMPORAL_BYTES;
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{ElementsMut, Output};
use smallvec::SmallVec;

use self::masked_fill::MaskedFill;
use crate::program_evaluation::{CompiledProgram, Evaluator, LoopNest, ROWS_PER_BAND, ResultDestination, SingleTileProgram};

mod masked_fill;

/// Minimum row length, in elements, for tiles (blocks of elements that fit L1) that do not cross rows. Applies if an input has a stride
/// above 1 along rows. Shorter rows share tiles.
const MIN_ROW_LEN_FOR_TILES_WITHIN_ROWS: usize = 64;

/// One task's slice of each output.
type OutputSlices<'o> = SmallVec<[ElementsMut<'o>; 2]>;

/// Computes the outputs of `call`, a fused elementwise expression.
pub(crate) fn compute_elementwise(call: &Call) -> Result<Outcome> {
    let Work::Map(call::Map { program, plan }) = &call.work else { decline!("not a map") };
    let in_loop_order = (0..call.outputs.len()).all(|n| {
        let (strides, mut step) = (&plan.strides[call.inputs.len() + n], 1);
        plan.dims.iter().zip(strides).rev().all(|(&extent, &s)| (extent == 1 || s == step, step *= extent as isize).0)
    });
    if !in_loop_order {
        decline!("the loop does not follow the output's memory");
    }
    let in_place = call.has_output_targets();
    if !in_place && let Some(map) = SingleTileProgram::of(program, call.inputs, plan)? {
        let mut outputs = allocate_outputs(call)?;
        let mut runs = OutputSlices::new();
        for output in &mut outputs {
            runs.push(output.elements_mut()?);
        }
        map.evaluate_into(&mut runs);
        drop(runs);
        return call.outcome_from_buffers(outputs.into_iter().map(Output::into_buffer));
    }
    if in_place && let Some(fill) = MaskedFill::of(call, program, plan)? {
        let mut output = Output::allocate(call, 0)?;
        fill.store_where_true(&mut output, call.outputs[0].layout.offset())?;
        return call.outcome_from_buffers([output.into_buffer()]);
    }
    let nest = LoopNest::new(&plan.dims, call.inputs, |k| plan.strides[k].clone())?;
    let bytes = call.outputs.iter().map(|o| plan.size.saturating_mul(o.dtype.itemsize())).fold(0, usize::saturating_add);
    let results = match bytes >= MIN_NON_TEMPORAL_BYTES {
        // Non-temporal stores are not used for outputs in the memory of an input, because that memory is in the cache already.
        _ if in_place => ResultDestination::InPlace,
        true => ResultDestination::Streamed,
        false => ResultDestination::Written,
    };
    let compiled = match CompiledProgram::new(program, nest, results) {
        Ok(compiled) => compiled,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let mut outputs = allocate_outputs(call)?;
    let cost = plan.size.saturating_mul(compiled.cost_per_element());
    let chunk = elements_per_task(&compiled, plan.size, threads::threads_for_cost(cost));
    let mut parts: Vec<OutputSlices> = (0..plan.size.div_ceil(chunk)).map(|_| OutputSlices::new()).collect();
    for (output, spec) in outputs.iter_mut().zip(call.outputs) {
        let (_, from_offset) = output.elements_mut()?.split_at(spec.layout.offset());
        let (range, _) = from_offset.split_at(plan.size);
        for (part, run) in parts.iter_mut().zip(range.chunks(chunk)) {
            part.push(run);
        }
    }
    threads::for_each(
        parts.into_iter().enumerate(),
        cost,
        || Evaluator::new_for_row_bands(&compiled),
        |evaluator, (i, mut part)| compute_task(&compiled, evaluator, i * chunk, &mut part),
    );
    call.outcome_from_buffers(outputs.into_iter().map(Output::into_buffer))
}

/// Allocates the memory of all outputs of `call`.
fn allocate_outputs(call: &Call) -> Result<SmallVec<[Output; 1]>> {
    let mut outputs = SmallVec::new();
    for n in 0..call.outputs.len() {
        outputs.push(Output::allocate(call, n)?);
    }
    Ok(outputs)
}

/// Returns the number of elements per task: a multiple of the row length if an input has a stride above 1 along rows, otherwise a multiple
/// of the tile length. Several tasks per thread balance the load.
fn elements_per_task(compiled: &CompiledProgram, size: usize, threads: usize) -> usize {
    let share = if threads == 1 { size } else { size.div_ceil(threads * 4) };
    let (inner, band) = (compiled.loop_nest().innermost_extent(), compiled.loop_nest().innermost_extent() * ROWS_PER_BAND);
    let unit = match compiled.loop_nest().has_strided_rows() {
        true if share >= band => band,
        true => inner,
        false => compiled.tile_len(),
    };
    share.div_ceil(unit).max(1) * unit
}

/// Computes the elements of one task, from element `start` on, into `part`.
fn compute_task(compiled: &CompiledProgram, evaluator: &mut Evaluator, start: usize, part: &mut [ElementsMut]) {
    let (len, tile, inner) = (part.first().map_or(0, ElementsMut::len), compiled.tile_len(), compiled.loop_nest().innermost_extent());
    let mut compute = |at: usize, len: usize| {
        let mut runs: OutputSlices = part.iter_mut().map(|p| p.slice(at, len)).collect();
        evaluator.evaluate_into(start + at, len, &mut runs);
    };
    // A tile that spans several rows must gather its strided inputs. If rows are long enough, tiles therefore do not cross rows.
    let scattered = compiled.loop_nest().has_strided_rows();
    if inner < (if scattered { MIN_ROW_LEN_FOR_TILES_WITHIN_ROWS } else { tile / 2 }) || !start.is_multiple_of(inner) {
        (0..len).step_by(tile).for_each(|at| compute(at, tile.min(len - at)));
        return;
    }
    let band = if scattered { ROWS_PER_BAND } else { 1 };
    for rows in (0..len).step_by(inner * band) {
        for column in (0..inner).step_by(tile) {
            let width = tile.min(inner - column);
            for row in (rows..len.min(rows + inner * band)).step_by(inner) {
                // The last row of a task may be incomplete and end before this tile begins.
                if row + column < len {
                    compute(row + column, width.min(len - row - column));
                }
            }
        }
    }
}
