//! Reductions over any axes: result shapes and dtypes, empty inputs, and reductions composed of other operations.
//!
//! A reduction with `keepdims` may be deferred like an elementwise operation. A device whose kernels run row programs then computes several
//! reductions of an expression in one pass over the rows.
//!
//! # Examples
//! ```
//! # use cuprum_backend_cpu as _;
//! # extern crate cuprum_core as cuprum;
//! use cuprum::{DType, NdArray, axis};
//! # fn main() -> cuprum::Result<()> {
//! let a = NdArray::from_vec([1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
//! assert_eq!(a.sum(())?.item()?, 10.0);                              // a.sum()
//! assert_eq!(a.sum((0, 1))?.item_as::<f32>()?, 10.0);                // a.sum(axis=(0, 1))
//! assert_eq!(a.sum(-1)?.to_vec::<f32>()?, [3.0, 7.0]);               // a.sum(axis=-1)
//! assert_eq!(a.mean(axis(0).keepdims())?.shape(), &[1, 2]);          // a.mean(axis=0, keepdims=True)
//! assert_eq!(a.sum(axis([0, 1]).dtype(DType::F64))?.dtype(), DType::F64);
//! # Ok(())
//! # }
//! ```

mod any_all_count;
mod axis_options;
mod mean_and_variance;
mod min_and_max;
mod sum_and_product;

use smallvec::SmallVec;

use crate::array::{NdArray, StoredArray};
use crate::call::{self, OutputSpec, Work};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::{DeferredReduction, RowReductionImplementation, fusion_enabled};
use crate::index::Item;
use crate::layout::{Dims, Layout};
use crate::op::{Capability, Combine, Family, Op, ReductionDef, ReductionIdentity};
use crate::ops::elementwise::{ADD, DIVIDE, FMAX, FMIN, IMAG, LOGICAL_AND, LOGICAL_OR, MAXIMUM, MINIMUM, MULTIPLY, REAL, SQUARE, SUBTRACT};
use crate::plan::reduce::ReducePlan;
use crate::plan::row_loop;
use crate::program::{Program, StepKind};
use crate::scalar::Scalar;
use axis_options::InitialValueAndMask;

pub use any_all_count::{all, any, count_nonzero};
pub use axis_options::{AxisOption, AxisOptions, axis};
pub use mean_and_variance::{mean, std, var};
pub use min_and_max::{argmax, argmin, max, min, nanmax, nanmin};
pub use sum_and_product::{prod, sum};

/// Defines how sums combine elements. 16-bit floats are added in float32.
pub(super) static SUM_REDUCTION: ReductionDef = ReductionDef::elementwise_reduction(ADD, Scalar::Int(0)).accumulating_16_bit_in_float32();
/// Defines how products combine elements. 16-bit floats are multiplied in float32.
pub(super) static PRODUCT_REDUCTION: ReductionDef =
    ReductionDef::elementwise_reduction(MULTIPLY, Scalar::Int(1)).accumulating_16_bit_in_float32();
/// Defines how minima combine elements. The result is NaN if any element is NaN.
pub(super) static MINIMUM_REDUCTION: ReductionDef = ReductionDef::selecting_reduction(MINIMUM, ReductionIdentity::Highest);
/// Defines how maxima combine elements. The result is NaN if any element is NaN.
pub(super) static MAXIMUM_REDUCTION: ReductionDef = ReductionDef::selecting_reduction(MAXIMUM, ReductionIdentity::Lowest);

super::ops! { Reduce after elementwise:
    SUM "sum" 1 by &SUM_REDUCTION;
    PROD "prod" 1 by &PRODUCT_REDUCTION;
    MEAN "mean" 1;
    MIN "min" 1 by &MINIMUM_REDUCTION;
    MAX "max" 1 by &MAXIMUM_REDUCTION;
    ANY "any" 1 by &ReductionDef::elementwise_reduction(LOGICAL_OR, Scalar::Bool(false));
    ALL "all" 1 by &ReductionDef::elementwise_reduction(LOGICAL_AND, Scalar::Bool(true));
    ARGMIN "argmin" 1 by &ReductionDef::selecting_reduction(MINIMUM, ReductionIdentity::Highest).returning_index();
    ARGMAX "argmax" 1 by &ReductionDef::selecting_reduction(MAXIMUM, ReductionIdentity::Lowest).returning_index();
    NANMIN "nanmin" 1 by &ReductionDef::selecting_reduction(FMIN, ReductionIdentity::NanOrHighest).excluded_from_row_programs();
    NANMAX "nanmax" 1 by &ReductionDef::selecting_reduction(FMAX, ReductionIdentity::NanOrLowest).excluded_from_row_programs();
    COUNT_NONZERO "count_nonzero" 1 by &ReductionDef::elementwise_reduction(ADD, Scalar::Int(0)).with_accumulator_dtype(DType::I64);
    VAR "var" 1 by &ReductionDef::SQUARED_DISTANCES_REDUCTION;
    STD "std" 1;
    SEGMENT_SUM "segment_sum" 2 by &SUM_REDUCTION;
    SEGMENT_PROD "segment_prod" 2 by &PRODUCT_REDUCTION;
    SEGMENT_MIN "segment_min" 2 by &MINIMUM_REDUCTION;
    SEGMENT_MAX "segment_max" 2 by &MAXIMUM_REDUCTION;
}

