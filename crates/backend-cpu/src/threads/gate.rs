//! Work that threads of a pool join as they wake up. Whoever asked for it waits for those that came in time, and for no others: waking
//! fifteen threads takes longer than most work of a quarter of a million elements.
#![allow(unsafe_code)]

use std::any::Any;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;

use rayon::ThreadPool;

/// Looks at the gate, some nanoseconds each, before whoever closed it sleeps until the last thread has left.
const SPINS: usize = if cfg!(miri) { 4 } else { 1 << 12 };

/// The bit of [`Gate::state`] that says that nobody is let in any more.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// Runs `work` on this thread and on up to `threads - 1` of the pool, until it has returned on all that began it before it did on this one.
/// A panic of any of them is this thread's.
pub(super) fn together(pool: &ThreadPool, threads: usize, work: &(dyn Fn() + Sync)) {
    // SAFETY: a pointer of the same layout; `Gate::help` says who follows it.
    let work_of_all = unsafe { std::mem::transmute::<*const (dyn Fn() + Sync + '_), *const (dyn Fn() + Sync + 'static)>(work) };
    let gate =
        Arc::new(Gate { work: work_of_all, threads, state: AtomicUsize::new(0), caller: std::thread::current(), panic: Mutex::default() });
    {
        let _closes = Closes(&gate);
        for place in gate.woken_by(0) {
            let gate = gate.clone();
            pool.spawn(move || gate.help(place));
        }
        work();
    }
    let panic = gate.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

struct Gate {
    /// What everybody does who is let in.
    work: *const (dyn Fn() + Sync),
    /// The most threads, whoever asked included.
    threads: usize,
    /// How many helpers are inside, and [`CLOSED`].
    state: AtomicUsize,
    caller: Thread,
    /// What a helper panicked with.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `work` points to what is `Sync`, and is followed as `Gate::help` says.
unsafe impl Send for Gate {}
// SAFETY: as above.
unsafe impl Sync for Gate {}

impl Gate {
    /// The helpers that one wakes, before it works itself: two, as these wake others, so that nobody spends long on it.
    fn woken_by(&self, place: usize) -> impl Iterator<Item = usize> + use<> {
        let threads = self.threads;
        (2 * place + 1..2 * place + 3).take_while(move |&place| place < threads)
    }

    /// One helper's share, if it comes in time.
    fn help(self: Arc<Gate>, place: usize) {
        if !self.enter() {
            return;
        }
        for place in self.woken_by(place) {
            let gate = self.clone();
            rayon::spawn(move || gate.help(place));
        }
        // SAFETY: this thread is inside, and until it has left whoever asked does not return, whose reference it is.
        let done = catch_unwind(AssertUnwindSafe(|| unsafe { (*self.work)() }));
        if let Err(panic) = done {
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
        }
        self.leave();
    }

    fn enter(&self) -> bool {
        let next = |state: usize| if state & CLOSED == 0 { Some(state + 1) } else { None };
        self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, next).is_ok()
    }

    fn leave(&self) {
        if self.state.fetch_sub(1, Ordering::Release) == CLOSED + 1 {
            self.caller.unpark();
        }
    }
}

/// Closes the gate when dropped, and waits until it is empty.
struct Closes<'a>(&'a Gate);

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        let Closes(gate) = self;
        if gate.state.fetch_or(CLOSED, Ordering::AcqRel) == 0 {
            return;
        }
        for _ in 0..SPINS {
            if gate.state.load(Ordering::Acquire) == CLOSED {
                return;
            }
            spin_loop();
        }
        while gate.state.load(Ordering::Acquire) != CLOSED {
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
    fn nobody_is_inside_when_it_returns() {
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
            together(&pool, 1 + round % 5, &work);
            assert_eq!(inside.load(Ordering::SeqCst), 0);
            assert!((1..=1 + round % 5).contains(&begun.load(Ordering::SeqCst)));
        }
    }

    #[test]
    fn all_of_them_come_if_there_is_time() {
        let (pool, begun) = (pool(), AtomicUsize::new(0));
        let work = || {
            begun.fetch_add(1, Ordering::SeqCst);
            while begun.load(Ordering::SeqCst) < 4 {
                std::thread::yield_now();
            }
        };
        together(&pool, 4, &work);
        assert_eq!(begun.into_inner(), 4);
    }

    #[test]
    fn a_panic_of_a_helper_is_the_callers() {
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
        let result = catch_unwind(AssertUnwindSafe(|| together(&pool, 3, &work)));
        assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "a helper");
        assert_eq!(ended.into_inner(), 1);
        together(&pool, 3, &|| ()); // the pool goes on
    }

    #[test]
    fn a_panic_of_the_caller_waits_for_helpers() {
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
        let result = catch_unwind(AssertUnwindSafe(|| together(&pool, 2, &work)));
        assert_eq!((result.is_err(), inside.into_inner()), (true, 1), "the caller alone did not get out");
    }

    #[test]
    fn helpers_may_ask_for_help() {
        let (pool, count) = (pool(), AtomicUsize::new(0));
        let inner = || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        together(&pool, 4, &|| (0..5).for_each(|_| together(&pool, 3, &inner)));
        assert!(count.into_inner() >= 5);
    }
}
