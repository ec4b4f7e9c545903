//! Sums and products over any axes of a stored array. Minimum and maximum lose NaN in cuTENSOR and are declined.

use cuprum_core::call::Work;
use cuprum_core::ops::reduce::{MAX, MIN, PROD, SUM};
use cuprum_core::{Array, Call, DType, Op, Outcome, Reason, Result};

use crate::handle;
use crate::operation::{Kind, Operation, Tensor, axis_where, common_type, forward_only};
use crate::sys::Operator;

/// Sum or product.
pub fn run(call: &Call) -> Result<Outcome> {
    match describe(call) {
        Ok(operation) => handle::run(call, operation, &[&call.inputs[0]], [1.0, 0.0]),
        Err(reason) => Ok(Outcome::Declined(reason)),
    }
}

fn operator(op: Op) -> Result<Operator, Reason> {
    match op {
        _ if op == SUM => Ok(Operator::Add),
        _ if op == PROD => Ok(Operator::Mul),
        _ if op == MIN || op == MAX => Err(Reason::with(|| format!("{}: cuTENSOR's loses NaN", op.name()))),
        _ => Err(Reason::with(|| format!("{}: cuTENSOR has sum and product only", op.name()))),
    }
}

fn describe(call: &Call) -> Result<Operation, Reason> {
    let (Work::Reduce { program, plan, acc }, [input], [output]) = (&call.work, call.inputs, call.outputs) else {
        return Err(Reason::new("not the reduction of one array"));
    };
    let operator = operator(call.op)?;
    if !program.is_identity() {
        return Err(Reason::new("a fused expression or a cast comes before the reduction"));
    }
    let data = common_type(call)?;
    if *acc != output.dtype {
        return Err(Reason::with(|| format!("{} is summed in {acc}", output.dtype)));
    }
    if operator == Operator::Mul && output.dtype.is_complex() {
        return Err(Reason::new("complex product: scaling its result would turn infinities into NaN"));
    }
    if input.dtype() == DType::F16 || input.dtype() == DType::BF16 {
        return Err(Reason::with(|| format!("{}: accumulated in float32 by the base", input.dtype())));
    }
    forward_only(call.inputs)?;
    if let Some(axis) = axis_where(input.layout(), |s| s == 0) {
        return Err(Reason::with(|| format!("zero stride along axis {axis}")));
    }
    let (kept, reduced) = (plan.kept.len(), plan.reduced.len());
    let strides = |of: &[cuprum_core::layout::Strides], axis: usize| of.first().map_or(0, |s| s[axis]);
    let kept_axes = (0..kept).map(|i| (i, plan.kept[i], strides(&plan.kept_strides, i)));
    let reduced_axes = (0..reduced).map(|i| (kept + i, plan.reduced[i], strides(&plan.reduced_strides, i)));
    let mut step = 1;
    let mut output_axes: Vec<_> = (0..kept)
        .rev()
        .map(|i| {
            let axis = (i, plan.kept[i], step);
            step *= plan.kept[i] as isize;
            axis
        })
        .collect();
    output_axes.reverse();
    let inputs = [Tensor::new(kept_axes.chain(reduced_axes))].into_iter().collect();
    Operation { kind: Kind::Reduce(operator), data, inputs, output: Tensor::new(output_axes) }.by_real_parts().check()
}

#[cfg(test)]
mod tests {
    use cuprum_core::layout::Layout;
    use cuprum_core::ops::reduce::ANY;
    use cuprum_core::plan::reduce::ReducePlan;
    use cuprum_core::{DType, Program};

    use super::*;
    use crate::sys::DataType;
    use crate::testing::{array, contiguous, negated, output, reason, with_call};

    fn reduce(op: Op, dtype: DType, layout: Layout, axes: &[usize], acc: DType, program: Program) -> Result<Operation, String> {
        let plan = ReducePlan::new(layout.shape(), &[&layout], axes, false);
        let kept: Vec<usize> = (0..layout.ndim()).filter(|a| !axes.contains(a)).map(|a| layout.shape()[a]).collect();
        let (inputs, outputs) = ([array(dtype, layout.clone())], [output(dtype, &kept)]);
        let work = Work::Reduce { program: &program, plan: &plan, acc };
        with_call(op, &inputs, &outputs, work, |call| reason(|| describe(call)))
    }

    fn plain(op: Op, dtype: DType, layout: Layout, axes: &[usize]) -> Result<Operation, String> {
        reduce(op, dtype, layout, axes, dtype, Program::identity(dtype))
    }

    #[test]
    fn any_axes_of_any_layout() {
        let op = plain(SUM, DType::F32, contiguous(&[4, 5, 6]), &[0, 2]).unwrap();
        assert_eq!(op.kind, Kind::Reduce(Operator::Add));
        assert_eq!(op.inputs[0], Tensor::new([(0, 5, 6), (1, 4, 30), (2, 6, 1)]));
        assert_eq!(op.output, Tensor::new([(0, 5, 1)]));
        let op = plain(PROD, DType::F64, contiguous(&[4, 5, 6]).transpose(), &[0, 1, 2]).unwrap();
        assert_eq!((op.inputs[0].extents[..].to_vec(), op.output), (vec![120], Tensor::default()));
        let op = plain(SUM, DType::F64, contiguous(&[4, 5, 6]), &[1]).unwrap();
        assert_eq!(op.output, Tensor::new([(0, 4, 6), (1, 6, 1)]));
    }

    #[test]
    fn complex_sums_run_by_parts() {
        let op = plain(SUM, DType::C64, contiguous(&[4, 5]), &[0]).unwrap();
        assert_eq!(op.data, DataType::F32);
        assert_eq!(op.inputs[0], Tensor::new([(0, 5, 2), (1, 4, 10), (2, 2, 1)]));
        assert_eq!(op.output, Tensor::new([(0, 5, 2), (2, 2, 1)]));
    }

    #[test]
    fn declines() {
        let l = || contiguous(&[4, 5]);
        assert_eq!(plain(MAX, DType::F32, l(), &[0]).unwrap_err(), "max: cuTENSOR's loses NaN");
        assert_eq!(plain(ANY, DType::Bool, l(), &[0]).unwrap_err(), "any: cuTENSOR has sum and product only");
        assert_eq!(plain(SUM, DType::I64, l(), &[0]).unwrap_err(), "int64: cuTENSOR has no integer types");
        assert_eq!(plain(SUM, DType::F32, l().flip(&[1]), &[1]).unwrap_err(), "negative stride along axis 1 of input 0");
        let wide = contiguous(&[4, 1]).broadcast_to(&[4, 5]).unwrap();
        assert_eq!(plain(SUM, DType::F32, wide, &[0]).unwrap_err(), "zero stride along axis 1");
        assert!(plain(PROD, DType::C128, l(), &[0]).unwrap_err().starts_with("complex product"));
        let half = reduce(SUM, DType::F16, l(), &[0], DType::F32, Program::identity(DType::F16));
        assert_eq!(half.unwrap_err(), "float16 is summed in float32");
        let fused = reduce(SUM, DType::F32, l(), &[0], DType::F32, negated(DType::F32));
        assert_eq!(fused.unwrap_err(), "a fused expression or a cast comes before the reduction");
    }
}