/// Returns the description of a reduction.
///
/// # Errors
/// An operation that is not a reduction.
pub(crate) fn reduction_definition(op: Op) -> Result<&'static ReductionDef> {
    op.reduction().ok_or_else(|| Error::value(op.name(), "the operation is not a reduction"))
}

/// Reduces `a` by `op`: checks axes, handles empty inputs, plans and dispatches. The elements are converted to the dtype `value`, and the
/// results have the dtype `out`.
pub(crate) fn reduce(op: Op, a: &NdArray, over: &AxisOptions, value: DType, out: DType) -> Result<NdArray> {
    let (name, reduction) = (op.name(), reduction_definition(op)?);
    if let Some(selection) = &over.selection {
        return reduce_with_initial_and_mask(op, a, over, selection, (value, out));
    }
    let axes = over.axes.resolve_axes_allowing_scalar(name, a.ndim())?;
    if reduction.returns_index {
        over.resolve_one_axis_allowing_scalar(op, a.ndim())?;
    }
    // A broadcast axis repeats one element, possibly more often than memory could hold. An idempotent reduction needs the element only
    // once.
    let view = if is_idempotent_reduction(reduction) { try_collapse_broadcast_axes(a, &axes)? } else { None };
    let a = view.as_ref().unwrap_or(a);
    let (mut shape, mut reduced) = (Dims::new(), 1usize);
    for (axis, &n) in a.shape().iter().enumerate() {
        if !axes.contains(&axis) {
            shape.push(n);
            continue;
        }
        reduced *= n;
        if over.keepdims {
            shape.push(1);
        }
    }
    if reduced == 0 {
        return reduce_empty(op, reduction, (a, &axes), &shape, out);
    }
    if over.keepdims && should_defer_reduction(reduction, a, &axes, reduced)? {
        let implementation = if reduction.combine == Combine::Moments { &VARIANCE_ROW_REDUCTION } else { &SINGLE_STEP_ROW_REDUCTION };
        return Ok(DeferredReduction { op, argument: a.clone(), axes, value, implementation }.into_deferred_array(shape, out));
    }
    dispatch_reduction(op, a, &axes, value, OutputSpec::contiguous(out, &shape)?)
}

/// Reduces the elements at which a mask is true, and combines the result with an initial value. In the same pass, masked-out elements are
/// replaced by the identity.
#[cold]
fn reduce_with_initial_and_mask(
    op: Op,
    a: &NdArray,
    over: &AxisOptions,
    selection: &InitialValueAndMask,
    (value, out): (DType, DType),
) -> Result<NdArray> {
    let (name, reduction) = (op.name(), reduction_definition(op)?);
    let plain = AxisOptions { selection: None, ..over.clone() };
    let combine = reduction.elementwise_combination().filter(|_| !reduction.returns_index);
    let combine = combine.ok_or_else(|| Error::value(name, "takes no `initial` and no `where`"))?;
    let selected = match &selection.mask {
        None => a.clone(),
        Some(_) if !reduction.allows_empty && selection.initial.is_none() => {
            return Err(Error::value(name, "the reduction has no identity, so `where` needs `initial`"));
        }
        Some(mask) => replace_masked_out_elements(name, a, value, mask, reduction.identity.of(value))?,
    };
    let Some(initial) = selection.initial else { return reduce(op, &selected, &plain, value, out) };
    let initial = initial.to_checked_element(name, out)?;
    if a.size() > 0 || reduction.allows_empty {
        // A sum of 16-bit floats is rounded once, after the initial value has been added.
        let wide = reduction.accumulator.of(out);
        let value = if wide == out { value } else { wide };
        let initial = super::creation::full_on_device(a.device(), &[], initial, wide)?;
        let reduced = reduce(op, &selected, &plain, value, wide)?;
        // As in NumPy, the initial value comes first: of several complex NaN or equal numbers, minima and maxima return the first. Of zeros
        // with different signs, `fmin` and `fmax` of real numbers return the last.
        let operands = if out.is_complex() { [initial.into(), reduced.into()] } else { [reduced.into(), initial.into()] };
        return crate::expr::elementwise(combine, &operands)?.astype(out);
    }
    // A reduction of no elements by `op` can be an error. A sum of no elements is not, and only the shape of the sum is used.
    let shape = reduce(SUM, &selected, &plain, value, value)?;
    super::creation::full_on_device(a.device(), shape.shape(), initial, out)
}

