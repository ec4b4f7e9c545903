//! Failures of a command: error message and exit code.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use cuprum::expressions::EvalError;
use cuprum::io::escape_control_characters;

use crate::terminal_output;

/// Exit code of a failure with valid input: an accelerator or the system failed, output could not be written, or a result disagrees.
const FAILED_EXIT_CODE: u8 = 1;
/// Exit code for bad input: the command line, a setting, an expression or a file. Exceeding a memory limit counts as bad input too.
const BAD_INPUT_EXIT_CODE: u8 = 2;

/// The failure of a command, with its message and exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: Option<String>,
}

impl Failure {
    /// Creates a failure for bad input.
    pub fn bad_input(message: impl fmt::Display) -> Failure {
        Failure { code: BAD_INPUT_EXIT_CODE, message: Some(message.to_string()) }
    }

    /// Creates a failure of a run whose input is valid.
    pub fn failed_run(message: impl fmt::Display) -> Failure {
        Failure { code: FAILED_EXIT_CODE, message: Some(message.to_string()) }
    }

    /// Creates a failure for a wrong result. It has no message, because the report already shows the result.
    pub fn wrong_result() -> Failure {
        Failure { code: FAILED_EXIT_CODE, message: None }
    }

    /// Creates a failure for an error of the file `path`. A wrong path and invalid contents are bad input.
    pub fn of_file(path: impl AsRef<Path>, e: std::io::Error) -> Failure {
        // Errors of the system have an OS error code. An error without one is about the contents.
        Failure::from(if e.raw_os_error().is_some() { cuprum::Error::system(path, e) } else { cuprum::Error::io(path, e) })
    }

    /// Prefixes the message with its origin, such as a file or a binding.
    pub fn with_origin(self, origin: impl fmt::Display) -> Failure {
        Failure { message: self.message.map(|m| format!("{origin}: {m}")), ..self }
    }

    /// Writes the message to standard error and returns the exit code. Control characters, such as those in names of files, are escaped.
    pub fn print_and_get_exit_code(&self) -> ExitCode {
        if let Some(message) = &self.message {
            let lines: Vec<String> = message.split('\n').map(escape_control_characters).collect();
            terminal_output::print_error_line(format_args!("error: {}", lines.join("\n")));
        }
        ExitCode::from(self.code)
    }
}

/// Returns whether `e` is a failure of the run rather than of its input.
fn is_run_failure(e: &cuprum::Error) -> bool {
    match e {
        cuprum::Error::Backend { .. } | cuprum::Error::DeviceLost { .. } | cuprum::Error::Rank { .. } => true,
        cuprum::Error::Io { kind: Some(kind), .. } => !is_wrong_path(*kind),
        _ => false,
    }
}

/// Returns whether an I/O error of this kind means a wrong path, which is bad input. Other kinds are failures of the system.
fn is_wrong_path(kind: ErrorKind) -> bool {
    use ErrorKind::*;
    // The kind of a loop of symbolic links has no stable name.
    #[cfg(unix)]
    if kind == std::io::Error::from_raw_os_error(libc::ELOOP).kind() {
        return true;
    }
    let is_missing = matches!(kind, NotFound | IsADirectory | NotADirectory | InvalidInput | InvalidFilename);
    is_missing || matches!(kind, PermissionDenied | ReadOnlyFilesystem | AlreadyExists)
}

impl From<cuprum::Error> for Failure {
    fn from(e: cuprum::Error) -> Failure {
        if is_run_failure(&e) { Failure::failed_run(e) } else { Failure::bad_input(e) }
    }
}

impl From<EvalError> for Failure {
    /// Converts an evaluation error. The message includes the source line with a caret.
    fn from(e: EvalError) -> Failure {
        let unknown = e.message().strip_prefix("no variable or function `").and_then(|rest| rest.strip_suffix('`'));
        // A name with a prefix such as `np.` is a name of the library, so it is not reported as a missing variable.
        let variable = unknown.filter(|name| e.help().is_none() && e.span().end - e.span().start == name.len());
        let advice = variable.map(|name| format!("define a variable by `{name}=file.npy` or `{name}=EXPRESSION`"));
        let e = match advice {
            Some(advice) => e.with_help(advice),
            None => e,
        };
        let cause = std::error::Error::source(&e).and_then(|cause| cause.downcast_ref::<cuprum::Error>());
        let text = e.render();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        if cause.is_some_and(is_run_failure) { Failure::failed_run(text) } else { Failure::bad_input(text) }
    }
}

impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Failure {
        Failure::failed_run(format!("standard output: {e}"))
    }
}
