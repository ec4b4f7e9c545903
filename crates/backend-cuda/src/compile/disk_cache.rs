//! The disk cache of compiled kernels.
//!
//! Each entry is a file, named by the SHA-256 of everything that determines the code. Files are written under a temporary
//! name and renamed, so that concurrent readers and writers see complete files only. A checksum detects damaged files, which
//! count as misses. If the folder is not writable (read-only home, full disk), entries stay in memory for this process, with
//! one warning.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use cuprum_core::fault_injection::{FailurePoint, inject_io_failure};
use sha2::{Digest, Sha256};

/// Default maximum size of the cache folder, in bytes. Beyond the maximum, the oldest entries are removed.
pub const DEFAULT_MAX_BYTES: u64 = 512 << 20;

const CACHE_FILE_MAGIC: &[u8; 8] = b"cuprumK1";
const CACHE_FILE_HEADER_BYTES: usize = 8 + 8 + 32;
const CACHE_FILE_EXTENSION: &str = "kernel";
const TEMPORARY_FILE_PREFIX: &str = ".writing-";
/// Minimum age at which a hit renews a file's modification time, so that the oldest file is approximately the least recently used one.
const MIN_AGE_TO_RENEW_MTIME: Duration = Duration::from_secs(24 * 3600);

/// The key of a cache entry: a SHA-256 hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey([u8; 32]);

impl CacheKey {
    /// Returns the hash of `parts`, their lengths and this crate's version. The lengths delimit the parts.
    pub fn from_hash_of_parts(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in std::iter::once(&env!("CARGO_PKG_VERSION").as_bytes()).chain(parts) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        CacheKey(hash.finalize().into())
    }

    fn file_name(&self) -> String {
        format!("{self}.{CACHE_FILE_EXTENSION}")
    }
}

impl fmt::Display for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// A folder of compiled kernels, shared between threads and processes.
#[derive(Debug)]
pub struct DiskCache {
    /// The folder of the cache files, or `None` for a cache in memory only.
    folder: Option<PathBuf>,
    max_bytes: u64,
    /// Estimated size of the folder in bytes; `u64::MAX` until it is first measured.
    size: AtomicU64,
    memory: Mutex<HashMap<CacheKey, Arc<[u8]>>>,
    warned: AtomicBool,
}

impl DiskCache {
    /// Returns a cache in `folder`, whose size is limited to about `max_bytes` bytes. The first write creates the folder.
    pub fn new(folder: impl Into<PathBuf>, max_bytes: u64) -> Self {
        let mut cache = DiskCache::in_memory();
        cache.folder = Some(folder.into());
        cache.max_bytes = max_bytes;
        cache
    }

    /// Returns a cache that keeps its entries in memory only.
    pub fn in_memory() -> Self {
        DiskCache {
            folder: None,
            max_bytes: DEFAULT_MAX_BYTES,
            size: AtomicU64::new(u64::MAX),
            memory: Mutex::default(),
            warned: AtomicBool::new(false),
        }
    }

