//! Autotuning (`CUPRUM_ACCELERATORS=auto`): measures accelerators on the caller's data and selects the fastest for each call signature.
//!
//! The signature of a call is a hash of its family, operation, dtypes, fused program and approximate layouts ([`TuningSignature`]).
//!
//! The first calls of a signature form a trial. The candidates of a trial are the accelerators that are compared, and the winner is the
//! fastest. Each call of the trial runs on a single candidate, so that no work is repeated and no buffer is copied. A candidate first
//! serves one untimed call, because it may compile, and then a timed call. If the two fastest candidates are close, they are timed again.
//!
//! At most [`MAX_CANDIDATES`] accelerators are tried, and those other than the winner serve at most
//! [`MAX_RUNS_OF_SLOWER_ACCELERATORS`] calls. A program of 1,000 calls loses less than 2 % if no candidate takes over six times the time
//! of the winner, compilation aside. A candidate that declines or fails is excluded, and another accelerator of the device serves the
//! call.
//!
//! The time of a call is the larger of its host time and its device time, because the larger one bounds the throughput of many such calls.
//! Winners are stored in memory and in the cache folder, with the versions of all measured components; see [`all_results`]. An accelerator
//! with several algorithms may store its own measurements with [`store_measurements`] and read them with [`find_fastest_algorithm`].

mod tuning_results;

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::array::Array;
use crate::call::{Call, TuningSignature};
use crate::device::{Device, DeviceEvent, driver};
use crate::error::{Error, Result, shape_text};
use crate::registry::{Accelerator, KernelChainEntry};
use crate::settings::SettingCheck;

pub use tuning_results::{DeviceResults, TuningResult};

/// Maximum number of accelerators measured per call signature: the first ones that accept the call, and the device's base accelerator,
/// which serves every call.
pub const MAX_CANDIDATES: usize = 3;
/// Maximum number of calls per signature that run on accelerators other than the fastest, to measure them.
pub const MAX_RUNS_OF_SLOWER_ACCELERATORS: usize = 5;
/// Maximum ratio of the times of the two fastest accelerators at which both are timed again.
const MAX_CLOSE_TIME_RATIO: f64 = 1.25;

/// An accelerator that a trial compares with others by timing calls, because it may be the fastest for a call signature.
struct TrialCandidate {
    accelerator: &'static Accelerator,
    /// Number of calls that the accelerator has served for this comparison.
    runs: usize,
    /// Minimum time of the candidate's calls in microseconds; `None` before its first timed call.
    best: Option<f64>,
    /// True once the accelerator has declined or failed, or once enough other candidates have served calls ([`MAX_CANDIDATES`]).
    excluded: bool,
}

/// A comparison of accelerators (a trial): the times of calls of one signature, whose fastest accelerator has not been determined yet.
struct SignatureTrial {
    candidates: SmallVec<[TrialCandidate; 4]>,
    /// Whether a thread is measuring an accelerator for this signature. While it is true, other threads try accelerators in the default
    /// order.
    busy: bool,
}

/// The next step of a trial, which compares accelerators by timing calls: a call on one of these candidates, or the end of the trial.
enum NextTrialStep {
    Run { candidate: usize, timed: bool },
    Decide { winner: usize },
}

impl SignatureTrial {
    fn new_trial_of_chain(chain: &'static [KernelChainEntry]) -> SignatureTrial {
        let mut candidates = SmallVec::<[TrialCandidate; 4]>::new();
        for entry in chain {
            if candidates.iter().all(|c| !std::ptr::eq(c.accelerator, entry.accelerator)) {
                candidates.push(TrialCandidate { accelerator: entry.accelerator, runs: 0, best: None, excluded: false });
            }
        }
        SignatureTrial { candidates, busy: false }
    }

