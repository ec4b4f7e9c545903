//! Parallel regions, which threads join as they wake up. The end of a region waits only for threads that have joined the region, because
//! waking fifteen threads takes longer than most operations on 2^18 elements.
#![allow(unsafe_code)]

use std::any::Any;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;

use rayon::ThreadPool;

/// Number of times that the caller polls the region's state, a few nanoseconds each, before it parks.
const SPIN_LIMIT: usize = if cfg!(miri) { 4 } else { 1 << 12 };

/// The bit of [`ParallelRegion::state`] that is set when the region closes. No thread can enter a closed region.
const CLOSED_BIT: usize = 1 << (usize::BITS - 1);

/// Runs `work` on this thread and on up to `threads - 1` threads of the pool. Returns when every thread that has begun `work` has finished.
/// A panic in any of these threads is resumed on this thread.
pub(super) fn run_region(pool: &ThreadPool, threads: usize, work: &(dyn Fn() + Sync)) {
    // SAFETY: the transmute extends the lifetime only. `ParallelRegion::run_helper` dereferences the pointer only while this function runs:
    // `CloseRegionOnDrop` waits for all active helpers before this function returns.
    let shared_work = unsafe { std::mem::transmute::<*const (dyn Fn() + Sync + '_), *const (dyn Fn() + Sync + 'static)>(work) };
    let region = Arc::new(ParallelRegion {
        work: shared_work,
        threads,
        state: AtomicUsize::new(0),
        caller: std::thread::current(),
        panic: Mutex::default(),
    });
    {
        let _close = CloseRegionOnDrop(&region);
        for position in region.helper_positions_woken_by(0) {
            let region = region.clone();
            pool.spawn(move || region.run_helper(position));
        }
        work();
    }
    let panic = region.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

/// State of one parallel region, shared by the caller and the helper threads of the pool.
struct ParallelRegion {
    /// The closure that each participating thread runs.
    work: *const (dyn Fn() + Sync),
    /// Maximum number of threads, including the caller.
    threads: usize,
    /// Number of active helpers, plus [`CLOSED_BIT`].
    state: AtomicUsize,
    caller: Thread,
    /// Payload of the first panic of a helper.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `work` points to a `Sync` closure. `ParallelRegion::run_helper` dereferences `work` only until `CloseRegionOnDrop` has closed the
// region.
unsafe impl Send for ParallelRegion {}
// SAFETY: `work` points to a `Sync` closure. `ParallelRegion::run_helper` dereferences `work` only until `CloseRegionOnDrop` has closed the
// region.
unsafe impl Sync for ParallelRegion {}

impl ParallelRegion {
    /// Returns the positions of the helpers that the thread at `position` wakes: its children in a binary tree, at most two. The caller
    /// has position 0.
    fn helper_positions_woken_by(&self, position: usize) -> impl Iterator<Item = usize> + use<> {
        let threads = self.threads;
        (2 * position + 1..2 * position + 3).take_while(move |&position| position < threads)
    }

    /// Runs `work` on a helper thread, unless the region has closed.
    fn run_helper(self: Arc<ParallelRegion>, position: usize) {
        if !self.enter_region() {
            return;
        }
        for position in self.helper_positions_woken_by(position) {
            let region = self.clone();
            rayon::spawn(move || region.run_helper(position));
        }
        // SAFETY: this thread has entered the region. The caller owns the closure behind `work` and waits in `CloseRegionOnDrop` until this
        // thread leaves.
        let done = catch_unwind(AssertUnwindSafe(|| unsafe { (*self.work)() }));
        if let Err(panic) = done {
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
        }
        self.leave_region();
    }

    fn enter_region(&self) -> bool {
        let next = |state: usize| if state & CLOSED_BIT == 0 { Some(state + 1) } else { None };
        self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, next).is_ok()
    }

    fn leave_region(&self) {
        if self.state.fetch_sub(1, Ordering::Release) == CLOSED_BIT + 1 {
            self.caller.unpark();
        }
    }
}

/// Closes the region when dropped, and waits until no helper is active, also while a panic unwinds.
struct CloseRegionOnDrop<'a>(&'a ParallelRegion);

impl Drop for CloseRegionOnDrop<'_> {
    fn drop(&mut self) {
        let CloseRegionOnDrop(region) = self;
        if region.state.fetch_or(CLOSED_BIT, Ordering::AcqRel) == 0 {
            return;
        }
        for _ in 0..SPIN_LIMIT {
            if region.state.load(Ordering::Acquire) == CLOSED_BIT {
                return;
            }
            spin_loop();
        }
        while region.state.load(Ordering::Acquire) != CLOSED_BIT {
            std::thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap()
    }

    #[test]
    fn no_helper_is_active_after_return() {
        let pool = pool();
        for round in 0..if cfg!(miri) { 10 } else { 2000 } {
            let (inside, begun) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let work = || {
                inside.fetch_add(1, Ordering::SeqCst);
                begun.fetch_add(1, Ordering::SeqCst);
                for _ in 0..(round % 7) * 100 {
                    spin_loop();
                }
                inside.fetch_sub(1, Ordering::SeqCst);
            };
            run_region(&pool, 1 + round % 5, &work);
            assert_eq!(inside.load(Ordering::SeqCst), 0);
            assert!((1..=1 + round % 5).contains(&begun.load(Ordering::SeqCst)));
        }
    }

    #[test]
    fn all_threads_join_long_work() {
        let (pool, begun) = (pool(), AtomicUsize::new(0));
        let work = || {
            begun.fetch_add(1, Ordering::SeqCst);
            while begun.load(Ordering::SeqCst) < 4 {
                std::thread::yield_now();
            }
        };
        run_region(&pool, 4, &work);
        assert_eq!(begun.into_inner(), 4);
    }

    #[test]
    fn helper_panic_reaches_the_caller() {
        let (pool, caller) = (pool(), std::thread::current().id());
        let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            begun.fetch_add(1, Ordering::SeqCst);
            while begun.load(Ordering::SeqCst) < 3 {
                std::thread::yield_now();
            }
            assert!(std::thread::current().id() == caller, "a helper");
            ended.fetch_add(1, Ordering::SeqCst);
        };
        let result = catch_unwind(AssertUnwindSafe(|| run_region(&pool, 3, &work)));
        assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "a helper");
        assert_eq!(ended.into_inner(), 1);
        run_region(&pool, 3, &|| ()); // the pool still works
    }

    #[test]
    fn caller_panic_waits_for_helpers() {
        let (pool, caller) = (pool(), std::thread::current().id());
        let (begun, inside) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            inside.fetch_add(1, Ordering::SeqCst);
            begun.fetch_add(1, Ordering::SeqCst);
            while begun.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
            assert!(std::thread::current().id() != caller, "the caller");
            std::thread::sleep(std::time::Duration::from_millis(5));
            inside.fetch_sub(1, Ordering::SeqCst);
        };
        let result = catch_unwind(AssertUnwindSafe(|| run_region(&pool, 2, &work)));
        assert_eq!((result.is_err(), inside.into_inner()), (true, 1), "the caller's panic must wait for the helper");
    }

    #[test]
    fn regions_can_nest() {
        let (pool, count) = (pool(), AtomicUsize::new(0));
        let inner = || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        run_region(&pool, 4, &|| (0..5).for_each(|_| run_region(&pool, 3, &inner)));
        assert!(count.into_inner() >= 5);
    }
}
