//! Requests of the kernel family `Search`: binary search in a sorted array.

use super::kernel_request::KernelRequest;
use super::output_spec::OutputSpec;
use crate::array::StoredArray;
use crate::op::Family;

/// A binary search in `inputs[0]` for each element of `inputs[1]`.
///
/// `inputs[1]` is C-contiguous. `inputs[0]` is 1-D, contiguous, not empty, of the same dtype, and sorted in the order of
/// [`Sort`](super::Sort).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// The kind of result of each search: an index or a truth value.
    pub result: SearchResultKind,
}

/// The kind of result of a binary search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchResultKind {
    /// The int64 index at which the element would be inserted before equal elements (`side='left'`).
    BeforeEqual,
    /// The int64 index at which the element would be inserted after equal elements (`side='right'`).
    AfterEqual,
    /// Whether the sorted array has an equal element, as bool. NaN is not equal to NaN.
    IsFound,
    /// Whether no element of the sorted array equals the searched value, as bool. True for NaN.
    IsMissing,
}

impl KernelRequest for Search {
    fn family(&self) -> Family {
        Family::Search
    }
    fn format_call_options(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec]) -> String {
        match self.result {
            SearchResultKind::BeforeEqual => "side='left'".into(),
            SearchResultKind::AfterEqual => "side='right'".into(),
            SearchResultKind::IsFound => "invert=False".into(),
            SearchResultKind::IsMissing => "invert=True".into(),
        }
    }
}
