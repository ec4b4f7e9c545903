use std::slice::from_ref;
use std::sync::{Arc, Mutex};

use super::INDEX_OUT_OF_BOUNDS;
use super::buffer_error_words::BufferErrorWords;
use super::error_word::{ErrorWord, FreeErrorWords, LaunchErrorWord, LaunchErrorWords};
use super::launch_ledger::{FaultTracker, LaunchLedger, PREPARED_LAUNCH};
use super::run_with_own_error_word;
use crate::driver::mutex_lock::lock_ignoring_poison;
use crate::error::{CudaError, Result};

/// Returns four unused error words in host memory. The tests write faults to them in place of a device.
fn free_words() -> Arc<FreeErrorWords> {
    let made = (0..4).map(|n| ErrorWord { host: Box::leak(Box::new([0; 4])), device: n }).collect();
    Arc::new(FreeErrorWords(Mutex::new(made)))
}

fn error_word(free: &Arc<FreeErrorWords>, is_graph: bool) -> Arc<LaunchErrorWord> {
    let word = free.take_free_error_word(|| Err(CudaError::Invalid("no word is free".into()))).unwrap();
    LaunchErrorWord::new(word, free.clone(), is_graph)
}

/// Writes a fault with the invalid value `value` to the error word, as a kernel does.
fn write(error_word: &LaunchErrorWord, value: u64) {
    // SAFETY: a leaked box; nothing else accesses it meanwhile.
    unsafe { error_word.word.host.write_volatile([INDEX_OUT_OF_BOUNDS, 7, value, 10]) };
}

/// Returns the invalid value of the fault that `result` reports, or `None` for `Ok`.
fn reported_value(result: Result<()>) -> Option<i64> {
    match result {
        Ok(()) => None,
        Err(CudaError::DeviceFault { value, .. }) => Some(value),
        Err(other) => panic!("{other}"),
    }
}

/// Returns the invalid value of the fault that a reader with these dependencies finds, if any.
fn found(dependencies: &BufferErrorWords) -> Option<i64> {
    dependencies.find_fault().map(|(_, fault)| fault.value)
}

#[test]
fn another_thread_neither_sees_nor_clears_a_fault() {
    let free = free_words();
    let (mine, other) = (LaunchLedger::default(), LaunchLedger::default());
    let (bad, good) = (error_word(&free, false), error_word(&free, false));
    mine.add_launch(0, &bad);
    other.add_launch(0, &good);
    write(&bad, 99);
    other.check_ended_launches(|_| true);
    assert_eq!(reported_value(other.report_fault()), None, "its own launch has no fault");
    mine.check_ended_launches(|_| true);
    assert_eq!(reported_value(mine.report_fault()), Some(99));
    assert_eq!(reported_value(mine.report_fault()), None, "reported once");
}

#[test]
fn every_reader_of_dependent_values_is_told_every_time() {
    let free = free_words();
    let mine = LaunchLedger::default();
    let (bad, good) = (error_word(&free, false), error_word(&free, false));
    mine.add_launch(0, &bad);
    mine.add_launch(0, &good);
    let (array, sum, apart) = (BufferErrorWords::default(), BufferErrorWords::default(), BufferErrorWords::default());
    array.add_error_words(from_ref(&bad));
    apart.add_error_words(from_ref(&good));
    let mut error_words = LaunchErrorWords::new();
    [&array, &apart].into_iter().for_each(|dependencies| dependencies.merge_error_words_into(&mut error_words));
    sum.add_error_words(&error_words);
    write(&bad, 5);
    // The fault is found before and after its report to the thread that queued the launch.
    assert_eq!((found(&array), found(&sum), found(&apart)), (Some(5), Some(5), None));
    mine.check_ended_launches(|_| true);
    assert_eq!(reported_value(mine.report_fault()), Some(5));
    assert_eq!((found(&array), found(&sum), found(&apart)), (Some(5), Some(5), None));
    assert!(apart.is_empty() && !sum.is_empty(), "launches that have run soundly are forgotten");
}

#[test]
fn a_wait_for_one_stream_checks_the_launches_of_that_stream() {
    let free = free_words();
    let mine = LaunchLedger::default();
    let (one, two) = (error_word(&free, false), error_word(&free, false));
    mine.add_launch(1, &one);
    mine.add_launch(2, &two);
    write(&one, 1);
    mine.check_ended_launches(|stream| stream == 2);
    assert_eq!(reported_value(mine.report_fault()), None);
    assert!(two.has_run_without_fault() && !one.has_run_without_fault());
    mine.check_ended_launches(|stream| stream == 1);
    assert_eq!(reported_value(mine.report_fault()), Some(1));
}

