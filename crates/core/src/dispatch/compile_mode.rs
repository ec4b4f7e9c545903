//! The setting that decides whether a kernel compiles before its call or on a background thread (`CUPRUM_COMPILE`).

use super::registry;
use crate::call::blocks_on_compilation;
use crate::error::Result;
use crate::settings::{CompileMode, compile_variable};

/// Returns the value of `CUPRUM_COMPILE`. The default is [`CompileMode::Wait`] if the user set an order of accelerators.
///
/// Dispatch also uses [`CompileMode::Wait`] when it retries a call that no accelerator accepted.
///
/// # Errors
/// [`Error::Setting`](crate::Error::Setting) for an unknown value.
pub fn compile_mode() -> Result<CompileMode> {
    let unset = || if registry::order_is_named() { CompileMode::Wait } else { CompileMode::Background };
    let set = compile_variable()?;
    Ok(if blocks_on_compilation() { CompileMode::Wait } else { set.unwrap_or_else(unset) })
}
