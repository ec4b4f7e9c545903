//! Requests of the kernel family `Fill`: arrays computed without inputs.

use super::kernel_request::KernelRequest;
use crate::op::Family;
use crate::scalar::Scalar;

/// Values computed without inputs, in the output's dtype. Elements are numbered in C order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// Undefined contents (`empty`). The kernel writes zeros unless reading uninitialized memory is safe on the device and for the dtype.
    Undefined,
    /// The same value for every element (`full`, `zeros`, `ones`).
    Constant(Scalar),
    /// `start`, `second`, then `start + i * step` for index i, computed in the output's dtype (`arange`). Integers wrap.
    Arange {
        /// The element at index 0.
        start: Scalar,
        /// The element at index 1. For integers and bool, it is `start + step`.
        second: Scalar,
        /// Difference between the first two elements, rounded. May be infinite.
        step: Scalar,
    },
    /// `start + i * step` for index i, computed in float64 or complex128 and converted to the output's dtype (`linspace`).
    Linspace {
        /// The element at index 0.
        start: Scalar,
        /// End of the range.
        stop: Scalar,
        /// Difference between successive elements.
        step: Scalar,
        /// Number of elements.
        count: usize,
        /// Whether the last element is exactly `stop`.
        endpoint: bool,
    },
    /// An identity matrix or shifted diagonal (`eye`): 1 where column = row + k of a 2-D output, else 0.
    Eye {
        /// Offset of the diagonal from the main diagonal; positive if it is above.
        k: i64,
    },
}

impl KernelRequest for Fill {
    fn family(&self) -> Family {
        Family::Fill
    }
}
