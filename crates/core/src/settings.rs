//! Settings: environment variables, read once, and setters that share their parsers.

pub mod mesh;
pub mod precision;
pub mod reproducible_sums;

pub use crate::dispatch::compile_mode;

use std::ffi::OsString;
use std::num::IntErrorKind;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// Action when no accelerator of a device accepts a call (`CUPRUM_HOST_FALLBACK`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostFallback {
    /// Returns [`Error::Unsupported`]. The default.
    Error,
    /// Computes on the host, copies the result back, and logs a warning.
    Warn,
    /// Computes on the host and copies the result back.
    Allow,
}

/// Action when the kernel of a call is not compiled yet and another accelerator gives the same result (`CUPRUM_COMPILE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompileMode {
    /// Compiles the kernel, then runs it.
    Wait,
    /// Runs the call on another accelerator, and compiles the kernel on a background thread for later calls.
    Background,
}

/// Highest instruction set that CPU kernels use (`CUPRUM_SIMD`). Only x86-64 processors have more than the baseline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SimdLimit {
    /// The minimum instruction set of the compilation target.
    Baseline,
    /// AVX2.
    Avx2,
    /// AVX-512.
    Avx512,
}

/// An environment variable and its value, for `cuprum info`.
#[derive(Clone, Debug)]
pub struct EnvironmentVariable {
    /// The environment variable.
    pub variable: &'static str,
    /// The value, if set.
    pub value: Option<String>,
    /// Description of the default.
    pub default: &'static str,
}

/// Every environment variable with a description of its default.
const ALL_VARIABLES: [(&str, &str); 24] = [
    ("CUPRUM_DEVICE", "auto"),
    (ACCELERATORS_VARIABLE, "every ready one, by rank"),
    ("CUPRUM_FUSION", "1"),
    ("CUPRUM_MATMUL_PRECISION", "float32"),
    ("CUPRUM_REPRODUCIBLE_SUMS", "1"),
    ("CUPRUM_NUM_THREADS", "all cores"),
    ("CUPRUM_SIMD", "the processor's best"),
    ("CUPRUM_GPU_MEMORY_LIMIT", "none"),
    ("CUPRUM_CPU_MEMORY_LIMIT", "none"),
    ("CUPRUM_GPU_MEMORY_POOL", "1"),
    ("CUPRUM_CACHE_DIR", "the user's cache folder"),
    ("CUPRUM_TUNING", "a file in the cache folder"),
    ("CUPRUM_COMPILE", "wait under a named order, else background"),
    ("CUPRUM_HOST_FALLBACK", "error"),
    (mesh::ADDRESS_VARIABLE, "MASTER_ADDR and MASTER_PORT"),
    (mesh::SECRET_VARIABLE, "none"),
    (mesh::TIMEOUT_VARIABLE, "60"),
    (mesh::ENGINE_VARIABLE, "auto"),
    ("CUPRUM_TRACE", "none"),
    ("CUPRUM_CUDA_PATH", "none"),
    ("CUPRUM_CCCL_PATH", "none"),
    ("CUPRUM_CUTENSOR_PATH", "none"),
    ("CUPRUM_DUMP_SOURCE", "none"),
    ("CUPRUM_LOG", "warn"),
];

/// Name of the environment variable for the accelerator order. No other variable has a meaning if its value is empty: an empty order leaves
/// only the base accelerators of the devices, which serve every operation.
pub(crate) const ACCELERATORS_VARIABLE: &str = "CUPRUM_ACCELERATORS";

/// Returns every environment variable that cuprum reads, with its value in this process. The value of a secret is replaced by `(hidden)`.
pub fn variables() -> Vec<EnvironmentVariable> {
    let text = |variable, value: OsString| {
        if variable == mesh::SECRET_VARIABLE { "(hidden)".into() } else { value.to_string_lossy().into_owned() }
    };
    let value = |variable| std::env::var_os(variable).map(|v| text(variable, v));
    ALL_VARIABLES.iter().map(|&(variable, default)| EnvironmentVariable { variable, value: value(variable), default }).collect()
}

