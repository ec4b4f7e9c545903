//! Specifications of outputs.

use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;

/// The dtype and layout of an output. The layout has offset 0 and no gaps.
#[derive(Clone, Debug)]
pub struct OutputSpec {
    /// Element type.
    pub dtype: DType,
    /// Layout of the elements in the new buffer.
    pub layout: Layout,
}

impl OutputSpec {
    /// Returns the specification of an output in C order.
    ///
    /// # Errors
    /// A size that overflows.
    pub fn contiguous(dtype: DType, shape: &[usize]) -> Result<OutputSpec> {
        Ok(OutputSpec { dtype, layout: Layout::contiguous(shape)? })
    }
}
