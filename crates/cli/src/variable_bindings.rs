//! Bindings on the command line: variables from files and expressions.
//!
//! | binding | variables |
//! |---|---|
//! | `x=x.npy`, `x=table.csv` | the array in the file |
//! | `x=all.npz:member` | one array of the file |
//! | `x=all.npz` | the array named `x`, or the only one in the file |
//! | `all.npz` | every array of the file under its own name |
//! | `x=-`, `x=-.csv`, `x=-:member`, `-` | the same from standard input |
//! | `x='random((3, 4))'` | the value of an expression, which may use earlier variables |
//!
//! A file is any format that [`io::read`] reads. npz and safetensors files have members, whatever their extension. Standard input is named
//! at most once.

use std::io::Read;
use std::path::Path;

use cuprum::expressions::{EvalError, EvalErrorKind, Session, is_keyword, parse_expression};
use cuprum::profiler::Evaluate;
use cuprum::{NdArray, Value, io};

use crate::failure::Failure;

/// The file name that means standard input or output. An extension names the format: `-.csv`.
const STANDARD_STREAM_NAME: &str = "-";

/// Returns whether `path` is `-`, or `-` with the extension of a format.
pub(crate) fn is_standard_stream(path: &str) -> bool {
    path == STANDARD_STREAM_NAME || has_format_extension(path) && Path::new(path).with_extension("") == Path::new(STANDARD_STREAM_NAME)
}

/// Evaluates the bindings in order and sets the variables of `session`. Values of expressions are computed before the function returns.
///
/// # Errors
///
/// Returns a failure for a file that cannot be read, an invalid binding, or an error of an expression.
pub fn bind_variables(words: &[String], session: &mut Session) -> Result<(), Failure> {
    let mut readers = words.iter().filter(|word| reads_standard_input(word));
    if let (Some(first), Some(second)) = (readers.next(), readers.next()) {
        return Err(Failure::bad_input(format!(
            "standard input can be read once, but '{first}' and '{second}' name it; `-` binds each array of an npz stream to its own name"
        )));
    }
    for word in words {
        match split_binding(word) {
            Some((name, _)) if is_keyword(name) => {
                return Err(Failure::bad_input(format!("'{word}': `{name}` is a reserved word and cannot name a variable")));
            }
            Some((name, right)) => {
                let value = evaluate_binding(name, right, session).map_err(|e| e.with_origin(name))?;
                session.set(name, value);
            }
            None if has_archive_extension(word) || is_standard_stream(word) => {
                let arrays = if is_standard_stream(word) { read_standard_input(word)? } else { io::read_named(word)? };
                for (name, array) in arrays {
                    if name.is_empty() {
                        return Err(Failure::bad_input(format!("'{word}' needs a name: `x={word}`")));
                    }
                    session.set(name, array);
                }
            }
            None if has_format_extension(word) => {
                return Err(Failure::bad_input(format!("'{word}' needs a name: `x={word}`")));
            }
            None => {
                let message = format!("'{word}' is not a binding; use name=file.npy, name=file.npz:member, file.npz or name=EXPRESSION");
                return Err(Failure::bad_input(message));
            }
        }
    }
    Ok(())
}

/// Returns the size of all files that `words` bind, in bytes. Returns `None` if a size is unknown, as for standard input.
pub(crate) fn total_file_size(words: &[String]) -> Option<u64> {
    let mut total = 0;
    for word in words {
        if reads_standard_input(word) {
            return None;
        }
        total += std::fs::metadata(path_of_binding(word)).map_or(0, |m| m.len());
    }
    Some(total)
}

/// Returns whether the binding `word` reads standard input.
pub(crate) fn reads_standard_input(word: &str) -> bool {
    is_standard_stream(path_of_binding(word))
}

/// Returns the path in the binding `word`, without the name of a member.
fn path_of_binding(word: &str) -> &str {
    let path = split_binding(word).map_or(word, |(_, right)| right);
    split_archive_member(path).map_or(path, |(path, _)| path)
}

/// Splits a binding `name=right`. Returns `None` if `name` is not an identifier, if the `=` is part of `==`, or if `right` has several
/// statements.
pub(crate) fn split_binding(word: &str) -> Option<(&str, &str)> {
    let (name, right) = word.split_once('=')?;
    let mut chars = name.chars();
    let named =
        chars.next().is_some_and(|c| c.is_alphabetic() || c == '_') && chars.all(|c| c.is_alphabetic() || c.is_ascii_digit() || c == '_');
    let statements = right.contains([';', '\n', '\r']) && !has_format_extension(right);
    (named && !right.starts_with('=') && !statements).then_some((name, right))
}

