//! Calls on a CUDA device that may not exist, for the unit tests of `request`.

use cuprum_core::testing::calls;
pub use cuprum_core::testing::calls::{reason, with_call};
use cuprum_core::{DType, Device, DeviceKind, Layout, OutputSpec, Program, StepKind, StoredArray};

pub fn contiguous(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).unwrap()
}

pub fn array(dtype: DType, layout: Layout) -> StoredArray {
    calls::array(Device::new(DeviceKind::intern("cuda").unwrap(), 0), dtype, layout).unwrap()
}

pub fn output(dtype: DType, shape: &[usize]) -> OutputSpec {
    OutputSpec::new(dtype, contiguous(shape))
}

/// A program with an operation that has no elementwise CUDA implementation.
pub fn program_without_code(dtype: DType) -> Program {
    let mut program = Program::identity(dtype);
    let out = program.push_step(StepKind::Apply(cuprum_core::ops::scan::CUMSUM), dtype, &[0]);
    program.outputs[0] = out;
    program
}
