//! Storage of tuning results: one text file per device in the cache folder.
//!
//! The file name contains a hash of the versions of all components. Tuning thus starts over after an update of a driver, a library or
//! cuprum.
//!
//! Writers take a file lock and replace the file by rename, so that readers need no lock. If `CUPRUM_TUNING` names a file, results are read
//! from that file only, and nothing is written.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::hash::{Hash, Hasher};
use std::io::{Error as IoError, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustc_hash::FxHasher;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::fault_injection::{FailurePoint, inject_io_failure};
use crate::registry::{self, Availability};
use crate::settings;

pub(super) const TUNING_VARIABLE: &str = "CUPRUM_TUNING";
const TUNING_FILE_HEADER: &str = "cuprum tuning, format 1";
/// Maximum size of a tuning file in bytes. One entry takes about 200 bytes.
const MAX_TUNING_FILE_BYTES: u64 = 16 << 20;
/// Maximum wait for the lock of the tuning files. Writers hold the lock for milliseconds unless they are suspended.
const TUNING_FILE_LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// The fastest accelerator or algorithm for one call signature, with the measured times.
#[derive(Clone, Debug, PartialEq)]
pub struct TuningResult {
    /// The hash of the call signature.
    pub key: u64,
    /// Name of the fastest accelerator, or of the fastest algorithm within an accelerator.
    pub winner: String,
    /// Names of accelerators or algorithms, and their minimum times in microseconds, the fastest first. Empty if only one accelerator
    /// accepts calls of this signature.
    pub times: Vec<(String, f64)>,
    /// Description of one call with this signature.
    pub description: String,
}

/// The tuning results of a device.
#[derive(Clone, Debug)]
pub struct DeviceResults {
    /// The device.
    pub device: Device,
    /// The file that stores the results; `None` if they are only in memory.
    pub file: Option<PathBuf>,
    /// Whether the file is the one that `CUPRUM_TUNING` names, which is never written.
    pub read_only: bool,
    /// The tuning results, sorted by their descriptions.
    pub entries: Vec<TuningResult>,
}

impl TuningResult {
    /// Formats the times, for example as `cub 181.2 us, cuda 190.0 us`.
    pub fn display_times(&self) -> String {
        self.times.iter().map(|(name, us)| format!("{name} {us:.1} us")).collect::<Vec<_>>().join(", ")
    }

    fn format_result_line(&self) -> String {
        let times: Vec<String> = self.times.iter().map(|(name, us)| format!("{name}={us:.3}")).collect();
        format!("{:016x}\t{}\t{}\t{}\n", self.key, self.winner, times.join(","), self.description.replace(['\t', '\n'], " "))
    }

    fn parse_result_line(line: &str) -> Option<TuningResult> {
        let mut columns = line.split('\t');
        let key = u64::from_str_radix(columns.next()?, 16).ok()?;
        let winner = columns.next()?.to_string();
        let time = |t: &str| t.split_once('=').and_then(|(name, us)| Some((name.to_string(), us.parse::<f64>().ok()?)));
        let times = columns.next()?.split(',').filter(|t| !t.is_empty()).map(time).collect::<Option<_>>()?;
        Some(TuningResult { key, winner, times, description: columns.next()?.to_string() })
    }
}

type ResultsByKey = BTreeMap<u64, TuningResult>;

fn parse_tuning_file(text: &str) -> Option<ResultsByKey> {
    let mut lines = text.lines();
    if lines.next() != Some(TUNING_FILE_HEADER) {
        return None;
    }
    // Lines in the format of another version are ignored.
    Some(lines.filter(|l| !l.starts_with('#')).filter_map(TuningResult::parse_result_line).map(|e| (e.key, e)).collect())
}

/// Returns the text of a tuning file.
fn read_tuning_file(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_TUNING_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_TUNING_FILE_BYTES {
        return Err(IoError::new(ErrorKind::FileTooLarge, format!("more than {MAX_TUNING_FILE_BYTES} bytes")));
    }
    Ok(text)
}

/// Returns the path and the entries of the file that `CUPRUM_TUNING` names, read once. `None` if the variable is not set.
pub(super) fn read_named_tuning_file() -> std::result::Result<Option<&'static (PathBuf, ResultsByKey)>, &'static Error> {
    static NAMED_TUNING_FILE: OnceLock<Result<Option<(PathBuf, ResultsByKey)>>> = OnceLock::new();
    let load = || {
        let Some(path) = settings::env(TUNING_VARIABLE).map(PathBuf::from) else { return Ok(None) };
        let bad = |message: String| Error::Setting { variable: TUNING_VARIABLE, message: format!("{}: {message}", path.display()) };
        let text = read_tuning_file(&path).map_err(|e| bad(e.to_string()))?;
        let entries =
            parse_tuning_file(&text).ok_or_else(|| bad(format!("not a tuning file: its first line is not '{TUNING_FILE_HEADER}'")))?;
        Ok(Some((path, entries)))
    };
    match NAMED_TUNING_FILE.get_or_init(load) {
        Ok(pinned) => Ok(pinned.as_ref()),
        Err(e) => Err(e),
    }
}

pub(super) fn uses_named_file() -> bool {
    matches!(read_named_tuning_file(), Ok(Some(_)))
}

/// The tuning results of each device, read from the cache folder on first use.
static DEVICE_TABLES: Mutex<Vec<(Device, DeviceTuningTable)>> = Mutex::new(Vec::new());

struct DeviceTuningTable {
    file: Option<PathBuf>,
    /// Names and versions of the components that may change the measured times ([`component_versions`]), on one line.
    versions: String,
    entries: ResultsByKey,
}

impl DeviceTuningTable {
    fn open_for_device(device: Device) -> DeviceTuningTable {
        let versions = component_versions(device);
        let mut h = FxHasher::default();
        versions.hash(&mut h);
        let name = format!("{}-{:016x}.tsv", device.kind().name(), h.finish());
        let file = settings::cache_folder().map(|folder| folder.join("tuning").join(name));
        let text = file.as_deref().and_then(|file| {
            let read = read_tuning_file(file).inspect_err(|error| {
                if error.kind() != ErrorKind::NotFound {
                    tracing::warn!(?file, %error, "tuning results cannot be read");
                }
            });
            read.ok()
        });
        let entries = text.and_then(|t| parse_tuning_file(&t)).unwrap_or_default();
        DeviceTuningTable { file, versions, entries }
    }

    /// Iterates over the entries with measured times. Entries without times, for calls that only one accelerator accepts, are not saved to
    /// the file.
    fn measured_results(&self) -> impl Iterator<Item = &TuningResult> {
        self.entries.values().filter(|e| !e.times.is_empty())
    }

    /// Writes the table to its file, merged with the entries that other processes have stored there.
    fn save_to_file(&mut self) -> std::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let _lock = lock_tuning_folder(folder);
        if let Some(theirs) = read_tuning_file(file).ok().and_then(|t| parse_tuning_file(&t)) {
            theirs.into_iter().for_each(|(key, entry)| {
                self.entries.entry(key).or_insert(entry);
            });
        }
        inject_io_failure(FailurePoint::FileOpen)?;
        let mut builder = tempfile::Builder::new();
        // By default tempfile creates files that only their owner can read. With this mode, several users can share a cache folder.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut temporary = builder.tempfile_in(folder)?;
        inject_io_failure(FailurePoint::FileWrite)?;
        write!(temporary, "{TUNING_FILE_HEADER}\n# {}\n", self.versions)?;
        for entry in self.measured_results() {
            temporary.write_all(entry.format_result_line().as_bytes())?;
        }
        inject_io_failure(FailurePoint::Rename)?;
        temporary.persist(file).map(|_| ()).map_err(|e| e.error)
    }
}

