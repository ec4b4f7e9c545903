//! The order `auto` with test accelerators of the CPU that differ in speed. Each test runs in a separate process with a
//! separate cache folder.

use cuprum::core::call;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use cuprum::core::device::Buffer;
use cuprum::core::dispatch;
use cuprum::core::host_buffer::HostBuffer;
use cuprum::core::op::{Cost, OpDef};
use cuprum::core::ops::scan::CUMPROD;
use cuprum::core::{Accelerator, Availability, Call, DTypeSet, Family, Kernel, Outcome, OutputSpec, Work, decline, register};
use cuprum::tuning::{self, MAX_RUNS_OF_SLOWER_ACCELERATORS};
use cuprum::{CallRecord, DType, Device, Error, Op, Result, Stream, explain, ones, set_accelerators};

use crate::environment::in_child;

/// Large enough that the base takes longer than returning a cached array.
const LARGE: usize = 1 << 22;

/// Number of calls that each test accelerator served or failed: slow, quick, failing.
static RUNS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

fn runs() -> [usize; 3] {
    [0, 1, 2].map(|n| RUNS[n].load(Ordering::SeqCst))
}

/// Returns a cached array of ones after `time`. It equals the result of the base.
fn serve(call: &Call, number: usize, time: Duration) -> Result<Outcome> {
    static ONES: OnceLock<Arc<HostBuffer>> = OnceLock::new();
    RUNS[number].fetch_add(1, Ordering::SeqCst);
    std::thread::sleep(time);
    let ones = ONES.get_or_init(|| Arc::new(HostBuffer::from_slice(&vec![1u64; LARGE]).expect("memory for ones")));
    call.outcome_from_buffers([ones.clone() as Arc<dyn Buffer>])
}

const fn kernel(run: fn(&Call) -> Result<Outcome>) -> Kernel {
    Kernel::new(Family::Scan, run).only_ops(&[CUMPROD]).only_dtypes(DTypeSet::of(&[DType::U16]))
}

fn version() -> Availability {
    Availability::Ready(std::env::var("VERSION").unwrap_or_default())
}

const MADE_UP: Accelerator = Accelerator { name: "", device: "cpu", rank: 0, summary: "made up", probe: version, kernels: &[], base: None };

static SLOW: Accelerator =
    Accelerator { name: "slow", rank: -4, kernels: &[kernel(|call| serve(call, 0, Duration::from_millis(20)))], ..MADE_UP };

/// Declines small arrays.
static QUICK: Accelerator = Accelerator {
    name: "quick",
    rank: -3,
    kernels: &[kernel(|call| if call.outputs[0].layout.size() < LARGE { decline!("small") } else { serve(call, 1, Duration::ZERO) })],
    ..MADE_UP
};

static FAILING: Accelerator = Accelerator {
    name: "failing",
    rank: -5,
    kernels: &[kernel(|call| {
        RUNS[2].fetch_add(1, Ordering::SeqCst);
        Err(Error::backend("failing", call.op.name(), "always"))
    })],
    ..MADE_UP
};

/// Fails twice: with the error of an earlier asynchronous call, then with an error of the call itself.
static DOUBTING: Accelerator = Accelerator {
    name: "doubting",
    rank: -6,
    kernels: &[kernel(|call| match RUNS[2].fetch_add(1, Ordering::SeqCst) {
        0 => Err(Error::value("choose", "a choice is out of bounds")),
        1 => Err(Error::value(call.op.name(), "not with this library")),
        _ => serve(call, 1, Duration::ZERO),
    })],
    ..MADE_UP
};

/// Reports the index error of an earlier asynchronous call, once.
static FINDING: Accelerator = Accelerator {
    name: "finding",
    rank: -6,
    kernels: &[kernel(|call| match RUNS[2].fetch_add(1, Ordering::SeqCst) {
        0 => Err(Error::Index { op: "take", index: 9, axis: 0, size: 3 }),
        _ => serve(call, 1, Duration::ZERO),
    })],
    ..MADE_UP
};

static FOURTH: Accelerator =
    Accelerator { name: "fourth", rank: -2, kernels: &[kernel(|call| serve(call, 0, Duration::from_millis(30)))], ..MADE_UP };

