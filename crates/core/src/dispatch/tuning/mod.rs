//! `CUPRUM_ACCELERATORS=auto`: an order that measures. Of the accelerators that take a call, the one that was fastest on the
//! caller's own data serves all further calls of the same signature.
//!
//! The first few calls of a signature are trials: each is served whole by one candidate, so that nothing is computed twice and
//! no buffer of the caller is touched. A candidate first runs once untimed (it may compile), then timed; two that are close are
//! timed again. At most [`MOST_CANDIDATES`] accelerators are tried, and at most [`MOST_OTHER_RUNS`] calls are served by others than
//! the winner: of a program of 1,000 calls less than 2 % is lost while every candidate takes less than six times as long as the
//! winner (compiling aside). A candidate that declines or fails is out; the rest of the chain then serves the call.
//!
//! The time of a call is the larger of what the host spends issuing it and what the device spends on it: what a program of many
//! such calls would see. Winners are kept in memory and in the cache folder, with the versions of everything that was measured;
//! see [`entries`]. An accelerator that has several ways of its own may keep what it measured in the same place: [`recall`], [`keep`].

mod table;

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::array::Array;
use crate::call::{Call, Signature};
use crate::device::{Device, DeviceEvent, driver};
use crate::error::{Error, Result, shape_text};
use crate::registry::{Accelerator, Link};

pub use table::{Entry, Listing};

/// The most accelerators that are tried for one signature: the first that take it, and the base.
pub const MOST_CANDIDATES: usize = 3;
/// The most calls of a signature that others than the winner serve.
pub const MOST_OTHER_RUNS: usize = 5;
/// Two candidates are close when the slower takes at most this many times as long.
const CLOSE: f64 = 1.25;

/// What is known of an accelerator that may serve a signature.
struct Candidate {
    accelerator: &'static Accelerator,
    /// Calls that it has served.
    runs: usize,
    /// The shortest timed one, in microseconds.
    best: Option<f64>,
    /// Declined, failed, or one too many.
    out: bool,
}

/// A signature whose winner is not known yet.
struct Trial {
    candidates: SmallVec<[Candidate; 4]>,
    /// A thread is at it; others are served down the chain meanwhile.
    busy: bool,
}

/// What the trial wants of the next call.
enum Next {
    Run { candidate: usize, timed: bool },
    Decide { winner: usize },
}

impl Trial {
    fn new(links: &'static [Link]) -> Trial {
        let mut candidates = SmallVec::<[Candidate; 4]>::new();
        for link in links {
            if candidates.iter().all(|c| !std::ptr::eq(c.accelerator, link.accelerator)) {
                candidates.push(Candidate { accelerator: link.accelerator, runs: 0, best: None, out: false });
            }
        }
        Trial { candidates, busy: false }
    }

    /// What to do next; `None` when nobody takes the call.
    fn next(&mut self) -> Option<Next> {
        // The base is always among those tried, so it takes the last place.
        let accepted = self.candidates.iter().filter(|c| !c.out && c.runs > 0).count();
        if accepted + 1 >= MOST_CANDIDATES {
            self.candidates.iter_mut().filter(|c| c.runs == 0 && c.accelerator.base.is_none()).for_each(|c| c.out = true);
        }
        let mut in_play: SmallVec<[usize; 4]> = (0..self.candidates.len()).filter(|&n| !self.candidates[n].out).collect();
        if in_play.len() < 2 {
            return in_play.first().map(|&winner| Next::Decide { winner });
        }
        if let Some(&candidate) = in_play.iter().find(|&&n| self.candidates[n].runs == 0) {
            return Some(Next::Run { candidate, timed: false });
        }
        if let Some(&candidate) = in_play.iter().find(|&&n| self.candidates[n].best.is_none()) {
            return Some(Next::Run { candidate, timed: true });
        }
        let time = |n: usize| self.candidates[n].best.unwrap_or(f64::INFINITY);
        in_play.sort_by(|&a, &b| time(a).total_cmp(&time(b)));
        let (winner, second) = (in_play[0], in_play[1]);
        let others: usize = in_play[1..].iter().map(|&n| self.candidates[n].runs).sum();
        if time(second) > CLOSE * time(winner) || others >= MOST_OTHER_RUNS {
            return Some(Next::Decide { winner });
        }
        let candidate = if self.candidates[winner].runs < self.candidates[second].runs { winner } else { second };
        Some(Next::Run { candidate, timed: true })
    }
}

/// A signature under one chain.
type Key = (u64, usize);