    /// Returns the next step of this comparison of accelerators, or `None` if every candidate is excluded.
    fn next_trial_step(&mut self) -> Option<NextTrialStep> {
        // The last candidate is always the base accelerator of the device, such as `cuda`, which serves every operation. The base
        // accelerator counts towards `MAX_CANDIDATES`.
        let accepted = self.candidates.iter().filter(|c| !c.excluded && c.runs > 0).count();
        if accepted + 1 >= MAX_CANDIDATES {
            self.candidates.iter_mut().filter(|c| c.runs == 0 && c.accelerator.base.is_none()).for_each(|c| c.excluded = true);
        }
        let mut in_play: SmallVec<[usize; 4]> = (0..self.candidates.len()).filter(|&n| !self.candidates[n].excluded).collect();
        if in_play.len() < 2 {
            return in_play.first().map(|&winner| NextTrialStep::Decide { winner });
        }
        if let Some(&candidate) = in_play.iter().find(|&&n| self.candidates[n].runs == 0) {
            return Some(NextTrialStep::Run { candidate, timed: false });
        }
        if let Some(&candidate) = in_play.iter().find(|&&n| self.candidates[n].best.is_none()) {
            return Some(NextTrialStep::Run { candidate, timed: true });
        }
        let time = |n: usize| self.candidates[n].best.unwrap_or(f64::INFINITY);
        in_play.sort_by(|&a, &b| time(a).total_cmp(&time(b)));
        let (winner, second) = (in_play[0], in_play[1]);
        let others: usize = in_play[1..].iter().map(|&n| self.candidates[n].runs).sum();
        if time(second) > MAX_CLOSE_TIME_RATIO * time(winner) || others >= MAX_RUNS_OF_SLOWER_ACCELERATORS {
            return Some(NextTrialStep::Decide { winner });
        }
        let candidate = if self.candidates[winner].runs < self.candidates[second].runs { winner } else { second };
        Some(NextTrialStep::Run { candidate, timed: true })
    }
}

/// Key of a [`SignatureTrial`] and of its result: the hash of the call signature ([`TuningSignature`]), and the address of the chain of
/// kernels.
type TrialKey = (u64, usize);

