//! `cuprum ... | head`: ending quietly when the reader of standard output is gone, as other commands do.
#![allow(unsafe_code)]

/// Undoes Rust's ignoring of SIGPIPE, so that writing to a closed pipe ends the process without a message.
pub fn restore() {
    #[cfg(unix)]
    // SAFETY: SIG_DFL is a valid disposition, and no other thread runs yet that could be setting one.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}
