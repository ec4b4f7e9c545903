//! Lookup of kernel functions by key. A kernel is compiled at its first use, from a `.cu` file of this crate or from source that is
//! generated for an expression.

use std::hash::Hasher;
use std::sync::Arc;

use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::codegen::KernelKey;
use crate::compile::module::Function;
use crate::compile::program::CudaProgram;
use crate::driver::Context;
use crate::error::{CudaError, Result};
use crate::launch_cache::LaunchCache;

/// Number of threads per block, unless a kernel family chooses another number.
pub(crate) const DEFAULT_THREADS_PER_BLOCK: u32 = 256;

/// The part of the C++ prelude that `.cu` files need: element types, axes, the error word.
const BASIC_CUDA_PRELUDE: &str = concat!(include_str!("../codegen/prelude/types.cuh"), include_str!("../codegen/prelude/layout.cuh"));

/// A `.cu` file, which is compiled with macro definitions for dtypes and sizes.
#[derive(Debug)]
pub(crate) struct KernelSource {
    /// File name, which compile errors show and kernel keys contain.
    pub name: &'static str,
    /// The CUDA C++ source code in the file.
    pub text: &'static str,
}

/// Macro definitions for one compilation of a `.cu` file: name and value.
pub(crate) type Defines<'a> = &'a [(&'static str, &'a str)];

impl KernelSource {
    /// Returns the complete CUDA C++ source: the basic prelude with the element types, then `defines`, then the text of the `.cu` file.
    pub fn source_with_defines(&self, defines: Defines) -> String {
        let defines: String = defines.iter().map(|(name, text)| format!("#define {name} {text}\n")).collect();
        [BASIC_CUDA_PRELUDE, &defines, self.text].concat()
    }

    /// Returns a descriptive name and the complete source with `defines`, for compiling without a device.
    pub fn named_source(&self, defines: Defines) -> (String, String) {
        let values: Vec<_> = defines.iter().map(|(_, text)| *text).collect();
        (format!("{}<{}>", self.name, values.join(", ")), self.source_with_defines(defines))
    }

    /// Returns the `extern "C"` kernel `name`, compiled with `defines`. The first call compiles the source.
    pub fn get_or_compile_kernel(&self, context: &'static Context, name: &str, defines: Defines) -> Result<Arc<Function>> {
        let mut key = SmallVec::<[u8; 96]>::new();
        let parts = defines.iter().flat_map(|(name, text)| [*name, *text]);
        for text in [self.name, name].into_iter().chain(parts) {
            key.extend_from_slice(text.as_bytes());
            key.push(0);
        }
        let mut hasher = FxHasher::default();
        hasher.write(&key);
        context.kernel_cache().get_or_make(hasher.finish(), &key, || {
            let source = self.source_with_defines(defines);
            CudaProgram { name: self.name, source: &source, ..CudaProgram::default() }.compile_and_load(context)?.extern_c_function(name)
        })
    }
}

/// Returns the kernel for `key`, whose source is generated for an expression. Only the first call for a key and device generates and
/// compiles the source. `make` returns the name and source of the kernel, or the name of an operation that has no C++ expression.
pub(crate) fn get_or_generate_kernel(
    context: &'static Context,
    key: KernelKey,
    make: impl FnOnce() -> std::result::Result<(String, String), &'static str>,
) -> Result<Arc<Function>> {
    thread_local! {
        static FUNCTION_CACHE: LaunchCache<Arc<Function>> = const { LaunchCache::new() };
    }
    let key = key.with_number(context.info().ordinal as u64);
    if let Some(function) = LaunchCache::find(&FUNCTION_CACHE, &key, Arc::clone) {
        return Ok(function);
    }
    let written = key.serialize();
    let function = context.kernel_cache().get_or_make(written.hash(), written.bytes(), || {
        let (name, source) = make().map_err(|op| CudaError::Invalid(format!("no CUDA expression for {op}")))?;
        CudaProgram { name: &name, source: &source, ..CudaProgram::default() }.compile_and_load(context)?.extern_c_function(&name)
    })?;
    LaunchCache::insert(&FUNCTION_CACHE, &key, function.clone());
    Ok(function)
}

/// Returns the grid of a grid-stride kernel over `items` items: one thread per item, up to the largest grid. Smaller grids
/// are slower (`docs/notes/gpu-elementwise.md`).
pub(crate) fn grid_for_items(items: u64, threads: u32) -> [u32; 3] {
    [u32::try_from(items.div_ceil(u64::from(threads))).unwrap_or(u32::MAX).min(i32::MAX.unsigned_abs()), 1, 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_come_between() {
        let source = KernelSource { name: "a.cu", text: "T f();\n" };
        let defines: Defines = &[("T", "float"), ("N", "3")];
        let whole = source.source_with_defines(defines);
        assert!(whole.starts_with(BASIC_CUDA_PRELUDE) && whole.ends_with("\n#define T float\n#define N 3\nT f();\n"));
        assert_eq!(source.named_source(defines).0, "a.cu<float, 3>");
    }

    #[test]
    fn grids_cover() {
        assert_eq!(grid_for_items(0, 256), [0, 1, 1]);
        assert_eq!(grid_for_items(1, 256), [1, 1, 1]);
        assert_eq!(grid_for_items(257, 256), [2, 1, 1]);
        assert_eq!(grid_for_items(1 << 40, 256), [i32::MAX as u32, 1, 1]);
    }
}
