//! Processes: one that ends while it writes, several that share a cache, and threads that cannot be started.

use std::path::Path;
use std::process::Command;

use cuprum::backend_cpu::with_threads;
use cuprum::core::fault_injection::{CountingScope, FailurePoint, count_operations, with_failure, with_process_abort};
use cuprum::{Error, io};

use crate::exclusive;

/// The variable by which a test starts its own executable again: the task, a colon, its arguments.
const TASK: &str = "CUPRUM_TEST_TASK";

fn file(folder: &Path) -> std::path::PathBuf {
    folder.join("a.npz")
}

fn write(folder: &Path, value: f64) -> cuprum::Result<()> {
    let a = cuprum::full([200, 300], value, cuprum::DType::F64)?;
    io::save_npz(file(folder), &[("a", &a), ("b", &a)])
}

fn start(task: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    // The test below is the entry of the other process.
    command.args(["--exact", "processes::other_process", "--nocapture"]).env(TASK, task).current_dir(folder);
    command
}

/// The entry of the processes that the other tests of this file start. Without a task it does nothing.
#[test]
fn other_process() {
    let Ok(task) = std::env::var(TASK) else { return };
    let folder = std::env::current_dir().unwrap();
    let (name, argument) = task.split_once(':').unwrap();
    match name {
        "abort-write" => with_process_abort(FailurePoint::FileWrite, argument.parse().unwrap(), || write(&folder, 2.0)).unwrap(),
        "abort-rename" => with_process_abort(FailurePoint::Rename, argument.parse().unwrap(), || write(&folder, 2.0)).unwrap(),
        "write-often" => {
            for _ in 0..200 {
                write(&folder, argument.parse().unwrap()).unwrap();
            }
        }
        other => panic!("unknown task {other}"),
    }
}

/// Returns the value in the file of [`write`], whose arrays must be whole.
fn value(folder: &Path) -> f64 {
    let arrays = io::load_npz(file(folder)).unwrap();
    assert_eq!(arrays.len(), 2);
    let all: Vec<f64> = arrays.iter().flat_map(|(_, array)| array.to_vec::<f64>().unwrap()).collect();
    assert!(all.len() == 120_000 && all.iter().all(|x| *x == all[0]), "a mixed file");
    all[0]
}

#[test]
fn a_process_that_ends_while_it_writes_leaves_the_old_file() {
    let _exclusive = exclusive();
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 1.0).unwrap();
    let (_, writes) = count_operations(CountingScope::Process, FailurePoint::FileWrite, || write(folder.path(), 1.0).unwrap());
    assert!(writes > 3, "{writes} writes");
    for n in 0..writes {
        let status = start(&format!("abort-write:{n}"), folder.path()).output().unwrap().status;
        assert!(!status.success(), "write {n}: the process did not end");
        assert_eq!(value(folder.path()), 1.0);
        // On Linux the file has no name while it is written.
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        assert!(files == 1 || !cfg!(target_os = "linux"), "write {n}: {files} files");
    }
    // Before the rename the file is complete and has a temporary name.
    assert!(!start("abort-rename:0", folder.path()).output().unwrap().status.success());
    assert_eq!(value(folder.path()), 1.0);
    write(folder.path(), 3.0).unwrap();
    assert_eq!(value(folder.path()), 3.0);
}

#[test]
fn processes_that_write_one_file_leave_a_whole_one() {
    let _exclusive = exclusive();
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 1.0).unwrap();
    let mut writers: Vec<_> = ["1", "2"].map(|v| start(&format!("write-often:{v}"), folder.path()).spawn().unwrap()).into();
    let mut reads = 0;
    while writers.iter_mut().any(|writer| writer.try_wait().unwrap().is_none()) {
        let seen = value(folder.path());
        assert!(seen == 1.0 || seen == 2.0);
        reads += 1;
    }
    assert!(reads > 0 && writers.iter_mut().all(|writer| writer.wait().unwrap().success()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn threads_that_cannot_be_started_are_an_error() {
    let _exclusive = exclusive();
    // Each number of threads has a pool of its own, which is kept: 7 is used nowhere else in this process.
    let sum = || with_threads(7, || cuprum::ones([300, 300], cuprum::DType::F64).and_then(|a| a.sum(())?.item_as::<f64>()));
    let (result, failed) = with_failure(FailurePoint::Thread, 0, sum);
    assert!(failed && matches!(&result, Err(Error::Backend { accelerator: "cpu", .. })), "{result:?}");
    assert_eq!(sum().unwrap().unwrap(), 90_000.0);
    let (result, failed) = with_failure(FailurePoint::Thread, 0, sum);
    assert!(!failed && result.unwrap().unwrap() == 90_000.0, "the pool is kept");
}
