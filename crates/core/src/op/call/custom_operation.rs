//! Requests of the kernel family `Custom`: operations of other crates whose requests no other kernel family describes.

use std::any::Any;

use super::kernel_request::KernelRequest;
use crate::op::{Family, Parameters};

/// The request of an operation that another crate defines. The kernels of that operation downcast the field to the crate's request type.
#[derive(Clone, Copy)]
pub struct Custom<'a>(pub &'a (dyn Any + Send + Sync));

impl KernelRequest for Custom<'_> {
    fn family(&self) -> Family {
        Family::Custom
    }
    fn composite_parameters(&self) -> Option<&Parameters> {
        Some(self.0)
    }
}
