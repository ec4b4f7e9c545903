//! What is to be done before the process ends. A named unsafe room: the C library's `atexit`.

use std::ffi::c_int;

unsafe extern "C" {
    fn atexit(f: extern "C" fn()) -> c_int;
}

/// Has the C library call `f` when the process ends, before what was put down earlier (libraries' own ends, as they are loaded).
pub fn register(f: extern "C" fn()) {
    // SAFETY: the function is `atexit` of ISO C; what it is given has that signature and lives as long as the process.
    if unsafe { atexit(f) } != 0 {
        tracing::debug!("atexit refused: compilations may be cut off by the end of the process");
    }
}
