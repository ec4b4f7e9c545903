//! Tables, and writing to standard output and standard error without panics. A write error on standard output makes the command fail; a
//! write error on standard error is ignored.

use std::fmt::Display;
use std::io::{self, Write};

use comfy_table::{Table, presets};

/// Writes a line to standard output.
///
/// # Errors
///
/// Returns the error of the write.
pub fn print_line(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Writes text to standard output without a newline.
///
/// # Errors
///
/// Returns the error of the write.
pub fn print_text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a line to standard error, ignoring write errors.
pub fn print_error_line(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Returns an empty table with the column titles `header` and without borders.
pub fn empty_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(header);
    table
}
