//! Counting and telling: each failing case once, with the settings it fails under; a last line with the counts.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use crate::checks::{Check, Outcome};
use crate::settings::Setting;

/// Failing cases shown without `--verbose`.
const SHOWN: usize = 40;

/// A case that failed.
struct Failure {
    name: String,
    /// Under which settings, and how; the first in full.
    under: Vec<(String, String)>,
}

/// What happened so far.
#[derive(Default)]
pub struct Report {
    verbose: bool,
    passed: usize,
    failed: usize,
    skipped: usize,
    failures: Vec<Failure>,
    /// Place in `failures`, by number of the case.
    place: HashMap<usize, usize>,
    /// Hash of the result's bytes under the first of the settings that must agree, by number of the case.
    bits: HashMap<usize, Vec<(Setting, u64)>>,
}

impl Report {
    pub fn new(verbose: bool) -> Report {
        Report { verbose, ..Report::default() }
    }

    pub fn skipped(&mut self) {
        self.skipped += 1;
    }

    /// Takes in the outcome of a case under a setting.
    pub fn record(&mut self, check: &Check, number: usize, setting: &Setting, outcome: cuprum::Result<Outcome>) {
        let outcome = outcome.unwrap_or_else(|e| Err(format!("the setting is refused: {e}")));
        match outcome.and_then(|bytes| self.agrees(number, setting, bytes)) {
            Ok(()) => self.passed += 1,
            Err(message) => {
                self.failed += 1;
                let failures = &mut self.failures;
                let at = *self.place.entry(number).or_insert_with(|| {
                    failures.push(Failure { name: check.name.clone(), under: Vec::new() });
                    failures.len() - 1
                });
                self.failures[at].under.push((setting.to_string(), message));
            }
        }
    }

    /// The number of threads may not change a bit.
    fn agrees(&mut self, number: usize, setting: &Setting, bytes: Option<Vec<u8>>) -> Result<(), String> {
        let (Some(bytes), Some(_)) = (bytes, setting.threads) else { return Ok(()) };
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let hash = hasher.finish();
        let seen = self.bits.entry(number).or_default();
        match seen.iter().find(|(other, _)| other.same_but_threads(setting)) {
            None => seen.push((setting.clone(), hash)),
            Some((_, first)) if *first == hash => {}
            Some((other, _)) => return Err(format!("differs in bits from the result with {} thread(s)", other.threads.unwrap_or(0))),
        }
        Ok(())
    }

    /// Tells that a setting is through.
    pub fn finished(&self, setting: &Setting, time: Duration) {
        println!("{setting}: {:.1} s", time.as_secs_f64());
    }

    /// Prints the failures and the counts; true if nothing failed.
    pub fn summary(&self) -> bool {
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
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped);
        self.failed == 0
    }
}
