//! Search: positions in a sorted array.

use super::Request;
use crate::op::Family;

/// The index (int64) at which each element of C-contiguous `inputs[1]` would be inserted into `inputs[0]`.
///
/// `inputs[0]` is 1-D, contiguous, sorted as [`Sort`](super::Sort) says and of the same dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// Whether the index is after equal elements (`side='right'`), not before them.
    pub after_equal: bool,
}

impl Request for Search {
    fn family(&self) -> Family {
        Family::Search
    }
}
