//! `info`, `bench`, `tour`, `tune`, `warm-up`, help, and closed pipes.

use std::process::Stdio;

use serde_json::Value;

use crate::{Folder, command, run, succeed};

#[test]
fn help_and_version() {
    let folder = Folder::new();
    assert_eq!(succeed(&folder, &["--version"]), format!("cuprum {}\n", env!("CARGO_PKG_VERSION")));
    for verb in ["eval", "bench", "tour", "info", "tune", "warm-up"] {
        assert!(succeed(&folder, &[verb, "--help"]).contains("Usage"), "{verb}");
    }
    assert!(succeed(&folder, &["--help"]).contains("Usage"));
    assert!(succeed(&folder, &["--help"]).contains("Exit codes"));
}

#[test]
fn info_shows_the_machine() {
    let folder = Folder::new();
    let text = succeed(&folder, &["info"]);
    for part in ["cuprum ", "cpu (default)", "cutensor", "CUPRUM_ACCELERATORS", "cache of compiled kernels and measurements: "] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let json: Value = serde_json::from_str(&succeed(&folder, &["info", "--json"])).unwrap();
    assert_eq!(json["default_device"], "cpu");
    assert_eq!(json["devices"][0]["device"], "cpu");
    let accelerators = json["accelerators"].as_array().unwrap();
    assert!(accelerators.iter().any(|a| a["name"] == "cpu" && a["ready"] == true && a["base"] == true));
    for missing in accelerators.iter().filter(|a| a["ready"] == false) {
        assert!(!missing["detail"].as_str().unwrap().is_empty(), "{missing} says why");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_cache_folder_need_not_be_unicode() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let cache = std::ffi::OsStr::from_bytes(b"/tmp/cuprum\xff");
    for arguments in [&["info"][..], &["info", "--tuning"], &["tune"]] {
        let output = command(folder.0.path()).env("XDG_CACHE_HOME", cache).args(arguments).output().unwrap();
        assert_ne!(output.status.code(), Some(101), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_second_warm_up_compiles_nothing() {
    let folder = Folder::new();
    assert!(succeed(&folder, &["warm-up"]).starts_with("cpu: 0 common calls, 0 programs compiled in "));
    assert_eq!(run(&folder, &["warm-up", "--device", "abacus"]).status.code(), Some(2));
    if cuprum::backend_cuda::testing::device().is_none() {
        return;
    }
    let compiled = || {
        let mut command = command(folder.0.path());
        let output = command.env("CUPRUM_CACHE_DIR", folder.path("cache")).args(["warm-up", "--device", "cuda"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        println!("{text}{}", String::from_utf8_lossy(&output.stderr));
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words.iter().position(|w| *w == "programs").unwrap();
        words[at - 1].parse::<usize>().unwrap()
    };
    let first = compiled();
    assert!(first > 50, "{first}");
    assert_eq!(compiled(), 0);
}

#[test]
fn bench_reports() {
    let folder = Folder::new();
    let line = succeed(&folder, &["bench", "sqrt(sum(a**2, axis=-1))", "a=random((16, 64))", "--repeat", "5", "--warmup", "1", "--json"]);
    let report: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(report["device"], "cpu");
    assert_eq!(report["repeats"], 5);
    let (host, device) = (&report["host_us"], &report["device_us"]);
    for times in [host, device] {
        let of = |key: &str| times[key].as_f64().unwrap();
        assert!(0.0 < of("min") && of("min") <= of("median") && of("median") <= of("max") && of("std") >= 0.0, "{times}");
    }
    assert!(report["bytes"].as_u64().unwrap() >= 16 * 64 * 8);
    assert!(succeed(&folder, &["bench", "a + 1", "a=a.npy", "--repeat", "2"]).contains("served by cpu"));
}

#[test]
fn info_ops_shows_the_coverage_of_cub() {
    let folder = Folder::new();
    let json: Value = serde_json::from_str(&succeed(&folder, &["info", "--ops", "--json"])).unwrap();
    let rows = json["operations"].as_array().unwrap();
    let of = |op: &str, case: &str| rows.iter().find(|r| r["operation"] == op && r["case"] == case).unwrap();
    assert_eq!(of("cummax", "last axis")["declined"][0]["dtypes"], serde_json::json!(["complex64"]));
    assert_eq!(of("argsort", "last axis")["taken"].as_array().unwrap().len(), 15);
    assert_eq!(of("sum", "everything")["taken"].as_array().unwrap().len(), 15);
    assert!(of("sum", "first axis")["taken"].as_array().unwrap().is_empty());
    let text = succeed(&folder, &["info", "--ops"]);
    assert!(text.contains("complex numbers are only added and multiplied") && text.contains("every dtype"), "{text}");
}

#[test]
fn tune_measures_and_info_shows() {
    let folder = Folder::new();
    // The CPU has one accelerator, so nothing is measured.
    let text = succeed(&folder, &["tune", "(a * 2).sum()", "a=random(100)", "--device", "cpu"]);
    assert!(text.contains("cpu: 0 measured, to be stored in "), "{text}");
    assert_eq!(succeed(&folder, &["info", "--tuning"]), text);
    let json: Value = serde_json::from_str(&succeed(&folder, &["info", "--tuning", "--json"])).unwrap();
    assert_eq!((&json[0]["device"], &json[0]["pinned"]), (&"cpu".into(), &false.into()));
    assert_eq!(run(&folder, &["tune", "syntax(", "--forget"]).status.code(), Some(2));
    assert_eq!(succeed(&folder, &["info", "--tuning"]), text);
    assert!(succeed(&folder, &["tune", "--forget"]).contains("0 measured"));
}

#[test]
fn a_closed_pipe_ends_the_command_silently() {
    let mut child =
        command(Folder::new().0.path()).args(["eval", "--functions"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs the small workloads on every device of this machine.
#[test]
fn tour_agrees() {
    let folder = Folder::new();
    let output = run(&folder, &["tour", "--quick", "--json"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.iter().any(|r| r["work"] == "sum_f32_256cube" && r["device"] == "cpu"), "{stdout}");
    assert!(rows.iter().all(|r| r["agrees"] == true));
}

/// The text of the tour numbers its workloads, fits 100 columns, and ends with three sentences.
#[test]
fn tour_fits_its_width_and_ends_with_three_sentences() {
    let folder = Folder::new();
    let output = run(&folder, &["tour", "--quick"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    let wide: Vec<&str> = stdout.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    assert!(stdout.contains("[1/15] sin_f32_1M: np.sin(x)") && stdout.contains("[15/15] spmv_f32_10000"), "{stdout}");
    let summary = stdout.split("wrong or failed\n").nth(1).unwrap_or_default();
    let begins: Vec<&str> = summary.lines().filter(|l| !l.starts_with(' ') && !l.is_empty()).filter_map(|l| l.split(':').next()).collect();
    assert_eq!(begins, ["Fast here", "Missing here", "Try next"], "{stdout}");
}

/// A page is made from stored lines. If it cannot be written, no file remains.
#[test]
fn bench_makes_a_page_from_lines() {
    let folder = Folder::new();
    std::fs::write(folder.path("ours.log"), "{\"peer\": \"cuprum\", \"workload\": \"add\", \"us\": 2.0, \"GB_s\": 9.0}\n").unwrap();
    std::fs::write(folder.path("numpy.log"), "{\"peer\": \"numpy\", \"workload\": \"add\", \"us\": 3.0}\n").unwrap();
    let arguments = ["bench", "--report", "page", "--from", "ours.log", "numpy.log", "--limit", "GB_s=add", "--note", "a < b"];
    let output = run(&folder, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(folder.path("page/index.html")).unwrap();
    assert!(page.contains("<p>a &lt; b</p>") && page.contains("<td>1.50</td>") && page.contains("<td>100 %</td>"), "{page}");
    assert_eq!(std::fs::read_to_string(folder.path("page/lines.jsonl")).unwrap().lines().count(), 2);

    std::fs::create_dir_all(folder.path("other/index.html")).unwrap();
    let output = run(&folder, &["bench", "--report", "other", "--from", "ours.log"]);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!folder.path("other/lines.jsonl").exists());
    for wrong in [["--limit", "GB_s=sum"], ["--limit", "GB_s=-1"], ["--machine", "a.npy"]] {
        let output = run(&folder, &["bench", "--report", "third", "--from", "ours.log", wrong[0], wrong[1]]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(!folder.path("third").exists());
    }
}
