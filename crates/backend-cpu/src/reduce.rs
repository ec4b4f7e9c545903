//! Kernel of the family `Reduce`: reductions over axes and segments. Sums are pairwise, in a tree whose shape depends only on the length,
//! so results do not depend on the number of threads.

mod reduce_along_columns;
mod reduce_along_rows;
mod reducer_loops;
mod segment_reduction;
mod squared_deviations;

use cuprum_core::call;
use cuprum_core::layout::Dims;
use cuprum_core::op::{AccumulatorDType, Combine, ReductionDef};
use cuprum_core::ops::elementwise::{ADD, FMAX, FMIN, LOGICAL_AND, LOGICAL_OR, MAXIMUM, MINIMUM, MULTIPLY};
use cuprum_core::plan::reduce::{ReducePattern, ReducePlan};
use cuprum_core::{Call, Complex, DType, Element, Outcome, Program, Result, StepKind, Work, decline};
use cuprum_cpu_base::typed_views::{ElementsMut, Output, add_op_to_out_of_memory_error};
use cuprum_cpu_base::user_operations;
use cuprum_cpu_elementwise::half::{is_half, round_float32_to_half};
use smallvec::SmallVec;

use self::reducer_loops::ReducerLoops;
use self::squared_deviations::SquaredDeviations;
use crate::program_evaluation::{CompiledProgram, LoopNest, ResultDestination};
use crate::reducers::Reducer;
pub(crate) use crate::reducers::arithmetic::Arithmetic;
use crate::reducers::dtype_selection::{by_dtype, by_reduction};
pub(crate) use crate::reducers::reduction_loops::dot_products;
use crate::reducers::reduction_operations::{ArgMax, ArgMin, CountTrue, Max, MaxNumber, Min, MinNumber, Prod, Sum, UserReducer};

/// A function that computes a reduction for one operation and dtype. Its arguments are the compiled program, the order of the loops and the
/// output.
pub(crate) type ReduceFunction = fn(&CompiledProgram, &ReductionLoopOrder, ElementsMut) -> Result<()>;

/// A function that returns the native loops of a user-defined reduction. Its argument is the dtype that replaces the reduction's generic
/// type parameter. It returns `None` if the reduction does not support that dtype.
pub struct NativeReductionSelector(pub fn(DType) -> Option<NativeReductionLoops>);

/// The native loops of a user-defined reduction for one element type.
#[derive(Clone, Copy)]
pub struct NativeReductionLoops(ReduceFunction);

/// Returns the native loops of the user-defined reduction `C`.
pub fn native_reduction_loops<C: user_operations::UserReduction>() -> NativeReductionLoops {
    NativeReductionLoops(apply_reducer::<UserReducer<C>>)
}

/// Order of the axes in the loop nest of a reduction.
pub(crate) enum ReductionLoopOrder {
    /// Kept axes outside, reduced axes inside: each result reduces one row. The field is the number of elements per row.
    Rows(usize),
    /// Reduced axes outside, kept axes inside: each result reduces one column. The field is the number of rows.
    Columns(usize),
}

pub(crate) fn apply_reducer<R: Reducer>(compiled: &CompiledProgram, order: &ReductionLoopOrder, out: ElementsMut) -> Result<()> {
    reduce_by_loop_order(compiled, order, out, &ReducerLoops::for_reducer::<R>())
}

fn reduce_by_loop_order<I: Element, A: Copy + Send + Sync, O: Element>(
    compiled: &CompiledProgram,
    order: &ReductionLoopOrder,
    out: ElementsMut,
    loops: &ReducerLoops<I, A, O>,
) -> Result<()> {
    write_half_output_via_float32(out, |results| match *order {
        ReductionLoopOrder::Rows(len) => reduce_along_rows::reduce_all_rows(compiled, len, results, loops),
        ReductionLoopOrder::Columns(rows) => reduce_along_columns::reduce_all_columns(compiled, rows, results, loops),
    })
}

/// Computes sums of squared distances from the mean. Short rows take two passes, with the same bits as in fused expressions over rows. Long
/// rows and columns take one pass ([`apply_reducer`]).
fn reduce_squared_deviations<R: DeviationReducer>(compiled: &CompiledProgram, order: &ReductionLoopOrder, out: ElementsMut) -> Result<()> {
    match *order {
        ReductionLoopOrder::Rows(len) if len * size_of::<R::Element>() <= squared_deviations::MAX_TWO_PASS_ROW_BYTES => {
            squared_deviations::reduce_rows_in_two_passes::<R::Element>(compiled, len, out.typed_slice());
            Ok(())
        }
        _ => apply_reducer::<R>(compiled, order, out),
    }
}

/// The reducer to the sum of squared distances from the mean ([`SquaredDeviations`]), with the element type as an associated type.
trait DeviationReducer: Reducer {
    /// Type of the reduced elements.
    type Element: squared_deviations::MeanElement;
}

impl<T: squared_deviations::MeanElement> DeviationReducer for SquaredDeviations<T> {
    type Element = T;
}

