//! `cuprum eval`: evaluates an expression or a script over named arrays, and prints the result or writes it to a file.

use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use cuprum::core::device::driver;
use cuprum::expressions::{self, Session, ast::Script, functions};
use cuprum::profiler::Evaluate;
use cuprum::{Device, NdArray, Stream, Value, explain, io};

use crate::device_options::DeviceOptions;
use crate::failure::Failure;
use crate::progress_bar::TransferProgress;
use crate::variable_bindings::{bind_variables, has_archive_extension, is_standard_stream, reads_standard_input, total_file_size};
use crate::{partial_file_cleanup, terminal_output};

const HELP_EXAMPLES: &str = "\
Examples:
  cuprum eval 'sqrt(sum(a**2, axis=-1))' a=a.npy -o norms.npy
  cuprum eval 'a @ b.T' all.npz --device cuda --explain --time
  cuprum eval 'x[::-1] * n' x=all.npz:x n=3
  cuprum eval --file script.txt x=x.npz -o out.npz      writes every assigned name to out.npz
  cuprum eval 'a - a.mean(0)' a=table.csv -o out.csv
  cat a.npy | cuprum eval 'a * 2' a=- -o - > b.npy      -.csv, -.npz and others name the format

Put an expression that begins with a minus after `--`:  cuprum eval x=x.npy -- '-x'";

/// Evaluate a NumPy expression over named arrays.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP_EXAMPLES)]
pub struct EvalArguments {
    /// The expression (unless --file gives it), and variables: name=file.npy, name=file.npz:member, file.npz, name=-, name=-.csv,
    /// name=EXPRESSION
    #[arg(value_name = "EXPR | NAME=VALUE")]
    words: Vec<String>,
    // clap reads the argument `-.npz` as the option `-.` with the value `npz`.
    #[arg(short = '.', hide = true, value_name = "FORMAT", value_parser = parse_standard_input_format)]
    standard_input: Option<String>,
    /// Read a script from a file; - is standard input
    #[arg(short, long, value_name = "SCRIPT")]
    file: Option<PathBuf>,
    /// Write the result to a file (npy, csv, tsv, txt, png, ppm), or every name that the script assigns or updates to a .npz or
    /// .safetensors file, instead of printing; - is standard output
    #[arg(short, long, value_name = "FILE", allow_hyphen_values = true)]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: DeviceOptions,
    /// Print which accelerator ran each call, and which declined and why
    #[arg(long)]
    explain: bool,
    /// Print the times of loading, computing and writing
    #[arg(long)]
    time: bool,
    /// List the functions that an expression can call; words after it select the functions whose names contain one of them
    #[arg(long, conflicts_with_all = ["file", "output", "standard_input"])]
    functions: bool,
}

/// Returns the binding `-.FORMAT` of standard input.
fn parse_standard_input_format(format: &str) -> Result<String, String> {
    let path = format!("-.{format}");
    if is_standard_stream(&path) {
        Ok(path)
    } else {
        Err("not a format; put an expression that begins with a minus after `--`".to_string())
    }
}

