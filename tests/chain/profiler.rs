//! Traces and benchmarks.

use std::time::Duration;

use cuprum::core::dispatch::record_launch;
use cuprum::profiler::{BenchmarkLimits, benchmark_on, time_range, trace};
use cuprum::{CallRecord, DType, Device, Error, KernelLaunch, NdArray, Result, Stream, explain, full, ones};
use serde_json::Value;

use crate::devices::{BAKING, on_toy, toy};
use crate::environment::in_child;

fn traced(test: &str, variables: &[(&str, &str)]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    let variables = [variables, &[("CUPRUM_TRACE", file.to_str().unwrap()), ("CUPRUM_DEVICE", "cpu")]].concat();
    let output = in_child(&format!("profiler::{test}"), &variables);
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(file).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Returns the complete events ("X") with this name.
fn bars<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|e| e["ph"] == "X" && e["name"] == name).collect()
}

#[test]
fn calls_and_ranges_are_traced() {
    let events = traced("child_traces", &[]);
    let sums = bars(&events, "sum");
    assert_eq!(sums.len(), 300, "all of them, though nothing was flushed by hand");
    let args = &sums[0]["args"];
    assert_eq!((&args["accelerator"], &args["device"]), (&"cpu".into(), &"cpu".into()));
    assert_eq!(args["shapes"], serde_json::json!([[100, 200], [100, 200]]));
    assert_eq!(args["dtypes"], serde_json::json!(["float64", "float64"]));
    assert_eq!(args["expression"], "multiply(a0, a1)");
    assert!(args["memory_used"].as_u64() >= Some(2 * 100 * 200 * 8), "{args}");
    let [range] = bars(&events, "a range \"with quotes\"")[..] else { panic!("one range") };
    let span = |e: &Value| (e["ts"].as_f64().unwrap(), e["ts"].as_f64().unwrap() + e["dur"].as_f64().unwrap());
    let (begin, end) = span(range);
    assert!(end - begin >= 20e3, "it slept 20 ms");
    let inside = sums.iter().filter(|s| span(s).0 >= begin && span(s).1 <= end).count();
    assert_eq!(inside, 1, "one sum ran within the range");
    let names: Vec<_> = events.iter().filter(|e| e["ph"] == "M").map(|e| e["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["host", "thread 0", "thread 1"]);
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_traces() {
    let stored = |seed| cuprum::random::Generator::new(seed).random((100, 200), DType::F64)?.eval().cloned();
    let inputs: Result<Vec<NdArray>> = [1, 2].into_iter().map(stored).collect();
    let inputs = inputs.unwrap();
    let sum = || (&inputs[0] * &inputs[1]).sum(()).unwrap();
    for _ in 0..299 {
        sum();
    }
    let work = || {
        let _range = time_range("a range \"with quotes\"");
        std::thread::sleep(Duration::from_millis(20));
        sum();
    };
    std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    // The trace file is complete when the process has ended.
    assert!(trace::is_tracing());
}

#[test]
fn calls_on_a_device_have_separate_device_events() {
    let events = traced("child_traces_a_device", &[]);
    let process = |e: &Value| e["pid"].as_u64().unwrap();
    let named: Vec<_> =
        events.iter().filter(|e| e["name"] == "process_name").map(|e| (process(e), e["args"]["name"].as_str().unwrap())).collect();
    let &[(host, "host"), (toy, "toy:0")] = &named[..] else { panic!("{named:?}") };
    let (on_host, on_device): (Vec<_>, Vec<_>) = bars(&events, "cumsum").into_iter().partition(|e| process(e) == host);
    assert_eq!((on_host.len(), on_device.len()), (3, 3));
    assert!(on_device.iter().all(|e| process(e) == toy));
    let span = |e: &Value| (e["ts"].as_f64().unwrap(), e["ts"].as_f64().unwrap() + e["dur"].as_f64().unwrap());
    for (host, device) in on_host.into_iter().zip(on_device) {
        let ((begin, end), (device_begin, device_end)) = (span(host), span(device));
        let baking = BAKING.as_secs_f64() * 1e6;
        assert!((baking..3.0 * baking).contains(&(device_end - device_begin)), "{device}");
        // The host and the test device share a clock. The anchor's host time is read shortly after its event. Other processes may delay
        // either thread.
        assert!((device_begin - begin).abs() < baking / 2.0 && (device_end - end).abs() < baking / 2.0, "{host} {device}");
    }
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_traces_a_device() {
    let a = on_toy(&[1.0, 2.0]);
    for _ in 0..3 {
        cuprum::with_accelerators("kiln", || a.cumsum(0)).unwrap().unwrap().eval().unwrap();
    }
    toy().synchronize().unwrap();
}

/// Simulates the launch of a user-written kernel that returns twice `a`, or fails.
fn launched(a: &NdArray, fails: bool) -> Result<f64> {
    let launch = KernelLaunch { kernel: "twice".into(), grid: [2, 1, 1], block: [128, 1, 1] };
    let describe = || CallRecord::from_kernel_launch("ToyKernel", "toy", a.device(), launch, [(a.dtype(), a.shape())]);
    record_launch(Stream::current(a.device()), describe, || match fails {
        true => Err(Error::value("ToyKernel", "it broke")),
        false => Ok(2.0 * a.to_vec::<f64>()?[0]),
    })
}

#[test]
fn explain_records_user_requested_launches() {
    let a = on_toy(&[1.0, 2.0]);
    let ((done, failed), records) = explain(|| (launched(&a, false), launched(&a, true)));
    assert_eq!((done.unwrap(), failed.unwrap_err().to_string().as_str()), (2.0, "[ToyKernel] it broke"));
    let told: Vec<String> = records.iter().map(CallRecord::to_string).collect();
    let of = |by| format!("ToyKernel [Custom] float64 (2,) on toy:0: {by}\n    launches twice, blocks [2, 1, 1] of threads [128, 1, 1]");
    assert_eq!(told, [of("toy"), of("no accelerator")]);
    assert_eq!(records[0].bytes, 16);
    let quiet = record_launch(Stream::current(toy()), || panic!("the record is not needed"), || Ok(1));
    assert_eq!(quiet.unwrap(), 1);
}

#[cfg(feature = "distributed")]
#[test]
fn ranks_have_rows() {
    let events = traced("child_traces_ranks", &[]);
    let name = |e: &Value| e["args"]["name"].as_str().map(str::to_string);
    let rows: Vec<&Value> =
        events.iter().filter(|e| e["name"] == "thread_name" && name(e).is_some_and(|n| n.starts_with("rank "))).collect();
    assert_eq!(rows.iter().map(|e| name(e).unwrap()).collect::<Vec<_>>(), ["rank 0", "rank 1", "rank 2"]);
    for row in rows {
        let of_rank = |e: &&&Value| (&e["pid"], &e["tid"]) == (&row["pid"], &row["tid"]);
        assert_eq!(bars(&events, "sqrt").iter().filter(of_rank).count(), 1, "{row}");
    }
}

#[cfg(feature = "distributed")]
#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_traces_ranks() {
    use cuprum::distributed::{Mesh, Placement::Shard, ShardedArray};
    let mesh = Mesh::loopback(3).unwrap();
    let a = ones([300_000], DType::F64).unwrap().shard(&mesh, [Shard(0)]).unwrap();
    cuprum::sqrt(&a).unwrap().eval().unwrap();
}

#[test]
fn user_requested_launches_are_traced() {
    let events = traced("child_traces_its_own", &[]);
    let all = bars(&events, "twice");
    let (on_host, on_device): (Vec<_>, Vec<_>) = all.into_iter().partition(|e| e["pid"] == 0);
    assert_eq!((on_host.len(), on_device.len()), (2, 2));
    let args = &on_device[0]["args"];
    assert_eq!((&args["grid"], &args["block"]), (&serde_json::json!([2, 1, 1]), &serde_json::json!([128, 1, 1])));
    assert_eq!((&args["accelerator"], &args["device"], &args["bytes"]), (&"toy".into(), &"toy:0".into(), &16.into()));
    assert_eq!((&on_host[1]["args"]["error"], &on_host[1]["args"]["accelerator"]), (&"[ToyKernel] it broke".into(), &Value::Null));
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_traces_its_own() {
    let a = on_toy(&[1.0, 2.0]);
    launched(&a, false).unwrap();
    launched(&a, true).unwrap_err();
    toy().synchronize().unwrap();
}

#[test]
fn calls_under_an_invalid_order_are_traced() {
    let events = traced("child_finds_no_order", &[("CUPRUM_ACCELERATORS", "nobody")]);
    let [sum] = bars(&events, "sum")[..] else { panic!("one sum") };
    assert!(sum["args"]["error"].as_str().unwrap().contains("unknown accelerator 'nobody'"), "{sum}");
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_finds_no_order() {
    let work = || NdArray::from_slice(&[1.0, 2.0]).and_then(|a| a.sum(())).map(drop).unwrap_err();
    std::thread::spawn(work).join().unwrap();
}

#[test]
fn an_unwritable_trace_file_is_an_error() {
    let output = in_child("profiler::child_checks", &[("CUPRUM_TRACE", "/no/such/folder/trace.json")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_checks() {
    let text = cuprum::settings::check().unwrap_err().to_string();
    assert!(text.starts_with("CUPRUM_TRACE: /no/such/folder/trace.json: "), "{text}");
    assert!(!trace::is_tracing());
    assert_eq!(ones(3, DType::I64).err().unwrap().to_string(), text);
}

#[test]
fn a_benchmark_counts_its_calls() {
    let mut calls = 0;
    let effort = BenchmarkLimits { warmup: 3, repeat: 5, max_seconds: 60.0 };
    let (last, times) = benchmark_on(&[Device::CPU], effort, || {
        calls += 1;
        std::thread::sleep(Duration::from_millis(2));
        full(8, 2.0, DType::F64)?.sqrt()
    })
    .unwrap();
    assert_eq!((calls, times.host.len(), times.devices[0].1.len()), (8, 5, 5));
    assert!(times.host_times().min >= 2000.0 && times.device_times().min >= 2000.0, "{times}");
    assert_eq!(times.served_by(), "cpu", "what is returned is evaluated");
    assert_eq!(last.to_vec::<f64>().unwrap(), [2f64.sqrt(); 8]);
    assert!(times.to_string().contains("5 calls, served by cpu"), "{times}");
    // The time limit ends the warm-up, too.
    let (mut calls, limits) = (0, BenchmarkLimits { warmup: 1000, repeat: 1000, max_seconds: 0.02 });
    let slow = || {
        calls += 1;
        std::thread::sleep(Duration::from_millis(5));
        ones(2, DType::F64)
    };
    benchmark_on(&[Device::CPU], limits, slow).unwrap();
    assert!(calls <= 10, "{calls} calls");
    let failed = benchmark_on(&[Device::CPU], effort, || ones(2, DType::F64)?.reshape(3));
    assert!(failed.is_err());
}
