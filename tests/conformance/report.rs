//! Counting and telling: each failing case once, with the settings it fails under; a last line with the counts.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::settings::Setting;

/// Failing cases shown without `--verbose`.
const SHOWN: usize = 40;

/// What a run tells as it goes. Settings go by their place in the list of settings.
#[derive(Serialize, Deserialize)]
pub enum Event {
    /// So many cases are not wanted under any setting.
    Skipped(usize),
    /// A case begins; `Passed` or `Failed` follows.
    Began {
        number: usize,
        name: String,
        setting: usize,
    },
    Passed,
    Failed(String),
    /// A setting is through.
    Through {
        setting: usize,
        seconds: f64,
    },
    /// All of them are.
    End,
}

/// Where a run is.
#[derive(Clone, Default)]
enum Place {
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

/// A case that failed.
struct Failure {
    name: String,
    /// Under which settings, and how; the first in full.
    under: Vec<(String, String)>,
}

/// What happened so far, in one run or in several that share the cases among them.
pub struct Report {
    verbose: bool,
    settings: Vec<String>,
    /// Where each run is.
    places: Vec<Place>,
    /// For each setting: the runs that are through, and the longest time.
    through: Vec<(usize, f64)>,
    passed: usize,
    failed: usize,
    skipped: usize,
    failures: Vec<Failure>,
    /// Place in `failures`, by number of the case.
    failing: HashMap<usize, usize>,
    /// Runs that did not come to their end.
    died: Vec<String>,
}

impl Report {
    /// A report of so many runs.
    pub fn new(verbose: bool, settings: &[Setting], runs: usize) -> Report {
        Report {
            verbose,
            settings: settings.iter().map(ToString::to_string).collect(),
            places: vec![Place::default(); runs],
            through: vec![(0, 0.0); settings.len()],
            passed: 0,
            failed: 0,
            skipped: 0,
            failures: Vec::new(),
            failing: HashMap::new(),
            died: Vec::new(),
        }
    }

    /// Takes in what a run tells.
    pub fn take(&mut self, run: usize, event: Event) {
        match event {
            Event::Skipped(cases) => self.skipped += cases * self.settings.len(),
            Event::Began { number, name, setting } => self.places[run] = Place::In { number, name, setting },
            Event::Passed => {
                self.passed += 1;
                self.places[run] = Place::Between;
            }
            Event::Failed(message) => {
                if let Place::In { number, name, setting } = std::mem::replace(&mut self.places[run], Place::Between) {
                    self.fail(number, name, setting, message);
                }
            }
            Event::Through { setting, seconds } => {
                let (runs, longest) = &mut self.through[setting];
                *runs += 1;
                *longest = longest.max(seconds);
                if *runs == self.places.len() {
                    println!("{}: {longest:.1} s", self.settings[setting]);
                }
            }
            Event::End => self.places[run] = Place::End,
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

    /// Whether a run came to its end.
    pub fn ended(&self, run: usize) -> bool {
        matches!(self.places[run], Place::End)
    }

    /// A run is dead: one more failure.
    pub fn died(&mut self, run: usize, how: &str) {
        self.failed += 1;
        let place = match &self.places[run] {
            Place::Before => "before its first case".to_string(),
            Place::In { name, setting, .. } => format!("during '{name}' under {}", self.settings[*setting]),
            Place::Between => "between two cases".to_string(),
            Place::End => "after its last case".to_string(),
        };
        self.died.push(format!("shard {}/{} {how}, {place}", run + 1, self.places.len()));
    }

    /// Prints the failures and the counts; true if nothing failed.
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
