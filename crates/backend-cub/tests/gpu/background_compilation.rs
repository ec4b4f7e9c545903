//! Calls during background compilation. Each test runs in its own process with an empty cache directory.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use cuprum_backend_cub::CUB;
use cuprum_backend_cuda::testing;
use cuprum_core::{Availability, Device, NdArray, Result, explain, registry, with_device};

/// Runs an ignored test of this file in a new process with `threads` test threads. With one, the test runs on the main thread. Returns
/// `None` if there is no device.
fn run_in_new_process(test: &str, threads: usize) -> Option<Output> {
    if let Availability::Missing { why, help } = registry::availability(&CUB) {
        testing::skip(1, format_args!("{why}; {help}"));
        return None;
    }
    let cache = std::env::temp_dir().join(format!("cuprum-{test}-{threads}-{}", std::process::id()));
    let run = Command::new(std::env::current_exe().unwrap())
        .args([&format!("background_compilation::{test}"), "--exact", "--ignored", "--nocapture", &format!("--test-threads={threads}")])
        .env("CUPRUM_CACHE_DIR", &cache)
        .env_remove("CUPRUM_COMPILE")
        .env_remove("CUPRUM_ACCELERATORS")
        .output()
        .unwrap();
    std::fs::remove_dir_all(&cache).ok();
    Some(run)
}

fn check(run: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "{}: {}{}", run.status, text(&run.stdout), text(&run.stderr));
    assert!(text(&run.stdout).contains("1 passed"), "{}", text(&run.stdout));
}

#[test]
fn the_base_accelerator_serves_calls_during_compilation() {
    run_in_new_process("sort_until_cub_serves", 2).as_ref().map(check);
}

#[test]
fn a_process_may_end_during_compilation() {
    for threads in [1, 2] {
        run_in_new_process("sort_once", threads).as_ref().map(check);
    }
}

/// Sorts and returns whether cub served the call. If not, cub must have declined because its kernel is being compiled.
fn sort() -> Result<bool> {
    let values: Vec<f32> = (0..100_000).map(|i| ((i * 7919) % 100_003) as f32).collect();
    let mut want = values.clone();
    want.sort_by(f32::total_cmp);
    with_device(Device::parse("cuda")?, || {
        let (sorted, records) = explain(|| NdArray::from_slice(&values)?.sort(-1)?.eval().cloned());
        assert_eq!(sorted?.to_vec::<f32>()?, want);
        let record = records.iter().find(|r| r.op == "sort").expect("a sort");
        let by_cub = record.served_by == Some("cub");
        assert!(
            by_cub || record.declined.iter().any(|(accelerator, why)| *accelerator == "cub" && why.contains("being compiled")),
            "{record}"
        );
        Ok(by_cub)
    })
}

#[test]
#[ignore = "run by another test in a new process"]
fn sort_until_cub_serves() {
    let start = Instant::now();
    assert!(!sort().unwrap(), "the base accelerator serves the first call");
    while !sort().unwrap() {
        assert!(start.elapsed() < Duration::from_secs(60), "still compiling");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[ignore = "run by another test in a new process"]
fn sort_once() {
    assert!(!sort().unwrap(), "the base accelerator serves the first call");
}
