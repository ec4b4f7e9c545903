//! How a command ends when it does not succeed: one message, and the exit code. All exit codes are decided here.

use std::fmt;
use std::io::ErrorKind;
use std::process::ExitCode;

use cuprum::expressions::EvalError;

use crate::output;

/// Exit code of a run that failed although its input is right: an accelerator or the system failed, the output could not be written, or
/// a result disagrees.
const FAILED: u8 = 1;
/// Exit code of bad input: the command line, a setting, an expression or a file. What exceeds a limit of memory is bad input too.
const BAD_INPUT: u8 = 2;

/// A failed command.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: Option<String>,
}

impl Failure {
    /// Something in what was given is wrong.
    pub fn input(message: impl fmt::Display) -> Failure {
        Failure { code: BAD_INPUT, message: Some(message.to_string()) }
    }

    /// What was given is right, yet it could not be done.
    pub fn run(message: impl fmt::Display) -> Failure {
        Failure { code: FAILED, message: Some(message.to_string()) }
    }

    /// A result is wrong; what there is to say was said where it was found.
    pub fn disagreement() -> Failure {
        Failure { code: FAILED, message: None }
    }

    /// The message with where it comes from in front: a file, a binding.
    pub fn within(self, place: impl fmt::Display) -> Failure {
        Failure { message: self.message.map(|m| format!("{place}: {m}")), ..self }
    }

    /// Writes the message to standard error; the code is for `main` to return.
    pub fn report(&self) -> ExitCode {
        if let Some(message) = &self.message {
            output::note(format_args!("error: {message}"));
        }
        ExitCode::from(self.code)
    }
}

/// Whether an error is a failure of the run, not of its input.
fn is_failure(e: &cuprum::Error) -> bool {
    use ErrorKind::*;
    match e {
        cuprum::Error::Backend { .. } | cuprum::Error::DeviceLost { .. } => true,
        // A path that is wrong, as opposed to a system that fails.
        cuprum::Error::Io { kind: Some(kind), .. } => {
            !matches!(kind, NotFound | PermissionDenied | IsADirectory | NotADirectory | AlreadyExists | InvalidInput | InvalidFilename)
        }
        _ => false,
    }
}

impl From<cuprum::Error> for Failure {
    fn from(e: cuprum::Error) -> Failure {
        if is_failure(&e) { Failure::run(e) } else { Failure::input(e) }
    }
}

impl From<EvalError> for Failure {
    /// With the source line and a caret.
    fn from(e: EvalError) -> Failure {
        let unknown = e.message().strip_prefix("no variable or function `").and_then(|rest| rest.strip_suffix('`'));
        // Not of `np.name`, which is the library's.
        let variable = unknown.filter(|name| e.help().is_none() && e.span().end - e.span().start == name.len());
        let advice = variable.map(|name| format!("a variable is given as `{name}=file.npy` or `{name}=EXPRESSION`"));
        let e = match advice {
            Some(advice) => e.with_help(advice),
            None => e,
        };
        let cause = std::error::Error::source(&e).and_then(|cause| cause.downcast_ref::<cuprum::Error>());
        let text = e.render();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        if cause.is_some_and(is_failure) { Failure::run(text) } else { Failure::input(text) }
    }
}

impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Failure {
        Failure::run(format!("standard output: {e}"))
    }
}
