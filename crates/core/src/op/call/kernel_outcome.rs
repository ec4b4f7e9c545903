//! The answer of a kernel to a call: the outputs, or the reason why the kernel declines.

use super::decline_reason::DeclineReason;
use crate::array::Outputs;

/// The answer of a kernel to a call. A kernel that does not support the call declines before any side effect. A kernel that fails returns
/// an `Err` instead of an outcome.
pub enum Outcome {
    /// The outputs, in the order of [`Call::outputs`](super::Call::outputs).
    Done(Outputs),
    /// The kernel does not support the call. Dispatch tries the next kernel.
    Declined(DeclineReason),
}
