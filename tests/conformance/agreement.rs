//! Checks that results are bitwise identical for any number of threads.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use crate::settings::Setting;

/// Results so far by index of the check: the setting and the hash of the bytes.
#[derive(Default)]
pub struct Agreement(HashMap<usize, Vec<(Setting, u64)>>);

impl Agreement {
    /// Compares a result with an earlier one under the same setting with another number of threads.
    pub fn compare(&mut self, number: usize, setting: &Setting, bytes: Option<Vec<u8>>) -> Result<(), String> {
        let (Some(bytes), Some(_)) = (bytes, setting.threads) else { return Ok(()) };
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let hash = hasher.finish();
        let seen = self.0.entry(number).or_default();
        match seen.iter().find(|(other, _)| other.same_but_threads(setting)) {
            None => seen.push((setting.clone(), hash)),
            Some((_, first)) if *first == hash => {}
            Some((other, _)) => return Err(format!("differs in bits from the result with {} thread(s)", other.threads.unwrap_or(0))),
        }
        Ok(())
    }
}
