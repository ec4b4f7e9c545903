//! Specifications of outputs.

use std::fmt;
use std::sync::Arc;

use crate::device::Buffer;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;

/// The dtype, layout and memory of an output. The memory is a new buffer, or an existing buffer, which is called the target.
///
/// In a new buffer, the layout has offset 0 and no gaps. Only kernels that declare [`Kernel::writes_targets`] receive a call with a target.
/// For other kernels, dispatch replaces the target by a new buffer, or skips the kernel if the call updates a part of the target. No array
/// except the call's inputs uses the target's memory.
///
/// - In a call of the family `Map`, the layout has offset 0 and no gaps. Inputs that use the target's memory have the layout of the output,
///   so that each element is read before it is written. Kernels that declare [`Capability::OutputRanges`] also receive calls that write a
///   range of the target: the layout has no gaps, and its offset is a multiple of 16 bytes. Other elements keep their values, and no input
///   uses the target's memory.
/// - In a call of the family `Copy`, the layout is that of the array to update. Elements outside the regions keep their values.
///
/// [`Kernel::writes_targets`]: crate::Kernel::writes_targets
/// [`Capability::OutputRanges`]: crate::Capability::OutputRanges
#[derive(Clone, Debug)]
pub struct OutputSpec {
    /// The dtype of the elements.
    pub dtype: DType,
    /// Layout of the elements in the buffer.
    pub layout: Layout,
    pub(super) target: Option<TargetBuffer>,
}

/// An existing buffer into which a call writes an output, instead of a new buffer.
#[derive(Clone)]
pub(super) struct TargetBuffer(Arc<dyn Buffer>);

impl fmt::Debug for TargetBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes on {}", self.0.nbytes(), self.0.device())
    }
}

impl OutputSpec {
    /// Returns the specification of an output in a new buffer.
    pub fn new(dtype: DType, layout: Layout) -> OutputSpec {
        OutputSpec { dtype, layout, target: None }
    }

    /// Returns the specification of an output in C order.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the size overflows.
    pub fn contiguous(dtype: DType, shape: &[usize]) -> Result<OutputSpec> {
        Ok(OutputSpec::new(dtype, Layout::contiguous(shape)?))
    }

    /// Returns the existing buffer to which the output is written, if there is one.
    pub fn target_buffer(&self) -> Option<&Arc<dyn Buffer>> {
        self.target.as_ref().map(|target| &target.0)
    }

    /// Returns whether the output covers only a part of the existing buffer to which it is written.
    pub(super) fn is_part_of_target_buffer(&self) -> bool {
        self.target_buffer().is_some_and(|target| self.layout.size().saturating_mul(self.dtype.itemsize()) != target.nbytes())
    }

    /// Returns the specification with `buffer` as the target. Only the caller may hold other references to the buffer.
    pub(crate) fn with_target_buffer(self, buffer: Arc<dyn Buffer>) -> OutputSpec {
        OutputSpec { target: Some(TargetBuffer(buffer)), ..self }
    }
}
