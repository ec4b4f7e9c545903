//! Segmented reductions. The order in which a segment's elements are merged depends only on the length of the segment, so equal segments
//! have results with equal bits.

use cuprum_core::array::Array;
use cuprum_core::op::ReductionDef;
use cuprum_core::ops::elementwise::{ADD, FMAX, FMIN, LOGICAL_AND, LOGICAL_OR, MAXIMUM, MINIMUM, MULTIPLY};
use cuprum_core::{Call, Complex, DType, Element, Error, Outcome, Program, Result, Scalar, decline};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, ElementsMut, Output, add_op_to_out_of_memory_error, convert_scalar};
use cuprum_cpu_elementwise::half::is_half;

use super::reduce_along_rows;
use super::reducer_loops::{MIN_ELEMENTS_PER_TASK, ReducerLoops};
use super::{convert_half_result_to_float32, write_half_output_via_float32};
use crate::program_evaluation::{CompiledProgram, Evaluator, LoopNest, ResultDestination};
use crate::reducers::Reducer;
use crate::reducers::dtype_selection::{by_dtype, by_reduction};
use crate::reducers::reduction_operations::{Max, MaxNumber, Min, MinNumber, Prod, Sum};

/// A function that reduces each segment of a program's values, for one operation and dtype. The [`Scalar`] argument is the result for an
/// empty segment.
type ReduceSegmentsFunction = fn(&CompiledProgram, &[i64], Scalar, ElementsMut) -> Result<()>;

fn apply_segment_reducer<R: Reducer>(compiled: &CompiledProgram, offsets: &[i64], empty: Scalar, out: ElementsMut) -> Result<()> {
    reduce_segments(compiled, offsets, out, convert_scalar(empty), &ReducerLoops::for_reducer::<R>())
}

fn reduce_segments<I: Element, A: Copy + Send + Sync, O: Element>(
    compiled: &CompiledProgram,
    offsets: &[i64],
    out: ElementsMut,
    empty: O,
    loops: &ReducerLoops<I, A, O>,
) -> Result<()> {
    write_half_output_via_float32(out, |results: &mut [O]| {
        let bounds = |segment: usize| (offsets[segment] as usize, offsets[segment + 1] as usize);
        let covered = offsets.first().zip(offsets.last()).map_or(0, |(first, last)| (last - first) as usize);
        let cost = covered.saturating_add(results.len());
        let threads = threads::threads_for_cost(cost);
        // Segments longer than `longest` are split into blocks, which several threads reduce.
        let longest = if threads > 1 { MIN_ELEMENTS_PER_TASK } else { usize::MAX };
        let reduce = |evaluator: &mut Evaluator, (first, results): (usize, &mut [O])| {
            for (n, result) in results.iter_mut().enumerate() {
                let (start, end) = bounds(first + n);
                if end - start <= longest {
                    let acc = (loops.run)(evaluator, compiled.tile_len(), start, end - start, 0);
                    *result = acc.map_or(empty, |acc| (loops.finish_or_recompute_in_order)(compiled, start, end - start, acc));
                }
            }
        };
        threads::for_each(split_segments(offsets, results, 4 * threads).into_iter(), cost, || Evaluator::new(compiled), reduce);
        for segment in (0..results.len()).filter(|&s| bounds(s).1 - bounds(s).0 > longest) {
            let (start, end) = bounds(segment);
            let acc = reduce_along_rows::reduce_range_in_blocks(compiled, start, end - start, loops)?;
            results[segment] = acc.map_or(empty, |acc| (loops.finish_or_recompute_in_order)(compiled, start, end - start, acc));
        }
        Ok(())
    })
}

/// Splits `results` into `parts` parts of about equal work, counted in values plus segments. Some parts may be empty. Returns each part
/// with the number of its first segment.
fn split_segments<'a, T>(offsets: &[i64], mut results: &'a mut [T], parts: usize) -> Vec<(usize, &'a mut [T])> {
    let (segments, base) = (results.len(), offsets.first().copied().unwrap_or(0));
    let before = |segment: usize| (offsets[segment] - base) as usize + segment;
    let (mut shares, mut first) = (Vec::with_capacity(parts), 0);
    for part in 1..=parts {
        let (mut last, mut high) = (first, segments);
        while last < high {
            let middle = (last + high) / 2;
            if before(middle) < before(segments) / parts * part || part == parts {
                last = middle + 1;
            } else {
                high = middle;
            }
        }
        let (share, rest) = results.split_at_mut(last - first);
        shares.push((first, share));
        (results, first) = (rest, last);
    }
    shares
}

pub(super) fn compute_segment_reduction(call: &Call, program: &Program, reduction: &ReductionDef, acc: DType) -> Result<Outcome> {
    let (values, Some(offsets)) = call.program_inputs() else { decline!("takes values and offsets") };
    if offsets.dtype() != DType::I64 || !offsets.layout().is_c_contiguous() {
        decline!("takes contiguous int64 offsets");
    }
    let len = values.first().map_or(0, |v| v.layout().size());
    let offsets = Elements::from_contiguous_array(offsets)?.typed_slice::<i64>();
    check_segment_offsets(call.op.name(), offsets, len)?;
    let program = convert_half_result_to_float32(program);
    let dtype = program.output_dtype(0);
    if acc != dtype && !is_half(acc) {
        decline!("values of {dtype} accumulated in {acc}");
    }
    let run: Option<ReduceSegmentsFunction> = by_reduction!(reduction, dtype, apply_segment_reducer);
    let Some(run) = run else { decline!("{} has no kernel for {dtype}", call.op.name()) };
    let nest = LoopNest::new(&[len], values, |k| values[k].layout().strides().into())?;
    let compiled = match CompiledProgram::new(&program, nest, ResultDestination::Read) {
        Ok(compiled) => compiled,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let mut output = Output::allocate(call, 0)?;
    run(&compiled, offsets, reduction.identity.of(dtype), output.elements_mut()?)
        .map_err(|e| add_op_to_out_of_memory_error(call.op.name(), e))?;
    call.outcome_from_buffers([output.into_buffer()])
}

fn check_segment_offsets(op: &'static str, offsets: &[i64], len: usize) -> Result<()> {
    if let Some(&index) = offsets.iter().find(|&&o| o < 0 || o as u64 > len as u64) {
        return Err(Error::Index { op, index, axis: 0, size: len });
    }
    match offsets.windows(2).position(|w| w[0] > w[1]) {
        Some(i) => Err(Error::value(op, format!("offsets must not decrease: {} at {i}, then {}", offsets[i], offsets[i + 1]))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_hold_values_and_segments_alike() {
        let cut = |offsets: &[i64], parts| {
            let mut results = vec![0; offsets.len() - 1];
            split_segments(offsets, &mut results, parts).into_iter().map(|(first, share)| (first, share.len())).collect::<Vec<_>>()
        };
        assert_eq!(cut(&[0, 9, 18, 27, 36], 2), [(0, 2), (2, 2)]);
        assert_eq!(cut(&[7, 7, 7, 7, 7], 2), [(0, 2), (2, 2)]);
        assert_eq!(cut(&[0, 100, 101, 102, 103], 2), [(0, 1), (1, 3)]);
        assert_eq!(cut(&[3, 4], 3), [(0, 0), (0, 0), (0, 1)]);
        assert_eq!(cut(&[3], 2), [(0, 0), (0, 0)]);
    }
}
