//! `cuprum eval`: an expression or a script over named arrays; the result printed or written.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use cuprum::core::device::driver;
use cuprum::expressions::{self, Session, ast::Script, ast::StmtKind, functions};
use cuprum::profiler::Evaluate;
use cuprum::{Device, NdArray, Stream, Value, explain, io};

use crate::bindings::bind;
use crate::failure::Failure;
use crate::output;
use crate::place::Place;

const EXAMPLES: &str = "\
Examples:
  cuprum eval 'sqrt(sum(a**2, axis=-1))' a=a.npy -o norms.npy
  cuprum eval 'a @ b.T' all.npz --device cuda --explain --time
  cuprum eval 'x[::-1] * n' x=all.npz:x n=3
  cuprum eval --file script.txt x=x.npz -o out.npz      every assigned name goes to out.npz

An expression that begins with a minus goes behind `--`:  cuprum eval x=x.npy -- '-x'";

/// Work out a NumPy expression over named arrays.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The expression (unless --file gives it), and variables: name=file.npy, name=file.npz:member, file.npz, name=EXPRESSION
    #[arg(value_name = "EXPR | NAME=VALUE")]
    words: Vec<String>,
    /// Read the expressions from a file; - is standard input
    #[arg(short, long, value_name = "SCRIPT")]
    file: Option<PathBuf>,
    /// Write the result to a .npy file, or every assigned name to a .npz file, instead of printing
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// Say which accelerator did each call, and which declined and why
    #[arg(long)]
    explain: bool,
    /// Say how long it took
    #[arg(long)]
    time: bool,
    /// List the functions that an expression can call
    #[arg(long)]
    functions: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.functions {
        return list_functions();
    }
    let output = arguments.output.as_deref().map(Output::new).transpose()?;
    let (source, words) = source(arguments)?;
    let script = expressions::parse(&source).map_err(expressions::EvalError::from)?;
    if script.statements.is_empty() && arguments.file.is_none() {
        return Err(Failure::input("the expression is empty"));
    }
    arguments.place.apply()?;

    let mut session = Session::new();
    let printed = Arc::new(Mutex::new(Ok(())));
    let of_session = printed.clone();
    session.on_print(move |line| {
        let mut printed = of_session.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.is_ok() {
            *printed = output::line(line);
        }
    });
    let before = Instant::now();
    bind(&words, &mut session)?;
    let device = Device::current()?;
    driver(device)?.synchronize()?;
    let loaded = before.elapsed();

    let work = || compute(&script, &mut session, &output);
    let (result, took, records) = timed(device, work)?;
    let result = result?;
    std::mem::replace(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner), Ok(()))?;

    let before = Instant::now();
    match &output {
        Some(output) => output.write(&result)?,
        None => print(&result)?,
    }
    let written = before.elapsed();
    // Standard error after the file is there, so that a reader who leaves cannot stop it half-way.
    if arguments.explain {
        records.iter().for_each(output::note);
    }
    if arguments.time {
        let ms = |t: std::time::Duration| t.as_secs_f64() * 1e3;
        output::note(format_args!(
            "inputs {:.3} ms; computed in {:.3} ms on {device} (host {:.3} ms); output {:.3} ms",
            ms(loaded),
            took.device_ms,
            took.host_ms,
            ms(written)
        ));
    }
    Ok(())
}

/// The script's text, and the words that are bindings.
fn source(arguments: &Arguments) -> Result<(String, Vec<String>), Failure> {
    let Some(path) = &arguments.file else {
        // With `--`, the expression may come last; else it comes first.
        return match arguments.words.iter().position(|word| !is_binding(word)) {
            Some(at) => {
                let mut words = arguments.words.clone();
                let expression = words.remove(at);
                Ok((expression, words))
            }
            None => Err(Failure::input(match arguments.words.first() {
                Some(word) if !word.contains(".np") => {
                    format!("no expression: '{word}' is a variable for one; an assignment has spaces around its `=`")
                }
                _ => "no expression: give one, or a script with --file; `cuprum eval --help` shows examples".to_string(),
            })),
        };
    };
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map_err(|e| Failure::input(format!("standard input: {e}")))?;
    } else {
        text = std::fs::read_to_string(path).map_err(|e| Failure::input(format!("{}: {e}", path.display())))?;
    }
    Ok((text, arguments.words.clone()))
}

fn is_binding(word: &str) -> bool {
    crate::bindings::split(word).is_some() || Path::new(word).extension().is_some_and(|e| e.eq_ignore_ascii_case("npz"))
}

/// What a script leaves: values to print or arrays to write, computed but not waited for.
enum Outcome {
    Value(Value),
    Names(Vec<(String, Value)>),
}

