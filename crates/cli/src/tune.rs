//! `cuprum tune`: measures the accelerators for `CUPRUM_ACCELERATORS=auto` ahead of time, and shows the measurements.

use cuprum::expressions::ast::Script;
use cuprum::expressions::{EvalError, Session, parse};
use cuprum::profiler::Evaluate;
use cuprum::tuning::{self, DeviceResults, MAX_CANDIDATES, MAX_RUNS_OF_SLOWER_ACCELERATORS};
use cuprum::{Device, set_accelerators, settings};
use serde_json::{Value, json};

use crate::device_options::to_option_failure;
use crate::failure::Failure;
use crate::terminal_output::{self, empty_table};
use crate::variable_bindings::bind_variables;

/// Measure which accelerator is fastest for which calls, and store the result for CUPRUM_ACCELERATORS=auto.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  cuprum tune --suite                                     common calls in several sizes
  cuprum tune 'a @ b.T' a='random((512, 512))' b=a
  CUPRUM_ACCELERATORS=auto cuprum eval 'a @ b.T' ...      tries the fastest first

`cuprum info --tuning` shows the measurements. CUPRUM_TUNING=file names a file, which is then only read.")]
pub struct TuneArguments {
    /// An expression in NumPy's notation whose calls are measured
    #[arg(value_name = "EXPR")]
    expression: Option<String>,
    /// Variables: name=file.npy, name=file.npz:member, file.npz, name=EXPRESSION
    #[arg(value_name = "NAME=VALUE", requires = "expression")]
    bindings: Vec<String>,
    /// Measure a set of representative calls
    #[arg(long)]
    suite: bool,
    /// Delete earlier measurements for all devices
    #[arg(long)]
    forget: bool,
    /// auto, cpu, cuda or cuda:N [default: CUPRUM_DEVICE, else auto]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
}

/// Number of times that an expression runs, which is enough to find the fastest accelerator for each of its calls. Measuring a call takes
/// at most one untimed run per accelerator, then timed runs.
const RUNS_PER_EXPRESSION: usize = 2 * (MAX_CANDIDATES + MAX_RUNS_OF_SLOWER_ACCELERATORS);

/// Expressions of `--suite` over square matrices `a` and `b`: plain and fused reductions, scans, copies, mixed layouts, products, sorts
/// and selections.
const SUITE_EXPRESSIONS: [&str; 22] = [
    "a + b",
    "sqrt(a * a + b) - 1",
    "a + b.T",
    "a.T.copy()",
    "concatenate((a, b))",
    "a.sum()",
    "a.sum(axis=0)",
    "a.sum(axis=1)",
    "(a * b).sum(axis=-1)",
    "sqrt((a**2).sum(axis=-1))",
    "a.mean(axis=0)",
    "a.max()",
    "a.max(axis=1)",
    "a.argmax()",
    "a.argmax(axis=1)",
    "a.var(axis=1)",
    "cumsum(a)",
    "cumsum(a, axis=1)",
    "a @ b",
    "einsum('ij,kj->ki', a, b)",
    "sort(a, axis=None)",
    "a[a > 0.5]",
];
/// Numbers of rows of the square matrices in the suite.
const SUITE_MATRIX_ROWS: [usize; 4] = [32, 256, 1024, 4096];
const SUITE_DTYPES: [&str; 2] = ["float32", "float64"];

/// Runs `cuprum tune`.
///
/// # Errors
///
/// Returns a failure for bad input, an error of the expression, or measurements that cannot be stored.
pub fn run_tune(arguments: &TuneArguments) -> Result<(), Failure> {
    settings::check()?;
    if let Some(device) = &arguments.device {
        Device::parse(device).and_then(Device::set_default).map_err(|e| to_option_failure("--device", e))?;
    }
    if !arguments.suite && !arguments.forget && arguments.expression.is_none() {
        return Err(Failure::bad_input("nothing to tune: give an expression, --suite or --forget"));
    }
    let measures = arguments.suite || arguments.expression.is_some();
    if measures && tuning::all_results()?.iter().any(|listing| listing.read_only) {
        return Err(Failure::bad_input("CUPRUM_TUNING pins a file, which is only read; unset it to measure"));
    }
    set_accelerators("auto")?;
    let mut session = Session::new();
    let script = arguments.expression.as_deref().map(parse_statements).transpose()?;
    if script.is_some() {
        bind_variables(&arguments.bindings, &mut session)?;
    }
    // Bad input is reported before any measurement is deleted.
    if arguments.forget {
        tuning::forget()?;
    }
    if let Some(script) = &script {
        measure_script(script, &mut session)?;
    }
    if arguments.suite {
        measure_suite()?;
    }
    Ok(terminal_output::print_text(&format_measurements(&measurements_as_json()?))?)
}

