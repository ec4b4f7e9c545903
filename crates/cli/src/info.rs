//! `cuprum info`: the devices and accelerators of this machine, advice on missing ones, and the settings in effect.

use cuprum::Device;
use cuprum::core::Availability;
use cuprum::core::{registry, settings};
use cuprum::io::escape_control_characters;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::terminal_output::{self, empty_table};
use crate::{operation_coverage, tune};

/// Show the devices, the accelerators with the reason if one is missing, and the settings in effect.
#[derive(clap::Args, Debug)]
pub struct InfoArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show only the measurements for CUPRUM_ACCELERATORS=auto
    #[arg(long)]
    tuning: bool,
    /// Show only the dtypes that cub accepts for each operation, and why it declines the others
    #[arg(long, conflicts_with = "tuning")]
    ops: bool,
}

/// Runs `cuprum info`. The report is printed even if a setting is invalid.
///
/// # Errors
///
/// Returns a failure for an invalid setting, or for output that cannot be written.
pub fn run_info(arguments: &InfoArguments) -> Result<(), Failure> {
    let problem = settings::check().err();
    let (report, format): (Value, fn(&Value) -> String) = match (arguments.tuning, arguments.ops) {
        (true, _) => (tune::measurements_as_json()?, tune::format_measurements),
        (_, true) => (operation_coverage::coverage_report()?, operation_coverage::format_report),
        _ => (device_report()?, format_report),
    };
    let text = if arguments.json { format!("{report:#}\n") } else { format(&report) };
    terminal_output::print_text(&text)?;
    problem.map_or(Ok(()), |e| Err(e.into()))
}

/// Returns the report of `cuprum info` as JSON, from which the text report is made.
fn device_report() -> Result<Value, Failure> {
    let devices: Vec<Value> = Device::all().into_iter().map(describe_device).collect();
    // If the accelerator order in the settings is invalid, the report lists the accelerators without their positions.
    let placed = registry::accelerator_status().unwrap_or_default();
    let accelerators: Vec<Value> = registry::all_accelerators()
        .into_iter()
        .map(|a| {
            let place = placed.iter().find(|s| s.accelerator.name == a.name).and_then(|s| s.position);
            let (ready, detail, help) = match registry::availability(a) {
                Availability::Ready(detail) => (true, detail, String::new()),
                Availability::Missing { why, help } => (false, why, help),
            };
            json!({"name": a.name, "device": a.device, "base": a.base.is_some(), "summary": a.summary,
                "ready": ready, "detail": detail, "help": help, "place": place})
        })
        .collect();
    let settings: Vec<Value> =
        settings::variables().into_iter().map(|s| json!({"variable": s.variable, "value": s.value, "default": s.default})).collect();
    let current = Device::current().map(|d| d.to_string()).ok();
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "default_device": current,
        "threads": settings::num_threads().ok().flatten().or_else(|| std::thread::available_parallelism().ok().map(usize::from)),
        "memory": settings::physical_memory(),
        "devices": devices,
        "accelerators": accelerators,
        "cache_folder": settings::cache_folder().map(|path| path.to_string_lossy().into_owned()),
        "settings": settings,
    }))
}

fn describe_device(device: Device) -> Value {
    match device.info() {
        Ok(info) => {
            let details: serde_json::Map<String, Value> =
                info.details.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
            json!({"device": device.to_string(), "name": info.name, "units": info.units,
                "memory_total": info.memory_total, "memory_used": info.memory_used, "details": details})
        }
        Err(e) => json!({"device": device.to_string(), "error": e.to_string()}),
    }
}

fn format_report(report: &Value) -> String {
    let list = |key: &str| report[key].as_array().cloned().unwrap_or_default();
    let word = |v: &Value| v.as_str().unwrap_or_default().to_string();
    let mut out = format!("cuprum {}\n\n", word(&report["version"]));

    let mut devices = empty_table(&["device", "", "", "memory", ""]);
    for d in list("devices") {
        let chosen = if d["device"] == report["default_device"] { " (default)" } else { "" };
        let units = d["units"].as_u64().unwrap_or(0);
        let units = match (d["device"] == "cpu", units) {
            (_, 0) => String::new(),
            (true, n) => format!("{n} cores"),
            (false, n) => format!("{n} multiprocessors"),
        };
        let details = d["details"].as_object().cloned().unwrap_or_default();
        let details: Vec<String> = details.iter().map(|(name, value)| format!("{name} {}", word(value))).collect();
        let name = d["error"].as_str().map_or(word(&d["name"]), str::to_string);
        devices.add_row([
            format!("{}{chosen}", word(&d["device"])),
            name,
            units,
            format_bytes(d["memory_total"].as_u64()),
            details.join(", "),
        ]);
    }
    out += &format!("{devices}\n\n");

    let mut accelerators = empty_table(&["accelerator", "device", "", "position", "details and advice"]);
    for a in list("accelerators") {
        let ready = a["ready"] == true;
        let position = match (a["place"].as_u64(), ready) {
            (Some(n), _) => (n + 1).to_string(),
            (None, true) => "not in the order".into(),
            (None, false) => String::new(),
        };
        let help = word(&a["help"]);
        let detail = if help.is_empty() { word(&a["detail"]) } else { format!("{}\n{help}", word(&a["detail"])) };
        accelerators.add_row([word(&a["name"]), word(&a["device"]), if ready { "ready" } else { "missing" }.into(), position, detail]);
    }
    out += &format!("{accelerators}\n\n");

    let mut settings = empty_table(&["setting", "value"]);
    for s in list("settings") {
        let value = s["value"]
            .as_str()
            .map_or_else(|| format!("{} (default)", word(&s["default"])), |v| format!("'{}'", escape_control_characters(v)));
        settings.add_row([word(&s["variable"]), value]);
    }
    out += &format!("{settings}\n");
    let cache = report["cache_folder"].as_str().unwrap_or("none: there is no home directory");
    out + &format!("\ncache of compiled kernels and measurements: {}\n", escape_control_characters(cache))
}

fn format_bytes(n: Option<u64>) -> String {
    match n {
        None | Some(0) => String::new(),
        Some(n) => format!("{:.1} GiB", n as f64 / (1u64 << 30) as f64),
    }
}
