//! Copies that transpose (`cutensorPermute`): the axis of stride 1 differs between the array and its copy.

use cuprum_core::call;
use cuprum_core::call::Work;
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::registry::decline_unless_order_is_set;
use cuprum_core::{Call, DeclineReason, Outcome, Result};

use crate::handle;
use crate::map::describe_operand;
use crate::operation::{CutensorOperation, CutensorOperationKind, check_positive_strides, common_data_type};
use crate::sys::DataType;

/// Reason why cuTENSOR declines calls unless the user has set the accelerator order (`docs/notes/accelerator-order.md`).
const DEFAULT_DECLINE_REASON: &str = "the base accelerator copies faster; an order that names cutensor is followed";

/// Runs a call that copies an array to another order of axes.
pub fn run_call(call: &Call) -> Result<Outcome> {
    match decline_unless_order_is_set(DEFAULT_DECLINE_REASON).and_then(|()| operation_for_call(call)) {
        Ok(operation) => handle::run_operation(call, operation, &[&call.inputs[0]], &[1.0, 0.0]),
        Err(reason) => Ok(Outcome::Declined(reason)),
    }
}

fn operation_for_call(call: &Call) -> Result<CutensorOperation, DeclineReason> {
    let (Work::Copy(call::Copy { regions: [region] }), [input], [_]) = (&call.work, call.inputs, call.outputs) else {
        return Err(DeclineReason::new("the copy joins several arrays"));
    };
    let data = common_data_type(call)?;
    check_positive_strides(call.inputs)?;
    if region.offset() != 0 {
        return Err(DeclineReason::new("the copy does not start at the first element of its output"));
    }
    let plan = LoopPlan::new(&[input.layout(), region]);
    let (a, output) = (describe_operand(&plan, 0), describe_operand(&plan, 1));
    if !a.is_transposed_to(&output) {
        return Err(DeclineReason::new("the copy is not a transpose; the base accelerator is as fast"));
    }
    let operation = CutensorOperation { kind: CutensorOperationKind::Permute, data, inputs: [a].into_iter().collect(), output };
    // A complex64 element is copied as one float64. cuTENSOR scales it by the factor 1, which preserves all bits.
    let permutation =
        if data == DataType::C64 { CutensorOperation { data: DataType::F64, ..operation } } else { operation.with_real_pairs() };
    permutation.check_operands()
}

#[cfg(test)]
mod tests {
    use cuprum_core::ops::manipulation::COPY;
    use cuprum_core::{DType, Layout};

    use super::*;
    use crate::operation::OperandDescription;
    use crate::testing::{array, contiguous, output, reason, with_call};

    fn describe_copy(dtype: DType, layout: Layout) -> Result<CutensorOperation, String> {
        let outputs = [output(dtype, layout.shape())];
        let regions = [outputs[0].layout.clone()];
        with_call(COPY, &[array(dtype, layout)], &outputs, Work::Copy(call::Copy { regions: &regions }), |call| {
            reason(|| operation_for_call(call))
        })
    }

    #[test]
    fn transposes() {
        let op = describe_copy(DType::F32, contiguous(&[5, 4]).transpose()).unwrap();
        assert_eq!((op.kind, op.data), (CutensorOperationKind::Permute, DataType::F32));
        assert_eq!(
            (&op.inputs[0], &op.output),
            (&OperandDescription::from_axes([(0, 4, 1), (1, 5, 4)]), &OperandDescription::from_axes([(0, 4, 5), (1, 5, 1)]))
        );
        let op = describe_copy(DType::C64, contiguous(&[5, 4]).transpose()).unwrap();
        assert_eq!((op.data, op.output.modes.len()), (DataType::F64, 2));
        let op = describe_copy(DType::C128, contiguous(&[5, 4]).transpose()).unwrap();
        assert_eq!((op.data, op.output.modes.len()), (DataType::F64, 3));
    }

    #[test]
    fn decline_reasons() {
        assert_eq!(describe_copy(DType::U8, contiguous(&[5, 4]).transpose()).unwrap_err(), "uint8: cuTENSOR has no integer types");
        assert_eq!(
            describe_copy(DType::F32, contiguous(&[5, 4])).unwrap_err(),
            "the copy is not a transpose; the base accelerator is as fast"
        );
        let flipped = contiguous(&[5, 4]).transpose().flip(&[1]);
        assert_eq!(describe_copy(DType::F32, flipped).unwrap_err(), "negative stride along axis 1 of input 0");
        let (inputs, outputs) = ([array(DType::F32, contiguous(&[2])), array(DType::F32, contiguous(&[2]))], [output(DType::F32, &[4])]);
        let regions = [contiguous(&[2]), Layout::strided(&[2], &[1], 2).unwrap()];
        let joined =
            with_call(COPY, &inputs, &outputs, Work::Copy(call::Copy { regions: &regions }), |call| reason(|| operation_for_call(call)));
        assert_eq!(joined.unwrap_err(), "the copy joins several arrays");
    }
}
