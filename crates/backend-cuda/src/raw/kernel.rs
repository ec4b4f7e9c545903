//! A kernel that can be launched. A named unsafe room: the launch itself.
#![allow(unsafe_code)]

use std::sync::{Arc, OnceLock};

use cuprum_core::dispatch::record_launch;
use cuprum_core::{Device, Error, KernelLaunch, Record, Result, Stream};
use smallvec::SmallVec;

use super::RawSource;
use super::arg::{self, Arg, Parameters};
use super::launch::{Launch, Limits, OP};
use super::signature::{self, Parameter};
use crate::CudaError;
use crate::accelerator::CUDA;
use crate::device;
use crate::module::{Args, Function, FunctionAttributes};

/// A CUDA kernel of yours, on one device. Cheap to clone; its module stays loaded as long as it lives.
#[derive(Clone, Debug)]
pub struct RawKernel(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    function: Arc<Function>,
    name: Arc<str>,
    device: Device,
    attributes: FunctionAttributes,
    declared: Option<Vec<Parameter>>,
    sizes: Option<SmallVec<[usize; 16]>>,
    /// The size of block without dynamic shared memory that occupies the device best.
    best: OnceLock<u32>,
    /// Whether the driver was told that blocks may use all shared memory there is.
    more_shared: OnceLock<crate::Result<()>>,
}

impl RawKernel {
    /// Compiles CUDA C++ for the current device and gives its kernel of this name, which is declared `extern "C"` (`cupy.RawKernel`).
    /// [`RawSource`] takes options, headers and templates.
    ///
    /// # Errors
    /// As [`RawSource::compile`] and [`RawModule::kernel`](super::RawModule::kernel).
    pub fn compile(source: &str, name: &str) -> Result<RawKernel> {
        RawSource::new(source).compile()?.kernel(name)
    }

    pub(super) fn new(function: Arc<Function>, name: &str, device: Device, declared: Option<Vec<Parameter>>) -> crate::Result<RawKernel> {
        let (attributes, sizes) = (function.attributes()?, function.parameter_sizes()?);
        let declared = declared.filter(|all| sizes.as_ref().is_none_or(|sizes| sizes.len() == all.len()));
        Ok(RawKernel(Arc::new(Inner {
            function,
            name: name.into(),
            device,
            attributes,
            declared,
            sizes,
            best: OnceLock::new(),
            more_shared: OnceLock::new(),
        })))
    }

    /// The kernel with the parameters of this declaration, such as `"const float* x, float* y, int n"`: arguments of another kind or
    /// dtype are refused then. Kernels of a source have the one that stands there; those of a cubin or PTX have none. A macro or a
    /// parameter pack among them tells nothing.
    pub fn with_signature(&self, parameters: &str) -> RawKernel {
        let Inner { function, name, device, attributes, sizes, .. } = &*self.0;
        RawKernel(Arc::new(Inner {
            function: function.clone(),
            name: name.clone(),
            device: *device,
            attributes: *attributes,
            declared: signature::parse(parameters),
            sizes: sizes.clone(),
            best: OnceLock::new(),
            more_shared: OnceLock::new(),
        }))
    }

    /// Its name, as it was asked for.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Where it runs.
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// Registers, local and shared memory, and how many threads a block may have.
    pub fn attributes(&self) -> FunctionAttributes {
        self.0.attributes
    }

    /// The sizes of its parameters in bytes, where the driver tells them (from CUDA 12.4 on).
    pub fn parameter_sizes(&self) -> Option<&[usize]> {
        self.0.sizes.as_deref()
    }

    /// The number of threads for which blocks with this dynamic shared memory occupy the device best.
    ///
    /// # Errors
    /// [`Error::Value`] for more shared memory than a block has.
    pub fn best_block(&self, shared_bytes: u32) -> Result<u32> {
        self.check(&Launch::new(1, 1).shared(shared_bytes))?;
        self.0.function.best_block(shared_bytes).map(|threads| threads.max(1)).map_err(|e| self.error(e))
    }

    /// [`Launch::over`] these items, in blocks of the size that occupies the device best.
    pub fn over(&self, items: usize) -> Result<Launch> {
        let threads = match self.0.best.get() {
            Some(&threads) => threads,
            None => {
                let threads = self.best_block(0)?;
                *self.0.best.get_or_init(|| threads)
            }
        };
        Ok(Launch::over(items, threads))
    }

    /// How many blocks of this launch run on one multiprocessor at once.
    pub fn blocks_per_multiprocessor(&self, launch: Launch) -> Result<u32> {
        self.check(&launch)?;
        self.0.function.blocks_per_sm(launch.threads(), launch.shared_bytes).map_err(|e| self.error(e))
    }

