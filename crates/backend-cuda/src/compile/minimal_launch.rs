//! Launches of a minimal kernel, to measure the host's overhead per launch. Contains unsafe code for the launch.

use crate::compile::program::CudaProgram;
use crate::driver::Context;
use crate::error::Result;

/// Compiles a kernel without parameters that keeps one warp busy for `micros` microseconds, and returns a closure that launches the kernel.
/// The host time of one launch is a lower bound for the host time of any operation.
pub fn minimal_launcher(context: &'static Context, micros: u32) -> Result<impl Fn() -> Result<()>> {
    let source = include_str!("../kernels/spin.cu");
    let options = [&*format!("-DMICROS={micros}")];
    let kernel = CudaProgram { name: "spin.cu", source, options: &options, ..CudaProgram::default() }
        .compile_and_load(context)?
        .extern_c_function("spin")?;
    // SAFETY: the kernel has no parameters.
    Ok(move || unsafe { kernel.launch([1; 3], [32, 1, 1], 0, &mut []) })
}
