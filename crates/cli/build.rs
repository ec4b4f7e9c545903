//! Makes the command smaller by options of the linker:
//!
//! - The linker merges functions with identical code, such as instances of a generic function that differ only in their types.
//! - The linker omits the tables for unwinding, since a panic ends the command (`panic = "abort"`). Backtraces are then empty.
//!
//! `lld`, which rustc uses by default on x86-64 Linux, has these options. An option that the linker does not know is left out.

use std::env::var_os;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const MERGE_FUNCTIONS_OPTION: &str = "-Wl,--icf=all";
/// Linker script that omits the tables for unwinding.
const WITHOUT_UNWIND_TABLES: &str =
    "SECTIONS { /DISCARD/ : { *(.eh_frame .eh_frame.* .gcc_except_table .gcc_except_table.*) } } INSERT AFTER .text;\n";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Only release builds use the options. Debug builds save the time that the options take, and their tests need unwinding.
    if var_os("PROFILE").is_none_or(|profile| profile != "release") {
        return;
    }
    add_supported_linker_options(&[MERGE_FUNCTIONS_OPTION.to_owned()]);
    println!("cargo::rerun-if-env-changed=CARGO_PROFILE_RELEASE_PANIC");
    let unwinds = var_os("CARGO_PROFILE_RELEASE_PANIC").is_some_and(|strategy| strategy == "unwind");
    if !unwinds && var_os("CARGO_CFG_TARGET_OS").is_some_and(|os| os == "linux") {
        let Some(script) = var_os("OUT_DIR").map(|folder| Path::new(&folder).join("without_unwind_tables.ld")) else { return };
        if fs::write(&script, WITHOUT_UNWIND_TABLES).is_ok() {
            add_supported_linker_options(&[format!("-Wl,-T,{}", script.display()), "-Wl,--no-eh-frame-hdr".to_owned()]);
        }
    }
}

/// Links the command with the options if the linker knows all of them.
fn add_supported_linker_options(options: &[String]) {
    if linker_accepts(options).unwrap_or(false) {
        options.iter().for_each(|option| println!("cargo::rustc-link-arg-bins={option}"));
    }
}

/// Returns whether an empty program links with the options, or `None` if the attempt is not possible.
fn linker_accepts(options: &[String]) -> Option<bool> {
    let (rustc, target, folder) = (var_os("RUSTC")?, var_os("TARGET")?, var_os("OUT_DIR")?);
    let source = Path::new(&folder).join("empty.rs");
    fs::write(&source, "fn main() {}").ok()?;
    let mut link = Command::new(rustc);
    link.args(["--crate-type=bin", "--edition=2024", "-C", "panic=abort"]).arg("--target").arg(target);
    for option in options {
        link.arg("-C").arg(format!("link-arg={option}"));
    }
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