/// Locks the tuning files of `folder` against other processes until the returned file is dropped. The operating system releases the lock if
/// the process ends.
///
/// Returns `None` if the file system has no locks or the wait exceeds [`TUNING_FILE_LOCK_TIMEOUT`]. Concurrent results may then be lost and
/// measured again.
fn lock_tuning_folder(folder: &Path) -> Option<File> {
    let report = |error: &dyn std::fmt::Display| tracing::debug!(?folder, %error, "writing tuning tables without a lock");
    let opened = File::options().create(true).truncate(false).write(true).open(folder.with_extension("lock"));
    let file = opened.inspect_err(|error| report(error)).ok()?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) if began.elapsed() < TUNING_FILE_LOCK_TIMEOUT => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => {
                report(&error);
                return None;
            }
        }
    }
}

/// Describes every component that may change the measured times: cuprum, the device, the accelerators and their libraries.
fn component_versions(device: Device) -> String {
    let name = device.info().map(|i| i.name).unwrap_or_default();
    let ready =
        registry::all_accelerators().into_iter().filter(|a| a.device == device.kind().name()).filter_map(
            |a| match registry::availability(a) {
                Availability::Ready(detail) => Some(format!("; {}: {detail}", a.name)),
                Availability::Missing { .. } => None,
            },
        );
    format!("cuprum {}; {device}: {name}{}", env!("CARGO_PKG_VERSION"), ready.collect::<String>()).replace('\n', " ")
}

