//! Requests of the kernel family `Sort`: sorts of rows and of segments, and merges.

use super::kernel_request::KernelRequest;
use super::output_spec::OutputSpec;
use crate::array::StoredArray;
use crate::op::Family;

/// A stable sort of each row (the last axis) of C-contiguous `inputs[0]`, in NumPy's order.
///
/// False precedes true, -0.0 equals 0.0, and NaN is last, whatever its sign and payload. Complex numbers are sorted by real part, then
/// imaginary part. Complex numbers without NaN come first. They are followed by those with a NaN imaginary part, those with a NaN real
/// part, and those with both. Descending order is the exact reverse (NaN first), but equal elements keep their order.
///
/// Outputs are the sorted values if `values`, then the int64 index of each sorted value in the input row if `indices`. Equal values of
/// different bits (zeros and NaN) may be in any order in the sorted values, but not in the indices. If the last extent of the outputs is
/// shorter than the input's, only that many leading elements of each sorted row are required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// Whether the largest element is first.
    pub descending: bool,
    /// Whether the sorted values are an output of the call.
    pub values: bool,
    /// Whether the indices that sort each row are an output of the call.
    pub indices: bool,
    /// The partition point, if only a partition is required (`numpy.partition`).
    ///
    /// The element at this index must be the one that a complete sort would put there. No larger element may precede it, and no smaller one
    /// may follow it. The outputs have the input's extents, and completely sorted rows are valid.
    pub nth: Option<usize>,
}

/// A stable ascending sort of each segment `inputs[1][i]..inputs[1][i + 1]` of `inputs[0]`, in the order of [`Sort`].
///
/// `inputs[0]` is 1-D and C-contiguous. The offsets are C-contiguous int64, already checked: non-decreasing, from 0 to the number of
/// elements. The output holds the sorted elements, or their int64 indices in `inputs[0]` if `indices`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSort {
    /// Whether the output holds the indices of the sorted elements instead of the elements.
    pub indices: bool,
    /// Length of the longest segment.
    pub longest: usize,
}

/// A merge of two sorted arrays, in the order of [`Sort`]. The inputs and the output are 1-D and C-contiguous, and have one dtype.
///
/// A kernel may decline the request. The caller then sorts the joined arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merge {
    /// Whether the largest element is first.
    pub descending: bool,
}

impl KernelRequest for Merge {
    fn family(&self) -> Family {
        Family::Sort
    }
}

impl KernelRequest for SegmentSort {
    fn family(&self) -> Family {
        Family::Sort
    }
}

impl KernelRequest for Sort {
    fn family(&self) -> Family {
        Family::Sort
    }
    fn format_call_options(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec]) -> String {
        let descending = self.descending.then(|| "descending".to_owned());
        let kth = self.nth.map(|nth| format!("kth={nth}"));
        ["axis=-1".to_owned()].into_iter().chain(descending).chain(kth).collect::<Vec<_>>().join(", ")
    }
}
