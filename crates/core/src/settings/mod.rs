//! Settings: environment variables read once, and the setters that share their parsers.

pub mod precision;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// What to do when no accelerator of a device takes a call (`CUPRUM_HOST_FALLBACK`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostFallback {
    /// Return [`Error::Unsupported`]: the default.
    Error,
    /// Compute on the host, copy back, and log a warning.
    Warn,
    /// Compute on the host and copy back.
    Allow,
}

/// What a call does whose kernel is not compiled yet, where another accelerator gives the same result (`CUPRUM_COMPILE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compile {
    /// Compile it, then run.
    Wait,
    /// Go to the other, while a thread compiles for later calls.
    Background,
}

/// One setting as `cuprum info` shows it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The environment variable.
    pub variable: &'static str,
    /// Its value, if set.
    pub value: Option<String>,
    /// What holds when it is not set.
    pub default: &'static str,
}

/// Every variable, and what holds when it is not set.
const ALL: [(&str, &str); 18] = [
    ("CUPRUM_DEVICE", "auto"),
    (ACCELERATORS, "every ready one, by rank"),
    ("CUPRUM_FUSION", "1"),
    ("CUPRUM_MATMUL_PRECISION", "float32"),
    ("CUPRUM_NUM_THREADS", "all cores"),
    ("CUPRUM_GPU_MEMORY_LIMIT", "none"),
    ("CUPRUM_CPU_MEMORY_LIMIT", "none"),
    ("CUPRUM_GPU_MEMORY_POOL", "1"),
    ("CUPRUM_CACHE_DIR", "the user's cache folder"),
    ("CUPRUM_TUNING", "a file in the cache folder"),
    ("CUPRUM_COMPILE", "wait under a named order, else background"),
    ("CUPRUM_HOST_FALLBACK", "error"),
    ("CUPRUM_TRACE", "none"),
    ("CUPRUM_CUDA_PATH", "none"),
    ("CUPRUM_CCCL_PATH", "none"),
    ("CUPRUM_CUTENSOR_PATH", "none"),
    ("CUPRUM_DUMP_SOURCE", "none"),
    ("CUPRUM_LOG", "warn"),
];

/// The one variable whose empty value has a meaning: an order without accelerators.
pub(crate) const ACCELERATORS: &str = "CUPRUM_ACCELERATORS";

/// Every variable cuprum reads, with its value in this process.
pub fn shown() -> Vec<Shown> {
    let value = |variable| std::env::var_os(variable).map(|v| v.to_string_lossy().into_owned());
    ALL.iter().map(|&(variable, default)| Shown { variable, value: value(variable), default }).collect()
}

/// A variable's trimmed value, if it is set. Errors: a value that is not UTF-8.
pub(crate) fn read(variable: &'static str) -> Result<Option<String>> {
    match std::env::var_os(variable).map(std::ffi::OsString::into_string) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text.trim().to_string())),
        Some(Err(bytes)) => Err(Error::Setting { variable, message: format!("{bytes:?} is not UTF-8") }),
    }
}

/// A variable's trimmed value. An empty or blank value counts as not set; so does one that is not UTF-8, which [`check`] reports.
pub fn env(variable: &'static str) -> Option<String> {
    read(variable).ok().flatten().filter(|text| !text.is_empty())
}

/// The folder for compiled kernels and what was measured: `CUPRUM_CACHE_DIR`, else the user's cache folder + `/cuprum`; `None`
/// where there is no home.
pub fn cache_folder() -> Option<PathBuf> {
    match env("CUPRUM_CACHE_DIR") {
        Some(folder) => Some(folder.into()),
        None => directories::BaseDirs::new().map(|dirs| dirs.cache_dir().join("cuprum")),
    }
}

/// Reads a switch: `1`, `0`, `on`, `off`, `true`, `false`.
pub fn parse_switch(variable: &'static str, text: &str) -> Result<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "on" | "true" | "yes" => Ok(true),
        "0" | "off" | "false" | "no" => Ok(false),
        other => Err(Error::Setting { variable, message: format!("'{other}' is not a switch; use 1 or 0") }),
    }
}

