//! CUDA C++ source that a user compiles at run time, and the modules and variables that result.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cuprum_core::{DType, Device, Error, IntoShape, NdArray, Result, with_device};

use super::raw_kernel::RawKernel;
use super::{OP, cuda_context_of, kernel_signature};
use crate::CudaError;
use crate::codegen::USER_KERNEL_PRELUDE;
use crate::compile::disk_cache::DiskCache;
use crate::compile::module::{Function, GlobalVariable, Module};
use crate::compile::nvrtc::{CompiledCode, Compiler};
use crate::compile::program::CudaProgram;
use crate::device;
use crate::driver;

/// Name of the header with cuprum's element types and operations, for `#include <cuprum.cuh>`.
const OPERATIONS_HEADER_NAME: &str = "cuprum.cuh";
/// Name, without its leading hyphens, of the option of NVRTC 12.0 and later that excludes the source's folder, which is the working
/// directory, from the search for `#include "name"`. Headers then do not find other headers in their own folders. Some versions reject the option if it is repeated.
const NO_SOURCE_INCLUDE_OPTION: &str = "no-source-include";
/// Newest CUDA major version of the compiler if there is no driver. With a driver, the version of the driver is the limit.
const DEFAULT_CUDA_MAJOR_VERSION: u32 = 13;

