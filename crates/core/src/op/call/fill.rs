//! Fill: arrays made from nothing.

use super::Request;
use crate::op::Family;
use crate::scalar::Scalar;

/// Values made from nothing, in the output's dtype. Element i is counted in C order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// Anything (`empty`); the kernel may leave memory as it is if reading it is harmless, else zeros.
    Undefined,
    /// One value (`full`, `zeros`, `ones`).
    Constant(Scalar),
    /// `start + i * step`, computed in the output's dtype; integers wrap (`arange`).
    Arange {
        /// Element 0.
        start: Scalar,
        /// Difference of neighbours.
        step: Scalar,
    },
    /// `start + i * step`, computed in float64 (complex128 for complex) and converted; the last element of `count` is `stop` exactly when `endpoint`.
    Linspace {
        /// Element 0.
        start: Scalar,
        /// End of the range.
        stop: Scalar,
        /// Difference of neighbours.
        step: Scalar,
        /// Number of elements.
        count: usize,
        /// Whether `stop` is the last element.
        endpoint: bool,
    },
    /// 1 where column = row + k of a 2-D output, else 0 (`eye`).
    Eye {
        /// The diagonal.
        k: i64,
    },
}

impl Request for Fill {
    fn family(&self) -> Family {
        Family::Fill
    }
}
