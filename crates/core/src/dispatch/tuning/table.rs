//! Winners as they are kept: a text file for each device in the cache folder, named by a number made of the versions of everything
//! that was measured, so that a new driver, library or cuprum starts anew. Processes take turns at adding to it; it is written beside
//! and renamed, so that readers need no turn. `CUPRUM_TUNING` pins a file instead, which is only read.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustc_hash::FxHasher;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::registry::{self, Availability};
use crate::settings;

const VARIABLE: &str = "CUPRUM_TUNING";
const HEAD: &str = "cuprum tuning, format 1";
/// The longest wait for a turn. Others take theirs for milliseconds, unless they are stopped in the midst of it.
const PATIENCE: Duration = Duration::from_secs(2);

/// The winner of one signature.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The signature.
    pub key: u64,
    /// Name of the accelerator that serves it, or of what one has chosen within itself.
    pub winner: String,
    /// Names and shortest times in microseconds, the fastest first; none where it alone takes such calls.
    pub times: Vec<(String, f64)>,
    /// The first call seen of it, in words.
    pub what: String,
}

/// What has been measured on a device.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The device.
    pub device: Device,
    /// Where it is kept, if anywhere.
    pub file: Option<PathBuf>,
    /// Whether the file was named by `CUPRUM_TUNING`.
    pub pinned: bool,
    /// Winners, by what they are for.
    pub entries: Vec<Entry>,
}

impl Entry {
    /// `cub 181.2 us, cuda 190.0 us`.
    pub fn times_text(&self) -> String {
        self.times.iter().map(|(name, us)| format!("{name} {us:.1} us")).collect::<Vec<_>>().join(", ")
    }

    fn line(&self) -> String {
        let times: Vec<String> = self.times.iter().map(|(name, us)| format!("{name}={us:.3}")).collect();
        format!("{:016x}\t{}\t{}\t{}\n", self.key, self.winner, times.join(","), self.what.replace(['\t', '\n'], " "))
    }

    fn parse(line: &str) -> Option<Entry> {
        let mut columns = line.split('\t');
        let key = u64::from_str_radix(columns.next()?, 16).ok()?;
        let winner = columns.next()?.to_string();
        let time = |t: &str| t.split_once('=').and_then(|(name, us)| Some((name.to_string(), us.parse::<f64>().ok()?)));
        let times = columns.next()?.split(',').filter(|t| !t.is_empty()).map(time).collect::<Option<_>>()?;
        Some(Entry { key, winner, times, what: columns.next()?.to_string() })
    }
}

type Entries = BTreeMap<u64, Entry>;

fn read(text: &str) -> Option<Entries> {
    let mut lines = text.lines();
    if lines.next() != Some(HEAD) {
        return None;
    }
    // A line that another version wrote in another way is measured anew.
    Some(lines.filter(|l| !l.starts_with('#')).filter_map(Entry::parse).map(|e| (e.key, e)).collect())
}

/// The file that `CUPRUM_TUNING` names, read once.
pub(super) fn pinned() -> std::result::Result<Option<&'static (PathBuf, Entries)>, &'static Error> {
    static PINNED: OnceLock<Result<Option<(PathBuf, Entries)>>> = OnceLock::new();
    let read_it = || {
        let Some(path) = settings::env(VARIABLE).map(PathBuf::from) else { return Ok(None) };
        let bad = |message: String| Error::Setting { variable: VARIABLE, message: format!("{}: {message}", path.display()) };
        let text = std::fs::read_to_string(&path).map_err(|e| bad(e.to_string()))?;
        let entries = read(&text).ok_or_else(|| bad(format!("not a tuning file: its first line is not '{HEAD}'")))?;
        Ok(Some((path, entries)))
    };
    match PINNED.get_or_init(read_it) {
        Ok(pinned) => Ok(pinned.as_ref()),
        Err(e) => Err(e),
    }
}

pub(super) fn is_pinned() -> bool {
    matches!(pinned(), Ok(Some(_)))
}

/// The tables of this process, by device; read from the cache folder at first use.
static TABLES: Mutex<Vec<(Device, Table)>> = Mutex::new(Vec::new());

struct Table {
    file: Option<PathBuf>,
    /// What was measured, one line.
    versions: String,
    entries: Entries,
}

impl Table {
    fn open(device: Device) -> Table {
        let versions = versions(device);
        let mut h = FxHasher::default();
        versions.hash(&mut h);
        let name = format!("{}-{:016x}.tsv", device.kind().name(), h.finish());
        let file = settings::cache_folder().map(|folder| folder.join("tuning").join(name));
        let entries = file.as_deref().and_then(|f| std::fs::read_to_string(f).ok()).and_then(|t| read(&t)).unwrap_or_default();
        Table { file, versions, entries }
    }