/// Returns the trimmed value of a variable, or `None` if it is not set.
///
/// # Errors
/// [`Error::Setting`] if the value is not UTF-8.
pub(crate) fn read_variable(variable: &'static str) -> Result<Option<String>> {
    match std::env::var_os(variable).map(std::ffi::OsString::into_string) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text.trim().to_string())),
        Some(Err(bytes)) => Err(Error::Setting { variable, message: format!("{bytes:?} is not UTF-8") }),
    }
}

/// Returns the trimmed value of a variable; `None` if it is not set or blank. A value that is not UTF-8 counts as not set too, and
/// [`check`] reports it.
pub fn env(variable: &'static str) -> Option<String> {
    read_variable(variable).ok().flatten().filter(|text| !text.is_empty())
}

/// Returns the folder of compiled kernels and tuning results: `CUPRUM_CACHE_DIR`, else `cuprum` in the user's cache folder.
///
/// `None` if the user has no home directory.
pub fn cache_folder() -> Option<PathBuf> {
    match env("CUPRUM_CACHE_DIR") {
        Some(folder) => Some(folder.into()),
        None => directories::BaseDirs::new().map(|dirs| dirs.cache_dir().join("cuprum")),
    }
}

/// Parses a switch: `1`, `on`, `true`, `yes` or `0`, `off`, `false`, `no`, in any case.
///
/// # Errors
/// [`Error::Setting`] for any other text.
pub fn parse_switch(variable: &'static str, text: &str) -> Result<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "on" | "true" | "yes" => Ok(true),
        "0" | "off" | "false" | "no" => Ok(false),
        other => Err(Error::Setting { variable, message: format!("'{other}' is not a switch; use 1 or 0") }),
    }
}

/// Parses a memory limit: bytes with an optional unit `K`, `M`, `G` or `T` (powers of 1024, also `GB`, `GiB`), or a percentage of
/// `total`. `none` and the empty text return `None`.
///
/// # Errors
/// [`Error::Setting`] for any other text, or for a percentage if `total` is 0.
pub fn parse_memory_limit(variable: &'static str, text: &str, total: usize) -> Result<Option<usize>> {
    let bad =
        || Error::Setting { variable, message: format!("'{text}' is not a memory limit; use bytes, 512M, 8G, or a share such as 80%") };
    let upper = text.trim().to_ascii_uppercase();
    if upper.is_empty() || upper == "NONE" {
        return Ok(None);
    }
    let end = upper.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(upper.len());
    let (number, unit) = upper.split_at(end);
    let number: f64 = number.parse().map_err(|_| bad())?;
    let scale = match unit.trim() {
        "" | "B" => 1.0,
        "K" | "KB" | "KIB" => 2f64.powi(10),
        "M" | "MB" | "MIB" => 2f64.powi(20),
        "G" | "GB" | "GIB" => 2f64.powi(30),
        "T" | "TB" | "TIB" => 2f64.powi(40),
        "%" if number <= 100.0 && total == 0 => {
            let message = format!("'{text}' is a share of a memory whose size this system does not report; use bytes, 512M or 8G");
            return Err(Error::Setting { variable, message });
        }
        "%" if number <= 100.0 => total as f64 / 100.0,
        _ => return Err(bad()),
    };
    let bytes = number * scale;
    if bytes < usize::MAX as f64 { Ok(Some(bytes as usize)) } else { Err(bad()) }
}

/// Returns the comma-separated names in `text`, trimmed and in lower case. Empty names are dropped.
pub fn parse_names(text: &str) -> Vec<String> {
    text.split(',').map(|n| n.trim().to_ascii_lowercase()).filter(|n| !n.is_empty()).collect()
}

/// Returns the value of `CUPRUM_HOST_FALLBACK`.
///
/// # Errors
/// [`Error::Setting`] for an unknown value.
pub fn host_fallback() -> Result<HostFallback> {
    static PARSED_HOST_FALLBACK: OnceLock<Result<HostFallback>> = OnceLock::new();
    PARSED_HOST_FALLBACK
        .get_or_init(|| {
            let variable = "CUPRUM_HOST_FALLBACK";
            match env(variable).unwrap_or_default().to_ascii_lowercase().as_str() {
                "" | "error" => Ok(HostFallback::Error),
                "warn" => Ok(HostFallback::Warn),
                "allow" => Ok(HostFallback::Allow),
                other => Err(Error::Setting { variable, message: format!("'{other}' is not known; use error, warn or allow") }),
            }
        })
        .clone()
}