/// Reads a memory limit: bytes, with an optional `K`, `M`, `G` or `T` (powers of 1024, whether `GB` or `GiB`), or a share of
/// `total` such as `80%`.
pub fn parse_limit(variable: &'static str, text: &str, total: usize) -> Result<Option<usize>> {
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

/// Reads an accelerator list: names separated by commas, trimmed, in lower case; empty pieces dropped.
pub fn parse_names(text: &str) -> Vec<String> {
    text.split(',').map(|n| n.trim().to_ascii_lowercase()).filter(|n| !n.is_empty()).collect()
}

/// `CUPRUM_HOST_FALLBACK`.
pub fn host_fallback() -> Result<HostFallback> {
    static PARSED: OnceLock<Result<HostFallback>> = OnceLock::new();
    PARSED
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

/// `CUPRUM_COMPILE`; if it is not set, [`Compile::Wait`] where an order of accelerators was named. [`Compile::Wait`] too while a
/// call that nobody has taken is asked of kernels once more.
pub fn compile() -> Result<Compile> {
    static PARSED: OnceLock<Result<Option<Compile>>> = OnceLock::new();
    let parse = || match env("CUPRUM_COMPILE").unwrap_or_default().to_ascii_lowercase().as_str() {
        "" => Ok(None),
        "wait" => Ok(Some(Compile::Wait)),
        "background" => Ok(Some(Compile::Background)),
        other => Err(Error::Setting { variable: "CUPRUM_COMPILE", message: format!("'{other}' is not known; use wait or background") }),
    };
    let unset = || if crate::registry::order_is_named() { Compile::Wait } else { Compile::Background };
    let set = PARSED.get_or_init(parse).clone()?;
    Ok(if crate::dispatch::waiting() { Compile::Wait } else { set.unwrap_or_else(unset) })
}

/// Maximum number of threads of a pool. Starting some ten thousand takes longer than any work that they could share.
pub const MOST_THREADS: usize = 1024;

/// `CUPRUM_NUM_THREADS`, if set; numbers above [`MOST_THREADS`] count as that many.
pub fn num_threads() -> Result<Option<usize>> {
    let variable = "CUPRUM_NUM_THREADS";
    match env(variable) {
        None => Ok(None),
        Some(v) => match v.parse::<usize>() {
            Ok(n) if n > 0 => Ok(Some(n.min(MOST_THREADS))),
            _ => Err(Error::Setting { variable, message: format!("'{v}' is not a number of threads") }),
        },
    }
}

/// The limit of host memory in bytes: not yet read, none (`usize::MAX`), or a number.
static CPU_LIMIT: AtomicUsize = AtomicUsize::new(UNREAD);
const UNREAD: usize = usize::MAX - 1;

/// `CUPRUM_CPU_MEMORY_LIMIT` in bytes, or what [`Device::set_memory_limit`](crate::Device::set_memory_limit) set. A share is
/// of the physical memory. A value that cannot be read holds as no limit; [`check`] reports it.
pub fn cpu_memory_limit() -> Option<usize> {
    match CPU_LIMIT.load(Ordering::Relaxed) {
        UNREAD => {
            set_cpu_memory_limit(read_cpu_limit().unwrap_or(None));
            cpu_memory_limit()
        }
        usize::MAX => None,
        limit => Some(limit),
    }
}

pub(crate) fn set_cpu_memory_limit(limit: Option<usize>) {
    CPU_LIMIT.store(limit.map_or(usize::MAX, |l| l.min(UNREAD - 1)), Ordering::Relaxed);
}

fn read_cpu_limit() -> Result<Option<usize>> {
    let variable = "CUPRUM_CPU_MEMORY_LIMIT";
    env(variable).map_or(Ok(None), |v| parse_limit(variable, &v, physical_memory()))
}

/// Bytes of physical memory; 0 on a system that does not report it.
pub fn physical_memory() -> usize {
    if cfg!(miri) {
        return 0; // it does not know the system calls
    }
    let memory = sysinfo::MemoryRefreshKind::nothing().with_ram();
    let system = sysinfo::System::new_with_specifics(sysinfo::RefreshKind::nothing().with_memory(memory));
    usize::try_from(system.total_memory()).unwrap_or(usize::MAX)
}

/// Process-wide state of the fusion switch: 0 not yet read, 1 off, 2 on.
static FUSION: AtomicU8 = AtomicU8::new(0);

/// `CUPRUM_FUSION`, or what [`set_fusion`] set.
pub(crate) fn fusion_default() -> bool {
    match FUSION.load(Ordering::Relaxed) {
        0 => {
            let on = env("CUPRUM_FUSION").is_none_or(|v| parse_switch("CUPRUM_FUSION", &v).unwrap_or(true));
            set_fusion(on);
            on
        }
        state => state == 2,
    }
}

/// Switches fusion on or off for the process.
pub fn set_fusion(on: bool) {
    FUSION.store(1 + on as u8, Ordering::Relaxed);
}

/// Checks every variable, so that a program can refuse a bad one at its start.
pub fn check() -> Result<()> {
    ALL.iter().try_for_each(|(variable, _)| read(variable).map(|_| ()))?;
    host_fallback()?;
    compile()?;
    num_threads()?;
    crate::precision::from_environment()?;
    read_cpu_limit()?;
    if let Some(v) = env("CUPRUM_FUSION") {
        parse_switch("CUPRUM_FUSION", &v)?;
    }
    if let Some(v) = env("CUPRUM_GPU_MEMORY_POOL") {
        parse_switch("CUPRUM_GPU_MEMORY_POOL", &v)?;
    }
    if let Some(v) = env("CUPRUM_GPU_MEMORY_LIMIT") {
        parse_limit("CUPRUM_GPU_MEMORY_LIMIT", &v, 1 << 40)?;
    }
    crate::tuning::check()?;
    crate::profiler::trace::check()?;
    crate::registry::check_settings()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_reports_its_memory() {
        let total = physical_memory();
        assert!(total >= 64 << 20, "{total} bytes");
        if let Ok(text) = std::fs::read_to_string("/proc/meminfo") {
            let kib = text.lines().find_map(|l| l.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<usize>().ok());
            assert_eq!(kib.map(|kib| kib * 1024), Some(total));
        }
    }

    #[test]
    fn limits() {
        let parse = |text| parse_limit("X", text, 1000);
        let good = [("1024", 1024), ("2GiB", 2 << 30), ("1.5 gb", 3 << 29), ("512M", 512 << 20), ("50%", 500), (" 12.5 % ", 125)];
        good.iter().for_each(|&(text, bytes)| assert_eq!(parse(text).unwrap(), Some(bytes), "{text}"));
        assert!(parse("").unwrap().is_none() && parse("none").unwrap().is_none());
        for bad in ["lots", "99999999999999999999T", "-1", "101%", "5 apples", "1e9x", "..", "%"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let unknown = parse_limit("X", "50%", 0).unwrap_err().to_string();
        assert!(unknown.contains("'50%' is a share of a memory whose size this system does not report; use bytes"), "{unknown}");
        assert!(parse_limit("X", "101%", 0).unwrap_err().to_string().contains("is not a memory limit"));
        assert_eq!(parse_names(" CUB, ,cuTENSOR"), ["cub", "cutensor"]);
    }
}