/// Returns whether the extension of `path` names a file format of arrays.
fn has_format_extension(path: &str) -> bool {
    io::Format::of_path(path).is_some()
}

/// Returns whether the extension of `path` names a format with members.
pub(crate) fn has_archive_extension(path: &str) -> bool {
    io::Format::of_path(path).is_some_and(io::Format::has_names)
}

/// Splits `file.npz:member` and `-:member` into file and member, which may contain `:`. The file may have any name if it exists. Returns
/// `None` for any other text.
fn split_archive_member(right: &str) -> Option<(&str, &str)> {
    let mut splits = right.match_indices(':').map(|(at, _)| (&right[..at], &right[at + 1..]));
    let is_file = |path: &str| std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_dir());
    splits.find(|(path, _)| has_archive_extension(path) || is_standard_stream(path) || is_file(path))
}

/// Reads the arrays on standard input. `path` is `-`, or `-` with an extension that names the format.
fn read_standard_input(path: &str) -> Result<Vec<(String, NdArray)>, Failure> {
    let mut stream = std::io::stdin().lock();
    let arrays = match io::Format::of_path(path) {
        Some(format) => io::read_stream_as(&mut stream, format),
        None => io::read_stream(&mut stream),
    };
    arrays.map_err(|e| match e {
        cuprum::Error::Io { message, kind, .. } => cuprum::Error::Io { path: "standard input".into(), message, kind }.into(),
        e => Failure::from(e).with_origin("standard input"),
    })
}

fn evaluate_binding(name: &str, right: &str, session: &mut Session) -> Result<Value, Failure> {
    if let Some((path, wanted)) = split_archive_member(right) {
        return read_named_or_only_array(path, wanted, true);
    }
    // `data.bin` also parses as an attribute, and `../data` does not parse, so the file is tested first: existing files are never
    // expressions.
    if is_standard_stream(right) || has_archive_extension(right) || Path::new(right).exists() {
        return read_named_or_only_array(right, name, false);
    }
    match parse_expression(right) {
        parsed if has_format_extension(right) && (parsed.is_err() || has_extension(right, "npy")) => {
            read_named_or_only_array(right, name, false)
        }
        Err(_) if right.contains(['/', '\\']) && !right.contains(['(', ' ']) => Err(Failure::bad_input(format!("{right}: no such file"))),
        _ => match session.run(right).map_err(|e| explain_if_missing_file(right, e))? {
            Some(value) => {
                value.evaluate()?;
                Ok(value)
            }
            None => Err(Failure::bad_input(format!("'{right}' has no value"))),
        },
    }
}

/// Returns the format that the contents of a regular file show. Returns `None` for text, and for pipes, which can be read only once.
fn format_of_contents(path: &str) -> Option<io::Format> {
    if !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let mut start = Vec::new();
    std::fs::File::open(path).ok()?.take(9).read_to_end(&mut start).ok()?;
    io::Format::from_first_bytes(&start)
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|e| e.eq_ignore_ascii_case(extension))
}

/// Converts the error of the expression `right`. An unknown name with a file extension, such as `b.csv`, is reported as a missing file.
fn explain_if_missing_file(right: &str, e: EvalError) -> Failure {
    let named = right.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
    let extension = Path::new(right).extension().is_some_and(|e| (2..=4).contains(&e.len()));
    if e.kind() == EvalErrorKind::Name && named && extension {
        return Failure::bad_input(format!(
            "{right}: no such file, and not a valid expression; files are .npy, .npz, .safetensors, .csv, .tsv or .txt"
        ));
    }
    Failure::from(e)
}

/// A source of arrays: a file whose arrays are read one by one, or the arrays that were read from a pipe or from a file of one array.
enum NamedArraySource {
    Npz(io::Npz),
    Safetensors(io::Safetensors),
    Arrays(Vec<(String, NdArray)>),
}

impl NamedArraySource {
    /// Opens a file. As in [`io::read`], its contents decide on the format, else its extension.
    fn open_archive(path: &str) -> Result<NamedArraySource, Failure> {
        if is_standard_stream(path) {
            return Ok(NamedArraySource::Arrays(read_standard_input(path)?));
        }
        Ok(match format_of_contents(path) {
            Some(io::Format::Npz) => NamedArraySource::Npz(io::Npz::open(path)?),
            Some(io::Format::Safetensors) => NamedArraySource::Safetensors(io::Safetensors::open(path)?),
            _ => NamedArraySource::Arrays(io::read_named(path)?),
        })
    }

