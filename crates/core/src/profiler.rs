//! Profiling: [`benchmark`] times a closure, [`time_range()`] marks a range, [`trace`] writes all calls to a file for trace viewers, and
//! [`profile`] starts an attached profiler. [`explain`] records the calls of one expression.

mod time_range;

use std::fmt;
use std::time::Instant;

use crate::array::NdArray;
use crate::device::{Device, DeviceEvent, Stream, driver};
use crate::dispatch::{CallRecord, explain};
use crate::error::{Error, Result};
use crate::ops::python_value::Value;

pub use crate::dispatch::trace;
pub use time_range::{Profiling, TimeRange, profile, time_range};

/// Limits of a benchmark: numbers of warm-up and measured calls, and duration.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BenchmarkLimits {
    /// Number of warm-up calls, which are not measured; at least one.
    pub warmup: usize,
    /// Maximum number of measured calls.
    pub repeat: usize,
    /// Maximum duration in seconds. The limit applies to the warm-up calls and to the measured calls separately, each with at least one
    /// call. No call starts after this time. In a mesh of several processes, all processes stop after the same call, as soon as the time of
    /// one process is over.
    pub max_seconds: f64,
}

impl Default for BenchmarkLimits {
    /// Returns the default limits: 10 warm-up calls, then at most 10,000 measured calls in 2 seconds.
    fn default() -> BenchmarkLimits {
        BenchmarkLimits { warmup: 10, repeat: 10_000, max_seconds: 2.0 }
    }
}

/// Statistics of a sample of times, in the unit of the times: mean, standard deviation, minimum, median and maximum.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimeStatistics {
    /// Arithmetic mean.
    pub mean: f64,
    /// Population standard deviation (divisor n).
    pub std: f64,
    /// Minimum.
    pub min: f64,
    /// Median; the upper one for an even count.
    pub median: f64,
    /// Maximum.
    pub max: f64,
}

impl TimeStatistics {
    /// Returns the statistics of the sample `times`; zeros if the sample is empty.
    pub fn of(times: &[f64]) -> TimeStatistics {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len().max(1) as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let std = (sorted.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / n).sqrt();
        let at = |i: usize| sorted.get(i).copied().unwrap_or(0.0);
        TimeStatistics { mean, std, min: at(0), median: at(sorted.len() / 2), max: at(sorted.len().saturating_sub(1)) }
    }
}

/// A type that a benchmarked or captured closure may return. The arrays in the value are evaluated, so that deferred work is
/// measured or captured.
pub trait Evaluate {
    /// Evaluates all arrays, without waiting for a device.
    ///
    /// # Errors
    /// The first error of an evaluation.
    fn evaluate(&self) -> Result<()>;
}

impl Evaluate for () {
    fn evaluate(&self) -> Result<()> {
        Ok(())
    }
}
impl Evaluate for NdArray {
    fn evaluate(&self) -> Result<()> {
        self.eval().map(|_| ())
    }
}
impl Evaluate for Value {
    fn evaluate(&self) -> Result<()> {
        // A loop, not recursion, because lists may be deeply nested.
        let mut open = vec![std::slice::from_ref(self).iter()];
        while let Some(items) = open.last_mut() {
            match items.next() {
                None => drop(open.pop()),
                Some(Value::Array(a)) => a.evaluate()?,
                Some(value) => open.extend(value.items().map(<[Value]>::iter)),
            }
        }
        Ok(())
    }
}
impl<T: Evaluate> Evaluate for Vec<T> {
    fn evaluate(&self) -> Result<()> {
        self.iter().try_for_each(T::evaluate)
    }
}
impl<T: Evaluate, const N: usize> Evaluate for [T; N] {
    fn evaluate(&self) -> Result<()> {
        self.iter().try_for_each(T::evaluate)
    }
}
impl<A: Evaluate, B: Evaluate> Evaluate for (A, B) {
    fn evaluate(&self) -> Result<()> {
        self.0.evaluate()?;
        self.1.evaluate()
    }
}

/// Result of a benchmark: the times of all measured calls in microseconds, and the dispatch records of one call.
#[derive(Clone, Debug)]
pub struct Benchmark {
    /// Host times of the calls in microseconds. A time includes the evaluation of the returned arrays, but not the wait for the device.
    pub host: Vec<f64>,
    /// Per device, the times in microseconds between events before and after each call. On the CPU, times of whole calls.
    pub devices: Vec<(Device, Vec<f64>)>,
    /// Dispatch records of the last warm-up call.
    pub calls: Vec<CallRecord>,
}

impl Benchmark {
    /// Returns statistics of [`Benchmark::host`], the host times of the calls.
    pub fn host_times(&self) -> TimeStatistics {
        TimeStatistics::of(&self.host)
    }

    /// Returns statistics of the times of the first device in [`Benchmark::devices`].
    pub fn device_times(&self) -> TimeStatistics {
        TimeStatistics::of(self.devices.first().map_or(&[], |(_, times)| times))
    }

    /// Returns the minimum number of bytes that one call of the closure reads and writes.
    pub fn bytes(&self) -> usize {
        self.calls.iter().map(|c| c.bytes).sum()
    }

