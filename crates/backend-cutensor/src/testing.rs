//! Made-up calls for the tests of descriptions: arrays over memory that does not exist.

use std::any::Any;
use std::sync::Arc;

use cuprum_core::call::Work;
use cuprum_core::device::Buffer;
use cuprum_core::{Call, DType, Device, DeviceKind, Layout, Op, OutputSpec, Program, Reason, StepKind, StoredArray, Stream, explain};

struct Nowhere(usize);

impl Buffer for Nowhere {
    fn device(&self) -> Device {
        device()
    }
    fn nbytes(&self) -> usize {
        self.0
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn device() -> Device {
    Device::new(DeviceKind::intern("cuda").unwrap(), 0)
}

pub fn contiguous(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).unwrap()
}

pub fn array(dtype: DType, layout: Layout) -> StoredArray {
    StoredArray::new(dtype, layout, Arc::new(Nowhere(1 << 20))).unwrap()
}

pub fn strided(dtype: DType, shape: &[usize], strides: &[isize]) -> StoredArray {
    array(dtype, Layout::strided(shape, strides, 0).unwrap())
}

pub fn output(dtype: DType, shape: &[usize]) -> OutputSpec {
    OutputSpec { dtype, layout: contiguous(shape) }
}

pub fn with_call<R>(op: Op, inputs: &[StoredArray], outputs: &[OutputSpec], work: Work, f: impl FnOnce(&Call) -> R) -> R {
    f(&Call { op, device: device(), stream: Stream::current(device()), inputs, outputs, work })
}

/// The result with its reason as text.
pub fn reason<T>(f: impl FnOnce() -> Result<T, Reason>) -> Result<T, String> {
    explain(f).0.map_err(|r| r.text().to_owned())
}

/// `op(inputs[order[0]], inputs[order[1]])`.
pub fn binary(op: Op, dtype: DType, order: [u16; 2]) -> Program {
    let mut program = Program::default();
    for n in 0..=order[0].max(order[1]) {
        program.push(StepKind::Input(n), dtype, [0; 3]);
    }
    let result = program.push(StepKind::Apply(op), dtype, [order[0], order[1], 0]);
    program.outputs.push(result);
    program
}

/// `-inputs[0]`.
pub fn negated(dtype: DType) -> Program {
    let mut program = Program::identity(dtype);
    program.outputs[0] = program.push(StepKind::Apply(cuprum_core::ops::elementwise::NEGATIVE), dtype, [0; 3]);
    program
}
