//! The thread pool and parallel loops. Callers split work at indices that depend only on its size, so results do not depend on the
//! number of threads.

mod parallel_region;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cuprum_core::fault_injection::{FailurePoint, inject_io_failure};
use cuprum_core::host_buffer::try_reserve;
use cuprum_core::{Error, Result, settings};
use rayon::{ThreadPool, ThreadPoolBuilder};

use self::parallel_region::run_region;

/// Minimum work for more than one thread, in elementary operations: the number of elements times the number of operations on each element.
/// The value is about the cost of waking one thread. Miri uses a lower value, so that small inputs cover the parallel code.
const MIN_PARALLEL_COST: usize = if cfg!(miri) { 1 << 8 } else { 1 << 17 };

/// Minimum work, in elementary operations, that uses all threads of a pool of eight or more. Less work uses three quarters of them, because
/// a thread that shares its core with another process would delay the end. `exp` of 2^18 float32 takes 43 us on 12 of 16 threads, and 134
/// us on all.
const MIN_COST_FOR_ALL_THREADS: usize = 1 << 23;

thread_local! {
    /// The thread pool set by the enclosing [`with_threads`] call of this thread.
    static SCOPED_THREAD_POOL: RefCell<Option<Arc<ThreadPool>>> = const { RefCell::new(None) };
}

/// Returns the thread pool of the process, with `CUPRUM_NUM_THREADS` threads or one per core. `None` if threads cannot be started.
fn global_thread_pool() -> Option<Arc<ThreadPool>> {
    static GLOBAL_THREAD_POOL: OnceLock<Option<Arc<ThreadPool>>> = OnceLock::new();
    GLOBAL_THREAD_POOL
        .get_or_init(|| {
            let n = settings::num_threads().ok().flatten().unwrap_or_else(logical_processors);
            build_thread_pool(n).ok()
        })
        .clone()
}

fn build_thread_pool(threads: usize) -> Result<Arc<ThreadPool>> {
    let refused = |e: &dyn std::fmt::Display| Error::backend("cpu", "threads", format!("cannot start {threads} threads: {e}"));
    inject_io_failure(FailurePoint::Thread).map_err(|e| refused(&e))?;
    ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("cuprum-cpu-{i}")).build().map(Arc::new).map_err(|e| refused(&e))
}

/// Returns the number of logical processors.
pub fn logical_processors() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

fn current_thread_pool() -> Option<Arc<ThreadPool>> {
    // Uses `try_with`, because a destructor may call this function while the thread ends and the thread-local is inaccessible.
    SCOPED_THREAD_POOL.try_with(|s| s.borrow().clone()).ok().flatten().or_else(global_thread_pool)
}

/// Returns the maximum number of threads that kernels called from this thread use.
pub fn max_threads() -> usize {
    current_thread_pool().map_or(1, |p| p.current_num_threads())
}

/// Runs `f` on this thread. Kernels that `f` calls run on `threads` threads, but at most [`settings::MAX_POOL_THREADS`]. Results do not
/// depend on `threads`.
///
/// # Errors
/// Returns an error if threads cannot be started, or if `threads` is 0.
pub fn with_threads<R>(threads: usize, f: impl FnOnce() -> R) -> Result<R> {
    static THREAD_POOLS_BY_SIZE: Mutex<Option<HashMap<usize, Arc<ThreadPool>>>> = Mutex::new(None);
    struct RestoreThreadPoolOnDrop(Option<Arc<ThreadPool>>);
    impl Drop for RestoreThreadPoolOnDrop {
        fn drop(&mut self) {
            let _ = SCOPED_THREAD_POOL.try_with(|s| s.replace(self.0.take()));
        }
    }
    if threads == 0 {
        return Err(Error::value("with_threads", "at least one thread is needed"));
    }
    let threads = threads.min(settings::MAX_POOL_THREADS);
    let pool = {
        let mut pools = THREAD_POOLS_BY_SIZE.lock().unwrap_or_else(|e| e.into_inner());
        let pools = pools.get_or_insert_default();
        match pools.get(&threads) {
            Some(pool) => pool.clone(),
            None => pools.entry(threads).or_insert(build_thread_pool(threads)?).clone(),
        }
    };
    let _restore = RestoreThreadPoolOnDrop(SCOPED_THREAD_POOL.try_with(|s| s.borrow_mut().replace(pool)).ok().flatten());
    Ok(f())
}

/// Returns the number of threads for work of `cost` elementary operations. The number grows as long as a further thread saves more time
/// than its wake-up takes.
#[inline]
pub fn threads_for_cost(cost: usize) -> usize {
    if cost < MIN_PARALLEL_COST {
        return 1;
    }
    let count = max_threads();
    let most = if count >= 8 && cost < MIN_COST_FOR_ALL_THREADS { count - count / 4 } else { count };
    most.min(cost / (MIN_PARALLEL_COST / 2))
}

