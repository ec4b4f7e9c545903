//! Conformance: every case of `cases/*.txt` against NumPy's answer, on every device, under every order of accelerators,
//! fused and not, on one thread and on all. One binary with everything in it, so that it runs on a machine without the sources.

mod args;
mod checks;
mod families;
mod fusion;
mod io;
mod random;
mod report;
mod settings;
mod views;

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Instant;

use args::Args;
use checks::{Check, Subject};
use report::Report;

fn main() -> ExitCode {
    match Args::read(std::env::args().skip(1)).and_then(|args| run(&args)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// Runs what the arguments ask for; false if anything failed.
fn run(args: &Args) -> Result<bool, String> {
    let mut checks: Vec<Check> = families::checks()?;
    checks.extend([fusion::checks(), views::checks(), io::checks(), random::checks()].into_iter().flatten());
    let settings = settings::all(args)?;
    if args.list {
        checks.iter().filter(|c| args.selects(&c.name)).for_each(|c| println!("{}", c.name));
        settings.iter().for_each(|s| println!("under {s}"));
        return Ok(true);
    }
    let mut report = Report::new(args.verbose);
    let mut subjects = HashMap::new();
    for setting in &settings {
        let subject = match subjects.entry(setting.device) {
            std::collections::hash_map::Entry::Occupied(e) => e.into_mut(),
            std::collections::hash_map::Entry::Vacant(e) => e.insert(Subject::new(setting.device).map_err(|e| e.to_string())?),
        };
        let started = Instant::now();
        for (number, check) in checks.iter().enumerate() {
            if !args.selects(&check.name) || args.quick && number % 5 != 0 {
                report.skipped();
                continue;
            }
            let outcome = setting.run(|| check.run(subject));
            report.record(check, number, setting, outcome);
        }
        report.finished(setting, started.elapsed());
    }
    Ok(report.summary())
}