fn with_device_table<R>(device: Device, f: impl FnOnce(&mut DeviceTuningTable) -> R) -> R {
    let mut tables = DEVICE_TABLES.lock().unwrap_or_else(|e| e.into_inner());
    let at = match tables.iter().position(|(d, _)| *d == device) {
        Some(at) => at,
        None => {
            tables.push((device, DeviceTuningTable::open_for_device(device)));
            tables.len() - 1
        }
    };
    f(&mut tables[at].1)
}

/// Returns the tuning result of the call signature `key`, if there is one.
pub(super) fn find_tuning_result(device: Device, key: u64) -> Result<Option<TuningResult>> {
    match read_named_tuning_file() {
        Err(e) => Err(e.clone()),
        Ok(Some((_, entries))) => Ok(entries.get(&key).cloned()),
        Ok(None) => Ok(with_device_table(device, |t| t.entries.get(&key).cloned())),
    }
}

/// Stores a tuning result in memory and, if it was measured, in the file.
pub(super) fn insert_tuning_result(device: Device, entry: TuningResult) {
    with_device_table(device, |t| {
        let measured = !entry.times.is_empty();
        t.entries.insert(entry.key, entry);
        if !measured {
            return;
        }
        if let Err(error) = t.save_to_file() {
            tracing::warn!(file = ?t.file, %error, "tuning results are kept in memory only");
            t.file = None;
        }
    });
}

pub(super) fn list_tuning_results(device: Device) -> Result<DeviceResults> {
    fn sort_tuning_results<'a>(entries: impl Iterator<Item = &'a TuningResult>) -> Vec<TuningResult> {
        let mut list: Vec<TuningResult> = entries.cloned().collect();
        list.sort_by(|a, b| a.description.cmp(&b.description));
        list
    }
    match read_named_tuning_file() {
        Err(e) => Err(e.clone()),
        Ok(Some((path, entries))) => {
            Ok(DeviceResults { device, file: Some(path.clone()), read_only: true, entries: sort_tuning_results(entries.values()) })
        }
        Ok(None) => Ok(with_device_table(device, |t| DeviceResults {
            device,
            file: t.file.clone(),
            read_only: false,
            entries: sort_tuning_results(t.measured_results()),
        })),
    }
}

