//! Functions that run before the process ends. `unsafe` is allowed here for the C library's `atexit` and thread ids.

use std::cell::RefCell;
use std::ffi::c_int;

unsafe extern "C" {
    fn atexit(f: extern "C" fn()) -> c_int;
}

/// A guard that calls its function when it is dropped.
struct CallOnDrop(extern "C" fn());

impl Drop for CallOnDrop {
    fn drop(&mut self) {
        (self.0)();
    }
}

thread_local! {
    static THREAD_EXIT_FUNCTION: RefCell<Option<CallOnDrop>> = const { RefCell::new(None) };
}

/// Registers `f` with the C library's `atexit`. Handlers run in reverse order of registration, so `f` runs before the exit handlers of
/// libraries that are already loaded.
pub fn register_at_process_exit(f: extern "C" fn()) {
    // SAFETY: the function is `atexit` of ISO C. Its argument has the required signature and lives as long as the process.
    if unsafe { atexit(f) } != 0 {
        tracing::debug!("atexit failed: the end of the process may interrupt background compilations");
    }
}

/// Registers `f` to run when this thread ends. A thread keeps only the first function that is registered. On the main thread, the function
/// runs before all `atexit` handlers, including those that are registered later.
pub fn register_at_thread_exit(f: extern "C" fn()) {
    // `try_with` fails only if the thread's thread-local values are already destroyed, when it is too late to run `f`.
    let _ = THREAD_EXIT_FUNCTION.try_with(|slot| slot.try_borrow_mut().map(|mut slot| slot.get_or_insert(CallOnDrop(f)).0));
}

/// Returns whether this is the main thread of the process.
#[cfg(target_os = "linux")]
pub fn is_main_thread() -> bool {
    // SAFETY: `gettid` and `getpid` take no arguments and access no memory.
    unsafe { libc::gettid() == libc::getpid() }
}

#[cfg(not(target_os = "linux"))]
pub fn is_main_thread() -> bool {
    std::thread::current().name() == Some("main")
}
