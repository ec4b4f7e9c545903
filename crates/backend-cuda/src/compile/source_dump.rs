//! Writes the source of every compiled kernel to a folder, if `CUPRUM_DUMP_SOURCE` names one.
//!
//! Each program writes two files. `name-key.cu` has the source, then the in-memory headers within `#if 0`. These headers contain user code.
//! `name-key.log` has the cache key, architecture, options, origin of the code, and the compiler's log. Programs whose code comes from the
//! cache are written too.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use cuprum_core::settings;

use crate::compile::disk_cache::CacheKey;
use crate::compile::nvrtc::{CompileRequest, CompiledCode};
use crate::error::CudaError;

/// The environment variable that names the folder to which the source of each compiled program is written.
pub const DUMP_FOLDER_VARIABLE: &str = "CUPRUM_DUMP_SOURCE";

/// Maximum number of characters of a program's name in file names.
const MAX_PROGRAM_NAME_CHARS: usize = 80;
const MAX_KEY_CHARS_IN_FILE_NAME: usize = 16;

/// The origin of a program's machine code, for the log file that [`dump_source`] writes.
pub enum CodeOrigin<'a> {
    /// The code comes from the disk cache.
    Cache,
    /// NVRTC compiled the code now: the result and the compile time.
    Compiled(&'a CompiledCode, Duration),
    /// NVRTC failed with this error.
    Failed(&'a CudaError),
}

/// Writes the source of `request` to the folder in [`DUMP_FOLDER_VARIABLE`], if the variable is set. A failure is only a warning.
pub fn dump_source(request: &CompileRequest, arch: u32, key: &CacheKey, origin: &CodeOrigin) {
    static DUMP_FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = || settings::env(DUMP_FOLDER_VARIABLE).map(PathBuf::from);
    let Some(folder) = DUMP_FOLDER.get_or_init(folder) else { return };
    if let Err(error) = write_dump_files(folder, request, arch, key, origin) {
        tracing::warn!(name = request.name, "{DUMP_FOLDER_VARIABLE}: {} cannot be written: {error}", folder.display());
    }
}

fn write_dump_files(folder: &Path, request: &CompileRequest, arch: u32, key: &CacheKey, origin: &CodeOrigin) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let stem = dump_file_stem(request.name, key);
    fs::write(folder.join(format!("{stem}.cu")), source_file_text(request))?;
    fs::write(folder.join(format!("{stem}.log")), log_file_text(request, arch, key, origin))
}

/// Returns the text of the `.cu` file: the source, then the headers, so that line numbers match compiler messages.
fn source_file_text(request: &CompileRequest) -> String {
    let headers = request.headers.iter().map(|(name, text)| format!("\n#if 0 // header {name}\n{text}\n#endif\n"));
    std::iter::once(request.source.to_owned()).chain(headers).collect()
}

/// Returns a file name without extension: `name`, with `_` in place of characters that file names may not allow, then the first characters
/// of `key`.
fn dump_file_stem(name: &str, key: &CacheKey) -> String {
    let name = name.strip_suffix(".cu").unwrap_or(name);
    let kept: String =
        name.chars().take(MAX_PROGRAM_NAME_CHARS).map(|c| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' }).collect();
    let key: String = key.to_string().chars().take(MAX_KEY_CHARS_IN_FILE_NAME).collect();
    format!("{kept}-{key}")
}

fn log_file_text(request: &CompileRequest, arch: u32, key: &CacheKey, origin: &CodeOrigin) -> String {
    let mut lines = vec![
        format!("name: {}", request.name),
        format!("key: {key}"),
        format!("architecture: sm_{arch}"),
        format!("options: {}", request.options.join(" ")),
    ];
    lines.extend(request.headers.iter().map(|(name, text)| format!("header: {name}, {} bytes", text.len())));
    lines.extend(request.name_expressions.iter().map(|e| format!("kernel: {e}")));
    match origin {
        CodeOrigin::Cache => lines.push("code: from the disk cache".into()),
        CodeOrigin::Compiled(made, time) => {
            let kind = if made.is_ptx { "PTX" } else { "cubin" };
            lines.push(format!("code: {kind} of {} bytes, compiled in {time:.1?}", made.code.len()));
            lines.push(if made.log.is_empty() { "log: nothing".into() } else { format!("log:\n{}", made.log) });
        }
        CodeOrigin::Failed(error) => lines.push(format!("failed: {error}")),
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_leaves_its_text_and_what_became_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let nested = folder.path().join("made").join("here");
        let headers = [("own.h", "#define N 3\n")];
        let request =
            CompileRequest { name: "a<b>/c.cu", source: "text", options: &["-x", "-y"], headers: &headers, name_expressions: &["k<int>"] };
        let key = CacheKey::from_hash_of_parts(&[b"all that shapes it"]);
        let made = CompiledCode { code: vec![0; 10], is_ptx: false, lowered_names: vec![], log: "k.cu(1): warning".into() };
        write_dump_files(&nested, &request, 90, &key, &CodeOrigin::Compiled(&made, Duration::from_millis(1500))).unwrap();
        let mut files: Vec<String> = fs::read_dir(&nested).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        let stem = format!("a_b__c-{}", &key.to_string()[..MAX_KEY_CHARS_IN_FILE_NAME]);
        assert_eq!(files, [format!("{stem}.cu"), format!("{stem}.log")]);
        assert_eq!(fs::read_to_string(nested.join(&files[0])).unwrap(), "text\n#if 0 // header own.h\n#define N 3\n\n#endif\n");
        let expected = format!(
            "name: a<b>/c.cu\nkey: {key}\narchitecture: sm_90\noptions: -x -y\nheader: own.h, 12 bytes\nkernel: k<int>\n\
             code: cubin of 10 bytes, compiled in 1.5s\nlog:\nk.cu(1): warning\n"
        );
        assert_eq!(fs::read_to_string(nested.join(&files[1])).unwrap(), expected);

        write_dump_files(&nested, &request, 90, &key, &CodeOrigin::Cache).unwrap();
        assert!(fs::read_to_string(nested.join(&files[1])).unwrap().ends_with("code: from the disk cache\n"));
        let error = CudaError::Compile { name: "k.cu".into(), log: "k.cu(2): error: what".into(), source_line: Some("2 | b".into()) };
        write_dump_files(&nested, &request, 90, &key, &CodeOrigin::Failed(&error)).unwrap();
        let failed = fs::read_to_string(nested.join(&files[1])).unwrap();
        assert!(failed.contains("failed: compiling k.cu failed at: 2 | b\nk.cu(2): error: what"), "{failed}");
    }

    #[test]
    fn a_folder_that_cannot_be_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let key = CacheKey::from_hash_of_parts(&[]);
        assert!(write_dump_files(&file.path().join("below"), &CompileRequest::default(), 90, &key, &CodeOrigin::Cache).is_err());
    }
}
