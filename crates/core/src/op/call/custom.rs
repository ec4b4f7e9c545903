//! Custom: operations defined by other crates.

use std::any::Any;

use super::request::Request;
use crate::op::Family;

/// A request of an operation of another crate, whose kernels downcast it to a common type.
#[derive(Clone, Copy)]
pub struct Custom<'a>(pub &'a (dyn Any + Send + Sync));

impl Request for Custom<'_> {
    fn family(&self) -> Family {
        Family::Custom
    }
}