    /// Returns the process-wide cache, in the folder `kernels` of [`cache_folder`](cuprum_core::settings::cache_folder).
    pub fn process_wide() -> &'static DiskCache {
        static SHARED_DISK_CACHE: OnceLock<DiskCache> = OnceLock::new();
        SHARED_DISK_CACHE.get_or_init(|| match cuprum_core::settings::cache_folder() {
            Some(folder) => DiskCache::new(folder.join("kernels"), DEFAULT_MAX_BYTES),
            None => DiskCache::in_memory(),
        })
    }

    /// Returns the folder, or `None` for a cache in memory.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Returns the bytes of the entry `key`, or `None` if the entry is absent or damaged. Removes damaged files.
    pub fn get(&self, key: &CacheKey) -> Option<Arc<[u8]>> {
        if let Some(folder) = &self.folder {
            let path = folder.join(key.file_name());
            match read_cache_file(&path) {
                Ok(bytes) => return Some(bytes.into()),
                Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                    tracing::debug!(file = %path.display(), "damaged cache entry: {e}");
                    let _ = fs::remove_file(&path);
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => self.warn_once(|| format!("kernel cache entry {} cannot be read ({e})", path.display())),
            }
        }
        self.lock_memory_entries().get(key).cloned()
    }

    /// Stores `bytes` under `key`: in a file, or in memory if the file cannot be written.
    pub fn store(&self, key: &CacheKey, bytes: &[u8]) {
        let Some(folder) = &self.folder else {
            self.lock_memory_entries().insert(*key, bytes.into());
            return;
        };
        match write_cache_file(folder, &key.file_name(), bytes) {
            Ok(written) => self.record_write_and_evict(folder, written),
            Err(e) => {
                self.warn_once(|| format!("kernel cache {} cannot be written ({e}); kernels are kept in memory only", folder.display()));
                self.lock_memory_entries().insert(*key, bytes.into());
            }
        }
    }

    /// Removes every entry of the cache.
    pub fn clear(&self) {
        self.lock_memory_entries().clear();
        for (_, _, path) in self.folder.iter().flat_map(|f| list_cache_files(f)) {
            let _ = fs::remove_file(path);
        }
        self.size.store(u64::MAX, Ordering::Relaxed);
    }

    /// Logs the first problem of this cache. Further problems are not logged.
    fn warn_once(&self, message: impl FnOnce() -> String) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!("{}", message());
        }
    }

    fn lock_memory_entries(&self) -> std::sync::MutexGuard<'_, HashMap<CacheKey, Arc<[u8]>>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds `written` bytes to the size estimate. Above the cache's maximum size, measures `folder` and removes the oldest entries until
    /// 3/4 of the maximum remain.
    fn record_write_and_evict(&self, folder: &Path, written: u64) {
        let known = self.size.load(Ordering::Relaxed);
        let estimate = known.saturating_add(written);
        if known != u64::MAX && estimate <= self.max_bytes {
            self.size.store(estimate, Ordering::Relaxed);
            return;
        }
        let mut files = list_cache_files(folder);
        let mut total: u64 = files.iter().map(|(_, len, _)| len).sum();
        if total > self.max_bytes {
            files.sort();
            for (_, len, path) in files {
                if total <= self.max_bytes / 4 * 3 {
                    break;
                }
                // An error is ignored, because another process may have removed the file already.
                let _ = fs::remove_file(path);
                total -= len;
            }
        }
        self.size.store(total, Ordering::Relaxed);
    }
}

/// Returns the modification time, size and path of each cache file in `folder`, including abandoned temporary files.
fn list_cache_files(folder: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let Ok(read) = fs::read_dir(folder) else { return Vec::new() };
    let ours = read.flatten().filter(|e| {
        let name = e.file_name();
        let name = name.to_string_lossy();
        name.starts_with(TEMPORARY_FILE_PREFIX) || name.ends_with(CACHE_FILE_EXTENSION)
    });
    ours.filter_map(|e| e.metadata().ok().and_then(|m| Some((m.modified().ok()?, m.len(), e.path())))).collect()
}

fn read_cache_file(path: &Path) -> io::Result<Vec<u8>> {
    let damaged = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    inject_io_failure(FailurePoint::FileOpen)?;
    let mut file = File::open(path)?;
    inject_io_failure(FailurePoint::FileRead)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let (header, payload) = bytes.split_at_checked(CACHE_FILE_HEADER_BYTES).ok_or_else(|| damaged("shorter than its header"))?;
    if &header[..8] != CACHE_FILE_MAGIC || header[8..16] != (payload.len() as u64).to_le_bytes() {
        return Err(damaged("wrong magic or length"));
    }
    if header[16..] != Sha256::digest(payload)[..] {
        return Err(damaged("wrong checksum"));
    }
    if file.metadata()?.modified()?.elapsed().is_ok_and(|age| age > MIN_AGE_TO_RENEW_MTIME) {
        let renewed = File::options().append(true).open(path).and_then(|f| f.set_modified(SystemTime::now()));
        if let Err(e) = renewed {
            tracing::trace!("cache entry not renewed: {e}");
        }
    }
    bytes.drain(..CACHE_FILE_HEADER_BYTES);
    Ok(bytes)
}

fn write_cache_file(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<u64> {
    fs::create_dir_all(folder)?;
    inject_io_failure(FailurePoint::FileOpen)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY_FILE_PREFIX);
    // Without this mode, tempfile creates files that only their owner can read, but several users may share a cache folder.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(CACHE_FILE_MAGIC)?;
    inject_io_failure(FailurePoint::FileWrite)?;
    file.write_all(&(bytes.len() as u64).to_le_bytes())?;
    file.write_all(&Sha256::digest(bytes))?;
    file.write_all(bytes)?;
    // There is no fsync, because a file that a crash truncates fails its checksum and costs only one compilation.
    inject_io_failure(FailurePoint::Rename)?;
    file.persist(folder.join(name)).map_err(|e| e.error)?;
    Ok((CACHE_FILE_HEADER_BYTES + bytes.len()) as u64)
}

#[cfg(test)]
#[path = "disk_cache_tests.rs"]
mod tests;
