//! Sort: rows and segments.

use super::Request;
use crate::op::Family;

/// A stable sort of each row (the last axis) of C-contiguous `inputs[0]`, in NumPy's order: false before true; -0.0 equal to 0.0;
/// NaN last, whatever its sign and payload; complex numbers without NaN first, then those with a NaN imaginary part, then those
/// with a NaN real part, then those with both, each by its real part, then its imaginary part. Descending is the exact reverse
/// of that order (NaN first), where equal elements keep theirs.
///
/// Outputs are the sorted values if `values` (where equal ones of different bits, zeros and NaNs, may come in any order), then
/// each one's place in its row (int64) if `indices`. The last extent of the outputs may be shorter than the input's: then only so
/// many first elements of each sorted row are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// Largest first.
    pub descending: bool,
    /// Whether sorted values are asked for.
    pub values: bool,
    /// Whether places are asked for.
    pub indices: bool,
    /// If only this element of each sorted row needs to be in its place, with none before it that sorting puts behind it, and none behind
    /// it that sorting puts before it. The last extents are the same then, and rows that are sorted wholly will do.
    pub nth: Option<usize>,
}

/// Sort each segment `inputs[1][i]..inputs[1][i + 1]` of `inputs[0]` (1-D, C-contiguous) in the order of [`Sort`], ascending; equal
/// elements keep their order.
///
/// The offsets are C-contiguous int64 and checked: they rise from 0 to the number of elements. The output holds the sorted elements, or
/// their indices in `inputs[0]` (int64) if `indices`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSort {
    /// Whether the output holds indices instead of elements.
    pub indices: bool,
    /// Length of the longest segment.
    pub longest: usize,
}

impl Request for SegmentSort {
    fn family(&self) -> Family {
        Family::Sort
    }
}

impl Request for Sort {
    fn family(&self) -> Family {
        Family::Sort
    }
}