#[test]
fn one_report_covers_the_faults_found_by_then() {
    let free = free_words();
    let mine = LaunchLedger::default();
    let error_words = [error_word(&free, false), error_word(&free, false)];
    error_words.iter().for_each(|error_word| mine.add_launch(0, error_word));
    write(&error_words[0], 1);
    write(&error_words[1], 2);
    mine.check_ended_launches(|_| true);
    assert_eq!((reported_value(mine.report_fault()), reported_value(mine.report_fault())), (Some(1), None));
    // A read of the array has already reported this fault, so the ledger does not.
    let third = error_word(&free, false);
    mine.add_launch(0, &third);
    write(&third, 3);
    assert!(third.find_fault().is_some());
    mine.remove_reported_launch(&third);
    mine.check_ended_launches(|_| true);
    assert_eq!(reported_value(mine.report_fault()), None);
}

#[test]
fn faults_of_threads_that_ended_are_kept() {
    let (faults, free) = (FaultTracker::default(), free_words());
    let (alive, ended) = (faults.register_ledger(), faults.register_ledger());
    let bad = error_word(&free, false);
    ended.add_launch(0, &bad);
    assert!(faults.ledgers_of_ended_threads().is_empty());
    drop(ended);
    drop(faults.register_ledger()); // leaves an empty ledger, which the next registration removes
    let _next = faults.register_ledger();
    write(&bad, 8);
    drop(bad);
    let abandoned = faults.ledgers_of_ended_threads();
    abandoned.iter().for_each(|ledger| ledger.check_ended_launches(|_| true));
    assert_eq!(abandoned.iter().filter_map(|ledger| reported_value(ledger.report_fault())).collect::<Vec<_>>(), [8]);
    assert_eq!(reported_value(alive.report_fault()), None);
    drop(abandoned);
    let _last = faults.register_ledger();
    assert_eq!(lock_ignoring_poison(&faults.ledgers).len(), 3, "those of three threads that go on");
}

#[test]
fn a_graph_is_sound_again_after_its_next_launch() {
    let free = free_words();
    let (mine, graph, input) = (LaunchLedger::default(), error_word(&free, true), error_word(&free, false));
    let output = BufferErrorWords::default();
    output.add_error_words(from_ref(&graph));
    assert_eq!(graph.prepare_relaunch(LaunchErrorWords::new()), None);
    mine.add_launch(0, &graph);
    assert_eq!(found(&output), None);
    assert!(!output.is_empty(), "the next launch may fault");
    write(&graph, 4);
    assert_eq!(found(&output), Some(4));
    mine.check_ended_launches(|_| true);
    assert_eq!(reported_value(mine.report_fault()), Some(4));
    assert_eq!(graph.prepare_relaunch(LaunchErrorWords::new()), None, "reported before");
    assert_eq!(found(&output), None);
    // No wait covers this launch, so the next launch of the graph reports its fault.
    write(&graph, 5);
    assert_eq!(graph.prepare_relaunch(LaunchErrorWords::new()).map(|fault| fault.value), Some(5));
    // The inputs depend on a fault, and the graph reads its own output.
    write(&input, 6);
    assert_eq!(graph.prepare_relaunch([input.clone(), graph.clone()].into_iter().collect()), None);
    assert_eq!(found(&output), Some(6));
    assert_eq!(graph.prepare_relaunch(LaunchErrorWords::new()), None);
    assert_eq!(found(&output), None);
}

#[test]
fn copies_replace_what_they_overwrite() {
    let free = free_words();
    let (bad, good) = (error_word(&free, false), error_word(&free, false));
    let (from, to) = (BufferErrorWords::default(), BufferErrorWords::default());
    from.add_error_words(from_ref(&bad));
    write(&bad, 3);
    to.add_error_words(&[good]);
    let mut error_words = LaunchErrorWords::new();
    from.merge_error_words_into(&mut error_words);
    to.add_error_words(&error_words);
    assert_eq!(found(&to), Some(3));
    to.replace_error_words(LaunchErrorWords::new());
    assert_eq!(found(&to), None);
}

#[test]
fn words_come_back_cleared() {
    let free = free_words();
    let error_words: Vec<_> = (0..4).map(|_| error_word(&free, false)).collect();
    error_words.iter().for_each(|error_word| write(error_word, 1));
    assert!(free.take_free_error_word(|| Err(CudaError::Invalid("no".into()))).is_err());
    drop(error_words);
    let again: Vec<_> = (0..4).map(|_| error_word(&free, false)).collect();
    assert!(again.iter().all(|error_word| error_word.find_fault().is_none()));
}

#[test]
fn an_operation_leaves_no_error_word_to_later_operations() {
    let free = free_words();
    let prepare = |value: u64| {
        let error_word = error_word(&free, false);
        write(&error_word, value);
        PREPARED_LAUNCH.replace(Some((0, 0, error_word)));
    };
    let prepared = || PREPARED_LAUNCH.with_borrow(|prepared| prepared.as_ref().and_then(|(.., word)| word.find_fault()).map(|f| f.value));
    run_with_own_error_word(|| {
        prepare(1);
        run_with_own_error_word(|| {
            assert_eq!(prepared(), None);
            prepare(2);
        });
        assert_eq!(prepared(), Some(1));
    });
    assert_eq!(prepared(), None);
}
