//! Thread-local modes of kernels: whether a kernel that declines a call also writes a message with the reason, and whether a call waits
//! for the compilation of its kernel.

use std::cell::Cell;
use std::thread::LocalKey;

thread_local! {
    static WANTS_REASONS: Cell<bool> = const { Cell::new(false) };
    static BLOCKS_ON_COMPILATION: Cell<bool> = const { Cell::new(false) };
}

/// Guard of a thread-local mode of kernels, which stays on until the guard is dropped.
pub(crate) struct ModeGuard {
    mode: &'static LocalKey<Cell<bool>>,
    previous: bool,
}

impl ModeGuard {
    fn new(mode: &'static LocalKey<Cell<bool>>) -> ModeGuard {
        ModeGuard { mode, previous: mode.replace(true) }
    }

    /// Lets kernels that decline format their reasons, until the guard is dropped.
    pub(crate) fn formatting_reasons() -> ModeGuard {
        ModeGuard::new(&WANTS_REASONS)
    }

    /// Lets kernels compile in the foreground until the guard is dropped, as under [`CompileMode::Wait`](crate::settings::CompileMode::Wait).
    pub(crate) fn compiling_in_foreground() -> ModeGuard {
        ModeGuard::new(&BLOCKS_ON_COMPILATION)
    }
}

impl Drop for ModeGuard {
    fn drop(&mut self) {
        self.mode.set(self.previous);
    }
}

/// Returns whether kernels that decline should format their reasons.
#[inline]
pub(crate) fn wants_reasons() -> bool {
    WANTS_REASONS.get()
}

/// Returns whether kernels should compile now instead of declining, because no other accelerator has accepted the call.
#[inline]
pub(crate) fn blocks_on_compilation() -> bool {
    BLOCKS_ON_COMPILATION.get()
}
