//! Lets the linker merge functions with identical code, such as instances of a generic function that differ only in their types. This makes
//! the command smaller. `lld`, which rustc uses by default on x86-64 Linux, has the option for this; GNU `ld` does not know it.

use std::env::var_os;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const MERGE_OPTION: &str = "-Wl,--icf=all";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Merging takes time that debug builds do not need to spend.
    if var_os("PROFILE").is_some_and(|profile| profile == "release") && linker_knows_option().unwrap_or(false) {
        println!("cargo::rustc-link-arg-bins={MERGE_OPTION}");
    }
}

/// Returns whether an empty program links with the option, or `None` if the attempt is not possible.
fn linker_knows_option() -> Option<bool> {
    let (rustc, target, folder) = (var_os("RUSTC")?, var_os("TARGET")?, var_os("OUT_DIR")?);
    let source = Path::new(&folder).join("empty.rs");
    fs::write(&source, "fn main() {}").ok()?;
    let mut link = Command::new(rustc);
    link.args(["--crate-type=bin", "--edition=2024", "-C", &format!("link-arg={MERGE_OPTION}")]).arg("--target").arg(target);
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
