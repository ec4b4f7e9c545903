//! The setting that decides whether a kernel compiles before its call or on a background thread (`CUPRUM_COMPILE`).

use super::registry;
use crate::call::blocks_on_compilation;
use crate::error::Result;
use crate::settings::{CompileMode, compile_mode_variable};

/// Returns the compile mode for calls of this thread: the value of `CUPRUM_COMPILE`. If the variable is not set, the mode is
/// [`CompileMode::Wait`] if the user set the accelerator order, else [`CompileMode::Background`].
///
/// The mode is also [`CompileMode::Wait`] while dispatch retries a call that every kernel declined, and during
/// [`warm_up`](crate::warm_up()).
///
/// # Errors
/// [`Error::Setting`](crate::Error::Setting) for an unknown value.
pub fn compile_mode() -> Result<CompileMode> {
    let unset = || if registry::is_accelerator_order_set() { CompileMode::Wait } else { CompileMode::Background };
    let set = compile_mode_variable()?;
    Ok(if blocks_on_compilation() { CompileMode::Wait } else { set.unwrap_or_else(unset) })
}
