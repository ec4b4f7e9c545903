//! Thread-local modes of kernels. One mode makes kernels that decline a call format a message with the reason. The other makes a call wait
//! for the compilation of its kernel.

use std::cell::Cell;
use std::thread::LocalKey;

thread_local! {
    static WANTS_DECLINE_REASONS: Cell<bool> = const { Cell::new(false) };
    static BLOCKS_ON_COMPILATION: Cell<bool> = const { Cell::new(false) };
}

/// A guard that turns on a thread-local mode of kernels, and restores the previous state when it is dropped.
pub(crate) struct KernelModeGuard {
    mode: &'static LocalKey<Cell<bool>>,
    previous: bool,
}

impl KernelModeGuard {
    fn enable_mode(mode: &'static LocalKey<Cell<bool>>) -> KernelModeGuard {
        KernelModeGuard { mode, previous: mode.replace(true) }
    }

    /// Until the guard is dropped, a kernel that declines a call also formats the text of its reason.
    pub(crate) fn enable_reason_formatting() -> KernelModeGuard {
        KernelModeGuard::enable_mode(&WANTS_DECLINE_REASONS)
    }

    /// Makes calls wait for the compilation of their kernels until the guard is dropped, as under
    /// [`CompileMode::Wait`](crate::settings::CompileMode::Wait).
    pub(crate) fn enable_foreground_compilation() -> KernelModeGuard {
        KernelModeGuard::enable_mode(&BLOCKS_ON_COMPILATION)
    }
}

impl Drop for KernelModeGuard {
    fn drop(&mut self) {
        self.mode.set(self.previous);
    }
}

/// Returns whether kernels that decline a call should format their reasons.
#[inline]
pub(crate) fn wants_decline_reasons() -> bool {
    WANTS_DECLINE_REASONS.get()
}

/// Returns whether kernels should compile now instead of declining, because no other accelerator has accepted the call.
#[inline]
pub(crate) fn blocks_on_compilation() -> bool {
    BLOCKS_ON_COMPILATION.get()
}