/// Removes the tuning results of every device from memory, and deletes their files from the cache folder. Files written with other versions
/// of cuprum, the driver or the libraries are kept.
pub(super) fn forget_stored_results() -> Result<()> {
    for device in Device::all() {
        let removed = with_device_table(device, |t| {
            t.entries.clear();
            t.file.as_deref().map(|f| {
                let _lock = f.parent().and_then(lock_tuning_folder);
                (f.to_path_buf(), std::fs::remove_file(f))
            })
        });
        match removed {
            Some((file, Err(e))) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::io(file, e)),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_round_trip() {
        let entry = TuningResult {
            key: 0xfeed,
            winner: "cub".into(),
            times: vec![("cub".into(), 1.5), ("cuda".into(), 2.25)],
            description: "sum [Reduce]: float32 (3, 4)".into(),
        };
        let text = format!("{TUNING_FILE_HEADER}\n# versions\n{}not an entry\n", entry.format_result_line());
        assert_eq!(parse_tuning_file(&text).unwrap().get(&entry.key), Some(&entry));
        assert_eq!(entry.display_times(), "cub 1.5 us, cuda 2.2 us");
        assert!(parse_tuning_file("something else\n").is_none());
    }

    fn entry(key: u64) -> TuningResult {
        TuningResult { key, winner: "cub".into(), times: vec![("cub".into(), 1.5)], description: format!("call {key}") }
    }

    fn table(file: &Path, entries: impl IntoIterator<Item = u64>) -> DeviceTuningTable {
        DeviceTuningTable {
            file: Some(file.into()),
            versions: "versions".into(),
            entries: entries.into_iter().map(|k| (k, entry(k))).collect(),
        }
    }

    fn keys(file: &Path) -> Vec<u64> {
        parse_tuning_file(&std::fs::read_to_string(file).unwrap()).unwrap().into_keys().collect()
    }

    #[cfg(unix)]
    #[test]
    fn endless_files_are_refused() {
        assert_eq!(read_tuning_file(Path::new("/dev/zero")).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn files_depend_on_the_versions() {
        let versions = component_versions(Device::CPU);
        assert!(versions.starts_with(&format!("cuprum {}; cpu: ", env!("CARGO_PKG_VERSION"))), "{versions}");
    }

    #[cfg(unix)]
    #[test]
    fn tables_have_the_mode_of_ordinary_files() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (file, ordinary) = (dir.path().join("cpu.tsv"), dir.path().join("ordinary"));
        std::fs::write(&ordinary, b"").unwrap();
        table(&file, [1]).save_to_file().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&file), mode(&ordinary));
    }

    #[test]
    fn a_lock_excludes_other_writers() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("tuning");
        let lock = lock_tuning_folder(&folder).unwrap();
        let other = File::options().write(true).open(folder.with_extension("lock")).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        let began = Instant::now();
        assert!(lock_tuning_folder(&folder).is_none() && began.elapsed() >= TUNING_FILE_LOCK_TIMEOUT, "another writer waits for a time");
        drop(lock);
        other.try_lock().unwrap();
    }

    #[test]
    fn writers_keep_the_entries_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tuning/cpu.tsv");
        std::thread::scope(|scope| {
            for first in [0, 100, 200, 300] {
                let file = &file;
                scope.spawn(move || (first..first + 5).for_each(|key| table(file, [key]).save_to_file().unwrap()));
            }
        });
        let expected: Vec<u64> = [0, 100, 200, 300].into_iter().flat_map(|first| first..first + 5).collect();
        assert_eq!(keys(&file), expected);
        let names: Vec<_> = std::fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["cpu.tsv"], "no temporary file is left");
    }

    #[test]
    fn a_damaged_table_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tuning/cpu.tsv");
        table(&file, [1, 2]).save_to_file().unwrap();
        let whole = std::fs::read(&file).unwrap();
        for end in 0..whole.len() {
            std::fs::write(&file, &whole[..end]).unwrap();
            table(&file, [3]).save_to_file().unwrap();
            assert!(keys(&file).contains(&3), "cut at {end}");
        }
        std::fs::write(&file, [0xff; 100]).unwrap();
        table(&file, [4]).save_to_file().unwrap();
        assert_eq!(keys(&file), [4]);
    }

    #[cfg(feature = "fault-injection")]
    #[test]
    fn a_failed_write_keeps_the_old_table() {
        use crate::fault_injection::{CountingScope, with_failure_in_scope};
        for point in [FailurePoint::FileOpen, FailurePoint::FileWrite, FailurePoint::Rename] {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("tuning/cpu.tsv");
            table(&file, [1]).save_to_file().unwrap();
            let (result, failed) = with_failure_in_scope(CountingScope::Thread, point, 0, || table(&file, [2]).save_to_file());
            assert!(failed && result.is_err(), "{point:?}");
            assert_eq!(keys(&file), [1], "{point:?}");
            assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "{point:?}: a file is left");
            table(&file, [2]).save_to_file().unwrap();
            assert_eq!(keys(&file), [1, 2], "{point:?}");
        }
    }
}
