//! What is to be done before the process ends. A named unsafe room: the C library's `atexit`, and the number of a thread.

use std::cell::RefCell;
use std::ffi::c_int;

unsafe extern "C" {
    fn atexit(f: extern "C" fn()) -> c_int;
}

/// Calls a function when its thread ends.
struct AtEnd(extern "C" fn());

impl Drop for AtEnd {
    fn drop(&mut self) {
        (self.0)();
    }
}

thread_local! {
    static AT_END: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
}

/// Has the C library call `f` when the process ends, before what was put down earlier (libraries' own ends, as they are loaded).
pub fn register(f: extern "C" fn()) {
    // SAFETY: the function is `atexit` of ISO C; what it is given has that signature and lives as long as the process.
    if unsafe { atexit(f) } != 0 {
        tracing::debug!("atexit refused: compilations may be cut off by the end of the process");
    }
}

/// Has `f` called when this thread ends. Where the main thread ends the process, that comes before anything that was put down for the end of
/// the process, even later than this.
pub fn register_on_thread(f: extern "C" fn()) {
    // A thread that is ending does without.
    let _ = AT_END.try_with(|at_end| at_end.try_borrow_mut().map(|mut at_end| at_end.get_or_insert(AtEnd(f)).0));
}

/// Whether this is the thread that the process began with.
#[cfg(target_os = "linux")]
pub fn is_main_thread() -> bool {
    // SAFETY: neither takes or touches anything.
    unsafe { libc::gettid() == libc::getpid() }
}

#[cfg(not(target_os = "linux"))]
pub fn is_main_thread() -> bool {
    std::thread::current().name() == Some("main")
}