/// Returns the value of `CUPRUM_COMPILE`, if it is set.
pub(crate) fn compile_mode_variable() -> Result<Option<CompileMode>> {
    static PARSED_COMPILE_MODE: OnceLock<Result<Option<CompileMode>>> = OnceLock::new();
    let parse = || match env("CUPRUM_COMPILE").unwrap_or_default().to_ascii_lowercase().as_str() {
        "" => Ok(None),
        "wait" => Ok(Some(CompileMode::Wait)),
        "background" => Ok(Some(CompileMode::Background)),
        other => Err(Error::Setting { variable: "CUPRUM_COMPILE", message: format!("'{other}' is not known; use wait or background") }),
    };
    PARSED_COMPILE_MODE.get_or_init(parse).clone()
}

/// Returns the value of `CUPRUM_SIMD`; `None` if it is not set.
///
/// # Errors
/// [`Error::Setting`] for an unknown value.
pub fn simd_limit() -> Result<Option<SimdLimit>> {
    let variable = "CUPRUM_SIMD";
    match env(variable).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" => Ok(None),
        "baseline" => Ok(Some(SimdLimit::Baseline)),
        "avx2" => Ok(Some(SimdLimit::Avx2)),
        "avx512" => Ok(Some(SimdLimit::Avx512)),
        other => Err(Error::Setting { variable, message: format!("'{other}' is not known; use baseline, avx2 or avx512") }),
    }
}

/// Maximum number of threads of a pool. Starting more threads takes longer than the work that they would share.
pub const MAX_POOL_THREADS: usize = 1024;

/// Returns the value of `CUPRUM_NUM_THREADS`, limited to [`MAX_POOL_THREADS`]; `None` if it is not set.
///
/// # Errors
/// [`Error::Setting`] if the value is not a positive integer.
pub fn num_threads() -> Result<Option<usize>> {
    let variable = "CUPRUM_NUM_THREADS";
    match env(variable) {
        None => Ok(None),
        Some(v) => match v.parse::<usize>() {
            Ok(n) if n > 0 => Ok(Some(n.min(MAX_POOL_THREADS))),
            Err(e) if *e.kind() == IntErrorKind::PosOverflow => Ok(Some(MAX_POOL_THREADS)),
            _ => Err(Error::Setting { variable, message: format!("'{v}' is not a number of threads; use 1 to {MAX_POOL_THREADS}") }),
        },
    }
}

/// The limit of host memory in bytes. The value is `usize::MAX` if there is no limit, and [`CPU_MEMORY_LIMIT_UNREAD`] until the environment
/// variable `CUPRUM_CPU_MEMORY_LIMIT` is read.
static CPU_MEMORY_LIMIT: AtomicUsize = AtomicUsize::new(CPU_MEMORY_LIMIT_UNREAD);
const CPU_MEMORY_LIMIT_UNREAD: usize = usize::MAX - 1;

/// Returns the limit of host memory in bytes: the value of [`Device::set_memory_limit`](crate::Device::set_memory_limit), else of
/// `CUPRUM_CPU_MEMORY_LIMIT`.
///
/// A percentage is of physical memory. An invalid value counts as no limit; [`check`] and every allocation report it.
pub fn cpu_memory_limit() -> Option<usize> {
    checked_cpu_memory_limit().unwrap_or(None)
}

/// Returns the limit of host memory as [`cpu_memory_limit`] does. The first call checks the variables.
///
/// # Errors
/// [`Error::Setting`] for any invalid variable. Every variable is checked here, because most programs allocate host memory before
/// they use anything else.
#[inline]
pub(crate) fn checked_cpu_memory_limit() -> Result<Option<usize>> {
    match CPU_MEMORY_LIMIT.load(Ordering::Relaxed) {
        CPU_MEMORY_LIMIT_UNREAD => read_cpu_memory_limit_once(),
        code => Ok(decode_cpu_memory_limit(code)),
    }
}

