//! Evaluation errors without a source position, which the evaluator adds.

use cuprum_core::Error;

use crate::error::{EvalError, EvalErrorKind};
use crate::span::Span;

/// An [`EvalError`] without its source position. Boxed to keep `Result`s and the stack frames of recursive functions small.
#[derive(Debug)]
pub(crate) struct UnlocatedError(Box<UnlocatedErrorParts>);

#[derive(Debug)]
struct UnlocatedErrorParts {
    kind: EvalErrorKind,
    message: String,
    help: Option<String>,
    cause: Option<Error>,
}

/// Result of a function that does not know the source position.
pub(crate) type Unlocated<T> = Result<T, UnlocatedError>;

impl UnlocatedError {
    fn new(kind: EvalErrorKind, message: impl Into<String>) -> UnlocatedError {
        UnlocatedError(Box::new(UnlocatedErrorParts { kind, message: message.into(), help: None, cause: None }))
    }

    pub(crate) fn name_error(message: impl Into<String>) -> UnlocatedError {
        UnlocatedError::new(EvalErrorKind::Name, message)
    }

    pub(crate) fn type_error(message: impl Into<String>) -> UnlocatedError {
        UnlocatedError::new(EvalErrorKind::Type, message)
    }

    pub(crate) fn value_error(message: impl Into<String>) -> UnlocatedError {
        UnlocatedError::new(EvalErrorKind::Value, message)
    }

    pub(crate) fn index_error(message: impl Into<String>) -> UnlocatedError {
        UnlocatedError::new(EvalErrorKind::Index, message)
    }

    /// Adds advice on what to write instead.
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> UnlocatedError {
        self.0.help = Some(help.into());
        self
    }

    /// Returns the error with the source position `span` of `source`.
    pub(crate) fn at(self, source: &str, span: Span) -> EvalError {
        let UnlocatedErrorParts { kind, message, help, cause } = *self.0;
        let error = match cause {
            Some(cause) => EvalError::from_array_error(source, span, cause),
            None => EvalError::new(kind, source, span, message),
        };
        match help {
            Some(help) => error.with_help(help),
            None => error,
        }
    }
}

impl From<Error> for UnlocatedError {
    fn from(cause: Error) -> UnlocatedError {
        let mut error = UnlocatedError::new(EvalErrorKind::Array, "");
        error.0.cause = Some(cause);
        error
    }
}
