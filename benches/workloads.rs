//! Benchmark of named workloads. `--json` prints JSON lines, which `benches/ratios.py` joins with those of `benches/peers/`.
//!
//!     cargo bench --bench workloads -- [--suite works|cpu|scale|gpu|products|contractions|kernels|linalg|linalg_cpu|sparse|sparse_cpu|mesh] [--list] [--json] [--only add,sum] [--seconds 0.5] [--threads N]
//!                                      [--device cuda] [--ranks 2] [--quick] [--orders 'auto;;cub;cutensor,cub' [--rounds 3]]
//!
//! Suites:
//!
//! - `works` (default): the workloads of the tour, on any device; peer `peers/works.py`
//! - `cpu`, `gpu`: peers `peers/cpu.py` and `peers/gpu.py`
//! - `products`: products followed by elementwise operations; peer `peers/gpu.py --suite products`
//! - `scale`: sizes from 2^8 to 2^30; on a GPU with `--device cuda`; peers `peers/cpu.py --suite scale`, `peers/gpu.py --suite scale`
//! - `kernels`: user-defined operations, on any device; peer `peers/kernels.py`
//! - `linalg`, `linalg_cpu`: decompositions, and transforms on a GPU; peer `peers/linalg.py`
//! - `sparse`, `sparse_cpu`: sparse products; peer `peers/sparse.py`
//! - `contractions`: compares orders of accelerators
//! - `mesh`: weak scaling over `--ranks` devices; peer `peers/mesh.py`
//!
//! Times are medians in microseconds. On the CPU `us` covers the call and its evaluation, and `min_us` is the minimum. On a GPU `gpu_us`
//! is device time between events, and `cpu_us` host time of the call. `extra_MB` is the peak of the device memory in use during one call,
//! less the memory in use before it: the result and temporary arrays.
//!
//! `gpu` starts with the host time of bare launches, a lower bound for every call: `bare_launch` in a loop, and `bare_launch_waited`
//! after a 40 us wait, in which caches cool down, as for the workloads.
//!
//! `--orders` measures each workload under several accelerator orders in turn, `--rounds` times, so that differences between processes do
//! not count. An empty order is the device's own accelerator alone. The field `peer` of the JSON line holds the order, or `base` for the
//! empty order.

mod suite;

use std::time::Instant;

use cuprum::backend_cpu::with_threads;
use cuprum::backend_cuda::device::minimal_launch_closure;
use cuprum::profiler::{Benchmark, BenchmarkLimits, TimeStatistics, benchmark_on, served_by};
use cuprum::{Device, NdArray, Result, explain, set_accelerators, with_device};
use cuprum_cli::workloads::{self, WORKLOADS, WorkloadSize};
use serde_json::{Value, json};
use suite::{SUITES, Suite, Workload};

