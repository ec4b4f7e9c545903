//! CUDA C++ programs, which are compiled and loaded as modules. Machine code comes from the disk cache or, on a miss, from NVRTC.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::compile::disk_cache::{CacheKey, DiskCache};
use crate::compile::module::{Function, Module};
use crate::compile::nvrtc::{CompileRequest, CompiledCode, Compiler};
use crate::compile::source_dump::{self, CodeOrigin};
use crate::driver::Context;
use crate::error::Result;

/// CUDA C++ source and everything that determines its machine code.
#[derive(Debug, Clone, Copy, Default)]
pub struct CudaProgram<'a> {
    /// Name of the program in compile errors. The cache key does not include the name.
    pub name: &'a str,
    /// The CUDA C++ source, compiled as C++17.
    pub source: &'a str,
    /// Compiler options such as `--use_fast_math`, besides the architecture.
    pub options: &'a [&'a str],
    /// Headers in memory, each as the name to `#include` and the source code.
    pub headers: &'a [(&'a str, &'a str)],
    /// Folders for `#include`. The cache key includes neither the folders nor their files, so `identity` must describe the contents of the
    /// files.
    pub include_dirs: &'a [&'a Path],
    /// A part of the cache key that identifies contents which are not hashed, such as `CCCL 3.0.1` for the files in `include_dirs`.
    pub identity: &'a str,
    /// C++ names of kernels that are not `extern "C"`, such as `scale<float>`. [`LoadedProgram::function_of_name_expression`] takes an
    /// index into this list.
    pub name_expressions: &'a [&'a str],
}

/// A program loaded on a device.
#[derive(Debug, Clone)]
pub struct LoadedProgram {
    /// The loaded module.
    pub module: Arc<Module>,
    lowered_names: Vec<String>,
}

impl LoadedProgram {
    /// Returns the kernel of the name expression at `index` in [`CudaProgram::name_expressions`].
    pub fn function_of_name_expression(&self, index: usize) -> Result<Arc<Function>> {
        let name = self.lowered_names.get(index).map_or("", String::as_str);
        self.module.function(name)
    }

    /// Returns the `extern "C"` kernel `name`.
    pub fn extern_c_function(&self, name: &str) -> Result<Arc<Function>> {
        self.module.function(name)
    }
}

/// Compilation statistics of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompileStats {
    /// Number of programs loaded from the disk cache.
    pub hits: u64,
    /// Number of programs that NVRTC compiled.
    pub compiles: u64,
    /// Time spent in NVRTC, including the time to load NVRTC, in microseconds.
    pub compile_micros: u64,
}

static DISK_CACHE_HITS: AtomicU64 = AtomicU64::new(0);
static COMPILE_COUNT: AtomicU64 = AtomicU64::new(0);
static COMPILE_MICROS: AtomicU64 = AtomicU64::new(0);

/// Returns the compilation statistics since the process began.
pub fn compile_stats() -> CompileStats {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    CompileStats { hits: read(&DISK_CACHE_HITS), compiles: read(&COMPILE_COUNT), compile_micros: read(&COMPILE_MICROS) }
}

