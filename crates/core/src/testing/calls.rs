//! Made-up calls: what an accelerator says to a call can be tested without its device, over arrays in memory that does not exist.

use std::any::Any;
use std::sync::Arc;

use crate::array::{Array, StoredArray};
use crate::call::{Call, OutputSpec, Reason, Work};
use crate::device::{Buffer, Device, Stream};
use crate::dispatch::explain;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::Op;

/// Memory that does not exist: as large as addresses go.
struct Nowhere(Device);

impl Buffer for Nowhere {
    fn device(&self) -> Device {
        self.0
    }
    fn nbytes(&self) -> usize {
        isize::MAX as usize
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An array of any size on a device that need not be there. Its elements cannot be read.
pub fn array(device: Device, dtype: DType, layout: Layout) -> Result<StoredArray> {
    StoredArray::new(dtype, layout, Arc::new(Nowhere(device)))
}

/// What `f` makes of a call, on the device of its first input (without one: the host).
pub fn with_call<R>(op: Op, inputs: &[StoredArray], outputs: &[OutputSpec], work: Work, f: impl FnOnce(&Call) -> R) -> R {
    let device = inputs.first().map_or(Device::CPU, |a| a.device());
    f(&Call { op, device, stream: Stream::current(device), inputs, outputs, work })
}

/// The result of `f` with the text of its reason, which is made only while somebody listens.
pub fn reason<T>(f: impl FnOnce() -> Result<T, Reason>) -> Result<T, String> {
    explain(f).0.map_err(|r| r.text().to_owned())
}
