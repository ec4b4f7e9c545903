//! User-written kernels and their launches. Allows unsafe code for the launches.
#![allow(unsafe_code)]

use std::sync::{Arc, OnceLock};

use cuprum_core::dispatch::record_launch;
use cuprum_core::{CallRecord, Device, Error, KernelLaunch, Result, Stream};
use smallvec::SmallVec;

use super::RawSource;
use super::kernel_arg::{self, Arg, ParameterInfo};
use super::kernel_signature::{self, Parameter};
use super::launch::{Launch, LaunchLimits, OP};
use crate::CudaError;
use crate::compile::module::{Args, Function, FunctionAttributes};
use crate::device;
use crate::driver::recent_work;

/// A user-written CUDA kernel on one device. Clones are cheap and share the kernel. The kernel keeps its module loaded.
#[derive(Clone, Debug)]
pub struct RawKernel(Arc<KernelState>);

#[derive(Debug)]
struct KernelState {
    function: Arc<Function>,
    name: Arc<str>,
    device: Device,
    attributes: FunctionAttributes,
    /// The parameters in the kernel's declaration, if it is known.
    declared: Option<Vec<Parameter>>,
    /// Sizes of the parameters in bytes, if the driver reports them.
    sizes: Option<SmallVec<[usize; 16]>>,
    /// The number of threads per block with the best occupancy, for launches without dynamic shared memory.
    best_block_size: OnceLock<u32>,
}

impl RawKernel {
    /// Compiles CUDA C++ for the current device and returns its `extern "C"` kernel `name` (`cupy.RawKernel`). [`RawSource`]
    /// supports options, headers and templates.
    ///
    /// # Errors
    /// The errors of [`RawSource::compile`] and [`RawModule::kernel`](super::RawModule::kernel).
    pub fn compile(source: &str, name: &str) -> Result<RawKernel> {
        RawSource::new(source).compile()?.kernel(name)
    }

    pub(super) fn new(function: Arc<Function>, name: &str, device: Device, declared: Option<Vec<Parameter>>) -> crate::Result<RawKernel> {
        let (attributes, sizes) = (function.attributes()?, function.parameter_sizes()?);
        let declared = declared.filter(|all| sizes.as_ref().is_none_or(|sizes| sizes.len() == all.len()));
        Ok(RawKernel(Arc::new(KernelState {
            function,
            name: name.into(),
            device,
            attributes,
            declared,
            sizes,
            best_block_size: OnceLock::new(),
        })))
    }

    /// Declares the parameters, such as `"const float* x, float* y, int n"`, so that arguments of another kind or dtype are errors. A
    /// kernel that was compiled from source has the declaration in its source already. A kernel from cubin or PTX has none. A declaration
    /// with macros or parameter packs disables the checks.
    pub fn with_signature(&self, parameters: &str) -> RawKernel {
        let KernelState { function, name, device, attributes, sizes, .. } = &*self.0;
        RawKernel(Arc::new(KernelState {
            function: function.clone(),
            name: name.clone(),
            device: *device,
            attributes: *attributes,
            declared: kernel_signature::parse_parameters(parameters),
            sizes: sizes.clone(),
            best_block_size: OnceLock::new(),
        }))
    }

    /// Returns the name under which the kernel was requested.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the device of the kernel.
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// Returns the number of registers, the sizes of local and shared memory, and the maximum number of threads per block.
    pub fn attributes(&self) -> FunctionAttributes {
        self.0.attributes
    }

    /// Returns the sizes of the parameters in bytes, if the driver reports them (CUDA 12.4 and later).
    pub fn parameter_sizes(&self) -> Option<&[usize]> {
        self.0.sizes.as_deref()
    }

    /// Returns the number of threads per block with the best occupancy, for `shared_bytes` of dynamic shared memory.
    ///
    /// # Errors
    /// [`Error::Value`] for more shared memory than a block can have.
    pub fn best_block(&self, shared_bytes: u32) -> Result<u32> {
        self.raise_limit_and_check_launch(&Launch::new(1, 1).with_shared_bytes(shared_bytes))?;
        self.0.function.best_block_size(shared_bytes).map(|threads| threads.max(1)).map_err(|e| self.kernel_error(e))
    }

    /// Returns [`Launch::for_items`] for `items`, with the block size of the best occupancy.
    pub fn launch_for_items(&self, items: usize) -> Result<Launch> {
        let threads = match self.0.best_block_size.get() {
            Some(&threads) => threads,
            None => {
                let threads = self.best_block(0)?;
                *self.0.best_block_size.get_or_init(|| threads)
            }
        };
        Ok(Launch::for_items(items, threads))
    }

    /// Returns how many blocks of `launch` are resident on one multiprocessor at once.
    pub fn blocks_per_multiprocessor(&self, launch: Launch) -> Result<u32> {
        self.raise_limit_and_check_launch(&launch)?;
        self.0.function.blocks_per_sm(launch.threads_per_block(), launch.shared_bytes).map_err(|e| self.kernel_error(e))
    }

