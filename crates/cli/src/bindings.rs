//! `name=...` on the command line: variables for an expression, from files and from expressions.
//!
//! `x=x.npy` is the array of a file, `x=all.npz:member` one of several, `all.npz` every one under its own name,
//! `x=all.npz` the only one (or the one named `x`), and `x='random((3, 4))'` the value of an expression, which may use
//! the variables before it.

use std::path::Path;

use cuprum::expressions::{EvalError, EvalErrorKind, Session, parse_expression};
use cuprum::profiler::Evaluate;
use cuprum::{Value, io};

use crate::failure::Failure;

/// Loads what the words ask for into `session`, in order; nothing is left deferred.
pub fn bind(words: &[String], session: &mut Session) -> Result<(), Failure> {
    for word in words {
        match split(word) {
            Some((name, right)) => {
                let value = value(name, right, session).map_err(|e| e.within(name))?;
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

/// `name=right`, where `name` could be a Python name. `==` belongs to an expression, several statements are a script.
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

fn value(name: &str, right: &str, session: &mut Session) -> Result<Value, Failure> {
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
        // `x=data.bin` parses as an attribute, and `x=../data` does not parse at all: a file was meant.
        _ if Path::new(right).exists() => Err(Failure::input(format!("{right}: not a .npy or .npz file"))),
        Err(_) if right.contains(['/', '\\']) && !right.contains(['(', ' ']) => Err(Failure::input(format!("{right}: no such file"))),
        _ => match session.run(right).map_err(|e| might_be_file(right, e))? {
            Some(value) => {
                value.evaluate()?;
                Ok(value)
            }
            None => Err(Failure::input(format!("'{right}' has no value"))),
        },
    }
}

/// `b.csv` is an attribute of a variable that is not there; more likely a file was meant.
fn might_be_file(right: &str, e: EvalError) -> Failure {
    let named = right.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
    let extension = Path::new(right).extension().is_some_and(|e| (2..=4).contains(&e.len()));
    if e.kind() == EvalErrorKind::Name && named && extension {
        return Failure::input(format!("{right}: no such file, and no expression either; files are .npy or .npz"));
    }
    Failure::from(e)
}

/// One array of a `.npz` file; without `exact`, the only one whatever its name.
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
            Err(Failure::input(format!("{path}: {what} in it; it holds: {}{hint}", names.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_right_sides() {
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
    fn expressions_are_values() {
        let mut session = Session::new();
        bind(&["n=3".into(), "m=n + 1".into(), "s=(n, m)".into()], &mut session).unwrap();
        assert_eq!(cuprum::expressions::repr(session.get("s").unwrap()).unwrap(), "(3, 4)");
        for bad in ["x=nope(", "y", "y=", "y=no_such.npy", "no_such.npz", "y.npy", "y=../no/such/file"] {
            assert!(bind(&[bad.to_string()], &mut session).is_err(), "{bad}");
        }
    }
}
