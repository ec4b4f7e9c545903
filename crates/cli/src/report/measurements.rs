//! Benchmark measurements, read from JSON lines. Lines without a valid measurement are kept with the reason for their rejection.

use serde_json::Value;

/// Library name in the JSON lines of cuprum's own measurements.
const OWN_LIBRARY_NAME: &str = "cuprum";

/// One measurement of a workload by one library.
#[derive(Clone, Debug)]
pub struct Measurement {
    pub us: f64,
    /// The shortest time in microseconds, if the JSON line contains it.
    pub min_us: Option<f64>,
    /// Name of the accelerator that ran cuprum's call.
    pub served_by: String,
    rates: [Option<f64>; 2],
}

/// Range of valid times and rates. Ratios of numbers outside this range could be infinite or zero.
const VALID_TIMES_AND_RATES: std::ops::RangeInclusive<f64> = 1e-6..=1e15;

/// The units in which limits and rates are given.
const RATE_UNITS: [&str; 2] = ["GB_s", "GFLOP_s"];

/// An upper limit of the machine's speed (`--limit`): a unit with a number, or with the name of a workload whose rate is the limit.
#[derive(Clone, Debug)]
pub struct SpeedLimit {
    unit: usize,
    value: String,
}

impl SpeedLimit {
    pub fn parse_speed_limit(text: &str) -> Result<SpeedLimit, String> {
        let (unit, value) = text.split_once('=').ok_or("takes UNIT=LIMIT")?;
        let unit =
            RATE_UNITS.iter().position(|u| *u == unit).ok_or_else(|| format!("the unit is {}, not '{unit}'", RATE_UNITS.join(" or ")))?;
        Ok(SpeedLimit { unit, value: value.to_string() })
    }
}

/// One row of the report: cuprum's measurement of a workload, and the measurements of the other libraries.
pub struct WorkloadRow<'a> {
    pub workload: &'a str,
    pub subject: &'a Measurement,
    /// Measurements of the other libraries, in the order of [`Measurements::peer_names`]. `None` where a library has no measurement.
    pub peers: Vec<Option<&'a Measurement>>,
    /// Time of the fastest other library divided by cuprum's time.
    pub ratio: Option<f64>,
}

/// The measurements of several files. For repeated measurements, the shortest time counts.
#[derive(Default)]
pub struct Measurements {
    cells: Vec<(String, String, Measurement)>,
    workloads: Vec<String>,
    peers: Vec<String>,
    /// Lines without a valid time, each with its file and the reason.
    pub unused: Vec<String>,
    lines: String,
}

