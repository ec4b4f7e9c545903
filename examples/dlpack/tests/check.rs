//! Runs `check.py` on the library of this example, with a Python that has NumPy.

use std::path::PathBuf;
use std::process::Command;

/// Returns a Python interpreter that has NumPy with DLPack 1.x: `CUPRUM_PYTHON`, or `python3`.
fn python() -> Option<String> {
    let candidates = std::env::var("CUPRUM_PYTHON").into_iter().chain(["python3".to_owned()]);
    let has_numpy = |python: &String| {
        let test = "import numpy, sys; sys.exit(tuple(map(int, numpy.__version__.split('.')[:2])) < (2, 1))";
        Command::new(python).args(["-c", test]).output().is_ok_and(|output| output.status.success())
    };
    candidates.into_iter().find(has_numpy)
}

#[test]
fn python_exchanges_arrays_through_the_c_interface() {
    let Some(python) = python() else {
        return println!("skipped: no python3 with NumPy 2.1 or later; CUPRUM_PYTHON names one");
    };
    let folder = std::env::current_exe().expect("the path of this program").parent().expect("a folder").to_owned();
    let library = folder.join("libcuprum_example_dlpack.so");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("check.py");
    let output = Command::new(python).arg(script).arg(library).env("CUPRUM_DLPACK_REQUIRE", "numpy").output().expect("a process");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    assert!(output.status.success() && text.contains("ok       NumPy"), "{text}");
}