/// The next step of a trial, taken.
enum Step {
    /// A candidate serves the call.
    Run { accelerator: &'static Accelerator, running: Running, timed: bool },
    /// It is over; the candidates tell their times.
    Won { accelerator: &'static Accelerator, candidates: SmallVec<[Candidate; 4]> },
}

/// A winner, and the text of its times for `explain`.
#[derive(Clone)]
struct Choice {
    accelerator: &'static Accelerator,
    times: Arc<str>,
}

static TRIALS: Mutex<Option<FxHashMap<Key, Trial>>> = Mutex::new(None);
/// Grows when choices are forgotten, so that every thread's own are too.
static GENERATION: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CHOICES: RefCell<(u64, FxHashMap<Key, Choice>)> = RefCell::default();
}

fn with_trials<R>(f: impl FnOnce(&mut FxHashMap<Key, Trial>) -> R) -> R {
    let mut guard = TRIALS.lock().unwrap_or_else(|e| e.into_inner());
    f(guard.get_or_insert_with(FxHashMap::default))
}

/// Who is asked first for a call, and whether that is a trial.
pub(crate) struct Advice {
    /// The accelerator to ask first.
    pub accelerator: &'static Accelerator,
    kind: Kind,
}

enum Kind {
    /// Measured before; with its times.
    Chosen(Arc<str>),
    /// On trial; the guard lets others try when it is dropped.
    Trial { running: Running, timed: bool },
}

impl From<Choice> for Advice {
    fn from(choice: Choice) -> Advice {
        Advice { accelerator: choice.accelerator, kind: Kind::Chosen(choice.times) }
    }
}

/// A trial that this thread is at.
struct Running {
    key: Key,
    candidate: usize,
}

impl Drop for Running {
    fn drop(&mut self) {
        with_trials(|t| {
            if let Some(trial) = t.get_mut(&self.key) {
                trial.busy = false;
            }
        });
    }
}

/// The start of a timed call.
pub(crate) struct Watch {
    before: Box<dyn DeviceEvent>,
    host: Instant,
}

/// Whom to ask first; `None` where there is nobody to choose between, or nothing is known and nothing may be tried.
pub(crate) fn advise(call: &Call, links: &'static [Link]) -> Result<Option<Advice>> {
    let [first, .., last] = links else { return Ok(None) };
    if std::ptr::eq(first.accelerator, last.accelerator) {
        return Ok(None);
    }
    let key = (Signature::of(call)?, links.as_ptr() as usize);
    if let Some(choice) = chosen(&key) {
        return Ok(Some(choice.into()));
    }
    if let Some(entry) = table::find(call.device, key.0)?
        && let Some(link) = links.iter().find(|l| l.accelerator.name == entry.winner)
    {
        return Ok(Some(remember(key, link.accelerator, entry.times_text()).into()));
    }
    if table::is_pinned() || call.stream.is_capturing() {
        return Ok(None);
    }
    Ok(try_next(call, links, key))
}

/// Takes the next step of a trial, or ends it.
fn try_next(call: &Call, links: &'static [Link], key: Key) -> Option<Advice> {
    let step = with_trials(|trials| {
        let trial = trials.entry(key).or_insert_with(|| Trial::new(links));
        if trial.busy {
            return None;
        }
        match trial.next()? {
            Next::Run { candidate, timed } => {
                trial.busy = true;
                let accelerator = trial.candidates[candidate].accelerator;
                Some(Step::Run { accelerator, running: Running { key, candidate }, timed })
            }
            Next::Decide { winner } => {
                let candidates = trials.remove(&key)?.candidates;
                Some(Step::Won { accelerator: candidates[winner].accelerator, candidates })
            }
        }
    })?;
    match step {
        Step::Run { accelerator, running, timed } => Some(Advice { accelerator, kind: Kind::Trial { running, timed } }),
        Step::Won { accelerator, candidates } => {
            let time = |c: &Candidate| Some((c.accelerator.name.to_string(), c.best?));
            let mut times: Vec<(String, f64)> = candidates.iter().filter_map(time).collect();
            times.sort_by(|a, b| a.1.total_cmp(&b.1));
            let entry = Entry { key: key.0, winner: accelerator.name.into(), times, what: what(call) };
            let choice = remember(key, accelerator, entry.times_text());
            table::insert(call.device, entry);
            Some(choice.into())
        }
    }
}

fn chosen(key: &Key) -> Option<Choice> {
    let find = |known: &RefCell<(u64, FxHashMap<Key, Choice>)>| {
        let (generation, choices) = &mut *known.borrow_mut();
        let now = GENERATION.load(Ordering::Acquire);
        if *generation != now {
            choices.clear();
            *generation = now;
        }
        choices.get(key).cloned()
    };
    CHOICES.try_with(find).ok().flatten() // while a thread ends, its own are gone
}

fn remember(key: Key, accelerator: &'static Accelerator, times: String) -> Choice {
    let choice = Choice { accelerator, times: times.into() };
    let _ = CHOICES.try_with(|known| known.borrow_mut().1.insert(key, choice.clone()));
    choice
}

/// A call in words, for listings: the first one seen of its signature.
fn what(call: &Call) -> String {
    let inputs: Vec<String> = call.inputs.iter().map(|a| format!("{} {}", a.dtype(), shape_text(a.shape()))).collect();
    let expression = call.program().filter(|p| !p.is_identity()).map_or_else(String::new, |p| format!(" of {p}"));
    format!("{} [{:?}]{expression}: {}", call.op.name(), call.family(), inputs.join(", "))
}

impl Advice {
    /// Whether the call is a trial of its accelerator.
    pub fn is_trial(&self) -> bool {
        matches!(self.kind, Kind::Trial { .. })
    }

