//! Your own CUDA kernels: source or machine code ([`RawSource`], [`RawModule`]), kernels and their launches ([`RawKernel`], [`Launch`],
//! [`Arg`]), variables of a module ([`RawGlobal`]), and kernels from strings ([`ElementwiseKernel`], [`ReductionKernel`]). After CuPy's
//! classes of these names.
//!
//! ```no_run
//! use cuprum_backend_cuda::args;
//! use cuprum_backend_cuda::user_kernels::RawSource;
//! use cuprum_core::{DType, NdArray};
//! # fn main() -> cuprum_core::Result<()> {
//! let module = RawSource::new("template <class T> __global__ void fill(T* x, T value, int n) { if (threadIdx.x < n) x[threadIdx.x] = value; }")
//!     .name("fill.cu")
//!     .expression("fill<float>")
//!     .expression("fill<int>")
//!     .compile()?;
//! let fill = module.kernel("fill<int>")?;
//! let mut x = NdArray::zeros(10, DType::I32)?;
//! // SAFETY: the kernel writes below `n`, which is the array's length.
//! unsafe { fill.launch(fill.over(10)?, args![&mut x, 7, 10]) }?;
//! assert_eq!(x.to_vec::<i32>()?, [7; 10]);
//! # Ok(())
//! # }
//! ```

mod arg;
mod declaration;
mod elementwise;
mod launch;
mod raw_kernel;
mod reduction;
mod signature;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cuprum_core::{DType, Device, Error, IntoShape, NdArray, Result, with_device};

pub use self::arg::Arg;
pub use self::elementwise::ElementwiseKernel;
pub use self::launch::{IntoExtents, Launch};
pub use self::raw_kernel::RawKernel;
pub use self::reduction::{Asked, REDUCTION_KERNEL, Reduction, ReductionKernel, StringReduction, call_for_check};
use crate::CudaError;
use crate::codegen::OPERATIONS;
use crate::compile::disk_cache::DiskCache;
pub use crate::compile::module::FunctionAttributes;
use crate::compile::module::{Function, Global, Module};
use crate::compile::nvrtc::{Compiled, Compiler};
use crate::compile::program::Program;
use crate::device;
use crate::driver;

/// Operation in errors.
const OP: &str = "RawModule";
/// cuprum's own element types and operations, for `#include <cuprum.cuh>`.
const OWN_HEADER: &str = "cuprum.cuh";
/// The option, less its hyphens, that keeps NVRTC (from 12.0 on) from looking for `#include "name"` in the folder of the source, which is
/// the working directory. Headers in folders do not find their neighbours under it, and some versions refuse it twice.
const NO_SOURCE_INCLUDE: &str = "no-source-include";
/// The newest CUDA whose compiler is asked for where no driver sets a limit.
const NEWEST: u32 = 13;

/// CUDA C++ on its way to a [`RawModule`]: text, options, headers. Compiled as C++17 by NVRTC, once; then it comes from the cache.
///
/// `#include <cuprum.cuh>` gives cuprum's own `f16`, `bf16`, `c64`, `c128` and functions of them, in namespace `cuprum`, on machines
/// that have no CUDA headers. Its templates have parameters named `T`, `A`, `B`, `To` and `From`: macros of these names belong behind it.
#[derive(Clone, Debug, Default)]
pub struct RawSource {
    name: String,
    text: String,
    options: Vec<String>,
    headers: Vec<(String, String)>,
    include_dirs: Vec<PathBuf>,
    expressions: Vec<String>,
}

impl RawSource {
    /// The source of a module.
    pub fn new(text: impl Into<String>) -> RawSource {
        RawSource { name: "raw.cu".into(), text: text.into(), ..RawSource::default() }
    }

    /// The name that stands in error messages; `raw.cu` otherwise.
    pub fn name(mut self, name: impl Into<String>) -> RawSource {
        self.name = name.into();
        self
    }

    /// An option of NVRTC, such as `--use_fast_math`. The architecture is added by itself.
    pub fn option(mut self, option: impl Into<String>) -> RawSource {
        self.options.push(option.into());
        self
    }

    /// A macro: `define("N", 3)`.
    pub fn define(self, name: &str, value: impl std::fmt::Display) -> RawSource {
        self.option(format!("-D{name}={value}"))
    }

    /// A header in memory, for `#include "name"`.
    pub fn header(mut self, name: impl Into<String>, text: impl Into<String>) -> RawSource {
        self.headers.push((name.into(), text.into()));
        self
    }

    fn headers(mut self, headers: impl IntoIterator<Item = (String, String)>) -> RawSource {
        self.headers.extend(headers);
        self
    }

    fn options(mut self, options: &[String]) -> RawSource {
        self.options.extend_from_slice(options);
        self
    }