fn measure_suite() -> Result<(), Failure> {
    for dtype in SUITE_DTYPES {
        for rows in SUITE_MATRIX_ROWS {
            terminal_output::print_error_line(format_args!("{rows} rows of {dtype}"));
            let mut session = Session::new();
            let random = |seed: usize| format!("random(({rows}, {rows}), dtype='{dtype}', seed={seed})");
            bind_variables(&[format!("a={}", random(1)), format!("b={}", random(2))], &mut session)?;
            for expression in SUITE_EXPRESSIONS {
                let measure = parse_statements(expression).and_then(|script| measure_script(&script, &mut session));
                measure.map_err(|e| e.with_origin(expression))?;
            }
        }
    }
    Ok(())
}

/// Parses an expression or a script, and refuses text without statements.
fn parse_statements(expression: &str) -> Result<Script, Failure> {
    let script = parse(expression).map_err(EvalError::from)?;
    if script.statements.is_empty() {
        return Err(Failure::bad_input("the expression is empty"));
    }
    Ok(script)
}

/// Runs `script` often enough to find the fastest accelerator for each of its calls.
fn measure_script(script: &Script, session: &mut Session) -> Result<(), Failure> {
    for _ in 0..RUNS_PER_EXPRESSION {
        if let Some(value) = session.run_script(script)? {
            value.evaluate()?;
        }
    }
    Ok(())
}

/// Returns the measurements of each device as JSON, which [`format_measurements`] formats as tables.
///
/// # Errors
///
/// Returns an error if the tuning files cannot be read.
pub fn measurements_as_json() -> Result<Value, Failure> {
    let entry = |e: tuning::TuningResult| {
        let times: serde_json::Map<String, Value> = e.times.into_iter().map(|(name, us)| (name, us.into())).collect();
        json!({"winner": e.winner, "us": times, "what": e.description})
    };
    let listing = |l: DeviceResults| {
        let file = l.file.map(|path| path.to_string_lossy().into_owned());
        json!({"device": l.device.to_string(), "file": file, "pinned": l.read_only,
            "entries": l.entries.into_iter().map(entry).collect::<Vec<_>>()})
    };
    Ok(tuning::all_results()?.into_iter().map(listing).collect())
}

/// Formats `listings`, the JSON that [`measurements_as_json`] returns, as text with a table for each device.
pub fn format_measurements(listings: &Value) -> String {
    let mut out = String::new();
    for listing in listings.as_array().into_iter().flatten() {
        let file = listing["file"].as_str().unwrap_or("memory only: there is no cache folder that can be written");
        let pinned = if listing["pinned"] == true { ", read-only by CUPRUM_TUNING" } else { "" };
        let entries = listing["entries"].as_array().cloned().unwrap_or_default();
        // Without measurements, the file does not exist yet: the first measurement creates it.
        let stored = if entries.is_empty() && pinned.is_empty() { "to be stored" } else { "stored" };
        let device = listing["device"].as_str().unwrap_or_default();
        out += &format!("{device}: {} measured, {stored} in {file}{pinned}\n", entries.len());
        if entries.is_empty() {
            continue;
        }
        let mut table = empty_table(&["winner", "times in us", "first seen as"]);
        for e in &entries {
            let mut times: Vec<(&String, f64)> =
                e["us"].as_object().into_iter().flatten().map(|(name, us)| (name, us.as_f64().unwrap_or(0.0))).collect();
            times.sort_by(|a, b| a.1.total_cmp(&b.1));
            let times: Vec<String> = times.iter().map(|(name, us)| format!("{name} {us:.1}")).collect();
            let word = |key: &str| e[key].as_str().unwrap_or_default().to_string();
            table.add_row([word("winner"), times.join(", "), word("what")]);
        }
        out += &format!("{table}\n\n");
    }
    out
}
