//! `cuprum bench --report`: makes a static page from JSON lines of benchmarks. The page has no scripts and loads no other files.

mod html_page;
mod measurements;
mod size_sweeps;

use std::path::{Path, PathBuf};

use cuprum::io;
use measurements::{Measurements, SpeedLimit};
use serde_json::Value;

use crate::failure::Failure;
use crate::terminal_output;

/// Options of `cuprum bench` that make a report.
#[derive(clap::Args, Debug, Default)]
pub struct ReportArguments {
    /// Make a page from JSON lines in this folder: index.html and lines.jsonl
    #[arg(long, value_name = "FOLDER", requires = "from", conflicts_with_all = ["expression", "json", "device", "mesh", "accelerators", "repeat", "warmup", "max_seconds"])]
    report: Option<PathBuf>,
    /// Files of JSON lines from one machine and device, by `workloads --json` and the scripts that time other libraries
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "report")]
    from: Vec<PathBuf>,
    /// Output of `cuprum info --json` on the measured machine
    #[arg(long, value_name = "FILE", requires = "report")]
    machine: Option<PathBuf>,
    /// Text below the title of the page, such as date, commit and command
    #[arg(long, value_name = "TEXT", requires = "report")]
    note: Option<String>,
    /// Limit of the machine: GB_s or GFLOP_s = a number, or a workload whose rate is the limit
    #[arg(long, value_name = "UNIT=LIMIT", requires = "report", value_parser = SpeedLimit::parse_speed_limit)]
    limit: Vec<SpeedLimit>,
}

impl ReportArguments {
    /// Returns the folder to which `cuprum bench --report` writes the page, or `None` without this option.
    pub fn report_folder(&self) -> Option<&Path> {
        self.report.as_deref()
    }
}

/// Runs `cuprum bench --report`: reads JSON lines of benchmarks, and writes the page and the lines to `folder`. If a file cannot be
/// written, no new file remains.
///
/// # Errors
///
/// Returns a failure for files that cannot be read, for files without a measurement of cuprum, and for output that cannot be written.
pub fn write_report(arguments: &ReportArguments, folder: &Path) -> Result<(), Failure> {
    let mut measurements = Measurements::default();
    for path in &arguments.from {
        let text = io::read_file(path)?;
        measurements.read_json_lines(&path.to_string_lossy(), &String::from_utf8_lossy(&text));
    }
    if measurements.workload_count() == 0 {
        let names: Vec<String> = arguments.from.iter().map(|p| p.display().to_string()).collect();
        return Err(Failure::bad_input(format!("--from: no measurement of cuprum in {}", names.join(", "))));
    }
    let limits = arguments.limit.iter().map(|l| measurements.resolve_speed_limit(l)).collect::<Result<Vec<_>, _>>();
    let limits = limits.map_err(|e| Failure::bad_input(format!("--limit: {e}")))?;
    let machine = match &arguments.machine {
        None => Value::Null,
        Some(path) => {
            let value: Option<Value> = serde_json::from_slice(&io::read_file(path)?).ok();
            value
                .filter(Value::is_object)
                .ok_or_else(|| Failure::bad_input(format!("--machine: {} is not the output of `cuprum info --json`", path.display())))?
        }
    };
    let html = html_page::render_html_page(&measurements, &limits, &machine, arguments.note.as_deref());
    let is_new = !folder.exists();
    std::fs::create_dir_all(folder).map_err(|e| Failure::of_file(folder, e).with_origin("--report"))?;
    let (lines, index) = (folder.join("lines.jsonl"), folder.join("index.html"));
    let had_lines = lines.exists();
    let written = write_text_file(&lines, measurements.json_lines()).and_then(|()| write_text_file(&index, &html));
    if let Err(e) = written {
        if !had_lines {
            let _ = std::fs::remove_file(&lines);
        }
        if is_new {
            let _ = std::fs::remove_dir(folder);
        }
        return Err(e.into());
    }
    Ok(terminal_output::print_line(format_args!("{}: {}", index.display(), measurements.workload_and_peer_summary()))?)
}

fn write_text_file(path: &Path, text: &str) -> cuprum::Result<()> {
    io::write_file(path, |file| file.write_all(text.as_bytes()).map_err(|e| cuprum::Error::system(path, e)))
}
