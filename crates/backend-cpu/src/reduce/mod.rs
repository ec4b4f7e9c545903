//! Reductions over axes and of segments. Sums are pairwise with a tree fixed by length: the same bits for any number of threads.

mod columns;
mod deviation;
mod lanes;
mod loops;
mod ops;
mod rows;
mod segments;
mod tree;

use cuprum_core::call;
use cuprum_core::layout::Dims;
use cuprum_core::ops::reduce::{ALL, ANY, ARGMAX, ARGMIN, COUNT_NONZERO, MAX, MIN, PROD, SUM, VAR};
use cuprum_core::plan::reduce::{ReduceClass, ReducePlan};
use cuprum_core::{Call, Complex, DType, Element, Op, Outcome, Program, Result, StepKind, Work, decline};
use smallvec::SmallVec;

use self::deviation::Deviation;
pub(crate) use self::loops::scalar_products;
use self::ops::{ArgMax, ArgMin, Count, Max, Min, Prod, Reducer, Sum};
pub(crate) use self::ops::{Combined, Value};
use crate::elementwise::half::{is_half, narrow};
use crate::own::NativeReduction;
use crate::raw::{Elements, ElementsMut, Output, for_op};
use crate::tile::{Compiled, Nest, Results};

/// How a planned reduction is computed, for one reducer.
pub(crate) type Run = fn(&Compiled, &Shape, ElementsMut) -> Result<()>;

/// The loop of a reduction.
pub(crate) enum Shape {
    /// `[kept.. reduced..]`, rows of this length.
    Rows(usize),
    /// `[reduced.. kept..]`, this many rows.
    Columns(usize),
}

pub(crate) fn run_reducer<R: Reducer>(compiled: &Compiled, shape: &Shape, out: ElementsMut) -> Result<()> {
    let reduce = |results: &mut [R::Out]| match *shape {
        Shape::Rows(len) => rows::reduce::<R>(compiled, len, results),
        Shape::Columns(rows) => columns::reduce::<R>(compiled, rows, results),
    };
    with_results(out, reduce)
}

/// [`run_reducer`], but for short rows, which come out as fused expressions over rows compute them.
fn run_deviation<R: OfDeviation>(compiled: &Compiled, shape: &Shape, out: ElementsMut) -> Result<()> {
    match *shape {
        Shape::Rows(len) if len * size_of::<R::Number>() <= deviation::READ_TWICE => {
            deviation::reduce_rows::<R::Number>(compiled, len, out.typed());
            Ok(())
        }
        _ => run_reducer::<R>(compiled, shape, out),
    }
}

/// [`Deviation`] of some type.
trait OfDeviation: Reducer {
    /// That type.
    type Number: deviation::Number;
}

impl<T: deviation::Number> OfDeviation for Deviation<T> {
    type Number = T;
}

/// Runs `f` on the output's elements, or, for a half dtype, on float32 results that are rounded afterwards.
fn with_results<T: Element>(out: ElementsMut, f: impl FnOnce(&mut [T]) -> Result<()>) -> Result<()> {
    if !is_half(out.dtype()) {
        return f(out.typed());
    }
    let mut wide = Output::temporary(T::DTYPE, out.len())?;
    f(wide.elements()?.typed())?;
    narrow(wide.elements()?.as_elements().typed(), out);
    Ok(())
}

/// `$run` for `$reducer` of the element type that `$dtype` is: any `number`, `inexact` ones, or `bool` too.
macro_rules! by_dtype {
    ($dtype:expr, number, $run:ident, $reducer:ident) => {
        by_dtype!(@ $dtype, $run, $reducer, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>)
    };
    ($dtype:expr, inexact, $run:ident, $reducer:ident) => {
        by_dtype!(@ $dtype, $run, $reducer, f32, f64, Complex<f32>, Complex<f64>)
    };
    ($dtype:expr, any, $run:ident, $reducer:ident) => {
        by_dtype!(@ $dtype, $run, $reducer, bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>)
    };
    (@ $dtype:expr, $run:ident, $reducer:ident, $($t:ty),*) => {
        match $dtype {
            $(<$t as Element>::DTYPE => Some($run::<$reducer<$t>> as _),)*
            _ => None,
        }
    };
}

use by_dtype;

/// Sums of a program's values, of a dtype other than bool and the 16-bit floats; says whether it takes the dtype.
pub(crate) fn sums(compiled: &Compiled, dtype: DType, shape: &Shape, out: ElementsMut) -> Result<bool> {
    let run: Option<Run> = by_dtype!(dtype, number, run_reducer, Sum);
    Ok(run.map(|run| run(compiled, shape, out)).transpose()?.is_some())
}