/// Calls `f` with the elements of `out`, to which `f` writes results. If `out` has 16-bit floats, `f` writes to a float32 buffer instead,
/// whose elements are then rounded to `out`.
fn write_half_output_via_float32<T: Element>(out: ElementsMut, f: impl FnOnce(&mut [T]) -> Result<()>) -> Result<()> {
    // Only results of type float32 can belong to a 16-bit float output. For other types the left side is a constant `true`, so the compiler
    // removes the conversion below.
    if const { !matches!(T::DTYPE, DType::F32) } || !is_half(out.dtype()) {
        return f(out.typed_slice());
    }
    let mut wide = Output::allocate_temporary(T::DTYPE, out.len())?;
    f(wide.elements_mut()?.typed_slice())?;
    round_float32_to_half(wide.elements_mut()?.as_elements().typed_slice(), out);
    Ok(())
}

/// Sums the values of the program `compiled` into `out`. Returns `false` without writing if `dtype` is bool or a 16-bit float.
pub(crate) fn try_sum_program_values(
    compiled: &CompiledProgram,
    dtype: DType,
    order: &ReductionLoopOrder,
    out: ElementsMut,
) -> Result<bool> {
    let run: Option<ReduceFunction> = by_dtype!(dtype, number, apply_reducer, Sum);
    Ok(run.map(|run| run(compiled, order, out)).transpose()?.is_some())
}

/// Returns the function that computes `reduction` over axes, for values of dtype `value` (float32 for 16-bit floats). `None` if
/// unsupported.
fn select_reduction(reduction: &ReductionDef, value: DType) -> Option<ReduceFunction> {
    match reduction.elementwise_combination() {
        None if reduction.combine == Combine::Moments => by_dtype!(value, inexact, reduce_squared_deviations, SquaredDeviations),
        Some(by) if reduction.returns_index && by == MINIMUM => by_dtype!(value, any, apply_reducer, ArgMin),
        Some(by) if reduction.returns_index && by == MAXIMUM => by_dtype!(value, any, apply_reducer, ArgMax),
        Some(by) if by == ADD && value == DType::Bool && reduction.accumulator == AccumulatorDType::Fixed(DType::I64) => {
            Some(apply_reducer::<CountTrue>)
        }
        _ => by_reduction!(reduction, value, apply_reducer),
    }
}

/// Returns `program` with a conversion to float32 appended if its result is a 16-bit float.
fn convert_half_result_to_float32(program: &Program) -> Program {
    let mut program = program.clone();
    if is_half(program.output_dtype(0)) {
        let wide = program.push_step(StepKind::Cast, DType::F32, &[program.outputs[0]]);
        program.outputs[0] = wide;
    }
    program
}

/// Computes the output of `call`, a reduction over axes or segments.
pub(crate) fn compute_reduction(call: &Call) -> Result<Outcome> {
    match &call.work {
        Work::Reduce(work) => reduce_axes(call, work),
        Work::Segments(call::SegmentReduction { program, reduction, acc }) => {
            segment_reduction::compute_segment_reduction(call, program, reduction, *acc)
        }
        _ => decline!("not a reduction"),
    }
}

fn reduce_axes(call: &Call, work: &call::Reduce) -> Result<Outcome> {
    let call::Reduce { program, reduction, plan, acc, .. } = *work;
    let program = convert_half_result_to_float32(program);
    let value = program.output_dtype(0);
    if acc != value && !is_half(acc) && acc != reduction.accumulator.of(value) {
        decline!("values of {value} accumulated in {acc}");
    }
    let user_defined = || Some((call.op.0.body?.native.downcast_ref::<NativeReductionSelector>()?.0)(value)?.0);
    let Some(run) = select_reduction(reduction, value).or_else(user_defined) else {
        decline!("{} has no kernel for {value}", call.op.name())
    };
    let by_columns = match plan.pattern {
        ReducePattern::All | ReducePattern::Row => false,
        ReducePattern::Column => true,
        ReducePattern::General => kept_strides_are_smaller(plan),
    };
    let (outer, inner) = if by_columns { (&plan.reduced, &plan.kept) } else { (&plan.kept, &plan.reduced) };
    let dims: Dims = outer.iter().chain(inner).copied().collect();
    let nest = LoopNest::new(&dims, call.inputs, |k| {
        let (kept, reduced) = (&plan.kept_strides[k], &plan.reduced_strides[k]);
        let (outer, inner) = if by_columns { (reduced, kept) } else { (kept, reduced) };
        outer.iter().chain(inner).copied().collect()
    })?;
    let compiled = match CompiledProgram::new(&program, nest, ResultDestination::Read) {
        Ok(compiled) => compiled,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let order = if by_columns { ReductionLoopOrder::Columns(plan.reduced_size) } else { ReductionLoopOrder::Rows(plan.reduced_size) };
    let mut output = Output::allocate(call, 0)?;
    run(&compiled, &order, output.elements_mut()?).map_err(|e| add_op_to_out_of_memory_error(call.op.name(), e))?;
    call.outcome_from_buffers([output.into_buffer()])
}

/// Returns whether the kept axes have smaller strides than the reduced axes, so that reductions along columns are faster than along rows.
fn kept_strides_are_smaller(plan: &ReducePlan) -> bool {
    let step = |strides: &SmallVec<[cuprum_core::layout::Strides; 4]>| -> usize {
        strides.iter().map(|s| s.last().map_or(0, |s| s.unsigned_abs())).fold(0, usize::saturating_add)
    };
    !plan.kept.is_empty() && step(&plan.kept_strides) < step(&plan.reduced_strides)
}