    /// Returns the throughput in GB/s (10^9 bytes per second): [`Benchmark::bytes`] divided by the median time of the first device.
    pub fn gigabytes_per_second(&self) -> f64 {
        self.bytes() as f64 / self.device_times().median.max(1e-9) / 1e3
    }

    /// Returns the names of the accelerators that served the calls, joined as by [`served_by`].
    pub fn served_by(&self) -> String {
        served_by(&self.calls)
    }
}

impl fmt::Display for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, times: &[f64]| {
            let s = TimeStatistics::of(times);
            let (mean, std) = (s.mean, s.std);
            writeln!(f, "  {name:<8} {mean:>10.3} us  +/- {std:.3}  (min {:.3}, median {:.3}, max {:.3})", s.min, s.median, s.max)
        };
        line("host", &self.host)?;
        for (device, times) in &self.devices {
            line(&device.to_string(), times)?;
        }
        writeln!(f, "  {} calls, served by {}", self.host.len(), self.served_by())?;
        write!(f, "  at least {} bytes read and written: {:.1} GB/s", self.bytes(), self.gigabytes_per_second())
    }
}

/// Returns the names of the accelerators in the records, without duplicates, joined by `+`. Returns `none (a view)` if no accelerator ran.
pub fn served_by(calls: &[CallRecord]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in calls.iter().filter_map(|c| c.served_by) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() { "none (a view)".into() } else { names.join("+") }
}

/// Runs `work` repeatedly on the current device and returns its times (`cupyx.profiler.benchmark`).
///
/// The host time of a call ends when `work` has returned and its arrays are evaluated, without waiting for the device. The device time of a
/// call is the time between two events, one before the call and one after the evaluation.
///
/// # Errors
/// Errors of `work` and of the device.
///
/// # Examples
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, NdArray, ones, profiler};
/// # fn main() -> cuprum::Result<()> {
/// let a = ones((256, 1024), DType::F64)?;
/// let times = profiler::benchmark(|| (&a * &a).sum(-1)?.sqrt())?;
/// println!("norms of rows\n{times}");
/// assert_eq!(times.served_by(), "cpu");
/// # Ok(())
/// # }
/// ```
pub fn benchmark<T: Evaluate>(work: impl FnMut() -> Result<T>) -> Result<Benchmark> {
    Ok(benchmark_on(&[Device::current()?], BenchmarkLimits::default(), work)?.1)
}

/// Benchmarks `work` with events on several devices. Also returns the last result.
///
/// If `work` runs operations on a mesh of several processes, the mesh must be among `devices`, so that all processes run the same number of
/// calls. The processes agree between calls, which is not measured.
///
/// # Errors
/// Errors of `work`; [`Error::Value`] if `devices` is empty.
pub fn benchmark_on<T: Evaluate>(
    devices: &[Device],
    limits: BenchmarkLimits,
    mut work: impl FnMut() -> Result<T>,
) -> Result<(T, Benchmark)> {
    if devices.is_empty() {
        return Err(Error::value("benchmark", "needs a device"));
    }
    let mut evaluated = || {
        let result = work()?;
        result.evaluate().map(|()| result)
    };
    let synchronize = || devices.iter().try_for_each(|d| d.synchronize());
    let events = || devices.iter().map(|&d| driver(d)?.record_event(Stream::current(d))).collect::<Result<Vec<Box<dyn DeviceEvent>>>>();
    // The processes of a mesh have to run the same number of calls although their clocks differ, so they agree on each decision to
    // continue.
    let is_in_time = |began: Instant| {
        let is_in_time = began.elapsed().as_secs_f64() < limits.max_seconds;
        devices.iter().try_fold(is_in_time, |flag, &d| driver(d)?.is_true_in_all_processes(flag))
    };
    let mut began = Instant::now();
    for _ in 1..limits.warmup {
        if !is_in_time(began)? {
            break;
        }
        evaluated()?;
    }
    // The last warm-up call is recorded, because another accelerator may serve earlier calls while kernels compile.
    let (last, calls) = explain(&mut evaluated);
    let mut last = last?;
    synchronize()?;
    let mut times = Benchmark { host: Vec::new(), devices: devices.iter().map(|&d| (d, Vec::new())).collect(), calls };
    // The time limit starts anew after the warm-up, so that compiling kernels leaves the full time for the measured calls.
    began = Instant::now();
    while times.host.len() < limits.repeat.max(1) && (times.host.is_empty() || is_in_time(began)?) {
        let before = events()?;
        let start = Instant::now();
        last = evaluated()?;
        times.host.push(start.elapsed().as_secs_f64() * 1e6);
        for ((before, after), (_, device)) in before.iter().zip(events()?).zip(&mut times.devices) {
            device.push(after.millis_since(before.as_ref())? * 1e3);
        }
    }
    synchronize()?;
    Ok((last, times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_statistics() {
        let s = TimeStatistics::of(&[3.0, 1.0, 2.0, 6.0]);
        assert_eq!((s.min, s.median, s.max, s.mean), (1.0, 3.0, 6.0, 3.0));
        assert!((s.std - 3.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(TimeStatistics::of(&[]).mean, 0.0);
    }

    #[test]
    fn benchmark_needs_a_device() {
        let error = benchmark_on(&[], BenchmarkLimits::default(), || Ok(())).unwrap_err();
        assert_eq!(error.to_string(), "[benchmark] needs a device");
    }
}
