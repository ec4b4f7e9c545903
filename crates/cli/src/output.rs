//! Standard output and standard error. Writing never panics: what cannot be written to standard output is a failure of the command, and
//! what cannot be written to standard error is left out.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to standard output.
pub fn line(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Writes text to standard output as it is.
pub fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a line to standard error, if it can be written.
pub fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
