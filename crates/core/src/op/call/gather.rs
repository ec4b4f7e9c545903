//! Requests of the kernel family `Gather`: elements selected by index.

use super::kernel_request::KernelRequest;
use super::output_spec::OutputSpec;
use crate::array::StoredArray;
use crate::op::Family;

/// Elements of `inputs[0]` at the indices `inputs[1]`, of dtype int32 or int64. Negative indices count from the end.
///
/// The kernel checks the indices. An index out of bounds is an error at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gather {
    /// The axis of `inputs[0]` into which the indices point.
    pub axis: usize,
    /// The relation between the axes of the indices and those of the output.
    pub indices: GatherIndices,
}

/// The relation between the index array of a [`Gather`] and its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatherIndices {
    /// The axes of the indices replace the indexed axis, as in `take`. The indices are C-contiguous.
    ReplaceAxis,
    /// Each output element has its own index, as in `take_along_axis`. The indices have the shape of the output and any strides. The input
    /// has the same shape, except for its extent along the axis.
    PerElement,
}

impl KernelRequest for Gather {
    fn family(&self) -> Family {
        Family::Gather
    }
    fn format_call_options(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec]) -> String {
        match self.indices {
            GatherIndices::ReplaceAxis => format!("axis={}", self.axis),
            GatherIndices::PerElement => format!("axis={} index per element", self.axis),
        }
    }
}
