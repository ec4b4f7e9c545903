//! Runs the fuzz targets of `fuzz/` over their corpora and a few thousand mutations: no panic, no hang, memory within the limit.
//!
//! `CUPRUM_FUZZ_MUTATIONS` sets the number of mutations per target.
#![allow(clippy::unwrap_used)]

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::path::Path;
use std::time::{Duration, Instant};

/// Mutations per target, each of a file of the corpus.
const MUTATIONS: usize = 2000;
/// Time that counts as a hang.
const HANG: Duration = Duration::from_secs(1);

/// A generator of pseudo-random numbers (xorshift*), so that every run tests the same inputs.
struct Generator(u64);

impl Generator {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }
}

/// Changes bytes, numbers and pieces of `data`. `other` is another file of the corpus.
fn mutate(data: &mut Vec<u8>, other: &[u8], generator: &mut Generator) {
    const NUMBERS: [u64; 8] = [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
    const TEXTS: [&str; 20] =
        ["(", ")", "[", "]", "{", "}", "'", "\"", ",", "-", "9", "0", ".", "e", "*", "**", "999999999999", "\n", ":", "\u{e9}"];
    for _ in 0..1 + generator.below(4) {
        let at = generator.below(data.len());
        let len = generator.below(8).min(data.len() - at);
        match generator.below(8) {
            0 if !data.is_empty() => data[at] = generator.below(256) as u8,
            1 if !data.is_empty() => data[at] ^= 1 << generator.below(8),
            2 => data.truncate(at),
            3 => drop(data.drain(at..at + len)),
            4 => drop(data.splice(at..at + len, NUMBERS[generator.below(8)].to_le_bytes()[..len].iter().copied()).collect::<Vec<_>>()),
            5 => {
                let text = TEXTS[generator.below(TEXTS.len())].repeat(1 + generator.below(30));
                data.splice(at..at, text.bytes());
            }
            6 => {
                let copy = data[at..at + len].repeat(1 + generator.below(10));
                data.splice(at..at, copy);
            }
            _ => {
                let from = generator.below(other.len());
                let piece = &other[from..(from + generator.below(40)).min(other.len())];
                data.splice(at..at, piece.iter().copied());
            }
        }
    }
}

#[test]
fn hostile_input_is_an_error_within_a_second() {
    targets::limit_memory();
    let mutations = std::env::var("CUPRUM_FUZZ_MUTATIONS").ok().map_or(MUTATIONS, |n| n.parse().unwrap());
    for (name, target) in targets::TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
        let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let corpus: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
        assert!(corpus.len() >= 3, "{name}: the corpus has {} files", corpus.len());
        let mut generator = Generator(0x9e37_79b9_7f4a_7c15);
        let mut inputs = corpus.clone();
        for _ in 0..mutations {
            let mut data = corpus[generator.below(corpus.len())].clone();
            mutate(&mut data, &corpus[generator.below(corpus.len())], &mut generator);
            inputs.push(data);
        }
        for input in inputs {
            check(name, target, &input);
        }
    }
}

/// Runs `target` on `input`. On a busy machine a slow run is repeated, since only every run being slow is a hang.
fn check(name: &str, target: fn(&[u8]), input: &[u8]) {
    let run = || {
        let start = Instant::now();
        let outcome = std::panic::catch_unwind(|| target(input));
        assert!(outcome.is_ok(), "{name} panics on {:?}", input.escape_ascii().to_string());
        start.elapsed()
    };
    let hangs = (0..3).all(|_| run() > HANG);
    assert!(!hangs, "{name} takes more than {HANG:?} for {:?}", input.escape_ascii().to_string());
}