struct Options {
    /// The suite to measure; `None` for the workloads of the tour.
    suite: Option<&'static Suite>,
    /// Whether to measure the suite `mesh`, on a mesh of `ranks` ranks.
    mesh: bool,
    ranks: usize,
    list: bool,
    json: bool,
    only: Vec<String>,
    seconds: Option<f64>,
    threads: Option<usize>,
    device: Option<String>,
    size: WorkloadSize,
    /// Orders of accelerators to measure in turn. If empty, only the current order is measured.
    orders: Vec<String>,
    rounds: usize,
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

fn options() -> std::result::Result<Options, String> {
    let mut o = Options {
        suite: None,
        mesh: false,
        ranks: 1,
        list: false,
        json: false,
        only: vec![],
        seconds: None,
        threads: None,
        device: None,
        size: WorkloadSize::Full,
        orders: vec![],
        rounds: 1,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--suite" => match value()?.as_str() {
                "mesh" => o.mesh = true,
                name => o.suite = suite_by_name(name)?,
            },
            "--ranks" => o.ranks = value()?.parse().map_err(|_| "--ranks takes a number".to_string())?,
            "--list" => o.list = true,
            "--json" => o.json = true,
            "--quick" => o.size = WorkloadSize::Quick,
            "--only" => o.only = value()?.split(',').map(str::to_string).collect(),
            "--seconds" => o.seconds = Some(value()?.parse().map_err(|_| "--seconds takes a number".to_string())?),
            "--threads" => o.threads = Some(value()?.parse().map_err(|_| "--threads takes a number".to_string())?),
            "--device" => o.device = Some(value()?),
            "--orders" => o.orders = value()?.split(';').map(str::to_string).collect(),
            "--rounds" => o.rounds = value()?.parse().map_err(|_| "--rounds takes a number".to_string())?,
            "--bench" | "--test" => {} // passed by cargo
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(o)
}

fn suite_by_name(name: &str) -> std::result::Result<Option<&'static Suite>, String> {
    match SUITES.iter().find(|s| s.name == name) {
        _ if name == "works" => Ok(None),
        Some(suite) => Ok(Some(suite)),
        None => Err(format!("unknown suite {name}; known: works, {}", SUITES.iter().map(|s| s.name).collect::<Vec<_>>().join(", "))),
    }
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
    if o.list {
        list(o);
        return Ok(());
    }
    if o.mesh {
        let device = Device::parse(o.device.as_deref().unwrap_or("auto"))?;
        return suite::mesh::run(o.ranks, device, |name| o.wants(name), o.seconds.unwrap_or(0.5), |line| show(o, line));
    }
    let all = || match o.suite {
        None => works(o),
        Some(suite) => {
            let device = Device::parse(o.device.as_deref().unwrap_or(suite.device))?;
            if device != Device::CPU {
                bare_launches(device)?.iter().for_each(|line| show(o, line));
            }
            with_device(device, || suite.workloads.iter().filter(|w| o.wants(w.name)).try_for_each(|w| workload(o, w, device)))
        }
    };
    match o.threads {
        None => all(),
        Some(n) => with_threads(n, all)?,
    }
}

/// Prints the names of the suite's workloads.
fn list(o: &Options) {
    match o.suite {
        None => WORKLOADS.iter().filter(|w| o.wants(w.name)).for_each(|w| println!("{:<28} {}", w.name, w.what)),
        Some(suite) => suite.workloads.iter().filter(|w| o.wants(w.name)).for_each(|w| println!("{}", w.name)),
    }
}

/// Prints the result `line` of one workload, as JSON or as text.
fn show(o: &Options, line: &Value) {
    if o.json {
        println!("{line}");
        return;
    }
    let number = |key: &str| line[key].as_f64();
    let time = number("gpu_us").or(number("us")).unwrap_or(0.0);
    let host = number("cpu_us").map_or(String::new(), |t| format!("  host {t:.1} us"));
    let rate = number("GB_s").map(|r| format!("{r:.1} GB/s")).or(number("GFLOP_s").map(|r| format!("{r:.1} GFLOP/s"))).unwrap_or_default();
    let by = line["served_by"].as_str().unwrap_or_default();
    println!("{:<28} {time:>12.1} us  {rate:>14}{host}  by {by}", line["workload"].as_str().unwrap_or_default());
}

/// Measures one workload `w` of a suite, under each accelerator order in turn.
fn workload(o: &Options, w: &Workload, device: Device) -> Result<()> {
    let mut inputs = (w.inputs)()?;
    inputs.iter().try_for_each(|a| a.eval().map(|_| ()))?;
    let mut line = || match device == Device::CPU {
        true => on_cpu(w, &mut inputs, o.seconds.unwrap_or(0.5)),
        false => on_gpu(w, &mut inputs, device, o.seconds.unwrap_or(2.0)),
    };
    if o.orders.is_empty() {
        show(o, &line()?);
    }
    for order in std::iter::repeat_n(&o.orders, o.rounds).flatten() {
        set_accelerators(order.as_str())?;
        let mut line = line()?;
        line["peer"] = json!(if order.is_empty() { "base" } else { order });
        show(o, &line);
    }
    Ok(())
}

