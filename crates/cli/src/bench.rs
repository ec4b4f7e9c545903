//! `cuprum bench`: one expression, many times, as CuPy's `cupyx.profiler.benchmark` reports it.

use cuprum::expressions::{EvalError, eval};
use cuprum::{Device, NdArray, Result};
use serde::Serialize;

use crate::measure::{Effort, Statistics, time};

/// What to time.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// The expression, in NumPy's notation.
    pub expression: &'a str,
    /// Its names.
    pub bindings: &'a [(String, NdArray)],
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

/// Runs the benchmark and prints its report. Inputs are computed before the timing begins.
pub fn run(options: &Options) -> Result<(), EvalError> {
    let bindings = || options.bindings.iter().map(|(name, array)| (name.as_str(), array));
    // Once outside the timing, so that a mistake is reported with its place in the expression.
    let sample = eval(options.expression, bindings())?;
    let device = sample.device();
    let fault = |e: cuprum::Error| EvalError::array(options.expression, cuprum::expressions::Span::new(0, options.expression.len()), e);
    options.bindings.iter().try_for_each(|(_, a)| a.eval().map(|_| ())).map_err(fault)?;
    sample.eval().map_err(fault)?;
    let work = || eval(options.expression, bindings()).map_err(|e| cuprum::Error::value("bench", e.to_string()))?.eval().cloned();
    let (_, timing) = time(device, options.effort, work).map_err(fault)?;
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
