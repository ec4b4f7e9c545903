//! Synthetic calls over arrays without memory. With such a call, a test checks on a machine without the device whether an accelerator
//! accepts the call.

use std::any::Any;
use std::sync::Arc;

use crate::array::{Array, StoredArray};
use crate::call::{Call, DeclineReason, OutputSpec, Work};
use crate::device::{Buffer, Device, Stream};
use crate::dispatch::explain;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::Op;

/// A buffer without memory, of the maximum size.
struct UnbackedBuffer(Device);

impl Buffer for UnbackedBuffer {
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

/// Returns an array of any size on a device that need not exist. Its elements must not be read.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the layout does not fit the address space.
pub fn array(device: Device, dtype: DType, layout: Layout) -> Result<StoredArray> {
    StoredArray::new(dtype, layout, Arc::new(UnbackedBuffer(device)))
}

/// Runs `f` with a call on the device of its first input, or on the host without inputs.
pub fn with_call<R>(op: Op, inputs: &[StoredArray], outputs: &[OutputSpec], work: Work, f: impl FnOnce(&Call) -> R) -> R {
    let device = inputs.first().map_or(Device::CPU, |a| a.device());
    f(&Call { op, device, stream: Stream::current(device), inputs, outputs, work })
}

/// Runs `f` under [`explain`], because reasons are formatted only then. Returns the result of `f`, with the text of the reason as the
/// error.
pub fn reason<T>(f: impl FnOnce() -> Result<T, DeclineReason>) -> Result<T, String> {
    explain(f).0.map_err(|r| r.text().to_owned())
}