    /// A folder for `#include`. As files in it may change, such sources are compiled anew in each process, as are those with an option
    /// (`-I`, `-include`) or an absolute path that reads files. Without any, no file is read: the working directory is a folder like others.
    pub fn include_dir(mut self, folder: impl AsRef<Path>) -> RawSource {
        self.include_dirs.push(folder.as_ref().to_owned());
        self
    }

    /// A C++ expression that names a kernel which is not `extern "C"`, such as `scale<float>` or `my::kernel`, or the address of a
    /// variable, `&my::table`. [`RawModule::kernel`] and [`RawModule::global`] take the same text.
    pub fn expression(mut self, expression: impl Into<String>) -> RawSource {
        self.expressions.push(expression.into());
        self
    }

    /// Compiles it, or takes its code from the cache, and loads it on the current device.
    ///
    /// # Errors
    /// [`Error::Backend`] with the compiler's log and the first line that it complains about; [`Error::Device`] if the current device
    /// is no CUDA device.
    pub fn compile(&self) -> Result<RawModule> {
        self.compile_on(Device::current()?)
    }

    /// [`RawSource::compile`] for another device than the current one.
    pub fn compile_on(&self, device: Device) -> Result<RawModule> {
        let context = context(device)?;
        let build = || {
            let compiler = Compiler::shared(context.driver_version().0)?;
            let compiled = self.compile_code(compiler, context.info().arch())?;
            let module = Module::load(context, &compiled.code)?;
            Ok((module, compiled))
        };
        let (module, compiled) = build().map_err(|e| device::error("cuda", OP, device, e))?;
        let lowered = self.expressions.iter().cloned().zip(compiled.lowered_names).collect();
        Ok(RawModule { module, device, lowered, source: self.text.as_str().into() })
    }

    /// The machine code for a compute capability (`90` for 9.0), for [`RawModule::load`] elsewhere. Needs NVRTC, but no device. Where
    /// NVRTC does not know the capability yet, PTX.
    ///
    /// # Errors
    /// [`Error::Backend`], as from [`RawSource::compile`].
    pub fn machine_code(&self, arch: u32) -> Result<Vec<u8>> {
        let failed = |e: CudaError| Error::backend("cuda", OP, e);
        let newest = driver::probe().map_or(NEWEST, |driver| driver.version.0);
        let compiler = Compiler::shared(newest).map_err(failed)?;
        self.compile_code(compiler, arch).map(|compiled| compiled.code).map_err(failed)
    }

    fn compile_code(&self, compiler: &Compiler, arch: u32) -> crate::Result<Compiled> {
        let reads_files = self.reads_files();
        let mut options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        if !reads_files && !options.iter().any(|option| option.trim_start_matches('-') == NO_SOURCE_INCLUDE) {
            options.push("--no-source-include");
        }
        let own = (reads_files || self.texts().any(|text| text.contains(OWN_HEADER))).then_some((OWN_HEADER, OPERATIONS));
        let headers: Vec<_> = self.headers.iter().map(|(name, text)| (name.as_str(), text.as_str())).chain(own).collect();
        let include_dirs: Vec<&Path> = self.include_dirs.iter().map(PathBuf::as_path).collect();
        let name_expressions: Vec<&str> = self.expressions.iter().map(String::as_str).collect();
        let program = Program {
            name: &self.name,
            source: &self.text,
            options: &options,
            headers: &headers,
            include_dirs: &include_dirs,
            identity: "raw",
            name_expressions: &name_expressions,
        };
        let once = DiskCache::in_memory();
        program.compile(compiler, arch, if reads_files { &once } else { DiskCache::shared() })
    }

    /// The source, then the headers in memory.
    fn texts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.text).chain(self.headers.iter().map(|(_, text)| text)).map(String::as_str)
    }

    /// Whether files may be read whose contents are not in the cache's key: those in folders for `#include`, and those that an option,
    /// an absolute path or a macro names. Otherwise not even the working directory is looked into, which NVRTC does by itself.
    fn reads_files(&self) -> bool {
        // What a directive names may be a macro, or stand behind a comment: then it may be anything.
        let is_relative = |operand: &str| operand.strip_prefix(['"', '<']).is_some_and(|name| !name.starts_with('/'));
        let text_reads = |text: &str| {
            let directives = text.split('#').skip(1).filter_map(|directive| directive.trim_start().strip_prefix("include"));
            directives.map(str::trim_start).any(|operand| !is_relative(operand))
        };
        !self.include_dirs.is_empty() || self.options.iter().any(|option| option_reads(option)) || self.texts().any(text_reads)
    }
}

/// Whether an option of NVRTC names files or folders.
fn option_reads(option: &str) -> bool {
    const OPTIONS: [&str; 4] = ["-I", "--include-path", "-include", "--pre-include"];
    OPTIONS.iter().any(|reads| option.starts_with(reads)) || option.contains("pch")
}

