//! Full disks and pipes, memory limits and extreme settings: exit codes, one message, no panic and no abort.

use std::fs::File;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::{Folder, command, run};

/// Checks that the command `what` failed with the exit code `code` and one message. Returns its standard error.
fn fails(what: &str, output: &Output, code: i32) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{what}: {stderr}");
    assert!(!stderr.contains("panicked") && stderr.matches("error:").count() == 1, "{what}: {stderr}");
    stderr
}

/// Returns a `cuprum` command that a shell runs with the resource limits `limits`.
#[cfg(unix)]
fn limited(folder: &Folder, limits: &str, arguments: &[&str]) -> Command {
    let cuprum = command(folder.0.path());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limits}; exec \"$0\" \"$@\"")]).arg(cuprum.get_program()).args(arguments);
    shell.current_dir(folder.0.path()).env("CUPRUM_DEVICE", "cpu").env("CUPRUM_NUM_THREADS", "2");
    shell
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_standard_output_is_a_failure() {
    let folder = Folder::new();
    for arguments in [
        &["eval", "1 + 1"][..],
        &["eval", "print(1)"],
        &["eval", "print(1); x = 2"],
        &["eval", "print(1)", "-o", "out.npz"],
        &["eval", "--functions"],
        &["eval", "a", "a=a.npy", "-o", "-"],
        &["bench", "a + 1", "a=a.npy", "--repeat", "1"],
        &["bench", "a + 1", "a=a.npy", "--repeat", "1", "--json"],
        &["tour", "--quick"],
        &["tour", "--quick", "--json"],
        &["tune", "a + 1", "a=a.npy"],
        &["warm-up"],
        &["info"],
        &["info", "--json"],
        &["info", "--tuning"],
        &["help", "eval"],
        &["--help"],
        &["bench", "--help"],
        &["--version"],
    ] {
        let full = File::create("/dev/full").unwrap();
        let mut command = command(folder.0.path());
        let output = command.args(arguments).env("CUPRUM_CACHE_DIR", folder.path("cache")).stdout(full).output().unwrap();
        let stderr = fails(&format!("{arguments:?}"), &output, 1);
        assert!(stderr.contains("standard output: ") && stderr.contains("No space left"), "{arguments:?}: {stderr}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_standard_error_changes_nothing() {
    let folder = Folder::new();
    let variables = [("CUPRUM_LOG", "trace"), ("CUPRUM_CPU_MEMORY_LIMIT", "100M")];
    for arguments in [&["eval", "a.sum()", "a=a.npy", "--explain", "--time"][..], &["tune", "a + 1", "a=a.npy"]] {
        let mut command = command(folder.0.path());
        command.args(arguments).envs(variables).env("CUPRUM_CACHE_DIR", folder.path("cache"));
        let output = command.stderr(File::create("/dev/full").unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty());
    }
    let output = command(folder.0.path()).args(["eval", "nope"]).stderr(File::create("/dev/full").unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

/// Tests a full disk, simulated by a limit on the file size.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_a_failure_and_leaves_no_file() {
    let folder = Folder::new();
    let before = std::fs::read(folder.path("a.npy")).unwrap();
    for name in ["out.npy", "out.npz", "a.npy"] {
        let arguments = ["eval", "ones((1000, 1000))", "-o", name];
        let output = limited(&folder, "trap '' XFSZ; ulimit -f 8", &arguments).output().unwrap();
        let stderr = fails(name, &output, 1);
        assert!(stderr.contains(name) && stderr.contains("File too large"), "{stderr}");
        assert!(folder.new_files().is_empty(), "{:?}", folder.new_files());
    }
    assert_eq!(std::fs::read(folder.path("a.npy")).unwrap(), before);
}

/// Checks that none of these expressions aborts on a failed allocation.
#[test]
#[cfg(target_os = "linux")]
fn too_little_memory_is_an_error() {
    let folder = Folder::new();
    for expression in [
        "nonzero(broadcast_to(1, (200000, 200000)))",
        "sum(broadcast_to(1.0, (10**7, 10**7)))",
        "broadcast_to(array(1, dtype='int8'), (2, 10**6)) @ broadcast_to(array(1, dtype='int8'), (10**6, 10**9))",
        "bincount(broadcast_to(1, (100000,)), minlength=10**9)",
        "histogram(broadcast_to(1.0, (100000,)), bins=10**9)",
        "broadcast_to(1.0, (7,) * 11)",
    ] {
        let output = limited(&folder, "ulimit -v 1200000", &["eval", expression]).output().unwrap();
        let stderr = fails(expression, &output, 2);
        assert!(stderr.contains("out of memory"), "{expression}: {stderr}");
    }
    for expression in ["broadcast_to(1, (1000, 4000)).tolist()", "x = [1] * 60000; [x + [2]] * 1000"] {
        let output = command(folder.0.path()).args(["eval", expression]).env("CUPRUM_CPU_MEMORY_LIMIT", "100M").output().unwrap();
        let stderr = fails(expression, &output, 2);
        assert!(stderr.contains("out of memory") || stderr.contains("too long"), "{expression}: {stderr}");
    }
}

/// Checks that an empty or blank variable counts as unset, and that a variable that is not UTF-8 is an error.
#[test]
#[cfg(unix)]
fn empty_settings_are_unset_and_invalid_utf8_is_an_error() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let variables: Vec<&str> = cuprum::core::settings::variables().iter().map(|s| s.variable).collect();
    assert!(variables.len() >= 18 && variables.contains(&"CUPRUM_LOG"));
    for variable in variables {
        for empty in ["", "  "] {
            let output = command(folder.0.path()).args(["eval", "1 + 1"]).env(variable, empty).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{variable}={empty:?}");
        }
        for arguments in [&["eval", "1 + 1"][..], &["info"], &["bench", "1 + 1", "--repeat", "1"], &["warm-up"]] {
            let bytes = std::ffi::OsStr::from_bytes(b"caf\xe9");
            let output = command(folder.0.path()).args(arguments).env(variable, bytes).output().unwrap();
            let stderr = fails(variable, &output, 2);
            assert!(stderr.contains(variable) && stderr.contains("is not UTF-8"), "{variable} {arguments:?}: {stderr}");
        }
    }
}

#[test]
fn the_time_limit_must_be_positive() {
    let folder = Folder::new();
    for bad in ["nan", "-1", "inf", "-inf", "0", "soon", ""] {
        let output = run(&folder, &["bench", "a + 1", "a=a.npy", &format!("--max-seconds={bad}")]);
        assert!(fails(bad, &output, 2).contains("not a number of seconds above 0"), "{bad}");
    }
    assert_eq!(run(&folder, &["bench", "a + 1", "a=a.npy", "--repeat", "1", "--max-seconds", "0.5"]).status.code(), Some(0));
}

#[test]
fn the_number_of_threads_is_capped() {
    let folder = Folder::new();
    for threads in ["20000", "9223372036854775808", "99999999999999999999"] {
        let began = Instant::now();
        let mut command = command(folder.0.path());
        let output = command.args(["eval", "sum(ones(10**6))"]).env("CUPRUM_NUM_THREADS", threads).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "1000000.0\n", "{threads}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(began.elapsed() < Duration::from_secs(15), "{threads}: {:?}", began.elapsed());
    }
}

#[test]
fn deeply_nested_lists_are_printed() {
    let folder = Folder::new();
    let script = format!("x = 1\n{}x", "x = [x]\n".repeat(50_000));
    std::fs::write(folder.path("script.txt"), script).unwrap();
    let output = run(&folder, &["eval", "--file", "script.txt"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 100_002), "{}", String::from_utf8_lossy(&output.stderr));
}
