//! A binding to NVRTC, NVIDIA's run-time compiler. NVRTC produces machine code (cubin), or PTX for devices that are newer than the NVRTC
//! version.
//!
//! The library has 60 to 200 MB. NVRTC is loaded only at the first compilation, so that a process with a warm kernel cache does not load
//! it. Therefore the cache key uses [`Compiler::version_identifier`]: the names and sizes of the library file and of its builtins library,
//! whose name has the minor version. The key does not include paths and modification times, so that virtual environments and rebuilt
//! containers share the cache.
//!
//! NVRTC serialises compilations within a process. Calls are safe from any thread.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use cuprum_core::fault_injection::{FailurePoint, should_fail};

use crate::compile::libraries::{self, CcclHeaders, LibrarySpec, LoadedLibrary, MissingLibrary, Platform};
use crate::driver::Context;
use crate::error::{CudaError, Result};

/// A compilation request.
#[derive(Debug, Clone, Copy, Default)]
pub struct CompileRequest<'a> {
    /// File name that the log shows, e.g. `map_add_f32.cu`.
    pub name: &'a str,
    /// CUDA C++ source.
    pub source: &'a str,
    /// Compiler options other than the architecture, e.g. `--std=c++17`.
    pub options: &'a [&'a str],
    /// Headers in memory, each as the name to `#include` and the source code.
    pub headers: &'a [(&'a str, &'a str)],
    /// C++ names of kernels, such as `my::kernel<float>`, whose mangled names the compiler returns.
    pub name_expressions: &'a [&'a str],
}

/// The result of a compilation by NVRTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledCode {
    /// A cubin, or NUL-terminated PTX. The driver loads both.
    pub code: Vec<u8>,
    /// Whether `code` is PTX, because this NVRTC has no code for the device.
    pub is_ptx: bool,
    /// Mangled names, in the order of `CompileRequest::name_expressions`.
    pub lowered_names: Vec<String>,
    /// The compiler's warnings. Empty if the code comes from the disk cache.
    pub log: String,
}

/// An NVRTC library, which is loaded at its first use.
#[derive(Debug)]
pub struct Compiler {
    path: PathBuf,
    spec: LibrarySpec,
    api: OnceLock<std::result::Result<NvrtcApi, MissingLibrary>>,
}

/// Lowest compute capability that the kernels support, as `70` for 7.0. The kernels use loads and stores with a memory order, which older
/// devices lack.
pub const MIN_KERNEL_ARCH: u32 = 70;

