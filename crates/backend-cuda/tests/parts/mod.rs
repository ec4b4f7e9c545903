//! Splits a list of kernels among processes, one per core, because NVRTC serialises compilations within a process.

use std::process::{Command, Stdio};

/// Variable with the part of a process and the number of parts, such as `0/2`.
const PART: &str = "CUPRUM_NVRTC_PART";

/// Returns the items of this process. The initial process gets none: it starts a process per part, which runs only the test
/// with this name. Fails if one of them fails.
pub fn part<T>(test: &str, items: Vec<T>) -> Vec<T> {
    if let Ok(text) = std::env::var(PART) {
        let (part, parts) = text.split_once('/').expect("a part such as 0/2");
        let (part, parts): (usize, usize) = (part.parse().expect("a number"), parts.parse().expect("a number"));
        assert!(part < parts, "{text}");
        return items.into_iter().skip(part).step_by(parts).collect();
    }
    let parts = std::thread::available_parallelism().map_or(1, usize::from).min(items.len()).max(1);
    let start = |part: usize| {
        let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
        command.args(["--exact", test, "--nocapture"]).env(PART, format!("{part}/{parts}"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process")
    };
    let started: Vec<_> = (0..parts).map(start).collect();
    let ended: Vec<_> = started.into_iter().map(|child| child.wait_with_output().expect("its output")).collect();
    for output in &ended {
        print!("{}", String::from_utf8_lossy(&output.stdout));
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(ended.iter().all(|output| output.status.success()), "a part of the list failed, as said above");
    Vec::new()
}