#[cold]
fn read_cpu_memory_limit_once() -> Result<Option<usize>> {
    check_once_without_devices()?;
    let code = encode_cpu_memory_limit(parse_cpu_memory_limit_variable()?);
    // If another thread has set a memory limit in the meantime, that limit is kept.
    let stored = CPU_MEMORY_LIMIT.compare_exchange(CPU_MEMORY_LIMIT_UNREAD, code, Ordering::Relaxed, Ordering::Relaxed);
    Ok(decode_cpu_memory_limit(stored.map_or_else(|earlier| earlier, |_| code)))
}

pub(crate) fn set_cpu_memory_limit(limit: Option<usize>) {
    CPU_MEMORY_LIMIT.store(encode_cpu_memory_limit(limit), Ordering::Relaxed);
}

/// Returns the value of [`CPU_MEMORY_LIMIT`] for `limit`.
fn encode_cpu_memory_limit(limit: Option<usize>) -> usize {
    limit.map_or(usize::MAX, |l| l.min(CPU_MEMORY_LIMIT_UNREAD - 1))
}

/// Returns the limit that the value `code` of [`CPU_MEMORY_LIMIT`] stands for.
#[inline]
fn decode_cpu_memory_limit(code: usize) -> Option<usize> {
    (code != usize::MAX).then_some(code)
}

fn parse_cpu_memory_limit_variable() -> Result<Option<usize>> {
    let variable = "CUPRUM_CPU_MEMORY_LIMIT";
    env(variable).map_or(Ok(None), |v| parse_memory_limit(variable, &v, physical_memory()))
}

/// Returns the size of physical memory in bytes; 0 if the system does not report it.
pub fn physical_memory() -> usize {
    if cfg!(miri) {
        return 0; // miri does not support the system calls
    }
    let memory = sysinfo::MemoryRefreshKind::nothing().with_ram();
    let system = sysinfo::System::new_with_specifics(sysinfo::RefreshKind::nothing().with_memory(memory));
    usize::try_from(system.total_memory()).unwrap_or(usize::MAX)
}

/// Whether elementwise operations are fused in this process: 0 before `CUPRUM_FUSION` is read, 1 off, 2 on.
static PROCESS_FUSION: AtomicU8 = AtomicU8::new(0);

/// Returns whether elementwise operations are fused in this process: the value of [`set_fusion`], else of `CUPRUM_FUSION`, else true.
#[inline]
pub(crate) fn is_process_fusion_enabled() -> bool {
    match PROCESS_FUSION.load(Ordering::Relaxed) {
        0 => read_fusion_variable(),
        state => state == 2,
    }
}

/// Reads `CUPRUM_FUSION` and stores its value, unless another thread has called [`set_fusion`] meanwhile. Returns the stored value.
#[cold]
fn read_fusion_variable() -> bool {
    let on = env("CUPRUM_FUSION").is_none_or(|v| parse_switch("CUPRUM_FUSION", &v).unwrap_or(true));
    PROCESS_FUSION.compare_exchange(0, 1 + on as u8, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|earlier| earlier == 2, |_| on)
}

/// Enables or disables the fusion of elementwise operations for the process.
pub fn set_fusion(on: bool) {
    PROCESS_FUSION.store(1 + on as u8, Ordering::Relaxed);
}

/// The check of an environment variable that another module reads. That module registers it for [`check`].
pub(crate) struct SettingCheck {
    /// Name of the environment variable.
    pub variable: &'static str,
    /// Whether the check opens devices or accelerators. Such checks do not run in [`check_once_without_devices`], so an invalid value is
    /// reported when devices or accelerators are first used.
    pub needs_devices: bool,
    /// Checks the environment variable, and returns an error if its value is invalid.
    pub run: fn() -> Result<()>,
}
inventory::collect!(SettingCheck);

/// Checks every variable, so that a program can reject invalid settings at startup.
///
/// Without this call, the first array or device of the process returns the error.
///
/// # Errors
/// [`Error::Setting`] for the first invalid value.
pub fn check() -> Result<()> {
    check_once_without_devices()?;
    run_setting_checks(true)
}

