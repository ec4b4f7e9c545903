//! The answer of a kernel to a call: the outputs, or the reason why the kernel declines.

use std::borrow::Cow;

use super::kernel_modes::wants_reasons;
use crate::array::Outputs;

/// The answer of a kernel to a call. A kernel that does not support the call declines before any side effect. A kernel that fails returns
/// an `Err` instead of an outcome.
pub enum Outcome {
    /// The outputs, in the order of [`Call::outputs`](super::Call::outputs).
    Done(Outputs),
    /// The kernel does not take the call. Dispatch tries the next kernel.
    Declined(Reason),
}

/// The reason why a kernel declined. The text is formatted only inside [`explain`](crate::explain) or for an error.
pub struct Reason {
    text: Cow<'static, str>,
    retryable: bool,
}

impl Reason {
    /// Creates a reason with a fixed text.
    pub fn new(text: &'static str) -> Reason {
        Reason { text: Cow::Borrowed(text), retryable: false }
    }

    /// Creates a reason that is temporary, such as a kernel still compiling.
    ///
    /// If all other kernels decline, dispatch retries the kernel under [`CompileMode::Wait`](crate::settings::CompileMode::Wait).
    pub fn retryable(text: &'static str) -> Reason {
        Reason { text: Cow::Borrowed(text), retryable: true }
    }

    /// Creates a reason with a formatted text. `text` is called only inside [`explain`](crate::explain) or for an error.
    pub fn with_text(text: impl FnOnce() -> String) -> Reason {
        let text = if wants_reasons() { Cow::Owned(text()) } else { Cow::Borrowed("declined") };
        Reason { text, retryable: false }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the reason is temporary, such as a kernel still compiling.
    pub(crate) fn is_retryable(&self) -> bool {
        self.retryable
    }
}

impl From<&'static str> for Reason {
    fn from(text: &'static str) -> Reason {
        Reason::new(text)
    }
}

/// Returns from a kernel with [`Outcome::Declined`]: `decline!("why")` or `decline!("n is {n}")`.
#[macro_export]
macro_rules! decline {
    ($($t:tt)*) => {
        return Ok($crate::Outcome::Declined($crate::Reason::with_text(|| format!($($t)*))))
    };
}
