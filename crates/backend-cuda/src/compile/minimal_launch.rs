//! The launch of a minimal kernel, to measure the overhead of the host. Allows unsafe code for the launch.

use crate::compile::program::Program;
use crate::driver::Context;
use crate::error::Result;

/// Returns a closure that launches a kernel without parameters, which occupies one warp for `micros` microseconds. Its host
/// time is a lower bound for any call.
pub fn minimal_launch(context: &'static Context, micros: u32) -> Result<impl Fn() -> Result<()>> {
    let source = include_str!("../kernels/spin.cu");
    let options = [&*format!("-DMICROS={micros}")];
    let kernel = Program { name: "spin.cu", source, options: &options, ..Program::default() }.build(context)?.function_named("bare")?;
    // SAFETY: the kernel has no parameters.
    Ok(move || unsafe { kernel.launch([1; 3], [32, 1, 1], 0, &mut []) })
}