/// The result of advancing a trial (a comparison that times calls on several accelerators) by one call.
enum AdvancedTrialStep {
    /// `accelerator`, which the trial compares with others, runs the call. If `timed`, the duration of the call is recorded.
    Run { accelerator: &'static Accelerator, guard: BusyTrialGuard, timed: bool },
    /// The comparison has ended. `accelerator` is the fastest candidate, or the only one that is not excluded.
    Won { accelerator: &'static Accelerator, candidates: SmallVec<[TrialCandidate; 4]> },
}

/// The accelerator chosen for a call signature, and the formatted times of all candidates for `explain`.
#[derive(Clone)]
struct ChosenAccelerator {
    accelerator: &'static Accelerator,
    times: Arc<str>,
}

static TRIALS: Mutex<Option<FxHashMap<TrialKey, SignatureTrial>>> = Mutex::new(None);
/// Number of calls of [`forget`] so far. Each thread stores this number with its cached choices, and drops them if the number has changed.
static ACCELERATOR_CHOICES_GENERATION: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CACHED_ACCELERATOR_CHOICES: RefCell<(u64, FxHashMap<TrialKey, ChosenAccelerator>)> = RefCell::default();
}

fn with_trials<R>(f: impl FnOnce(&mut FxHashMap<TrialKey, SignatureTrial>) -> R) -> R {
    let mut guard = TRIALS.lock().unwrap_or_else(|e| e.into_inner());
    f(guard.get_or_insert_with(FxHashMap::default))
}

/// The recommendation of autotuning: the accelerator to try first for a call.
pub(crate) struct TuningAdvice {
    /// The accelerator.
    pub accelerator: &'static Accelerator,
    kind: TuningAdviceKind,
}

enum TuningAdviceKind {
    /// The accelerator was the fastest in an earlier trial, a comparison that timed calls on several accelerators. Holds the formatted
    /// times of these accelerators.
    Chosen(Arc<str>),
    /// The accelerator is a candidate of a trial in progress, which compares accelerators by timing calls. Until `guard` is dropped, no
    /// other thread runs a call for this trial. If `timed`, the duration of the call is recorded.
    Trial { guard: BusyTrialGuard, timed: bool },
}

impl From<ChosenAccelerator> for TuningAdvice {
    fn from(choice: ChosenAccelerator) -> TuningAdvice {
        TuningAdvice { accelerator: choice.accelerator, kind: TuningAdviceKind::Chosen(choice.times) }
    }
}

/// A guard that marks a trial (a comparison that times calls on several accelerators) as busy. No other thread runs a call for the trial
/// until the guard is dropped.
struct BusyTrialGuard {
    key: TrialKey,
    candidate: usize,
}

impl Drop for BusyTrialGuard {
    fn drop(&mut self) {
        with_trials(|t| {
            if let Some(trial) = t.get_mut(&self.key) {
                trial.busy = false;
            }
        });
    }
}

/// Start times of a measured call, on device and host.
pub(crate) struct CallTimer {
    before: Box<dyn DeviceEvent>,
    host: Instant,
}

/// Returns the accelerator to try first for `call`.
///
/// Returns `None` if `chain` has only one accelerator, or if the fastest accelerator is unknown and `call` cannot be timed to find it.
pub(crate) fn recommend_accelerator(call: &Call, chain: &'static [KernelChainEntry]) -> Result<Option<TuningAdvice>> {
    let [first, .., last] = chain else { return Ok(None) };
    if std::ptr::eq(first.accelerator, last.accelerator) {
        return Ok(None);
    }
    let key = (TuningSignature::hash_call(call)?, chain.as_ptr() as usize);
    if let Some(choice) = find_cached_accelerator(&key) {
        return Ok(Some(choice.into()));
    }
    if let Some(known) = tuning_results::find_tuning_result(call.device, key.0)?
        && let Some(entry) = chain.iter().find(|e| e.accelerator.name == known.winner)
    {
        return Ok(Some(cache_chosen_accelerator(key, entry.accelerator, known.display_times()).into()));
    }
    if tuning_results::uses_named_file() || call.stream.is_capturing() {
        return Ok(None);
    }
    Ok(advance_trial(call, chain, key))
}

/// Advances the trial for `key`, which compares accelerators by timing calls. Returns the candidate that runs `call`, or ends the trial and
/// returns the fastest candidate. Returns `None` if another thread runs a candidate, or if every candidate is excluded.
fn advance_trial(call: &Call, chain: &'static [KernelChainEntry], key: TrialKey) -> Option<TuningAdvice> {
    let step = with_trials(|trials| {
        let trial = trials.entry(key).or_insert_with(|| SignatureTrial::new_trial_of_chain(chain));
        if trial.busy {
            return None;
        }
        match trial.next_trial_step()? {
            NextTrialStep::Run { candidate, timed } => {
                trial.busy = true;
                let accelerator = trial.candidates[candidate].accelerator;
                Some(AdvancedTrialStep::Run { accelerator, guard: BusyTrialGuard { key, candidate }, timed })
            }
            NextTrialStep::Decide { winner } => {
                let candidates = trials.remove(&key)?.candidates;
                Some(AdvancedTrialStep::Won { accelerator: candidates[winner].accelerator, candidates })
            }
        }
    })?;
    match step {
        AdvancedTrialStep::Run { accelerator, guard, timed } => {
            Some(TuningAdvice { accelerator, kind: TuningAdviceKind::Trial { guard, timed } })
        }
        AdvancedTrialStep::Won { accelerator, candidates } => {
            let time = |c: &TrialCandidate| Some((c.accelerator.name.to_string(), c.best?));
            let mut times: Vec<(String, f64)> = candidates.iter().filter_map(time).collect();
            times.sort_by(|a, b| a.1.total_cmp(&b.1));
            let entry = TuningResult { key: key.0, winner: accelerator.name.into(), times, description: describe_call(call) };
            let choice = cache_chosen_accelerator(key, accelerator, entry.display_times());
            tuning_results::insert_tuning_result(call.device, entry);
            Some(choice.into())
        }
    }
}

fn find_cached_accelerator(key: &TrialKey) -> Option<ChosenAccelerator> {
    let find = |known: &RefCell<(u64, FxHashMap<TrialKey, ChosenAccelerator>)>| {
        let (generation, choices) = &mut *known.borrow_mut();
        let now = ACCELERATOR_CHOICES_GENERATION.load(Ordering::Acquire);
        if *generation != now {
            choices.clear();
            *generation = now;
        }
        choices.get(key).cloned()
    };
    CACHED_ACCELERATOR_CHOICES.try_with(find).ok().flatten() // `Err` while the thread ends
}

fn cache_chosen_accelerator(key: TrialKey, accelerator: &'static Accelerator, times: String) -> ChosenAccelerator {
    let choice = ChosenAccelerator { accelerator, times: times.into() };
    let _ = CACHED_ACCELERATOR_CHOICES.try_with(|known| known.borrow_mut().1.insert(key, choice.clone()));
    choice
}

/// Describes `call` for the listing of tuning results.
fn describe_call(call: &Call) -> String {
    let inputs: Vec<String> = call.inputs.iter().map(|a| format!("{} {}", a.dtype(), shape_text(a.shape()))).collect();
    let expression = call.program().filter(|p| !p.is_identity()).map_or_else(String::new, |p| format!(" of {p}"));
    format!("{} [{:?}]{expression}: {}", call.op.name(), call.family(), inputs.join(", "))
}

impl TuningAdvice {
    /// Returns whether the recommended accelerator is still being compared with others by timed calls. Returns false if the comparison has
    /// ended and found that this accelerator is the fastest.
    pub fn is_trial_run(&self) -> bool {
        matches!(self.kind, TuningAdviceKind::Trial { .. })
    }

