use std::slice::from_ref;
use std::sync::{Arc, Mutex};

use super::INDEX_OUT_OF_BOUNDS;
use super::error_word::{ErrorWord, FaultCell, FaultCells, FreeErrorWords, lock};
use super::launch_dependencies::LaunchDependencies;
use super::launch_ledger::{Faults, LaunchLedger};
use crate::error::{CudaError, Result};

/// Words in host memory, in which the test stands for the device.
fn words() -> Arc<FreeErrorWords> {
    let made = (0..4).map(|n| ErrorWord { host: Box::leak(Box::new([0; 4])), device: n }).collect();
    Arc::new(FreeErrorWords(Mutex::new(made)))
}

fn cell(free: &Arc<FreeErrorWords>, is_graph: bool) -> Arc<FaultCell> {
    let word = free.take_word(|| Err(CudaError::Invalid("no word is free".into()))).unwrap();
    FaultCell::new(word, free.clone(), is_graph)
}

/// Simulates the error word that a kernel writes.
fn write(cell: &FaultCell, value: u64) {
    // SAFETY: a leaked box; nothing else accesses it meanwhile.
    unsafe { cell.word.host.write_volatile([INDEX_OUT_OF_BOUNDS, 7, value, 10]) };
}

fn told(result: Result<()>) -> Option<i64> {
    match result {
        Ok(()) => None,
        Err(CudaError::DeviceFault { value, .. }) => Some(value),
        Err(other) => panic!("{other}"),
    }
}

fn found(taint: &LaunchDependencies) -> Option<i64> {
    taint.find_fault().map(|(_, fault)| fault.value)
}

#[test]
fn another_thread_neither_sees_nor_clears_a_fault() {
    let free = words();
    let (mine, other) = (LaunchLedger::default(), LaunchLedger::default());
    let (bad, good) = (cell(&free, false), cell(&free, false));
    mine.add_launch(0, &bad);
    other.add_launch(0, &good);
    write(&bad, 99);
    other.check_launches(|_| true);
    assert_eq!(told(other.report_fault()), None, "its own launch has no fault");
    mine.check_launches(|_| true);
    assert_eq!(told(mine.report_fault()), Some(99));
    assert_eq!(told(mine.report_fault()), None, "reported once");
}

#[test]
fn every_reader_of_dependent_values_is_told_every_time() {
    let free = words();
    let mine = LaunchLedger::default();
    let (bad, good) = (cell(&free, false), cell(&free, false));
    mine.add_launch(0, &bad);
    mine.add_launch(0, &good);
    let (array, sum, apart) = (LaunchDependencies::default(), LaunchDependencies::default(), LaunchDependencies::default());
    array.add_cells(from_ref(&bad));
    apart.add_cells(from_ref(&good));
    let mut cells = FaultCells::new();
    [&array, &apart].into_iter().for_each(|taint| taint.merge_into(&mut cells));
    sum.add_cells(&cells);
    write(&bad, 5);
    // Before and after the report to the thread that made it.
    assert_eq!((found(&array), found(&sum), found(&apart)), (Some(5), Some(5), None));
    mine.check_launches(|_| true);
    assert_eq!(told(mine.report_fault()), Some(5));
    assert_eq!((found(&array), found(&sum), found(&apart)), (Some(5), Some(5), None));
    assert!(apart.is_empty() && !sum.is_empty(), "launches that have run soundly are forgotten");
}

#[test]
fn a_wait_for_one_stream_checks_the_launches_of_that_stream() {
    let free = words();
    let mine = LaunchLedger::default();
    let (one, two) = (cell(&free, false), cell(&free, false));
    mine.add_launch(1, &one);
    mine.add_launch(2, &two);
    write(&one, 1);
    mine.check_launches(|stream| stream == 2);
    assert_eq!(told(mine.report_fault()), None);
    assert!(two.ran_without_fault() && !one.ran_without_fault());
    mine.check_launches(|stream| stream == 1);
    assert_eq!(told(mine.report_fault()), Some(1));
}