fn set_up(accelerators: &[&'static Accelerator]) {
    accelerators.iter().for_each(|a| register(a).unwrap());
    Device::set_default(Device::CPU).unwrap();
    set_accelerators("auto").unwrap();
}

/// Makes one call, checks its result, and returns its record.
fn call(size: usize) -> CallRecord {
    let ones = ones(size, DType::U16).unwrap().eval().unwrap().clone();
    let (product, calls) = explain(|| ones.cumprod(0).unwrap());
    assert!(product.to_vec::<u64>().unwrap().iter().all(|&x| x == 1));
    calls.into_iter().next_back().unwrap()
}

/// Makes enough calls to find a winner, and returns the record of the last one.
fn settled(size: usize) -> CallRecord {
    (0..12).for_each(|_| drop(call(size)));
    call(size)
}

fn chosen(record: &CallRecord) -> &str {
    record.chosen.as_deref().unwrap_or_default()
}

/// Runs a child test with `folder` as its cache folder.
fn passes(test: &str, folder: &Path, variables: &[(&str, &str)]) {
    let folder = folder.to_str().unwrap();
    let variables = [variables, &[("CUPRUM_CACHE_DIR", folder)]].concat();
    let output = in_child(&format!("auto::{test}"), &variables);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{test}:\n{}{}", text(&output.stdout), text(&output.stderr));
}

/// Declares a test whose body runs in a separate process with an empty cache folder.
macro_rules! in_own_process {
    (fn $name:ident as $child:ident $body:block) => {
        #[test]
        fn $name() {
            passes(stringify!($child), tempfile::tempdir().unwrap().path(), &[]);
        }

        #[test]
        #[ignore = "run by the test above, in a process of its own"]
        fn $child() $body
    };
}

#[test]
fn the_fastest_accelerator_serves_and_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    passes("child_measures", folder.path(), &[]);
    passes("child_remembers", folder.path(), &[]);
    passes("child_measures", folder.path(), &[("VERSION", "2")]);
    // A truncated or damaged file only causes new measurements.
    for file in std::fs::read_dir(folder.path().join("tuning")).unwrap() {
        std::fs::write(file.unwrap().path(), "cuprum tuning, format 1\n0123\tqu").unwrap();
    }
    passes("child_measures", folder.path(), &[]);
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_measures() {
    set_up(&[&SLOW, &QUICK]);
    assert_eq!(chosen(&call(LARGE)), "slow, untimed trial");
    let last = settled(LARGE);
    assert_eq!(last.served_by, Some("quick"), "{last}");
    assert!(chosen(&last).starts_with("quick, measured fastest (quick "), "{last}");
    let shown = chosen(&last).split_once("slow ").and_then(|(_, rest)| rest.split_once(" us")?.0.parse::<f64>().ok());
    assert!(shown.is_some_and(|time| (20e3..2e6).contains(&time)), "the time of slow, at least 20 ms, is shown: {last}");
    assert!(runs()[0] <= 2, "one run untimed and one timed");
    let times: Vec<_> = tuning::all_results().unwrap().into_iter().flat_map(|l| l.entries).flat_map(|e| e.times).collect();
    let [slow] = times.iter().filter_map(|(name, time)| (name == "slow").then_some(*time)).collect::<Vec<_>>()[..] else {
        panic!("{times:?}")
    };
    assert!((20e3..2e6).contains(&slow), "20 ms are 20,000 us: {slow}");
    // An array of another size class has another signature. The accelerator `quick` declines it, so the base wins.
    let small = settled(1000);
    assert_eq!(small.served_by, Some("cpu"), "{small}");
    let listed: Vec<_> = tuning::all_results().unwrap().into_iter().flat_map(|l| l.entries).map(|e| e.winner).collect();
    assert!(listed.contains(&"quick".into()) && listed.contains(&"cpu".into()), "{listed:?}");
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_remembers() {
    set_up(&[&SLOW, &QUICK]);
    let first = call(LARGE);
    assert_eq!((first.served_by, runs()[0]), (Some("quick"), 0), "{first}");
    tuning::forget().unwrap();
    tuning::forget().unwrap(); // the files no longer exist
    assert_eq!(chosen(&call(LARGE)), "slow, untimed trial");
    // A file that cannot be removed, here a folder, is an error.
    let file = tuning::all_results().unwrap().into_iter().find(|l| l.device == Device::CPU).and_then(|l| l.file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(matches!(tuning::forget(), Err(Error::Io { .. })));
    std::fs::remove_dir(&file).unwrap();
}

in_own_process! {
    fn few_of_a_thousand_calls_are_trials as child_counts {
        set_up(&[&SLOW, &QUICK, &FOURTH]);
        for _ in 0..1000 {
            call(1000);
        }
        let [slow_and_fourth, quick, _] = runs();
        assert!(slow_and_fourth + quick <= MAX_RUNS_OF_SLOWER_ACCELERATORS, "{:?} of 1000 calls were served by others than the base", runs());
    }
}

in_own_process! {
    fn an_accelerator_that_fails_a_trial_is_excluded as child_survives_a_failure {
        set_up(&[&SLOW, &FAILING]);
        let first = call(1000);
        assert_eq!(first.declined, [("failing", "failed: [cumprod] failing failed: always".to_string())]);
        assert_eq!(first.served_by, Some("slow"));
        assert_eq!((settled(1000).served_by, runs()[2]), (Some("cpu"), 1));
    }
}

/// An operation of this crate, which the base does not know.
static MADE_UP_OP: OpDef = OpDef {
    name: "made_up",
    family: Family::Custom,
    arity: 0,
    index: u16::MAX,
    rule: None,
    cost: Cost::Cheap,
    composite: None,
    body: None,
    reduction: None,
};

/// Calls [`MADE_UP_OP`] on the CPU.
pub fn run_unknown_operation() -> Result<()> {
    let (device, outputs) = (Device::CPU, [OutputSpec::contiguous(DType::U16, &[1])?]);
    let (stream, work) = (Stream::current(device), Work::Custom(call::Custom(&())));
    dispatch::run_call(&Call { op: Op(&MADE_UP_OP), device, stream, inputs: &[], outputs: &outputs, work }).map(|_| ())
}

static FAILING_AT_IT: Accelerator = Accelerator {
    name: "failing",
    rank: -5,
    kernels: &[Kernel::new(Family::Custom, FAILING.kernels[0].run).only_ops(&[Op(&MADE_UP_OP)])],
    ..MADE_UP
};

static DECLINING_IT: Accelerator = Accelerator {
    name: "declining",
    rank: -4,
    kernels: &[Kernel::new(Family::Custom, |_| decline!("never")).only_ops(&[Op(&MADE_UP_OP)])],
    ..MADE_UP
};

in_own_process! {
    fn an_error_of_the_input_during_a_trial_is_returned as child_returns_the_input_error {
        set_up(&[&FINDING]);
        let error = ones(1000, DType::U16).unwrap().cumprod(0).err().unwrap();
        assert_eq!(error.to_string(), "[take] index 9 is out of bounds for axis 0 with size 3");
        assert_eq!(call(1000).served_by, Some("finding"), "it is not excluded");
    }
}

in_own_process! {
    fn an_invalid_value_of_another_call_is_returned as child_returns_the_invalid_value {
        set_up(&[&DOUBTING]);
        let error = ones(1000, DType::U16).unwrap().cumprod(0).err().unwrap();
        assert_eq!(error.to_string(), "[cumprod] a choice is out of bounds");
        let next = call(1000);
        assert_eq!(next.served_by, Some("cpu"), "an error of the call itself excludes the accelerator");
        assert_eq!(next.declined, [("doubting", "failed: [cumprod] not with this library".to_string())]);
    }
}

in_own_process! {
    fn a_failed_trial_is_returned_if_no_other_accelerator_serves as child_returns_the_failure {
        set_up(&[&FAILING_AT_IT, &DECLINING_IT]);
        let error = run_unknown_operation().unwrap_err();
        assert_eq!(error.to_string(), "[made_up] failing failed: always");
    }
}

in_own_process! {
    fn the_only_candidate_is_remembered_by_the_process as child_tries_once {
        set_up(&[&QUICK]);
        assert_eq!(chosen(&settled(1000)), "cpu, the only candidate");
        let elsewhere = std::thread::spawn(|| call(1000)).join().unwrap();
        assert_eq!(chosen(&elsewhere), "cpu, the only candidate");
        assert_eq!(elsewhere.declined, [], "it is asked first");
        assert!(tuning::all_results().unwrap().iter().all(|l| l.entries.is_empty()), "nothing was measured");
    }
}

#[test]
fn a_pinned_file_is_only_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pinned.tsv");
    passes("child_writes", folder.path(), &[]);
    let made = std::fs::read_dir(folder.path().join("tuning")).unwrap().next().unwrap().unwrap().path();
    let slower = std::fs::read_to_string(made).unwrap().replace("\tquick\t", "\tslow\t");
    std::fs::write(&file, &slower).unwrap();
    passes("child_is_pinned", folder.path(), &[("CUPRUM_TUNING", file.to_str().unwrap())]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), slower);
    passes("child_refuses_its_file", folder.path(), &[("CUPRUM_TUNING", "/no/such/file")]);
    std::fs::write(&file, "something else").unwrap();
    passes("child_refuses_its_file", folder.path(), &[("CUPRUM_TUNING", file.to_str().unwrap())]);
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_writes() {
    set_up(&[&SLOW, &QUICK]);
    settled(LARGE);
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_is_pinned() {
    set_up(&[&SLOW, &QUICK]);
    let served: Vec<_> = (0..4).map(|_| call(LARGE).served_by).collect();
    assert_eq!(served, [Some("slow"); 4], "as the file says");
    assert!(!tuning::may_measure());
    let unknown = call(1000);
    assert_eq!((unknown.served_by, chosen(&unknown)), (Some("slow"), ""), "the default order, untried");
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_refuses_its_file() {
    let text = cuprum::settings::check().unwrap_err().to_string();
    assert!(text.starts_with("CUPRUM_TUNING: "), "{text}");
    assert_eq!(ones(4, DType::U16).err().unwrap().to_string(), text);
}

/// Measures two algorithms once, stores the winner, and then follows the stored choice.
static CHOOSING: Accelerator = Accelerator {
    name: "choosing",
    kernels: &[kernel(|call| {
        match tuning::find_fastest_algorithm(call, "way")?.as_deref() {
            Some("second") => {}
            Some(other) => return Err(Error::value(call.op.name(), format!("{other} was slower"))),
            None if tuning::may_measure() => {
                assert!(tuning::store_measurements(call, "way", vec![("two words".into(), 1.0)]).is_err());
                tuning::store_measurements(call, "way", vec![("first".into(), 2.0), ("second".into(), 1.0)])?
            }
            None => decline!("nothing is known and nothing may be measured"),
        }
        RUNS[1].fetch_add(1, Ordering::SeqCst);
        decline!("another serves")
    })],
    ..MADE_UP
};

#[test]
fn a_choice_within_an_accelerator_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    passes("child_chooses", folder.path(), &[]);
    let file = std::fs::read_dir(folder.path().join("tuning")).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\tsecond\tsecond=1.000,first=2.000\tway of cumprod [Scan] of uint64(a0): uint16 (10,)"), "{text}");
    std::fs::write(&file, text.replace("\tsecond\t", "\tfirst\t")).unwrap();
    passes("child_follows_what_was_kept", folder.path(), &[]);
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_chooses() {
    set_up(&[&CHOOSING]);
    set_accelerators("choosing").unwrap();
    (0..2).for_each(|_| drop(call(10)));
    assert_eq!(runs()[1], 2);
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_follows_what_was_kept() {
    set_up(&[&CHOOSING]);
    set_accelerators("choosing").unwrap();
    let ones = ones(10, DType::U16).unwrap().eval().unwrap().clone();
    assert_eq!(ones.cumprod(0).unwrap_err().to_string(), "[cumprod] first was slower");
}

/// Number of processes that store winners at the same time, and of winners per process.
const KEEPERS: [&str; 3] = ["one", "two", "three"];
const KEPT: usize = 60;

#[test]
fn processes_that_measure_at_the_same_time_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let died = in_child("auto::child_aborts_with_the_lock", &[("CUPRUM_CACHE_DIR", folder.to_str().unwrap())]);
    assert!(!died.status.success());
    std::thread::scope(|scope| {
        for name in KEEPERS {
            scope.spawn(move || passes("child_stores_measurements", folder, &[("NAME", name)]));
        }
    });
    let file = std::fs::read_dir(folder.join("tuning")).unwrap().next().unwrap().unwrap().path();
    let kept = std::fs::read_to_string(file).unwrap();
    let lost = |name: &&str| (0..KEPT).filter(|n| !kept.contains(&format!("\t{name} {n} of "))).count();
    assert_eq!(KEEPERS.each_ref().map(lost), [0; 3]);
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_aborts_with_the_lock() {
    let file = std::fs::File::create(Path::new(&std::env::var("CUPRUM_CACHE_DIR").unwrap()).join("tuning.lock")).unwrap();
    file.lock().unwrap();
    std::process::abort();
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_stores_measurements() {
    set_up(&[&QUICK]);
    let (name, folder) = (std::env::var("NAME").unwrap(), std::env::var("CUPRUM_CACHE_DIR").unwrap());
    let outputs = [OutputSpec::contiguous(DType::U16, &[1]).unwrap()];
    let device = Device::CPU;
    let call = Call {
        op: CUMPROD,
        device,
        stream: Stream::current(device),
        inputs: &[],
        outputs: &outputs,
        work: Work::Custom(call::Custom(&())),
    };
    let started = |name: &str| Path::new(&folder).join(name);
    std::fs::write(started(&name), "").unwrap();
    let began = Instant::now();
    while !KEEPERS.iter().all(|name| started(name).exists()) {
        assert!(began.elapsed() < Duration::from_secs(60), "the others do not start");
        std::thread::yield_now();
    }
    for n in 0..KEPT {
        tuning::store_measurements(&call, &format!("{name} {n}"), vec![("way".into(), 1.0)]).unwrap();
    }
}

#[test]
fn auto_cannot_be_combined_with_names() {
    let text = set_accelerators("auto,cub").unwrap_err().to_string();
    assert!(text.contains("'auto' cannot be combined with names"), "{text}");
}
