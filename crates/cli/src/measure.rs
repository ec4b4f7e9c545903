//! Timing a piece of work as CuPy's `cupyx.profiler.benchmark` does: host time of the call, and device time between two
//! events around it. Warm-up calls are not counted.

use std::time::Instant;

use cuprum::core::device::driver;
use cuprum::{Device, Record, Result, Stream, explain};

/// How often to run.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Calls before the first that counts.
    pub warmup: usize,
    /// Calls that count, at the most.
    pub repeat: usize,
    /// Seconds after which no further call begins; at least one counts.
    pub max_seconds: f64,
}

/// Times of all counted calls, in microseconds, and what the chain did in one of them.
#[derive(Clone, Debug)]
pub struct Timing {
    /// From the call to its return, nothing waited for.
    pub host: Vec<f64>,
    /// Between events before and after; on the CPU the whole call.
    pub device: Vec<f64>,
    /// What the chain did in the first warm-up call (or the first call).
    pub calls: Vec<Record>,
}

/// Mean, deviation and order statistics of some times.
#[derive(Clone, Copy, Debug, serde::Serialize)]
#[allow(missing_docs)]
pub struct Statistics {
    pub mean: f64,
    pub std: f64,
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

impl Statistics {
    /// Of at least one time; zeros for none.
    pub fn of(times: &[f64]) -> Statistics {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len().max(1) as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let std = (sorted.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / n).sqrt();
        let at = |i: usize| sorted.get(i).copied().unwrap_or(0.0);
        Statistics { mean, std, min: at(0), median: at(sorted.len() / 2), max: at(sorted.len().saturating_sub(1)) }
    }
}

impl Timing {
    /// Bytes that the calls read and wrote at the least.
    pub fn bytes(&self) -> usize {
        self.calls.iter().map(|c| c.bytes).sum()
    }

    /// [`served_by`] of its calls.
    pub fn served_by(&self) -> String {
        served_by(&self.calls)
    }
}

/// Who served these calls, each once, in order.
pub fn served_by(calls: &[Record]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in calls.iter().filter_map(|c| c.served_by) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() { "none (a view)".into() } else { names.join("+") }
}

/// Runs `work` repeatedly on `device`. `work` must end with its result computed (`eval`), not waited for.
pub fn time<T>(device: Device, effort: Effort, mut work: impl FnMut() -> Result<T>) -> Result<(T, Timing)> {
    let driver = driver(device)?;
    let stream = Stream::current(device);
    let (first, calls) = explain(&mut work);
    let mut last = first?;
    for _ in 1..effort.warmup {
        last = work()?;
    }
    driver.synchronize()?;
    let (mut host, mut on_device) = (Vec::new(), Vec::new());
    let began = Instant::now();
    while host.len() < effort.repeat.max(1) && (host.is_empty() || began.elapsed().as_secs_f64() < effort.max_seconds) {
        let before = driver.record_event(stream)?;
        let start = Instant::now();
        last = work()?;
        host.push(start.elapsed().as_secs_f64() * 1e6);
        let after = driver.record_event(stream)?;
        on_device.push(after.millis_since(before.as_ref())? * 1e3);
    }
    driver.synchronize()?;
    Ok((last, Timing { host, device: on_device, calls }))
}