    /// Returns the name of the recommended accelerator with the reason, for `explain`.
    pub fn describe_advice(&self) -> String {
        let name = self.accelerator.name;
        match &self.kind {
            TuningAdviceKind::Chosen(times) if times.is_empty() => format!("{name}, the only candidate"),
            TuningAdviceKind::Chosen(times) => format!("{name}, measured fastest ({times})"),
            TuningAdviceKind::Trial { timed: true, .. } => format!("{name}, timed trial"),
            TuningAdviceKind::Trial { timed: false, .. } => format!("{name}, untimed trial"),
        }
    }

    /// Starts a timer for `call`, if the call is measured.
    pub fn start_call_timer(&self, call: &Call) -> Result<Option<CallTimer>> {
        match &self.kind {
            TuningAdviceKind::Trial { timed: true, .. } => {
                Ok(Some(CallTimer { before: driver(call.device)?.record_event(call.stream)?, host: Instant::now() }))
            }
            _ => Ok(None),
        }
    }

    /// Records that the recommended accelerator has served `call`. If `timer` is given, also records the duration of the call.
    pub fn record_served_call(&self, call: &Call, timer: Option<CallTimer>) -> Result<()> {
        let TuningAdviceKind::Trial { guard, .. } = &self.kind else { return Ok(()) };
        let time = match timer {
            Some(CallTimer { before, host }) => {
                let host = host.elapsed().as_secs_f64() * 1e6;
                let after = driver(call.device)?.record_event(call.stream)?;
                Some(host.max(after.millis_since(before.as_ref())? * 1e3))
            }
            None => None,
        };
        guard.update_candidate(|c| {
            c.runs += 1;
            c.best = time.into_iter().chain(c.best).reduce(f64::min);
        });
        Ok(())
    }

