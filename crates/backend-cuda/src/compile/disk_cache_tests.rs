//! Tests of the disk cache: damaged files, concurrent readers and writers, folders without write permission, the size limit.

use super::*;

fn key(n: u64) -> CacheKey {
    CacheKey::from_hash_of_parts(&[b"test", &n.to_le_bytes()])
}

fn only_file(folder: &Path) -> PathBuf {
    let all = list_cache_files(folder);
    assert_eq!(all.len(), 1);
    all[0].2.clone()
}

#[test]
fn round_trip_over_two_instances() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("made/when/needed");
    let cache = DiskCache::new(&folder, DEFAULT_MAX_BYTES);
    assert!(cache.get(&key(1)).is_none());
    cache.store(&key(1), b"cubin");
    assert_eq!(&*DiskCache::new(&folder, DEFAULT_MAX_BYTES).get(&key(1)).unwrap(), b"cubin");
    cache.clear();
    assert!(cache.get(&key(1)).is_none());
}

#[test]
fn keys_depend_on_every_part_and_its_border() {
    assert_ne!(CacheKey::from_hash_of_parts(&[b"ab", b"c"]), CacheKey::from_hash_of_parts(&[b"a", b"bc"]));
    assert_ne!(CacheKey::from_hash_of_parts(&[b"a"]), CacheKey::from_hash_of_parts(&[b"a", b""]));
    assert_eq!(CacheKey::from_hash_of_parts(&[b"a"]), CacheKey::from_hash_of_parts(&[b"a"]));
}

#[test]
fn every_damaged_byte_and_every_truncation_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::new(dir.path(), DEFAULT_MAX_BYTES);
    cache.store(&key(1), b"payload");
    let path = only_file(dir.path());
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bad = whole.clone();
        bad[at] ^= 0x40;
        fs::write(&path, &bad).unwrap();
        assert!(cache.get(&key(1)).is_none(), "byte {at}");
        assert!(!path.exists(), "a damaged file is removed");
        fs::write(&path, &whole[..at]).unwrap();
        assert!(cache.get(&key(1)).is_none(), "cut at {at}");
    }
    cache.store(&key(1), b"payload");
    assert_eq!(&*cache.get(&key(1)).unwrap(), b"payload", "rebuilt");
}

#[test]
fn racing_writers_and_readers_see_whole_entries() {
    let dir = tempfile::tempdir().unwrap();
    let payloads: Vec<Vec<u8>> = (0..4u8).map(|b| vec![b; 200_000]).collect();
    std::thread::scope(|scope| {
        for payload in &payloads {
            scope.spawn(|| {
                // An instance per thread, as in separate processes: they share nothing but the folder.
                let cache = DiskCache::new(dir.path(), DEFAULT_MAX_BYTES);
                for _ in 0..50 {
                    cache.store(&key(1), payload);
                    let got = cache.get(&key(1)).expect("present after put");
                    assert!(got.len() == 200_000 && got.iter().all(|b| *b == got[0]), "torn entry");
                }
            });
        }
    });
    assert!(only_file(dir.path()).exists(), "no temporary file is left");
}

#[test]
fn a_folder_that_cannot_be_made_falls_back_to_memory() {
    let dir = tempfile::tempdir().unwrap();
    // A file where the folder should be fails for every user, root included.
    let blocker = dir.path().join("file");
    fs::write(&blocker, "").unwrap();
    let cache = DiskCache::new(blocker.join("kernels"), DEFAULT_MAX_BYTES);
    cache.store(&key(1), b"cubin");
    assert_eq!(&*cache.get(&key(1)).unwrap(), b"cubin");
    assert!(cache.warned.load(Ordering::Relaxed));
}

#[cfg(unix)]
#[test]
fn a_read_only_folder_serves_hits_and_keeps_new_entries_in_memory() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("kernels");
    DiskCache::new(&folder, DEFAULT_MAX_BYTES).store(&key(1), b"old");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let cache = DiskCache::new(&folder, DEFAULT_MAX_BYTES);
    assert_eq!(&*cache.get(&key(1)).unwrap(), b"old");
    cache.store(&key(2), b"new");
    assert_eq!(&*cache.get(&key(2)).unwrap(), b"new");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(unix)]
#[test]
fn entries_have_the_mode_of_ordinary_files() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let ordinary = dir.path().join("ordinary");
    fs::write(&ordinary, b"").unwrap();
    DiskCache::new(dir.path(), DEFAULT_MAX_BYTES).store(&key(1), b"cubin");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&only_file(dir.path())), mode(&ordinary));
}

