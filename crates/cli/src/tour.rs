//! `cuprum tour`: runs the workloads on each device, with each order in which dispatch tries the accelerators (CUB, cuTENSOR). It reports
//! the times, the accelerator that served each call, and the largest error relative to the CPU. Three sentences that follow from the
//! results end the report.

mod text_wrapping;
mod tour_summary;

use std::io::{self, IsTerminal};

use comfy_table::{CellAlignment, Table, presets};
use cuprum::core::Availability;
use cuprum::core::registry;
use cuprum::profiler::{BenchmarkLimits, benchmark_on};
use cuprum::{Device, NdArray, Result, with_accelerators, with_device};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use text_wrapping::{LINE_WIDTH, count_with_noun, wrap_text};
use tour_summary::{MissingAccelerator, TourContext};

use crate::failure::Failure;
use crate::terminal_output;
use crate::workloads::{ErrorUnit, WORKLOADS, Workload, WorkloadSize};

/// Options of the command `cuprum tour`.
#[derive(Clone, Copy, Debug)]
pub struct TourOptions {
    /// Use small arrays and few repeats.
    pub quick: bool,
    /// Print JSON lines instead of a table.
    pub json: bool,
}

/// The measurement of one workload on one device under one accelerator order.
#[derive(Serialize)]
struct TourMeasurement {
    work: &'static str,
    device: String,
    accelerators: String,
    served_by: String,
    host_us: f64,
    device_us: f64,
    /// Number of bytes that the calls read and write.
    bytes: f64,
    flops: f64,
    error: Option<f64>,
    unit: &'static str,
    agrees: bool,
    message: Option<String>,
}

/// Returns the accelerator orders to compare on `device`: the empty order (the device's own accelerator only), each ready accelerator
/// alone, and each ordered pair.
fn accelerator_orders_to_compare(device: Device) -> Vec<String> {
    let kind = device.kind().name();
    let ready: Vec<&str> = registry::all_accelerators()
        .into_iter()
        .filter(|a| a.device == kind && a.base.is_none() && matches!(registry::availability(a), Availability::Ready(_)))
        .map(|a| a.name)
        .collect();
    let mut orders = vec![String::new()];
    orders.extend(ready.iter().map(|a| a.to_string()));
    for a in &ready {
        orders.extend(ready.iter().filter(|b| *b != a).map(|b| format!("{a},{b}")));
    }
    orders
}

/// Runs `cuprum tour`, which times and compares all accelerators. Returns false if a workload failed or gave a wrong result.
///
/// # Errors
///
/// Returns a failure if the inputs or references cannot be computed, or output cannot be written.
pub fn run_tour(options: &TourOptions) -> Result<bool, Failure> {
    // The largest workload needs about 4 GB of host memory. Machines with less memory run the small arrays.
    let memory = cuprum::core::settings::physical_memory();
    let little_memory = memory > 0 && memory < 12 << 30;
    let size = if options.quick || little_memory { WorkloadSize::Quick } else { WorkloadSize::Full };
    let configurations: Vec<(Device, String)> =
        Device::all().into_iter().flat_map(|d| accelerator_orders_to_compare(d).into_iter().map(move |order| (d, order))).collect();
    let bar = new_progress_bar((WORKLOADS.len() * configurations.len()) as u64, options.json);
    let mut rows = Vec::new();
    for (number, work) in (1..).zip(WORKLOADS) {
        bar.set_message(work.name);
        let inputs = work.host_inputs(size).map_err(Failure::failed_run)?;
        let reference = work.host_reference(&inputs).map_err(Failure::failed_run)?;
        if !options.json {
            let reduced = if size == WorkloadSize::Quick { ", with at most 10^6 elements or smaller matrices" } else { "" };
            let heading = format!("[{number}/{}] {}: {}{reduced}", WORKLOADS.len(), work.name, work.what);
            bar.suspend(|| terminal_output::print_line(format_args!("\n{}", wrap_text(&heading, 2))))?;
        }
        let mut on_device: Option<(Device, Result<Vec<NdArray>>)> = None;
        for (device, order) in &configurations {
            if on_device.as_ref().is_none_or(|(d, _)| d != device) {
                on_device = Some((*device, inputs.iter().map(|a| a.to_device(*device)).collect()));
            }
            let row = match &on_device {
                Some((_, Ok(inputs))) => measure_workload(work, *device, order, inputs, &reference, size),
                Some((_, Err(e))) => Err(e.clone()),
                None => continue,
            };
            let row = row.unwrap_or_else(|e| failed_measurement(work, *device, order, &e));
            bar.suspend(|| print_measurement(&row, options.json))?;
            bar.inc(1);
            rows.push(row);
        }
    }
    bar.finish_and_clear();
    let agree = rows.iter().all(|r| r.agrees);
    if !options.json {
        print_time_and_accelerator_tables(&rows)?;
        let missing = unavailable_accelerators();
        for (accelerator, summary) in &missing {
            let between = if accelerator.help.is_empty() { "" } else { "; " };
            let MissingAccelerator { name, why, help } = accelerator;
            terminal_output::print_line(wrap_text(&format!("not available: {name} ({summary}): {why}{between}{help}"), 2))?;
        }
        let wrong = rows.iter().filter(|r| !r.agrees).count();
        terminal_output::print_line(format_args!("{}, {wrong} of them wrong or failed\n", count_with_noun(rows.len(), "result")))?;
        let missing = missing.into_iter().map(|(accelerator, _)| accelerator).collect();
        for sentence in tour_summary::summary_sentences(&rows, &TourContext { missing, quick: options.quick, little_memory }) {
            terminal_output::print_line(wrap_text(&sentence, 2))?;
        }
    }
    Ok(agree)
}