    /// Queues the kernel on its device's stream, behind all work queued before, and does not wait for it. Arrays may be dropped as soon
    /// as this returns: their memory is used again only behind the kernel.
    ///
    /// Arguments are checked by number, by size where the driver tells it, and by kind and dtype where the kernel's declaration does.
    /// Deferred arrays run first. Errors that the kernel makes (an illegal address, a failed `assert`) come out of a later call that
    /// waits for the device.
    ///
    /// ```no_run
    /// use cuprum_backend_cuda::args;
    /// use cuprum_backend_cuda::raw::RawKernel;
    /// use cuprum_core::{DType, NdArray};
    /// # fn main() -> cuprum_core::Result<()> {
    /// let axpy = RawKernel::compile(
    ///     r#"extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
    ///         int i = blockIdx.x * blockDim.x + threadIdx.x;
    ///         if (i < n) y[i] += a * x[i];
    ///     }"#,
    ///     "axpy",
    /// )?;
    /// let x = NdArray::ones(1000, DType::F32)?;
    /// let mut y = NdArray::zeros(1000, DType::F32)?;
    /// // SAFETY: the kernel reads and writes 1000 elements of either array at the most.
    /// unsafe { axpy.launch(axpy.over(1000)?, args![2.0f32, &x, &mut y, 1000]) }?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0; 1000]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Arguments or a launch that the kernel or the device cannot take; then nothing runs.
    ///
    /// # Safety
    /// What the kernel does is the caller's word:
    /// - it reads and writes only inside the arrays that it was given, and reads nothing that nobody has written;
    /// - it writes no array that was given by `&`, and leaves only 0 and 1 in arrays of bool;
    /// - threads that write one place, or read what others write, do so by atomic operations or behind a barrier;
    /// - there are as many arguments as parameters, and each is what the kernel takes it for, where neither a declaration nor the driver
    ///   tells: kernels of a cubin or PTX, macros and packs among the parameters, and the types of structs.
    pub unsafe fn launch<'a>(&self, launch: Launch, args: impl AsMut<[Arg<'a>]>) -> Result<()> {
        let mut args = args;
        let args = args.as_mut();
        let Inner { function, name, device, declared, sizes, .. } = &*self.0;
        self.check(&launch)?;
        let parameters = Parameters { declared: declared.as_deref(), sizes: sizes.as_deref() };
        arg::check(name, *device, args, &parameters)?;
        if launch.grid.contains(&0) {
            return Ok(());
        }
        let prepared = arg::prepare(args)?;
        let mut list = Args::new();
        for bytes in &prepared {
            list.push_bytes(bytes);
        }
        let Launch { grid, block, shared_bytes, cooperative } = launch;
        tracing::debug!(kernel = &**name, ?grid, ?block, shared_bytes, cooperative, %device, "raw kernel");
        let pointers = list.pointers();
        let queue = || {
            // SAFETY: the arguments have the number and sizes of the parameters as far as these are known, and the caller vouches for
            // the rest and for what the kernel does; arrays lie on the kernel's device and are alive until it is queued.
            let queued = unsafe {
                if cooperative {
                    function.launch_cooperative(grid, block, shared_bytes, pointers)
                } else {
                    function.launch(grid, block, shared_bytes, pointers)
                }
            };
            device::queued_kernel(name);
            queued.map_err(|e| self.error(e))
        };
        let describe = || {
            let launch = KernelLaunch { kernel: name.to_string(), grid, block };
            Record::of_launch(OP, CUDA.name, *device, launch, args.iter().filter_map(Arg::array))
        };
        record_launch(Stream::current(*device), describe, queue)?;
        arg::depends(args)
    }

    /// Refuses a launch that the device cannot run, and has it allowed the shared memory that it needs: until then, the driver knows of
    /// no block that fits.
    fn check(&self, launch: &Launch) -> Result<()> {
        let Inner { function, name, attributes, .. } = &*self.0;
        let info = function.context().info();
        launch.check(
            name,
            &Limits {
                threads: attributes.max_threads.min(info.threads_per_block),
                shared: info.shared_per_block_optin.max(info.shared_per_block),
                static_shared: attributes.shared_bytes,
            },
        )?;
        self.allow_shared(launch)?;
        if launch.cooperative {
            let per_sm = function.blocks_per_sm(launch.threads(), launch.shared_bytes).map_err(|e| self.error(e))?;
            let most = u64::from(per_sm) * u64::from(info.sm_count);
            if launch.blocks() > most {
                let message =
                    format!("{name}: {} blocks of a cooperative launch; the device holds {most} of them at once", launch.blocks());
                return Err(Error::value(OP, message));
            }
        }
        Ok(())
    }

    /// Has the driver allow more shared memory than blocks have without asking.
    fn allow_shared(&self, launch: &Launch) -> Result<()> {
        let Inner { function, attributes, more_shared, .. } = &*self.0;
        let info = function.context().info();
        if launch.shared_bytes.saturating_add(attributes.shared_bytes) <= info.shared_per_block {
            return Ok(());
        }
        // All of it, once: what one launch asks for must not be less than what another needs.
        let all = info.shared_per_block_optin.saturating_sub(attributes.shared_bytes);
        more_shared.get_or_init(|| function.allow_dynamic_shared(all)).clone().map_err(|e| self.error(e))
    }

    fn error(&self, error: CudaError) -> Error {
        device::error("cuda", OP, self.0.device, error)
    }
}