/// Runs `cuprum eval`.
///
/// # Errors
///
/// Returns a failure for bad input, an error of the expression, or output that cannot be written.
pub fn run_eval(arguments: &EvalArguments) -> Result<(), Failure> {
    if arguments.functions {
        return list_functions(&arguments.words);
    }
    let output = arguments.output.as_deref().map(OutputTarget::from_path).transpose()?;
    let (source, words) = read_script_and_bindings(arguments)?;
    let script = expressions::parse(&source).map_err(expressions::EvalError::from)?;
    if script.statements.is_empty() && arguments.file.is_none() {
        return Err(Failure::bad_input("the expression is empty"));
    }
    arguments.target.apply_to_process()?;

    let mut session = Session::new();
    let printed = Arc::new(Mutex::new(Ok(())));
    let of_session = printed.clone();
    let to_error = matches!(output, Some(OutputTarget::Standard(_)));
    session.on_print(move |line| {
        if to_error {
            return terminal_output::print_error_line(line);
        }
        let mut printed = of_session.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.is_ok() {
            *printed = terminal_output::print_line(line);
        }
    });
    let before = Instant::now();
    {
        let _progress = TransferProgress::start("reading", total_file_size(&words));
        bind_variables(&words, &mut session)?;
    }
    let device = Device::current()?;
    driver(device)?.synchronize()?;
    let loaded = before.elapsed();

    let work = || run_script(&script, &mut session, &output);
    let (result, took, records) = run_with_times(device, work)?;
    let result = result?;
    std::mem::replace(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner), Ok(()))?;

    let before = Instant::now();
    match &output {
        Some(output) => output.write_result(&result)?,
        None => print_result(&result)?,
    }
    let written = before.elapsed();
    // Reports are printed after the output file is written, so that a closed pipe on standard error cannot interrupt writing.
    if arguments.explain {
        records.iter().for_each(terminal_output::print_error_line);
    }
    if arguments.time {
        let ms = |t: std::time::Duration| t.as_secs_f64() * 1e3;
        terminal_output::print_error_line(format_args!(
            "inputs {:.3} ms; computed in {:.3} ms on {device} (host {:.3} ms); output {:.3} ms",
            ms(loaded),
            took.device_ms,
            took.host_ms,
            ms(written)
        ));
    }
    Ok(())
}

/// Returns the source of the script, and the command-line arguments that are bindings.
fn read_script_and_bindings(arguments: &EvalArguments) -> Result<(String, Vec<String>), Failure> {
    let mut words: Vec<String> = arguments.standard_input.iter().chain(&arguments.words).cloned().collect();
    let Some(path) = &arguments.file else {
        // The expression is the first argument that is not a binding. The other arguments are bindings.
        return match words.iter().position(|word| !is_binding(word)) {
            Some(at) => {
                let expression = words.remove(at);
                Ok((expression, words))
            }
            None => Err(Failure::bad_input(match words.first() {
                Some(word) if !word.contains(".np") => {
                    format!("no expression: '{word}' is a variable for one; an assignment has spaces around its `=`")
                }
                _ => "no expression: give one, or a script with --file; `cuprum eval --help` shows examples".to_string(),
            })),
        };
    };
    let text = if path == Path::new("-") {
        if let Some(word) = words.iter().find(|word| reads_standard_input(word)) {
            return Err(Failure::bad_input(format!("standard input is the script, so '{word}' cannot read it too")));
        }
        read_script(std::io::stdin()).map_err(|e| Failure::of_file("standard input", e))
    } else {
        std::fs::File::open(path).and_then(read_script).map_err(|e| Failure::of_file(path, e))
    };
    Ok((text?, words))
}

/// Reads the text of a script, which has a maximum size because a device such as `/dev/zero` has no end.
fn read_script(source: impl Read) -> std::io::Result<String> {
    const MAX_SCRIPT_BYTES: u64 = 16 << 20;
    let mut text = String::new();
    match source.take(MAX_SCRIPT_BYTES + 1).read_to_string(&mut text)? as u64 {
        0..=MAX_SCRIPT_BYTES => Ok(text),
        _ => Err(std::io::Error::other("a script is at most 16 MiB long")),
    }
}

fn is_binding(word: &str) -> bool {
    crate::variable_bindings::split_binding(word).is_some() || has_archive_extension(word) || is_standard_stream(word)
}

/// Result of a script: the value of the last statement, or the assigned variables. All computations are queued on the device, but may not
/// have finished.
enum ScriptResult {
    Value(Value),
    Names(Vec<(String, Value)>),
}