/// Returns a progress bar on standard error. It is hidden if standard error is no terminal, or if the output is JSON.
fn new_progress_bar(total: u64, json: bool) -> ProgressBar {
    if json || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len} results, {elapsed}, {msg}");
    ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn measure_workload(
    work: &Workload,
    device: Device,
    order: &str,
    inputs: &[NdArray],
    reference: &NdArray,
    size: WorkloadSize,
) -> Result<TourMeasurement> {
    let effort = match (device == Device::CPU, size) {
        (_, WorkloadSize::Quick) => BenchmarkLimits { warmup: 1, repeat: 3, max_seconds: 0.2 },
        (true, _) => BenchmarkLimits { warmup: 1, repeat: 10, max_seconds: 0.7 },
        (false, _) => BenchmarkLimits { warmup: 3, repeat: 20, max_seconds: 2.0 },
    };
    let compute = || with_device(device, || (work.run)(inputs)?.eval().cloned());
    let (result, timing) = with_accelerators(order, || benchmark_on(&[device], effort, compute))??;
    let error = work.max_error(&result, reference)?;
    Ok(TourMeasurement {
        work: work.name,
        device: device.to_string(),
        accelerators: order.to_string(),
        served_by: timing.served_by(),
        host_us: timing.host_times().median,
        device_us: timing.device_times().median,
        bytes: timing.bytes() as f64,
        flops: work.flops,
        error: Some(error),
        unit: error_unit_name(work),
        agrees: error <= work.tolerance,
        message: None,
    })
}

fn error_unit_name(work: &Workload) -> &'static str {
    match work.unit {
        ErrorUnit::Ulp => "ulp",
        ErrorUnit::Relative => "relative",
    }
}

fn failed_measurement(work: &Workload, device: Device, order: &str, e: &cuprum::Error) -> TourMeasurement {
    TourMeasurement {
        work: work.name,
        device: device.to_string(),
        accelerators: order.to_string(),
        served_by: "-".into(),
        host_us: 0.0,
        device_us: 0.0,
        bytes: 0.0,
        flops: work.flops,
        error: None,
        unit: error_unit_name(work),
        agrees: false,
        message: Some(e.to_string()),
    }
}

fn format_result_error(row: &TourMeasurement) -> String {
    match (row.error, row.unit) {
        (None, _) => "failed".into(),
        (Some(e), "ulp") => format!("{e:.1} ulp"),
        (Some(e), _) => format!("{e:.1e}"),
    }
}

/// Formats a time of `us` microseconds in s, ms or us.
fn format_time(us: f64) -> String {
    match us {
        u if u >= 1e6 => format!("{:.2} s", u / 1e6),
        u if u >= 1e3 => format!("{:.2} ms", u / 1e3),
        u => format!("{u:.1} us"),
    }
}

fn format_accelerator_order(row: &TourMeasurement) -> String {
    if row.accelerators.is_empty() { "(base)".into() } else { row.accelerators.clone() }
}

