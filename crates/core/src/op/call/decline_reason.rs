//! The reason why a kernel declines a call.

use std::borrow::Cow;

use super::kernel_modes::wants_decline_reasons;

/// The reason why a kernel declined. The text is formatted only inside [`explain`](crate::explain) or for an error.
pub struct DeclineReason {
    text: Cow<'static, str>,
    retryable: bool,
}

impl DeclineReason {
    /// Creates a reason with a fixed text.
    pub fn new(text: &'static str) -> DeclineReason {
        DeclineReason { text: Cow::Borrowed(text), retryable: false }
    }

    /// Creates a reason that is temporary, such as a kernel still compiling.
    ///
    /// If all other kernels decline, dispatch retries the kernel under [`CompileMode::Wait`](crate::settings::CompileMode::Wait).
    pub fn new_retryable(text: &'static str) -> DeclineReason {
        DeclineReason { text: Cow::Borrowed(text), retryable: true }
    }

    /// Creates a reason with a formatted text. `text` is called only inside [`explain`](crate::explain) or for an error.
    pub fn with_text(text: impl FnOnce() -> String) -> DeclineReason {
        let text = if wants_decline_reasons() { Cow::Owned(text()) } else { Cow::Borrowed("declined") };
        DeclineReason { text, retryable: false }
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

impl From<&'static str> for DeclineReason {
    fn from(text: &'static str) -> DeclineReason {
        DeclineReason::new(text)
    }
}

/// Returns from a kernel with [`Outcome::Declined`](crate::Outcome::Declined): `decline!("why")` or `decline!("n is {n}")`.
#[macro_export]
macro_rules! decline {
    ($($t:tt)*) => {
        return Ok($crate::Outcome::Declined($crate::DeclineReason::with_text(|| format!($($t)*))))
    };
}
