//! Sums and products over any axes of an array. Minimum and maximum are declined, because cuTENSOR's do not propagate NaN.

use cuprum_core::call;
use cuprum_core::call::Work;
use cuprum_core::op::ReductionDef;
use cuprum_core::ops::elementwise::{ADD, MULTIPLY};
use cuprum_core::registry::decline_unless_order_is_set;
use cuprum_core::{Array, Call, DeclineReason, Layout, Op, Outcome, Result};

use crate::handle;
use crate::operation::{
    CutensorOperation, CutensorOperationKind, OperandDescription, check_positive_strides, common_data_type, cutensor_data_type,
    find_axis_by_stride,
};
use crate::sys::Operator;

/// Reason why cuTENSOR declines calls unless the user has set the accelerator order (`docs/notes/accelerator-order.md`).
const DEFAULT_DECLINE_REASON: &str = "the base accelerator adds faster; an order that names cutensor is followed";

/// Runs a reduction by sum or product.
pub fn run_call(call: &Call) -> Result<Outcome> {
    match decline_unless_order_is_set(DEFAULT_DECLINE_REASON).and_then(|()| operation_for_call(call)) {
        Ok(operation) => handle::run_operation(call, operation, &[&call.inputs[0]], &[1.0, 0.0]),
        Err(reason) => Ok(Outcome::Declined(reason)),
    }
}

/// Returns the cuTENSOR operator of a reduction.
fn cutensor_operator(op: Op, reduction: &ReductionDef) -> Result<Operator, DeclineReason> {
    match reduction.elementwise_combination() {
        Some(by) if by == ADD => Ok(Operator::Add),
        Some(by) if by == MULTIPLY => Ok(Operator::Mul),
        _ if reduction.selects && !reduction.returns_index => {
            Err(DeclineReason::with_text(|| format!("{}: cuTENSOR's does not propagate NaN", op.name())))
        }
        _ => Err(DeclineReason::with_text(|| format!("{}: cuTENSOR has only sum and product", op.name()))),
    }
}

fn operation_for_call(call: &Call) -> Result<CutensorOperation, DeclineReason> {
    let (Work::Reduce(call::Reduce { program, reduction, plan, acc, .. }), [input], [output]) = (&call.work, call.inputs, call.outputs)
    else {
        return Err(DeclineReason::new("not a reduction of one array"));
    };
    cutensor_data_type(input.dtype())?;
    let operator = cutensor_operator(call.op, reduction)?;
    let data = common_data_type(call)?;
    if !program.is_identity() {
        return Err(DeclineReason::new("the reduction has a fused program or a cast"));
    }
    if *acc != output.dtype {
        return Err(DeclineReason::with_text(|| format!("{} is summed in {acc}", output.dtype)));
    }
    if operator == Operator::Mul && output.dtype.is_complex() {
        return Err(DeclineReason::new("complex product: scaling its result would turn infinities into NaN"));
    }
    check_positive_strides(call.inputs)?;
    if let Some(axis) = find_axis_by_stride(input.layout(), |s| s == 0) {
        return Err(DeclineReason::with_text(|| format!("zero stride along axis {axis}")));
    }
    let axes = plan.kept.iter().zip(&plan.kept_strides[0]).chain(plan.reduced.iter().zip(&plan.reduced_strides[0]));
    let inputs = [describe_operand(axes)].into_iter().collect();
    let layout = Layout::contiguous(&plan.kept).map_err(|_| DeclineReason::new("the result is too large"))?;
    let output = describe_operand(plan.kept.iter().zip(layout.strides()));
    CutensorOperation { kind: CutensorOperationKind::Reduce(operator), data, inputs, output }.with_real_pairs().check_operands()
}

/// Returns the description of an operand with the (extent, stride) pairs `axes`, whose modes are numbered from 0. The pairs of kept axes
/// must come first, so that a kept axis has the same mode in input and output.
fn describe_operand<'a>(axes: impl Iterator<Item = (&'a usize, &'a isize)>) -> OperandDescription {
    OperandDescription::from_axes(axes.enumerate().map(|(mode, (&extent, &stride))| (mode, extent, stride)))
}

