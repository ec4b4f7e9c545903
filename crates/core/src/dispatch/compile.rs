//! The setting that decides whether a kernel compiles before its call or on a background thread (`CUPRUM_COMPILE`).

use super::registry;
use crate::call::blocks_on_compilation;
use crate::error::Result;
use crate::settings::{Compile, compile_variable};

/// Returns the value of `CUPRUM_COMPILE`. The default is [`Compile::Wait`] if the user set an order of accelerators.
///
/// Dispatch also uses [`Compile::Wait`] when it retries a call that no accelerator accepted.
///
/// # Errors
/// [`Error::Setting`](crate::Error::Setting) for an unknown value.
pub fn compile() -> Result<Compile> {
    let unset = || if registry::order_is_named() { Compile::Wait } else { Compile::Background };
    let set = compile_variable()?;
    Ok(if blocks_on_compilation() { Compile::Wait } else { set.unwrap_or_else(unset) })
}