/// CUDA C++ source of a [`RawModule`], with options and headers. NVRTC compiles the source as C++17, and the disk cache stores the machine
/// code.
///
/// `#include <cuprum.cuh>` provides `f16`, `bf16`, `c64`, `c128` and functions of them in namespace `cuprum`, without CUDA headers. Its
/// templates have parameters named `T`, `A`, `B`, `To` and `From`, so define macros of these names after the `#include`.
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
    /// Makes a source from the CUDA C++ code `text`.
    pub fn new(text: impl Into<String>) -> RawSource {
        RawSource { name: "raw.cu".into(), text: text.into(), ..RawSource::default() }
    }

    /// Sets the file name that error messages show. The default is `raw.cu`.
    pub fn with_name(mut self, name: impl Into<String>) -> RawSource {
        self.name = name.into();
        self
    }

    /// Adds an NVRTC option, such as `--use_fast_math`. The architecture is set automatically.
    pub fn with_option(mut self, option: impl Into<String>) -> RawSource {
        self.options.push(option.into());
        self
    }

    /// Defines a macro: `with_define("N", 3)`.
    pub fn with_define(self, name: &str, value: impl std::fmt::Display) -> RawSource {
        self.with_option(format!("-D{name}={value}"))
    }

    /// Adds a header in memory, for `#include "name"`.
    pub fn with_header(mut self, name: impl Into<String>, text: impl Into<String>) -> RawSource {
        self.headers.push((name.into(), text.into()));
        self
    }

    pub(super) fn with_headers(mut self, headers: impl IntoIterator<Item = (String, String)>) -> RawSource {
        self.headers.extend(headers);
        self
    }

    pub(super) fn with_options(mut self, options: &[String]) -> RawSource {
        self.options.extend_from_slice(options);
        self
    }

    /// Adds a folder to search for `#include`. The working directory is not searched by default.
    ///
    /// A source that may read files is compiled anew at each [`RawSource::compile`] and not stored in the disk cache, because the files may
    /// change. This includes sources with an option such as `-I` or `-include`, or with an `#include` of an absolute path.
    pub fn with_include_dir(mut self, folder: impl AsRef<Path>) -> RawSource {
        self.include_dirs.push(folder.as_ref().to_owned());
        self
    }

    /// Adds a C++ name expression: a kernel that is not `extern "C"` (`scale<float>`, `my::kernel`), or the address of a
    /// variable (`&my::table`). [`RawModule::kernel`] and [`RawModule::global`] take the same string.
    pub fn with_name_expression(mut self, expression: impl Into<String>) -> RawSource {
        self.expressions.push(expression.into());
        self
    }

    /// Compiles the source, or takes the machine code from the disk cache, and loads the code on the current device.
    ///
    /// # Errors
    /// [`Error::Backend`] with the compiler's log and the first line with an error; [`Error::Device`] if the current device
    /// is not a CUDA device.
    pub fn compile(&self) -> Result<RawModule> {
        self.compile_on(Device::current()?)
    }

    /// Compiles and loads the source like [`RawSource::compile`], on `device`.
    pub fn compile_on(&self, device: Device) -> Result<RawModule> {
        let context = cuda_context_of(device)?;
        let build = || {
            let compiler = context.compiler()?;
            let compiled = self.compile_code(compiler, context.info().arch())?;
            let module = Module::load(context, &compiled.code)?;
            Ok((module, compiled))
        };
        let (module, compiled) = build().map_err(|e| device::to_core_error("cuda", OP, device, e))?;
        let lowered = self.expressions.iter().cloned().zip(compiled.lowered_names).collect();
        Ok(RawModule { module, device, lowered, source: self.text.as_str().into() })
    }

    /// Returns machine code for the compute capability `arch` (`90` for 9.0), which [`RawModule::load`] can load on another machine. Needs
    /// NVRTC, but no device. Returns PTX if NVRTC cannot make machine code for `arch`.
    ///
    /// # Errors
    /// [`Error::Backend`], as from [`RawSource::compile`].
    pub fn machine_code(&self, arch: u32) -> Result<Vec<u8>> {
        let failed = |e: CudaError| Error::backend("cuda", OP, e);
        let newest = driver::probe_driver().map_or(DEFAULT_CUDA_MAJOR_VERSION, |driver| driver.version.0);
        let compiler = Compiler::find_for_arch(newest, arch).map_err(failed)?;
        self.compile_code(compiler, arch).map(|compiled| compiled.code).map_err(failed)
    }

    pub(super) fn compile_code(&self, compiler: &Compiler, arch: u32) -> crate::Result<CompiledCode> {
        let may_read_files = self.may_read_files();
        let mut options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        if !may_read_files && !options.iter().any(|option| option.trim_start_matches('-') == NO_SOURCE_INCLUDE_OPTION) {
            options.push("--no-source-include");
        }
        let operations = (may_read_files || self.source_and_header_texts().any(|text| text.contains(OPERATIONS_HEADER_NAME)))
            .then_some((OPERATIONS_HEADER_NAME, USER_KERNEL_PRELUDE));
        let headers: Vec<_> = self.headers.iter().map(|(name, text)| (name.as_str(), text.as_str())).chain(operations).collect();
        let include_dirs: Vec<&Path> = self.include_dirs.iter().map(PathBuf::as_path).collect();
        let name_expressions: Vec<&str> = self.expressions.iter().map(String::as_str).collect();
        let program = CudaProgram {
            name: &self.name,
            source: &self.text,
            options: &options,
            headers: &headers,
            include_dirs: &include_dirs,
            identity: "raw",
            name_expressions: &name_expressions,
        };
        let once = DiskCache::in_memory();
        program.get_or_compile(compiler, arch, if may_read_files { &once } else { DiskCache::process_wide() })
    }

    /// Returns the texts of the source and of each header in memory.
    fn source_and_header_texts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.text).chain(self.headers.iter().map(|(_, text)| text)).map(String::as_str)
    }

    /// Returns whether the compiler may read files, whose contents are not in the cache key. The compiler may read files if there are
    /// folders for `#include`, if an option names files or folders, or if an `#include` names an absolute path or a macro. If this method
    /// returns false, the compiler does not search the working directory.
    fn may_read_files(&self) -> bool {
        // The operand of `#include` may be a macro, or a comment may precede it. Such an operand may name any file.
        let is_relative = |operand: &str| operand.strip_prefix(['"', '<']).is_some_and(|name| !name.starts_with('/'));
        let text_reads = |text: &str| {
            let directives = text.split('#').skip(1).filter_map(|directive| directive.trim_start().strip_prefix("include"));
            directives.map(str::trim_start).any(|operand| !is_relative(operand))
        };
        !self.include_dirs.is_empty()
            || self.options.iter().any(|option| option_may_read_files(option))
            || self.source_and_header_texts().any(text_reads)
    }
}

/// Returns whether an NVRTC option names files or folders.
pub(super) fn option_may_read_files(option: &str) -> bool {
    const OPTIONS_WITH_FILES: [&str; 4] = ["-I", "--include-path", "-include", "--pre-include"];
    OPTIONS_WITH_FILES.iter().any(|reads| option.starts_with(reads)) || option.contains("pch")
}

/// A module of CUDA code loaded on a device (`cupy.RawModule`). Cheap to clone. The module is unloaded when the last handle of the module,
/// its kernels and its variables is dropped.
#[derive(Clone, Debug)]
pub struct RawModule {
    pub(super) module: Arc<Module>,
    pub(super) device: Device,
    /// Pairs of a kernel's C++ name and mangled name.
    pub(super) lowered: Arc<[(String, String)]>,
    /// The CUDA C++ source. Empty for a module that was loaded from machine code.
    pub(super) source: Arc<str>,
}

