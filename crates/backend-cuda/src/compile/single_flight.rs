//! A concurrent map that computes each value once, even if several threads request it at the same time.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A concurrent map that computes each value once. `T` is cheap to clone, such as an `Arc`.
///
/// The caller provides a hash and the key's bytes. Keys are compared in full, so different keys may have the same hash.
#[derive(Debug)]
pub struct SingleFlight<T> {
    entries: RwLock<FxHashMap<u64, ValuesOfHash<T>>>,
}

/// The entries whose keys have the same hash. The list nearly always has one entry.
type ValuesOfHash<T> = SmallVec<[Arc<SingleFlightSlot<T>>; 1]>;

#[derive(Debug)]
struct SingleFlightSlot<T> {
    key: Box<[u8]>,
    value: OnceLock<T>,
    making: Mutex<()>,
}

impl<T> Default for SingleFlight<T> {
    fn default() -> Self {
        SingleFlight { entries: RwLock::default() }
    }
}

impl<T: Clone> SingleFlight<T> {
    /// Returns the value of `key`, whose hash is `hash`, or `None` if it does not exist.
    #[inline]
    pub fn get(&self, hash: u64, key: &[u8]) -> Option<T> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.get(&hash)?.iter().find(|e| *e.key == *key)?.value.get().cloned()
    }

    /// Returns the value of `key`. The first request computes the value with `make`, while other requests for `key` wait. If `make` fails,
    /// only this call returns the error, and the next request calls its own `make`.
    ///
    /// `make` must not request `key` itself, which would deadlock.
    pub fn get_or_make<E>(&self, hash: u64, key: &[u8], make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if let Some(value) = self.get(hash, key) {
            return Ok(value);
        }
        let entry = self.get_or_add_slot(hash, key);
        let _making = entry.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = entry.value.get() {
            return Ok(value.clone());
        }
        let value = make()?;
        Ok(entry.value.get_or_init(|| value).clone())
    }

    /// Returns the number of stored values.
    pub fn len(&self) -> usize {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.values().flatten().filter(|e| e.value.get().is_some()).count()
    }

    /// Returns whether the map has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the entry of `key`. Adds an entry without a value if there is none.
    fn get_or_add_slot(&self, hash: u64, key: &[u8]) -> Arc<SingleFlightSlot<T>> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let same_hash = entries.entry(hash).or_default();
        if let Some(entry) = same_hash.iter().find(|e| *e.key == *key) {
            return entry.clone();
        }
        let entry = Arc::new(SingleFlightSlot { key: key.into(), value: OnceLock::new(), making: Mutex::new(()) });
        same_hash.push(entry.clone());
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn made_once_by_many_threads() {
        let map = SingleFlight::<u32>::default();
        let made = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let value = map.get_or_make(7, b"key", || {
                        made.fetch_add(1, Ordering::SeqCst);
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        Ok::<_, ()>(42)
                    });
                    assert_eq!(value, Ok(42));
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
        assert_eq!(map.len(), 1);
    }

    #[test]
    fn equal_hashes_are_told_apart_and_failures_are_retried() {
        let map = SingleFlight::<u32>::default();
        assert_eq!(map.get_or_make(1, b"a", || Err("no")), Err("no"));
        assert!(map.is_empty());
        assert_eq!(map.get_or_make(1, b"a", || Ok::<_, ()>(1)), Ok(1));
        assert_eq!(map.get_or_make(1, b"b", || Ok::<_, ()>(2)), Ok(2));
        assert_eq!((map.get(1, b"a"), map.get(1, b"b"), map.get(2, b"a")), (Some(1), Some(2), None));
        assert_eq!(map.get_or_make(1, b"a", || Err("not called")), Ok(1));
    }
}