impl Compiler {
    /// Returns the preferred NVRTC that supports the compute capability `arch`, given as `90` for 9.0.
    ///
    /// `driver_major` is the CUDA major version of the driver, which is the same for a whole process. An NVRTC of a newer CUDA major
    /// version is not used.
    ///
    /// # Errors
    /// [`CudaError::Missing`] if no NVRTC is found, or none that supports `arch`. The message lists the versions that were found.
    pub fn find_for_arch(driver_major: u32, arch: u32) -> Result<&'static Compiler> {
        choose_compiler(Compiler::find_compilers(driver_major)?, arch, |compiler| compiler.check_arch_support(arch)).map_err(Into::into)
    }

    /// Returns every NVRTC on this machine that the driver accepts, the preferred one first. The search runs once per process.
    fn find_compilers(driver_major: u32) -> Result<&'static [Compiler]> {
        static FOUND_NVRTC: OnceLock<std::result::Result<Vec<Compiler>, MissingLibrary>> = OnceLock::new();
        let locate = || {
            let spec = LibrarySpec::nvrtc_spec(driver_major);
            let paths = libraries::locate_library_files(&spec)?;
            Ok(paths.into_iter().map(|path| Compiler { path, spec: spec.clone(), api: OnceLock::new() }).collect())
        };
        FOUND_NVRTC.get_or_init(locate).as_deref().map_err(|m| m.clone().into())
    }

    /// Returns `Ok` if this NVRTC makes code for the compute capability `arch`, else the reason why it does not. Loads the library only if
    /// its file name does not determine the result.
    fn check_arch_support(&self, arch: u32) -> std::result::Result<(), String> {
        if self.path.file_name().is_some_and(|name| is_known_to_support_arch(&name.to_string_lossy(), arch)) {
            return Ok(());
        }
        let archs = self.supported_archs().map_err(|e| e.to_string())?;
        match archs.first() {
            Some(&oldest) if oldest <= arch => Ok(()),
            oldest => Err(format!("NVRTC at {} starts at sm_{}", self.path.display(), oldest.copied().unwrap_or_default())),
        }
    }

    /// Returns the preferred NVRTC that the driver accepts, without loading it.
    pub fn find_preferred_nvrtc(driver_major: u32) -> std::result::Result<Compiler, MissingLibrary> {
        let spec = LibrarySpec::nvrtc_spec(driver_major);
        libraries::locate_library(&spec).map(|path| Compiler { path, spec, api: OnceLock::new() })
    }

    /// Returns the path of the NVRTC library file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a string that identifies this NVRTC's version in cache keys, without loading the library.
    pub fn version_identifier(&self) -> String {
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let files = std::iter::once(real).chain(libraries::companion_files(&self.path, &self.spec));
        let describe = |p: PathBuf| {
            let name = p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            format!("{name}:{}", std::fs::metadata(&p).map(|m| m.len()).unwrap_or(0))
        };
        files.map(describe).collect::<Vec<_>>().join(";")
    }

    /// Returns whether the library has been loaded.
    pub fn is_loaded(&self) -> bool {
        self.api.get().is_some()
    }

    /// Returns the major and minor version. Loads the library.
    pub fn version(&self) -> Result<(u32, u32)> {
        let api = self.nvrtc_functions()?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both out-pointers are locals.
        api.check_status("nvrtcVersion", unsafe { (api.version)(&mut major, &mut minor) })?;
        Ok((major.unsigned_abs(), minor.unsigned_abs()))
    }

    /// Returns the compute capabilities (`90` for 9.0) for which this NVRTC makes cubins, ascending. Loads the library.
    pub fn supported_archs(&self) -> Result<Vec<u32>> {
        let api = self.nvrtc_functions()?;
        let mut count = 0;
        // SAFETY: the out-pointer is a local.
        api.check_status("nvrtcGetNumSupportedArchs", unsafe { (api.num_archs)(&mut count) })?;
        let mut archs = vec![0 as c_int; usize::try_from(count).unwrap_or(0)];
        // SAFETY: `archs` has `count` elements, the number that `nvrtcGetNumSupportedArchs` returned.
        api.check_status("nvrtcGetSupportedArchs", unsafe { (api.archs)(archs.as_mut_ptr()) })?;
        let mut archs: Vec<u32> = archs.into_iter().map(c_int::unsigned_abs).collect();
        archs.sort_unstable();
        Ok(archs)
    }

    /// Compiles `request` for the compute capability `arch`, given as `90` for 9.0.
    ///
    /// Returns a cubin. For a device that is newer than this NVRTC, returns PTX for the newest supported architecture.
    pub fn compile(&self, request: &CompileRequest<'_>, arch: u32) -> Result<CompiledCode> {
        let api = self.nvrtc_functions()?;
        let archs = self.supported_archs()?;
        let target = archs.iter().rev().find(|&&a| a <= arch).copied().ok_or_else(|| {
            let known = archs.first().copied().unwrap_or(0);
            let text =
                format!("NVRTC at {} starts at sm_{known}, the device is sm_{arch}; an older CUDA major serves it", self.path.display());
            CudaError::Missing(text)
        })?;
        let is_ptx = target != arch;
        let kind = if is_ptx { "compute" } else { "sm" };
        let program = NvrtcProgram::new(api, request)?;
        let mut options = vec![c_string(&format!("--gpu-architecture={kind}_{target}"))?];
        for option in request.options {
            options.push(c_string(option)?);
        }
        program.compile(request, &options)?;
        Ok(CompiledCode {
            code: if is_ptx {
                program.read_program_output("nvrtcGetPTX", api.ptx_size, api.ptx)?
            } else {
                program.read_program_output("nvrtcGetCUBIN", api.cubin_size, api.cubin)?
            },
            is_ptx,
            lowered_names: request.name_expressions.iter().map(|e| program.lowered_name(e)).collect::<Result<_>>()?,
            log: program.read_compile_log(),
        })
    }

    /// Unpacks the headers of CUDA and CCCL, which NVRTC 13.3 and later contain, to a subfolder of `folder` (20 MB, once per NVRTC
    /// version). Returns the unpacked CCCL headers.
    pub fn unpack_bundled_cccl(&self, folder: &Path) -> Result<CcclHeaders> {
        let missing = |reason: String| MissingLibrary {
            name: "CCCL headers".into(),
            reason,
            help: "pip install nvidia-cuda-cccl, or set CUPRUM_CCCL_PATH to its include folder".into(),
        };
        let api = self.nvrtc_functions()?;
        let Some(install) = api.install_headers else {
            return Err(missing(format!("not installed, and the NVRTC at {} bundles none (13.3 and later do)", self.path.display())).into());
        };
        let (major, minor) = self.version()?;
        let target = folder.join(format!("nvrtc-headers-{major}.{minor}"));
        std::fs::create_dir_all(folder).map_err(|e| missing(format!("{}: {e}", folder.display())))?;
        let path = c_string(&target.to_string_lossy())?;
        let mut log: *const c_char = ptr::null();
        // SAFETY: `path` is NUL-terminated and outlives the call. The flags 0 skip installed files, and the library takes a lock
        // against other processes. `log` receives a pointer that the library owns.
        let code = unsafe { install(path.as_ptr(), 0, &mut log) };
        if code != 0 {
            let why = if log.is_null() { api.error_name(code) } else { copy_c_str(log) };
            return Err(missing(format!("NVRTC could not unpack its headers to {}: {why}", target.display())).into());
        }
        let include = target.join("cccl");
        let version = libraries::cccl_version(&include).ok_or_else(|| missing(format!("none in {}", target.display())))?;
        Ok(CcclHeaders { include, version, choice: "bundled with NVRTC".into(), is_override: false })
    }

    fn nvrtc_functions(&self) -> Result<&NvrtcApi> {
        let load = || libraries::load_file_with_companions(&self.path, &self.spec).and_then(NvrtcApi::from_library);
        self.api.get_or_init(load).as_ref().map_err(|m| m.clone().into())
    }
}