/// Returns `a` converted to `dtype`, with the elements where `mask` is false replaced by `otherwise`.
fn replace_masked_out_elements(op: &'static str, a: &NdArray, dtype: DType, mask: &NdArray, otherwise: Scalar) -> Result<NdArray> {
    let otherwise = super::creation::full_on_device(a.device(), &[], otherwise, dtype)?;
    let filled = super::elementwise::where_(mask, a.astype(dtype)?, otherwise)?;
    if filled.shape() == a.shape() {
        return Ok(filled);
    }
    Err(Error::shape(op, "the mask `where` does not broadcast to the array", &[a.shape(), mask.shape()]))
}

/// Returns whether a reduction of equal elements returns that element, as for minima and maxima.
fn is_idempotent_reduction(reduction: &ReductionDef) -> bool {
    let is_logical = || reduction.elementwise_combination().is_some_and(|op| op == LOGICAL_AND || op == LOGICAL_OR);
    !reduction.returns_index && (reduction.selects || is_logical())
}

/// Returns a view of `a` in which each reduced axis of stride 0 (a broadcast axis) has extent 1. `None` if there is no such axis.
fn try_collapse_broadcast_axes(a: &NdArray, axes: &[usize]) -> Result<Option<NdArray>> {
    if a.is_deferred() {
        return Ok(None);
    }
    let layout = a.stored_value()?.layout();
    let repeats = |axis: usize| layout.strides()[axis] == 0 && layout.shape()[axis] > 1;
    if !axes.iter().any(|&axis| repeats(axis)) {
        return Ok(None);
    }
    let item = |axis| Item::slice(None, (axes.contains(&axis) && repeats(axis)).then_some(1), 1);
    let items: SmallVec<[Item; 6]> = (0..a.ndim()).map(item).collect();
    a.index(&items[..]).map(Some)
}

/// Returns the identity for each result of a reduction over no elements. A reduction without identity is an error even if the result has no
/// elements.
#[cold]
fn reduce_empty(op: Op, reduction: &ReductionDef, (a, axes): (&NdArray, &[usize]), shape: &[usize], out: DType) -> Result<NdArray> {
    if reduction.allows_empty {
        return super::creation::full_on_device(a.device(), shape, reduction.identity.of(out), out);
    }
    let name = op.name();
    let problem = match reduction.returns_index {
        true => format!("attempt to get {name} of an empty sequence"),
        false => "zero-size array to a reduction which has no identity".into(),
    };
    let empty = axes.iter().find(|axis| a.shape()[**axis] == 0).map_or_else(String::new, |axis| format!(", axis {axis} has no elements"));
    Err(Error::shape(name, problem + &empty, &[a.shape()]))
}

/// Plans and dispatches a reduction. The caller has checked the axes.
pub(crate) fn dispatch_reduction(op: Op, a: &NdArray, axes: &[usize], value: DType, output: OutputSpec) -> Result<NdArray> {
    let reduction = reduction_definition(op)?;
    a.with_fused_input(Family::Reduce, value, |program, inputs| {
        let mut layouts = SmallVec::<[&Layout; 4]>::new();
        inputs.iter().for_each(|input| layouts.push(input.layout()));
        let plan = ReducePlan::new(a.shape(), &layouts, axes, reduction.returns_index);
        let work = Work::Reduce(call::Reduce { program, reduction, axes, plan: &plan, acc: reduction.accumulator.of(value) });
        super::dispatch_single_output(op, a.device(), inputs, output, work)
    })
}

