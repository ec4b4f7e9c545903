//! What happens while a kernel is compiled. Each in a process of its own, with a cache folder where nothing is.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use cuprum_backend_cub::CUB;
use cuprum_core::{Availability, Device, NdArray, Result, explain, registry, with_device};

/// Runs an ignored test of this file by itself, by as many threads as said: with one, on the main thread. `None` where there is no device.
fn by_itself(test: &str, threads: usize) -> Option<Output> {
    if let Availability::Missing { why, help } = registry::availability(&CUB) {
        println!("skipped: {why}; {help}");
        return None;
    }
    let cache = std::env::temp_dir().join(format!("cuprum-{test}-{threads}-{}", std::process::id()));
    let run = Command::new(std::env::current_exe().unwrap())
        .args([&format!("compile::{test}"), "--exact", "--ignored", "--nocapture", &format!("--test-threads={threads}")])
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
fn the_base_serves_while_a_kernel_is_compiled() {
    by_itself("sorts_until_cub_has_its_kernel", 2).as_ref().map(check);
}

#[test]
fn a_process_ends_well_while_a_kernel_is_compiled() {
    for threads in [1, 2] {
        by_itself("sorts_once", threads).as_ref().map(check);
    }
}

/// Sorts, and whether cub served it; else it must have said that it compiles.
fn sort() -> Result<bool> {
    let values: Vec<f32> = (0..100_000).map(|i| ((i * 7919) % 100_003) as f32).collect();
    let mut want = values.clone();
    want.sort_by(f32::total_cmp);
    with_device(Device::parse("cuda")?, || {
        let (sorted, records) = explain(|| NdArray::from_slice(&values)?.sort(-1)?.eval().cloned());
        assert_eq!(sorted?.to_vec::<f32>()?, want);
        let record = records.iter().find(|r| r.op == "sort").expect("a sort");
        let by_cub = record.served_by == Some("cub");
        assert!(by_cub || record.declined.iter().any(|(who, why)| *who == "cub" && why.contains("being compiled")), "{record}");
        Ok(by_cub)
    })
}

#[test]
#[ignore = "run by another, in a process of its own"]
fn sorts_until_cub_has_its_kernel() {
    let start = Instant::now();
    assert!(!sort().unwrap(), "the base serves at first");
    while !sort().unwrap() {
        assert!(start.elapsed() < Duration::from_secs(60), "still compiling");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[ignore = "run by another, in a process of its own"]
fn sorts_once() {
    assert!(!sort().unwrap(), "the base serves at first");
}
