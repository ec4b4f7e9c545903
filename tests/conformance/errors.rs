//! Failures of expressions, and the exceptions of NumPy that they correspond to.

use std::error::Error as _;
use std::fmt;

use cuprum::Error;
use cuprum::expressions::{EvalError, EvalErrorKind};

/// Why an expression has no value, or a value cannot be read.
#[derive(Debug)]
pub enum Failure {
    /// An error of the evaluator, such as an unknown name or an operand of another type.
    Expression(EvalErrorKind, String),
    /// An error of the array library.
    Array(Error),
}

/// Name of the exception of cases that cuprum refuses and NumPy does not.
const REFUSED: &str = "Refused";

/// Part of the messages about missing, repeated, unexpected or too many arguments.
const BINDING: &str = "its parameters are (";

/// Exceptions of NumPy for which cuprum has no kind of error. Each is recognised by a part of the error's message.
const BY_MESSAGE: &[(&str, &[&str])] = &[
    ("AttributeError", &["has no attribute"]),
    (
        "IndexError",
        &[
            "a single ellipsis",
            "but that of the mask is",
            "arrays used as indices must be of integer",
            "at least one axis",
            "cannot take from an empty axis",
            "could not be broadcast together",
            "maximum supported dimension",
            "must be an integer array",
            "no elements",
            "not empty",
            "number of dimensions must be within",
            "too many indices",
        ],
    ),
    ("KeyError", &["is not the code of a type", "mode must be one of", "the type is 1, 2, 3 or 4", "unknown requirement"]),
    (
        "LinAlgError",
        &[
            "Incompatible dimensions",
            "must be at least two-dimensional",
            "must be square",
            "must be two-dimensional",
            "must satisfy the requirement",
            "not defined on empty arrays",
        ],
    ),
    ("MemoryError", &["too large"]),
    ("OverflowError", &["is out of bounds for", "negative integer powers", "too large"]),
    ("RuntimeError", &["incompatible numbers of samples and fweights"]),
    (
        "TypeError",
        &[
            BINDING,
            "Axis must be specified",
            "Only lists can be used",
            "are not supported; pass a dtype",
            "argument 'a_max' is missing",
            "array of at least one dimension",
            "at most one axis",
            "cannot accumulate on a scalar",
            "cannot convert a complex number",
            "distances for",
            "expected 1D or 2D",
            "expected a 1-D vector",
            "expected w and y",
            "expected x and y",
            "if supplied, trim",
            "in non-unique mode",
            "must be integer",
            "must be of integral type",
            "need sequence of keys",
            "only supported for booleans",
            "takes one axis",
            "takes one real number",
            "unknown dtype",
            "weighted values",
        ],
    ),
    ("ValueError", &["'str' cannot be assigned", "indices must be integers", "use finfo", "use iinfo"]),
    ("ZeroDivisionError", &["must be larger than 0", "must not be 0", "have no frequencies", "sum to zero"]),
];

impl Failure {
    /// Returns an error unless the failure corresponds to NumPy's `exception`: either its kind or its message must match.
    ///
    /// A failure of an accelerator, a missing kernel or an unknown function corresponds to no exception.
    pub fn check(&self, exception: &str) -> Result<(), String> {
        let exceptions = self.exceptions();
        let message = self.to_string();
        let by_message = || BY_MESSAGE.iter().any(|(name, parts)| *name == exception && parts.iter().any(|part| message.contains(part)));
        let matches = match exceptions {
            [] => false,
            _ if message.contains(BINDING) => ["TypeError", REFUSED].contains(&exception),
            _ => exception == REFUSED || exceptions.contains(&exception) || by_message(),
        };
        if matches { Ok(()) } else { Err(format!("NumPy raises {exception}; got {message}")) }
    }

    /// Returns NumPy's exceptions for this kind of failure. None are returned for failures that are no errors of an argument.
    fn exceptions(&self) -> &'static [&'static str] {
        let error = match self {
            Failure::Expression(EvalErrorKind::Type, _) => return &["TypeError", "UFuncTypeError"],
            Failure::Expression(EvalErrorKind::Value, _) => return &["ValueError"],
            Failure::Expression(EvalErrorKind::Index, _) => return &["IndexError"],
            Failure::Expression(..) => return &[],
            Failure::Array(error) => error,
        };
        match error {
            // NumPy's AxisError is an IndexError and a ValueError.
            Error::Axis { .. } => &["AxisError", "IndexError", "ValueError"],
            Error::Index { .. } => &["IndexError", "ValueError"],
            Error::Shape { .. } | Error::Value { .. } => &["ValueError"],
            Error::DType { .. } => &["TypeError", "UFuncTypeError"],
            Error::OutOfMemory { .. } => &["MemoryError"],
            Error::LinAlg { .. } => &["LinAlgError"],
            _ => &[],
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Expression(kind, message) => write!(f, "{kind:?}: {message}"),
            Failure::Array(error) => error.fmt(f),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Array(error)
    }
}

impl From<EvalError> for Failure {
    fn from(error: EvalError) -> Failure {
        match error.source().and_then(|cause| cause.downcast_ref::<Error>()) {
            Some(cause) => Failure::Array(cause.clone()),
            None => Failure::Expression(error.kind(), error.to_string()),
        }
    }
}
