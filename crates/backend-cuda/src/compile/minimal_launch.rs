//! The launch of a minimal kernel, which measures the host's overhead. Contains unsafe code for the launch.

use crate::compile::program::CudaProgram;
use crate::driver::Context;
use crate::error::Result;

/// Returns a closure that launches a kernel without parameters, which occupies one warp for `micros` microseconds. The host
/// time of one launch is a lower bound for any call.
pub fn minimal_launch(context: &'static Context, micros: u32) -> Result<impl Fn() -> Result<()>> {
    let source = include_str!("../kernels/spin.cu");
    let options = [&*format!("-DMICROS={micros}")];
    let kernel =
        CudaProgram { name: "spin.cu", source, options: &options, ..CudaProgram::default() }.build(context)?.function_named("spin")?;
    // SAFETY: the kernel has no parameters.
    Ok(move || unsafe { kernel.launch([1; 3], [32, 1, 1], 0, &mut []) })
}