/// Implements all deferred reductions except variances. Such a reduction is one step of a row program ([`ReductionDef::in_rows`]).
static SINGLE_STEP_ROW_REDUCTION: RowReductionImplementation = RowReductionImplementation {
    nodes: 3,
    push: |fold, program, values, _| {
        let acc = fold.op.reduction().map_or(fold.value, |reduction| reduction.accumulator.of(fold.value));
        program.push_step_unless_present(StepKind::Fold(fold.op), acc, &[values])
    },
    run: run_deferred_reduction,
};

/// Implements deferred variances. In a fused row program, a variance is a sum, a mean, and a sum of squared distances. Alone, it is a call
/// of `var`.
static VARIANCE_ROW_REDUCTION: RowReductionImplementation = RowReductionImplementation {
    nodes: 8,
    push: |_, program, values, length| program.push_squared_distance_sum(values, length),
    run: run_deferred_reduction,
};

fn run_deferred_reduction(fold: &DeferredReduction, output: OutputSpec) -> Result<StoredArray> {
    dispatch_reduction(fold.op, &fold.argument, &fold.axes, fold.value, output)?.stored()
}

/// Returns whether a reduction with `keepdims` is deferred. The device must have kernels for row programs, and row programs must be able to
/// contain the reduction. The reduced axes must be the last axes, and a row must have between 2 and [`row_loop::MAX_FUSED_ROW_LENGTH`]
/// elements.
fn should_defer_reduction(reduction: &ReductionDef, a: &NdArray, axes: &[usize], length: usize) -> Result<bool> {
    let is_over_last_axes = axes.len() <= a.ndim() && (a.ndim() - axes.len()..a.ndim()).all(|axis| axes.contains(&axis));
    let is_row_reduction = reduction.in_rows
        && is_over_last_axes
        && (2..=row_loop::MAX_FUSED_ROW_LENGTH).contains(&length)
        && a.size() > 0
        && fusion_enabled();
    Ok(is_row_reduction && dispatch::any_kernel_has_capability(Capability::RowPrograms, Family::Rows, a.device())?)
}

impl Program {
    /// Appends to the program the steps that compute the sum of squared distances from the mean along a row of `count` elements, as a
    /// variance needs. `x` is the number of the step that computes the elements. Returns the number of the last step.
    ///
    /// The result has the real dtype. The steps compute the mean first and then the distances, so that no digits are lost if the
    /// mean is large.
    pub fn push_squared_distance_sum(&mut self, x: u16, count: usize) -> u16 {
        let dtype = self.steps[x as usize].dtype;
        let real = dtype.real();
        let sum = self.push_step_unless_present(StepKind::Fold(SUM), dtype, &[x]);
        let count = self.push_param(Scalar::Float(count as f64), dtype);
        let mean = self.push_step_unless_present(StepKind::Apply(DIVIDE), dtype, &[sum, count]);
        let distance = self.push_step_unless_present(StepKind::Apply(SUBTRACT), dtype, &[x, mean]);
        let squares = if dtype.is_complex() {
            let [re, im] = [REAL, IMAG].map(|part| self.push_step_unless_present(StepKind::Apply(part), real, &[distance]));
            let [re, im] = [re, im].map(|part| self.push_step_unless_present(StepKind::Apply(SQUARE), real, &[part]));
            self.push_step_unless_present(StepKind::Apply(ADD), real, &[re, im])
        } else {
            self.push_step_unless_present(StepKind::Apply(SQUARE), real, &[distance])
        };
        self.push_step_unless_present(StepKind::Fold(SUM), real, &[squares])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::scan::CUMMAX;

    #[test]
    fn segments_and_scans_share_the_description() {
        let max = MAX.reduction().unwrap();
        assert!([SEGMENT_MAX, CUMMAX].iter().all(|op| std::ptr::eq(op.reduction().unwrap(), max)));
        assert!(max.depends_on_order(DType::C64) && !max.depends_on_order(DType::F32) && !max.allows_empty);
        assert_ne!(max.elementwise_combination(), MIN.reduction().unwrap().elementwise_combination());
        assert_eq!(MEAN.reduction(), None);
    }

    #[test]
    fn accumulators_follow_the_rule() {
        let accumulator = |op: Op, value| op.reduction().unwrap().accumulator.of(value);
        assert_eq!(accumulator(SUM, DType::BF16), DType::F32);
        assert_eq!(accumulator(MAX, DType::BF16), DType::BF16);
        assert_eq!(accumulator(COUNT_NONZERO, DType::Bool), DType::I64);
    }
}
