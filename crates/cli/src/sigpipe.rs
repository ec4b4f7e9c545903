//! Quiet exit when the reader of standard output closes the pipe, as in `cuprum ... | head`.
#![allow(unsafe_code)]

/// Restores the default action of SIGPIPE, which Rust ignores. Writing to a closed pipe then ends the process silently.
pub fn restore_default_action() {
    #[cfg(unix)]
    // SAFETY: SIG_DFL is a valid disposition, and `main` calls this function before it starts threads.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}