/// Returns whether every NVRTC named `file_name` supports the compute capability `arch`, so that the library need not be loaded. The code
/// knows the lowest supported capabilities of NVRTC 12.0 to 12.9 and 13.0 to 13.3. There is no upper bound, because NVRTC makes PTX for
/// newer devices.
fn is_known_to_support_arch(file_name: &str, arch: u32) -> bool {
    let oldest = match Platform::CURRENT.major_version_in_file_name(file_name) {
        Some(12) => 50,
        Some(13) => 75,
        _ => return false,
    };
    arch >= oldest
}

/// Returns the first of `candidates` that supports the compute capability `arch`. `serves` returns `Ok` for a candidate with support, else
/// the reason why it has none.
fn choose_compiler<C>(
    candidates: &[C],
    arch: u32,
    serves: impl Fn(&C) -> std::result::Result<(), String>,
) -> std::result::Result<&C, MissingLibrary> {
    let mut reasons = Vec::new();
    for candidate in candidates {
        match serves(candidate) {
            Ok(()) => return Ok(candidate),
            Err(reason) => reasons.push(reason),
        }
    }
    // Below compute capability 7.5, the remedy is NVRTC 12, because CUDA 13 does not support these devices.
    let package = if arch < 75 { "nvidia-cuda-nvrtc-cu12" } else { "nvidia-cuda-nvrtc" };
    Err(MissingLibrary {
        name: "NVRTC".into(),
        reason: format!("none found serves compute capability {}: {}", format_compute_capability(arch), reasons.join("; ")),
        help: format!("pip install {package}, or set CUPRUM_CUDA_PATH to a CUDA toolkit that serves it"),
    })
}

/// Returns the compute capability `arch` as text: `7.5` for `75`.
pub(crate) fn format_compute_capability(arch: u32) -> String {
    format!("{}.{}", arch / 10, arch % 10)
}

