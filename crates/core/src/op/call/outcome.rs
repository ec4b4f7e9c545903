//! Answers of kernels: outputs, or a reason to decline.

use std::borrow::Cow;

use super::kernel_modes::wants_reasons;
use crate::array::Outputs;

/// A kernel's answer. A failure is an `Err`. A kernel that does not support a call declines before any side effect.
pub enum Outcome {
    /// The outputs, in the order of [`Call::outputs`](super::Call::outputs).
    Done(Outputs),
    /// The kernel does not take the call; dispatch tries the next one.
    Declined(Reason),
}

/// The reason why a kernel declined. The text is formatted only for `explain` and errors.
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

    /// Returns whether the reason is temporary.
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
    ($fixed:literal) => {
        return Ok($crate::Outcome::Declined($crate::Reason::with_text(|| format!($fixed))))
    };
    ($($t:tt)*) => {
        return Ok($crate::Outcome::Declined($crate::Reason::with_text(|| format!($($t)*))))
    };
}