impl CudaProgram<'_> {
    /// Loads the program on the device of `context`, with machine code from the disk cache or compiled by NVRTC.
    ///
    /// # Errors
    /// `Missing` if NVRTC is needed but missing, `Compile` with log and source line, `Driver` if loading fails.
    pub fn compile_and_load(&self, context: &'static Context) -> Result<LoadedProgram> {
        context.make_current()?; // so that a lost device fails before anything is compiled for it
        let compiler = context.compiler()?;
        let compiled = self.get_or_compile(compiler, context.info().arch(), DiskCache::process_wide())?;
        let module = Module::load(context, &compiled.code)?;
        Ok(LoadedProgram { module, lowered_names: compiled.lowered_names })
    }

    /// Returns whether the disk cache has the machine code that [`CudaProgram::compile_and_load`] needs.
    pub fn is_in_disk_cache(&self, context: &Context) -> Result<bool> {
        let compiler = context.compiler()?;
        Ok(DiskCache::process_wide().get(&self.cache_key(&compiler.version_identifier(), context.info().arch())).is_some())
    }

    /// Returns the machine code for the compute capability `arch` (`90` for 9.0). Takes the code from `cache` if it is there. Otherwise
    /// compiles the source with `compiler` and stores the code in `cache`.
    pub fn get_or_compile(&self, compiler: &Compiler, arch: u32, cache: &DiskCache) -> Result<CompiledCode> {
        let key = self.cache_key(&compiler.version_identifier(), arch);
        let includes: Vec<String> = self.include_dirs.iter().map(|d| format!("-I{}", d.display())).collect();
        let mut options = vec!["--std=c++17"];
        options.extend(self.options);
        options.extend(includes.iter().map(String::as_str));
        let request = CompileRequest {
            name: self.name,
            source: self.source,
            options: &options,
            headers: self.headers,
            name_expressions: self.name_expressions,
        };
        if let Some(compiled) = cache.get(&key).and_then(|bytes| decode_cache_entry(&bytes)) {
            DISK_CACHE_HITS.fetch_add(1, Ordering::Relaxed);
            source_dump::dump_source(&request, arch, &key, &CodeOrigin::Cache);
            return Ok(compiled);
        }
        let start = Instant::now();
        let compiled =
            compiler.compile(&request, arch).inspect_err(|e| source_dump::dump_source(&request, arch, &key, &CodeOrigin::Failed(e)))?;
        let time = start.elapsed();
        source_dump::dump_source(&request, arch, &key, &CodeOrigin::Compiled(&compiled, time));
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        COMPILE_COUNT.fetch_add(1, Ordering::Relaxed);
        COMPILE_MICROS.fetch_add(micros, Ordering::Relaxed);
        tracing::debug!(name = self.name, arch, micros, "compiled");
        cache.store(&key, &encode_cache_entry(&compiled));
        Ok(compiled)
    }

    fn cache_key(&self, compiler: &str, arch: u32) -> CacheKey {
        let counts = [self.options.len(), self.headers.len(), self.name_expressions.len()].map(|n| n as u64);
        let counts: Vec<u8> = counts.iter().flat_map(|n| n.to_le_bytes()).collect();
        let arch = arch.to_le_bytes();
        let mut parts: Vec<&[u8]> = vec![&arch, compiler.as_bytes(), self.source.as_bytes(), self.identity.as_bytes(), &counts];
        parts.extend(self.options.iter().map(|o| o.as_bytes()));
        parts.extend(self.headers.iter().flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()]));
        parts.extend(self.name_expressions.iter().map(|e| e.as_bytes()));
        CacheKey::from_hash_of_parts(&parts)
    }
}

/// Returns the bytes of a cache entry for `compiled`: a byte that is 1 for PTX, the total length of the names, the NUL-terminated names,
/// the code.
fn encode_cache_entry(compiled: &CompiledCode) -> Vec<u8> {
    let names: String = compiled.lowered_names.iter().flat_map(|n| [n.as_str(), "\0"]).collect();
    let mut bytes = vec![u8::from(compiled.is_ptx)];
    bytes.extend((names.len() as u64).to_le_bytes());
    bytes.extend(names.as_bytes());
    bytes.extend(&compiled.code);
    bytes
}

/// Returns the compiled code in a cache entry's `bytes`, or `None` if they are damaged.
fn decode_cache_entry(bytes: &[u8]) -> Option<CompiledCode> {
    let (&kind, rest) = bytes.split_first()?;
    let (len, rest) = rest.split_first_chunk::<8>()?;
    let (names, code) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    let names = std::str::from_utf8(names).ok()?;
    Some(CompiledCode {
        code: code.to_vec(),
        is_ptx: kind != 0,
        lowered_names: names.split_terminator('\0').map(str::to_owned).collect(),
        log: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_form_round_trips() {
        let names = [vec![], vec!["_Z1aIfEvPT_".to_owned(), "b".to_owned()]];
        for lowered_names in names {
            let compiled = CompiledCode { code: vec![1, 2, 0, 3], is_ptx: true, lowered_names, log: String::new() };
            assert_eq!(decode_cache_entry(&encode_cache_entry(&compiled)), Some(compiled));
        }
        assert_eq!(decode_cache_entry(&[]), None);
        assert_eq!(decode_cache_entry(&[0, 255, 0, 0, 0, 0, 0, 0, 0, 1]), None);
    }

    #[test]
    fn the_key_depends_on_everything_but_name_and_folders() {
        let base = CudaProgram { name: "a", source: "s", options: &["-x"], ..CudaProgram::default() };
        let key = base.cache_key("nvrtc", 90);
        let folders = [Path::new("/x")];
        assert_eq!(key, CudaProgram { name: "b", include_dirs: &folders, ..base }.cache_key("nvrtc", 90));
        let others = [
            CudaProgram { source: "t", ..base },
            CudaProgram { options: &["-y"], ..base },
            CudaProgram { headers: &[("h", "")], ..base },
            CudaProgram { identity: "i", ..base },
            CudaProgram { name_expressions: &["k<int>"], ..base },
        ];
        let mut keys: Vec<_> = others.iter().map(|p| p.cache_key("nvrtc", 90)).collect();
        keys.extend([key, base.cache_key("nvrtc", 80), base.cache_key("other", 90)]);
        let distinct: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }
}