    /// Queues the kernel on this thread's stream of the kernel's device, and does not wait. Arrays may be dropped afterwards, because their
    /// memory is reused in stream order.
    ///
    /// Arguments are checked by number, by size if the driver reports it, and by kind and dtype if the kernel was
    /// compiled from source that declares its parameters. Deferred arrays are evaluated first. Errors of the kernel (an illegal address, a
    /// failed `assert`) are returned by a later call that waits for the device.
    ///
    /// ```no_run
    /// use cuprum_backend_cuda::args;
    /// use cuprum_backend_cuda::user_kernels::RawKernel;
    /// use cuprum_core::{DType, NdArray, ones, zeros};
    /// # fn main() -> cuprum_core::Result<()> {
    /// let axpy = RawKernel::compile(
    ///     r#"extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
    ///         int i = blockIdx.x * blockDim.x + threadIdx.x;
    ///         if (i < n) y[i] += a * x[i];
    ///     }"#,
    ///     "axpy",
    /// )?;
    /// let x = ones(1000, DType::F32)?;
    /// let mut y = zeros(1000, DType::F32)?;
    /// // SAFETY: the kernel reads and writes at most 1000 elements of each array.
    /// unsafe { axpy.launch(axpy.launch_for_items(1000)?, args![2.0f32, &x, &mut y, 1000]) }?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0; 1000]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error for arguments or a launch that the kernel or the device does not support. Nothing has been queued then.
    ///
    /// # Safety
    /// The caller guarantees that the kernel:
    /// - reads and writes only inside the arrays of its arguments, and reads only initialised memory;
    /// - does not write arrays that were passed by `&`, and stores only 0 and 1 in arrays of bool;
    /// - has no data races: threads that write an address, or read what others write, use atomics or a barrier;
    /// - has parameters that match the arguments in number and type where `launch` cannot check this: for kernels from cubin or PTX, for
    ///   declarations with macros or packs, and for structs.
    pub unsafe fn launch<'a>(&self, launch: Launch, args: impl AsMut<[Arg<'a>]>) -> Result<()> {
        let mut args = args;
        let args = args.as_mut();
        let KernelState { function, name, device, declared, sizes, .. } = &*self.0;
        self.raise_limit_and_check_launch(&launch)?;
        let parameters = ParameterInfo { declared: declared.as_deref(), sizes: sizes.as_deref() };
        kernel_arg::evaluate_and_check_args(name, *device, args, &parameters)?;
        if launch.grid.contains(&0) {
            return Ok(());
        }
        let prepared = kernel_arg::args_to_bytes(args)?;
        let mut list = Args::new();
        for bytes in &prepared {
            list.push_bytes(bytes);
        }
        let Launch { grid, block, shared_bytes, cooperative } = launch;
        tracing::debug!(kernel = &**name, ?grid, ?block, shared_bytes, cooperative, %device, "raw kernel");
        let pointers = list.pointers();
        let queue = || {
            // SAFETY: the arguments match the parameters in number and size as far as the declaration and the driver describe the
            // parameters. The caller guarantees the rest. Arrays are on the kernel's device and are alive until the launch is queued.
            let queued = unsafe {
                if cooperative {
                    function.launch_cooperative(grid, block, shared_bytes, pointers)
                } else {
                    function.launch(grid, block, shared_bytes, pointers)
                }
            };
            recent_work::record_user_kernel(name);
            queued.map_err(|e| self.kernel_error(e))
        };
        let describe = || {
            let launch = KernelLaunch { kernel: name.to_string(), grid, block };
            CallRecord::from_kernel_launch(
                OP,
                device::DEVICE_KIND_NAME,
                *device,
                launch,
                args.iter().filter_map(Arg::as_array).map(|a| (a.dtype(), a.shape())),
            )
        };
        record_launch(Stream::current(*device), describe, queue)?;
        kernel_arg::record_dependencies(args)
    }

    /// Returns an error if the device cannot run `launch`. Raises the kernel's limit of dynamic shared memory if `launch` uses any,
    /// because the driver computes an occupancy of 0 above the limit.
    fn raise_limit_and_check_launch(&self, launch: &Launch) -> Result<()> {
        let KernelState { function, name, attributes, .. } = &*self.0;
        let info = function.context().info();
        launch.check_launch_limits(
            name,
            &LaunchLimits {
                threads: attributes.max_threads.min(info.threads_per_block),
                shared: info.shared_per_block_optin.max(info.shared_per_block),
                static_shared: attributes.shared_bytes,
            },
        )?;
        if launch.shared_bytes > 0 {
            function.allow_dynamic_shared_memory(launch.shared_bytes).map_err(|e| self.kernel_error(e))?;
        }
        if launch.cooperative {
            let per_sm = function.blocks_per_sm(launch.threads_per_block(), launch.shared_bytes).map_err(|e| self.kernel_error(e))?;
            let most = u64::from(per_sm) * u64::from(info.sm_count);
            if launch.block_count() > most {
                let message =
                    format!("{name}: {} blocks of a cooperative launch; at most {most} are resident on this device", launch.block_count());
                return Err(Error::value(OP, message));
            }
        }
        Ok(())
    }

    fn kernel_error(&self, error: CudaError) -> Error {
        device::to_core_error("cuda", OP, self.0.device, error)
    }
}