fn compute(script: &Script, session: &mut Session, output: &Option<Output>) -> Result<Outcome, Failure> {
    let last = session.run_script(script)?;
    let assigned = || session.assigned().iter().filter_map(|name| Some((name.clone(), session.get(name)?.clone())));
    let outcome = match (output, last) {
        (Some(Output::Npz(_)), last) if session.assigned().is_empty() => {
            // NumPy's savez names arrays given without a name like this.
            Outcome::Names(last.map(|value| ("arr_0".to_string(), value)).into_iter().collect())
        }
        (Some(Output::Npz(_)), _) => Outcome::Names(assigned().collect()),
        (_, Some(value)) => Outcome::Value(value),
        // A .npy file takes the value that the last statement assigned.
        (Some(Output::Npy(_)), None) => match last_assigned(script).and_then(|name| session.get(name)) {
            Some(value) => Outcome::Value(value.clone()),
            None => return Err(Failure::input("nothing to write: the script gives no value")),
        },
        (None, None) => Outcome::Names(assigned().collect()),
    };
    match &outcome {
        Outcome::Value(value) => value.evaluate()?,
        Outcome::Names(values) => {
            values.iter().try_for_each(|(name, value)| value.evaluate().map_err(|e| Failure::from(e).within(name)))?
        }
    }
    Ok(outcome)
}

fn last_assigned(script: &Script) -> Option<&str> {
    match &script.statements.last()?.kind {
        StmtKind::Expr(_) => None,
        _ => script.assigned_names().last().copied(),
    }
}

struct Took {
    host_ms: f64,
    device_ms: f64,
}

/// Runs `work` once, listening to the chain, between two events of the device.
fn timed<T>(device: Device, work: impl FnOnce() -> T) -> Result<(T, Took, Vec<cuprum::Record>), Failure> {
    let driver = driver(device)?;
    let begun = driver.record_event(Stream::current(device))?;
    let start = Instant::now();
    let (result, records) = explain(work);
    let host_ms = start.elapsed().as_secs_f64() * 1e3;
    let ended = driver.record_event(Stream::current(device))?;
    let device_ms = ended.millis_since(begun.as_ref())?;
    // Errors found on the device, such as an index out of bounds, come before anything is written.
    driver.synchronize()?;
    Ok((result, Took { host_ms, device_ms }, records))
}

/// Where results go.
enum Output {
    Npy(PathBuf),
    Npz(PathBuf),
}

impl Output {
    /// What can be said of the path before the work is.
    fn new(path: &Path) -> Result<Output, Failure> {
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty() && !f.is_dir()) {
            return Err(Failure::input(format!("{}: there is no folder {}", path.display(), folder.display())));
        }
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("npy") => Ok(Output::Npy(path.into())),
            Some("npz") => Ok(Output::Npz(path.into())),
            _ => Err(Failure::input(format!("{}: the output must be a .npy or .npz file", path.display()))),
        }
    }

    fn write(&self, outcome: &Outcome) -> Result<(), Failure> {
        match (self, outcome) {
            (Output::Npy(path), Outcome::Value(value)) => {
                let array = value.array("save").map_err(|e| Failure::from(e).within(path.display()))?;
                Ok(io::save(path, &array)?)
            }
            (Output::Npz(path), Outcome::Names(values)) => {
                let arrays = arrays(values)?;
                if arrays.is_empty() {
                    return Err(Failure::input(format!("{}: nothing to write: the script assigns no array", path.display())));
                }
                let named: Vec<(&str, &NdArray)> = arrays.iter().map(|(name, array)| (*name, array)).collect();
                Ok(io::save_npz(path, &named)?)
            }
            _ => Err(Failure::input("nothing to write")),
        }
    }
}

/// The values that are arrays or make one; the others are named on standard error and left out.
fn arrays(values: &[(String, Value)]) -> Result<Vec<(&str, NdArray)>, Failure> {
    let mut arrays = Vec::new();
    for (name, value) in values {
        match value {
            Value::None | Value::Str(_) | Value::DType(_) => {
                output::note(format_args!("note: {name} is not written: it is '{}', not an array", value.type_name()));
            }
            value => arrays.push((name.as_str(), value.array("save").map_err(|e| Failure::from(e).within(name))?)),
        }
    }
    Ok(arrays)
}

/// As Python would: the last value, or every name the script assigned.
fn print(outcome: &Outcome) -> Result<(), Failure> {
    let mut text = String::new();
    match outcome {
        Outcome::Value(Value::None) => return Ok(()),
        Outcome::Value(value) => text = expressions::display(value)? + "\n",
        Outcome::Names(values) => {
            for (name, value) in values {
                text += &format!("{name} = {}\n", expressions::repr(value)?);
            }
        }
    }
    Ok(output::text(&text)?)
}

fn list_functions() -> Result<(), Failure> {
    let mut text = String::new();
    for f in functions() {
        let aliases = if f.aliases.is_empty() { String::new() } else { format!(" (also {})", f.aliases.join(", ")) };
        text += &format!("{}({}){aliases}\n    {}\n", f.path(), f.parameters, f.doc);
    }
    Ok(output::text(&text)?)
}