#[test]
fn an_unreadable_entry_is_logged() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::new(dir.path(), DEFAULT_MAX_BYTES);
    assert!(cache.get(&key(1)).is_none() && !cache.warned.load(Ordering::Relaxed), "absent");
    fs::create_dir(dir.path().join(key(1).file_name())).unwrap();
    assert!(cache.get(&key(1)).is_none() && cache.warned.load(Ordering::Relaxed), "a folder");
}

#[test]
fn the_cap_removes_the_oldest() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::new(dir.path(), 10_000);
    for n in 0..30 {
        cache.store(&key(n), &[0; 1000]);
        let path = dir.path().join(key(n).file_name());
        let time = SystemTime::now() - Duration::from_secs(1000 - n);
        File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
        let total: u64 = list_cache_files(dir.path()).iter().map(|e| e.1).sum();
        assert!(total <= 10_000, "{total}");
    }
    assert!(cache.get(&key(29)).is_some());
    assert!(cache.get(&key(0)).is_none());
}

#[test]
fn a_hit_on_an_old_entry_renews_it() {
    let dir = tempfile::tempdir().unwrap();
    let cache = DiskCache::new(dir.path(), DEFAULT_MAX_BYTES);
    cache.store(&key(1), b"x");
    let path = only_file(dir.path());
    let old = SystemTime::now() - 10 * MIN_AGE_TO_RENEW_MTIME;
    File::options().append(true).open(&path).unwrap().set_modified(old).unwrap();
    assert!(cache.get(&key(1)).is_some());
    assert!(fs::metadata(&path).unwrap().modified().unwrap() > old + MIN_AGE_TO_RENEW_MTIME);
}

/// A write that fails at any step leaves the entry in memory and no file. Another instance, as in another process, then stores it.
#[cfg(feature = "fault-injection")]
#[test]
fn a_failed_write_keeps_the_entry_in_memory() {
    use cuprum_core::fault_injection::{CountingScope, with_failure_in_scope};
    for point in [FailurePoint::FileOpen, FailurePoint::FileWrite, FailurePoint::Rename] {
        let dir = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(dir.path(), DEFAULT_MAX_BYTES);
        let ((), failed) = with_failure_in_scope(CountingScope::Thread, point, 0, || cache.store(&key(1), b"cubin"));
        assert!(failed, "{point:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{point:?}: a file is left");
        assert_eq!(&*cache.get(&key(1)).unwrap(), b"cubin", "{point:?}");
        assert!(cache.warned.load(Ordering::Relaxed), "{point:?}");
        let other = DiskCache::new(dir.path(), DEFAULT_MAX_BYTES);
        assert!(other.get(&key(1)).is_none(), "{point:?}");
        other.store(&key(1), b"cubin");
        assert_eq!(&*DiskCache::new(dir.path(), DEFAULT_MAX_BYTES).get(&key(1)).unwrap(), b"cubin", "{point:?}");
    }
}

/// A read that fails is a miss, and the entry stays.
#[cfg(feature = "fault-injection")]
#[test]
fn a_failed_read_is_a_miss() {
    use cuprum_core::fault_injection::{CountingScope, with_failure_in_scope};
    for point in [FailurePoint::FileOpen, FailurePoint::FileRead] {
        let dir = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(dir.path(), DEFAULT_MAX_BYTES);
        cache.store(&key(1), b"cubin");
        let (got, failed) = with_failure_in_scope(CountingScope::Thread, point, 0, || cache.get(&key(1)));
        assert!(failed && got.is_none(), "{point:?}");
        assert_eq!(&*cache.get(&key(1)).unwrap(), b"cubin", "{point:?}: the failure removed the entry");
    }
}

/// A process that ends while it writes leaves a temporary file, which counts towards the size limit and is removed with old entries.
#[test]
fn abandoned_temporary_files_are_removed_with_old_entries() {
    let dir = tempfile::tempdir().unwrap();
    let abandoned = dir.path().join(format!("{TEMPORARY_FILE_PREFIX}abandoned"));
    fs::write(&abandoned, vec![0; 8000]).unwrap();
    File::options().append(true).open(&abandoned).unwrap().set_modified(SystemTime::now() - Duration::from_secs(9000)).unwrap();
    let cache = DiskCache::new(dir.path(), 10_000);
    for n in 0..5 {
        cache.store(&key(n), &[0; 1000]);
    }
    assert!(!abandoned.exists());
    assert!((0..5).all(|n| cache.get(&key(n)).is_some()));
}
