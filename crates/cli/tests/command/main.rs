//! Tests of the `cuprum` binary: output, files, failures and exit codes.
#![allow(clippy::unwrap_used)]

mod bad_input;
mod eval;
mod info_bench_tour;
mod limits;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use cuprum::{DType, NdArray, io};

/// A temporary folder with the input files of the tests.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        let a = NdArray::from_vec([3.0f64, 4.0, 6.0, 8.0], [2, 2]).unwrap();
        let n = NdArray::from_slice(&[1i64, 2, 3]).unwrap();
        io::save(folder.path("a.npy"), &a).unwrap();
        io::save_npz(folder.path("one.npz"), &[("only", &n)]).unwrap();
        io::save_npz(folder.path("all.npz"), &[("a", &a), ("n", &n)]).unwrap();
        io::save_npz(folder.path("none.npz"), &[]).unwrap();
        let whole = std::fs::read(folder.path("a.npy")).unwrap();
        std::fs::write(folder.path("cut.npy"), &whole[..whole.len() - 5]).unwrap();
        std::fs::write(folder.path("text.npy"), "not an array").unwrap();
        std::fs::write(folder.path("data.csv"), "x,y\n1,2\n3,\n").unwrap();
        std::fs::write(folder.path("words.csv"), "1,2\n3,b\n").unwrap();
        std::fs::write(folder.path("noise.bin"), [1, 0, 2]).unwrap();
        std::fs::write(folder.path("latin.txt"), [b'x', b'=', 0xe9]).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns the names of files that the command under test created.
    fn new_files(&self) -> Vec<String> {
        let known = ["a.npy", "one.npz", "all.npz", "none.npz", "cut.npy", "text.npy", "data.csv", "words.csv", "noise.bin", "latin.txt"];
        let names = std::fs::read_dir(self.0.path()).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|n| !known.contains(&n.as_str())).collect()
    }
}

/// Returns the `cuprum` command with `folder` as working directory and without inherited `CUPRUM_*` settings.
fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuprum"));
    command.current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CUPRUM_")) {
        command.env_remove(name);
    }
    command.env("CUPRUM_DEVICE", "cpu");
    command
}

fn run(folder: &Folder, arguments: &[&str]) -> Output {
    command(folder.0.path()).args(arguments).output().unwrap()
}

/// Runs `cuprum` with the arguments, checks that it succeeds, and returns its standard output.
fn succeed(folder: &Folder, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn load(path: PathBuf) -> Vec<f64> {
    io::load(path).unwrap().astype(DType::F64).unwrap().to_vec().unwrap()
}