    /// In words, for `explain`.
    pub fn text(&self) -> String {
        let name = self.accelerator.name;
        match &self.kind {
            Kind::Chosen(times) if times.is_empty() => format!("{name}, the only one that takes it"),
            Kind::Chosen(times) => format!("{name}, by measurement ({times})"),
            Kind::Trial { timed: true, .. } => format!("{name}, timed"),
            Kind::Trial { timed: false, .. } => format!("{name}, for the first time"),
        }
    }

    /// Starts the watch, if the call is to be timed.
    pub fn start(&self, call: &Call) -> Result<Option<Watch>> {
        match &self.kind {
            Kind::Trial { timed: true, .. } => {
                Ok(Some(Watch { before: driver(call.device)?.record_event(call.stream)?, host: Instant::now() }))
            }
            _ => Ok(None),
        }
    }

    /// The accelerator has served the call.
    pub fn served(&self, call: &Call, watch: Option<Watch>) -> Result<()> {
        let Kind::Trial { running, .. } = &self.kind else { return Ok(()) };
        let time = match watch {
            Some(Watch { before, host }) => {
                let host = host.elapsed().as_secs_f64() * 1e6;
                let after = driver(call.device)?.record_event(call.stream)?;
                Some(host.max(after.millis_since(before.as_ref())? * 1e3))
            }
            None => None,
        };
        running.report(|c| {
            c.runs += 1;
            c.best = time.into_iter().chain(c.best).reduce(f64::min);
        });
        Ok(())
    }

    /// The accelerator has declined the call, or failed at it.
    pub fn refused(&self) {
        if let Kind::Trial { running, .. } = &self.kind {
            running.report(|c| c.out = true);
        }
    }
}

impl Running {
    fn report(&self, f: impl FnOnce(&mut Candidate)) {
        with_trials(|t| {
            if let Some(candidate) = t.get_mut(&self.key).and_then(|t| t.candidates.get_mut(self.candidate)) {
                f(candidate);
            }
        });
    }
}

/// What an accelerator measured within itself for calls like this one, such as which of several algorithms is fastest: the winner
/// that was kept under this name, in this process or an earlier one.
pub fn recall(call: &Call, choice: &str) -> Result<Option<String>> {
    let key = Signature::of_choice(call, choice)?;
    Ok(table::find(call.device, key)?.map(|entry| entry.winner))
}

/// Whether an accelerator may measure within itself: not where `CUPRUM_TUNING` pins what was measured.
pub fn may_measure() -> bool {
    !table::is_pinned()
}

/// Keeps what an accelerator measured within itself: names (without spaces, commas and `=`) and microseconds. The fastest is what
/// [`recall`] gives. Does nothing where [`may_measure`] says no.
pub fn keep(call: &Call, choice: &str, mut times: Vec<(String, f64)>) -> Result<()> {
    if let Some((name, _)) =
        times.iter().find(|(name, _)| name.is_empty() || name.contains(|c: char| c.is_whitespace() || ",=".contains(c)))
    {
        return Err(Error::value("tuning::keep", format!("'{name}' is not a name: no space, comma or '='")));
    }
    if !may_measure() {
        return Ok(());
    }
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((winner, _)) = times.first() {
        let key = Signature::of_choice(call, choice)?;
        table::insert(call.device, Entry { key, winner: winner.clone(), times, what: format!("{choice} of {}", what(call)) });
    }
    Ok(())
}

/// What has been measured on each device, here and in earlier processes, for `cuprum info --tuning`.
pub fn entries() -> Result<Vec<Listing>> {
    Device::all().into_iter().map(table::listing).collect()
}

/// Forgets all choices, in memory and in the cache folder, so that they are measured anew. A pinned file stays.
pub fn forget() -> Result<()> {
    with_trials(FxHashMap::clear);
    GENERATION.fetch_add(1, Ordering::Release);
    table::forget()
}

/// Reads the file that `CUPRUM_TUNING` names, if it is set; an error if that cannot be done.
pub(crate) fn check() -> Result<()> {
    table::pinned().map(|_| ()).map_err(Error::clone)
}