impl RawModule {
    /// Loads a cubin or PTX on the current device. The driver compiles PTX.
    ///
    /// # Errors
    /// [`Error::Backend`] for code of another architecture or an invalid format. For PTX, the message has the log of the driver.
    pub fn load(code: &[u8]) -> Result<RawModule> {
        RawModule::load_on(Device::current()?, code)
    }

    /// Loads a cubin or PTX like [`RawModule::load`], on `device`.
    pub fn load_on(device: Device, code: &[u8]) -> Result<RawModule> {
        let module = Module::load(cuda_context_of(device)?, code).map_err(|e| device::to_core_error("cuda", OP, device, e))?;
        Ok(RawModule { module, device, lowered: Arc::new([]), source: "".into() })
    }

    /// Returns the device that the module is loaded on.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Returns the kernel `name`. For a kernel that is not `extern "C"`, `name` is a string that was passed to
    /// [`RawSource::with_name_expression`].
    ///
    /// # Errors
    /// [`Error::Value`] if the module has no such kernel.
    pub fn kernel(&self, name: &str) -> Result<RawKernel> {
        let function = self.find_function(name)?;
        let declared = kernel_signature::find_kernel_parameters(&self.source, name);
        RawKernel::new(function, name, self.device, declared).map_err(|e| device::to_core_error("cuda", OP, self.device, e))
    }

    pub(crate) fn find_function(&self, name: &str) -> Result<Arc<Function>> {
        self.module.function(self.mangled_name(name)).map_err(|e| self.symbol_lookup_error("kernel", name, e))
    }

    /// Returns the `__device__` or `__constant__` variable `name`. For a variable outside the global namespace, `name` is a string that was
    /// passed to [`RawSource::with_name_expression`].
    ///
    /// # Errors
    /// [`Error::Value`] if the module has no such variable.
    pub fn global(&self, name: &str) -> Result<RawGlobal> {
        let global = self.module.global_variable(self.mangled_name(name)).map_err(|e| self.symbol_lookup_error("variable", name, e))?;
        Ok(RawGlobal { global, device: self.device })
    }

    fn mangled_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.lowered.iter().find(|(expression, _)| expression == name).map_or(name, |(_, lowered)| lowered)
    }

    /// Converts `error`, which a lookup of the symbol `name` returned. `what` is the word for the symbol in the message: `kernel` or
    /// `variable`. For a missing symbol, the message lists the module's name expressions.
    fn symbol_lookup_error(&self, what: &str, name: &str, error: CudaError) -> Error {
        const SYMBOL_NOT_FOUND_CODE: u32 = driver::sys::CUresult::CUDA_ERROR_NOT_FOUND.0;
        if !matches!(error, CudaError::Driver { code: SYMBOL_NOT_FOUND_CODE, .. }) {
            return device::to_core_error("cuda", OP, self.device, error);
        }
        let known: Vec<&str> = self.lowered.iter().map(|(expression, _)| expression.as_str()).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        let help = "declare it `extern \"C\"`, or name it by `RawSource::with_name_expression`";
        Error::value(OP, format!("the module has no {what} `{name}`; {help} (expressions: {known})"))
    }
}

/// A `__device__` or `__constant__` variable of a module.
#[derive(Clone, Debug)]
pub struct RawGlobal {
    global: GlobalVariable,
    device: Device,
}

impl RawGlobal {
    /// Returns the size of the variable, in bytes.
    pub fn nbytes(&self) -> usize {
        self.global.nbytes()
    }

    /// Waits for all work queued so far, then returns the bytes of the variable.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.global.read_bytes().map_err(|e| self.variable_error(e))
    }

    /// Waits for all work queued so far, then overwrites the variable with `bytes`.
    ///
    /// # Errors
    /// [`Error::Backend`] if the number of bytes differs from [`RawGlobal::nbytes`].
    pub fn set_bytes(&self, bytes: &[u8]) -> Result<()> {
        self.global.write_bytes(bytes).map_err(|e| self.variable_error(e))
    }

    /// Copies the variable to a new array on the same device. Waits for all work queued so far.
    pub fn to_array(&self, dtype: DType, shape: impl IntoShape) -> Result<NdArray> {
        let bytes = self.to_bytes()?;
        with_device(self.device, || NdArray::from_bytes(dtype, shape, &bytes))
    }

    /// Overwrites the variable with the elements of `array` in C order. Waits for all work queued so far.
    pub fn set_array(&self, array: &NdArray) -> Result<()> {
        self.set_bytes(&array.to_bytes()?)
    }

    fn variable_error(&self, error: CudaError) -> Error {
        device::to_core_error("cuda", OP, self.device, error)
    }
}
