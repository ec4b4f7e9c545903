//! Requests of the kernel family `Scatter`: writes to elements selected by index.

use super::kernel_request::KernelRequest;
use super::output_spec::OutputSpec;
use super::tuning_signature::TuningSignature;
use crate::array::StoredArray;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Capability, Family, Op};

/// A request to write values to those rows of an existing array that indices select. A row is the slice of [`Scatter::region`] at one index
/// along the first axis.
///
/// The output has a target, and elements outside the selected rows keep their values. The first input holds the indices of the rows: 1-D,
/// C-contiguous, int32 or int64. Negative indices count from the end. The kernel checks the indices: one out of bounds is an error. The
/// second input holds the values, in the dtype of the target.
#[derive(Clone, Copy)]
pub struct Scatter<'a> {
    /// The region of the output's buffer that the call may write, as a view with at least one axis. Only the first axis may have a negative
    /// stride. Different indices of the region address different elements of the buffer.
    pub region: &'a Layout,
    /// The elementwise operation that computes the new element from the old element and the value. `None` replaces the old element by the
    /// value.
    pub combine: Option<Op>,
    /// The assignment of values to the selected rows.
    pub rows: RowAssignment,
    /// The capability that determines the order in which several values of a row are combined, for [`RowAssignment::Indexed`]. `None` if
    /// the result does not depend on the order.
    pub needs: Option<Capability>,
}

/// The assignment of values to the rows of a [`Scatter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowAssignment {
    /// The values have the shape of the region, with the number of indices as the first extent. Their strides may be 0.
    ///
    /// If an index occurs several times, its values are combined in order; without [`Scatter::combine`], the last value is stored. Kernels
    /// that declare [`Capability::ReproducibleScatterSum`] or [`Capability::UnorderedScatterSum`] may instead add the values in another
    /// order, if [`Scatter::needs`] requests that capability.
    Indexed,
    /// Each value updates the row that its index selects, as for [`RowAssignment::Indexed`]. No index occurs several times.
    Distinct,
    /// Each row to update has one index, but may have several values, which apply in order. Two more int64 inputs assign values to rows.
    ///
    /// The third input contains positions along the first axis of the values, grouped by row. The fourth contains the offsets of the
    /// groups: group `i`, for the row that `indices[i]` selects, is `offsets[i]..offsets[i + 1]`.
    Grouped,
}

impl KernelRequest for Scatter<'_> {
    fn family(&self) -> Family {
        Family::Scatter
    }
    fn updates_part_of_target(&self) -> bool {
        true
    }
    fn required_capability(&self) -> Option<Capability> {
        self.needs
    }
    fn format_call_options(&self, _inputs: &[StoredArray], _outputs: &[OutputSpec]) -> String {
        self.combine.map_or_else(String::new, |op| format!("by {}", op.name()))
    }
    fn add_to_tuning_signature(&self, inputs: &[StoredArray], outputs: &[OutputSpec], signature: &mut TuningSignature) -> Result<()> {
        signature.hash_value((self.combine.map(Op::index), self.rows, self.needs.map(|needed| needed as u8)));
        signature.hash_axes(self.region.shape(), &[self.region.strides()]);
        signature.hash_layouts(inputs, outputs);
        Ok(())
    }
}
