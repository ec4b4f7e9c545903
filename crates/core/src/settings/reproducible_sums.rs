//! Whether sums have the same bits on every run: a setting of the process or of a scope.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::Result;
use crate::settings::{self, SettingCheck};

const REPRODUCIBLE_SUMS_VARIABLE: &str = "CUPRUM_REPRODUCIBLE_SUMS";

/// The value of [`set_reproducible_sums`]: 0 if it has not been called, 1 for false, 2 for true.
static PROCESS_REPRODUCIBLE_SUMS: AtomicU8 = AtomicU8::new(0);

thread_local! {
    static SCOPED_REPRODUCIBLE_SUMS: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Returns the value of `CUPRUM_REPRODUCIBLE_SUMS`, read once.
fn reproducible_sums_from_environment() -> Result<bool> {
    static PARSED_REPRODUCIBLE_SUMS: OnceLock<Result<bool>> = OnceLock::new();
    PARSED_REPRODUCIBLE_SUMS
        .get_or_init(|| {
            settings::env(REPRODUCIBLE_SUMS_VARIABLE).map_or(Ok(true), |text| settings::parse_switch(REPRODUCIBLE_SUMS_VARIABLE, &text))
        })
        .clone()
}

inventory::submit! {
    SettingCheck { variable: REPRODUCIBLE_SUMS_VARIABLE, needs_devices: false, run: || reproducible_sums_from_environment().map(|_| ()) }
}

/// Returns whether sums on this thread have the same bits on every run.
///
/// The first of these that is set: the innermost [`with_reproducible_sums`], [`set_reproducible_sums`], `CUPRUM_REPRODUCIBLE_SUMS`. The
/// default is true.
///
/// # Errors
/// [`Error::Setting`](crate::Error::Setting) if the variable is not a switch.
pub fn reproducible_sums() -> Result<bool> {
    match (SCOPED_REPRODUCIBLE_SUMS.get(), PROCESS_REPRODUCIBLE_SUMS.load(Ordering::Relaxed)) {
        (Some(value), _) => Ok(value),
        (None, 0) => reproducible_sums_from_environment(),
        (None, code) => Ok(code == 2),
    }
}

/// Sets, for the process, whether sums have the same bits on every run. The default is true, unlike in PyTorch, where
/// `use_deterministic_algorithms` requests it.
///
/// The value false allows [`update_at`](crate::NdArray::update_at) and [`scatter`](crate::scatter) on a GPU to add floats by atomic
/// operations, in any order. This takes less memory than reproducible sums, and less time for values of very different magnitudes, but the
/// last bits of a sum vary between runs. Subnormal numbers of float32 and complex64 count as 0, also those in the elements that receive
/// values. Other operations, and the CPU, are unaffected.
///
/// ```
/// use cuprum_core::{reproducible_sums, set_reproducible_sums, with_reproducible_sums};
/// # fn main() -> cuprum_core::Result<()> {
/// set_reproducible_sums(false);
/// assert!(!reproducible_sums()?);
/// with_reproducible_sums(true, || assert!(reproducible_sums().unwrap()));
/// # Ok(())
/// # }
/// ```
pub fn set_reproducible_sums(on: bool) {
    PROCESS_REPRODUCIBLE_SUMS.store(1 + on as u8, Ordering::Relaxed);
}

/// Runs `f` with `on` as the setting of this thread: whether sums have the same bits on every run, as [`set_reproducible_sums`] describes.
pub fn with_reproducible_sums<R>(on: bool, f: impl FnOnce() -> R) -> R {
    struct RestoreReproducibleSumsOnDrop(Option<bool>);
    impl Drop for RestoreReproducibleSumsOnDrop {
        fn drop(&mut self) {
            SCOPED_REPRODUCIBLE_SUMS.set(self.0);
        }
    }
    let _restore = RestoreReproducibleSumsOnDrop(SCOPED_REPRODUCIBLE_SUMS.replace(Some(on)));
    f()
}