fn run_script(script: &Script, session: &mut Session, output: &Option<OutputTarget>) -> Result<ScriptResult, Failure> {
    let last = session.run_script(script)?;
    // A call that updates a variable in place, such as `x.sort()`, counts as an assignment.
    let last = last.filter(|value| !(matches!(value, Value::None) && session.last_assigned().is_some()));
    let assigned = || session.assigned().iter().filter_map(|name| Some((name.clone(), session.get(name)?.clone())));
    let outcome = match (output, last) {
        (Some(output), last) if output.takes_named_arrays() && session.assigned().is_empty() => {
            // `arr_0` is the name that NumPy's `savez` gives to an unnamed array.
            ScriptResult::Names(last.map(|value| ("arr_0".to_string(), value)).into_iter().collect())
        }
        (Some(output), _) if output.takes_named_arrays() => ScriptResult::Names(assigned().collect()),
        (_, Some(value)) => ScriptResult::Value(value),
        // If the last statement has no value, a file of one array receives the variable that the statement assigned.
        (Some(_), None) => match session.last_assigned().and_then(|name| session.get(name)) {
            Some(value) => ScriptResult::Value(value.clone()),
            None => return Err(Failure::bad_input("nothing to write: the script has no value")),
        },
        (None, None) => ScriptResult::Names(assigned().collect()),
    };
    match &outcome {
        ScriptResult::Value(value) => value.evaluate()?,
        ScriptResult::Names(values) => {
            values.iter().try_for_each(|(name, value)| value.evaluate().map_err(|e| Failure::from(e).with_origin(name)))?
        }
    }
    Ok(outcome)
}

struct RunTimes {
    host_ms: f64,
    device_ms: f64,
}

/// Runs `work` once between two device events. Returns its result, its times, and the records of its calls.
fn run_with_times<T>(device: Device, work: impl FnOnce() -> T) -> Result<(T, RunTimes, Vec<cuprum::CallRecord>), Failure> {
    let driver = driver(device)?;
    let start_event = driver.record_event(Stream::current(device))?;
    let start = Instant::now();
    let (result, records) = explain(work);
    let host_ms = start.elapsed().as_secs_f64() * 1e3;
    let end_event = driver.record_event(Stream::current(device))?;
    let device_ms = end_event.millis_since(start_event.as_ref())?;
    // Synchronizes before output is written, because only then are asynchronous errors reported, such as an index out of bounds.
    driver.synchronize()?;
    Ok((result, RunTimes { host_ms, device_ms }, records))
}

/// The destination of the result, a file or standard output, with its format.
enum OutputTarget {
    File(PathBuf, io::Format),
    Standard(io::Format),
}

impl OutputTarget {
    /// Creates the output for `path`, and checks it before the script runs. `-` and `-.csv` are standard output.
    fn from_path(path: &Path) -> Result<OutputTarget, Failure> {
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            match std::fs::metadata(folder) {
                Ok(metadata) if metadata.is_dir() => {}
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(Failure::of_file(folder, e).with_origin(path.display())),
                _ => return Err(Failure::bad_input(format!("{}: there is no folder {}", path.display(), folder.display()))),
            }
        }
        let is_stream = path.to_str().is_some_and(is_standard_stream);
        // Standard output (`-`) without an extension has the format npy.
        let format = io::Format::of_path(path).or(is_stream.then_some(io::Format::Npy));
        let Some(format) = format else {
            let formats = ".npy, .npz, .safetensors, .csv, .tsv, .txt, .png or .ppm";
            return Err(Failure::bad_input(format!("{}: the extension of the output must be {formats}", path.display())));
        };
        if is_stream {
            let is_text = matches!(format, io::Format::Csv | io::Format::Tsv | io::Format::Text);
            if !is_text && std::io::stdout().is_terminal() {
                return Err(Failure::bad_input("standard output is a terminal; redirect it to a file or a pipe"));
            }
            return Ok(OutputTarget::Standard(format));
        }
        Ok(OutputTarget::File(path.into(), format))
    }

    fn takes_named_arrays(&self) -> bool {
        let (OutputTarget::File(_, format) | OutputTarget::Standard(format)) = self;
        format.has_names()
    }

    fn write_result(&self, outcome: &ScriptResult) -> Result<(), Failure> {
        let mut notes = Vec::new();
        let arrays = match outcome {
            ScriptResult::Value(value) => {
                vec![("arr_0", value.array("save").map_err(|e| Failure::from(e).with_origin(self.target_display_name()))?)]
            }
            ScriptResult::Names(values) => convert_to_arrays(values, &mut notes),
        };
        if !arrays.is_empty() {
            self.write_arrays(&arrays)?;
        }
        // Notes are printed after the output is written, as reports are.
        notes.iter().for_each(terminal_output::print_error_line);
        if arrays.is_empty() {
            return Err(Failure::bad_input(format!("{}: nothing to write: the script assigns no array", self.target_display_name())));
        }
        Ok(())
    }

    fn write_arrays(&self, arrays: &[(&str, NdArray)]) -> Result<(), Failure> {
        let named: Vec<(&str, &NdArray)> = arrays.iter().map(|(name, array)| (*name, array)).collect();
        let _progress = TransferProgress::start("writing", Some(named.iter().map(|(_, array)| array.nbytes() as u64).sum()));
        match self {
            OutputTarget::File(path, _) => {
                partial_file_cleanup::remove_partial_files_on_signals();
                Ok(io::write_named(path, &named)?)
            }
            OutputTarget::Standard(format) => {
                let mut stream = std::io::BufWriter::new(std::io::stdout().lock());
                io::write_stream(&mut stream, *format, &named).map_err(|e| match e {
                    cuprum::Error::Io { message, kind: Some(_), .. } => Failure::failed_run(format!("standard output: {message}")),
                    cuprum::Error::Io { message, .. } => Failure::bad_input(format!("standard output: {message}")),
                    e => e.into(),
                })?;
                Ok(stream.flush()?)
            }
        }
    }

    fn target_display_name(&self) -> String {
        match self {
            OutputTarget::File(path, _) => path.display().to_string(),
            OutputTarget::Standard(_) => "standard output".to_string(),
        }
    }
}