#[cfg(test)]
mod tests {
    use cuprum_core::ops::reduce::{ARGMAX, MAX, PROD, SUM};
    use cuprum_core::plan::reduce::ReducePlan;
    use cuprum_core::{DType, Program};

    use super::*;
    use crate::sys::DataType;
    use crate::testing::{array, contiguous, negated, output, reason, with_call};

    fn reduce(op: Op, dtype: DType, layout: Layout, axes: &[usize], acc: DType, program: Program) -> Result<CutensorOperation, String> {
        let plan = ReducePlan::new(layout.shape(), &[&layout], axes, false);
        let kept: Vec<usize> = (0..layout.ndim()).filter(|a| !axes.contains(a)).map(|a| layout.shape()[a]).collect();
        let (inputs, outputs) = ([array(dtype, layout.clone())], [output(dtype, &kept)]);
        let work = Work::Reduce(call::Reduce { program: &program, reduction: op.reduction().unwrap(), axes, plan: &plan, acc });
        with_call(op, &inputs, &outputs, work, |call| reason(|| operation_for_call(call)))
    }

    fn plain(op: Op, dtype: DType, layout: Layout, axes: &[usize]) -> Result<CutensorOperation, String> {
        reduce(op, dtype, layout, axes, dtype, Program::identity(dtype))
    }

    #[test]
    fn any_axes_of_any_layout() {
        let op = plain(SUM, DType::F32, contiguous(&[4, 5, 6]), &[0, 2]).unwrap();
        assert_eq!(op.kind, CutensorOperationKind::Reduce(Operator::Add));
        assert_eq!(op.inputs[0], OperandDescription::from_axes([(0, 5, 6), (1, 4, 30), (2, 6, 1)]));
        assert_eq!(op.output, OperandDescription::from_axes([(0, 5, 1)]));
        let op = plain(PROD, DType::F64, contiguous(&[4, 5, 6]).transpose(), &[0, 1, 2]).unwrap();
        assert_eq!((op.inputs[0].extents[..].to_vec(), op.output), (vec![120], OperandDescription::default()));
        let op = plain(SUM, DType::F64, contiguous(&[4, 5, 6]), &[1]).unwrap();
        assert_eq!(op.output, OperandDescription::from_axes([(0, 4, 6), (1, 6, 1)]));
    }

    #[test]
    fn complex_sums_use_real_pairs() {
        let op = plain(SUM, DType::C64, contiguous(&[4, 5]), &[0]).unwrap();
        assert_eq!(op.data, DataType::F32);
        assert_eq!(op.inputs[0], OperandDescription::from_axes([(0, 5, 2), (1, 4, 10), (2, 2, 1)]));
        assert_eq!(op.output, OperandDescription::from_axes([(0, 5, 2), (2, 2, 1)]));
    }

    #[test]
    fn decline_reasons() {
        let l = || contiguous(&[4, 5]);
        assert_eq!(plain(MAX, DType::F32, l(), &[0]).unwrap_err(), "max: cuTENSOR's does not propagate NaN");
        assert_eq!(plain(ARGMAX, DType::F32, l(), &[0]).unwrap_err(), "argmax: cuTENSOR has only sum and product");
        assert_eq!(plain(SUM, DType::I64, l(), &[0]).unwrap_err(), "int64: cuTENSOR has no integer types");
        assert_eq!(plain(MAX, DType::Bool, l(), &[0]).unwrap_err(), "bool: cuTENSOR has no boolean type");
        assert_eq!(plain(SUM, DType::F32, l().flip(&[1]), &[1]).unwrap_err(), "negative stride along axis 1 of input 0");
        let wide = contiguous(&[4, 1]).broadcast_to(&[4, 5]).unwrap();
        assert_eq!(plain(SUM, DType::F32, wide, &[0]).unwrap_err(), "zero stride along axis 1");
        assert!(plain(PROD, DType::C128, l(), &[0]).unwrap_err().starts_with("complex product"));
        let half = reduce(SUM, DType::F16, l(), &[0], DType::F32, Program::identity(DType::F16));
        assert_eq!(half.unwrap_err(), "float16 is summed in float32");
        let fused = reduce(SUM, DType::F32, l(), &[0], DType::F32, negated(DType::F32));
        assert_eq!(fused.unwrap_err(), "the reduction has a fused program or a cast");
    }
}