/// Measures one workload on the CPU as `peers/cpu.py` does: two warm-up calls, then calls until the time is up, at least three.
fn on_cpu(w: &Workload, inputs: &mut [NdArray], seconds: f64) -> Result<Value> {
    let mut call = || (w.run)(inputs)?.eval().map(|_| ());
    let (first, calls) = explain(&mut call);
    first?;
    call()?;
    let (began, mut times) = (Instant::now(), Vec::new());
    while times.len() < 3 || began.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        call()?; // includes freeing the result, as the peers' scripts do
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    let taken = TimeStatistics::of(&times);
    let mut line = json!({"peer": "cuprum", "workload": w.name, "us": round(taken.median), "min_us": round(taken.min),
        "served_by": served_by(&calls)});
    rates(&mut line, w, taken.median);
    Ok(line)
}

/// Measures the host time of launches without dispatch: an empty kernel in a loop, and a 40 us kernel timed like a workload.
fn bare_launches(device: Device) -> Result<[Value; 2]> {
    let empty = minimal_launch_closure(device, 0)?;
    let time = |_| {
        let start = Instant::now();
        empty().map(|()| start.elapsed().as_secs_f64() * 1e6)
    };
    let in_a_loop = (0..1000).map(time).collect::<Result<Vec<f64>>>()?;
    let waited = benchmark_on(&[device], BenchmarkLimits { repeat: 200, ..EFFORT }, minimal_launch_closure(device, 40)?)?.1;
    let line = |name: &str, times: TimeStatistics| json!({"peer": "cuprum", "workload": name, "cpu_us": round(times.median)});
    Ok([line("bare_launch", TimeStatistics::of(&in_a_loop)), line("bare_launch_waited", waited.host_times())])
}

/// The number of calls of CuPy's benchmark: 5 warm-up calls, then 20 measured ones.
const EFFORT: BenchmarkLimits = BenchmarkLimits { warmup: 5, repeat: 20, max_seconds: 2.0 };

/// Measures one workload on a GPU, in device time and host time.
fn on_gpu(w: &Workload, inputs: &mut [NdArray], device: Device, seconds: f64) -> Result<Value> {
    let effort = BenchmarkLimits { max_seconds: seconds, ..EFFORT };
    let timing = benchmark_on(&[device], effort, || (w.run)(inputs))?.1;
    let (host, on_device) = (timing.host_times(), timing.device_times());
    let mut line = json!({"peer": "cuprum", "workload": w.name, "gpu_us": round(on_device.median), "min_us": round(on_device.min),
        "cpu_us": round(host.median), "served_by": timing.served_by()});
    rates(&mut line, w, on_device.median);
    line["extra_MB"] = json!(round(peak_memory(w, inputs, device)? as f64 / 1e6));
    Ok(line)
}

/// Returns the peak of the device memory in use during one call, less the memory in use before it, in bytes.
fn peak_memory(w: &Workload, inputs: &mut [NdArray], device: Device) -> Result<usize> {
    device.synchronize()?;
    device.reset_peak_memory()?;
    let before = device.memory_stats()?.used;
    (w.run)(inputs)?.eval()?;
    device.synchronize()?;
    Ok(device.memory_stats()?.peak.saturating_sub(before))
}

fn rates(line: &mut Value, w: &Workload, us: f64) {
    if w.bytes > 0 {
        line["GB_s"] = json!(round(w.bytes as f64 / us / 1e3));
    }
    if w.flops > 0 {
        line["GFLOP_s"] = json!(round(w.flops as f64 / us / 1e3));
    }
}

/// Measures the workloads of the tour.
fn works(o: &Options) -> Result<()> {
    let device = Device::parse(o.device.as_deref().unwrap_or("auto"))?;
    for work in WORKLOADS.iter().filter(|w| o.wants(w.name)) {
        let timing = measure(work, device, o)?;
        let (host, on_device) = (timing.host_times(), timing.device_times());
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
        show(o, &line);
    }
    Ok(())
}

fn measure(work: &workloads::Workload, device: Device, o: &Options) -> Result<Benchmark> {
    let inputs: Result<Vec<NdArray>> = work.host_inputs(o.size)?.iter().map(|a| a.to_device(device)).collect();
    let inputs = inputs?;
    let effort = BenchmarkLimits { warmup: 3, repeat: if device == Device::CPU { 50 } else { 20 }, max_seconds: o.seconds.unwrap_or(2.0) };
    Ok(benchmark_on(&[device], effort, || with_device(device, || (work.run)(&inputs)?.eval().cloned()))?.1)
}

fn round(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}