/// Calls `body` for every item, in any order, on as many threads as [`threads_for_cost`] returns for `cost`. Each thread creates its own
/// state with `init`.
pub fn for_each<I: Send, S>(
    mut items: impl ExactSizeIterator<Item = I> + Send,
    cost: usize,
    init: impl Fn() -> S + Sync,
    body: impl Fn(&mut S, I) + Sync,
) {
    let threads = threads_for_cost(cost).min(items.len());
    if threads <= 1 {
        return run_items_on_thread(WorkItems::Owned(&mut items), &init, &body);
    }
    let items = Mutex::new(items);
    run_on_threads(threads, &|| run_items_on_thread(WorkItems::Shared(&items), &init, &body));
}

/// Calls `body` for each of `items` on the calling thread. Not inlined, so that the single-threaded and the parallel path share one
/// compiled copy.
#[inline(never)]
fn run_items_on_thread<I: Iterator, S>(mut items: WorkItems<I>, init: &impl Fn() -> S, body: &impl Fn(&mut S, I::Item)) {
    let mut state = init();
    while let Some(item) = items.take_next_item() {
        body(&mut state, item);
    }
}

/// The iterator from which one thread takes its work items.
enum WorkItems<'a, I> {
    /// An iterator over all items, if only one thread runs.
    Owned(&'a mut I),
    /// An iterator that several threads share. Each thread takes the next item when it is idle.
    Shared(&'a Mutex<I>),
}

impl<I: Iterator> WorkItems<'_, I> {
    /// Takes the next item, or returns `None` if there is none. The function is not inlined, so that all loops over one iterator type share
    /// it.
    #[inline(never)]
    fn take_next_item(&mut self) -> Option<I::Item> {
        match self {
            WorkItems::Owned(items) => items.next(),
            WorkItems::Shared(items) => items.lock().unwrap_or_else(PoisonError::into_inner).next(),
        }
    }
}

/// Runs `work` on up to `threads` threads. The closure is a trait object, so that the code of the pool is compiled once and not for each of
/// about a thousand loops.
fn run_on_threads(threads: usize, work: &(dyn Fn() + Sync)) {
    match current_thread_pool() {
        Some(pool) => run_region(&pool, threads, work),
        None => work(),
    }
}

/// Calls `body` for every item like [`for_each`] and returns the results in the order of the items. A failed allocation is returned as an
/// error instead of aborting, because broadcast inputs may have very many items.
///
/// # Errors
/// [`Error::OutOfMemory`] if memory for the results cannot be allocated. `body` is then not called.
pub fn map<I: Send, S, R: Send>(
    items: impl ExactSizeIterator<Item = I> + Send,
    cost: usize,
    init: impl Fn() -> S + Sync,
    body: impl Fn(&mut S, I) -> R + Sync,
) -> Result<Vec<R>> {
    let (mut slots, mut results) = reserve_results(items.len())?;
    for_each(items.zip(slots.iter_mut()), cost, init, |state, (item, slot)| *slot = Some(body(state, item)));
    collect_results(slots, &mut results);
    Ok(results)
}

/// Allocates `len` empty slots that threads fill, and the vector that later takes the results. A separate function, so that it is compiled
/// once per result type instead of once per closure.
#[inline(never)]
fn reserve_results<R>(len: usize) -> Result<(Vec<Option<R>>, Vec<R>)> {
    let (mut slots, mut results) = (Vec::new(), Vec::new());
    try_reserve("map", &mut slots, len)?;
    try_reserve("map", &mut results, len)?;
    slots.resize_with(len, || None);
    Ok((slots, results))
}

/// Moves the results out of `slots` into `results`.
#[inline(never)]
fn collect_results<R>(slots: Vec<Option<R>>, results: &mut Vec<R>) {
    slots.into_iter().for_each(|slot| results.extend(slot));
}

/// Runs `f` inside this thread's pool, for libraries that use rayon's current pool. `f` gets the number of threads that
/// [`threads_for_cost`] returns for `cost`. If that number is 1, and always in Miri, `f` runs on the calling thread.
pub fn run_in_pool<R: Send>(cost: usize, f: impl FnOnce(usize) -> R + Send) -> R {
    match current_thread_pool().filter(|p| !cfg!(miri) && threads_for_cost(cost) > 1 && p.current_num_threads() > 1) {
        None => f(1),
        Some(pool) => pool.install(|| f(threads_for_cost(cost))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_every_item_in_order() {
        for threads in [1, 3] {
            let squares = with_threads(threads, || map(0..1000usize, usize::MAX, || (), |_, i| i * i)).unwrap().unwrap();
            assert!(squares.iter().enumerate().all(|(i, &s)| s == i * i));
        }
        assert!(with_threads(0, || ()).is_err());
    }

    #[test]
    fn too_many_results_are_an_error() {
        let results = map(0..usize::MAX >> 4, 1, || (), |_, i| i);
        assert!(matches!(results, Err(Error::OutOfMemory { .. })));
    }
}
