//! Execution of a call: checks whether CUB supports the call, compiles its kernels, and launches them. `unsafe` is allowed here for the
//! launch.

use std::sync::Arc;

use cuprum_backend_cuda::CudaError;
use cuprum_backend_cuda::codegen::{KernelKey, pack_params};
use cuprum_backend_cuda::device::{self, CudaBuffer};
use cuprum_backend_cuda::driver::Context;
use cuprum_backend_cuda::module::Function;
use cuprum_core::{Call, DeclineReason, Error, Outcome, Program, Result};

use crate::compile::{self, CompiledKernels};
use crate::kernel_parameter_lists::{DevicePointer, KernelParameters, ProgramParams};
use crate::kernel_source::GeneratedSource;

/// Name of the accelerator.
pub const ACCELERATOR_NAME: &str = "cub";

/// The parameters of a call that determine its kernels.
pub trait KernelRequest {
    /// Returns the cache key of the compiled kernels.
    fn kernel_key(&self) -> KernelKey<'_>;

    /// Returns the CUDA source of the kernels.
    ///
    /// # Errors
    /// Returns the name of an operation of the program that has no CUDA implementation.
    fn cuda_source(&self) -> std::result::Result<GeneratedSource, &'static str>;

    /// Returns whether the kernels take seconds to compile and the accelerator `cuda` computes equal results sooner.
    ///
    /// Such kernels may be compiled in the background while the accelerator `cuda` runs the call.
    fn takes_long_to_compile(&self) -> bool {
        false
    }
}

/// A call together with its compiled kernels.
pub struct LaunchContext<'a> {
    /// The call.
    pub call: &'a Call<'a>,
    /// CUDA context of the call's device.
    pub context: &'static Context,
    /// Device address of the first element of each input.
    pub inputs: &'a [u64],
    kernels: CompiledKernels,
}

/// Converts `call` to a request by `describe`, then compiles the kernels of the request and launches them. Declines the call if `describe`
/// returns a reason. Also declines if the kernels do not compile or are still being compiled in the background.
///
/// `describe` receives the address of the first element of each input.
pub fn compile_and_launch_call<R: KernelRequest>(
    call: &Call,
    describe: impl FnOnce(&[u64]) -> std::result::Result<R, DeclineReason>,
    launch: impl FnOnce(&LaunchContext, &R) -> Result<Outcome>,
) -> Result<Outcome> {
    let inputs = device::pointers_to_read(call.inputs)?;
    let request = match describe(&inputs) {
        Ok(request) => request,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let context = device::context(call.device)?;
    let compiled =
        compile::get_or_compile_kernels(context, request.kernel_key(), request.takes_long_to_compile(), || request.cuda_source());
    match compiled.map_err(|e| to_core_error_of_call(call, e))? {
        Ok(kernels) => launch(&LaunchContext { call, context, inputs: &inputs, kernels }, &request),
        Err(reason) => Ok(Outcome::Declined(reason)),
    }
}

fn to_core_error_of_call(call: &Call, error: CudaError) -> Error {
    device::to_core_error(ACCELERATOR_NAME, call.op.name(), call.device, error)
}

impl LaunchContext<'_> {
    /// Converts an error of the CUDA driver into an error of the call.
    pub fn to_call_error(&self, error: CudaError) -> Error {
        to_core_error_of_call(self.call, error)
    }

    /// Packs the addresses `inputs` and the scalars of `program` into the C++ struct `Params`.
    pub fn pack_program_params(&self, program: &Program, inputs: &[u64]) -> Result<ProgramParams> {
        let fault = device::error_word_address(self.context, program).map_err(|e| self.to_call_error(e))?;
        Ok(ProgramParams(pack_params(program, inputs, fault)))
    }

    /// Returns the addresses of the program's inputs, and the address of the call's additional input (values, edges or offsets). The
    /// second address is null if the call has no additional input.
    pub fn program_input_addresses(&self) -> (&[u64], DevicePointer) {
        let (program_inputs, extra) = self.call.program_inputs();
        let address = if extra.is_some() { self.inputs.last().copied().unwrap_or(0) } else { 0 };
        (&self.inputs[..program_inputs.len().min(self.inputs.len())], DevicePointer(address))
    }

    /// Queues a command that sets `words` 32-bit words of `buffer` to zero, starting at byte `offset`.
    pub fn queue_zero_fill(&self, buffer: &CudaBuffer, offset: usize, words: usize) -> Result<()> {
        self.context.fill(buffer.memory(), offset, [0u8; 4], words).map_err(|e| self.to_call_error(e))
    }

    /// Returns how many blocks of `P`'s kernel the whole device runs at once. Each block has `threads` threads and `shared_bytes` bytes of
    /// dynamic shared memory.
    pub fn resident_block_count<P: KernelParameters>(&self, threads: u32, shared_bytes: u32) -> Result<u32> {
        let per_multiprocessor = self.kernel_function::<P>()?.blocks_per_sm(threads, shared_bytes).map_err(|e| self.to_call_error(e))?;
        Ok(per_multiprocessor.max(1) * self.context.info().sm_count.max(1))
    }

    /// Returns the grid size for a kernel whose blocks loop over work items: `work_items`, but at most `waves` times the number of resident
    /// blocks, and at least 1. Each block has `threads` threads and `shared_bytes` bytes of dynamic shared memory.
    pub fn grid_size<P: KernelParameters>(&self, threads: u32, shared_bytes: u32, work_items: u64, waves: u32) -> Result<u32> {
        let limit = self.resident_block_count::<P>(threads, shared_bytes)?.saturating_mul(waves);
        Ok(u32::try_from(work_items).unwrap_or(u32::MAX).min(limit).max(1))
    }

    /// Queues the kernel whose parameter list `P` declares.
    ///
    /// # Safety
    /// Until the kernel has run, each device address must be valid for the kernel's accesses, or null where the kernel allows null. The
    /// sizes in `parameters` must be those of the memory at these addresses. `grid` and `threads` must be those that the kernel expects.
    #[inline]
    pub unsafe fn launch_kernel<P: KernelParameters>(&self, grid: u32, threads: u32, shared_bytes: u32, parameters: &P) -> Result<()> {
        let kernel = self.kernel_function::<P>()?;
        // SAFETY: the number, order and types of the parameters are those of the kernel, as a test in `parameter_tests` checks. The caller
        // guarantees that the addresses and sizes in `parameters`, `grid` and `threads` are valid for the kernel.
        unsafe { kernel.launch([grid, 1, 1], [threads, 1, 1], shared_bytes, parameters.argument_pointers().pointers()) }
            .map_err(|e| self.to_call_error(e))
    }

    fn kernel_function<P: KernelParameters>(&self) -> Result<&Arc<Function>> {
        let missing =
            || Error::backend(ACCELERATOR_NAME, self.call.op.name(), format!("the compiled source has no kernel {}", P::KERNEL_NAME));
        self.kernels.find_kernel(P::KERNEL_NAME).ok_or_else(missing)
    }
}
