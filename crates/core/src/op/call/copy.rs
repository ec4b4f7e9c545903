//! Copy: copies and joins.

use super::Request;
use crate::layout::Layout;
use crate::op::Family;

/// Copy input n to region n of the output. The regions do not overlap and together fill it.
#[derive(Clone, Copy)]
pub struct Copy<'a> {
    /// The position of each input within the output's buffer.
    pub regions: &'a [Layout],
}

impl Request for Copy<'_> {
    fn family(&self) -> Family {
        Family::Copy
    }
}
