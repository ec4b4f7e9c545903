//! A bounded cache of cuTENSOR plans with least-recently-used eviction.
//!
//! Creating a plan runs the library's heuristics, which takes far longer than a lookup. The cache is generic over the plan type, so that
//! tests need no library.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use smallvec::SmallVec;

use crate::operation::CutensorOperation;

/// Maximum number of cached plans per device.
const MAX_CACHED_PLANS: usize = 512;

/// Key of a cached plan: everything that the plan depends on besides the device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanKey {
    /// The operation.
    pub operation: CutensorOperation,
    /// Alignment of each input and of the output, in bytes.
    pub alignments: SmallVec<[u32; 3]>,
}

struct CachedPlan<P> {
    fingerprint: u64,
    key: PlanKey,
    plan: Arc<P>,
    /// Value of [`PlanCache::clock`] when this plan was inserted or last found.
    last_used: AtomicU64,
}

/// A cache of plans by operation and alignment.
pub struct PlanCache<P> {
    /// Sorted by fingerprint.
    entries: RwLock<Vec<CachedPlan<P>>>,
    /// Logical clock for the eviction order. Counts insertions, and lookups that found a plan.
    clock: AtomicU64,
    capacity: usize,
}

impl<P> Default for PlanCache<P> {
    fn default() -> Self {
        Self::with_capacity(MAX_CACHED_PLANS)
    }
}

impl<P> PlanCache<P> {
    /// Returns an empty cache of at most `capacity` plans. A capacity of 0 counts as 1.
    pub fn with_capacity(capacity: usize) -> Self {
        PlanCache { entries: RwLock::default(), clock: AtomicU64::new(0), capacity: capacity.max(1) }
    }

    /// Returns the plan for a key, or creates it with `make`.
    ///
    /// If several threads find no plan at the same time, each creates a plan, and the cache keeps the first. Errors are not cached.
    pub fn get_or_make<E>(&self, key: &PlanKey, make: impl FnOnce() -> Result<P, E>) -> Result<Arc<P>, E> {
        let fingerprint = key.operation.fingerprint(&key.alignments);
        if let Some(plan) = self.get(fingerprint, key) {
            return Ok(plan);
        }
        let made = Arc::new(make()?);
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = find_plan_index(&entries, fingerprint, key) {
            return Ok(entries[at].plan.clone());
        }
        if entries.len() >= self.capacity
            && let Some(oldest) = (0..entries.len()).min_by_key(|&i| entries[i].last_used.load(Ordering::Relaxed))
        {
            entries.remove(oldest);
        }
        let at = entries.partition_point(|e| e.fingerprint < fingerprint);
        entries
            .insert(at, CachedPlan { fingerprint, key: key.clone(), plan: made.clone(), last_used: AtomicU64::new(self.advance_clock()) });
        Ok(made)
    }

    fn get(&self, fingerprint: u64, key: &PlanKey) -> Option<Arc<P>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let entry = &entries[find_plan_index(&entries, fingerprint, key)?];
        entry.last_used.store(self.advance_clock(), Ordering::Relaxed);
        Some(entry.plan.clone())
    }

    fn advance_clock(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }
}

/// Returns the index in `entries` of the plan for `key`, or `None` if there is none. Plans with equal fingerprints are adjacent.
fn find_plan_index<P>(entries: &[CachedPlan<P>], fingerprint: u64, key: &PlanKey) -> Option<usize> {
    let start = entries.partition_point(|e| e.fingerprint < fingerprint);
    let same = entries[start..].iter().take_while(|e| e.fingerprint == fingerprint);
    same.enumerate().find(|(_, e)| e.key == *key).map(|(i, _)| start + i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{CutensorOperationKind, OperandDescription};
    use crate::sys::DataType;

    fn key(n: usize) -> PlanKey {
        let tensor = OperandDescription::from_axes([(0, n, 1)]);
        let operation = CutensorOperation {
            kind: CutensorOperationKind::Permute,
            data: DataType::F32,
            inputs: [tensor.clone()].into_iter().collect(),
            output: tensor,
        };
        PlanKey { operation, alignments: SmallVec::from_slice(&[256, 256]) }
    }

    fn get(cache: &PlanCache<usize>, n: usize, made: &mut usize) -> usize {
        let make = || {
            *made += 1;
            Ok::<_, ()>(n)
        };
        *cache.get_or_make(&key(n), make).unwrap()
    }

    #[test]
    fn plans_are_created_once_and_the_least_recently_used_is_evicted() {
        let (cache, mut made) = (PlanCache::with_capacity(3), 0);
        for n in [2, 3, 4, 2, 3, 2] {
            assert_eq!(get(&cache, n, &mut made), n);
        }
        assert_eq!(made, 3);
        get(&cache, 5, &mut made); // evicts 4
        for n in [2, 3, 5] {
            get(&cache, n, &mut made);
        }
        assert_eq!(made, 4);
        get(&cache, 4, &mut made);
        assert_eq!(made, 5);
    }

    #[test]
    fn alignment_is_part_of_the_key_and_errors_are_not_cached() {
        let cache = PlanCache::<u32>::default();
        assert_eq!(cache.get_or_make(&key(2), || Err("no")).unwrap_err(), "no");
        assert_eq!(*cache.get_or_make(&key(2), || Ok::<_, ()>(1)).unwrap(), 1);
        let unaligned = PlanKey { alignments: SmallVec::from_slice(&[4, 256]), ..key(2) };
        assert_eq!(*cache.get_or_make(&unaligned, || Ok::<_, ()>(2)).unwrap(), 2);
    }

    #[test]
    fn keys_with_equal_fingerprints_are_distinguished() {
        let cache = PlanCache::<usize>::default();
        {
            let mut entries = cache.entries.write().unwrap();
            let clash = key(3).operation.fingerprint(&key(3).alignments);
            entries.push(CachedPlan { fingerprint: clash, key: key(9), plan: Arc::new(9), last_used: AtomicU64::new(0) });
        }
        let mut made = 0;
        assert_eq!(get(&cache, 3, &mut made), 3);
        assert_eq!(get(&cache, 3, &mut made), 3);
        assert_eq!(made, 1);
    }
}
