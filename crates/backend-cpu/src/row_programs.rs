//! Kernel of the family `Rows`: expressions that combine the elements of a row with reductions of the same row, such as softmax. They are
//! evaluated a few rows at a time. A row is read from memory once and stays in cache until its results are written. The result of a
//! reduction fills its whole row, so that all operations after it are elementwise. A reduction has the same bits as in the kernel family
//! `Reduce`.

use cuprum_core::call;
use cuprum_core::layout::{Dims, Strides};
use cuprum_core::{Call, Outcome, Result, Work, decline};
use cuprum_cpu_base::cache_hints::MIN_NON_TEMPORAL_BYTES;
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{ElementsMut, Output, Scratch};
use smallvec::SmallVec;

use crate::program_evaluation::{CompiledProgram, Evaluator, LoopNest, MAX_TILE_LEN, ResultDestination};

/// One task's part of one output.
struct OutputPart<'o> {
    run: ElementsMut<'o>,
    /// Buffer for whole rows of results, if the output stores only one element per row. `None` for other outputs.
    rows: Option<Scratch>,
}

/// Computes the outputs of `call`, an expression that combines the elements of a row with reductions of the row, such as softmax.
pub(crate) fn compute_row_program(call: &Call) -> Result<Outcome> {
    let Work::Rows(call::RowProgram { program, plan }) = call.work else { decline!("not work on rows") };
    let (inputs, len) = (call.inputs.len(), plan.length);
    if plan.rows == 0 || len == 0 {
        decline!("no elements");
    }
    let is_one_per_row = |n: usize| plan.row_strides[inputs + n] == 0 && len > 1;
    for n in 0..call.outputs.len() {
        let mut step = if is_one_per_row(n) { 1 } else { len as isize };
        let steps = plan.outer.iter().zip(&plan.outer_strides[inputs + n]).rev();
        let in_order = steps.fold(true, |in_order, (&extent, &s)| (in_order & (s == step), step *= extent as isize).0);
        if !in_order || !is_one_per_row(n) && len > 1 && plan.row_strides[inputs + n] != 1 {
            decline!("rows do not follow each other in the output's memory");
        }
    }
    let dims: Dims = plan.outer.iter().copied().chain([len]).collect();
    let strides = |k: usize| -> Strides { plan.outer_strides[k].iter().copied().chain([plan.row_strides[k]]).collect() };
    let bytes = call.outputs.iter().map(|o| o.layout.size().saturating_mul(o.dtype.itemsize())).fold(0, usize::saturating_add);
    let is_streamed = bytes >= MIN_NON_TEMPORAL_BYTES && !(0..call.outputs.len()).any(is_one_per_row);
    let results = if is_streamed { ResultDestination::Streamed } else { ResultDestination::Written };
    let compiled = match CompiledProgram::new(program, LoopNest::new(&dims, call.inputs, strides)?, results) {
        Ok(compiled) => compiled,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let mut outputs: SmallVec<[Output; 2]> = (0..call.outputs.len()).map(|n| Output::allocate(call, n)).collect::<Result<_>>()?;

    let cost = plan.rows.saturating_mul(len).saturating_mul(compiled.cost_per_element());
    let rows_per_tile = (MAX_TILE_LEN / len).clamp(1, plan.rows);
    let tasks = if threads::threads_for_cost(cost) == 1 { 1 } else { threads::threads_for_cost(cost) * 4 };
    let chunk = plan.rows.div_ceil(tasks).next_multiple_of(rows_per_tile);
    let mut parts: Vec<SmallVec<[OutputPart; 2]>> = (0..plan.rows.div_ceil(chunk)).map(|_| SmallVec::new()).collect();
    for (n, output) in outputs.iter_mut().enumerate() {
        let per_row = if is_one_per_row(n) { 1 } else { len };
        for (part, run) in parts.iter_mut().zip(output.elements_mut()?.chunks(chunk * per_row)) {
            part.push(OutputPart { run, rows: is_one_per_row(n).then(Scratch::default) });
        }
    }
    threads::for_each(
        parts.into_iter().enumerate(),
        cost,
        || Evaluator::new_for_rows(&compiled, len, rows_per_tile),
        |evaluator, (i, mut parts)| {
            let rows = chunk.min(plan.rows - i * chunk);
            for row in (0..rows).step_by(rows_per_tile) {
                compute_rows(evaluator, i * chunk + row, row, rows_per_tile.min(rows - row), len, &mut parts);
            }
        },
    );
    call.outcome_from_buffers(outputs.into_iter().map(Output::into_buffer))
}

/// Computes `count` rows of `len` elements. `first` is the index of the first row in the array, and `row` its index in each of `parts`.
fn compute_rows(evaluator: &mut Evaluator, first: usize, row: usize, count: usize, len: usize, parts: &mut [OutputPart]) {
    let mut runs: SmallVec<[ElementsMut; 2]> = SmallVec::new();
    for OutputPart { run, rows } in parts.iter_mut() {
        runs.push(match rows {
            None => run.slice(row * len, count * len),
            Some(rows) => {
                rows.reserve(count * len * run.dtype().itemsize());
                rows.elements_mut(run.dtype(), count * len)
            }
        });
    }
    evaluator.evaluate_into(first * len, count * len, &mut runs);
    drop(runs);
    for OutputPart { run, rows } in parts {
        if let Some(rows) = rows {
            let dtype = run.dtype();
            run.slice(row, count).copy_every_nth(len, rows.elements(dtype, count * len));
        }
    }
}