impl Context {
    /// Returns the compiler for this context's device. See [`Compiler::find_for_arch`].
    pub fn compiler(&self) -> Result<&'static Compiler> {
        Compiler::find_for_arch(self.driver_version().0, self.info().arch())
    }
}

/// Returns the CCCL headers that [`libraries::find_cccl`] finds, if their version is supported or an override chose them. Otherwise returns
/// the copy inside NVRTC, unpacked into the cache folder. If no NVRTC contains headers, returns the found ones even if they are older than
/// [`libraries::OLDEST_CCCL_VERSION`].
pub fn cccl_headers(driver_major: u32) -> Result<CcclHeaders> {
    let found = libraries::find_cccl();
    if found.as_ref().is_ok_and(|headers| headers.has_supported_version() || headers.is_override) {
        return found.map_err(Into::into);
    }
    let Some(folder) = cuprum_core::settings::cache_folder() else { return found.map_err(Into::into) };
    let mut failure = None;
    for compiler in Compiler::find_compilers(driver_major).unwrap_or_default() {
        match compiler.unpack_bundled_cccl(&folder) {
            Ok(headers) => return Ok(headers),
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    found.map_err(|missing| failure.unwrap_or_else(|| missing.into()))
}

type ProgramPtr = *mut c_void;
type SizeFn = unsafe extern "C" fn(ProgramPtr, *mut usize) -> c_int;
type BytesFn = unsafe extern "C" fn(ProgramPtr, *mut c_char) -> c_int;
type CreateFn =
    unsafe extern "C" fn(*mut ProgramPtr, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char) -> c_int;

/// Function pointers of an NVRTC library. The functions return plain integers, because a newer library may return unknown codes.
#[derive(Debug)]
struct NvrtcApi {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    num_archs: unsafe extern "C" fn(*mut c_int) -> c_int,
    archs: unsafe extern "C" fn(*mut c_int) -> c_int,
    create: CreateFn,
    destroy: unsafe extern "C" fn(*mut ProgramPtr) -> c_int,
    compile: unsafe extern "C" fn(ProgramPtr, c_int, *const *const c_char) -> c_int,
    log_size: SizeFn,
    log: BytesFn,
    ptx_size: SizeFn,
    ptx: BytesFn,
    cubin_size: SizeFn,
    cubin: BytesFn,
    add_name: unsafe extern "C" fn(ProgramPtr, *const c_char) -> c_int,
    lowered: unsafe extern "C" fn(ProgramPtr, *const c_char, *mut *const c_char) -> c_int,
    install_headers: Option<unsafe extern "C" fn(*const c_char, c_uint, *mut *const c_char) -> c_int>,
    /// The library, which keeps the function pointers valid.
    _library: std::mem::ManuallyDrop<LoadedLibrary>,
}

impl NvrtcApi {
    fn from_library(loaded: LoadedLibrary) -> std::result::Result<NvrtcApi, MissingLibrary> {
        // SAFETY: the type of each field is the function's signature in nvrtc.h. The library is never closed.
        unsafe {
            Ok(NvrtcApi {
                version: loaded.symbol("nvrtcVersion")?,
                error_string: loaded.symbol("nvrtcGetErrorString")?,
                num_archs: loaded.symbol("nvrtcGetNumSupportedArchs")?,
                archs: loaded.symbol("nvrtcGetSupportedArchs")?,
                create: loaded.symbol("nvrtcCreateProgram")?,
                destroy: loaded.symbol("nvrtcDestroyProgram")?,
                compile: loaded.symbol("nvrtcCompileProgram")?,
                log_size: loaded.symbol("nvrtcGetProgramLogSize")?,
                log: loaded.symbol("nvrtcGetProgramLog")?,
                ptx_size: loaded.symbol("nvrtcGetPTXSize")?,
                ptx: loaded.symbol("nvrtcGetPTX")?,
                cubin_size: loaded.symbol("nvrtcGetCUBINSize")?,
                cubin: loaded.symbol("nvrtcGetCUBIN")?,
                add_name: loaded.symbol("nvrtcAddNameExpression")?,
                lowered: loaded.symbol("nvrtcGetLoweredName")?,
                // NVRTC before 13.3 lacks this function.
                install_headers: loaded.symbol("nvrtcInstallBundledHeaders").ok(),
                _library: std::mem::ManuallyDrop::new(loaded),
            })
        }
    }

    fn error_name(&self, code: c_int) -> String {
        // SAFETY: `nvrtcGetErrorString` takes any integer and returns a static string.
        let text = unsafe { (self.error_string)(code) };
        if text.is_null() { "unknown".into() } else { copy_c_str(text) }
    }

    fn check_status(&self, call: &'static str, code: c_int) -> Result<()> {
        match code {
            0 => Ok(()),
            _ => Err(CudaError::Nvrtc { call, code: code.unsigned_abs(), name: self.error_name(code) }),
        }
    }
}

/// An NVRTC program under compilation, destroyed on drop.
struct NvrtcProgram<'a> {
    api: &'a NvrtcApi,
    raw: ProgramPtr,
}

impl<'a> NvrtcProgram<'a> {
    fn new(api: &'a NvrtcApi, request: &CompileRequest<'_>) -> Result<Self> {
        let (source, name) = (c_string(request.source)?, c_string(request.name)?);
        let texts = request.headers.iter().map(|(_, text)| c_string(text)).collect::<Result<Vec<_>>>()?;
        let names = request.headers.iter().map(|(name, _)| c_string(name)).collect::<Result<Vec<_>>>()?;
        let (text_ptrs, name_ptrs) = (c_str_pointers(&texts), c_str_pointers(&names));
        let mut raw = ptr::null_mut();
        // SAFETY: all strings are NUL-terminated and outlive the call, which copies them. Both arrays have `headers.len()`
        // elements.
        let code = unsafe {
            (api.create)(&mut raw, source.as_ptr(), name.as_ptr(), length_as_c_int(&names)?, text_ptrs.as_ptr(), name_ptrs.as_ptr())
        };
        api.check_status("nvrtcCreateProgram", code)?;
        let program = NvrtcProgram { api, raw };
        for expression in request.name_expressions {
            let expression = c_string(expression)?;
            // SAFETY: the program `raw` exists and is not yet compiled. NVRTC copies the string.
            api.check_status("nvrtcAddNameExpression", unsafe { (api.add_name)(raw, expression.as_ptr()) })?;
        }
        Ok(program)
    }

    fn compile(&self, request: &CompileRequest<'_>, options: &[CString]) -> Result<()> {
        if should_fail(FailurePoint::Compile) {
            return Err(CudaError::Compile { name: request.name.into(), source_line: None, log: "out of memory".into() });
        }
        let option_ptrs = c_str_pointers(options);
        // SAFETY: the program `raw` exists, and the option strings outlive the call.
        let code = unsafe { (self.api.compile)(self.raw, length_as_c_int(options)?, option_ptrs.as_ptr()) };
        if code == 0 {
            return Ok(());
        }
        let log = match self.read_compile_log() {
            log if log.trim().is_empty() => self.api.error_name(code),
            log => log,
        };
        Err(CudaError::Compile { name: request.name.into(), source_line: first_error_line(&log, request), log })
    }

    fn read_compile_log(&self) -> String {
        let bytes = self.read_program_output("nvrtcGetProgramLog", self.api.log_size, self.api.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim_end_matches('\0').trim().to_owned()
    }

    fn read_program_output(&self, call: &'static str, size: SizeFn, get: BytesFn) -> Result<Vec<u8>> {
        let mut len = 0;
        // SAFETY: the program `raw` exists, and the out-pointer is a local.
        self.api.check_status(call, unsafe { size(self.raw, &mut len) })?;
        let mut bytes = vec![0u8; len];
        // SAFETY: `bytes` has `len` bytes, the size that NVRTC's size function returned.
        self.api.check_status(call, unsafe { get(self.raw, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }

    fn lowered_name(&self, expression: &str) -> Result<String> {
        let expression = c_string(expression)?;
        let mut name = ptr::null();
        // SAFETY: the program `raw` is compiled and exists. The returned name belongs to the program and is copied at once.
        self.api.check_status("nvrtcGetLoweredName", unsafe { (self.api.lowered)(self.raw, expression.as_ptr(), &mut name) })?;
        Ok(if name.is_null() { String::new() } else { copy_c_str(name) })
    }
}

impl Drop for NvrtcProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` comes from `nvrtcCreateProgram` and is destroyed only in this `drop`.
        unsafe { (self.api.destroy)(&mut self.raw) };
    }
}

/// Returns the source line of the first error in `log`, as line number and source code: `12 | x = y;`. Searches the source and the headers
/// of `request`. Returns `None` if `log` names none of their lines.
fn first_error_line(log: &str, request: &CompileRequest<'_>) -> Option<String> {
    for line in log.lines() {
        let Some((place, _)) = line.split_once("): ").filter(|(_, rest)| rest.contains("error")) else { continue };
        let Some((file, number)) = place.rsplit_once('(') else { continue };
        let Ok(number) = number.parse::<usize>() else { continue };
        let header = request.headers.iter().find(|(name, _)| *name == file).map(|(_, text)| *text);
        let text = if file == request.name { Some(request.source) } else { header };
        if let Some(text) = text.and_then(|t| t.lines().nth(number.checked_sub(1)?)) {
            return Some(format!("{number} | {}", text.trim_end()));
        }
    }
    None
}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| CudaError::Invalid("text for the compiler holds a NUL character".into()))
}

fn c_str_pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).collect()
}

fn length_as_c_int<T>(items: &[T]) -> Result<c_int> {
    c_int::try_from(items.len()).map_err(|_| CudaError::Invalid("too many strings for the compiler".into()))
}

fn copy_c_str(text: *const c_char) -> String {
    // SAFETY: callers pass a non-null NUL-terminated string of NVRTC, which lives until the next call of NVRTC.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_chosen_by_the_device() {
        // (file name, the lowest compute capability that it serves)
        type Fake = (&'static str, u32);
        let serves = |arch| move |c: &Fake| if c.1 <= arch { Ok(()) } else { Err(format!("{} starts at sm_{}", c.0, c.1)) };
        let both: &[Fake] = &[("nvrtc 13", 75), ("nvrtc 12", 50)];
        assert_eq!(choose_compiler(both, 90, serves(90)).unwrap().0, "nvrtc 13");
        assert_eq!(choose_compiler(both, 70, serves(70)).unwrap().0, "nvrtc 12", "a V100");
        let missing = choose_compiler(&both[..1], 70, serves(70)).unwrap_err();
        assert_eq!(missing.reason, "none found serves compute capability 7.0: nvrtc 13 starts at sm_75");
        assert!(missing.help.contains("nvidia-cuda-nvrtc-cu12"), "{missing}");
        // A library that cannot be loaded is skipped.
        let broken = |c: &Fake| if c.1 == 75 { Err("cannot be loaded".into()) } else { Ok(()) };
        assert_eq!(choose_compiler(both, 90, broken).unwrap().0, "nvrtc 12");
    }

    #[test]
    fn file_names_tell_of_known_versions_only() {
        let known = |name, arch| is_known_to_support_arch(name, arch);
        assert!(known("libnvrtc.so.13", 75) && known("libnvrtc.so.12", 70) && known("libnvrtc.so.12.9.86", 100));
        assert!(!known("libnvrtc.so.13", 70) && !known("libnvrtc.so.14", 90) && !known("libnvrtc.so", 90));
    }

    #[test]
    fn the_offending_line_is_shown() {
        let request = CompileRequest { name: "k.cu", source: "a\n  b c\nd", headers: &[("h.h", "x\ny")], ..CompileRequest::default() };
        let log = "k.cu(1): warning #1: odd\nk.cu(2): error: what\nk.cu(3): error: more";
        assert_eq!(first_error_line(log, &request).unwrap(), "2 |   b c");
        assert_eq!(first_error_line("h.h(2): error: what", &request).unwrap(), "2 | y");
        assert_eq!(first_error_line("k.cu(0): error: x\nk.cu(99): error: x\nno(place", &request), None);
    }
}