/// The operations of the family, each with its reducer by dtype of the values (float32 for the half ones).
static ROWS: [Row; 10] = [
    (SUM, |d| by_dtype!(d, number, run_reducer, Sum)),
    (PROD, |d| by_dtype!(d, number, run_reducer, Prod)),
    (MIN, |d| by_dtype!(d, any, run_reducer, Min)),
    (MAX, |d| by_dtype!(d, any, run_reducer, Max)),
    (ARGMIN, |d| by_dtype!(d, any, run_reducer, ArgMin)),
    (ARGMAX, |d| by_dtype!(d, any, run_reducer, ArgMax)),
    (ANY, |d| if d == DType::Bool { Some(run_reducer::<Sum<bool>>) } else { None }),
    (ALL, |d| if d == DType::Bool { Some(run_reducer::<Prod<bool>>) } else { None }),
    (VAR, |d| by_dtype!(d, inexact, run_deviation, Deviation)),
    (COUNT_NONZERO, |d| if d == DType::Bool { Some(run_reducer::<Count>) } else { None }),
];

type Row = (Op, fn(DType) -> Option<Run>);

/// Reduces rows of so many values, and fills each with its number.
pub(crate) type FoldRows = fn(Elements, ElementsMut, usize);

fn fold<R: Reducer>(values: Elements, out: ElementsMut, row: usize) {
    let out = out.typed::<R::Out>();
    for (values, out) in values.typed::<R::In>().chunks(row).zip(out.chunks_mut(row)) {
        if let Some(acc) = rows::reduce_values::<R>(values) {
            out.fill(R::finish(acc));
        }
    }
}

/// The kernel of a reduction as a step of work on rows, for values of a dtype other than the 16-bit floats.
pub(crate) fn fold_rows(op: Op, dtype: DType) -> Option<FoldRows> {
    match op {
        op if op == SUM => by_dtype!(dtype, number, fold, Sum),
        op if op == PROD => by_dtype!(dtype, number, fold, Prod),
        op if op == MIN => by_dtype!(dtype, any, fold, Min),
        op if op == MAX => by_dtype!(dtype, any, fold, Max),
        op if op == ANY && dtype == DType::Bool => Some(fold::<Sum<bool>>),
        op if op == ALL && dtype == DType::Bool => Some(fold::<Prod<bool>>),
        _ => None,
    }
}

/// Half values as float32, which every reduction of them is computed in.
fn widened(program: &Program) -> Program {
    let mut program = program.clone();
    if is_half(program.output_dtype(0)) {
        let wide = program.push(StepKind::Cast, DType::F32, &[program.outputs[0]]);
        program.outputs[0] = wide;
    }
    program
}

/// The kernel of the family.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    match &call.work {
        Work::Reduce(call::Reduce { program, plan, acc }) => reduce(call, program, plan, *acc),
        Work::Segments(call::Segments { program, reduction, acc }) => segments::run(call, program, *reduction, *acc),
        _ => decline!("not a reduction"),
    }
}

fn reduce(call: &Call, program: &Program, plan: &ReducePlan, acc: DType) -> Result<Outcome> {
    let program = widened(program);
    let value = program.output_dtype(0);
    if acc != value && !is_half(acc) {
        decline!("values of {value} accumulated in {acc}");
    }
    let row = ROWS.iter().find(|(op, _)| *op == call.op);
    let own = || Some((call.op.0.body?.native.downcast_ref::<NativeReduction>()?.0)(value)?.0);
    let Some(run) = row.and_then(|(_, select)| select(value)).or_else(own) else {
        decline!("{} has no kernel for {value}", call.op.name())
    };
    let by_columns = match plan.class {
        ReduceClass::All | ReduceClass::Row => false,
        ReduceClass::Column => true,
        ReduceClass::General => nearer(plan),
    };
    let (outer, inner) = if by_columns { (&plan.reduced, &plan.kept) } else { (&plan.kept, &plan.reduced) };
    let dims: Dims = outer.iter().chain(inner).copied().collect();
    let nest = Nest::new(&dims, call.inputs, |k| {
        let (kept, reduced) = (&plan.kept_strides[k], &plan.reduced_strides[k]);
        let (outer, inner) = if by_columns { (reduced, kept) } else { (kept, reduced) };
        outer.iter().chain(inner).copied().collect()
    })?;
    let compiled = match Compiled::new(&program, nest, Results::Read) {
        Ok(compiled) => compiled,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let shape = if by_columns { Shape::Columns(plan.reduced_size) } else { Shape::Rows(plan.reduced_size) };
    let mut output = Output::allocate(call, 0)?;
    run(&compiled, &shape, output.elements()?).map_err(|e| for_op(call, e))?;
    call.done([output.finish()])
}

/// Whether kept elements lie nearer to each other than reduced ones.
fn nearer(plan: &ReducePlan) -> bool {
    let step = |strides: &SmallVec<[cuprum_core::layout::Strides; 4]>| -> usize {
        strides.iter().map(|s| s.last().map_or(0, |s| s.unsigned_abs())).fold(0, usize::saturating_add)
    };
    !plan.kept.is_empty() && step(&plan.kept_strides) < step(&plan.reduced_strides)
}
