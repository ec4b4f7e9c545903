//! The report: each failing case once, with the settings under which it fails, and a last line with the counts.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::settings::Setting;

/// Maximum number of failing cases shown without `--verbose`.
const SHOWN: usize = 40;

/// An event of a run. Settings are indices into the list of settings.
#[derive(Serialize, Deserialize)]
pub enum Event {
    /// This number of cases is filtered out.
    Skipped(usize),
    /// A case starts. `Passed` or `Failed` follows.
    Began {
        number: usize,
        name: String,
        setting: usize,
    },
    Passed,
    Failed(String),
    /// All cases have run under a setting.
    Through {
        setting: usize,
        seconds: f64,
    },
    /// All cases have run under all settings.
    End,
}

/// The progress of a run.
#[derive(Clone, Default)]
enum Progress {
    #[default]
    Before,
    In {
        number: usize,
        name: String,
        setting: usize,
    },
    Between,
    End,
}

/// A failing case.
struct Failure {
    name: String,
    /// The settings under which it failed, with their messages.
    under: Vec<(String, String)>,
}

/// The results so far of one run, or of several runs that share the cases.
pub struct Report {
    verbose: bool,
    settings: Vec<String>,
    /// Progress of each run.
    progress: Vec<Progress>,
    /// For each setting: the number of finished runs, and the longest time.
    through: Vec<(usize, f64)>,
    passed: usize,
    failed: usize,
    skipped: usize,
    failures: Vec<Failure>,
    /// Index into `failures` by number of the case.
    failing: HashMap<usize, usize>,
    /// Runs that died.
    died: Vec<String>,
}

impl Report {
    /// Creates a report of `runs` runs.
    pub fn new(verbose: bool, settings: &[Setting], runs: usize) -> Report {
        Report {
            verbose,
            settings: settings.iter().map(ToString::to_string).collect(),
            progress: vec![Progress::default(); runs],
            through: vec![(0, 0.0); settings.len()],
            passed: 0,
            failed: 0,
            skipped: 0,
            failures: Vec::new(),
            failing: HashMap::new(),
            died: Vec::new(),
        }
    }

    /// Records an event of a run.
    pub fn take(&mut self, run: usize, event: Event) {
        match event {
            Event::Skipped(cases) => self.skipped += cases * self.settings.len(),
            Event::Began { number, name, setting } => self.progress[run] = Progress::In { number, name, setting },
            Event::Passed => {
                self.passed += 1;
                self.progress[run] = Progress::Between;
            }
            Event::Failed(message) => {
                if let Progress::In { number, name, setting } = std::mem::replace(&mut self.progress[run], Progress::Between) {
                    self.fail(number, name, setting, message);
                }
            }
            Event::Through { setting, seconds } => {
                let (runs, longest) = &mut self.through[setting];
                *runs += 1;
                *longest = longest.max(seconds);
                if *runs == self.progress.len() {
                    println!("{}: {longest:.1} s", self.settings[setting]);
                }
            }
            Event::End => self.progress[run] = Progress::End,
        }
    }

    fn fail(&mut self, number: usize, name: String, setting: usize, message: String) {
        self.failed += 1;
        let failures = &mut self.failures;
        let at = *self.failing.entry(number).or_insert_with(|| {
            failures.push(Failure { name, under: Vec::new() });
            failures.len() - 1
        });
        self.failures[at].under.push((self.settings[setting].clone(), message));
    }

    /// Returns whether a run has finished.
    pub fn ended(&self, run: usize) -> bool {
        matches!(self.progress[run], Progress::End)
    }

    /// Records the death of a run as a failure.
    pub fn died(&mut self, run: usize, how: &str) {
        self.failed += 1;
        let place = match &self.progress[run] {
            Progress::Before => "before its first case".to_string(),
            Progress::In { name, setting, .. } => format!("during '{name}' under {}", self.settings[*setting]),
            Progress::Between => "between two cases".to_string(),
            Progress::End => "after its last case".to_string(),
        };
        self.died.push(format!("shard {}/{} {how}, {place}", run + 1, self.progress.len()));
    }

    /// Prints the failures and the counts. Returns true if nothing failed.
    pub fn summary(&mut self) -> bool {
        self.failures.sort_by(|a, b| a.name.cmp(&b.name));
        let shown = if self.verbose { usize::MAX } else { SHOWN };
        for failure in self.failures.iter().take(shown) {
            println!("FAILED {}", failure.name);
            if self.verbose {
                failure.under.iter().for_each(|(setting, message)| println!("    {setting}: {message}"));
            } else if let Some((setting, message)) = failure.under.first() {
                let others = failure.under.len() - 1;
                let and = if others > 0 { format!(" (and {others} more settings)") } else { String::new() };
                println!("    {setting}{and}: {message}");
            }
        }
        if self.failures.len() > shown {
            println!("... and {} more failing cases; --verbose shows all", self.failures.len() - shown);
        }
        self.died.iter().for_each(|how| println!("FAILED {how}"));
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped);
        self.failed == 0
    }
}
