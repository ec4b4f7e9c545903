//! Lets the linker fold functions with identical code, where it can. `lld`, which rustc uses by default on x86-64 Linux, does; GNU `ld` does
//! not know the option. The command shrinks by the many instances of generic functions that differ in their types alone.

use std::env::var_os;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const FOLD: &str = "-Wl,--icf=all";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Folding takes time that debug builds do not need to spend.
    if var_os("PROFILE").is_some_and(|profile| profile == "release") && linker_folds().unwrap_or(false) {
        println!("cargo::rustc-link-arg-bins={FOLD}");
    }
}

/// Returns whether an empty program links with the option. `None` if that cannot be tried.
fn linker_folds() -> Option<bool> {
    let (rustc, target, folder) = (var_os("RUSTC")?, var_os("TARGET")?, var_os("OUT_DIR")?);
    let source = Path::new(&folder).join("empty.rs");
    fs::write(&source, "fn main() {}").ok()?;
    let mut link = Command::new(rustc);
    link.args(["--crate-type=bin", "--edition=2024", "-C", &format!("link-arg={FOLD}")]).arg("--target").arg(target);
    if let Some(linker) = var_os("RUSTC_LINKER") {
        let mut option = OsString::from("linker=");
        option.push(linker);
        link.arg("-C").arg(option);
    }
    if let Some(flags) = var_os("CARGO_ENCODED_RUSTFLAGS").and_then(|flags| flags.into_string().ok()) {
        link.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    }
    link.arg("-o").arg(Path::new(&folder).join("empty")).arg(source);
    let status = link.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    Some(status.success())
}