/// Checks the variables whose values need no device, once per process. The first use of host memory and the opening of a device run this
/// check.
///
/// # Errors
/// [`Error::Setting`] for the first invalid value.
pub(crate) fn check_once_without_devices() -> Result<()> {
    static SETTINGS_CHECK_RESULT: OnceLock<Result<()>> = OnceLock::new();
    SETTINGS_CHECK_RESULT.get_or_init(check_variable_values).clone()
}

fn check_variable_values() -> Result<()> {
    ALL_VARIABLES.iter().try_for_each(|(variable, _)| read_variable(variable).map(|_| ()))?;
    host_fallback()?;
    compile_mode_variable()?;
    num_threads()?;
    simd_limit()?;
    parse_cpu_memory_limit_variable()?;
    if let Some(v) = env("CUPRUM_FUSION") {
        parse_switch("CUPRUM_FUSION", &v)?;
    }
    if let Some(v) = env("CUPRUM_GPU_MEMORY_POOL") {
        parse_switch("CUPRUM_GPU_MEMORY_POOL", &v)?;
    }
    if let Some(v) = env("CUPRUM_GPU_MEMORY_LIMIT") {
        parse_memory_limit("CUPRUM_GPU_MEMORY_LIMIT", &v, 1 << 40)?;
    }
    for variable in ["CUPRUM_CUDA_PATH", "CUPRUM_CCCL_PATH", "CUPRUM_CUTENSOR_PATH"] {
        check_folders_are_absolute(variable)?;
    }
    run_setting_checks(false)
}

/// Returns an error if a list of folders has a relative folder, whose meaning would depend on the working directory.
fn check_folders_are_absolute(variable: &'static str) -> Result<()> {
    let Some(text) = env(variable) else { return Ok(()) };
    match std::env::split_paths(&text).find(|folder| !folder.is_absolute()) {
        Some(relative) => {
            Err(Error::Setting { variable, message: format!("'{}' is not an absolute folder; give absolute paths", relative.display()) })
        }
        None => Ok(()),
    }
}

/// Runs the submitted checks that need devices if `needs_devices`, and the submitted checks that need no device otherwise.
fn run_setting_checks(needs_devices: bool) -> Result<()> {
    let mut checks: Vec<&SettingCheck> = inventory::iter::<SettingCheck>().filter(|check| check.needs_devices == needs_devices).collect();
    checks.sort_by_key(|check| check.variable);
    checks.into_iter().try_for_each(|check| (check.run)())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn physical_memory_matches_proc_meminfo() {
        let total = physical_memory();
        assert!(total >= 64 << 20, "{total} bytes");
        if let Ok(text) = std::fs::read_to_string("/proc/meminfo") {
            let kib = text.lines().find_map(|l| l.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<usize>().ok());
            assert_eq!(kib.map(|kib| kib * 1024), Some(total));
        }
    }

    #[test]
    fn reading_the_variables_keeps_values_that_are_set() {
        // Another thread may set a value between the test for an unset value and the reading of the variable.
        set_cpu_memory_limit(Some(1 << 50));
        assert_eq!(read_cpu_memory_limit_once().unwrap(), Some(1 << 50));
        set_cpu_memory_limit(None);
        assert_eq!((read_cpu_memory_limit_once().unwrap(), cpu_memory_limit()), (None, None));
    }

    #[test]
    fn parses_memory_limits() {
        let parse = |text| parse_memory_limit("X", text, 1000);
        let good = [("1024", 1024), ("2GiB", 2 << 30), ("1.5 gb", 3 << 29), ("512M", 512 << 20), ("50%", 500), (" 12.5 % ", 125)];
        good.iter().for_each(|&(text, bytes)| assert_eq!(parse(text).unwrap(), Some(bytes), "{text}"));
        assert!(parse("").unwrap().is_none() && parse("none").unwrap().is_none());
        for bad in ["lots", "99999999999999999999T", "-1", "101%", "5 apples", "1e9x", "..", "%"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let unknown = parse_memory_limit("X", "50%", 0).unwrap_err().to_string();
        assert!(unknown.contains("'50%' is a share of a memory whose size this system does not report; use bytes"), "{unknown}");
        assert!(parse_memory_limit("X", "101%", 0).unwrap_err().to_string().contains("is not a memory limit"));
        assert_eq!(parse_names(" CUB, ,cuTENSOR"), ["cub", "cutensor"]);
    }
}