    fn array_names(&self) -> Vec<String> {
        match self {
            NamedArraySource::Npz(file) => file.names().map(str::to_string).collect(),
            NamedArraySource::Safetensors(file) => file.names().map(str::to_string).collect(),
            NamedArraySource::Arrays(arrays) => arrays.iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    fn read_array(&self, name: &str) -> Result<NdArray, Failure> {
        match self {
            NamedArraySource::Npz(file) => Ok(file.read(name)?),
            NamedArraySource::Safetensors(file) => Ok(file.read(name)?),
            NamedArraySource::Arrays(arrays) => {
                let found = arrays.iter().find(|(n, _)| n == name).map(|(_, array)| array.clone());
                found.ok_or_else(|| Failure::bad_input(format!("no array '{name}'")))
            }
        }
    }
}

/// Reads the array named `wanted` from a file of named arrays. If the file has only one array and `exact` is not set, returns this array
/// whatever its name.
fn read_named_or_only_array(path: &str, wanted: &str, exact: bool) -> Result<Value, Failure> {
    let archive = NamedArraySource::open_archive(path)?;
    let names = archive.array_names();
    if names.iter().any(|name| name == wanted) {
        return Ok(archive.read_array(wanted)?.into());
    }
    if let ([only], false) = (names.as_slice(), exact) {
        return Ok(archive.read_array(only)?.into());
    }
    if names.is_empty() {
        return Err(Failure::bad_input(format!("{path}: the file has no array")));
    }
    let what = if exact { format!("no array '{}'", io::escape_control_characters(wanted)) } else { "several arrays".to_string() };
    if names.iter().all(String::is_empty) {
        return Err(Failure::bad_input(format!("{path}: {what} in this file; its array has no name")));
    }
    let hint = names.first().map(|n| format!("; choose one, such as {path}:{}", io::escape_control_characters(n))).unwrap_or_default();
    let list = io::join_first_names(names.iter().map(String::as_str));
    Err(Failure::bad_input(format!("{path}: {what} in this file; it contains: {list}{hint}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_are_split_at_the_first_equals_sign() {
        assert_eq!(split_binding("x=a.npy"), Some(("x", "a.npy")));
        assert_eq!(split_binding("x=random((3, 4), seed=1)"), Some(("x", "random((3, 4), seed=1)")));
        assert_eq!(split_binding("x==3"), None);
        assert_eq!(split_binding("sum(a, axis=0)"), None);
        assert_eq!(split_binding("2x=3"), None);
        assert_eq!(split_binding("x=arange(3); x.sum()"), None);
        assert_eq!(split_binding("x=a;b.npy"), Some(("x", "a;b.npy")));
        assert_eq!(split_binding("/tmp/a=b.npz"), None);
        assert_eq!(split_binding("x=-"), Some(("x", "-")));
    }

    #[test]
    fn standard_input_may_have_a_format() {
        for (path, standard) in
            [("-", true), ("-.csv", true), ("-.NPZ", true), ("-.5", false), ("./-.csv", false), ("--.csv", false), ("-x", false)]
        {
            assert_eq!(is_standard_stream(path), standard, "{path}");
        }
    }

    #[test]
    fn members_are_split_after_the_extension() {
        assert_eq!(split_archive_member("u.npz:a:b"), Some(("u.npz", "a:b")));
        assert_eq!(split_archive_member("d:u.npz:a"), Some(("d:u.npz", "a")));
        assert_eq!(split_archive_member("-.npz:a"), Some(("-.npz", "a")));
        assert_eq!(split_archive_member("x[1:2]"), None);
    }

    #[test]
    fn bindings_evaluate_expressions() {
        let mut session = Session::new();
        bind_variables(&["n=3".into(), "m=n + 1".into(), "s=(n, m)".into()], &mut session).unwrap();
        assert_eq!(cuprum::expressions::repr(session.get("s").unwrap()).unwrap(), "(3, 4)");
        for bad in ["x=nope(", "y", "y=", "y=no_such.npy", "no_such.npz", "y.npy", "y=../no/such/file"] {
            assert!(bind_variables(&[bad.to_string()], &mut session).is_err(), "{bad}");
        }
    }
}
