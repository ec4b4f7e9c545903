//! Evaluation errors without a source position, which the evaluator adds.

use cuprum_core::Error;

use crate::error::{EvalError, EvalErrorKind};
use crate::span::Span;

/// An [`EvalError`] without its source position. Boxed to keep `Result`s and the stack frames of recursive functions small.
#[derive(Debug)]
pub(crate) struct Fault(Box<FaultParts>);

#[derive(Debug)]
struct FaultParts {
    kind: EvalErrorKind,
    message: String,
    help: Option<String>,
    cause: Option<Error>,
}

/// Result of a function that does not know the source position.
pub(crate) type Checked<T> = Result<T, Fault>;

impl Fault {
    fn new(kind: EvalErrorKind, message: impl Into<String>) -> Fault {
        Fault(Box::new(FaultParts { kind, message: message.into(), help: None, cause: None }))
    }

    pub(crate) fn name_error(message: impl Into<String>) -> Fault {
        Fault::new(EvalErrorKind::Name, message)
    }

    pub(crate) fn type_error(message: impl Into<String>) -> Fault {
        Fault::new(EvalErrorKind::Type, message)
    }

    pub(crate) fn value_error(message: impl Into<String>) -> Fault {
        Fault::new(EvalErrorKind::Value, message)
    }

    pub(crate) fn index_error(message: impl Into<String>) -> Fault {
        Fault::new(EvalErrorKind::Index, message)
    }

    /// Adds advice on what to write instead.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Fault {
        self.0.help = Some(help.into());
        self
    }

    /// Returns the error with the source position `span` of `source`.
    pub(crate) fn at(self, source: &str, span: Span) -> EvalError {
        let FaultParts { kind, message, help, cause } = *self.0;
        let error = match cause {
            Some(cause) => EvalError::array(source, span, cause),
            None => EvalError::new(kind, source, span, message),
        };
        match help {
            Some(help) => error.with_help(help),
            None => error,
        }
    }
}

impl From<Error> for Fault {
    fn from(cause: Error) -> Fault {
        let mut fault = Fault::new(EvalErrorKind::Array, "");
        fault.0.cause = Some(cause);
        fault
    }
}
