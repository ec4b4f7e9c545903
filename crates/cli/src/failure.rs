//! How a command ends when it does not succeed: one message, and the exit code.

use std::fmt;
use std::process::ExitCode;

use cuprum::expressions::EvalError;

/// A failed command. Exit code 2 is bad input, 1 a run that failed or a result that disagrees.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: Option<String>,
}

impl Failure {
    /// Something in what was given is wrong.
    pub fn input(message: impl fmt::Display) -> Failure {
        Failure { code: 2, message: Some(message.to_string()) }
    }

    /// What was given is right, yet it could not be done.
    pub fn run(message: impl fmt::Display) -> Failure {
        Failure { code: 1, message: Some(message.to_string()) }
    }

    /// A result is wrong; what there is to say was said where it was found.
    pub fn disagreement() -> Failure {
        Failure { code: 1, message: None }
    }

    /// The message with where it comes from in front: a file, a binding.
    pub fn within(self, place: impl fmt::Display) -> Failure {
        Failure { message: self.message.map(|m| format!("{place}: {m}")), ..self }
    }

    /// Writes the message to standard error; the code is for `main` to return.
    pub fn report(&self) -> ExitCode {
        use std::io::Write;
        if let Some(message) = &self.message {
            // Nobody is left to tell if standard error is closed.
            let _ = writeln!(std::io::stderr(), "error: {message}");
        }
        ExitCode::from(self.code)
    }
}

impl From<cuprum::Error> for Failure {
    /// A failing accelerator or device is the run's fault; everything else follows from the input.
    fn from(e: cuprum::Error) -> Failure {
        match e {
            cuprum::Error::Backend { .. } | cuprum::Error::DeviceLost { .. } => Failure::run(e),
            _ => Failure::input(e),
        }
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
        match cause {
            Some(cuprum::Error::Backend { .. } | cuprum::Error::DeviceLost { .. }) => Failure::run(text),
            _ => Failure::input(text),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Failure {
        Failure::run(format!("standard output: {e}"))
    }
}