    /// The winners that had others to beat. Where one alone takes a call the others decline again at no cost, so that is known in
    /// memory only.
    fn measured(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter(|e| !e.times.is_empty())
    }

    /// Writes the file, with what other processes have put there.
    fn save(&mut self) -> std::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let _turn = turn(folder);
        if let Some(theirs) = std::fs::read_to_string(file).ok().and_then(|t| read(&t)) {
            theirs.into_iter().for_each(|(key, entry)| {
                self.entries.entry(key).or_insert(entry);
            });
        }
        let mut beside = tempfile::NamedTempFile::new_in(folder)?;
        write!(beside, "{HEAD}\n# {}\n", self.versions)?;
        for entry in self.measured() {
            beside.write_all(entry.line().as_bytes())?;
        }
        beside.persist(file).map(|_| ()).map_err(|e| e.error)
    }
}

/// This process's turn to change the tables of a folder, until the value is dropped: the lock of a file beside the folder, which the
/// system takes from a process that ends, however it ends. `None` where the file system has no locks, or somebody does not let go; what
/// another process adds at the same moment may then be lost, and is measured again.
fn turn(folder: &Path) -> Option<File> {
    let out_of_turn = |error: &dyn std::fmt::Display| tracing::debug!(?folder, %error, "tables are changed out of turn");
    let opened = File::options().create(true).truncate(false).write(true).open(folder.with_extension("lock"));
    let file = opened.inspect_err(|error| out_of_turn(error)).ok()?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => {
                out_of_turn(&error);
                return None;
            }
        }
    }
}

/// Everything whose change may change a winner: cuprum, the device, the accelerators and their libraries.
fn versions(device: Device) -> String {
    let name = device.info().map(|i| i.name).unwrap_or_default();
    let ready = registry::all().into_iter().filter(|a| a.device == device.kind().name()).filter_map(|a| match registry::availability(a) {
        Availability::Ready(detail) => Some(format!("; {}: {detail}", a.name)),
        Availability::Missing { .. } => None,
    });
    format!("cuprum {}; {device}: {name}{}", env!("CARGO_PKG_VERSION"), ready.collect::<String>()).replace('\n', " ")
}

fn with_table<R>(device: Device, f: impl FnOnce(&mut Table) -> R) -> R {
    let mut tables = TABLES.lock().unwrap_or_else(|e| e.into_inner());
    let at = match tables.iter().position(|(d, _)| *d == device) {
        Some(at) => at,
        None => {
            tables.push((device, Table::open(device)));
            tables.len() - 1
        }
    };
    f(&mut tables[at].1)
}

/// The winner of a signature, if it is known.
pub(super) fn find(device: Device, key: u64) -> Result<Option<Entry>> {
    match pinned() {
        Err(e) => Err(e.clone()),
        Ok(Some((_, entries))) => Ok(entries.get(&key).cloned()),
        Ok(None) => Ok(with_table(device, |t| t.entries.get(&key).cloned())),
    }
}

/// Keeps a winner.
pub(super) fn insert(device: Device, entry: Entry) {
    with_table(device, |t| {
        let measured = !entry.times.is_empty();
        t.entries.insert(entry.key, entry);
        if !measured {
            return;
        }
        if let Err(error) = t.save() {
            tracing::warn!(file = ?t.file, %error, "what was measured is kept in memory only");
            t.file = None;
        }
    });
}

pub(super) fn listing(device: Device) -> Result<Listing> {
    fn by_what<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<Entry> {
        let mut list: Vec<Entry> = entries.cloned().collect();
        list.sort_by(|a, b| a.what.cmp(&b.what));
        list
    }
    match pinned() {
        Err(e) => Err(e.clone()),
        Ok(Some((path, entries))) => Ok(Listing { device, file: Some(path.clone()), pinned: true, entries: by_what(entries.values()) }),
        Ok(None) => Ok(with_table(device, |t| Listing { device, file: t.file.clone(), pinned: false, entries: by_what(t.measured()) })),
    }
}

/// Removes what was measured on every device under the present versions.
pub(super) fn forget() -> Result<()> {
    for device in Device::all() {
        let removed = with_table(device, |t| {
            t.entries.clear();
            t.file.as_deref().map(|f| {
                let _turn = f.parent().and_then(turn);
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
    fn lines_are_read_back() {
        let entry = Entry {
            key: 0xfeed,
            winner: "cub".into(),
            times: vec![("cub".into(), 1.5), ("cuda".into(), 2.25)],
            what: "sum [Reduce]: float32 (3, 4)".into(),
        };
        let text = format!("{HEAD}\n# versions\n{}not an entry\n", entry.line());
        assert_eq!(read(&text).unwrap().get(&entry.key), Some(&entry));
        assert_eq!(entry.times_text(), "cub 1.5 us, cuda 2.2 us");
        assert!(read("something else\n").is_none());
    }
}
