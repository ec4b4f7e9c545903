//! `--jobs N`: N child processes, each with every N-th case. NVRTC compiles one kernel at a time per process, and on a GPU nearly
//! every case compiles one. A child prints its events as JSON lines; other output is forwarded.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::sync::mpsc;

use crate::args::Args;
use crate::report::{Event, Report};
use crate::settings;

/// The shard of one process: from every `of` cases, the case at `place`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    place: usize,
    of: usize,
}

impl Shard {
    /// All cases.
    pub const WHOLE: Shard = Shard { place: 0, of: 1 };

    /// Returns the items of this shard. Adjacent items, which have similar cost, go to different shards.
    pub fn deal<T>(self, all: Vec<T>) -> Vec<T> {
        all.into_iter().skip(self.place).step_by(self.of).collect()
    }
}

impl FromStr for Shard {
    type Err = String;

    /// Parses `2/8`, the second of eight shards.
    fn from_str(text: &str) -> Result<Shard, String> {
        let parts: Option<(usize, usize)> = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((k, n)) if 1 <= k && k <= n => Ok(Shard { place: k - 1, of: n }),
            _ => Err(format!("'{text}' is no shard, such as 2/8")),
        }
    }
}

/// Prints an event for the parent process. Exits if the pipe is closed.
pub fn tell(event: Event) {
    let line = serde_json::to_string(&event).unwrap_or_default();
    if writeln!(std::io::stdout(), "{line}").is_err() {
        std::process::exit(2);
    }
}

/// Runs the child processes. Returns false if a case failed or a child died.
pub fn run(args: &Args, jobs: usize) -> Result<bool, String> {
    let settings = settings::all(args)?;
    let mut report = Report::new(args.verbose, &settings, jobs);
    let program = std::env::current_exe().map_err(|e| format!("the path of this program: {e}"))?;
    let start = |run: usize| {
        let shard = format!("--shard={}/{jobs}", run + 1);
        let started = Command::new(&program).args(args.forwarded()).arg(shard).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        started.map_err(|e| format!("{}: {e}", program.display()))
    };
    let mut children: Vec<Child> = Vec::new();
    let (sender, events) = mpsc::channel();
    for run in 0..jobs {
        let mut child = start(run)?;
        if let Some(output) = child.stdout.take() {
            let sender = sender.clone();
            std::thread::spawn(move || read(output, |event| sender.send((run, event)).is_ok()));
        }
        children.push(child);
    }
    drop(sender);
    events.into_iter().for_each(|(run, event)| report.take(run, event));
    for (run, child) in children.iter_mut().enumerate() {
        let status = child.wait().map_err(|e| format!("shard {}: {e}", run + 1))?;
        // Exit code 1 means failing cases, which are in the report.
        if !matches!(status.code(), Some(0 | 1)) || !report.ended(run) {
            report.died(run, &describe(status));
        }
    }
    Ok(report.summary())
}

/// Reads events until the output ends or `send` returns false.
fn read(output: impl std::io::Read, mut send: impl FnMut(Event) -> bool) {
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        match serde_json::from_slice(&line) {
            Ok(event) => {
                if !send(event) {
                    return;
                }
            }
            Err(_) => println!("{}", String::from_utf8_lossy(&line)),
        }
    }
}

fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("was killed by signal {signal}");
    }
    format!("ended with {status}")
}