fn context(device: Device) -> Result<&'static driver::Context> {
    if device.kind().name() != device::KIND {
        let message = format!("own CUDA kernels run on CUDA devices, not on {device}; see `Device::parse(\"cuda\")` and `with_device`");
        return Err(Error::Device { op: OP, message });
    }
    device::context(device)
}

/// A module of CUDA code that is loaded on a device (`cupy.RawModule`). Cheap to clone; unloaded when neither it nor a kernel or
/// variable of it is left.
#[derive(Clone, Debug)]
pub struct RawModule {
    module: Arc<Module>,
    device: Device,
    /// Name expressions, and what they are called in the module.
    lowered: Arc<[(String, String)]>,
    /// Empty for machine code.
    source: Arc<str>,
}

impl RawModule {
    /// Loads a cubin, or PTX, which the driver compiles, on the current device.
    ///
    /// # Errors
    /// [`Error::Backend`] for code of another architecture, or that is neither, with the driver's log.
    pub fn load(code: &[u8]) -> Result<RawModule> {
        RawModule::load_on(Device::current()?, code)
    }

    /// [`RawModule::load`] on another device than the current one.
    pub fn load_on(device: Device, code: &[u8]) -> Result<RawModule> {
        let module = Module::load(context(device)?, code).map_err(|e| device::error("cuda", OP, device, e))?;
        Ok(RawModule { module, device, lowered: Arc::new([]), source: "".into() })
    }

    /// Where it is loaded.
    pub fn device(&self) -> Device {
        self.device
    }

    /// A kernel: one that is declared `extern "C"` by its name, any other by an expression of [`RawSource::expression`].
    ///
    /// # Errors
    /// [`Error::Value`] if the module has none of this name.
    pub fn kernel(&self, name: &str) -> Result<RawKernel> {
        let function = self.function(name)?;
        let declared = signature::find(&self.source, name);
        RawKernel::new(function, name, self.device, declared).map_err(|e| device::error("cuda", OP, self.device, e))
    }

    pub(crate) fn function(&self, name: &str) -> Result<Arc<Function>> {
        self.module.function(self.lowered(name)).map_err(|e| self.not_found("kernel", name, e))
    }

    /// A `__device__` or `__constant__` variable, by its name if it lies in no namespace, else by an expression of
    /// [`RawSource::expression`].
    ///
    /// # Errors
    /// [`Error::Value`] if the module has none of this name.
    pub fn global(&self, name: &str) -> Result<RawGlobal> {
        let global = self.module.global(self.lowered(name)).map_err(|e| self.not_found("variable", name, e))?;
        Ok(RawGlobal { global, device: self.device })
    }

    fn lowered<'a>(&'a self, name: &'a str) -> &'a str {
        self.lowered.iter().find(|(expression, _)| expression == name).map_or(name, |(_, lowered)| lowered)
    }

    /// A driver that finds no symbol says so with this number.
    fn not_found(&self, what: &str, name: &str, error: CudaError) -> Error {
        const NOT_FOUND: u32 = driver::sys::CUresult::CUDA_ERROR_NOT_FOUND as u32;
        if !matches!(error, CudaError::Driver { code: NOT_FOUND, .. }) {
            return device::error("cuda", OP, self.device, error);
        }
        let known: Vec<&str> = self.lowered.iter().map(|(expression, _)| expression.as_str()).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        let help = "declare it `extern \"C\"`, or name it by `RawSource::expression`";
        Error::value(OP, format!("the module has no {what} `{name}`; {help} (expressions: {known})"))
    }
}

/// A `__device__` or `__constant__` variable of a module.
#[derive(Clone, Debug)]
pub struct RawGlobal {
    global: Global,
    device: Device,
}

impl RawGlobal {
    /// Its size in bytes.
    pub fn nbytes(&self) -> usize {
        self.global.nbytes()
    }

    /// Its bytes, once all work queued so far is done.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.global.read().map_err(|e| self.error(e))
    }

    /// Sets its bytes, once all work queued so far is done.
    ///
    /// # Errors
    /// [`Error::Backend`] for another number of bytes than it has.
    pub fn set_bytes(&self, bytes: &[u8]) -> Result<()> {
        self.global.write(bytes).map_err(|e| self.error(e))
    }

    /// An array of what it holds, on its device; later changes are not seen there.
    pub fn to_array(&self, dtype: DType, shape: impl IntoShape) -> Result<NdArray> {
        let bytes = self.to_bytes()?;
        with_device(self.device, || NdArray::from_bytes(dtype, shape, &bytes))
    }

    /// Sets it to an array's elements in C order.
    pub fn set(&self, array: &NdArray) -> Result<()> {
        self.set_bytes(&array.to_bytes()?)
    }

    fn error(&self, error: CudaError) -> Error {
        device::error("cuda", OP, self.device, error)
    }
}