/// Converts the values to arrays. Values that are not arrays, such as strings and tuples of arrays, are skipped, with a note in `notes`.
fn convert_to_arrays<'a>(values: &'a [(String, Value)], notes: &mut Vec<String>) -> Vec<(&'a str, NdArray)> {
    let mut arrays = Vec::new();
    for (name, value) in values {
        match value {
            Value::None | Value::Str(_) | Value::DType(_) => {
                notes.push(format!("note: {name} is not written: it is '{}', not an array", value.type_name()));
            }
            value => match value.array("save") {
                Ok(array) => arrays.push((name.as_str(), array)),
                Err(error) => notes.push(format!("note: {name} is not written: {error}")),
            },
        }
    }
    arrays
}

/// Prints a value as Python's `print` does, or `name = repr` for every assigned variable.
fn print_result(outcome: &ScriptResult) -> Result<(), Failure> {
    let mut text = String::new();
    match outcome {
        ScriptResult::Value(Value::None) => return Ok(()),
        ScriptResult::Value(value) => text = expressions::display(value)? + "\n",
        ScriptResult::Names(values) => {
            for (name, value) in values {
                text += &format!("{name} = {}\n", expressions::repr(value)?);
            }
        }
    }
    Ok(terminal_output::print_text(&text)?)
}

/// Prints the functions whose names contain one of `words`, in any case, or all functions if there are no words.
fn list_functions(words: &[String]) -> Result<(), Failure> {
    let words: Vec<String> = words.iter().map(|word| word.strip_prefix("np.").unwrap_or(word).to_lowercase()).collect();
    let is_selected = |name: &str| words.is_empty() || words.iter().any(|word| name.to_lowercase().contains(word));
    let mut text = String::new();
    for f in functions().into_iter().filter(|f| is_selected(&f.path()) || f.aliases.iter().any(|alias| is_selected(alias))) {
        let aliases = if f.aliases.is_empty() { String::new() } else { format!(" (also {})", f.aliases.join(", ")) };
        text += &format!("{}({}){aliases}\n    {}\n", f.path(), f.parameters, f.doc);
    }
    if text.is_empty() {
        return Err(Failure::bad_input(format!("no function has a name that contains '{}'", words.join("' or '"))));
    }
    Ok(terminal_output::print_text(&text)?)
}
