//! Errors about invalid file contents, and the addition of file names to errors.

use std::path::Path;

use cuprum_core::Error;

/// Returns the error for invalid file contents. The caller adds the file's name.
pub(crate) fn file_format_error(message: impl std::fmt::Display) -> Error {
    Error::io("", message)
}

/// Returns the error of a read or write. The caller adds the file's name.
pub(crate) fn convert_system_error(e: std::io::Error) -> Error {
    Error::system("", e)
}

/// Returns `e` with `path` as its file name, if `e` is an [`Error::Io`]. An earlier name, such as that of an archive member, moves to the
/// start of the message.
pub(crate) fn add_path_to_error(path: &Path, e: Error) -> Error {
    match e {
        Error::Io { message, path: member, kind } => {
            let message = if member.is_empty() { message } else { format!("{member}: {message}") };
            Error::Io { path: path.display().to_string(), message, kind }
        }
        e => e,
    }
}
