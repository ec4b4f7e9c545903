//! The works of the tour, timed: JSON lines to set beside those of `benches/peers/works.py`.
//!
//!     cargo bench --bench workloads -- [--json] [--only add,sum] [--seconds 2] [--device cuda] [--quick]
//!
//! `gpu_us` (device time between events) and `cpu_us` (host time of the call) on a GPU, `us` (time of the call) on the
//! CPU: medians.

use cuprum::{Device, NdArray, Result, with_device};
use cuprum_cli::measure::{Effort, Statistics, Timing, time};
use cuprum_cli::works::{Size, WORKS, Work};
use serde_json::json;

struct Options {
    json: bool,
    only: Vec<String>,
    seconds: f64,
    device: String,
    size: Size,
}

fn options() -> std::result::Result<Options, String> {
    let mut o = Options { json: false, only: vec![], seconds: 2.0, device: "auto".into(), size: Size::Full };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--json" => o.json = true,
            "--quick" => o.size = Size::Quick,
            "--only" => o.only = value()?.split(',').map(str::to_string).collect(),
            "--seconds" => o.seconds = value()?.parse().map_err(|_| "--seconds takes a number".to_string())?,
            "--device" => o.device = value()?,
            "--bench" | "--test" => {} // cargo's own
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(o)
}

fn main() -> std::process::ExitCode {
    let result = options().and_then(|o| run(&o).map_err(|e| e.to_string()));
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            std::process::ExitCode::from(2)
        }
    }
}

fn run(o: &Options) -> Result<()> {
    let device = Device::parse(&o.device)?;
    for work in WORKS.iter().filter(|w| o.only.is_empty() || o.only.iter().any(|part| w.name.contains(part.as_str()))) {
        let timing = measure(work, device, o)?;
        let (host, on_device) = (Statistics::of(&timing.host), Statistics::of(&timing.device));
        let mut line = json!({"peer": "cuprum", "workload": work.name, "device": device.to_string(), "served_by": timing.served_by()});
        if device == Device::CPU {
            line["us"] = json!(round(host.median));
            line["min_us"] = json!(round(host.min));
        } else {
            line["gpu_us"] = json!(round(on_device.median));
            line["cpu_us"] = json!(round(host.median));
        }
        if work.flops > 0.0 {
            line["GFLOP_s"] = json!(round(work.flops / on_device.median / 1e3));
        } else {
            line["GB_s"] = json!(round(timing.bytes() as f64 / on_device.median / 1e3));
        }
        if o.json {
            println!("{line}");
        } else {
            println!("{:<24} {:>12.1} us  host {:>10.1} us  by {}", work.name, on_device.median, host.median, timing.served_by());
        }
    }
    Ok(())
}

fn measure(work: &Work, device: Device, o: &Options) -> Result<Timing> {
    let inputs: Result<Vec<NdArray>> = work.host_inputs(o.size)?.iter().map(|a| a.to_device(device)).collect();
    let inputs = inputs?;
    let effort = Effort { warmup: 3, repeat: if device == Device::CPU { 50 } else { 20 }, max_seconds: o.seconds };
    Ok(time(device, effort, || with_device(device, || (work.run)(&inputs)?.eval().cloned()))?.1)
}

fn round(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}
