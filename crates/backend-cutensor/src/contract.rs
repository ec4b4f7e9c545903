//! Contractions of two operands (`cutensorContract`) with any strides, without copies.

use cuprum_core::call;
use cuprum_core::call::Work;
use cuprum_core::plan::contract::{ContractPlan, Mode};
use cuprum_core::{Call, DeclineReason, Layout, MatmulPrecision, Outcome, Result, StoredArray, matmul_precision};

use crate::handle;
use crate::operation::{CutensorOperation, CutensorOperationKind, OperandDescription, check_positive_strides, common_data_type};

/// Runs a contraction.
///
/// Sums have the precision of the operands, or float32 for the 16-bit floats. Products of float32 have the precision that the setting
/// [`MatmulPrecision`] selects.
pub fn run_call(call: &Call) -> Result<Outcome> {
    match operation_for_call(call, matmul_precision()?) {
        Ok(operation) => handle::run_operation(call, operation, &[&call.inputs[0], &call.inputs[1]], &[1.0, 0.0]),
        Err(reason) => Ok(Outcome::Declined(reason)),
    }
}

fn operation_for_call(call: &Call, precision: MatmulPrecision) -> Result<CutensorOperation, DeclineReason> {
    let (Work::Contract(call::Contract { plan }), [a, b], [out]) = (&call.work, call.inputs, call.outputs) else {
        return Err(DeclineReason::new("not a contraction of two operands"));
    };
    let data = common_data_type(call)?;
    check_positive_strides(call.inputs)?;
    if reads_overlapping_windows(a.layout()) || reads_overlapping_windows(b.layout()) {
        return Err(DeclineReason::new("overlapping windows, which the base accelerator reads in place"));
    }
    let inputs = [describe_input(plan, 0, a)?, describe_input(plan, 1, b)?].into_iter().collect();
    let precision = precision.of(out.dtype);
    CutensorOperation { kind: CutensorOperationKind::Contract(precision), data, inputs, output: describe_operand(&plan.out, &out.layout) }
        .check_operands()
}

/// Returns whether several axes with more than one element have stride 1.
fn reads_overlapping_windows(layout: &Layout) -> bool {
    layout.strides().iter().zip(layout.shape()).filter(|(stride, extent)| **stride == 1 && **extent > 1).count() > 1
}

/// Returns the description of input `n`, whose array is `array`.
///
/// A mode is an axis in cuTENSOR's terms. A broadcast mode (stride 0) is left out if the other operand and the output have this mode. Any
/// other broadcast mode is a reason to decline.
fn describe_input(plan: &ContractPlan, n: usize, array: &StoredArray) -> Result<OperandDescription, DeclineReason> {
    let (modes, other) = if n == 0 { (&plan.a, &plan.b) } else { (&plan.b, &plan.a) };
    let layout = array.layout();
    for (axis, mode) in modes.iter().enumerate() {
        let repeated = layout.strides()[axis] == 0 && layout.shape()[axis] > 1;
        if repeated && !(other.contains(mode) && plan.out.contains(mode)) {
            return Err(DeclineReason::with_text(|| format!("zero stride along axis {axis} of input {n}, which is not a batch axis")));
        }
    }
    Ok(describe_operand(modes, layout))
}

fn describe_operand(modes: &[Mode], layout: &Layout) -> OperandDescription {
    OperandDescription::from_axes(modes.iter().enumerate().map(|(axis, &m)| (m as usize, layout.shape()[axis], layout.strides()[axis])))
}

#[cfg(test)]
mod tests {
    use cuprum_core::DType;
    use cuprum_core::ops::contract::EINSUM;

    use super::*;
    use crate::sys::DataType;
    use crate::testing::{array, contiguous, output, reason, strided, with_call};
    use cuprum_core::Array;

    fn describe_einsum(a: &str, b: &str, out: &str, extents: &[usize], arrays: [StoredArray; 2]) -> Result<CutensorOperation, String> {
        let modes = |text: &str| text.bytes().map(|c| c - b'a').collect::<Vec<Mode>>();
        let plan = ContractPlan::new(&modes(a), &modes(b), &modes(out), extents);
        let shape: Vec<usize> = modes(out).iter().map(|&m| extents[m as usize]).collect();
        let outputs = [output(arrays[0].dtype(), &shape)];
        with_call(EINSUM, &arrays, &outputs, Work::Contract(call::Contract { plan: &plan }), |call| {
            reason(|| operation_for_call(call, MatmulPrecision::Float32))
        })
    }

    #[test]
    fn matmul_with_a_transposed_operand() {
        let b = array(DType::F32, contiguous(&[6, 5]).transpose());
        let op = describe_einsum("ac", "cb", "ab", &[4, 6, 5], [array(DType::F32, contiguous(&[4, 5])), b]).unwrap();
        assert_eq!(op.kind, CutensorOperationKind::Contract(MatmulPrecision::Float32));
        assert_eq!(op.data, DataType::F32);
        assert_eq!(op.inputs[0], OperandDescription::from_axes([(0, 4, 5), (2, 5, 1)]));
        assert_eq!(op.inputs[1], OperandDescription::from_axes([(2, 5, 1), (1, 6, 5)]));
        assert_eq!(op.output, OperandDescription::from_axes([(0, 4, 6), (1, 6, 1)]));
    }

    #[test]
    fn broadcast_batch_modes_are_left_out_and_others_decline() {
        // dab,dbc->dac with `a` broadcast along d
        let b = || array(DType::F64, contiguous(&[3, 5, 6]));
        let over_batch = strided(DType::F64, &[3, 4, 5], &[0, 5, 1]);
        let op = describe_einsum("dab", "dbc", "dac", &[4, 5, 6, 3], [over_batch, b()]).unwrap();
        assert_eq!(op.inputs[0], OperandDescription::from_axes([(0, 4, 5), (1, 5, 1)]));
        assert_eq!(op.inputs[1].modes[..], [3, 1, 2]);
        let over_rows = strided(DType::F64, &[3, 4, 5], &[5, 0, 1]);
        let refused = describe_einsum("dab", "dbc", "dac", &[4, 5, 6, 3], [over_rows, b()]);
        assert_eq!(refused.unwrap_err(), "zero stride along axis 1 of input 0, which is not a batch axis");
    }

    #[test]
    fn decline_reasons() {
        let f32s = || array(DType::F32, contiguous(&[4, 4]));
        let of = |a, b| describe_einsum("ab", "bc", "ac", &[4, 4, 4], [a, b]).unwrap_err();
        let ints = || array(DType::I64, contiguous(&[4, 4]));
        assert_eq!(of(ints(), ints()), "int64: cuTENSOR has no integer types");
        let flipped = array(DType::F32, contiguous(&[4, 4]).flip(&[1]));
        assert_eq!(of(f32s(), flipped), "negative stride along axis 1 of input 1");
        let windows = strided(DType::F32, &[4, 4], &[1, 1]);
        assert_eq!(of(windows, f32s()), "overlapping windows, which the base accelerator reads in place");
        let overlapping = strided(DType::F32, &[4, 4], &[2, 1]);
        assert_eq!(of(overlapping, f32s()), "elements of input 0 overlap in memory");
    }
}
