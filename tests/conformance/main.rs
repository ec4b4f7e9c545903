//! Conformance: compares every case of `cases/*.txt` with NumPy's result, on every device, under every order of accelerators,
//! with and without fusion, on one thread and on all. The cases are embedded, so that the binary runs without the sources.
//! `--cases` reads others from a folder.

mod agreement;
mod args;
mod checks;
mod coverage;
mod errors;
mod families;
mod fusion;
mod io;
mod processes;
mod random;
mod report;
mod settings;
mod shards;
mod views;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::process::ExitCode;
use std::time::Instant;

use agreement::Agreement;
use args::Args;
use checks::{Check, Subject};
use report::{Event, Report};
use settings::Setting;
use shards::Shard;

fn main() -> ExitCode {
    match Args::read(std::env::args().skip(1)).and_then(|args| run_all(&args)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// Runs the cases in this process, then the sample over several processes. Returns false if a case failed.
fn run_all(args: &Args) -> Result<bool, String> {
    let passed = run(args)?;
    Ok((!args.runs_processes() || processes::run(args)?) && passed)
}

/// Runs the cases in this process. Returns false if a case failed.
fn run(args: &Args) -> Result<bool, String> {
    match (args.jobs, args.shard) {
        (Some(jobs), None) if !args.list => return shards::run(args, jobs.get()),
        _ => {}
    }
    let checks: Vec<Check> = match &args.cases {
        Some(folder) => families::checks_in(folder)?,
        None => {
            let others = [fusion::checks(), views::checks(), io::checks(), random::checks(), vec![coverage::check()]];
            families::checks()?.into_iter().chain(others.into_iter().flatten()).collect()
        }
    };
    let inputs = match &args.cases {
        Some(folder) => std::fs::read(folder.join("inputs.npz")).map_err(|e| format!("inputs.npz: {e}"))?,
        None => checks::INPUTS.to_vec(),
    };
    let settings = settings::all(args)?;
    args.check_filter(&checks)?;
    if args.list {
        checks.iter().filter(|c| args.selects(&c.name)).for_each(|c| println!("{}", c.name));
        settings.iter().for_each(|s| println!("under {s}"));
        return Ok(true);
    }
    if let Some(shard) = args.shard {
        let mut failed = false;
        run_checks(args, &checks, &inputs, shard, &settings, |event| {
            failed |= matches!(event, Event::Failed(_));
            shards::tell(event);
        })?;
        return Ok(!failed);
    }
    let mut report = Report::new(args.verbose, &settings, 1);
    run_checks(args, &checks, &inputs, Shard::WHOLE, &settings, |event| report.take(0, event))?;
    Ok(report.summary())
}

/// By default, a mesh runs one of so many cases.
const MESH_SAMPLE: usize = 15;

/// Runs a shard of the checks under every setting, and passes each event to `tell`.
fn run_checks(
    args: &Args,
    checks: &[Check],
    inputs: &[u8],
    shard: Shard,
    settings: &[Setting],
    mut tell: impl FnMut(Event),
) -> Result<(), String> {
    let is_sampled = args.quick && args.cases.is_none();
    let every = args.every.map_or(1, usize::from);
    let wanted =
        |(number, check): &(usize, &Check)| args.selects(&check.name) && (!is_sampled || number % 5 == 0) && number.is_multiple_of(every);
    let (wanted, unwanted): (Vec<_>, Vec<_>) = checks.iter().enumerate().partition(wanted);
    let (wanted, unwanted) = (shard.deal(wanted), shard.deal(unwanted));
    tell(Event::Skipped(unwanted.len()));
    let mut subjects = HashMap::new();
    let mut agreement = Agreement::default();
    for (place, setting) in settings.iter().enumerate() {
        let subject = match subjects.entry((setting.device, setting.sharded_axis)) {
            Entry::Occupied(e) => e.into_mut(),
            Entry::Vacant(e) => e.insert(Subject::new(setting.device, setting.sharded_axis, inputs).map_err(|e| e.to_string())?),
        };
        let started = Instant::now();
        for &(number, check) in &wanted {
            // Without `--mesh`, each of the many meshes runs another sample of the cases.
            if setting.sharded_axis.is_some() && args.mesh.is_none() && !(number + place).is_multiple_of(MESH_SAMPLE) {
                continue;
            }
            tell(Event::Began { number, name: check.name.clone(), setting: place });
            let outcome = setting.run(|| check.run(subject)).unwrap_or_else(|e| Err(format!("the setting is refused: {e}")));
            match outcome.and_then(|bytes| agreement.compare(number, setting, bytes)) {
                Ok(()) => tell(Event::Passed),
                Err(message) => tell(Event::Failed(message)),
            }
        }
        tell(Event::Through { setting: place, seconds: started.elapsed().as_secs_f64() });
    }
    tell(Event::End);
    Ok(())
}
