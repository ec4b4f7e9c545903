//! `cuprum bench`: one expression, many times, as CuPy's `cupyx.profiler.benchmark` reports it.

use cuprum::expressions::{EvalError, Session, parse};
use cuprum::{Device, Value};
use serde::Serialize;

use crate::bindings::settle;
use crate::failure::Failure;
use crate::measure::{Effort, Statistics, time};

/// What to time.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// The expression, in NumPy's notation.
    pub expression: &'a str,
    /// How often.
    pub effort: Effort,
    /// One JSON line instead of text.
    pub json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    expression: &'a str,
    device: String,
    served_by: String,
    repeats: usize,
    host_us: Statistics,
    device_us: Statistics,
    bytes: usize,
    #[serde(rename = "GB_s")]
    gigabytes_per_second: f64,
}

/// Runs the benchmark over the session's variables and prints its report. The expression is parsed once, outside the timing.
pub fn run(options: &Options, session: &mut Session) -> Result<(), Failure> {
    let script = parse(options.expression).map_err(EvalError::from)?;
    // Once before the timing, so that a mistake is reported with its place in the expression.
    let sample = session.run_script(&script)?.ok_or_else(|| Failure::input("the expression has no value"))?;
    settle(&sample)?;
    let device = if let Value::Array(a) = &sample { a.device() } else { Device::current()? };
    drop(sample);
    let (_, timing) = time(device, options.effort, || {
        let value = session.run_script(&script).map_err(array_error)?.unwrap_or(Value::None);
        settle(&value).map(|()| value)
    })?;
    let (host, on_device) = (Statistics::of(&timing.host), Statistics::of(&timing.device));
    let report = Report {
        expression: options.expression,
        device: device.to_string(),
        served_by: timing.served_by(),
        repeats: timing.host.len(),
        host_us: host,
        device_us: on_device,
        bytes: timing.bytes(),
        gigabytes_per_second: timing.bytes() as f64 / on_device.median.max(1e-9) / 1e3,
    };
    if options.json {
        println!("{}", serde_json::to_string(&report).unwrap_or_default());
    } else {
        print(&report, device);
    }
    Ok(())
}

/// The array library's own error; others cannot come from an expression that has worked before.
fn array_error(e: EvalError) -> cuprum::Error {
    let cause = std::error::Error::source(&e).and_then(|cause| cause.downcast_ref::<cuprum::Error>());
    cause.cloned().unwrap_or_else(|| cuprum::Error::value("bench", e.to_string()))
}

fn print(report: &Report, device: Device) {
    let line = |name: &str, s: &Statistics| {
        println!("  {name:<8} {:>10.3} us  +/- {:.3}  (min {:.3}, median {:.3}, max {:.3})", s.mean, s.std, s.min, s.median, s.max);
    };
    println!("{}", report.expression);
    line("host", &report.host_us);
    line(&device.to_string(), &report.device_us);
    println!("  {} calls, served by {}", report.repeats, report.served_by);
    println!("  {} bytes read and written at the least: {:.1} GB/s", report.bytes, report.gigabytes_per_second);
}
