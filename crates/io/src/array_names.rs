//! Names of the arrays in a file.

use std::collections::HashSet;

use cuprum_core::Result;

use crate::errors::file_format_error;

/// Checks that no name occurs twice.
///
/// # Errors
/// [`Error::Io`](cuprum_core::Error::Io) without the name of a file, which the caller adds.
pub(crate) fn check_unique_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<()> {
    let mut seen = HashSet::new();
    match names.into_iter().find(|name| !seen.insert(*name)) {
        Some(name) => Err(file_format_error(format!("two arrays have the name {name:?}"))),
        None => Ok(()),
    }
}

/// Returns the message for a file without an array `name`. It lists the first names that the file has.
pub(crate) fn no_such_array_message<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    format!("no array {name:?} in this file; it contains: {}", join_first_names(names))
}

/// Returns the first names, separated by commas. Control characters are escaped, because messages reach terminals.
pub fn join_first_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MAX_LISTED_NAMES: usize = 20;
    let mut names: Vec<String> = names.take(MAX_LISTED_NAMES + 1).map(escape_control_characters).collect();
    if names.len() > MAX_LISTED_NAMES {
        names[MAX_LISTED_NAMES] = "...".into();
    }
    names.join(", ")
}

/// Returns `text` with control characters as Rust's escapes, such as `\n` and `\u{1b}`.
pub fn escape_control_characters(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { escaped.extend(c.escape_default()) } else { escaped.push(c) }
    }
    escaped
}