#[test]
fn one_report_covers_the_faults_found_by_then() {
    let free = words();
    let mine = LaunchLedger::default();
    let cells = [cell(&free, false), cell(&free, false)];
    cells.iter().for_each(|cell| mine.add_launch(0, cell));
    write(&cells[0], 1);
    write(&cells[1], 2);
    mine.check_launches(|_| true);
    assert_eq!((told(mine.report_fault()), told(mine.report_fault())), (Some(1), None));
    // Learnt by reading the array: no second report.
    let third = cell(&free, false);
    mine.add_launch(0, &third);
    write(&third, 3);
    assert!(third.find_fault().is_some());
    mine.remove_reported(&third);
    mine.check_launches(|_| true);
    assert_eq!(told(mine.report_fault()), None);
}

#[test]
fn faults_of_threads_that_ended_are_kept() {
    let (faults, free) = (Faults::default(), words());
    let (alive, ended) = (faults.register_ledger(), faults.register_ledger());
    let bad = cell(&free, false);
    ended.add_launch(0, &bad);
    assert!(faults.of_ended_threads().is_empty());
    drop(ended);
    drop(faults.register_ledger()); // leaves an empty ledger, which the next one removes
    let _next = faults.register_ledger();
    write(&bad, 8);
    drop(bad);
    let abandoned = faults.of_ended_threads();
    abandoned.iter().for_each(|ledger| ledger.check_launches(|_| true));
    assert_eq!(abandoned.iter().filter_map(|ledger| told(ledger.report_fault())).collect::<Vec<_>>(), [8]);
    assert_eq!(told(alive.report_fault()), None);
    drop(abandoned);
    let _last = faults.register_ledger();
    assert_eq!(lock(&faults.ledgers).len(), 3, "those of three threads that go on");
}

#[test]
fn a_graph_is_sound_again_after_its_next_launch() {
    let free = words();
    let (mine, graph, input) = (LaunchLedger::default(), cell(&free, true), cell(&free, false));
    let output = LaunchDependencies::default();
    output.add_cells(from_ref(&graph));
    assert_eq!(graph.prepare_relaunch(FaultCells::new()), None);
    mine.add_launch(0, &graph);
    assert_eq!(found(&output), None);
    assert!(!output.is_empty(), "the next launch may fault");
    write(&graph, 4);
    assert_eq!(found(&output), Some(4));
    mine.check_launches(|_| true);
    assert_eq!(told(mine.report_fault()), Some(4));
    assert_eq!(graph.prepare_relaunch(FaultCells::new()), None, "told before");
    assert_eq!(found(&output), None);
    // No wait covers the first launch, so the next launch reports its fault.
    write(&graph, 5);
    assert_eq!(graph.prepare_relaunch(FaultCells::new()).map(|fault| fault.value), Some(5));
    // Inputs that depend on a fault, and a graph that reads its own output.
    write(&input, 6);
    assert_eq!(graph.prepare_relaunch([input.clone(), graph.clone()].into_iter().collect()), None);
    assert_eq!(found(&output), Some(6));
    assert_eq!(graph.prepare_relaunch(FaultCells::new()), None);
    assert_eq!(found(&output), None);
}

#[test]
fn copies_replace_what_they_overwrite() {
    let free = words();
    let (bad, good) = (cell(&free, false), cell(&free, false));
    let (from, to) = (LaunchDependencies::default(), LaunchDependencies::default());
    from.add_cells(from_ref(&bad));
    write(&bad, 3);
    to.add_cells(&[good]);
    let mut cells = FaultCells::new();
    from.merge_into(&mut cells);
    to.add_cells(&cells);
    assert_eq!(found(&to), Some(3));
    to.replace_cells(FaultCells::new());
    assert_eq!(found(&to), None);
}

#[test]
fn words_come_back_cleared() {
    let free = words();
    let cells: Vec<_> = (0..4).map(|_| cell(&free, false)).collect();
    cells.iter().for_each(|cell| write(cell, 1));
    assert!(free.take_word(|| Err(CudaError::Invalid("no".into()))).is_err());
    drop(cells);
    let again: Vec<_> = (0..4).map(|_| cell(&free, false)).collect();
    assert!(again.iter().all(|cell| cell.find_fault().is_none()));
}
