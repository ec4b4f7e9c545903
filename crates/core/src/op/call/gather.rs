//! Gather: elements selected by index.

use super::output_spec::OutputSpec;
use super::request::Request;
use crate::array::StoredArray;
use crate::op::Family;

/// `out = take(inputs[0], inputs[1], axis)`. `inputs[1]`, the indices, is C-contiguous and of dtype int32 or int64.
///
/// The kernel checks the indices. An index out of bounds is an error at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gather {
    /// The axis of `inputs[0]` that the indices address.
    pub axis: usize,
}

impl Request for Gather {
    fn family(&self) -> Family {
        Family::Gather
    }
    fn format_options(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec]) -> String {
        format!("axis={}", self.axis)
    }
}