fn print_measurement(row: &TourMeasurement, json: bool) -> io::Result<()> {
    if json {
        return terminal_output::print_line(serde_json::to_string(row).unwrap_or_default());
    }
    let configuration = format!("{} {}", row.device, format_accelerator_order(row));
    // Only messages are wrapped: a row of aligned columns must stay on one line.
    match &row.message {
        Some(message) => terminal_output::print_line(wrap_text(&format!("  {configuration} FAILED: {message}"), 4)),
        None => terminal_output::print_line(truncate_line(&format!(
            "  {configuration:<22} host {:>9}  device {:>9}  by {:<10} error {}{}",
            format_time(row.host_us),
            format_time(row.device_us),
            row.served_by,
            format_result_error(row),
            if row.agrees { "" } else { "  DISAGREES" }
        ))),
    }
}

/// Returns the first [`LINE_WIDTH`] characters of `line`.
fn truncate_line(line: &str) -> String {
    line.chars().take(LINE_WIDTH).collect()
}

/// Prints tables of device times and of the accelerators that ran the calls: a row per workload, a column per device and order. Columns
/// that do not fit are printed in another table.
fn print_time_and_accelerator_tables(rows: &[TourMeasurement]) -> io::Result<()> {
    let mut configurations: Vec<(String, String)> = Vec::new();
    for r in rows {
        let configuration = (r.device.clone(), format_accelerator_order(r));
        if !configurations.contains(&configuration) {
            configurations.push(configuration);
        }
    }
    let mut rest = configurations.as_slice();
    while !rest.is_empty() {
        let fits = |n: &usize| device_time_table(rows, &rest[..*n]).lines().all(|line| line.chars().count() <= LINE_WIDTH);
        let count = (1..=rest.len()).take_while(fits).last().unwrap_or(1);
        terminal_output::print_line(format_args!("\n{}", device_time_table(rows, &rest[..count])))?;
        rest = &rest[count..];
    }
    terminal_output::print_line("(median device time; below it the accelerator that served)")
}

/// Returns the table for the columns `configurations`, pairs of a device and an accelerator order.
fn device_time_table(rows: &[TourMeasurement], configurations: &[(String, String)]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(
        std::iter::once("workload".to_string())
            .chain(configurations.iter().map(|(d, a)| format!("{d}\n{}", a.replace(',', ",\n"))))
            .chain(["largest error".into()]),
    );
    for work in WORKLOADS {
        let workload_rows: Vec<&TourMeasurement> = rows.iter().filter(|r| r.work == work.name).collect();
        let cell = |(device, order): &(String, String)| {
            let row = workload_rows.iter().find(|r| r.device == *device && format_accelerator_order(r) == *order);
            row.map_or(String::new(), |r| match (&r.message, r.agrees) {
                (Some(_), _) => "failed".into(),
                (None, true) => format!("{}\n{}", format_time(r.device_us), r.served_by),
                (None, false) => format!("{}\nWRONG", format_time(r.device_us)),
            })
        };
        let worst = workload_rows
            .iter()
            .filter(|r| r.error.is_some())
            .max_by(|a, b| a.error.partial_cmp(&b.error).unwrap_or(std::cmp::Ordering::Equal));
        let worst = worst.map_or("failed".to_string(), |r| format_result_error(r));
        table.add_row(std::iter::once(work.name.to_string()).chain(configurations.iter().map(cell)).chain([worst]));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// Returns the accelerators that are not available, each with its summary.
fn unavailable_accelerators() -> Vec<(MissingAccelerator, &'static str)> {
    let describe = |a: &'static cuprum::core::Accelerator| match registry::availability(a) {
        Availability::Missing { why, help } => Some((MissingAccelerator { name: a.name.into(), why, help }, a.summary)),
        Availability::Ready(_) => None,
    };
    registry::all_accelerators().into_iter().filter_map(describe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_many_orders_fit_the_width() {
        let orders = ["", "cub", "cutensor", "cub,cutensor", "cutensor,cub"];
        let mut rows = Vec::new();
        for work in WORKLOADS {
            for device in ["cpu", "cuda:0", "cuda:1"] {
                for order in orders {
                    let e = cuprum::Error::value("tour", "message");
                    let row = failed_measurement(work, Device::CPU, order, &e);
                    let served_by = "cutensor".to_string();
                    rows.push(TourMeasurement {
                        device: device.into(),
                        message: None,
                        agrees: true,
                        device_us: 123_456.7,
                        served_by,
                        ..row
                    });
                }
            }
        }
        let columns: Vec<(String, String)> = orders.iter().map(|o| ("cuda:0".to_string(), o.to_string())).collect();
        let narrow = device_time_table(&rows, &columns[..3]);
        assert!(narrow.lines().all(|l| l.chars().count() <= LINE_WIDTH), "{narrow}");
        assert!(narrow.contains("123.46 ms"), "{narrow}");
    }
}
