//! Calls on a CUDA device that may not exist, for the unit tests of `describe`.

use cuprum_core::testing::calls;
pub use cuprum_core::testing::calls::{reason, with_call};
use cuprum_core::{DType, Device, DeviceKind, Layout, Op, OutputSpec, Program, StepKind, StoredArray};

pub fn contiguous(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).unwrap()
}

pub fn array(dtype: DType, layout: Layout) -> StoredArray {
    calls::array(Device::new(DeviceKind::intern("cuda").unwrap(), 0), dtype, layout).unwrap()
}

pub fn strided(dtype: DType, shape: &[usize], strides: &[isize]) -> StoredArray {
    array(dtype, Layout::strided(shape, strides, 0).unwrap())
}

pub fn output(dtype: DType, shape: &[usize]) -> OutputSpec {
    OutputSpec::new(dtype, contiguous(shape))
}

/// The program `op(inputs[order[0]], inputs[order[1]])`.
pub fn binary(op: Op, dtype: DType, order: [u16; 2]) -> Program {
    let mut program = Program::default();
    for n in 0..=order[0].max(order[1]) {
        program.push_step(StepKind::Input(n), dtype, &[]);
    }
    let result = program.push_step(StepKind::Apply(op), dtype, &order);
    program.outputs.push(result);
    program
}

/// The program `-inputs[0]`.
pub fn negated(dtype: DType) -> Program {
    let mut program = Program::identity(dtype);
    program.outputs[0] = program.push_step(StepKind::Apply(cuprum_core::ops::elementwise::NEGATIVE), dtype, &[0]);
    program
}