impl Measurements {
    /// Reads the JSON lines of one file, whose name is `origin`. Skips lines that do not begin with `{`, which are other output.
    pub fn read_json_lines(&mut self, origin: &str, text: &str) {
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| line.starts_with('{')) {
            self.lines.push_str(line);
            self.lines.push('\n');
            if let Err(reason) = self.parse_json_line(line) {
                self.unused.push(format!("{origin}, line {number}: {reason}"));
            }
        }
    }

    fn parse_json_line(&mut self, line: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(line).map_err(|_| "not valid JSON, such as for a time of NaN".to_string())?;
        let text = |key: &str| value[key].as_str();
        let (Some(peer), Some(workload)) = (text("peer"), text("workload")) else {
            return Err("no peer or no workload".into());
        };
        if let Some(error) = text("error") {
            return Err(format!("{workload}: {peer}: {error}"));
        }
        let usable = |key: &str| value[key].as_f64().filter(|number| VALID_TIMES_AND_RATES.contains(number));
        // `gpu_us` is the time on a GPU, `us` the time on the CPU. Lines of `bare_launch`, which times launches without dispatch, have
        // neither and are rejected.
        let us = usable("gpu_us").or(usable("us")).ok_or_else(|| format!("{workload}: {peer}: lacks a time between 1e-6 and 1e15 us"))?;
        let served_by = text("served_by").unwrap_or_default().to_string();
        let measurement = Measurement { us, min_us: usable("min_us"), served_by, rates: RATE_UNITS.map(usable) };
        for (names, name) in [(&mut self.workloads, workload), (&mut self.peers, peer)] {
            if !names.iter().any(|n| n == name) {
                names.push(name.to_string());
            }
        }
        match self.cells.iter_mut().find(|(w, p, _)| w == workload && p == peer) {
            Some((_, _, known)) if us < known.us => *known = measurement,
            Some(_) => {}
            None => self.cells.push((workload.to_string(), peer.to_string(), measurement)),
        }
        Ok(())
    }

    fn find_measurement(&self, workload: &str, peer: &str) -> Option<&Measurement> {
        self.cells.iter().find(|(w, p, _)| w == workload && p == peer).map(|(_, _, m)| m)
    }

    /// Returns the names of the other libraries.
    pub fn peer_names(&self) -> Vec<&str> {
        self.peers.iter().map(String::as_str).filter(|p| *p != OWN_LIBRARY_NAME).collect()
    }

    /// Returns one row for each of cuprum's measurements: first the workloads where another library is faster, in order of the ratio, then
    /// workloads without another library.
    pub fn workload_rows(&self) -> Vec<WorkloadRow<'_>> {
        let row = |workload: &'_ String| {
            let (workload, subject) =
                self.workloads.iter().find(|w| *w == workload).and_then(|w| Some((w, self.find_measurement(w, OWN_LIBRARY_NAME)?)))?;
            let peers: Vec<Option<&Measurement>> = self.peer_names().iter().map(|p| self.find_measurement(workload, p)).collect();
            let best = peers.iter().flatten().map(|m| m.us).min_by(f64::total_cmp);
            Some(WorkloadRow { workload, subject, peers, ratio: best.map(|us| us / subject.us) })
        };
        let mut rows: Vec<WorkloadRow> = self.workloads.iter().filter_map(row).collect();
        rows.sort_by(|a, b| a.ratio.unwrap_or(f64::INFINITY).total_cmp(&b.ratio.unwrap_or(f64::INFINITY)));
        rows
    }

    /// Returns the number of workloads that cuprum has measured.
    pub fn workload_count(&self) -> usize {
        self.cells.iter().filter(|(_, peer, _)| peer == OWN_LIBRARY_NAME).count()
    }

    /// Returns the JSON lines of all files.
    pub fn json_lines(&self) -> &str {
        &self.lines
    }

    /// Returns a sentence with the numbers of rows, other libraries and unused lines.
    pub fn workload_and_peer_summary(&self) -> String {
        format!("{} workloads, {} peers, {} lines without a time", self.workload_count(), self.peer_names().len(), self.unused.len())
    }

    /// Resolves a limit to an index in [`RATE_UNITS`] and a rate in this unit.
    pub fn resolve_speed_limit(&self, limit: &SpeedLimit) -> Result<(usize, f64), String> {
        let rate = limit.value.parse::<f64>().ok().or_else(|| self.find_measurement(&limit.value, OWN_LIBRARY_NAME)?.rates[limit.unit]);
        let rate = rate.filter(|r| VALID_TIMES_AND_RATES.contains(r));
        let unit = RATE_UNITS[limit.unit];
        rate.map(|rate| (limit.unit, rate))
            .ok_or_else(|| format!("'{}' is neither a number between 1e-6 and 1e15 nor a workload with {unit}", limit.value))
    }
}

impl Measurement {
    /// Formats the rate with its unit. Returns `None` if the measurement has no rate.
    pub fn format_rate(&self) -> Option<String> {
        let [bytes, flops] = self.rates;
        bytes.map(|r| format!("{r:.1} GB/s")).or(flops.map(|r| format!("{:.3} TFLOP/s", r / 1e3)))
    }

    /// Returns the rate as a fraction of the first of `limits` in the same unit. `limits` are pairs of an index in [`RATE_UNITS`] and a
    /// rate.
    pub fn fraction_of_limit(&self, limits: &[(usize, f64)]) -> Option<f64> {
        limits.iter().find_map(|&(unit, limit)| self.rates[unit].map(|rate| rate / limit))
    }
}

/// Returns the name of the operation: the part of `workload` before the first underscore.
pub fn operation_of_workload(workload: &str) -> &str {
    workload.split('_').next().unwrap_or(workload)
}

/// Returns the geometric mean of `ratios`, or `None` if the slice is empty.
pub fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    (!ratios.is_empty()).then(|| (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp())
}
