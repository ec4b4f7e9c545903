//! Made-up calls for the tests of descriptions: arrays over memory that does not exist.

use std::any::Any;
use std::sync::Arc;

use cuprum_core::call::Work;
use cuprum_core::device::Buffer;
use cuprum_core::{Call, DType, Device, DeviceKind, Layout, Op, OutputSpec, Reason, StoredArray, Stream, explain};

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
    StoredArray::new(dtype, layout, Arc::new(Nowhere(1 << 50))).unwrap()
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
