//! `cuprum bench`: repeated timing of an expression, with the same statistics as CuPy's `cupyx.profiler.benchmark`.

use cuprum::expressions::{EvalError, Session, parse};
use cuprum::profiler::{Benchmark, BenchmarkLimits, Evaluate, TimeStatistics, benchmark_on};
use cuprum::{Device, Value};
use serde_json::json;

use crate::failure::Failure;
use crate::terminal_output;

/// Options of the command `cuprum bench`.
#[derive(Clone, Debug)]
pub struct BenchOptions<'a> {
    /// The expression, in NumPy's notation.
    pub expression: &'a str,
    /// Number of timed and untimed runs, and the time limit.
    pub effort: BenchmarkLimits,
    /// Print one JSON line instead of text.
    pub json: bool,
}

/// Runs `cuprum bench`: times the evaluation of the expression with the session's variables, without parsing, and prints the report.
///
/// # Errors
///
/// Returns the errors of the expression, and a failure if the report cannot be written.
pub fn run_bench(options: &BenchOptions, session: &mut Session) -> Result<(), Failure> {
    let script = parse(options.expression).map_err(EvalError::from)?;
    // The expression runs once before timing, so that an error is reported with its position in the expression.
    let sample = session.run_script(&script)?.ok_or_else(|| Failure::bad_input("the expression has no value"))?;
    sample.evaluate()?;
    let current = Device::current()?;
    let device = if let Value::Array(a) = &sample { a.device() } else { current };
    drop(sample);
    // The current device may be a mesh that computes the expression even if the result is on another device. In that case both devices are
    // timed.
    let devices = if device == current { vec![device] } else { vec![device, current] };
    let (_, times) =
        benchmark_on(&devices, options.effort, || Ok(session.run_script(&script).map_err(to_cuprum_error)?.unwrap_or(Value::None)))?;
    if options.json {
        terminal_output::print_line(json_report(options.expression, device, &times))?;
    } else {
        terminal_output::print_line(format_args!("{}\n{times}", options.expression))?;
    }
    Ok(())
}

fn json_report(expression: &str, device: Device, times: &Benchmark) -> serde_json::Value {
    let statistics = |s: TimeStatistics| json!({"mean": s.mean, "std": s.std, "min": s.min, "median": s.median, "max": s.max});
    json!({"expression": expression, "device": device.to_string(), "served_by": times.served_by(), "repeats": times.host.len(),
        "host_us": statistics(times.host_times()), "device_us": statistics(times.device_times()), "bytes": times.bytes(),
        "GB_s": times.gigabytes_per_second()})
}

/// Returns the array library's error that caused `e`, or `e` itself as `Error::Value`.
fn to_cuprum_error(e: EvalError) -> cuprum::Error {
    let cause = std::error::Error::source(&e).and_then(|cause| cause.downcast_ref::<cuprum::Error>());
    cause.cloned().unwrap_or_else(|| cuprum::Error::value("bench", e.to_string()))
}
