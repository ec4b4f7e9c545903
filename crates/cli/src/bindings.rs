//! Bindings on the command line: variables from files and expressions.
//!
//! | binding | variables |
//! |---|---|
//! | `x=x.npy` | the array in the file |
//! | `x=all.npz:member` | one array of the file |
//! | `x=all.npz` | the array named `x`, or the only one in the file |
//! | `all.npz` | every array of the file under its own name |
//! | `x='random((3, 4))'` | the value of an expression, which may use earlier variables |

use std::path::Path;

use cuprum::expressions::{EvalError, EvalErrorKind, Session, parse_expression};
use cuprum::profiler::Evaluate;
use cuprum::{Value, io};

use crate::failure::Failure;

/// Evaluates the bindings in order and sets the variables of `session`. No value is left deferred.
///
/// # Errors
///
/// Returns a failure for a file that cannot be read, an invalid binding, or an error of an expression.
pub fn bind(words: &[String], session: &mut Session) -> Result<(), Failure> {
    for word in words {
        match split(word) {
            Some((name, right)) => {
                let value = binding_value(name, right, session).map_err(|e| e.within(name))?;
                session.set(name, value);
            }
            None if has_extension(word, "npz") => {
                for (name, array) in io::load_npz(word)? {
                    session.set(name, array);
                }
            }
            None if has_extension(word, "npy") => {
                return Err(Failure::input(format!("'{word}' needs a name: `x={word}`")));
            }
            None => {
                let message = format!("'{word}' is not a binding; use name=file.npy, name=file.npz:member, file.npz or name=EXPRESSION");
                return Err(Failure::input(message));
            }
        }
    }
    Ok(())
}

/// Splits a binding `name=right`. Returns `None` if `name` is not an identifier, for `==`, and if `right` has several statements.
pub(crate) fn split(word: &str) -> Option<(&str, &str)> {
    let (name, right) = word.split_once('=')?;
    let mut chars = name.chars();
    let named = chars.next().is_some_and(|c| c.is_alphabetic() || c == '_') && chars.all(|c| c.is_alphanumeric() || c == '_');
    let statements = right.contains([';', '\n']) && !has_extension(right, "npy") && !has_extension(right, "npz");
    (named && !right.starts_with('=') && !statements).then_some((name, right))
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|e| e.eq_ignore_ascii_case(extension))
}

fn binding_value(name: &str, right: &str, session: &mut Session) -> Result<Value, Failure> {
    if has_extension(right, "npy") {
        return Ok(io::load(right)?.into());
    }
    if has_extension(right, "npz") {
        return member(right, name, false);
    }
    if let Some((path, wanted)) = right.rsplit_once(':').filter(|(path, _)| has_extension(path, "npz")) {
        return member(path, wanted, true);
    }
    match parse_expression(right) {
        // `data.bin` also parses as an attribute, and `../data` does not parse, so the file is tested first: existing files are never
        // expressions.
        _ if Path::new(right).exists() => Err(Failure::input(format!("{right}: not a .npy or .npz file"))),
        Err(_) if right.contains(['/', '\\']) && !right.contains(['(', ' ']) => Err(Failure::input(format!("{right}: no such file"))),
        _ => match session.run(right).map_err(|e| missing_file_or_error(right, e))? {
            Some(value) => {
                value.evaluate()?;
                Ok(value)
            }
            None => Err(Failure::input(format!("'{right}' has no value"))),
        },
    }
}

/// Converts the error of the expression `right`. An unknown name with a file extension, such as `b.csv`, is reported as a missing file.
fn missing_file_or_error(right: &str, e: EvalError) -> Failure {
    let named = right.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
    let extension = Path::new(right).extension().is_some_and(|e| (2..=4).contains(&e.len()));
    if e.kind() == EvalErrorKind::Name && named && extension {
        return Failure::input(format!("{right}: no such file, and not a valid expression; files are .npy or .npz"));
    }
    Failure::from(e)
}

/// Loads the array `wanted` of a `.npz` file. Unless `exact`, a file with a single array gives that array regardless of its name.
fn member(path: &str, wanted: &str, exact: bool) -> Result<Value, Failure> {
    let mut members = io::load_npz(path)?;
    let at = members.iter().position(|(name, _)| name == wanted);
    match at {
        Some(at) => Ok(members.swap_remove(at).1.into()),
        None if members.len() == 1 && !exact => Ok(members.swap_remove(0).1.into()),
        None => {
            let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
            let what = if exact { format!("no array '{wanted}'") } else { "several arrays".to_string() };
            let hint = names.first().map(|n| format!("; choose one, such as {path}:{n}")).unwrap_or_default();
            Err(Failure::input(format!("{path}: {what} in this file; it contains: {}{hint}", names.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_are_split_at_the_first_equals_sign() {
        assert_eq!(split("x=a.npy"), Some(("x", "a.npy")));
        assert_eq!(split("x=random((3, 4), seed=1)"), Some(("x", "random((3, 4), seed=1)")));
        assert_eq!(split("x==3"), None);
        assert_eq!(split("sum(a, axis=0)"), None);
        assert_eq!(split("2x=3"), None);
        assert_eq!(split("x=arange(3); x.sum()"), None);
        assert_eq!(split("x=a;b.npy"), Some(("x", "a;b.npy")));
        assert_eq!(split("/tmp/a=b.npz"), None);
    }

    #[test]
    fn bindings_evaluate_expressions() {
        let mut session = Session::new();
        bind(&["n=3".into(), "m=n + 1".into(), "s=(n, m)".into()], &mut session).unwrap();
        assert_eq!(cuprum::expressions::repr(session.get("s").unwrap()).unwrap(), "(3, 4)");
        for bad in ["x=nope(", "y", "y=", "y=no_such.npy", "no_such.npz", "y.npy", "y=../no/such/file"] {
            assert!(bind(&[bad.to_string()], &mut session).is_err(), "{bad}");
        }
    }
}
