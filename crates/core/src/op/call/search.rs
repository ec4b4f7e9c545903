//! Search: binary search in a sorted array.

use super::output_spec::OutputSpec;
use super::request::Request;
use crate::array::StoredArray;
use crate::op::Family;

/// The int64 index at which each element of `inputs[1]` would be inserted into `inputs[0]`.
///
/// `inputs[1]` is C-contiguous. `inputs[0]` is 1-D, contiguous, of the same dtype, and sorted in the order of [`Sort`](super::Sort).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// Whether the insertion point is after equal elements (`side='right'`) rather than before them.
    pub after_equal: bool,
}

impl Request for Search {
    fn family(&self) -> Family {
        Family::Search
    }
    fn options(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec]) -> String {
        format!("side='{}'", if self.after_equal { "right" } else { "left" })
    }
}
