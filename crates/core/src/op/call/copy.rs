//! Requests of the kernel family `Copy`: copies of arrays, and joins of several arrays into one.

use super::kernel_request::KernelRequest;
use crate::layout::Layout;
use crate::op::Family;

/// A request to copy input n to region n of the output, for every n. The regions are disjoint and have no negative strides.
///
/// If the output has a new buffer, the regions cover the output. If it has an existing buffer
/// ([`OutputSpec::target_buffer`](crate::OutputSpec::target_buffer)), elements outside the regions keep their values.
#[derive(Clone, Copy)]
pub struct Copy<'a> {
    /// The region of the output's buffer to which each input is copied, as a layout.
    pub regions: &'a [Layout],
}

impl KernelRequest for Copy<'_> {
    fn family(&self) -> Family {
        Family::Copy
    }
    fn updates_part_of_target(&self) -> bool {
        true
    }
}
