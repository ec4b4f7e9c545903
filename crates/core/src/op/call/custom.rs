//! Custom: operations of other crates.

use std::any::Any;

use super::Request;
use crate::op::Family;

/// A request of another crate's operation; the operation and its kernels agree on the type.
#[derive(Clone, Copy)]
pub struct Custom<'a>(pub &'a (dyn Any + Send + Sync));

impl Request for Custom<'_> {
    fn family(&self) -> Family {
        Family::Custom
    }
}