    /// Records that the recommended accelerator declined the call or failed, which excludes it from the comparison of accelerators.
    pub fn record_refusal(&self) {
        if let TuningAdviceKind::Trial { guard, .. } = &self.kind {
            guard.update_candidate(|c| c.excluded = true);
        }
    }
}

impl BusyTrialGuard {
    fn update_candidate(&self, f: impl FnOnce(&mut TrialCandidate)) {
        with_trials(|t| {
            if let Some(candidate) = t.get_mut(&self.key).and_then(|t| t.candidates.get_mut(self.candidate)) {
                f(candidate);
            }
        });
    }
}

/// Returns the name of the fastest algorithm that [`store_measurements`] stored under the name `choice` for the signature of `call`, in
/// this or an earlier process. Returns `None` if there is none.
///
/// # Errors
/// [`Error::Setting`] if the file of `CUPRUM_TUNING` is invalid.
pub fn find_fastest_algorithm(call: &Call, choice: &str) -> Result<Option<String>> {
    let key = TuningSignature::hash_call_with_choice(call, choice)?;
    Ok(tuning_results::find_tuning_result(call.device, key)?.map(|entry| entry.winner))
}

/// Returns whether an accelerator may run its own measurements. `CUPRUM_TUNING` with a file disables them.
pub fn may_measure() -> bool {
    !tuning_results::uses_named_file()
}

/// Stores the times of an accelerator's algorithms, each as name and microseconds, under the name `choice`. [`find_fastest_algorithm`]
/// returns the name of the fastest.
///
/// Names have no whitespace, commas or `=`. Has no effect if [`may_measure`] returns false.
///
/// # Errors
/// [`Error::Value`] for an invalid name.
pub fn store_measurements(call: &Call, choice: &str, mut times: Vec<(String, f64)>) -> Result<()> {
    if let Some((name, _)) =
        times.iter().find(|(name, _)| name.is_empty() || name.contains(|c: char| c.is_whitespace() || ",=".contains(c)))
    {
        return Err(Error::value("tuning::store_measurements", format!("'{name}' is not a name: no space, comma or '='")));
    }
    if !may_measure() {
        return Ok(());
    }
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((winner, _)) = times.first() {
        let key = TuningSignature::hash_call_with_choice(call, choice)?;
        tuning_results::insert_tuning_result(
            call.device,
            TuningResult { key, winner: winner.clone(), times, description: format!("{choice} of {}", describe_call(call)) },
        );
    }
    Ok(())
}

/// Returns the tuning results of each device, from this and earlier processes, for `cuprum info --tuning`.
///
/// # Errors
/// [`Error::Setting`] if the file of `CUPRUM_TUNING` is invalid.
pub fn all_results() -> Result<Vec<DeviceResults>> {
    Device::all().into_iter().map(tuning_results::list_tuning_results).collect()
}

/// Removes the tuning results of every device from memory, and their files from the cache folder. Files for other versions of the
/// components (cuprum, drivers, libraries) stay, and so does a file named by `CUPRUM_TUNING`.
///
/// # Errors
/// [`Error::Io`] if a file cannot be removed.
pub fn forget() -> Result<()> {
    with_trials(FxHashMap::clear);
    ACCELERATOR_CHOICES_GENERATION.fetch_add(1, Ordering::Release);
    tuning_results::forget_stored_results()
}

inventory::submit! {
    SettingCheck { variable: tuning_results::TUNING_VARIABLE, needs_devices: false, run: check_tuning_results_file }
}

/// Checks that the file named by `CUPRUM_TUNING`, if any, is readable and valid.
fn check_tuning_results_file() -> Result<()> {
    tuning_results::read_named_tuning_file().map(|_| ()).map_err(Error::clone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Availability;

    const ACCELERATOR: Accelerator = Accelerator {
        name: "one",
        device: "cpu",
        rank: 0,
        summary: "",
        probe: || Availability::Ready(String::new()),
        kernels: &[],
        base: None,
    };

    /// A trial whose candidates have these numbers of runs and best times.
    fn trial(candidates: &[(usize, Option<f64>)]) -> SignatureTrial {
        static ONE: Accelerator = ACCELERATOR;
        let candidate = |&(runs, best)| TrialCandidate { accelerator: &ONE, runs, best, excluded: false };
        SignatureTrial { candidates: candidates.iter().map(candidate).collect(), busy: false }
    }

    /// The candidate that runs next and whether it is timed, or the winner.
    fn next(candidates: &[(usize, Option<f64>)]) -> std::result::Result<(usize, bool), usize> {
        match trial(candidates).next_trial_step().unwrap() {
            NextTrialStep::Run { candidate, timed } => Ok((candidate, timed)),
            NextTrialStep::Decide { winner } => Err(winner),
        }
    }

    #[test]
    fn each_candidate_runs_once_before_it_is_timed() {
        assert_eq!(next(&[(0, None), (0, None)]), Ok((0, false)));
        assert_eq!(next(&[(1, None), (0, None)]), Ok((1, false)));
        assert_eq!(next(&[(1, None), (1, None)]), Ok((0, true)));
        assert_eq!(next(&[(2, Some(1.0)), (1, None)]), Ok((1, true)));
    }

    #[test]
    fn close_candidates_run_again_the_one_with_fewer_runs_first() {
        assert_eq!(next(&[(2, Some(10.0)), (2, Some(12.5))]), Ok((1, true)), "12.5 is at most 1.25 times 10");
        assert_eq!(next(&[(2, Some(10.0)), (3, Some(12.0))]), Ok((0, true)));
        assert_eq!(next(&[(3, Some(10.0)), (2, Some(12.0))]), Ok((1, true)));
        assert_eq!(next(&[(2, Some(10.0)), (2, Some(12.6))]), Err(0));
        assert_eq!(next(&[(2, Some(0.4)), (2, Some(0.3))]), Err(1));
        assert_eq!(next(&[(9, Some(10.0)), (MAX_RUNS_OF_SLOWER_ACCELERATORS, Some(10.1))]), Err(0), "the loser has run often enough");
        assert_eq!(next(&[(9, Some(10.0)), (MAX_RUNS_OF_SLOWER_ACCELERATORS - 1, Some(10.1))]), Ok((1, true)));
    }

    #[test]
    fn few_candidates_are_measured() {
        static BASE: Accelerator = Accelerator {
            base: Some(crate::registry::DeviceProvider {
                count: || 0,
                is_ready: |_| false,
                open: |device| Err(Error::Device { op: "device", message: device.to_string() }),
            }),
            ..ACCELERATOR
        };
        let mut all = trial(&[(1, None), (1, None), (0, None), (0, None)]);
        all.candidates[3].accelerator = &BASE;
        assert!(matches!(all.next_trial_step(), Some(NextTrialStep::Run { candidate: 3, timed: false })), "the base is always measured");
        assert_eq!(all.candidates.iter().map(|c| c.excluded).collect::<Vec<_>>(), [false, false, true, false]);
        let mut declined = trial(&[(1, None), (0, None), (0, None), (0, None)]);
        declined.candidates[1].excluded = true;
        declined.candidates[3].accelerator = &BASE;
        assert!(matches!(declined.next_trial_step(), Some(NextTrialStep::Run { candidate: 2, timed: false })), "one has declined");
        assert!(declined.candidates.iter().skip(2).all(|c| !c.excluded));
        let mut none = trial(&[(0, None)]);
        none.candidates[0].excluded = true;
        assert!(none.next_trial_step().is_none());
    }
}
